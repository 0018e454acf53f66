// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Calls that late messages held up, by what ranks note: counted as often as they were, whatever else ranks waited for,
 * and the same from the same sum.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/exec/delays.h"

enum { RANKS = 4, CALL_NS = 15000 };

static struct coll_delays all[RANKS];
static uint64_t clock_of[RANKS], offset[RANKS];
static uint32_t number;
static uint64_t state;

static uint32_t random_below(uint32_t bound)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % bound;
}

static int begin(void **unused)
{
	int rank;

	(void)unused;
	state = 7;
	number = 0;
	for (rank = 0; rank < RANKS; rank++) {
		coll_delays_init(&all[rank]);
		offset[rank] = clock_of[rank] = (rank + 1) * 1000000000000ull;
	}
	return 0;
}

/* Of all ranks, on the clock of nobody. */
static uint64_t shared_now(int rank)
{
	return clock_of[rank] - offset[rank];
}

/*
 * All send to all. Each rank's message is late to one other by so much, `receiver` -1: none is. This rank comes `behind`
 * later than it could.
 */
static void call(int receiver, uint64_t delay, int late_rank, uint64_t behind)
{
	uint64_t sent[RANKS], last = 0;
	int rank;

	for (rank = 0; rank < RANKS; rank++) {
		clock_of[rank] += rank == late_rank ? behind : 0;
		sent[rank] = shared_now(rank);
		last = sent[rank] > last ? sent[rank] : last;
		coll_delays_begin(&all[rank], number, true,
				  all[rank].gone + (rank == late_rank && behind > DELAY_LATE_NS ? behind : 0),
				  clock_of[rank]);
	}
	for (rank = 0; rank < RANKS; rank++) {
		const uint64_t there = last + CALL_NS + (rank == receiver ? delay : 0);

		if (there - sent[rank] > DELAY_WAITED_NS)
			coll_delays_note(&all[rank], number, there - sent[rank], 0);
		clock_of[rank] = there + offset[rank];
	}
	number++;
}

/* Some call of so many in between. */
static void calls(int count)
{
	while (count--)
		call(-1, 0, -1, 0);
}

static struct coll_delays_found survey(void)
{
	struct coll_delay_cell sum[DELAY_CELLS] = { { 0 } }, cell[DELAY_CELLS];
	struct coll_delays_found found = { 0 }, other;
	uint64_t notes = 0;
	int rank, i;

	for (rank = 0; rank < RANKS; rank++) {
		notes += all[rank].notes;
		coll_delays_take(&all[rank], cell);
		for (i = 0; i < DELAY_CELLS; i++) {
			sum[i].tag += cell[i].tag;
			sum[i].runs += cell[i].runs;
			sum[i].ranks += cell[i].ranks;
			sum[i].waited += cell[i].waited;
			sum[i].late += cell[i].late;
		}
	}
	for (rank = 0; rank < RANKS; rank++) {
		other = coll_delays_collect(&all[rank], sum, notes);
		if (rank)
			assert_memory_equal(&other, &found, sizeof(found));
		found = other;
	}
	return found;
}

static void a_late_message_is_found_once(void **unused)
{
	struct coll_delays_found found;

	(void)unused;
	calls(1);
	survey();
	calls(500);
	call(2, 3000000, -1, 0);
	calls(500);
	found = survey();
	assert_int_equal(found.seen, 1);
	assert_float_equal(found.runs, 1, 1e-9);
	assert_float_equal(found.seconds, 3.015e-3, 1e-6);
	calls(500);
	found = survey();
	assert_int_equal(found.seen, 0);
}

/* The ranks that wait for the one that was held up wait for a late rank. */
static void many_are_counted_by_a_part(void **unused)
{
	double runs = 0, seconds = 0;
	int i, k, late = 0;

	(void)unused;
	calls(1);
	survey();
	for (i = 0; i < 60; i++) {
		struct coll_delays_found found;

		for (k = 0; k < 300; k++) {
			call(random_below(RANKS), 1000000, -1, 0);
			calls(5 + random_below(30));
		}
		found = survey();
		assert_true(found.seen <= DELAY_CELLS);
		if (i < 2)		/* how many there are is not known yet */
			continue;
		late += 300;
		runs += found.runs;
		seconds += found.seconds;
	}
	assert_true(runs > 0.8 * late && runs < 1.25 * late);
	assert_true(seconds > 0.8e-3 * late && seconds < 1.3e-3 * late);
}

