/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Which interrupt it is that takes a rank's CPU. */
#ifndef COLL_OBSERVE_INTERRUPTS_H
#define COLL_OBSERVE_INTERRUPTS_H

#include "taken.h"

/* "": none stands out, or it is the first look. */
struct observed_names {
	char hard[sizeof(((struct coll_flight_taker *)NULL)->name)];
	char soft[sizeof(((struct coll_flight_taker *)NULL)->name)];
};

/*
 * The most frequent ones of the rank's CPU since this was called for it before: to be called at each whole
 * look while they take much. Reads two files, with a number for each CPU in each line.
 */
void node_observed_interrupts(struct observed_rank *rank, struct observed_names *names);
/* They take little, or the rank is gone. */
void node_observed_interrupts_forget(struct observed_rank *rank);

#endif
