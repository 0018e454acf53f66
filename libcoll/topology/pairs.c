// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Ranks in the order of their clusters, switches, nodes and domains: each class of links that there is has
 * neighbours in this order, at the borders of its parts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcoll/exec/failure.h"
#include "libcoll/exec/group.h"
#include "pairs.h"

enum { PARTS = 4 };

/* Where a rank is, the largest part first. */
struct rank_place {
	uint32_t part[PARTS];
	uint32_t rank;
};

static int by_place(const void *a, const void *b)
{
	const struct rank_place *x = a, *y = b;
	int i;

	for (i = 0; i < PARTS; i++)
		if (x->part[i] != y->part[i])
			return x->part[i] < y->part[i] ? -1 : 1;
	return x->rank < y->rank ? -1 : 1;
}

static enum coll_link_class class_of(const struct rank_place *a, const struct rank_place *b,
				     const struct coll_places *places)
{
	const enum coll_link_class across[PARTS] = {
		COLL_CLASS_WAN, COLL_CLASS_CLUSTER, places->leaf ? COLL_CLASS_SWITCH : COLL_CLASS_CLUSTER,
		COLL_CLASS_NODE
	};
	int i;

	for (i = 0; i < PARTS; i++)
		if (a->part[i] != b->part[i])
			return across[i];
	return places->below;
}

static void places_sort(const struct coll_places *places, uint32_t ranks,
			struct rank_place *place)
{
	uint32_t i;

	for (i = 0; i < ranks; i++)
		place[i] = (struct rank_place){
			.part = { places->cluster ? places->cluster[i] : 0,
				  places->leaf ? places->leaf[i] : 0,
				  places->node ? places->node[i] : 0,
				  places->domain ? places->domain[i] : 0 },
			.rank = i,
		};
	qsort(place, ranks, sizeof(*place), by_place);
}

/* Number `index` of the neighbours of this class. */
static struct coll_pair pair_of_neighbours(const struct rank_place *place,
					   const struct coll_places *places, enum coll_link_class class,
					   uint32_t index)
{
	uint32_t i = 0;

	while (class_of(&place[i], &place[i + 1], places) != class || index--)
		i++;
	return (struct coll_pair){ { place[i].rank, place[i + 1].rank }, class };
}

/* Ranks of which nothing is known: neighbours would often be of one node. */
static int pairs_of_halves(uint32_t ranks, struct coll_pair *pair)
{
	const uint32_t half = ranks / 2, some = half < PAIRS_MAX ? half : PAIRS_MAX;
	uint32_t i;

	for (i = 0; i < some; i++) {
		const uint32_t rank = (uint64_t)i * half / some;

		pair[i] = (struct coll_pair){ { rank, rank + half }, COLL_CLASS_CLUSTER };
	}
	return some;
}

int coll_pairs_choose(const struct coll_places *places, uint32_t ranks,
		      struct coll_pair pair[PAIRS_MAX * COLL_CLASSES])
{
	uint32_t found[COLL_CLASSES] = { 0 }, class, i;
	struct rank_place *place;
	int pairs = 0;

	if (places->below == COLL_CLASS_CLUSTER && !places->cluster)
		return pairs_of_halves(ranks, pair);
	place = malloc(ranks * sizeof(*place));
	if (!place)
		return -ENOMEM;
	places_sort(places, ranks, place);
	for (i = 0; i + 1 < ranks; i++)
		found[class_of(&place[i], &place[i + 1], places)]++;
	for (class = 0; class < COLL_CLASSES; class++) {
		const uint32_t some = found[class] < PAIRS_MAX ? found[class] : PAIRS_MAX;

		for (i = 0; i < some; i++)
			pair[pairs++] = pair_of_neighbours(place, places, class,
						   (uint64_t)i * found[class] / some);
	}
	free(place);
	return pairs;
}

static bool is_same_node(const struct rank_place *a, const struct rank_place *b)
{
	return !memcmp(a->part, b->part, (PARTS - 1) * sizeof(*a->part));	/* but the domain */
}

