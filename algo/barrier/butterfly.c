// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Butterfly, or recursive doubling: in exchange i two virtual ranks that differ in bit i exchange
 * messages. An excess rank of the fold reports to its proxy before, and is released after.
 *
 *	K alpha	for 2^K ranks; two messages more for other numbers
 */
#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

static void barrier_butterfly_emit(struct coll_build *b, const struct coll_call *call,
				   const struct coll_tuning *tuning)
{
	const struct coll_fold fold = fold_of(call->ranks);
	const u64 nothing = COLL_ADDRESS(COLL_SCRATCH, 0);
	const u32 vrank = fold_virtual_rank(&fold, call->rank);
	u32 heard = COLL_NONE, i;

	(void)tuning;
	if (fold_is_excess(&fold, call->rank)) {
		coll_emit_send(b, call->rank + 1, nothing, 0);
		coll_emit_recv(b, call->rank + 1, nothing, 0);
		return;
	}
	if (fold_is_proxy(&fold, vrank))
		heard = coll_emit_recv(b, fold_excess_rank(vrank), nothing, 0);
	for (i = 0; i < fold.exchanges; i++) {
		u32 partner = fold_rank(&fold, vrank ^ 1u << i);
		u32 received = coll_emit_recv(b, partner, nothing, 0);

		coll_emit_after(b, heard);
		coll_emit_send(b, partner, nothing, 0);
		heard = emit_both(b, heard, received);
	}
	if (fold_is_proxy(&fold, vrank)) {
		coll_emit_after(b, heard);
		coll_emit_send(b, fold_excess_rank(vrank), nothing, 0);
	}
}

static double barrier_butterfly_cost(const struct coll_call *call, const struct coll_tuning *tuning,
				     const struct coll_machine *machine)
{
	const struct coll_fold fold = fold_of(call->ranks);

	(void)tuning;
	return symmetric_cost(call, machine,
			      (fold.exchanges + (fold.excess ? 2 : 0)) * machine->alpha);
}

const struct coll_algo coll_barrier_butterfly = {
	.collective = COLL_BARRIER,
	.name = "butterfly",
	.about = "log2 p exchanges, two messages more if p is no power of two",
	.ordered = true,
	.regular = COLL_REGULAR | COLL_REGULAR_POWER_OF_TWO,
	.cost = barrier_butterfly_cost,
	.emit = barrier_butterfly_emit,
};
