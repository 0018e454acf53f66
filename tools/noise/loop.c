// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>

#include "loop.h"

enum { ITERATIONS = 20000 };

/*
 * Storing takes less than any threshold, so the next gap begins with the reading that ended this
 * one: all time is watched.
 */
static __attribute__((noinline)) void loop_keep(struct noise_loop *loop, u64 begin, u64 end,
						u64 *total)
{
	if (loop->gaps < loop->capacity) {
		loop->gap[loop->gaps] = (struct noise_gap){ begin, end };
		__atomic_store_n(&loop->gaps, loop->gaps + 1, __ATOMIC_RELAXED);
	} else {
		loop->lost++;
		loop->lost_ticks += end - begin;
	}
	*total += end - begin;
	if ((loop->limit && end - begin > loop->limit) ||
	    (loop->limit_total && *total > loop->limit_total))
		loop->passed = true;
}

static __attribute__((noinline)) void loop_stall(struct noise_stalls *stalls, bool counter,
						 u64 begin)
{
	const struct noise_gap *plan = &stalls->plan[stalls->index];
	u64 end = begin;

	while (end - begin < plan->end)
		end = noise_ticks(counter);
	stalls->done[stalls->index++] = (struct noise_gap){ begin, end };
}

static inline __attribute__((always_inline)) void
loop_turn(struct noise_loop *loop, u64 end, bool counter, bool stalling)
{
	const u64 threshold = loop->threshold, begin = noise_ticks(counter);
	const bool *stop = loop->stop;
	struct noise_stalls *stalls = loop->stalls;
	u64 next = stalling && stalls->index < stalls->count ?
			   stalls->plan[stalls->index].begin : UINT64_MAX;
	u64 last = begin, now = begin, iterations = 0, total = 0;

	while (now < end && !__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		now = noise_ticks(counter);
		if (__builtin_expect(now - last > threshold, 0)) {
			loop_keep(loop, last, now, &total);
			if (loop->passed)
				break;
		}
		last = now;
		iterations++;
		if (stalling && __builtin_expect(now >= next, 0) && now < end) {
			loop_stall(stalls, counter, now);
			next = stalls->index < stalls->count ?
				       stalls->plan[stalls->index].begin : UINT64_MAX;
		}
	}
	loop->watched += now - begin;
	loop->iterations += iterations;
}

void noise_loop_run(struct noise_loop *loop, u64 end)
{
	if (loop->counter && loop->stalls)
		loop_turn(loop, end, true, true);
	else if (loop->counter)
		loop_turn(loop, end, true, false);
	else
		loop_turn(loop, end, false, loop->stalls != NULL);
}

static int loop_ascending(const void *a, const void *b)
{
	const u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

u64 noise_loop_iteration(bool counter, u64 *least)
{
	u64 *length = calloc(ITERATIONS, sizeof(*length)), usual, last, i;

	*least = 0;
	if (!length)
		return 0;
	last = noise_ticks(counter);
	for (i = 0; i < ITERATIONS; i++) {
		const u64 now = noise_ticks(counter);

		length[i] = now - last;
		last = now;
	}
	qsort(length, ITERATIONS, sizeof(*length), loop_ascending);
	*least = length[0];
	usual = length[ITERATIONS / 2];
	free(length);
	return usual;
}
