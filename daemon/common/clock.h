/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_DAEMON_CLOCK_H
#define COLL_DAEMON_CLOCK_H

#include <time.h>

#include "core/port.h"

/* CLOCK_MONOTONIC, ns. */
static inline u64 colld_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

#endif
