/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What an element of memory holds, as an expression: an input element of some
 * rank (a leaf), or the reduction of two expressions (a node). Equal
 * expressions are the same number, so "the same bits on every rank" is one
 * comparison. Every expression knows whose contributions it holds.
 */
#ifndef COLL_VERIFY_SYMBOL_H
#define COLL_VERIFY_SYMBOL_H

#include "core/port.h"

enum {
	SYMBOL_UNDEFINED,	/* scratch never written, or a receive under way */
	SYMBOL_UNWRITTEN,	/* what the application had in OUT before the call */
	SYMBOL_FIRST,
};

struct symbol {
	u32 left, right;	/* of a node; of a leaf: LEAF | rank, element */
	u32 element;		/* the vector's element it belongs to */
	u32 low, high;		/* contributions low .. high - 1 in rank order, */
	bool ordered;		/* if this is set */
	bool leaf;
};

struct symbols {
	struct symbol *symbol;
	u64 *set;		/* per symbol: `words` words, a bit a contributing rank */
	u32 *table;		/* open addressing: number of a symbol, 0 free */
	u32 count, capacity, words;
	u32 mask, table_capacity;
};

/* Forgets all symbols; the next ones are about this many ranks. */
void symbols_reset(struct symbols *symbols, u32 ranks);
void symbols_free(struct symbols *symbols);

u32 symbol_leaf(struct symbols *symbols, u32 rank, u32 element);

/*
 * left (reduction) right. Undefined if one of them is. Returns NULL, or why
 * the two may not be reduced: elements of different index, or a contribution
 * that is in both.
 */
const char *symbol_reduce(struct symbols *symbols, u32 left, u32 right, u32 *result);

/* Whether it holds exactly the contributions low .. high - 1 to this element. */
bool symbol_is_reduction(const struct symbols *symbols, u32 symbol, u32 element, u32 low, u32 high);
/* ... and in rank order. */
bool symbol_is_ordered(const struct symbols *symbols, u32 symbol);

static inline bool symbol_is_defined(u32 symbol)
{
	return symbol >= SYMBOL_FIRST;
}

/* As a person reads it: "((0 + 1) + (2 + 3))[5]"; long ones are cut. Returns `text`. */
const char *symbol_print(const struct symbols *symbols, u32 symbol, char *text, size_t bytes);

#endif
