/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The set-up time of a switch that is none: half of the mean is sure, the rest exponential. */
#ifndef COLL_DAEMON_DELAY_H
#define COLL_DAEMON_DELAY_H

#include <stdlib.h>

#include "../../core/port.h"

struct switch_delay {
	u64 mean, most;		/* ns; most 0: twice the mean */
	struct drand48_data random;
};

/* delta, most, seed. False: no such word, or no such value. */
bool switch_delay_set(struct switch_delay *delay, const char *key, const char *value);
void switch_delay_take(struct switch_delay *delay);

#endif
