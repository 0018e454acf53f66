// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The cases: rank counts x algorithms x roots x counts x shapes x options x in place or not x
 * commutative or not.
 */
#include <string.h>

#include "algo/common/ranks.h"
#include "algo/tuning.h"
#include "verify.h"

enum {
	RANKS_MAX = 64,			/* every rank count up to here ... */
	QUICK_RANKS_MAX = 9,
	FEW_RANKS = 16,			/* more random runs up to here */
	OPTION_VALUES = 32,
	CLUSTERED_RANKS = 24,		/* every split into two clusters and every n, up to here */
	QUICK_CLUSTERED_RANKS = 9,
	CIRCUIT_RANKS = 24,		/* with circuits, up to here */
	QUICK_CIRCUIT_RANKS = 9,
	LENGTHY_RANKS = 12,		/* with long vectors, up to here ... */
	LENGTHY_COUNT = 3 * 8192 + 5,	/* ... of so many elements, in 1 or 2 segments */
};

/* ... and these. */
static const u32 more_ranks[] = { 96, 100, 127, 128, 129, 255, 256, 257 };
static const u32 quick_more_ranks[] = { 13, 16, 17, 24, 32, 33, 64, 100 };

struct list {
	struct verify_case *item;
	u32 count, capacity;
	bool quick;
};

static void list_add(struct list *list, const struct verify_case *c)
{
	if (list->count == list->capacity) {
		list->capacity = list->capacity ? 2 * list->capacity : 1024;
		list->item = memory_grow(list->item, list->capacity, sizeof(*c));
	}
	list->item[list->count++] = *c;
}

static bool is_rooted(enum coll_collective collective)
{
	return collective == COLL_BCAST || collective == COLL_GATHER ||
	       collective == COLL_GATHERV || collective == COLL_SCATTER ||
	       collective == COLL_SCATTERV || collective == COLL_REDUCE;
}

static bool is_v(enum coll_collective collective)
{
	return collective == COLL_GATHERV || collective == COLL_SCATTERV ||
	       collective == COLL_ALLGATHERV || collective == COLL_ALLTOALLV ||
	       collective == COLL_REDUCE_SCATTER;
}

/* The count is that of one block; each rank has one. */
static bool is_blocks(enum coll_collective collective)
{
	return is_v(collective) || collective == COLL_GATHER || collective == COLL_SCATTER ||
	       collective == COLL_ALLGATHER || collective == COLL_ALLTOALL ||
	       collective == COLL_REDUCE_SCATTER_BLOCK;
}

static bool has_in_place(enum coll_collective collective)
{
	return collective != COLL_BARRIER && collective != COLL_BCAST;
}

static bool list_reduces(enum coll_collective collective)
{
	return collective >= COLL_REDUCE;
}

/* ---- values of each dimension ---------------------------------------- */

static u32 root_values(const struct verify_case *c, u32 *values)
{
	const u32 p = c->ranks;
	u32 n = 0;

	values[n++] = 0;
	if (!is_rooted(c->algo->collective))
		return n;
	if (p > 1)
		values[n++] = p - 1;
	if (p > 2)
		values[n++] = p / 2;
	return n;
}

static u32 count_values(const struct list *list, const struct verify_case *c, u64 *values)
{
	const u32 p = c->ranks;
	u32 n = 0;

	if (c->algo->collective == COLL_BARRIER) {
		values[n++] = 0;
		return n;
	}
	if (is_blocks(c->algo->collective)) {
		values[n++] = p > RANKS_MAX ? 2 : 3;
		if (list->quick && p > QUICK_RANKS_MAX)
			return n;
		values[n++] = 0;
		values[n++] = 1;
		return n;
	}
	values[n++] = p > RANKS_MAX ? p + 3 : 2 * p + 1;	/* odd for most */
	if (list->quick && p > QUICK_RANKS_MAX)
		return n;
	values[n++] = 0;
	values[n++] = 1;
	if (p > 2)
		values[n++] = p - 1;
	values[n++] = p > RANKS_MAX ? p : 3 * p;
	return n;
}

/* The maximum of what is cut into segments. */
static u64 vector_bytes(const struct verify_case *c)
{
	return c->count * ELEMENT * (is_blocks(c->algo->collective) ? c->ranks : 1);
}

