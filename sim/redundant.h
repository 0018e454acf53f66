/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The fast path of the redundant butterfly on 2^K ranks. Its any-waits have no levels: a
 * rank is done at the first of several results, sends it on, also instead of its exchanges. The
 * times are computed as a fixed point. It is unique, since each event depends on earlier
 * ones only.
 */
#ifndef COLL_SIM_REDUNDANT_H
#define COLL_SIM_REDUNDANT_H

#include "machine.h"

/* Whether the job is a redundant butterfly, and only messages and reductions cost time. */
bool redundant_fits(const struct sim_job *job, const struct sim_machine *machine);

/* Start with zeros; for one job, one run at a time. */
struct redundant_memory {
	sim_time *times;
	u64 *sets;
};
void redundant_free(struct redundant_memory *memory);

/* -EOPNOTSUPP: it does not fit. Safe in several threads at once, each with its memory. */
int redundant_run(const struct sim_job *job, const struct sim_machine *machine,
		  struct redundant_memory *memory, struct sim_outcome *outcome, sim_time *finish);

#endif
