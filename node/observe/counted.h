/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Who had a rank's core, as coll.ko counts it: exactly, where the rank is bound to few CPUs, and no other rank to one of
 * these and as few or fewer. Each may be called with counter NULL: then nothing is counted.
 */
#ifndef COLL_OBSERVE_COUNTED_H
#define COLL_OBSERVE_COUNTED_H

#include "observe.h"
#include "takers.h"

/* At the end of an interval, of all ranks: one reading. */
void node_counted_read(struct observed_rank *rank, uint32_t ranks, const struct observer_counter *counter);
/* The interval's takers. false: it was not counted, or not all of it, and nothing was added. */
bool node_counted_take(struct observed_rank *rank, const struct observed_all *all);
/* What is counted from now on: of ranks that are there, where they are bound now. */
void node_counted_follow(struct observed_rank *rank, uint32_t ranks, const struct observer_counter *counter);
/* The rank has ended: its CPUs are to be ended, with others. */
void node_counted_forget(struct observed_rank *rank, struct node_cpus *ended);
void node_counted_end(const struct observer_counter *counter, struct node_cpus *ended);
/* The process has made another page: when it is tried again stays. */
void node_counted_inherit(struct observed_rank *rank, const struct observed_rank *before);
struct observer_counts node_counted_counts(const struct observed_rank *rank, uint32_t ranks);

#endif
