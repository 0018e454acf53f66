// SPDX-License-Identifier: GPL-2.0
/*
 * What watching takes of a CPU, and that it does not take too much. Calls by other CPUs are timed, each of
 * them; of probes one in so many. How many is drawn anew each time: probes come in loops, of which a fixed step
 * might see the same place always. Who is stopped in one, by an NMI or the hypervisor, does not pay for all the
 * others that this one stands for.
 *
 * Too much is more than the share of a second, or of the time since the window's begin if that is longer. So no
 * window of a second has more than twice the share in it, and what it took an hour ago counts for nothing.
 */
#include <linux/math64.h>

#include "watch.h"

enum { STRIDE_LEAST = 31, STRIDES = 61, COST_LONGEST = 20 * NSEC_PER_USEC, SHARES = 1000000 };
static const u64 WINDOW = NSEC_PER_SEC;

/* No secret: it has to differ from what the CPU does. */
static void cost_draw(struct watch_cost *cost)
{
	cost->random = cost->random * 1664525 + 1013904223;
	cost->stride = STRIDE_LEAST + (cost->random >> 16) % STRIDES;
	cost->left = cost->stride;
}

void kcoll_cost_begin(struct watch_cost *cost)
{
	cost->since = kcoll_watch_now();
	cost->before = cost->total;
	cost->random ^= (u32)cost->since;
	cost->sampled = 0;
	cost_draw(cost);
}

/* Whether it is too much by now. */
static bool cost_judge(struct watch_cost *cost, u64 now)
{
	const u64 span = now - cost->since;

	if (!cost->share)
		return false;
	if (cost->total - cost->before > div_u64(max(span, WINDOW), SHARES) * cost->share) {
		WRITE_ONCE(cost->passed, true);
		return true;
	}
	if (span >= WINDOW) {
		cost->since = now;
		cost->before = cost->total;
	}
	return false;
}

bool kcoll_cost_add(struct watch_cost *cost)
{
	const u64 now = kcoll_watch_now();

	kcoll_sum_add(&cost->total, cost->stride * min_t(u64, now - cost->sampled, COST_LONGEST));
	cost_draw(cost);
	return cost_judge(cost, now);
}

/* Of several in one interrupt, each from the end of the one before. */
bool kcoll_cost_add_call(struct watch_cost *cost, u64 began)
{
	const u64 now = kcoll_watch_now();

	kcoll_sum_add(&cost->total, min_t(u64, now - max(began, cost->called), COST_LONGEST));
	cost->called = now;
	return cost_judge(cost, now);
}
