// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdio.h>
#include <string.h>

#include "clock.h"

enum { FRACTION = 32, TRIES = 64, FIRST_LOOK_MS = 20 };

__extension__ typedef unsigned __int128 wide;

/*
 * The kernel uses the counter as clock source only if it never stops and is the same on all CPUs.
 */
static bool counter_is_trusted(void)
{
	char name[32] = "";
	FILE *from = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource",
			   "re");

	if (from && !fgets(name, sizeof(name), from))
		*name = 0;
	if (from)
		fclose(from);
	return NOISE_HAS_COUNTER &&
	       (!strcmp(name, "tsc\n") || !strcmp(name, "kvm-clock\n") ||
		!strcmp(name, "hyperv_clocksource_tsc_page\n"));
}

/* Of many tries the one with the least time between its readings. */
static struct noise_moment clock_now(bool counter)
{
	struct noise_moment best = { .blur = UINT64_MAX };
	int i;

	for (i = 0; i < TRIES; i++) {
		const u64 before = noise_ticks(counter);
		const u64 raw = noise_clock_read(CLOCK_MONOTONIC_RAW);
		const u64 wall = noise_clock_read(CLOCK_REALTIME);
		const u64 after = noise_ticks(counter);

		if (after - before < best.blur)
			best = (struct noise_moment){ before + (after - before) / 2, raw, wall,
						      after - before };
	}
	return best;
}

static u64 clock_scale(u64 value, u64 rate)
{
	return (wide)value * rate >> FRACTION;
}

static u64 clock_ratio(u64 to, u64 from)
{
	return from ? ((wide)to << FRACTION) / from : 0;
}

void noise_clock_settle(struct noise_clock *clock)
{
	u64 ticks, far;

	clock->last = clock_now(clock->counter);
	ticks = clock->last.ticks - clock->first.ticks;
	clock->rate = clock_ratio(clock->last.raw - clock->first.raw, ticks);
	clock->wall_rate = clock_ratio(clock->last.wall - clock->first.wall, ticks);
	clock->ppm = (clock->first.blur + clock->last.blur) / 2.0 / ticks * 1e6;
	/* The wall clock was set: keep the offset of the beginning. */
	far = clock->wall_rate > clock->rate ? clock->wall_rate - clock->rate :
					       clock->rate - clock->wall_rate;
	if (far > clock->rate / 1000)
		clock->wall_rate = clock->rate;
}

void noise_clock_open(struct noise_clock *clock)
{
	const struct timespec look = { .tv_nsec = FIRST_LOOK_MS * 1000000 };

	*clock = (struct noise_clock){ .counter = counter_is_trusted() };
	clock->first = clock_now(clock->counter);
	nanosleep(&look, NULL);
	noise_clock_settle(clock);
}

const char *noise_clock_name(const struct noise_clock *clock)
{
	return clock->counter ? "tsc" : "clock_gettime";
}

u64 noise_clock_ns(const struct noise_clock *clock, u64 ticks)
{
	return clock_scale(ticks, clock->rate);
}

u64 noise_clock_ticks(const struct noise_clock *clock, u64 ns)
{
	return ((wide)ns << FRACTION) / clock->rate;
}

u64 noise_clock_wall(const struct noise_clock *clock, u64 ticks)
{
	if (ticks < clock->first.ticks)
		return clock->first.wall -
		       clock_scale(clock->first.ticks - ticks, clock->wall_rate);
	return clock->first.wall + clock_scale(ticks - clock->first.ticks, clock->wall_rate);
}

u64 noise_clock_at(const struct noise_clock *clock, u64 wall)
{
	if (wall < clock->first.wall)
		return clock->first.ticks -
		       ((wide)(clock->first.wall - wall) << FRACTION) / clock->wall_rate;
	return clock->first.ticks +
	       ((wide)(wall - clock->first.wall) << FRACTION) / clock->wall_rate;
}
