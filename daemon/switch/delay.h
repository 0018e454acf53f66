/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The reconfiguration delay of a simulated switch: a minimum, and an exponential part. */
#ifndef COLL_DAEMON_DELAY_H
#define COLL_DAEMON_DELAY_H

#include <stdlib.h>

#include "core/port.h"

struct switch_delay {
	u64 mean, max;		/* ns; max 0: twice the mean */
	u64 min;		/* 0: half of the mean */
	struct drand48_data random;
};

/* Keys: delta, max, min, seed. False: an unknown key, or an invalid value. */
bool switch_delay_set(struct switch_delay *delay, const char *key, const char *value);
/* The end of an order that begins now; orders run in parallel. */
u64 switch_delay_end(struct switch_delay *delay);

#endif