/* The algorithm's default, and each option at its limits. */
static u32 tuning_values(const struct list *list, const struct verify_case *c,
			 struct coll_tuning *values)
{
	/* One element and more, no integral number of elements, and all. */
	static const u64 segments[] = { 3 * ELEMENT, 20, ELEMENT, 1 << 16 };
	const bool few = list->quick || c->ranks > RANKS_MAX;
	u32 n = 0, i;

	if (!coll_algo_has_option(c->algo, "bound"))
		values[n++] = COLL_TUNING_UNSET;
	if (coll_algo_has_option(c->algo, "T"))
		for (i = 0; i <= log2_floor(c->ranks); i++) {
			values[n] = COLL_TUNING_UNSET;
			values[n++].redundancy = i;
		}
	if (coll_algo_has_option(c->algo, "relays"))
		for (i = 0; i < log2_floor(c->ranks); i++) {
			values[n] = COLL_TUNING_UNSET;
			values[n].redundancy = 1 + i % 2;
			values[n++].relays = i;
		}
	if (coll_algo_has_option(c->algo, "segment"))
		for (i = 0; i < (few ? 2 : 4); i++) {
			/* Many tiny segments repeat the same pattern: few ranks suffice. */
			if (c->ranks > 16 && vector_bytes(c) > 16 * segments[i])
				continue;
			values[n] = COLL_TUNING_UNSET;
			values[n++].segment = segments[i];
		}
	if (coll_algo_has_option(c->algo, "bound"))
		for (i = 0; i < 3; i++) {	/* all of a block, and less */
			values[n] = COLL_TUNING_UNSET;
			values[n++].bound = (c->count + 1) >> i;
		}
	if (coll_algo_has_option(c->algo, "radix"))
		/*
		 * Few neighbours in a Cayley graph: a ring, with p^2 / 4 blocks in flight at each
		 * rank.
		 */
		for (i = c->ranks > RANKS_MAX ? 4 : 2; i <= 5; i++) {
			values[n] = COLL_TUNING_UNSET;
			values[n++].radix = i;
		}
	if (coll_algo_has_option(c->algo, "replicas"))
		for (i = 1; i <= 7; i++) {
			values[n] = COLL_TUNING_UNSET;
			values[n++].replicas = i;
		}
	return n;
}

/* ---- combinations ---------------------------------------------------- */

/* A case whose call is refused is skipped. Any rank may refuse; the flags are the same for all. */
static void add_if_fit(struct list *list, const struct verify_case *c)
{
	const struct coll_algo *algo = c->algo;

	if (!algo->ordered && !c->commutative)
		return;
	if (algo->power_of_two && c->ranks & (c->ranks - 1))
		return;
	if (algo->needs_counts && c->root_counts)
		return;
	list_add(list, c);
}

static void add_places(struct list *list, struct verify_case c)
{
	const enum coll_collective collective = c.algo->collective;
	const bool commutes = !c.algo->ordered || !list_reduces(collective);
	u32 place, commutative, root_counts;
	const bool hides = collective == COLL_GATHERV || collective == COLL_SCATTERV;

	for (place = 0; place <= has_in_place(collective); place++)
		for (commutative = commutes; commutative <= 1; commutative++)
			for (root_counts = 0; root_counts <= hides; root_counts++) {
				c.in_place = place;
				c.commutative = commutative;
				c.root_counts = root_counts;
				add_if_fit(list, &c);
			}
}

static void add_shapes(struct list *list, struct verify_case c)
{
	u32 shape, last = is_v(c.algo->collective) && c.count > 1 ? SHAPES : 1;

	for (shape = 0; shape < last; shape++) {
		c.shape = shape;
		add_places(list, c);
	}
}

/* The redundant and the relayed butterfly with frozen ranks: j = T, and j below T. */
static void add_rescues(struct list *list, struct verify_case c)
{
	const u32 exchanges = log2_floor(c.ranks);
	u32 t, j;

	c.count = 1;
	c.runs = 0;
	c.commutative = false;
	for (t = 1; t <= exchanges; t++)
		for (j = 1; j <= t; j++) {
			c.tuning = COLL_TUNING_UNSET;
			c.tuning.redundancy = t;
			c.frozen_exchanges = j;
			if ((list->quick || c.ranks > RANKS_MAX) && j != t && t != exchanges)
				continue;
			list_add(list, &c);
		}
}

/* ---- late ranks ---------------------------------------------------------- */

