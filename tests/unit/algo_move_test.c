// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The algorithms that move data, and barriers, against the definitions of their collectives:
 * each algorithm, 1 to 33 ranks, many counts and roots, in place and not, with unequal
 * blocks, in a random order of all events whose order is free (tests/lib/interpret.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/blocks.h"
#include "core/schedule.h"
#include "tests/lib/interpret.h"

enum { RANKS_MAX = 33, BLOCK_MAX = 5 };

/* One call on all ranks. */
struct test_case {
	const struct coll_algo *algo;
	struct coll_tuning tuning;
	struct coll_call call[RANKS_MAX];
	u64 counts[RANKS_MAX];				/* gatherv, scatterv, allgatherv */
	u64 displs[RANKS_MAX][RANKS_MAX];		/* each rank may have its own */
	u64 matrix[RANKS_MAX][RANKS_MAX];		/* alltoallv: from, to */
	u64 send_displs[RANKS_MAX][RANKS_MAX];
	u64 recv_counts[RANKS_MAX][RANKS_MAX];
	u64 recv_displs[RANKS_MAX][RANKS_MAX];
	u64 random;
};

static bool is_v(const struct coll_algo *algo)
{
	return algo->collective == COLL_GATHERV || algo->collective == COLL_SCATTERV ||
	       algo->collective == COLL_ALLGATHERV || algo->collective == COLL_ALLTOALLV;
}

static bool moves_data(const struct coll_algo *algo)
{
	return algo->collective >= COLL_BCAST && algo->collective <= COLL_ALLTOALLV;
}

static bool has_root(const struct coll_algo *algo)
{
	return algo->collective >= COLL_BCAST && algo->collective <= COLL_SCATTERV;
}

/* ---- unequal blocks ------------------------------------------------------------- */

static u64 some_count(u64 *random, u32 pattern)
{
	switch (pattern) {
	case 0:
		return interpret_random(random, BLOCK_MAX + 1);
	case 1:
		return interpret_random(random, 3) ? 0 : 1 + interpret_random(random, BLOCK_MAX);
	case 2:
		return 2;
	default:
		return 0;
	}
}

/* Where blocks lie: one after the other, or in any order with gaps. */
static void some_displs(u64 *random, const u64 *counts, u32 ranks, bool packed, u64 *displs)
{
	u32 order[RANKS_MAX], i;
	u64 end = 0;

	for (i = 0; i < ranks; i++)
		order[i] = i;
	for (i = ranks; !packed && i > 1; i--) {
		u32 k = interpret_random(random, i), other = order[k];

		order[k] = order[i - 1];
		order[i - 1] = other;
	}
	for (i = 0; i < ranks; i++) {
		end += packed ? 0 : interpret_random(random, 3);
		displs[order[i]] = end;
		end += counts[order[i]];
	}
}

static void unequal(struct test_case *test_case, u32 ranks, u32 pattern, bool in_place)
{
	u32 r, i;

	for (r = 0; r < ranks; r++)
		test_case->counts[r] = some_count(&test_case->random, pattern);
	for (r = 0; r < ranks; r++)
		for (i = 0; i < ranks; i++)
			test_case->matrix[r][i] = in_place && i < r ?
				test_case->matrix[i][r] : some_count(&test_case->random, pattern);
	for (r = 0; r < ranks; r++) {
		for (i = 0; i < ranks; i++)
			test_case->recv_counts[r][i] = test_case->matrix[i][r];
		some_displs(&test_case->random, test_case->counts, ranks, (pattern + r) % 2,
			    test_case->displs[r]);
		some_displs(&test_case->random, test_case->matrix[r], ranks, r % 2,
			    test_case->send_displs[r]);
		some_displs(&test_case->random, test_case->recv_counts[r], ranks, r % 3,
			    test_case->recv_displs[r]);
	}
}

static void call_unequal(struct test_case *test_case, struct coll_call *call, u32 r)
{
	const bool everywhere = call->collective == COLL_ALLGATHERV;

	call->count = test_case->counts[r];
	if (call->collective == COLL_ALLTOALLV) {
		call->count = 0;
		if (!call->in_place) {
			call->send_counts = test_case->matrix[r];
			call->send_displs = test_case->send_displs[r];
		}
		call->recv_counts = test_case->recv_counts[r];
		call->recv_displs = test_case->recv_displs[r];
		return;
	}
	if (everywhere || r == call->root || test_case->algo->needs_counts)
		call->counts = test_case->counts;
	if (everywhere || r == call->root)
		call->displs = test_case->displs[r];
}

static void test_case_calls(struct test_case *test_case, u32 ranks, u64 count, u32 root,
			    bool in_place)
{
	u32 r;

	for (r = 0; r < ranks; r++) {
		struct coll_call *call = &test_case->call[r];

		*call = (struct coll_call){
			.collective = test_case->algo->collective,
			.rank = r,
			.ranks = ranks,
			.root = root,
			.type = COLL_OPAQUE_TYPE,
			.element = 1 + (u32)(ranks + count) % 3,
			.commutative = true,
			.in_place = in_place && (!has_root(test_case->algo) || r == root),
			.count = count,
		};
		if (is_v(test_case->algo))
			call_unequal(test_case, call, r);
	}
}

/* ---- the definition --------------------------------------------------------------- */

static u8 datum(u32 from, u32 to, u64 i)
{
	u32 x = from * 2654435761u ^ (to + 1) * 2246822519u ^ (u32)i * 3266489917u;

	return x ^ x >> 8 ^ x >> 16 ^ x >> 24;
}

static void put(void *buffer, u64 offset, u32 from, u32 to, u64 bytes)
{
	u8 *byte = (u8 *)buffer + offset;
	u64 i;

	for (i = 0; i < bytes; i++)
		byte[i] = datum(from, to, i);
}

static u64 in_offset(const struct coll_call *call, u32 to)
{
	return COLL_ADDRESS_OFFSET(block_to(call, to).place);
}

/* What rank r brings, into `buffer`, which is the one the call has it in. */
static void put_input(const struct coll_call *call, void *in, void *out)
{
	void *buffer = call->in_place ? out : in;
	u32 i;

	switch (call->collective) {
	case COLL_BCAST:
		if (call->rank == call->root)
			put(out, 0, call->root, 0, call_bytes(call));
		break;
	case COLL_GATHER:
	case COLL_GATHERV:
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		put(buffer, call->in_place ? block_offset(call, call->rank) : 0, call->rank, 0,
		    call_bytes(call));
		break;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		for (i = 0; i < call->ranks && call->rank == call->root; i++)
			put(in, block_offset(call, i), call->root, i, block_bytes(call, i));
		break;
	default:
		for (i = 0; i < call->ranks; i++)
			put(buffer, in_offset(call, i), call->rank, i, block_to(call, i).bytes);
		break;
	}
}

/* What rank r's OUT must hold in the end; what is not written here stays. */
static void put_output(const struct coll_call *call, void *out)
{
	u32 i;

	switch (call->collective) {
	case COLL_BCAST:
		put(out, 0, call->root, 0, call_bytes(call));
		break;
	case COLL_GATHER:
	case COLL_GATHERV:
		if (call->rank != call->root)
			break;
		/* fall through */
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		for (i = 0; i < call->ranks; i++)
			put(out, block_offset(call, i), i, 0, block_bytes(call, i));
		break;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		if (!call->in_place)
			put(out, 0, call->root, call->rank, call_bytes(call));
		break;
	default:
		for (i = 0; i < call->ranks; i++)
			put(out, COLL_ADDRESS_OFFSET(block_from(call, i).place), i, call->rank,
			    block_from(call, i).bytes);
		break;
	}
}

/* ---- running a test case ---------------------------------------------------------------- */

static void *copy_of(struct interpret *world, u32 rank, enum coll_buffer buffer)
{
	u64 bytes = interpret_schedule(world, rank)->buffer[buffer];
	void *copy = malloc(bytes + 1);

	assert_non_null(copy);
	return memcpy(copy, interpret_buffer(world, rank, buffer), bytes);
}

static void test_case_fail(const struct test_case *test_case, const char *what, u64 seed)
{
	const struct coll_call *call = &test_case->call[0];

	fail_msg("%s %s, %u ranks, count %llu, element %u, root %u, in place %d, seed %llu: %s",
		 coll_collective_names[call->collective], test_case->algo->name, call->ranks,
		 (unsigned long long)call->count, call->element, call->root,
		 test_case->call[call->root].in_place, (unsigned long long)seed, what);
}

static void run_once(struct test_case *test_case, struct interpret *world, u64 seed)
{
	void *in[RANKS_MAX], *out[RANKS_MAX];
	u32 ranks = world->ranks, r;

	for (r = 0; r < ranks; r++) {
		put_input(&test_case->call[r], interpret_buffer(world, r, COLL_IN),
			  interpret_buffer(world, r, COLL_OUT));
		in[r] = copy_of(world, r, COLL_IN);
		out[r] = copy_of(world, r, COLL_OUT);
		put_output(&test_case->call[r], out[r]);
	}
	if (interpret_run(world, seed))
		test_case_fail(test_case, world->error, seed);
	for (r = 0; r < ranks; r++) {
		const u64 *bytes = interpret_schedule(world, r)->buffer;

		if (memcmp(in[r], interpret_buffer(world, r, COLL_IN), bytes[COLL_IN]))
			test_case_fail(test_case, "the input was changed", seed);
		if (memcmp(out[r], interpret_buffer(world, r, COLL_OUT), bytes[COLL_OUT]))
			test_case_fail(test_case, "wrong result", seed);
		free(in[r]);
		free(out[r]);
	}
}

static void run_repeatedly(struct test_case *test_case, u32 runs)
{
	struct interpret *world = interpret_new(test_case->algo, test_case->call,
						test_case->call[0].ranks, &test_case->tuning);
	u32 i;

	if (world->error[0])
		test_case_fail(test_case, world->error, 0);
	for (i = 0; i < runs; i++) {
		test_case->random = test_case->random * 6364136223846793005u + 1442695040888963407u;
		run_once(test_case, world, test_case->random);
	}
	interpret_free(world);
}

/* Options that make the algorithm do what its defaults would not with little data. */
static void tune(struct test_case *test_case, u32 variant)
{
	test_case->tuning = COLL_TUNING_UNSET;
	if (test_case->algo->collective == COLL_ALLTOALLV)
		test_case->tuning.bound = variant % 4 * 2;	/* none of a block to all of it */
	if (test_case->algo->options && !strcmp(test_case->algo->options, "segment") && variant % 4)
		test_case->tuning.segment = variant % 4 == 1 ? 1 : 3 * (variant % 4);
}

static void run_counts(struct test_case *test_case, u32 ranks, u32 root, bool in_place)
{
	const u64 counts[] = { 0, 1, 2, ranks - 1, ranks, ranks + 1, 29 };
	u32 i;

	for (i = 0; i < 7; i++) {
		/* As many counts as patterns of unequal blocks, with different displacements. */
		if (is_v(test_case->algo))
			unequal(test_case, ranks, i % 4, in_place);
		tune(test_case, i + ranks);
		test_case_calls(test_case, ranks, counts[i], root, in_place);
		run_repeatedly(test_case, ranks < 10 ? 4 : 1);
	}
}

static void run_all(struct test_case *test_case)
{
	u32 ranks, root, in_place;

	test_case->random = 1;
	for (ranks = 1; ranks <= RANKS_MAX; ranks++)
		for (root = 0; root < (has_root(test_case->algo) ? ranks : 1); root++)
			for (in_place = 0; in_place < 2; in_place++) {
				if (ranks > 9 && (root * 7 + in_place) % 5 && root != ranks - 1)
					continue;
				if (in_place && test_case->algo->collective == COLL_BCAST)
					continue;
				run_counts(test_case, ranks, root, in_place);
			}
}

static void blocks_arrive_as_defined(void **state)
{
	const enum coll_collective collective = *(const enum coll_collective *)*state;
	struct test_case *test_case = malloc(sizeof(*test_case));
	const struct coll_algo *const *algo;
	u32 played = 0;

	assert_non_null(test_case);
	for (algo = coll_algos; *algo; algo++) {
		if ((*algo)->collective != collective || (*algo)->levels)
			continue;
		assert_true(moves_data(*algo));
		test_case->algo = *algo;
		run_all(test_case);
		played++;
	}
	free(test_case);
	assert_true(played >= 2);
}

/* ---- barriers ------------------------------------------------------------------- */

static void check_barrier(const struct coll_algo *algo, u32 ranks)
{
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_call call[RANKS_MAX] = { 0 };
	struct interpret *world;
	u32 r, seed;

	for (r = 0; r < ranks; r++)
		call[r] = (struct coll_call){ .collective = COLL_BARRIER, .rank = r, .ranks = ranks,
					      .commutative = true };
	world = interpret_new(algo, call, ranks, &tuning);
	for (r = 0; r < ranks; r++)
		for (seed = 0; seed < 2; seed++)
			if (interpret_without(world, r, seed))
				fail_msg("%s, %u ranks: %s", algo->name, ranks, world->error);
	for (seed = 0; seed < 8; seed++)
		if (interpret_run(world, seed))
			fail_msg("%s, %u ranks: %s", algo->name, ranks, world->error);
	interpret_free(world);
}

static void no_rank_leaves_a_barrier_before_all_entered(void **state)
{
	const struct coll_algo *const *algo;
	u32 ranks, played = 0;

	(void)state;
	for (algo = coll_algos; *algo; algo++) {
		if ((*algo)->collective != COLL_BARRIER || (*algo)->levels)
			continue;
		for (ranks = 1; ranks <= RANKS_MAX; ranks++)
			check_barrier(*algo, ranks);
		played++;
	}
	assert_true(played >= 2);
}

#define BLOCKS_OF(name, COLLECTIVE) {						\
	#name "_blocks_arrive_as_defined", blocks_arrive_as_defined, NULL, NULL,	\
	&(enum coll_collective){ COLLECTIVE } }

int main(void)
{
	const struct CMUnitTest tests[] = {
		BLOCKS_OF(bcast, COLL_BCAST),
		BLOCKS_OF(gather, COLL_GATHER),
		BLOCKS_OF(gatherv, COLL_GATHERV),
		BLOCKS_OF(scatter, COLL_SCATTER),
		BLOCKS_OF(scatterv, COLL_SCATTERV),
		BLOCKS_OF(allgather, COLL_ALLGATHER),
		BLOCKS_OF(allgatherv, COLL_ALLGATHERV),
		BLOCKS_OF(alltoall, COLL_ALLTOALL),
		BLOCKS_OF(alltoallv, COLL_ALLTOALLV),
		cmocka_unit_test(no_rank_leaves_a_barrier_before_all_entered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
