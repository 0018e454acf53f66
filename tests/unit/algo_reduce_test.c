// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Every algorithm that reduces, on every small number of ranks, in random order.
 *
 * An element says what was combined to make it: the run of ranks it covers, how
 * many contributions it holds and which (a sum of random numbers, one a rank and
 * index), and a hash of the tree of operands in order. So a contribution that is
 * lost, doubled or taken from a wrong index shows, and so do operands out of
 * order, and two ranks that combine in different ways.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "tests/lib/interpret.h"
#include "core/check.h"

enum {
	RANKS_MAX = 33,
	OPS_MAX = 512,		/* of schedules whose order is examined */
	SPREAD = 5,		/* reduce_scatter: variation of the counts */
	OUT_OF_ORDER = 0xffff,	/* as `first` */
};

struct element {
	u16 first, last;	/* run of ranks, if in order */
	u32 contributions;
	u64 sum;
	u64 tree;
};

static u64 mix(u64 x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
	return x ^ x >> 32;
}

static struct element contribution(u32 rank, u64 index)
{
	const u64 number = mix((u64)rank << 32 | (index + 1));

	return (struct element){ rank, rank, 1, number, mix(number) };
}

static struct element combine(struct element left, struct element right)
{
	const bool follow = left.first != OUT_OF_ORDER && right.first != OUT_OF_ORDER &&
			    left.last + 1 == right.first;

	return (struct element){
		.first = follow ? left.first : OUT_OF_ORDER,
		.last = right.last,
		.contributions = left.contributions + right.contributions,
		.sum = left.sum + right.sum,
		.tree = mix(left.tree * 3 + mix(right.tree)),
	};
}

static void reduce(const struct coll_op *op, void *result, const void *left, const void *right)
{
	u64 offset;

	for (offset = 0; offset < op->bytes; offset += sizeof(struct element)) {
		struct element a, b;

		memcpy(&a, (const u8 *)left + offset, sizeof(a));
		memcpy(&b, (const u8 *)right + offset, sizeof(b));
		a = combine(a, b);
		memcpy((u8 *)result + offset, &a, sizeof(a));
	}
}

/* ---- one case ------------------------------------------------------------- */

struct test_case {
	const struct coll_algo *algo;
	u32 ranks, root;
	u64 count;
	u64 counts[RANKS_MAX];	/* reduce_scatter */
	bool in_place, commutative;
	struct coll_tuning tuning;
};

static bool scatters(const struct test_case *c)
{
	return c->algo->collective == COLL_REDUCE_SCATTER ||
	       c->algo->collective == COLL_REDUCE_SCATTER_BLOCK;
}

static u64 count_of(const struct test_case *c, u32 rank)
{
	return c->algo->collective == COLL_REDUCE_SCATTER ? c->counts[rank] : c->count;
}

/* Elements of a rank's input vector. */
static u64 input_count(const struct test_case *c)
{
	u64 sum = 0;
	u32 r;

	if (!scatters(c))
		return c->count;
	for (r = 0; r < c->ranks; r++)
		sum += count_of(c, r);
	return sum;
}

static bool in_place_at(const struct test_case *c, u32 rank)
{
	return c->in_place && (c->algo->collective != COLL_REDUCE || rank == c->root);
}

static struct coll_call call_of(const struct test_case *c, u32 rank)
{
	return (struct coll_call){
		.collective = c->algo->collective,
		.rank = rank,
		.ranks = c->ranks,
		.root = c->root,
		.type = COLL_OPAQUE_TYPE,
		.reduction = COLL_USER_REDUCTION,
		.element = sizeof(struct element),
		.commutative = c->commutative,
		.in_place = in_place_at(c, rank),
		.count = count_of(c, rank),
		.counts = c->algo->collective == COLL_REDUCE_SCATTER ? c->counts : NULL,
	};
}

static void say(const struct test_case *c, u32 rank, const char *what)
{
	fail_msg("%s %s: %u ranks, root %u, %llu elements%s%s, T=%lld, segment=%lld, rank %u: %s",
		 coll_collective_names[c->algo->collective], c->algo->name, c->ranks, c->root,
		 (unsigned long long)c->count, c->in_place ? ", in place" : "",
		 c->commutative ? ", commutative" : "", (long long)c->tuning.redundancy,
		 (long long)c->tuning.segment, rank, what);
}

/* Which ranks' parts a rank's result has; false: it has no result. */
static bool covers(const struct test_case *c, u32 rank, u32 *last)
{
	*last = c->ranks - 1;
	switch (c->algo->collective) {
	case COLL_REDUCE:
		return rank == c->root;
	case COLL_SCAN:
		*last = rank;
		return true;
	case COLL_EXSCAN:
		*last = rank - 1;
		return rank > 0;
	default:
		return true;
	}
}

static void check_element(const struct test_case *c, u32 rank, u32 last, u64 index,
			  const struct element *got)
{
	const bool ordered = !c->commutative;
	u64 sum = 0;
	u32 r;

	for (r = 0; r <= last; r++)
		sum += contribution(r, index).sum;
	if (got->contributions != last + 1)
		say(c, rank, "not every contribution exactly once");
	if (got->sum != sum)
		say(c, rank, "a contribution of another element, or twice the same");
	if (ordered && (got->first != 0 || got->last != last))
		say(c, rank, "operands out of order");
}

