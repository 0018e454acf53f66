/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The fast path. The ops of one class at the same index of the schedule form a column. If
 * the dependences between columns have no cycle, one pass over all ranks for each column
 * gives all times, without a queue. It does not cover any-waits, optional ops, rendezvous,
 * and shared NICs. It detects if a rank's CPU would have served ops in another order.
 * These levels are not those of topologies, which are nodes here (struct sim_nodes).
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
