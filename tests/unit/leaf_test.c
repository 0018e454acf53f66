// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What the butterflies with late ranks are for: once a late rank has sent its vector it holds up
 * nobody else, wherever it stops; and in the leaf-last form the others have all their work behind
 * them when it comes. Each rank's result needs its vector, so before that all wait. And where they are
 * chosen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "algo/redundancy/leaf.h"
#include "stall_world.h"

enum { RANKS_MAX = 40 };

static const char *const names[] = { "butterfly-leaf", "butterfly-leaf-last" };

static struct coll_tuning late_tuning(u32 first, u32 second)
{
	struct coll_tuning tuning = COLL_TUNING_UNSET;

	tuning.late[0] = first;
	tuning.late[1] = second;
	return tuning;
}

/* The late ranks stop after so many sends, or all of theirs. Returns whom that holds up. */
static u32 delay(const char *name, u32 ranks, const struct coll_tuning *tuning, u32 sends)
{
	struct stall_world *w = stall_new(name, ranks, tuning);
	u32 held_up, i;

	for (i = 0; i < COLL_LATE_MAX && tuning->late[i] != COLL_NONE; i++) {
		const u32 all = stall_ops(w, tuning->late[i], COLL_OP_SEND);

		stall_after(w, tuning->late[i], COLL_OP_SEND, sends < all ? sends : all);
	}
	held_up = stall_settle(w);
	stall_go_on(w);
	stall_free(w);
	return held_up;
}

static void a_late_rank_that_has_sent_delays_no_other(void **state)
{
	u32 ranks, late, i;

	(void)state;
	for (i = 0; i < 2; i++)
		for (ranks = 2; ranks <= RANKS_MAX; ranks++)
			for (late = 0; late < ranks; late++) {
				const struct coll_tuning tuning = late_tuning(late, COLL_NONE);

				assert_int_equal(delay(names[i], ranks, &tuning, ~0u), 0);
			}
}

static void two_late_ranks_neither(void **state)
{
	u32 ranks, late, other, i;

	(void)state;
	for (i = 0; i < 2; i++)
		for (ranks = 3; ranks <= 20; ranks++)
			for (late = 0; late < ranks; late++)
				for (other = 0; other < ranks; other++) {
					const struct coll_tuning tuning = late_tuning(late, other);

					assert_int_equal(delay(names[i], ranks, &tuning, ~0u), 0);
				}
}

/* In order of ranks it sends one message, to one partner; last, to the tree's radix at most. */
static void a_late_rank_sends_its_vector_and_no_more(void **state)
{
	u32 ranks, late;

	(void)state;
	for (ranks = 2; ranks <= RANKS_MAX; ranks++)
		for (late = 0; late < ranks; late++) {
			const struct coll_tuning tuning = late_tuning(late, COLL_NONE);
			struct stall_world *w = stall_new(names[0], ranks, &tuning);

			assert_int_equal(stall_ops(w, late, COLL_OP_SEND), 1);
			stall_free(w);
			w = stall_new(names[1], ranks, &tuning);
			assert_in_range(stall_ops(w, late, COLL_OP_SEND), 1, COLL_LEAF_RADIX);
			stall_free(w);
		}
}

/* Before it comes, the others with a virtual rank have but its vector to add. */
static void a_rank_taken_last_finds_all_else_done(void **state)
{
	u32 ranks, late, r;

	(void)state;
	for (ranks = 2; ranks <= RANKS_MAX; ranks++)
		for (late = 0; late < ranks; late++) {
			const struct coll_tuning tuning = late_tuning(late, COLL_NONE);
			struct stall_world *w = stall_new(names[1], ranks, &tuning);

			stall_after(w, late, COLL_OP_RECV, 0);
			assert_int_equal(stall_settle(w), ranks - 1);
			for (r = 0; r < ranks; r++)
				if (r != late && stall_ops(w, r, COLL_OP_REDUCE))
					assert_int_equal(stall_begun(w, r, COLL_OP_REDUCE) + 1,
							 stall_ops(w, r, COLL_OP_REDUCE));
			stall_go_on(w);
			stall_free(w);
		}
}

/* As many messages as the butterfly has, for any late rank. */
static void leaves_in_order_cost_no_message(void **state)
{
	const struct coll_tuning none = COLL_TUNING_UNSET;
	u32 ranks, late, r, plain, sent;

	(void)state;
	for (ranks = 2; ranks <= RANKS_MAX; ranks++) {
		struct stall_world *w = stall_new("butterfly", ranks, &none);

		for (plain = r = 0; r < ranks; r++)
			plain += stall_ops(w, r, COLL_OP_SEND);
		stall_free(w);
		for (late = 0; late < ranks; late++) {
			const struct coll_tuning tuning = late_tuning(late, COLL_NONE);

			w = stall_new(names[0], ranks, &tuning);
			for (sent = r = 0; r < ranks; r++)
				sent += stall_ops(w, r, COLL_OP_SEND);
			assert_int_equal(sent, plain);
			stall_free(w);
		}
	}
}

/* Delays that are felt: so the tests above could fail. */
static void delays_of_others_are_felt(void **state)
{
	struct coll_tuning tuning = late_tuning(0, COLL_NONE);
	u32 ranks;

	(void)state;
	for (ranks = 4; ranks <= RANKS_MAX; ranks++) {
		struct stall_world *w = stall_new("butterfly", ranks, &tuning);

		stall_after(w, ranks - 1, COLL_OP_SEND, 1);
		assert_true(stall_settle(w) > 0);
		stall_go_on(w);
		stall_free(w);
		assert_int_equal(delay(names[0], ranks, &tuning, 0), ranks - 1);
		assert_int_equal(delay(names[1], ranks, &tuning, 0), ranks - 1);
	}
}

