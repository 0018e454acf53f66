// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>

#include "counted_noise.h"
#include "late_links.h"
#include "late_ranks.h"
#include "lateness.h"

enum {
	IN_TIME_TIMES = 3,	/* who waits longer was not the last to come */
	LEAF_LEAST = 8,		/* times that a rank was waited for, in memory, before it is a leaf */
	LEAF_SHARE = 8,		/* ... of so many times that it was met */
	LEAF_AGAIN = 2,		/* a leaf may be seen half as often */
	LEAF_ABOVE = 2,		/* times as often as those that are none: else many ranks are late */
	LEAF_OF = 8,		/* ranks, one of which may be a leaf */
};

/* ---- ranks that are waited for ---------------------------------------------------- */

static double rank_weight(const struct coll_late_rank *one)
{
	return one->late + one->stops;
}

/* Its entry, or one that has faded. NULL: others were met more often. */
static struct coll_late_rank *late_rank(struct coll_lateness *late, uint32_t rank)
{
	struct coll_late_rank *least = late->rank_of, *one;

	for (one = late->rank_of; one < late->rank_of + COLL_LATE_RANKS; one++) {
		if (one->rank == rank && rank_weight(one) > 0)
			return one;
		if (rank_weight(one) < rank_weight(least))
			least = one;
	}
	if (rank_weight(least) >= 1)
		return NULL;
	*least = (struct coll_late_rank){ .rank = rank };
	return least;
}

/*
 * Its peer waited long for its message, which was under way no longer than usual, and it had
 * neither waited itself nor kept its answer back for others.
 */
static void came_late_add(struct coll_lateness *late, const struct coll_sample *sample,
			  double usual)
{
	int i;

	for (i = 0; i < 2; i++) {
		const double waited = sample->waited[i] * 1e-9, peer = sample->waited[!i] * 1e-9;
		struct coll_late_rank *one;

		if (sample->answered[i] || waited > IN_TIME_TIMES * usual ||
		    peer <= waited + LATE_TIMES * usual)
			continue;
		one = late_rank(late, sample->rank[i]);
		if (!one)
			continue;
		one->late++;
		one->behind += peer - fmax(waited, usual);
	}
}

/* What a rank that has an entry was seen in. */
static void rank_met(struct coll_lateness *late, const struct coll_sample *sample)
{
	struct coll_late_rank *one;
	int i;

	for (one = late->rank_of; one < late->rank_of + COLL_LATE_RANKS; one++)
		for (i = 0; i < 2; i++) {
			if (one->rank != sample->rank[i] || rank_weight(one) <= 0)
				continue;
			one->met++;
			one->waited += sample->waited[i] * 1e-9;
		}
}

void coll_late_ranks_stop(struct coll_lateness *late, uint32_t rank, double seconds)
{
	struct coll_late_rank *one = late_rank(late, rank);

	if (!one)
		return;
	one->stops++;
	one->stopped += seconds;
}

void coll_late_ranks_add(struct coll_lateness *late, const struct coll_sample *sample, double usual,
			 bool in_time)
{
	if (in_time)
		came_late_add(late, sample, usual);
	rank_met(late, sample);
}

void coll_late_ranks_fade(struct coll_lateness *late, double keep)
{
	struct coll_late_rank *one;

	for (one = late->rank_of; one < late->rank_of + COLL_LATE_RANKS; one++) {
		one->late *= keep;
		one->behind *= keep;
		one->stops *= keep;
		one->stopped *= keep;
		one->met *= keep;
		one->waited *= keep;
	}
}

/* ---- leaves ---------------------------------------------------------------------- */

static bool is_leaf(const struct coll_lateness *late, uint32_t rank)
{
	uint32_t i;

	for (i = 0; late->leaves.ranks && i < COLL_LATE_MAX; i++)
		if (late->leaves.rank[i] == rank)
			return true;
	return false;
}

/* How often it came late, or had no core. */
static double leaf_weight(const struct coll_late_rank *one, bool stops)
{
	return stops ? one->stops : one->late;
}

/* Often enough; one that is a leaf already, half of that. */
static bool makes_leaf(const struct coll_lateness *late, const struct coll_late_rank *one, bool stops)
{
	const double times = (is_leaf(late, one->rank) ? LEAF_AGAIN : 1) * leaf_weight(one, stops);

	return times >= LEAF_LEAST && times * LEAF_SHARE >= one->met;
}

/* The late ranks of this group, the most frequent first. Returns how many. */
static uint32_t late_in_order(const struct coll_lateness *late, uint32_t ranks, bool stops,
			      const struct coll_late_rank *order[COLL_LATE_RANKS])
{
	const struct coll_late_rank *one;
	uint32_t count = 0, at;

	for (one = late->rank_of; one < late->rank_of + COLL_LATE_RANKS; one++) {
		if (one->rank >= ranks || leaf_weight(one, stops) <= 0)
			continue;
		for (at = count++; at && leaf_weight(order[at - 1], stops) < leaf_weight(one, stops); at--)
			order[at] = order[at - 1];
		order[at] = one;
	}
	return count;
}

