// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>

#include "node/rules.h"
#include "takers.h"

static struct colld_taker *taker_smallest(struct colld_takers *takers)
{
	struct colld_taker *smallest = takers->taker;
	u32 i;

	for (i = 1; i < takers->count; i++)
		if (takers->taker[i].ns < smallest->ns)
			smallest = &takers->taker[i];
	return smallest;
}

/* Where all have taken as much as the new one, it finds no room: NULL. */
static struct colld_taker *taker_of(struct colld_takers *takers, u32 pid, u64 ns)
{
	struct colld_taker *taker;
	u32 i;

	for (i = 0; i < takers->count; i++)
		if (takers->taker[i].pid == pid)
			return &takers->taker[i];
	if (takers->count == COLLD_TAKERS) {
		taker = taker_smallest(takers);
		if (taker->ns >= ns)
			return NULL;
	} else {
		taker = &takers->taker[takers->count++];
	}
	*taker = (struct colld_taker){ .pid = pid };
	return taker;
}

void colld_takers_add(struct colld_takers *takers, const struct observer_taken *taken)
{
	struct colld_taker *taker = taker_of(takers, taken->ran->pid, taken->ns);

	if (!taker)
		return;
	taker->ns += taken->ns;
	taker->rank = taken->rank;
	taker->cpu = taken->ran->cpu;
	node_rules_glob(taken->job, taker->job, sizeof(taker->job));
	node_rules_glob(taken->ran->name, taker->name, sizeof(taker->name));
}

static int by_ns(const void *left, const void *right)
{
	const struct colld_taker *a = left, *b = right;

	return (a->ns < b->ns) - (a->ns > b->ns);
}

void colld_takers_sort(struct colld_takers *takers)
{
	qsort(takers->taker, takers->count, sizeof(*takers->taker), by_ns);
}
