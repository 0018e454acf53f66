// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Reductions and copies of symbols. */
#include <stdio.h>

#include "verify.h"

/* Another way to the same contents must give the same contents. */
static void world_write(struct world *w, u32 rank, u32 op, u32 *to, u32 symbol)
{
	if (w->rank[rank].redundant[op] && symbol_is_defined(*to) && *to != symbol &&
	    !w->symbols.symbol[*to].leaf) {
		char before[160], after[160];

		world_fail(w, rank, op, "two ways to one result differ: %s; %s",
			   symbol_print(&w->symbols, *to, before, sizeof(before)),
			   symbol_print(&w->symbols, symbol, after, sizeof(after)));
	}
	*to = symbol;
}

static void world_reduce(struct world *w, u32 rank, u32 index)
{
	const struct coll_op *op = world_op(w, rank, index);
	const u32 *left = world_symbols(w, rank, op->left), *right = world_symbols(w, rank, op->right);
	u32 *result = world_symbols(w, rank, op->result);
	u64 i;

	for (i = 0; i < op->bytes / ELEMENT; i++) {
		char a[160], b[160];
		u32 symbol;
		const char *why = symbol_reduce(&w->symbols, left[i], right[i], &symbol);

		if (why)
			world_fail(w, rank, index, "it %s: left is %s, right is %s", why,
				   symbol_print(&w->symbols, left[i], a, sizeof(a)),
				   symbol_print(&w->symbols, right[i], b, sizeof(b)));
		world_write(w, rank, index, &result[i], symbol);
	}
}

static void world_copy(struct world *w, u32 rank, u32 index)
{
	const struct coll_op *op = world_op(w, rank, index);
	const u32 *from = world_symbols(w, rank, op->left);
	u32 *to = world_symbols(w, rank, op->result);
	u64 i;

	for (i = 0; i < op->bytes / ELEMENT; i++)
		world_write(w, rank, index, &to[i], from[i]);
}

void world_compute(struct world *w, u32 rank, u32 op)
{
	if (world_op(w, rank, op)->kind == COLL_OP_REDUCE)
		world_reduce(w, rank, op);
	else
		world_copy(w, rank, op);
}