/* The first of them that are leaves: few, and apart from the others. */
static uint32_t leaves_count(const struct coll_lateness *late, uint32_t ranks, bool stops,
			     const struct coll_late_rank *const *order, uint32_t known)
{
	const uint32_t most = ranks < LEAF_OF ? 1 : ranks / LEAF_OF;
	uint32_t count = 0, i;

	for (i = 0; i < known && i < most && makes_leaf(late, order[i], stops); i++) {
		const double next = i + 1 < known ? leaf_weight(order[i + 1], stops) : 0;

		if (leaf_weight(order[i], stops) >= LEAF_ABOVE * next)
			count = i + 1;
	}
	return ranks > 2 ? count : 0;
}

static void leaves_add(struct coll_late *leaves, uint32_t at, uint32_t rank)
{
	for (; at && leaves->rank[at - 1] > rank; at--)
		leaves->rank[at] = leaves->rank[at - 1];
	leaves->rank[at] = rank;
}

/* Makes this rank the first, if it is there. Returns whether it is. */
static bool first_is(uint32_t rank, const struct coll_late_rank **order, uint32_t known)
{
	uint32_t i;

	for (i = 0; i < known && order[i]->rank != rank; i++)
		;
	if (i < known)
		order[0] = order[i];
	return i < known;
}

/* The rank with bad links, if it is one of them and the only one. */
static void leaves_links(struct coll_late *leaves, const struct coll_lateness *late,
			 const struct coll_late_link *bad)
{
	leaves->peer = COLL_NONE;
	if (!bad || leaves->rank[0] != bad->rank || leaves->rank[1] != COLL_NONE)
		return;
	leaves->links = (struct coll_noise_rate){ coll_counted_round(bad->noise.rate),
						  coll_counted_round(bad->noise.duration) };
	leaves->links_alone = true;
	if (late->links.one_link)
		leaves->peer = bad->peer;
}

/*
 * The late ranks in memory, in order, with their means: those that come late to their calls, else those
 * that stop, else the one whose links are bad. Where ranks share cores, stops are the job's own.
 */
static struct coll_late leaves_found(const struct coll_lateness *late, uint32_t ranks, bool stops,
				     double all_stops)
{
	const struct coll_late_rank *order[COLL_LATE_RANKS];
	uint32_t known = late_in_order(late, ranks, false, order);
	uint32_t count = leaves_count(late, ranks, false, order, known), i;
	const struct coll_late_link *bad = coll_late_links_bad(&late->links);
	struct coll_late leaves = { .ranks = 0 };
	struct coll_late_rank sum = { .rank = 0 };

	if (!count && stops) {
		known = late_in_order(late, ranks, true, order);
		count = leaves_count(late, ranks, true, order, known);
	}
	if (!count && bad) {
		known = late_in_order(late, ranks, false, order);
		count = first_is(bad->rank, order, known);
	}
	if (!count && !bad)
		return leaves;
	leaves.ranks = ranks;
	for (i = 0; i < COLL_LATE_MAX; i++)
		leaves.rank[i] = COLL_NONE;
	for (i = 0; i < count; i++) {
		leaves_add(&leaves, i, order[i]->rank);
		sum.late += order[i]->late;
		sum.behind += order[i]->behind;
		sum.stops += order[i]->stops;
		sum.stopped += order[i]->stopped;
		sum.met += order[i]->met;
		sum.waited += order[i]->waited;
	}
	if (!count)
		leaves.rank[0] = bad->rank;
	leaves_links(&leaves, late, bad);
	leaves.part = sum.met > 0 ? coll_counted_round(fmin(sum.late / sum.met, 1)) : 0;
	leaves.behind = sum.late > 0 ? coll_counted_round(fmin(sum.behind / sum.late, COUNTED_SECONDS_MOST)) : 0;
	if (stops && sum.stops > 0 && sum.waited > 0)
		leaves.stops = coll_counted_noise(coll_counted_round(sum.stops / sum.waited),
					    coll_counted_round(sum.stopped / sum.stops));
	leaves.alone = sum.stops > 0 &&
		       sum.stops * LEAF_SHARE >= all_stops * (LEAF_SHARE - 1);
	return leaves;
}

static bool same_leaves(const struct coll_late *one, const struct coll_late *other)
{
	bool same = one->ranks == other->ranks && one->alone == other->alone &&
		    one->links_alone == other->links_alone && one->peer == other->peer;
	uint32_t i;

	for (i = 0; same && one->ranks && i < COLL_LATE_MAX; i++)
		same = one->rank[i] == other->rank[i];
	return same;
}

/* So few events, and numbers that change by half each time they are looked at: not to follow. */
static bool leaves_differ(const struct coll_late *counts, const struct coll_late *found)
{
	const double cost = counts->part * counts->behind, now = found->part * found->behind;

	return !same_leaves(counts, found) || coll_counted_changed(cost, now, LEAF_LEAST) ||
	       coll_counted_changed(counts->stops.rate, found->stops.rate, LEAF_LEAST) ||
	       coll_counted_changed(counts->links.rate, found->links.rate, LEAF_LEAST);
}

bool coll_late_ranks_follow(struct coll_lateness *late, const struct coll_samples_found *found,
			    double all_stops)
{
	const struct coll_late leaves = leaves_found(late, found->shared ? 0 : found->ranks,
						     found->own_cores && found->held, all_stops);

	late->leaves_age += found->seconds > 0 ? found->seconds : LATE_MEMORY_SECONDS;
	if (!leaves_differ(&late->leaves, &leaves) ||
	    (late->leaves.ranks && late->leaves_age < LATE_MEMORY_SECONDS))
		return false;
	late->leaves = leaves;
	late->leaves_age = 0;
	return true;
}
