// SPDX-License-Identifier: GPL-2.0
/*
 * What the hypervisor took from the task. The kernel finds out how much it took of the CPU at its clock ticks;
 * not when, nor from whom. A CPU that sleeps loses nothing, so of what is found the task has its part of the
 * time since the tick before for which the CPU did not sleep, and no more than it wanted the CPU then. That is
 * so whether it still wants the CPU when the tick comes. The rest is nobody's, and stays where it was counted.
 *
 * It is taken off what the task, and threads that keep it waiting, have from then on; no interrupt pays for it.
 */
#include <linux/jiffies.h>
#include <linux/kernel_stat.h>
#include <linux/math64.h>

#include "watch.h"

enum { PARTS = 1024 };

/* Since the CPU was booted. */
static u64 steal_read(u32 cpu)
{
	return kcpustat_cpu(cpu).cpustat[CPUTIME_STEAL];
}

void kcoll_steal_begin(struct watch_cpu *watch)
{
	watch->steal = (struct watch_steal){ .seen = steal_read(watch->cpu) };
}

/* Two spans, each of two ticks or more: since the latest tick all is in them, however long that one took. */
static void steal_span(struct watch_steal *steal, u64 wanted, u64 busy)
{
	if (steal->busy[0] >= 2 * TICK_NSEC) {
		steal->wanted[1] = steal->wanted[0];
		steal->busy[1] = steal->busy[0];
		steal->wanted[0] = steal->busy[0] = 0;
	}
	steal->wanted[0] += wanted;
	steal->busy[0] += busy;
}

/* The task's part of it. */
static u64 steal_part(const struct watch_steal *steal, u64 found)
{
	const u64 wanted = steal->wanted[0] + steal->wanted[1], busy = steal->busy[0] + steal->busy[1],
		  parts = div64_u64(wanted * PARTS, max(busy, 1ull));

	return min(found / PARTS * parts + found % PARTS * parts / PARTS, wanted);
}

void kcoll_steal_add(struct watch_cpu *watch, u64 wanted, u64 busy)
{
	struct watch_steal *steal = &watch->steal;
	const u64 now = steal_read(watch->cpu);

	steal_span(steal, wanted, busy);
	if (now <= steal->seen)
		return;
	steal->owed += steal_part(steal, now - steal->seen);
	*steal = (struct watch_steal){ .seen = now, .owed = steal->owed };
}

u64 kcoll_steal_take(struct watch_cpu *watch, u64 most)
{
	const u64 time = min(watch->steal.owed, most);
	struct watch_source *source = &watch->sources[COLL_NOISE_STEAL];

	if (!time)
		return 0;
	watch->steal.owed -= time;
	kcoll_sum_add(&source->total, time);
	kcoll_sum_add(&source->inclusive, time);
	return time;
}
