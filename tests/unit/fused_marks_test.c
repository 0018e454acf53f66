// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * How many of the reductions of each algorithm take their message as it arrives (fused.h), of all
 * that have an operand from another rank: a change of an algorithm or of the marks must not lose
 * them unseen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/levels.h"
#include "libcoll/exec/fused.h"
#include "libcoll/exec/planned.h"
#include "tests/lib/interpret.h"

enum { RANKS = 8, COUNT = 1 << 13 };

/*
 * Of all ranks together, 8 in 2 nodes of 4. Those that have fewer marked receive optional messages,
 * or read a message twice: to pass it on, or in several reduces.
 */
struct marks {
	enum coll_collective collective;
	const char *algo;
	uint32_t marked, reduces;
};

static const struct marks marks[] = {
	{ COLL_ALLREDUCE, "butterfly", 24, 24 },
	{ COLL_ALLREDUCE, "butterfly-leaf", 24, 24 },
	{ COLL_ALLREDUCE, "butterfly-leaf-last", 24, 24 },
	{ COLL_ALLREDUCE, "butterfly-redundant", 0, 24 },
	{ COLL_ALLREDUCE, "butterfly-relayed", 0, 24 },
	{ COLL_ALLREDUCE, "cayley", 38, 50 },
	{ COLL_ALLREDUCE, "debruijn", 24, 24 },
	{ COLL_ALLREDUCE, "lanes", 64, 64 },
	{ COLL_ALLREDUCE, "leader", 18, 18 },
	{ COLL_ALLREDUCE, "linear", 7, 7 },
	{ COLL_ALLREDUCE, "one-shot", 49, 56 },
	{ COLL_ALLREDUCE, "rabenseifner", 24, 24 },
	{ COLL_ALLREDUCE, "rabenseifner-extended", 64, 64 },
	{ COLL_ALLREDUCE, "reduce-bcast", 7, 7 },
	{ COLL_ALLREDUCE, "replicas", 12, 24 },
	{ COLL_ALLREDUCE, "ring", 56, 56 },
	{ COLL_ALLREDUCE, "rings", 56, 56 },
	{ COLL_ALLREDUCE, "twotier", 18, 18 },
	{ COLL_ALLREDUCE, "world", 24, 24 },
	{ COLL_EXSCAN, "doubling", 8, 17 },
	{ COLL_EXSCAN, "lanes", 28, 33 },
	{ COLL_EXSCAN, "leader", 4, 11 },
	{ COLL_EXSCAN, "linear", 0, 18 },
	{ COLL_EXSCAN, "one-shot", 21, 21 },
	{ COLL_EXSCAN, "twotier", 4, 11 },
	{ COLL_EXSCAN, "world", 8, 17 },
	{ COLL_REDUCE, "binomial", 7, 7 },
	{ COLL_REDUCE, "chain", 21, 21 },
	{ COLL_REDUCE, "lanes", 56, 56 },
	{ COLL_REDUCE, "leader", 17, 17 },
	{ COLL_REDUCE, "linear", 7, 7 },
	{ COLL_REDUCE, "rabenseifner", 24, 24 },
	{ COLL_REDUCE, "rabenseifner-extended", 56, 56 },
	{ COLL_REDUCE_SCATTER_BLOCK, "circulant", 0, 27 },
	{ COLL_REDUCE_SCATTER_BLOCK, "halving", 24, 24 },
	{ COLL_REDUCE_SCATTER_BLOCK, "lanes", 224, 224 },
	{ COLL_REDUCE_SCATTER_BLOCK, "leader", 56, 56 },
	{ COLL_REDUCE_SCATTER_BLOCK, "pairwise", 50, 56 },
	{ COLL_REDUCE_SCATTER_BLOCK, "rabenseifner-extended", 224, 224 },
	{ COLL_REDUCE_SCATTER_BLOCK, "ring", 56, 56 },
	{ COLL_REDUCE_SCATTER_BLOCK, "world", 24, 24 },
	{ COLL_REDUCE_SCATTER, "circulant", 0, 27 },
	{ COLL_REDUCE_SCATTER, "halving", 24, 24 },
	{ COLL_REDUCE_SCATTER, "lanes", 224, 224 },
	{ COLL_REDUCE_SCATTER, "leader", 56, 56 },
	{ COLL_REDUCE_SCATTER, "pairwise", 50, 56 },
	{ COLL_REDUCE_SCATTER, "rabenseifner-extended", 224, 224 },
	{ COLL_REDUCE_SCATTER, "ring", 56, 56 },
	{ COLL_REDUCE_SCATTER, "world", 24, 24 },
	{ COLL_REDUCE, "twotier", 17, 17 },
	{ COLL_REDUCE, "world", 24, 24 },
	{ COLL_SCAN, "doubling", 17, 17 },
	{ COLL_SCAN, "lanes", 34, 34 },
	{ COLL_SCAN, "leader", 10, 11 },
	{ COLL_SCAN, "linear", 21, 21 },
	{ COLL_SCAN, "one-shot", 21, 28 },
	{ COLL_SCAN, "twotier", 10, 11 },
	{ COLL_SCAN, "world", 17, 17 },
};

