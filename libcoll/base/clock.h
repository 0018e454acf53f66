/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_CLOCK_H
#define COLL_CLOCK_H

#include <stdint.h>
#include <time.h>

#define COLL_SECOND 1000000000ull	/* ns */
#define COLL_FOREVER UINT64_MAX		/* as a deadline */
#define COLL_DEADLINE_MAX (365 * 86400 * COLL_SECOND)	/* of a call: a year */

/* Now, in ns of CLOCK_MONOTONIC. All deadlines use this clock. */
static inline uint64_t coll_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * COLL_SECOND + now.tv_nsec;
}

/* ns of a processor that this thread has had. Costs a system call. */
static inline uint64_t coll_thread_time(void)
{
	struct timespec had;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &had);
	return had.tv_sec * COLL_SECOND + had.tv_nsec;
}

#endif
