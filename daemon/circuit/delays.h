/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Reconfiguration delays: the latest samples, and what they come to. */
#ifndef COLL_DAEMON_CIRCUIT_DELAYS_H
#define COLL_DAEMON_CIRCUIT_DELAYS_H

#include "core/port.h"

/* Parts of a delay, and figures of the whole. */
enum circuit_delay {
	CIRCUIT_DELAY_QUEUE,	/* waited for earlier orders */
	CIRCUIT_DELAY_SWITCH,	/* the switch's own time */
	CIRCUIT_DELAY_LOCK,	/* until the link was up */
	CIRCUIT_DELAY_NOTIFY,	/* until the holders were notified */
	CIRCUIT_DELAY_ALL,
	CIRCUIT_DELAY_SAMPLED,
	CIRCUIT_DELAY_P90 = CIRCUIT_DELAY_SAMPLED,	/* of ALL */
	CIRCUIT_DELAYS,
};

enum { CIRCUIT_SAMPLES = 64 };

struct circuit_delays {
	u64 sample[CIRCUIT_DELAY_SAMPLED][CIRCUIT_SAMPLES];	/* ns */
	u64 samples;
};

/* When a circuit's latest order went which way. `given` 0: it has been sampled. */
struct circuit_times {
	u64 given, begun, moved, locked;
};

/* The holders have just been notified. Once a setup; a second call does nothing. */
void circuit_delays_add(struct circuit_delays *delays, struct circuit_times *times, u64 now);
/* Of the latest samples: the median of a part, or the 90th percentile of the whole. ns */
u64 circuit_delays_figure(const struct circuit_delays *delays, enum circuit_delay which);

#endif
