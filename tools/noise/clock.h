/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The clock of noise measurements: the CPU's counter if the kernel trusts it, else
 * CLOCK_MONOTONIC_RAW. Its rate is calibrated against CLOCK_MONOTONIC_RAW between opening and
 * settling, with an error bound.
 */
#ifndef COLL_NOISE_CLOCK_H
#define COLL_NOISE_CLOCK_H

#include <time.h>

#include "core/port.h"

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#define NOISE_HAS_COUNTER true
#else
#define NOISE_HAS_COUNTER false
#endif

/* One moment on all clocks; the first reading is off by up to `blur` ticks. */
struct noise_moment {
	u64 ticks, raw, wall, blur;
};

struct noise_clock {
	bool counter;
	struct noise_moment first, last;
	u64 rate;		/* ns per tick, in 2^-32 */
	u64 wall_rate;		/* the same for CLOCK_REALTIME */
	double ppm;		/* error bound of the rate, in millionths */
};

static inline u64 noise_clock_read(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* `counter` is a constant in time-critical callers: the compiler removes the branch. */
static inline __attribute__((always_inline)) u64 noise_ticks(bool counter)
{
#if NOISE_HAS_COUNTER
	if (counter)
		return __rdtsc();
#endif
	(void)counter;
	return noise_clock_read(CLOCK_MONOTONIC_RAW);
}

/* Takes 20 ms. */
void noise_clock_open(struct noise_clock *clock);
/* Calibrates the rate again, over all the time since the opening. Call when a measurement ends. */
void noise_clock_settle(struct noise_clock *clock);

const char *noise_clock_name(const struct noise_clock *clock);
u64 noise_clock_ns(const struct noise_clock *clock, u64 ticks);
u64 noise_clock_ticks(const struct noise_clock *clock, u64 ns);
/* Converts a reading to CLOCK_REALTIME, and back; also before the opening. */
u64 noise_clock_wall(const struct noise_clock *clock, u64 ticks);
u64 noise_clock_at(const struct noise_clock *clock, u64 wall);

#endif
