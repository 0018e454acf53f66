// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The circulant broadcast beyond its result: each rank receives each block once, and N blocks
 * reach p ranks in N - 1 + ceil(log2 p) rounds. In a round a rank sends at most one block,
 * which it had before the round.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/algo.h"
#include "core/schedule.h"

static u32 receives(const struct coll_schedule *s)
{
	const struct coll_op *ops = coll_ops(s);
	u32 count = 0, i;

	for (i = 0; i < s->ops; i++)
		count += ops[i].kind == COLL_OP_RECV;
	return count;
}

static struct coll_schedule *circulant(u32 rank, u32 ranks, u32 blocks, void *memory, u64 bytes)
{
	const struct coll_call call = { .collective = COLL_BCAST, .rank = rank, .ranks = ranks,
					.root = ranks / 3, .type = COLL_INT8, .element = 1,
					.commutative = true, .count = blocks };
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_schedule *schedule;

	tuning.segment = 1;
	assert_int_equal(coll_algo_emit(coll_algo_find(COLL_BCAST, "circulant"), &call, &tuning,
					memory, bytes, &schedule), 0);
	return schedule;
}

/* A rank in lockstep with the others: its sends happen in list order. */
struct walker {
	struct coll_schedule *schedule;
	u32 next;		/* op to start next */
	u32 *since;		/* for each block: the round of its arrival, 0: not yet */
};

/* Sends the next block if the rank had it before this round. Returns the number sent. */
static u32 walk(struct walker *walkers, u32 r, u32 round)
{
	struct walker *me = &walkers[r];
	const struct coll_schedule *s = me->schedule;
	const struct coll_op *ops = coll_ops(s);
	u32 block, to;

	while (me->next < s->ops && ops[me->next].kind != COLL_OP_SEND)
		me->next++;
	if (me->next == s->ops)
		return 0;
	block = COLL_ADDRESS_OFFSET(ops[me->next].left);
	to = coll_op_rank(s, &ops[me->next]);
	if (!me->since[block] || me->since[block] == round)
		return 0;
	assert_int_equal(walkers[to].since[block], 0);
	walkers[to].since[block] = round;
	me->next++;
	return 1;
}

/* The number of rounds until all ranks have all blocks. */
static u32 lockstep(u32 ranks, u32 blocks)
{
	const u64 bytes = 1 << 16;
	struct walker *walkers = calloc(ranks, sizeof(*walkers));
	u32 *since = calloc((u64)ranks * blocks, sizeof(*since));
	u8 *memory = malloc(ranks * bytes);
	u32 left = (ranks - 1) * blocks, round, moved, r;

	assert_true(walkers && since && memory);
	for (r = 0; r < ranks; r++) {
		walkers[r].schedule = circulant(r, ranks, blocks, memory + r * bytes, bytes);
		walkers[r].since = since + (u64)r * blocks;
		assert_int_equal(receives(walkers[r].schedule), r == ranks / 3 ? 0 : blocks);
		if (r == ranks / 3)	/* the root: before all rounds */
			memset(walkers[r].since, 0xff, blocks * sizeof(*since));
	}
	for (round = 0; left; left -= moved) {
		round++;
		for (r = 0, moved = 0; r < ranks; r++)
			moved += walk(walkers, r, round);
		assert_true(moved);
	}
	free(walkers);
	free(since);
	free(memory);
	return round;
}

static void all_blocks_arrive_in_the_optimal_number_of_rounds(void **state)
{
	static const u32 blocks[] = { 1, 2, 3, 7, 12, 20 };
	u32 ranks, i, rounds;

	(void)state;
	for (ranks = 2; ranks <= 300; ranks++) {
		for (rounds = 0; 1u << rounds < ranks; rounds++)
			;
		for (i = 0; i < 6; i++)
			assert_true(lockstep(ranks, blocks[i]) <= blocks[i] - 1 + rounds);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_blocks_arrive_in_the_optimal_number_of_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
