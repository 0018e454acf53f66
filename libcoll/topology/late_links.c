// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>

#include "counted_noise.h"
#include "late_links.h"
#include "lateness.h"

enum {
	LINKS_LEAST = 12,	/* late exchanges, its own, and those that others would have by its share */
	LINKS_ALONE = 8,	/* times as many as those of other ranks */
	LINKS_STAY = 2,		/* while it counts, so many times as many */
	ONE_PEER_PARTS = 4,	/* of four parts of them three with one peer: it is one link */
};

static struct coll_late_link *entry_of(struct coll_late_links *links, uint32_t rank)
{
	struct coll_late_link *one;

	for (one = links->of; one < links->of + COLL_LATE_RANKS; one++)
		if (one->rank == rank && one->late > 0)
			return one;
	return NULL;
}

static bool is_bad(const struct coll_late_links *links, const struct coll_late_link *one)
{
	return links->counts && one == &links->of[links->bad];
}

/* Of one link only exchanges over it tell. */
static bool is_elsewhere(const struct coll_late_links *links, const struct coll_late_link *one, uint32_t peer)
{
	return is_bad(links, one) && links->one_link && one->peer != peer;
}

/* Its entry, or one that has faded. NULL: others were late more often. */
static struct coll_late_link *entry_make(struct coll_late_links *links, uint32_t rank)
{
	struct coll_late_link *least = NULL, *one = entry_of(links, rank);

	if (one)
		return one;
	for (one = links->of; one < links->of + COLL_LATE_RANKS; one++)
		if (!is_bad(links, one) && (!least || one->late < least->late))
			least = one;
	if (least->late >= 1)
		return NULL;
	*least = (struct coll_late_link){ .rank = rank };
	return least;
}

/* The peer of most late ones, if any has more than half (Boyer and Moore). */
static void peer_add(struct coll_late_link *one, uint32_t peer)
{
	if (one->majority < 1) {
		if (one->peer != peer)
			one->met_peer = one->usual_peer = 0;
		one->peer = peer;
		one->majority = 0;
	}
	one->majority += one->peer == peer ? 1 : -1;
}

static void late_exchange(struct coll_late_links *links, uint32_t rank, uint32_t peer, double excess)
{
	struct coll_late_link *one = entry_make(links, rank);

	if (!one || is_elsewhere(links, one, peer))
		return;
	one->late++;
	one->excess += excess;
	if (!is_bad(links, one))
		peer_add(one, peer);
}

static void met_exchange(struct coll_late_links *links, uint32_t rank, uint32_t peer, double usual,
			 bool event)
{
	struct coll_late_link *one = entry_of(links, rank);

	if (!one || is_elsewhere(links, one, peer))
		return;
	one->met++;
	one->usual += usual;
	if (one->peer == peer) {
		one->met_peer++;
		one->usual_peer += usual;
	}
	if (is_bad(links, one))
		links->unseen = 0;
	coll_counted_look(&one->quiet, event, one->late, one->met);
}

void coll_late_links_add(struct coll_late_links *links, const struct coll_sample *sample, double usual,
			 double excess)
{
	int i;

	links->exchanges++;
	links->late += excess > 0;
	for (i = 0; i < 2; i++) {
		if (excess > 0)
			late_exchange(links, sample->rank[i], sample->rank[!i], excess);
		met_exchange(links, sample->rank[i], sample->rank[!i], usual, excess > 0);
	}
}

void coll_late_links_fade(struct coll_late_links *links, double keep)
{
	struct coll_late_link *one;

	links->exchanges *= keep;
	links->late *= keep;
	for (one = links->of; one < links->of + COLL_LATE_RANKS; one++) {
		one->met *= keep;
		one->usual *= keep;
		one->met_peer *= keep;
		one->usual_peer *= keep;
		one->late *= keep;
		one->excess *= keep;
		one->majority *= keep;
	}
}

/* ---- the one that counts -------------------------------------------------------- */

static double others_late(const struct coll_late_links *links, const struct coll_late_link *one)
{
	return fmax(links->late - one->late, 0);
}

static bool is_alone(const struct coll_late_links *links, const struct coll_late_link *one)
{
	const double others = links->exchanges - one->met;

	return one->late >= LINKS_LEAST && one->met > 0 && !coll_counted_ended(&one->quiet) &&
	       one->late * others >= LINKS_LEAST * one->met &&
	       others_late(links, one) * LINKS_ALONE <= one->late;
}

/* The most often; of two that were late together the lower one. */
static struct coll_late_link *worst_of(struct coll_late_links *links, uint32_t ranks)
{
	struct coll_late_link *worst = NULL, *one;

	for (one = links->of; one < links->of + COLL_LATE_RANKS; one++) {
		if (one->rank >= ranks || one->late <= 0)
			continue;
		if (!worst || one->late > worst->late ||
		    (!(one->late < worst->late) && one->rank < worst->rank))
			worst = one;
	}
	return worst;
}

static void links_begin(struct coll_late_links *links, uint32_t ranks)
{
	struct coll_late_link *worst = ranks > 2 ? worst_of(links, ranks) : NULL;

	if (!worst || !is_alone(links, worst))
		return;
	links->counts = true;
	links->bad = worst - links->of;
	links->one_link = worst->majority * ONE_PEER_PARTS >= worst->late * (ONE_PEER_PARTS - 1);
	links->age = links->unseen = 0;
	if (links->one_link && worst->met_peer > 0) {
		worst->met = worst->met_peer;
		worst->usual = worst->usual_peer;
	}
}

/* Noise of its messages, while enough of them are in memory. */
static void bad_noise(struct coll_late_link *bad)
{
	if (bad->late >= 1)
		bad->noise = coll_counted_link_noise(bad->late, bad->met, bad->usual, bad->excess);
}

static bool bad_ends(const struct coll_late_links *links, uint32_t ranks)
{
	const struct coll_late_link *bad = &links->of[links->bad];

	return bad->rank >= ranks || coll_counted_ended(&bad->quiet) ||
	       links->unseen >= LINK_UNSEEN_SECONDS ||
	       (others_late(links, bad) >= LINKS_LEAST &&
		others_late(links, bad) * LINKS_STAY > bad->late);
}

void coll_late_links_follow(struct coll_late_links *links, uint32_t ranks, double seconds)
{
	links->ended = false;
	links->age += seconds;
	links->unseen += seconds;
	if (!links->counts) {
		links_begin(links, ranks);
	} else if (links->age >= LATE_MEMORY_SECONDS && bad_ends(links, ranks)) {
		links->ended = coll_counted_ended(&links->of[links->bad].quiet);
		links->counts = false;
		links->of[links->bad] = (struct coll_late_link){ .rank = 0 };
	}
	if (links->counts)
		bad_noise(&links->of[links->bad]);
}

const struct coll_late_link *coll_late_links_bad(const struct coll_late_links *links)
{
	return links->counts ? &links->of[links->bad] : NULL;
}
