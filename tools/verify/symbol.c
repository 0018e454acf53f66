// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdio.h>
#include <string.h>

#include "tools/common/arena.h"
#include "symbol.h"

#define LEAF 0x80000000u

enum { TABLE_START = 1 << 10 };

static u32 symbol_hash(u32 left, u32 right)
{
	u64 h = ((u64)left << 32 | right) * 0x9e3779b97f4a7c15ULL;

	return h >> 32;
}

static void table_insert(struct symbols *s, u32 number)
{
	u32 i = symbol_hash(s->symbol[number].left, s->symbol[number].right) & s->mask;

	while (s->table[i])
		i = (i + 1) & s->mask;
	s->table[i] = number;
}

/* An empty table of this many entries, a power of two. */
static void table_clear(struct symbols *s, u32 entries)
{
	if (entries > s->table_capacity) {
		s->table = memory_grow(s->table, entries, sizeof(u32));
		s->table_capacity = entries;
	}
	memset(s->table, 0, entries * sizeof(u32));
	s->mask = entries - 1;
}

void symbols_reset(struct symbols *s, u32 ranks)
{
	s->words = (ranks + 63) / 64;
	s->capacity = 0;	/* the stride of `set` has changed */
	s->count = SYMBOL_FIRST;
	table_clear(s, TABLE_START);
}

void symbols_free(struct symbols *s)
{
	memory_free(s->symbol);
	memory_free(s->set);
	memory_free(s->table);
	memset(s, 0, sizeof(*s));
}

static u32 symbol_new(struct symbols *s, u32 left, u32 right)
{
	u32 i;

	if (s->count >= s->capacity) {
		s->capacity = s->capacity ? s->capacity * 2 : TABLE_START;
		s->symbol = memory_grow(s->symbol, s->capacity, sizeof(*s->symbol));
		s->set = memory_grow(s->set, (size_t)s->capacity * s->words, sizeof(u64));
	}
	if (2 * s->count > s->mask) {
		table_clear(s, 2 * (s->mask + 1));
		for (i = SYMBOL_FIRST; i < s->count; i++)
			table_insert(s, i);
	}
	s->symbol[s->count] = (struct symbol){ .left = left, .right = right };
	table_insert(s, s->count);
	return s->count++;
}

/* The symbol with these two operands, or 0. */
static u32 symbol_find(const struct symbols *s, u32 left, u32 right)
{
	u32 i, number;

	for (i = symbol_hash(left, right) & s->mask; (number = s->table[i]); i = (i + 1) & s->mask)
		if (s->symbol[number].left == left && s->symbol[number].right == right)
			return number;
	return 0;
}

static u64 *symbol_set(const struct symbols *s, u32 number)
{
	return s->set + (size_t)number * s->words;
}

u32 symbol_leaf(struct symbols *s, u32 rank, u32 element)
{
	u32 number = symbol_find(s, LEAF | rank, element);

	if (number)
		return number;
	number = symbol_new(s, LEAF | rank, element);
	s->symbol[number].element = element;
	s->symbol[number].low = rank;
	s->symbol[number].high = rank + 1;
	s->symbol[number].ordered = true;
	s->symbol[number].leaf = true;
	memset(symbol_set(s, number), 0, s->words * sizeof(u64));
	symbol_set(s, number)[rank / 64] |= 1ULL << rank % 64;
	return number;
}

static bool sets_overlap(const struct symbols *s, u32 a, u32 b)
{
	u32 i;

	for (i = 0; i < s->words; i++)
		if (symbol_set(s, a)[i] & symbol_set(s, b)[i])
			return true;
	return false;
}

const char *symbol_reduce(struct symbols *s, u32 left, u32 right, u32 *result)
{
	struct symbol *node;
	u32 number, i;

	*result = SYMBOL_UNDEFINED;
	if (!symbol_is_defined(left) || !symbol_is_defined(right))
		return NULL;
	*result = symbol_find(s, left, right);
	if (*result)
		return NULL;
	if (s->symbol[left].element != s->symbol[right].element)
		return "reduces elements of different index";
	if (sets_overlap(s, left, right))
		return "reduces a contribution with itself";

	number = symbol_new(s, left, right);
	node = &s->symbol[number];
	node->element = s->symbol[left].element;
	node->low = s->symbol[left].low;
	node->high = s->symbol[right].high;
	node->ordered = s->symbol[left].ordered && s->symbol[right].ordered &&
			s->symbol[left].high == s->symbol[right].low;
	for (i = 0; i < s->words; i++)
		symbol_set(s, number)[i] = symbol_set(s, left)[i] | symbol_set(s, right)[i];
	*result = number;
	return NULL;
}

/* For each of the 64 ranks from `first`, a bit if it is in low .. high - 1. */
static u64 range_bits(u32 first, u32 low, u32 high)
{
	const u32 from = low > first ? low - first : 0, to = high > first ? high - first : 0;
	const u64 below_to = to >= 64 ? ~0ull : (1ull << to) - 1;

	return from >= 64 ? 0 : below_to & ~((1ull << from) - 1);
}

bool symbol_is_reduction(const struct symbols *s, u32 number, u32 element, u32 low, u32 high)
{
	const u64 *set = symbol_set(s, number);
	u32 i;

	if (!symbol_is_defined(number) || s->symbol[number].element != element)
		return false;
	for (i = 0; i < s->words; i++)
		if (set[i] != range_bits(64 * i, low, high))
			return false;
	return true;
}

bool symbol_is_ordered(const struct symbols *s, u32 number)
{
	return symbol_is_defined(number) && s->symbol[number].ordered;
}

/* Appends the expression to `text` until that is full. */
static void print_tree(const struct symbols *s, u32 number, char *text, size_t bytes)
{
	const struct symbol *node = &s->symbol[number];
	size_t used = strlen(text);

	if (used + 16 > bytes)
		return;
	if (node->leaf) {
		snprintf(text + used, bytes - used, "%u", node->left & ~LEAF);
		return;
	}
	strcat(text, "(");
	print_tree(s, node->left, text, bytes - 8);
	strcat(text, " + ");
	print_tree(s, node->right, text, bytes - 4);
	strcat(text, ")");
}

const char *symbol_print(const struct symbols *s, u32 number, char *text, size_t bytes)
{
	const struct symbol *symbol = &s->symbol[number];
	size_t used;

	if (number == SYMBOL_UNDEFINED) {
		snprintf(text, bytes, "undefined contents");
	} else if (number == SYMBOL_UNWRITTEN) {
		snprintf(text, bytes, "the contents before the call");
	} else if (symbol->leaf) {
		snprintf(text, bytes, "element %u of rank %u", symbol->element, symbol->low);
	} else {
		used = snprintf(text, bytes, "element %u of ranks ", symbol->element);
		text[used] = '\0';
		print_tree(s, number, text, bytes);
	}
	return text;
}