static void check_input(struct interpret *world, const struct test_case *c, u32 rank)
{
	const struct element *in = interpret_buffer(world, rank, COLL_IN);
	u64 i;

	for (i = 0; i < input_count(c); i++) {
		const struct element was = contribution(rank, i);

		if (memcmp(&in[i], &was, sizeof(was)))
			say(c, rank, "the input was changed");
	}
}

static void check_rank(struct interpret *world, const struct test_case *c, u32 rank, u64 first)
{
	const struct element *out = interpret_buffer(world, rank, COLL_OUT);
	const struct element *out0 = interpret_buffer(world, 0, COLL_OUT);
	u32 last;
	u64 i;

	if (!in_place_at(c, rank))
		check_input(world, c, rank);
	if (!covers(c, rank, &last))
		return;
	for (i = 0; i < count_of(c, rank); i++) {
		check_element(c, rank, last, first + i, &out[i]);
		if (c->algo->collective == COLL_ALLREDUCE && out[i].tree != out0[i].tree)
			say(c, rank, "combined in another way than on rank 0");
	}
}

static void fill(struct interpret *world, const struct test_case *c)
{
	u32 r;
	u64 i;

	for (r = 0; r < c->ranks; r++) {
		struct element *input = interpret_buffer(world, r, in_place_at(c, r) ? COLL_OUT :
										       COLL_IN);
		for (i = 0; i < input_count(c); i++)
			input[i] = contribution(r, i);
	}
}

/* ---- one schedule --------------------------------------------------------- */