static bool is_same_domain(const struct rank_place *a, const struct rank_place *b)
{
	return a->part[PARTS - 1] == b->part[PARTS - 1];
}

static void partner_take(const struct rank_place *a, const struct rank_place *b, uint32_t rank, uint32_t index,
			 struct coll_partner *partner)
{
	partner->ranks += 2;
	if (a->rank != rank && b->rank != rank)
		return;
	partner->pair.rank[0] = a->rank;
	partner->pair.rank[1] = b->rank;
	partner->index = index;
}

/* Of a node's ranks, which follow each other from `first` on, and so do those of each of its domains. */
static void partners_of_node(const struct rank_place *place, uint32_t first, uint32_t size, uint32_t ranks,
			     uint32_t rank, struct coll_partner partner[PARTNERS])
{
	const uint32_t half = size / 2;
	uint32_t i;

	for (i = first; i + 1 < first + size; i++)
		if (is_same_domain(&place[i], &place[i + 1])) {
			partner_take(&place[i], &place[i + 1], rank, i, &partner[PARTNER_NEXT]);
			i++;
		}
	for (i = first; i < first + half; i++)
		if (!is_same_domain(&place[i], &place[i + half]))
			partner_take(&place[i], &place[i + half], rank, 2 * ranks + i, &partner[PARTNER_ACROSS]);
}

/* The part of a node's ranks that exchange; of all nodes the most, whose cores have most to do. */
static void partners_share(struct coll_partner *partner, uint32_t before, uint32_t size)
{
	const double share = (double)(partner->ranks - before) / size;

	if (share > partner->share)
		partner->share = share;
}

int coll_partners_choose(const struct coll_places *places, uint32_t ranks, uint32_t rank,
			 struct coll_partner partner[PARTNERS])
{
	struct rank_place *place = malloc(ranks * sizeof(*place));
	uint32_t largest = 0, first, end, next, across, i;

	if (!place)
		return -ENOMEM;
	for (i = 0; i < PARTNERS; i++)
		partner[i] = (struct coll_partner){ .pair = { .rank = { rank, rank } }, .index = COLL_NONE };
	places_sort(places, ranks, place);
	for (first = 0; first < ranks; first = end) {
		for (end = first + 1; end < ranks && is_same_node(&place[first], &place[end]);)
			end++;
		largest = end - first > largest ? end - first : largest;
		next = partner[PARTNER_NEXT].ranks;
		across = partner[PARTNER_ACROSS].ranks;
		partners_of_node(place, first, end - first, ranks, rank, partner);
		partners_share(&partner[PARTNER_NEXT], next, end - first);
		partners_share(&partner[PARTNER_ACROSS], across, end - first);
	}
	for (i = 0; i < ranks / 2; i++)
		partner_take(&place[i], &place[i + ranks / 2], rank, ranks + i, &partner[PARTNER_AWAY]);
	partners_share(&partner[PARTNER_AWAY], 0, ranks);
	partner[PARTNER_NEXT].node = partner[PARTNER_ACROSS].node = largest;
	partner[PARTNER_AWAY].node =
		place[0].part[0] == place[ranks - 1].part[0] && largest <= ranks / 2 ? largest : 0;
	free(place);
	return 0;
}

void coll_pair_end(struct coll_group *all, struct coll_group *group)
{
	char reason[sizeof(group->text) + 64];

	if (group->state != GROUP_OK && group->failed_rank < group->ranks) {
		snprintf(reason, sizeof(reason), "it failed while its links were measured: %s", group->text);
		coll_group_fail(all, group->error, group->world[group->failed_rank], COLL_NONE, reason);
	}
	coll_group_free(group);
}

int coll_pair_failed(struct coll_group *all, const struct coll_pair *pair, int error)
{
	const uint32_t other = pair ? pair->rank[all->rank == pair->rank[0]] : all->rank;

	if (error == -ETIMEDOUT && all->state == GROUP_OK)
		coll_group_fail(all, error, other, COLL_NONE, "it took too long while its links were measured");
	else if (error && all->state == GROUP_OK)
		coll_group_fail(all, error, all->rank, COLL_NONE, "it could not measure its links");
	return error;
}
