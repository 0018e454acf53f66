// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Checks that all ranks finished, with correct results. */
#include <stdio.h>

#include "verify.h"

static void judge_reduction(struct world *w, u32 rank, u64 e, u32 got)
{
	const struct verify_want *want = &w->rank[rank].want;
	const u32 element = want->first + e;
	char text[320];

	if (!symbol_is_reduction(&w->symbols, got, element, want->low, want->high))
		world_fail(w, rank, COLL_NONE,
			   "OUT[%llu]: expected element %u of ranks %u..%u, each once; got %s",
			   (unsigned long long)e, element, want->low, want->high - 1,
			   symbol_print(&w->symbols, got, text, sizeof(text)));
	else if (!w->vcase->commutative && !symbol_is_ordered(&w->symbols, got))
		world_fail(w, rank, COLL_NONE,
			   "OUT[%llu]: expected ranks %u..%u in order; got %s",
			   (unsigned long long)e, want->low, want->high - 1,
			   symbol_print(&w->symbols, got, text, sizeof(text)));
}

static void judge_result(struct world *w, u32 rank)
{
	const struct verify_rank *r = &w->rank[rank];
	const u32 *out = r->memory[COLL_OUT];
	u64 e;

	for (e = 0; e < r->want.out_elements && !w->failure.failed; e++) {
		u32 want = r->want.want[e];
		char expected[200], got[200];

		if (want == WANT_REDUCTION)
			judge_reduction(w, rank, e, out[e]);
		else if (want != WANT_ANYTHING && want != out[e])
			world_fail(w, rank, COLL_NONE, "OUT[%llu]: expected %s; got %s",
				   (unsigned long long)e,
				   symbol_print(&w->symbols, want, expected, sizeof(expected)),
				   symbol_print(&w->symbols, out[e], got, sizeof(got)));
	}
}

/* Equal symbols: the same operands, combined in the same order. */
static void judge_bits(struct world *w, u32 rank, u32 other)
{
	const struct verify_rank *a = &w->rank[rank], *b = &w->rank[other];
	u64 e;

	for (e = 0; e < a->want.out_elements && !w->failure.failed; e++) {
		u32 mine = a->memory[COLL_OUT][e], theirs = b->memory[COLL_OUT][e];
		char one[200], two[200];

		if (mine != theirs)
			world_fail(w, rank, COLL_NONE,
				   "OUT[%llu]: not the same bits: %s; rank %u has %s",
				   (unsigned long long)e,
				   symbol_print(&w->symbols, mine, one, sizeof(one)), other,
				   symbol_print(&w->symbols, theirs, two, sizeof(two)));
	}
}

static const char *const kind_names[COLL_OP_KINDS] = {
	"send", "recv", "reduce", "copy", "connect", "release",
};

static bool stuck_in(struct world *w, u32 rank, bool begun)
{
	const struct verify_rank *r = &w->rank[rank];
	u32 i;

	for (i = 0; i < r->schedule->ops; i++) {
		const struct coll_op *op = world_op(w, rank, i);

		if (op->flags & COLL_OPTIONAL || r->step.state[i] == COLL_OP_DONE ||
		    (r->step.state[i] == COLL_OP_STARTED) != begun)
			continue;
		if (op->peer == COLL_NONE)
			world_fail(w, rank, i, "deadlock: this %s is never done",
				   kind_names[op->kind]);
		else
			world_fail(w, rank, i, "deadlock: this %s with rank %u is never done",
				   kind_names[op->kind], world_partner(w, rank, i));
		return true;
	}
	return false;
}

/* A rank that waits in an op that it has started explains a deadlock better than others. */
static void judge_stuck(struct world *w)
{
	u32 begun, i;

	for (begun = 2; begun-- > 0;)
		for (i = 0; i < w->ranks; i++)
			if (!w->rank[i].finished && !w->rank[i].frozen && stuck_in(w, i, begun))
				return;
}

void world_judge(struct world *w)
{
	u32 i, other = COLL_NONE;

	for (i = 0; i < w->ranks && !w->failure.failed; i++) {
		if (!w->rank[i].finished && !w->rank[i].frozen)
			judge_stuck(w);
		if (!w->rank[i].finished)
			continue;
		judge_result(w, i);
		if (w->vcase->algo->collective == COLL_ALLREDUCE && other != COLL_NONE)
			judge_bits(w, i, other);
		other = i;
	}
}