/* How further late ranks lie from the first, modulo the ranks: none; near, far, and many. */
static const u32 late_sets[][COLL_LATE_MAX - 1] = {
	{ 0, 0, 0 }, { 1, 0, 0 }, { 2, 3, 0 }, { 1, 2, 3 }, { 7, 12, 0 }, { 5, 1, 16 },
};

static void late_set(struct coll_tuning *tuning, u32 ranks, u32 first, const u32 *further)
{
	u32 i;

	*tuning = COLL_TUNING_UNSET;
	tuning->late[0] = first;
	for (i = 0; i + 1 < COLL_LATE_MAX && further[i]; i++)
		tuning->late[i + 1] = (first + further[i]) % ranks;
}

/* How many differ. */
static u32 late_count(const struct coll_tuning *tuning)
{
	u32 count = 0, i, j;

	for (i = 0; i < COLL_LATE_MAX && tuning->late[i] != COLL_NONE; i++) {
		for (j = 0; j < i && tuning->late[j] != tuning->late[i]; j++)
			;
		count += j == i;
	}
	return count;
}

/*
 * Each rank late, or every eighth: in place or not, in order or not, undisturbed and frozen once its sends have
 * begun. Further late ranks, counts and radices alternate; all sets of some at few ranks.
 */
static void add_late(struct list *list, struct verify_case c)
{
	const u32 sets = sizeof(late_sets) / sizeof(late_sets[0]);
	const bool some = c.ranks > (list->quick ? FEW_RANKS : RANKS_MAX);
	const u32 step = some ? c.ranks / 8 : 1;
	const bool all = c.ranks <= FEW_RANKS && !list->quick;
	u64 counts[5];
	u32 rank, set, turn;

	c.runs = list->quick ? 1 : 2;
	for (rank = 0; rank < c.ranks; rank += step)
		for (set = 0; set < sets; set++) {
			turn = rank + set;
			if (set && !all && set != 1 + rank % (sets - 1))
				continue;
			late_set(&c.tuning, c.ranks, rank, late_sets[set]);
			/* If all are late none is. */
			c.frozen_exchanges = late_count(&c.tuning) < c.ranks;
			if (turn % 3 && coll_algo_has_option(c.algo, "radix"))
				c.tuning.radix = turn % 3 == 1 ? 2 : c.ranks + 2;
			c.count = counts[turn % count_values(&(struct list){ .quick = true }, &c, counts)];
			add_places(list, c);
		}
}

/*
 * Replicas with frozen ranks: each shape of nodes with each number of replicas, in order of ranks, so that
 * it is seen that all have combined the same.
 */
static void add_spares(struct list *list, const struct coll_algo *algo, u32 ranks)
{
	const u32 seeds = list->quick || ranks > CLUSTERED_RANKS ? 1 : 4;
	struct verify_case c = { .algo = algo, .ranks = ranks, .count = 1, .frozen_exchanges = 1 };
	struct coll_tuning tunings[OPTION_VALUES];
	const u32 n = tuning_values(list, &c, tunings);
	u32 seed, tuning, commutative;

	for (seed = 0; seed < seeds; seed++)
		for (c.nodes = 0; c.nodes < NODES_SHAPES; c.nodes++)
			for (tuning = 0; tuning < n; tuning++)
				for (commutative = 0; commutative <= 1; commutative++) {
					c.topology = 1 + seed + 1000 * (u64)ranks;
					c.tuning = tunings[tuning];
					c.kinds = seed % 2 << COLL_LEVEL_DOMAIN;
					c.commutative = commutative;
					c.in_place = (seed + tuning) % 2;
					add_if_fit(list, &c);
				}
}

static void add_algo(struct list *list, const struct coll_algo *algo, u32 ranks)
{
	struct verify_case c = { .algo = algo, .ranks = ranks };
	struct coll_tuning tunings[OPTION_VALUES];
	u32 roots[3], root, count, tuning, n;
	u64 counts[5];

	c.runs = list->quick ? 1 : ranks <= FEW_RANKS ? 4 : 2;
	for (root = 0; root < root_values(&c, roots); root++)
		for (count = 0; count < count_values(list, &c, counts); count++) {
			c.root = roots[root];
			c.count = counts[count];
			n = tuning_values(list, &c, tunings);
			for (tuning = 0; tuning < n; tuning++) {
				c.tuning = tunings[tuning];
				add_shapes(list, c);
			}
		}
	if (coll_algo_has_option(algo, "T"))
		add_rescues(list, c);
	if (coll_algo_has_option(algo, "late"))
		add_late(list, c);
}

