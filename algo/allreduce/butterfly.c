// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Butterfly, or recursive doubling (Thakur, Rabenseifner, Gropp 2005): in exchange i two virtual
 * ranks that differ in bit i exchange their vectors, and both reduce. An excess rank of the
 * fold gives its vector to its proxy before, and receives the result after.
 *
 *	K (alpha + n beta + n gamma)	for 2^K ranks; two messages more for other numbers
 *
 * Both sides of an exchange combine the same two operands in the same order, lower ranks on the
 * left, so all ranks compute the same bits. A sum is computed where the other operand arrived,
 * so it waits for no send; only the last one goes to OUT.
 */
#include "algo/common/partial.h"

static void allreduce_butterfly_emit(struct coll_build *b, const struct coll_call *call,
				     const struct coll_tuning *tuning)
{
	const struct coll_fold fold = fold_of(call->ranks);
	const u64 n = call_bytes(call), out = COLL_ADDRESS(COLL_OUT, 0);
	struct coll_partial mine = partial_input(call);
	u32 vrank, reading = COLL_NONE, i;

	(void)tuning;
	if (fold_is_excess(&fold, call->rank)) {
		coll_emit_excess_rank(b, call, call->rank + 1, mine.place, out);
		return;
	}
	vrank = fold_virtual_rank(&fold, call->rank);
	if (fold_is_proxy(&fold, vrank))
		mine = coll_emit_proxy(b, call, fold_excess_rank(vrank), mine.place, COLL_ANYWHERE);
	for (i = 0; i < fold.exchanges; i++) {
		const u32 partner = fold_rank(&fold, vrank ^ 1u << i);
		const bool below = partner < call->rank, last = i + 1 == fold.exchanges;
		const u64 theirs = coll_emit_scratch(b, n), next = last ? out : theirs;
		u32 received = coll_emit_recv(b, partner, theirs, n), sent;

		coll_emit_after(b, mine.ready);
		sent = coll_emit_send(b, partner, mine.place, n);
		if (mine.place == out)
			reading = sent;
		coll_emit_after(b, mine.ready);
		coll_emit_after(b, received);
		if (last)	/* the result replaces what is being sent, in place */
			coll_emit_after(b, reading);
		mine.ready = coll_emit_reduce(b, next, below ? theirs : mine.place,
					      below ? mine.place : theirs, n);
		mine.place = next;
	}
	if (fold_is_proxy(&fold, vrank)) {
		coll_emit_after(b, mine.ready);
		coll_emit_send(b, fold_excess_rank(vrank), mine.place, n);
	}
	if (call->ranks == 1)
		coll_emit_single_rank(b, call, n);
}

static double allreduce_butterfly_cost(const struct coll_call *call,
				       const struct coll_tuning *tuning,
				       const struct coll_machine *m)
{
	const struct coll_fold fold = fold_of(call->ranks);
	const u32 messages = fold.exchanges + (fold.excess ? 2 : 0);

	(void)tuning;
	return symmetric_cost(call, m,
			      messages * (m->alpha + call_bytes(call) * (m->beta + m->gamma)));
}

const struct coll_algo coll_allreduce_butterfly = {
	.collective = COLL_ALLREDUCE,
	.name = "butterfly",
	.about = "recursive doubling: log2 p exchanges of the whole vector",
	.ordered = true,
	.regular = COLL_REGULAR | COLL_REGULAR_POWER_OF_TWO,
	.cost = allreduce_butterfly_cost,
	.emit = allreduce_butterfly_emit,
};
