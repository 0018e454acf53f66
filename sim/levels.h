/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The fast path. Ops of one class at one place in the schedule form a column;
 * where columns depend on each other without a cycle, one pass over all ranks a
 * column gives every time, and no queue is needed. It covers what has neither
 * any-waits nor optional ops, no rendezvous and no NICs that are shared; and it
 * finds out by itself if ranks' CPUs would have served ops in another order.
 */
#ifndef COLL_SIM_LEVELS_H
#define COLL_SIM_LEVELS_H

#include "machine.h"
#include "program.h"

struct sim_levels;

/* -EOPNOTSUPP: the program has no levels, or too many for its ranks. */
int levels_new(const struct sim_program *program, struct sim_levels **levels);
void levels_free(struct sim_levels *levels);

/* -EOPNOTSUPP: not with this machine; use events. Safe in several threads at once. */
int levels_run(const struct sim_levels *levels, const struct sim_machine *machine,
	       struct sim_outcome *outcome, sim_time *finish);

#endif
