// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Of all that had a rank's core those that its record has room for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taken.h"

static int by_ns(const void *left, const void *right)
{
	const struct coll_flight_taker *a = left, *b = right;

	return a->ns < b->ns ? 1 : a->ns > b->ns ? -1 : 0;
}

/* Whose ns are those of all that have no room. */
static void add_rest(struct coll_flight_taker *taker, const struct coll_flight_taker *all,
		     uint32_t count)
{
	struct coll_flight_taker *last = &taker[COLL_FLIGHT_TAKERS - 1];
	uint64_t rest = last->ns;
	uint32_t i;

	for (i = COLL_FLIGHT_TAKERS; i < count; i++)
		rest += all[i].ns;
	for (i = 0; i < COLL_FLIGHT_TAKERS - 1; i++)
		if (taker[i].kind == COLL_FLIGHT_TAKER_OTHERS) {
			taker[i].ns += rest;
			*last = (struct coll_flight_taker){ .ns = 0 };
			return;
		}
	*last = (struct coll_flight_taker){ .ns = rest, .kind = COLL_FLIGHT_TAKER_OTHERS };
}

/* Ranks that share a core with many are one: they would leave no room for who else had it. Returns how many are left. */
static uint32_t join_ranks(struct coll_flight_taker *all, uint32_t count)
{
	struct coll_flight_taker *first = NULL;
	uint32_t i, kept = 0;

	for (i = 0; i < count; i++) {
		if (first && all[i].kind == COLL_FLIGHT_TAKER_RANK) {
			first->ns += all[i].ns;
			first->id = COLL_FLIGHT_NO_RANK;
			snprintf(first->name, sizeof(first->name), "other ranks");
			continue;
		}
		all[kept] = all[i];
		if (all[i].kind == COLL_FLIGHT_TAKER_RANK)
			first = &all[kept];
		kept++;
	}
	return kept;
}

void node_observed_takers(const struct observed_rank *rank,
		     struct coll_flight_taker taker[COLL_FLIGHT_TAKERS])
{
	struct coll_flight_taker all[OBSERVED_TAKERS];
	uint32_t count = rank->takers, i;

	memcpy(all, rank->taker, sizeof(all));
	if (count > COLL_FLIGHT_TAKERS)
		count = join_ranks(all, count);
	qsort(all, count, sizeof(*all), by_ns);
	for (i = 0; i < COLL_FLIGHT_TAKERS && i < count; i++)
		taker[i] = all[i];
	if (count > COLL_FLIGHT_TAKERS)
		add_rest(taker, all, count);
	qsort(taker, COLL_FLIGHT_TAKERS, sizeof(*taker), by_ns);
}