/* ---- the choice ----------------------------------------------------------------- */

static struct coll_call sum_of(u32 ranks, bool commutative)
{
	return (struct coll_call){
		.collective = COLL_ALLREDUCE, .ranks = ranks, .type = COLL_DOUBLE,
		.reduction = COLL_SUM, .element = 8, .commutative = commutative, .count = 1,
	};
}

static struct coll_machine machine_with(struct coll_late late)
{
	return (struct coll_machine){ .alpha = 20e-6, .overhead = 3e-6, .beta = 1e-10,
				      .byte_gap = 1e-10, .gamma = 1e-10, .late = late };
}

static const char *choice(const struct coll_call *call, const struct coll_machine *m)
{
	const struct coll_tuning unset = COLL_TUNING_UNSET;

	return coll_algo_choose(call, &unset, m)->name;
}

static void a_rank_that_begins_late_is_taken_last(void **state)
{
	const struct coll_late late = { .ranks = 64, .rank = { 5, COLL_NONE, COLL_NONE, COLL_NONE },
					.part = 0.5, .behind = 300e-6 };
	struct coll_machine m = machine_with(late);
	struct coll_call call = sum_of(64, true);
	struct coll_tuning tuning = COLL_TUNING_UNSET;

	(void)state;
	assert_string_equal(choice(&call, &m), names[1]);
	coll_late_choose(coll_algo_find(COLL_ALLREDUCE, names[1]), &call, &m, &tuning);
	assert_int_equal(tuning.late[0], 5);
	assert_int_equal(tuning.late[1], COLL_NONE);
	assert_in_range(tuning.radix, 4, 64);
	call = sum_of(64, false);
	assert_string_equal(choice(&call, &m), "butterfly");
	call = sum_of(32, true);	/* these numbers are another group's */
	assert_string_equal(choice(&call, &m), "butterfly");
	call = sum_of(64, true);
	m.late.behind = 1e-6;		/* not worth a percent */
	assert_string_equal(choice(&call, &m), "butterfly");
	m.late.ranks = 0;
	assert_string_equal(choice(&call, &m), "butterfly");
}

static void a_rank_that_stops_is_a_leaf(void **state)
{
	const struct coll_late late = { .ranks = 64, .rank = { 5, COLL_NONE, COLL_NONE, COLL_NONE },
					.stops = { 500, 100e-6 }, .alone = true };
	struct coll_machine m = machine_with(late);
	struct coll_call call = sum_of(64, false);
	struct coll_tuning tuning = COLL_TUNING_UNSET;

	(void)state;
	m.noise[0] = (struct coll_noise_rate){ 500. / 64, 100e-6 };
	assert_string_equal(choice(&call, &m), names[0]);
	m.late.alone = false;		/* others have noise too: T */
	m.noise[0].rate = 100;
	assert_string_not_equal(choice(&call, &m), names[0]);
	tuning.late[0] = 7;		/* explicit ranks stay */
	coll_late_choose(coll_algo_find(COLL_ALLREDUCE, names[0]), &call, &m, &tuning);
	assert_int_equal(tuning.late[0], 7);
}

/*
 * Delays of few latencies: a way round would take T as long. Longer ones T tolerates, if messages are cheap, also that
 * of the vector; and where all links are bad a leaf helps nobody.
 */
static void a_rank_with_bad_links_is_a_leaf(void **state)
{
	const struct coll_late late = { .ranks = 64, .rank = { 5, COLL_NONE, COLL_NONE, COLL_NONE },
					.links = { 2000, 40e-6 }, .links_alone = true, .peer = COLL_NONE };
	struct coll_machine m = machine_with(late);
	struct coll_call call = sum_of(64, false);
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	double many, one;

	(void)state;
	m.link_noise = (struct coll_noise_rate){ 2000. / 32, 40e-6 };
	assert_string_equal(choice(&call, &m), names[0]);
	tuning.late[0] = 5;
	many = coll_leaf_links_delay(&call, &tuning, false, &m);
	m.late.peer = 40;		/* the link to it is used in no exchange that others wait for */
	one = coll_leaf_links_delay(&call, &tuning, false, &m);
	m.late.peer = 4;		/* its vector takes this one */
	assert_true(one < coll_leaf_links_delay(&call, &tuning, false, &m));
	assert_true(coll_leaf_links_delay(&call, &tuning, false, &m) < many);
	m.late.peer = COLL_NONE;
	m.late.links_alone = false;
	assert_string_not_equal(choice(&call, &m), names[0]);
	m.late.links_alone = true;
	m.overhead = 1e-6;
	m.late.links = (struct coll_noise_rate){ 20, 5e-3 };
	m.link_noise = (struct coll_noise_rate){ 20. / 32, 5e-3 };
	assert_non_null(strstr(choice(&call, &m), "-re"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_rank_that_has_sent_delays_no_other),
		cmocka_unit_test(two_late_ranks_neither),
		cmocka_unit_test(a_late_rank_sends_its_vector_and_no_more),
		cmocka_unit_test(a_rank_taken_last_finds_all_else_done),
		cmocka_unit_test(leaves_in_order_cost_no_message),
		cmocka_unit_test(delays_of_others_are_felt),
		cmocka_unit_test(a_rank_that_begins_late_is_taken_last),
		cmocka_unit_test(a_rank_that_stops_is_a_leaf),
		cmocka_unit_test(a_rank_with_bad_links_is_a_leaf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
