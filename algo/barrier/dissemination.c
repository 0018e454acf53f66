// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Dissemination (Hensgen, Finkel, Manber 1988): in round k each rank sends to the rank 2^k above
 * and receives from the rank 2^k below, for any number of ranks.
 *
 *	ceil(log2 p) alpha
 */
#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

static void barrier_dissemination_emit(struct coll_build *b, const struct coll_call *call,
				       const struct coll_tuning *tuning)
{
	u32 heard = COLL_NONE, distance;

	(void)tuning;
	for (distance = 1; distance < call->ranks; distance *= 2) {
		u32 to = rank_plus(call->rank, distance, call->ranks);
		u32 from = rank_minus(call->rank, distance, call->ranks);
		u32 received = coll_emit_recv(b, from, COLL_ADDRESS(COLL_SCRATCH, 0), 0);

		/* Everything heard so far, not just the last round. */
		coll_emit_after(b, heard);
		coll_emit_send(b, to, COLL_ADDRESS(COLL_SCRATCH, 0), 0);
		heard = emit_both(b, heard, received);
	}
}

static double barrier_dissemination_cost(const struct coll_call *call,
					 const struct coll_tuning *tuning,
					 const struct coll_machine *machine)
{
	(void)tuning;
	return symmetric_cost(call, machine, log2_ceil(call->ranks) * machine->alpha);
}

const struct coll_algo coll_barrier_dissemination = {
	.collective = COLL_BARRIER,
	.name = "dissemination",
	.about = "log2 p rounds, each telling a rank twice as far away",
	.ordered = true,
	.regular = COLL_REGULAR,
	.cost = barrier_dissemination_cost,
	.emit = barrier_dissemination_emit,
};

const struct coll_algo coll_barrier_world = {
	.collective = COLL_BARRIER,
	.name = "world",
	.about = "over all ranks as if they were near each other: dissemination",
	.ordered = true,
	.cost = barrier_dissemination_cost,
	.emit = barrier_dissemination_emit,
	.baseline = true,
};
