/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The set-up time of a switch that is none: a part of the mean is sure, the rest exponential. */
#ifndef COLL_DAEMON_DELAY_H
#define COLL_DAEMON_DELAY_H

#include <stdlib.h>

#include "core/port.h"

struct switch_delay {
	u64 mean, most;		/* ns; most 0: twice the mean */
	u64 sure;		/* 0: half of the mean */
	struct drand48_data random;
};

/* delta, most, sure, seed. False: no such word, or no such value. */
bool switch_delay_set(struct switch_delay *delay, const char *key, const char *value);
/* When an order that is begun now is done: each takes its own time, side by side. */
u64 switch_delay_end(struct switch_delay *delay);

#endif