static bool overlap(u64 a, u64 a_bytes, u64 b, u64 b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

static bool writes_into(const struct coll_op *writer, const struct coll_op *op)
{
	const u64 n = op->bytes;

	if (writer->kind == COLL_OP_SEND || !writer->bytes || !n)
		return false;
	return (op->kind != COLL_OP_RECV &&
		overlap(writer->result, writer->bytes, op->left, n)) ||
	       (op->kind == COLL_OP_REDUCE &&
		overlap(writer->result, writer->bytes, op->right, n)) ||
	       (op->kind != COLL_OP_SEND &&
		overlap(writer->result, writer->bytes, op->result, n));
}

/* Two ops that touch the same bytes, one writing, are in order by their waits. */
static void check_order(const struct test_case *c, const struct coll_schedule *s)
{
	static u8 before[OPS_MAX][OPS_MAX];	/* [i][j]: j is done before i begins */
	const struct coll_op *op = coll_ops(s);
	u32 i, j, k;

	for (i = 0; i < s->ops; i++) {
		memset(before[i], 0, s->ops);
		for (k = 0; k < op[i].waits; k++) {
			const u32 wait = coll_waits(s)[op[i].wait + k];

			for (j = 0; j < wait; j++)
				before[i][j] |= before[wait][j];
			before[i][wait] = 1;
		}
		for (j = 0; j < i; j++)
			if (!before[i][j] &&
			    (writes_into(&op[i], &op[j]) || writes_into(&op[j], &op[i])))
				say(c, s->rank, "two ops race for the same bytes");
	}
}

/* The allreduces for long vectors: nothing is copied but what one rank keeps. */
static void check_copies(const struct test_case *c, const struct coll_schedule *s)
{
	u32 i;

	for (i = 0; i < s->ops; i++)
		if (coll_ops(s)[i].kind == COLL_OP_COPY && coll_ops(s)[i].bytes)
			say(c, s->rank, "a needless copy");
}

static void check_schedule(const struct test_case *c, const struct coll_schedule *s)
{
	const bool redundant = strstr(c->algo->name, "redundant") ||
			       strstr(c->algo->name, "relayed");
	u8 *work = malloc(coll_check_bytes(s, s->bytes) + 1);
	struct coll_refusal refusal;

	if (coll_check(s, s->bytes, work, &refusal))
		say(c, s->rank, refusal.reason);
	free(work);
	if (redundant)
		return;		/* its order is shown in docs/guide/redundant-butterfly.md, choosing-T.md */
	if (c->ranks <= 17 && s->ops <= OPS_MAX)	/* its cost grows with the square */
		check_order(c, s);
	if (c->algo->collective == COLL_ALLREDUCE && c->ranks > 1 && !c->algo->clusters &&
	    strcmp(c->algo->name, "debruijn") && strcmp(c->algo->name, "cayley"))	/* for short ones */
		check_copies(c, s);
}

/* ---- all cases ------------------------------------------------------------ */

static u32 runs_done;
static bool little;	/* COLL_TEST_LITTLE: memory that is misused is so in any order */

static void run_case(const struct test_case *c, u32 seeds)
{
	struct coll_call calls[RANKS_MAX];
	struct interpret *world;
	u32 r, seed;
	u64 first;

	for (r = 0; r < c->ranks; r++)
		calls[r] = call_of(c, r);
	if (coll_algo_refuses(c->algo, &calls[0], &c->tuning))
		return;
	world = interpret_new(c->algo, calls, c->ranks, &c->tuning);
	world->reduce = reduce;
	for (r = 0; r < c->ranks && !world->error[0]; r++)
		check_schedule(c, interpret_schedule(world, r));
	for (seed = 1; seed <= seeds; seed++) {
		if (!world->error[0])
			fill(world, c);
		if (interpret_run(world, seed * 7919 + c->ranks))
			say(c, COLL_NONE, world->error);
		for (r = 0, first = 0; r < c->ranks; r++) {
			check_rank(world, c, r, first);
			first += scatters(c) ? count_of(c, r) : 0;
		}
		runs_done++;
	}
	interpret_free(world);
}

/* Unequal, with empty ones among them; pattern 0: equal. */
static void set_counts(struct test_case *c, u64 count, u32 pattern)
{
	u32 r;

	c->count = count;
	for (r = 0; r < c->ranks; r++)
		c->counts[r] = !pattern ? count :
			       (r * 7 + pattern) % 3 ? count + (r + pattern) % SPREAD : 0;
}

/* The v-th tuning to try; false: enough. Tiny segments are many ops: few ranks. */
static bool tune(struct test_case *c, u32 v)
{
	const char *options = c->algo->options;

	c->tuning = COLL_TUNING_UNSET;
	if (!v || !options || v > 3)
		return !v;
	if (!strcmp(options, "T"))
		c->tuning.redundancy = v == 1 ? 0 : v == 2 ? 2 : 99;
	else
		c->tuning.segment = v == 1 ? 1 : v * sizeof(struct element) + 1;
	return !strcmp(options, "T") || c->ranks < 10;
}

static void run_variants(struct test_case *c)
{
	u32 way, v;

	for (way = 0; way < 4; way++) {
		c->in_place = way & 1;
		c->commutative = way & 2;
		for (v = 0; tune(c, v); v++)
			run_case(c, little ? 1 : c->ranks < 10 ? 4 : 2);
	}
}

static void run_counts(struct test_case *c)
{
	const u32 p = c->ranks;
	const u64 count[] = { 0, 1, 2, p - 1, p, p + 1, 2 * p + 3 };
	u32 i;

	for (i = 0; i < sizeof(count) / sizeof(count[0]); i++) {
		if (scatters(c) && i > 3)	/* counts are of one block */
			return;
		set_counts(c, scatters(c) ? i : count[i], scatters(c) ? i : 0);
		run_variants(c);
	}
}

static void run_algorithm(const struct coll_algo *algo)
{
	struct test_case c = { .algo = algo };

	for (c.ranks = 1; c.ranks <= RANKS_MAX; c.ranks++) {
		const u32 roots[] = { 0, 1, c.ranks / 2, c.ranks - 1 };
		const u32 count = algo->collective == COLL_REDUCE ? 4 : 1;
		u32 i;

		if (little && c.ranks > 17 && c.ranks % 8 > 1)
			continue;
		for (i = 0; i < count; i++) {
			c.root = roots[i];
			if ((i && c.root <= roots[i - 1]) || c.root >= c.ranks)
				continue;
			run_counts(&c);
		}
	}
}

static void run_collective(enum coll_collective collective)
{
	const struct coll_algo *const *algo;
	u32 algorithms = 0;

	runs_done = 0;
	for (algo = coll_algos; *algo; algo++) {
		if ((*algo)->collective != collective || (*algo)->levels)
			continue;
		run_algorithm(*algo);
		algorithms++;
	}
	print_message("%s: %u algorithms, %u runs\n", coll_collective_names[collective],
		      algorithms, runs_done);
	assert_true(runs_done > 1000);
}

static void reduce_combines_all_ranks(void **state)
{
	(void)state;
	run_collective(COLL_REDUCE);
}

static void allreduce_gives_all_ranks_the_same_bits(void **state)
{
	(void)state;
	run_collective(COLL_ALLREDUCE);
}

static void reduce_scatter_combines_blocks(void **state)
{
	(void)state;
	run_collective(COLL_REDUCE_SCATTER);
}

static void reduce_scatter_block_combines_blocks(void **state)
{
	(void)state;
	run_collective(COLL_REDUCE_SCATTER_BLOCK);
}

static void scan_combines_lower_ranks_and_own(void **state)
{
	(void)state;
	run_collective(COLL_SCAN);
}

static void exscan_combines_lower_ranks(void **state)
{
	(void)state;
	run_collective(COLL_EXSCAN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reduce_combines_all_ranks),
		cmocka_unit_test(allreduce_gives_all_ranks_the_same_bits),
		cmocka_unit_test(reduce_scatter_combines_blocks),
		cmocka_unit_test(reduce_scatter_block_combines_blocks),
		cmocka_unit_test(scan_combines_lower_ranks_and_own),
		cmocka_unit_test(exscan_combines_lower_ranks),
	};

	little = getenv("COLL_TEST_LITTLE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
