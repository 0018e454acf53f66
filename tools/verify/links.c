// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Links between clusters. A link is two ranks of different clusters, in either direction. It is in
 * use from the start of a send to the end of its receive. A message without bytes is a signal and
 * does not count.
 *
 * A link is *before* another if all its data has arrived, in every run, when the first send of the
 * other starts. Links that are in use at once are pairwise not before each other, so their number
 * is at most that of the largest such set.
 */
#include <string.h>

#include "algo/tuning.h"
#include "verify.h"

u32 links_bound(const struct world *w)
{
	u32 size[CLUSTERS_MAX] = { 0 }, least = w->ranks, i;

	/* Without the option, one rank sends to other clusters. */
	if (!coll_algo_has_option(w->vcase->algo, "n"))
		return 1;
	for (i = 0; i < w->ranks; i++)
		size[w->cluster[i]]++;
	for (i = 0; i < w->clusters; i++)
		least = size[i] < least ? size[i] : least;
	return w->vcase->tuning.lanes < least ? w->vcase->tuning.lanes : least;
}

static bool links_limited(const struct world *w)
{
	return w->vcase->algo->clusters || w->vcase->algo->levels;
}

static bool links_counts(const struct world *w, u32 one, u32 other, u64 bytes)
{
	return bytes && w->cluster && links_limited(w) &&
	       w->cluster[one] != w->cluster[other];
}

/* ---- in a run ----------------------------------------------------------- */

void links_reset(struct world *w)
{
	u32 i;

	memset(w->links, 0, sizeof(w->links));
	for (i = 0; i < w->ranks && w->cluster; i++)
		memset(w->rank[i].coming, 0, w->ranks * sizeof(u32));
}

static u32 *links_between(struct world *w, u32 one, u32 other)
{
	u32 a = w->cluster[one], b = w->cluster[other];

	return a < b ? &w->links[a][b] : &w->links[b][a];
}

static bool in_use(const struct world *w, u32 one, u32 other)
{
	return w->rank[one].coming[other] || w->rank[other].coming[one];
}

void links_begin(struct world *w, u32 from, u32 to, u64 bytes)
{
	u32 *links;

	if (!links_counts(w, from, to, bytes))
		return;
	links = links_between(w, from, to);
	*links += !in_use(w, from, to);
	w->rank[to].coming[from]++;
	if (*links > w->most_links)
		w->most_links = *links;
	if (*links > links_bound(w))
		world_fail(w, from, COLL_NONE,
			   "it sends to rank %u: %u links between clusters %u and %u in use "
			   "at once; n is %u", to, *links, w->cluster[from], w->cluster[to],
			   links_bound(w));
}

void links_end(struct world *w, u32 from, u32 to, u64 bytes)
{
	if (!links_counts(w, from, to, bytes))
		return;
	w->rank[to].coming[from]--;
	*links_between(w, from, to) -= !in_use(w, from, to);
}

/* ---- proved for all runs -------------------------------------------------- */

/* A message between the two current clusters, and the index of its link. */
struct crossing {
	u32 from, send, to, recv;
	u32 link;
};

struct links {
	struct crossing *crossing;
	u32 crossings, count;
	u32 *number;		/* per pair of ranks: index of the link, + 1 */
	bool *before;		/* per pair of links */
};

static u32 link_number(struct world *w, struct links *l, u32 one, u32 other)
{
	u32 *number = &l->number[one < other ? one * w->ranks + other : other * w->ranks + one];

	if (!*number)
		*number = ++l->count;
	return *number - 1;
}

static void find_crossings(struct world *w, struct links *l, u32 a, u32 b)
{
	struct world_send send = { .op = COLL_NONE };

	while (world_next_send(w, &send)) {
		const u32 here = w->cluster[send.rank], there = w->cluster[send.to];

		if (!send.bytes || ((here != a || there != b) && (here != b || there != a)))
			continue;
		l->crossing[l->crossings++] = (struct crossing){
			send.rank, send.op, send.to, w->rank[send.rank].counterpart[send.op],
			link_number(w, l, send.rank, send.to)
		};
	}
}

/* A link is before another unless one of its messages is not. */
static void find_order(struct world *w, struct links *l, struct world_order *order)
{
	u32 i, k;

	memset(l->before, true, (size_t)l->count * l->count);
	for (k = 0; k < l->crossings; k++)
		for (i = 0; i < l->crossings; i++) {
			const struct crossing *one = &l->crossing[i], *other = &l->crossing[k];
			bool *before = &l->before[(size_t)one->link * l->count + other->link];

			if (*before && !order_is_sure(w, order, one->to, one->recv, other->from,
						      other->send))
				*before = false;
		}
}

static u32 links_at_once(struct world *w, struct links *l, struct world_order *order)
{
	l->before = arena_get(&w->arena, (size_t)l->count * l->count, sizeof(bool));
	find_order(w, l, order);
	return order_at_once(w, l->before, l->count);
}

static u32 most_messages(const struct world *w)
{
	u32 messages = 0, rank;

	for (rank = 0; rank < w->ranks; rank++)
		messages += w->rank[rank].schedule->ops;
	return messages;
}

static void match_pair_of_clusters(struct world *w, struct world_order *order, u32 a, u32 b)
{
	const u32 bound = links_bound(w);
	struct links l = {
		.crossing = arena_get(&w->arena, most_messages(w), sizeof(struct crossing)),
		.number = arena_get_zero(&w->arena, (size_t)w->ranks * w->ranks, sizeof(u32)),
	};
	u32 most;

	find_crossings(w, &l, a, b);
	if (l.count <= bound || !order_fits(order))
		return;
	most = links_at_once(w, &l, order);
	if (most > bound)
		world_fail(
			w, COLL_NONE, COLL_NONE,
			"up to %u links between clusters %u and %u can be in use at once; n is %u",
			most, a, b, bound);
}

void match_links(struct world *w, struct world_order *order)
{
	u32 a, b;

	if (!w->cluster || !links_limited(w))
		return;
	for (a = 0; a < w->clusters; a++)
		for (b = a + 1; b < w->clusters; b++)
			match_pair_of_clusters(w, order, a, b);
}