/* The poll in which it ended sees the clock after that; another group's run may, too. */
static void a_gap_at_the_end_of_a_run_is_its_own(void **unused)
{
	struct coll_delay_cell cell[DELAY_CELLS];
	uint64_t late = 0;
	int i;

	(void)unused;
	coll_delays_begin(&all[0], 5, true, 7, 1000);
	coll_delays_gone(&all[0], 5, 7);
	coll_delays_begin(&all[0], 6, true, 7 + 3000000, 2000);
	coll_delays_take(&all[0], cell);
	for (i = 0; i < DELAY_CELLS; i++)
		late += cell[i].runs == 5 ? cell[i].late : 0;
	assert_int_equal(late, 3000000);
}

static void a_late_rank_is_no_late_message(void **unused)
{
	int i;

	(void)unused;
	calls(1);
	survey();
	for (i = 0; i < 20000; i++) {
		call(-1, 0, random_below(RANKS), random_below(1000000));
		if (i % 300 == 0)
			assert_int_equal(survey().seen, 0);
	}
}

/* ... and where ranks are late by less than others wait, the rest is a message's. */
static void what_late_ranks_explain_is_left_out(void **unused)
{
	struct coll_delays_found found;

	(void)unused;
	calls(1);
	survey();
	call(2, 3000000, 1, 500000);
	found = survey();
	assert_int_equal(found.seen, 1);
	assert_true(found.seconds > 0.9e-3 && found.seconds < 3.1e-3);
	call(2, 1000000, 1, 5000000);
	assert_int_equal(survey().seen, 0);
}

/* A rank that was late before, in a call that needs nobody, is late until one that needs all. */
static void who_was_late_stays_it(void **unused)
{
	struct coll_delays *delays = &all[0];
	struct coll_delay_cell cell[DELAY_CELLS];
	const uint64_t now = 1000000000;
	uint64_t late = 0;
	uint32_t i;

	(void)unused;
	coll_delays_begin(delays, 0, true, 0, now);
	coll_delays_take(delays, cell);
	coll_delays_begin(delays, 1, false, 0, now + DELAY_LATE_NS / 2);
	coll_delays_begin(delays, 2, false, 0, now + DELAY_LATE_NS + 1);
	coll_delays_begin(delays, 3, true, 0, now + DELAY_LATE_NS + 2);
	coll_delays_begin(delays, 4, true, 0, now + DELAY_LATE_NS + 3);
	assert_int_equal(delays->notes, 2);
	coll_delays_take(delays, cell);
	for (i = 0; i < DELAY_CELLS; i++)
		late += cell[i].late;
	assert_int_equal(late, DELAY_LATE_NS + 1 + DELAY_LATE_NS + 2);
}

static void what_no_ranks_add_up_to_is_left_out(void **unused)
{
	struct coll_delay_cell sum[DELAY_CELLS], noted[DELAY_CELLS];
	struct coll_delays_found found;
	int i, k;

	(void)unused;
	coll_delays_note(&all[0], 5, 1000000, 0);
	coll_delays_take(&all[0], noted);
	found = coll_delays_collect(&all[0], noted, 1);
	assert_int_equal(found.seen, 1);
	for (k = 0; k < 1000; k++) {
		for (i = 0; i < DELAY_CELLS; i++) {
			sum[i] = noted[i];
			sum[i].tag += k % 4 == 0;
			sum[i].runs += k % 4 == 1;
			sum[i].ranks += k % 4 == 2;
			sum[i].waited = k % 4 == 3 ? UINT64_MAX : sum[i].waited;
		}
		found = coll_delays_collect(&all[0], sum, 1);
		assert_int_equal(found.seen, 0);
		memset(sum, random_below(256), sizeof(sum));
		found = coll_delays_collect(&all[0], sum, UINT64_MAX);
		assert_true(found.seen <= DELAY_CELLS && found.runs >= 0 && found.seconds >= 0);
		coll_delays_init(&all[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_late_message_is_found_once, begin),
		cmocka_unit_test_setup(many_are_counted_by_a_part, begin),
		cmocka_unit_test_setup(a_gap_at_the_end_of_a_run_is_its_own, begin),
		cmocka_unit_test_setup(a_late_rank_is_no_late_message, begin),
		cmocka_unit_test_setup(what_late_ranks_explain_is_left_out, begin),
		cmocka_unit_test_setup(who_was_late_stays_it, begin),
		cmocka_unit_test_setup(what_no_ranks_add_up_to_is_left_out, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