static bool is_reducing(enum coll_collective collective)
{
	return collective == COLL_ALLREDUCE || collective == COLL_REDUCE ||
	       collective == COLL_REDUCE_SCATTER || collective == COLL_REDUCE_SCATTER_BLOCK ||
	       collective == COLL_SCAN || collective == COLL_EXSCAN;
}

/* A call of this rank; for an algorithm that wants nodes or clusters, with two of them. */
static struct coll_call call_of(const struct coll_algo *algo, uint32_t rank)
{
	static u64 memory[1 << 12];
	static struct coll_levels levels;
	static u64 counts[RANKS];
	static u32 half[RANKS];
	const u32 *const of[COLL_LEVELS_MAX] = { [COLL_LEVEL_NODE] = half };
	struct coll_call call = {
		.collective = algo->collective, .rank = rank, .ranks = RANKS, .element = 8,
		.type = COLL_DOUBLE, .reduction = COLL_SUM, .commutative = true, .count = COUNT,
	};
	u32 i;

	for (i = 0; i < RANKS; i++) {
		half[i] = i / (RANKS / 2);
		counts[i] = COUNT;
	}
	if (algo->collective == COLL_REDUCE_SCATTER)
		call.counts = counts;
	if (algo->clusters) {
		call.cluster = half;
		call.clusters = 2;
	}
	assert_true(coll_levels_bytes(RANKS) <= sizeof(memory));
	coll_levels_make(of, RANKS, memory, &levels);
	call.level = levels.level;
	call.levels = levels.count;
	return call;
}

/* Whether an operand is what an op before received. */
static bool reduces_a_message(const struct coll_schedule *s, const struct coll_op *op)
{
	uint32_t i;

	for (i = 0; i < s->ops && &coll_ops(s)[i] != op; i++) {
		const struct coll_op *recv = &coll_ops(s)[i];

		if (recv->kind == COLL_OP_RECV && recv->bytes >= op->bytes &&
		    (op->left - recv->result < recv->bytes || op->right - recv->result < recv->bytes))
			return true;
	}
	return false;
}

static void count_marks(struct coll_schedule *s, struct marks *sum)
{
	struct coll_planned planned = { .schedule = s };
	uint32_t i;

	coll_fused_mark(&planned);
	for (i = 0; i < s->ops; i++) {
		if (coll_ops(s)[i].kind != COLL_OP_REDUCE || !coll_ops(s)[i].bytes)
			continue;
		sum->reduces += reduces_a_message(s, &coll_ops(s)[i]);
		sum->marked += planned.fused && planned.fused[i] != COLL_NONE;
	}
	free(planned.fused);
}

static const struct marks *marks_of(const struct coll_algo *algo)
{
	uint32_t i;

	for (i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (marks[i].collective == algo->collective && !strcmp(marks[i].algo, algo->name))
			return &marks[i];
	return NULL;
}

/* False: not for such a call. */
static bool algo_marks(const struct coll_algo *algo, struct marks *sum)
{
	const struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_call calls[RANKS];
	struct interpret *world;
	uint32_t rank;

	*sum = (struct marks){ .collective = algo->collective, .algo = algo->name };
	for (rank = 0; rank < RANKS; rank++)
		calls[rank] = call_of(algo, rank);
	if (coll_algo_refuses(algo, &calls[0], &tuning))
		return false;
	world = interpret_new(algo, calls, RANKS, &tuning);
	if (world->error[0])
		fail_msg("%s: %s", algo->name, world->error);
	for (rank = 0; rank < RANKS; rank++)
		count_marks((struct coll_schedule *)interpret_schedule(world, rank), sum);
	interpret_free(world);
	return true;
}

static void each_algorithm_keeps_its_marks(void **state)
{
	const struct coll_algo *const *algo;
	uint32_t wrong = 0, seen = 0;

	(void)state;
	for (algo = coll_algos; *algo; algo++) {
		const struct marks *expected = marks_of(*algo);
		struct marks sum;

		if (!is_reducing((*algo)->collective) || !algo_marks(*algo, &sum))
			continue;
		seen++;
		if (expected && expected->marked == sum.marked && expected->reduces == sum.reduces)
			continue;
		wrong++;
		print_message("{ %s, \"%s\", %u, %u },\n", coll_collective_names[sum.collective],
			      sum.algo, sum.marked, sum.reduces);
	}
	assert_int_equal(wrong, 0);
	assert_int_equal(seen, sizeof(marks) / sizeof(*marks));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_algorithm_keeps_its_marks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
