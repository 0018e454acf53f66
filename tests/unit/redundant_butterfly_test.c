// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What the redundant butterfly is for: ranks of one class that stop after
 * exchange j hold up nobody else, if j <= T, and without redundancy they do.
 * Only the order of ops is looked at here, not the data.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "algo/common/ranks.h"
#include "algo/common/algo.h"
#include "core/match.h"
#include "tests/lib/interpret.h"

enum { RANKS_MAX = 33, MESSAGES_MAX = 4096 };

struct world {
	u32 ranks;
	struct interpret *schedules;
	struct coll_plan plan[RANKS_MAX];
	struct coll_step step[RANKS_MAX];
	void *memory[RANKS_MAX][2];
	u32 reductions[RANKS_MAX];	/* done so far */
	u32 stop_after[RANKS_MAX];	/* the rank stops after this many reductions */
	struct coll_round_message {
		u32 from, to, slot;
		u64 bytes;
	} message[MESSAGES_MAX];
	u32 messages;
};

static void world_init(struct world *w, u32 ranks, u64 redundancy)
{
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, "butterfly-redundant");
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_call call[RANKS_MAX];
	u32 r;

	assert_non_null(algo);
	tuning.redundancy = redundancy;
	for (r = 0; r < ranks; r++)
		call[r] = (struct coll_call){
			.collective = COLL_ALLREDUCE, .rank = r, .ranks = ranks,
			.type = COLL_INT32, .reduction = COLL_SUM, .element = 4,
			.commutative = true, .count = 1,
		};
	memset(w, 0, sizeof(*w));
	w->ranks = ranks;
	w->schedules = interpret_new(algo, call, ranks, &tuning);
	assert_string_equal(w->schedules->error, "");
	for (r = 0; r < ranks; r++) {
		const struct coll_schedule *s = interpret_schedule(w->schedules, r);

		w->memory[r][0] = malloc(coll_plan_bytes(s));
		coll_plan_init(&w->plan[r], s, w->memory[r][0]);
		w->memory[r][1] = malloc(coll_step_bytes(&w->plan[r]));
		coll_step_init(&w->step[r], &w->plan[r], w->memory[r][1]);
		w->stop_after[r] = COLL_NONE;
	}
}

static void world_free(struct world *w)
{
	u32 r;

	for (r = 0; r < w->ranks; r++) {
		free(w->memory[r][0]);
		free(w->memory[r][1]);
	}
	interpret_free(w->schedules);
}

static bool stopped(const struct world *w, u32 rank)
{
	return w->reductions[rank] >= w->stop_after[rank];
}

/* Starts all that can start on this rank; everything but a receive is done at once. */
static bool move_rank(struct world *w, u32 rank)
{
	const struct coll_schedule *s = interpret_schedule(w->schedules, rank);
	bool moved = false;
	u32 index;

	while (!stopped(w, rank) && (index = coll_step_next(&w->step[rank])) != COLL_NONE) {
		const struct coll_op *op = &coll_ops(s)[index];

		moved = true;
		if (op->kind == COLL_OP_RECV)
			continue;
		if (op->kind == COLL_OP_SEND) {
			assert_true(w->messages < MESSAGES_MAX);
			w->message[w->messages++] = (struct coll_round_message){
				rank, coll_op_rank(s, op), op->slot, op->bytes,
			};
		}
		w->reductions[rank] += op->kind == COLL_OP_REDUCE;
		coll_step_done(&w->step[rank], index);
	}
	return moved;
}

static bool move_message(struct world *w, u32 i)
{
	const struct coll_round_message m = w->message[i];
	u32 op;
	int match;

	if (stopped(w, m.to))
		return false;
	match = coll_match(&w->step[m.to], m.from, m.slot, m.bytes, &op);
	assert_true(match >= 0);
	if (match == COLL_MATCH_UNEXPECTED)
		return false;
	w->message[i] = w->message[--w->messages];
	if (match == COLL_MATCH_POSTED)
		coll_step_done(&w->step[m.to], op);
	return true;
}