/* ---- clusters ----------------------------------------------------------- */

/*
 * A layout of clusters with each possible n. Roots, counts, shapes and tunings alternate instead
 * of multiplying; `turn` selects them.
 */
static void add_layout(struct list *list, struct verify_case c, u32 *turn)
{
	struct coll_tuning tunings[OPTION_VALUES];
	u32 roots[3], least = c.ranks, n, i;
	u64 counts[5];

	for (i = 0; i < CLUSTERS_MAX && c.cluster[i]; i++)
		least = c.cluster[i] < least ? c.cluster[i] : least;
	if (!coll_algo_has_option(c.algo, "n"))
		least = 1;
	for (n = 1; n <= least; n++, ++*turn) {
		const struct list quick = { .quick = list->quick };

		c.root = roots[*turn % root_values(&c, roots)];
		c.count = counts[*turn / 3 % count_values(&quick, &c, counts)];
		c.tuning = tunings[*turn / 2 % tuning_values(&quick, &c, tunings)];
		c.tuning.lanes = n;
		c.dealt = *turn % 5 == 4;
		add_shapes(list, c);
	}
}

static void add_clusters(struct list *list, const struct coll_algo *algo, u32 ranks)
{
	struct verify_case c = { .algo = algo, .ranks = ranks, .runs = 1 };
	u32 turn = ranks, a, b;

	for (a = 1; a < ranks; a++) {
		c.cluster[0] = a;
		c.cluster[1] = ranks - a;
		add_layout(list, c, &turn);
	}
	for (a = 1; a + 1 < ranks; a += 1 + ranks / 6)
		for (b = 1; a + b < ranks; b += 1 + ranks / 4) {
			c.cluster[0] = a;
			c.cluster[1] = b;
			c.cluster[2] = ranks - a - b;
			add_layout(list, c, &turn);
		}
	if (ranks >= 9) {
		c.cluster[0] = c.cluster[1] = c.cluster[2] = 2;
		c.cluster[3] = ranks - 6;
		add_layout(list, c, &turn);
	}
}

/* ---- levels ------------------------------------------------------------- */

/* Long enough for the algorithms that have the fewest bytes, at few ranks. */
static bool is_lengthy(const struct verify_case *c, u32 turn)
{
	return c->ranks <= LENGTHY_RANKS && turn % 3 == 0 && !is_blocks(c->algo->collective) &&
	       c->algo->collective != COLL_BARRIER;
}

/* The usual algorithm between nodes, and each other one that the collective has, in turn. */
static u64 across_value(const struct coll_algo *algo, u32 turn)
{
	u64 named[COLL_ACROSS + 1], i;
	u32 count = 0;

	named[count++] = COLL_UNSET;
	if (coll_algo_has_option(algo, "across"))
		for (i = 0; i < COLL_ACROSS; i++)
			if (coll_algo_find(algo->collective, coll_across_names[i]))
				named[count++] = i;
	return named[turn % count];
}

/* Each shape of nodes, with sizes at random; roots, counts, shapes, tunings and n alternate. */
static void add_topologies(struct list *list, const struct coll_algo *algo, u32 ranks)
{
	static const u32 kinds[] = { 0, 1 << COLL_LEVEL_DOMAIN, 1 << COLL_LEVEL_CLUSTER,
				     1 << COLL_LEVEL_DOMAIN | 1 << COLL_LEVEL_CLUSTER };
	const u32 topologies = list->quick || ranks > CLUSTERED_RANKS ? NODES_SHAPES :
									4 * NODES_SHAPES;
	const struct list quick = { .quick = list->quick };
	struct coll_tuning tunings[OPTION_VALUES];
	u32 roots[3], turn;
	u64 counts[5];

	for (turn = 0; turn < topologies; turn++) {
		struct verify_case c = { .algo = algo, .ranks = ranks, .runs = 2 };

		c.topology = 1 + turn + 1000 * (u64)ranks;
		c.nodes = (turn + ranks) % NODES_SHAPES;
		c.kinds = kinds[turn % 4];
		c.root = roots[(turn + ranks) % root_values(&c, roots)];
		c.count = counts[(turn + turn / 4) % count_values(&quick, &c, counts)];
		c.tuning = tunings[turn / 2 % tuning_values(&quick, &c, tunings)];
		c.tuning.across = across_value(algo, turn + ranks);
		if (turn % 8 > 3)
			c.tuning.lanes = 1 + turn % 5;
		c.lengthy = is_lengthy(&c, turn);
		if (c.lengthy) {
			c.count = LENGTHY_COUNT;
			c.tuning.segment = LENGTHY_COUNT * ELEMENT / (1 + turn % 2) + ELEMENT;
			c.runs = 1;
		}
		add_shapes(list, c);
	}
}

