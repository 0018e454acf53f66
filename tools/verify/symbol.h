/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The contents of an element as an expression: an input element of a rank (a leaf), or the
 * reduction of two expressions (a node). Equal expressions have the same number, so "the same bits
 * on every rank" is one comparison. An expression knows the set of its contributing ranks.
 */
#ifndef COLL_VERIFY_SYMBOL_H
#define COLL_VERIFY_SYMBOL_H

#include "core/port.h"

enum {
	SYMBOL_UNDEFINED,	/* scratch never written, or a receive in progress */
	SYMBOL_UNWRITTEN,	/* contents of OUT before the call */
	SYMBOL_FIRST,
};

struct symbol {
	u32 left, right;	/* operands of a node; of a leaf: LEAF | rank, element */
	u32 element;		/* index of the vector's element */
	u32 low, high;		/* contributions low .. high - 1 in rank order, */
	bool ordered;		/* if this is set */
	bool leaf;
};

struct symbols {
	struct symbol *symbol;
	u64 *set;		/* per symbol: `words` words, one bit per contributing rank */
	u32 *table;		/* open addressing: number of a symbol, 0: free */
	u32 count, capacity, words;
	u32 mask, table_capacity;
};

/* Removes all symbols; the next ones are of `ranks` ranks. */
void symbols_reset(struct symbols *symbols, u32 ranks);
void symbols_free(struct symbols *symbols);

u32 symbol_leaf(struct symbols *symbols, u32 rank, u32 element);

/*
 * left (reduction) right. Undefined if an operand is. Returns NULL, or the reason why the two must
 * not be reduced: elements of different index, or a contribution in both.
 */
const char *symbol_reduce(struct symbols *symbols, u32 left, u32 right, u32 *result);

/* Whether it consists of exactly the contributions low .. high - 1 to this element. */
bool symbol_is_reduction(const struct symbols *symbols, u32 symbol, u32 element, u32 low, u32 high);
/* ... and in rank order. */
bool symbol_is_ordered(const struct symbols *symbols, u32 symbol);

static inline bool symbol_is_defined(u32 symbol)
{
	return symbol >= SYMBOL_FIRST;
}

/* As text: "((0 + 1) + (2 + 3))[5]"; long expressions are cut. Returns `text`. */
const char *symbol_print(const struct symbols *symbols, u32 symbol, char *text, size_t bytes);

#endif