/* Until nothing moves any more. */
static void settle(struct world *w)
{
	bool moved;
	u32 i;

	do {
		moved = false;
		for (i = 0; i < w->ranks; i++)
			moved |= move_rank(w, i);
		for (i = 0; i < w->messages; i++)
			moved |= move_message(w, i);
	} while (moved);
}

/* Ranks that are neither stopped nor done. */
static u32 held_up(const struct world *w)
{
	u32 count = 0, r;

	for (r = 0; r < w->ranks; r++)
		count += !stopped(w, r) && !coll_step_finished(&w->step[r]);
	return count;
}

/*
 * These vranks (a set of bits) stop after exchange j. Returns how many other
 * ranks that holds up; later, the stopped ones go on and all must end.
 */
static u32 delay(u32 ranks, u64 redundancy, u32 j, u64 vranks)
{
	const struct coll_fold fold = fold_of(ranks);
	struct world *w = malloc(sizeof(*w));
	u32 vrank, r, result;

	world_init(w, ranks, redundancy);
	for (vrank = 0; vrank < fold.vranks; vrank++)
		if (vranks >> vrank & 1)
			w->stop_after[fold_rank(&fold, vrank)] = j + fold_is_proxy(&fold, vrank);
	settle(w);
	result = held_up(w);
	for (r = 0; r < ranks; r++)
		w->stop_after[r] = COLL_NONE;
	settle(w);
	assert_int_equal(held_up(w), 0);
	world_free(w);
	free(w);
	return result;
}

/* The vranks whose low j bits are `class`. */
static u64 class_vranks(u32 j, u32 class)
{
	u64 vranks = 0;
	u32 vrank;

	for (vrank = class; vrank < 64; vrank += 1u << j)
		vranks |= (u64)1 << vrank;
	return vranks;
}

static u64 random_vranks(u64 *random)
{
	return (u64)interpret_random(random, 1u << 31) << 32 | interpret_random(random, 1u << 31);
}

/* One rank of it, some at random, all: of every class after every exchange up to T. */
static void a_late_class_delays_no_other_rank(void **state)
{
	u32 ranks, t, j, class, i;
	u64 random = 1;

	(void)state;
	for (ranks = 2; ranks <= RANKS_MAX; ranks++)
		for (t = 1; t <= fold_of(ranks).exchanges; t++)
			for (j = 1; j <= t; j++)
				for (class = 0; class < 1u << j; class++) {
					const u64 all = class_vranks(j, class);

					for (i = 0; i < 3; i++)
						assert_int_equal(delay(ranks, t, j,
							all & random_vranks(&random)), 0);
					assert_int_equal(delay(ranks, t, j, 1u << class), 0);
					assert_int_equal(delay(ranks, t, j, all), 0);
				}
}

static void no_part_of_a_class_of_16_ranks_delays_others(void **state)
{
	u32 chosen, i;

	(void)state;
	for (chosen = 0; chosen < 1u << 8; chosen++) {
		u64 vranks = 0;

		for (i = 0; i < 8; i++)
			vranks |= (u64)(chosen >> i & 1) << 2 * i;
		assert_int_equal(delay(16, 1, 1, vranks), 0);
		assert_int_equal(delay(16, 1, 1, vranks << 1), 0);
		assert_int_equal(delay(19, 1, 1, vranks), 0);
		assert_int_equal(delay(31, 2, 1, vranks << 1), 0);
	}
}

/* Delays that are not absorbed: so the tests above could fail. */
static void delays_beyond_one_class_are_felt(void **state)
{
	u32 ranks;

	(void)state;
	for (ranks = 4; ranks <= RANKS_MAX; ranks++) {
		assert_true(delay(ranks, 0, 1, 1) > 0);	/* no redundancy */
		assert_true(delay(ranks, 1, 1, 3) > 0);	/* in both classes */
		assert_true(delay(ranks, 1, 0, 1) > 0);	/* before the first exchange */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_class_delays_no_other_rank),
		cmocka_unit_test(no_part_of_a_class_of_16_ranks_delays_others),
		cmocka_unit_test(delays_beyond_one_class_are_felt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