/* ---- circuits ----------------------------------------------------------- */

/*
 * Ports, `ahead`, `simplex` and wavelengths. All combinations up to FEW_RANKS, above it every
 * 13th; roots, counts and tunings always alternate.
 */
static void add_circuits(struct list *list, const struct coll_algo *algo, u32 ranks)
{
	static const u64 waves[] = { COLL_UNSET, 1, 3, COLL_UNSET };
	const u32 ways = 4 * COLL_AHEADS * 2 * 4;
	const u32 step = list->quick || ranks > FEW_RANKS ? 13 : 1;
	struct coll_tuning tunings[OPTION_VALUES];
	u32 roots[3], way, turn;
	u64 counts[5];

	for (way = ranks % step; way < ways; way += step) {
		struct verify_case c = { .algo = algo, .ranks = ranks, .runs = 1 };
		const struct list quick = { .quick = list->quick };

		turn = way + ranks;
		c.root = roots[turn % root_values(&c, roots)];
		c.count = counts[turn / 3 % count_values(&quick, &c, counts)];
		c.tuning = tunings[turn / 2 % tuning_values(&quick, &c, tunings)];
		c.tuning.ports = 1 + way % 4;
		c.tuning.ahead = way / 4 % COLL_AHEADS;
		c.tuning.simplex = way / 12 % 2;
		c.tuning.wavelengths = waves[way / 24];
		c.ports_differ = turn % 3 == 0;
		c.shape = is_v(algo->collective) && c.count > 1 ? turn % SHAPES : 0;
		c.in_place = has_in_place(algo->collective) && turn % 2;
		c.commutative = !algo->ordered || turn % 4;
		add_if_fit(list, &c);
	}
}

static bool takes_circuits(const struct coll_algo *algo)
{
	const enum coll_collective collective = algo->collective;

	return !algo->baseline && !coll_algo_has_option(algo, "T") && collective != COLL_GATHERV &&
	       collective != COLL_SCATTERV && collective != COLL_ALLTOALLV;
}

/* A baseline is another algorithm under a second name. */
static void add_any(struct list *list, const struct coll_algo *algo, u32 ranks)
{
	if (algo->baseline && ranks > QUICK_RANKS_MAX)
		return;
	if (algo->levels) {
		add_topologies(list, algo, ranks);
		if (coll_algo_has_option(algo, "replicas"))
			add_spares(list, algo, ranks);
		return;
	}
	add_algo(list, algo, ranks);
	if (algo->clusters && ranks <= (list->quick ? QUICK_CLUSTERED_RANKS : CLUSTERED_RANKS))
		add_clusters(list, algo, ranks);
	if (takes_circuits(algo) && ranks <= (list->quick ? QUICK_CIRCUIT_RANKS : CIRCUIT_RANKS))
		add_circuits(list, algo, ranks);
}

static void add_ranks(struct list *list, const struct verify_filter *filter, u32 ranks)
{
	const struct coll_algo *const *algo;

	if (filter->last_rank && (ranks < filter->first_rank || ranks > filter->last_rank))
		return;
	for (algo = coll_algos; *algo; algo++)
		if ((filter->collective < 0 || (int)(*algo)->collective == filter->collective) &&
		    (!filter->algorithm || !strcmp((*algo)->name, filter->algorithm)))
			add_any(list, *algo, ranks);
}

struct verify_case *list_cases(const struct verify_filter *filter, bool quick, u32 *count)
{
	struct list list = { .quick = quick };
	u32 first = filter->first_rank, last = filter->last_rank, i;

	if (last) {
		for (i = first; i <= last; i++)
			add_ranks(&list, filter, i);
	} else {
		for (i = 1; i <= (quick ? QUICK_RANKS_MAX : RANKS_MAX); i++)
			add_ranks(&list, filter, i);
		for (i = 0; i < 8; i++)
			add_ranks(&list, filter, quick ? quick_more_ranks[i] : more_ranks[i]);
	}
	*count = list.count;
	return list.item;
}
