// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The first cause of a job that does not go on, from pages made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/lib/flight.h"

static struct flight_job job;

static void is_cause(enum coll_flight_why why, uint32_t rank)
{
	struct coll_flight_cause cause;

	coll_flight_find_cause(&job.job, &cause);
	if (cause.why != why)
		printf("# %s\n", cause.text);
	assert_string_equal(coll_flight_why_names[cause.why], coll_flight_why_names[why]);
	assert_int_equal(cause.rank, rank);
	flight_close(&job);
}

static void nobody_waits(void **state)
{
	(void)state;
	flight_open(&job, 2);
	is_cause(COLL_FLIGHT_NO_CAUSE, COLL_FLIGHT_NO_RANK);
}

static void a_rank_that_has_not_called(void **state)
{
	(void)state;
	flight_open(&job, 3);
	flight_wait(&job, 0, 0, 17, 1);
	flight_wait(&job, 1, 0, 17, 2);
	flight_went(&job, 2, 0, 17);
	is_cause(COLL_FLIGHT_OUTSIDE, 2);
}

static void groups_in_different_orders(void **state)
{
	(void)state;
	flight_open(&job, 2);
	flight_wait(&job, 0, 0, 17, 1);
	flight_went(&job, 0, 1, 5);
	flight_wait(&job, 1, 1, 5, 0);
	flight_went(&job, 1, 0, 17);
	is_cause(COLL_FLIGHT_DEADLOCK, 0);
}

/* What the other has sent before it left the call is on its way: no circle waits for it. */
static void a_call_further_is_no_deadlock(void **state)
{
	(void)state;
	flight_open(&job, 2);
	flight_wait(&job, 0, 0, 18, 1);
	flight_wait(&job, 1, 0, 17, 0);
	is_cause(COLL_FLIGHT_IN_FLIGHT, 0);
}

static void a_lost_path_between_calls(void **state)
{
	(void)state;
	flight_open(&job, 2);
	flight_wait(&job, 0, 0, 18, 1);
	flight_wait(&job, 1, 0, 17, 0);
	flight_lost(&job, 0, 1, 3);
	is_cause(COLL_FLIGHT_LOST_PATH, 0);
}

static void a_lost_path_in_one_call(void **state)
{
	(void)state;
	flight_open(&job, 2);
	flight_wait(&job, 0, 0, 17, 1);
	flight_wait(&job, 1, 0, 17, 0);
	flight_lost(&job, 1, 0, 1);
	is_cause(COLL_FLIGHT_LOST_PATH, 1);
}

/* The job goes on: nobody waits for long when it is looked at. */
static void a_rank_that_calls_late_again_and_again(void **state)
{
	uint32_t rank;

	(void)state;
	flight_open(&job, 4);
	for (rank = 0; rank < 4; rank++)
		flight_went(&job, rank, 0, 30);
	flight_late(&job, 2, 30, 50000000);
	is_cause(COLL_FLIGHT_SLOW, 2);
}

static void a_rank_that_is_last_by_chance(void **state)
{
	uint32_t rank;

	(void)state;
	flight_open(&job, 4);
	for (rank = 0; rank < 4; rank++)
		flight_went(&job, rank, 0, 30);
	flight_late(&job, 2, 30, 50000);
	is_cause(COLL_FLIGHT_NO_CAUSE, COLL_FLIGHT_NO_RANK);
}

static void four_calls_prove_nothing(void **state)
{
	(void)state;
	flight_open(&job, 2);
	flight_went(&job, 0, 0, 4);
	flight_went(&job, 1, 0, 4);
	flight_late(&job, 1, 4, 50000000);
	is_cause(COLL_FLIGHT_NO_CAUSE, COLL_FLIGHT_NO_RANK);
}

/* Under an MPI ranks wait for each other by its messages, too. */
static void a_stopped_rank_that_one_outside_may_wait_for(void **state)
{
	(void)state;
	flight_open(&job, 3);
	flight_wait(&job, 0, 0, 17, 1);
	flight_went(&job, 1, 0, 17);
	flight_went(&job, 2, 0, 17);
	job.set.seen[2]->state = 'T';
	is_cause(COLL_FLIGHT_STOPPED, 2);
}

/* What it waits for now is nearer than what it did before. */
static void a_late_rank_is_not_blamed_for_another(void **state)
{
	(void)state;
	flight_open(&job, 3);
	flight_wait(&job, 0, 0, 17, 1);
	flight_wait(&job, 2, 0, 17, 1);
	flight_went(&job, 1, 0, 17);
	flight_late(&job, 2, 17, 50000000);
	is_cause(COLL_FLIGHT_OUTSIDE, 1);
}

static void a_message_of_a_call_just_left_may_still_come(void **state)
{
	(void)state;
	flight_open(&job, 2);
	flight_wait(&job, 0, 0, 17, 1);
	flight_went(&job, 1, 0, 18);
	job.set.seen[1]->page.left = FLIGHT_NOW - 1000000;
	is_cause(COLL_FLIGHT_NO_CAUSE, COLL_FLIGHT_NO_RANK);
}

static void wait_in_kernel(uint32_t ranks)
{
	uint32_t rank;

	flight_open(&job, ranks);
	for (rank = 0; rank < ranks; rank++) {
		flight_wait(&job, rank, 0, 17, (rank + 1) % ranks);
		flight_offload(&job, rank, 0, 'I');
	}
}

static void a_kernel_thread_that_gets_no_time(void **state)
{
	(void)state;
	wait_in_kernel(3);
	job.set.seen[1]->owner_state = 'R';
	is_cause(COLL_FLIGHT_NO_CPU, 1);
}

static void kernel_threads_that_run(void **state)
{
	(void)state;
	wait_in_kernel(3);
	job.set.seen[1]->owner_state = 'R';
	job.set.seen[1]->flags &= ~COLL_FLIGHT_OWNER_STEADY;
	is_cause(COLL_FLIGHT_NO_CAUSE, COLL_FLIGHT_NO_RANK);
}

static void groups_in_different_orders_in_the_kernel(void **state)
{
	(void)state;
	flight_open(&job, 2);
	flight_wait(&job, 0, 0, 17, 1);
	flight_went(&job, 0, 1, 5);
	flight_offload(&job, 0, 0, 'I');
	flight_wait(&job, 1, 1, 5, 0);
	flight_went(&job, 1, 0, 17);
	flight_offload(&job, 1, 1, 'I');
	is_cause(COLL_FLIGHT_DEADLOCK, 0);
}

static void a_rank_that_the_kernel_waits_for(void **state)
{
	(void)state;
	wait_in_kernel(3);
	memset(&job.set.seen[2]->page.run, 0, sizeof(job.set.seen[2]->page.run));
	flight_went(&job, 2, 0, 17);
	job.set.seen[2]->page.inside = 0;
	job.set.seen[2]->page.now = FLIGHT_NOW - FLIGHT_WAITED;
	is_cause(COLL_FLIGHT_OUTSIDE, 2);
}

/* As hostile dumps say it: that must not be followed into nothing. */
static void a_rank_twice_and_one_that_waits_for_itself(void **state)
{
	(void)state;
	flight_open(&job, 4);
	flight_wait(&job, 3, 0, 18, 2);
	flight_wait(&job, 2, 0, 17, 2);
	job.set.seen[1]->page.rank = 0;
	coll_flight_sort(&job.set);
	assert_int_equal(job.set.count, 3);
	job.job.count = job.set.count;
	is_cause(COLL_FLIGHT_NO_CAUSE, COLL_FLIGHT_NO_RANK);
}

static void in_function(uint32_t rank, double seconds)
{
	struct coll_flight_page *page = &job.set.seen[rank]->page;

	flight_wait(&job, rank, 0, 17, !rank);
	page->user_function = 1;
	page->now = page->left = FLIGHT_NOW - seconds * 1e9;
}

static void is_alone(enum coll_flight_why why, uint32_t rank, double seconds)
{
	struct coll_flight_cause cause;

	coll_flight_find_cause(&job.job, &cause);
	assert_true(cause.alone);
	assert_int_equal(cause.length, 0);
	assert_true(cause.seconds > 0.9 * seconds && cause.seconds < 1.1 * seconds);
	is_cause(why, rank);
}

/* What it waited for before is gone: that is no matter while its function runs. */
static void a_rank_that_reduces_alone(void **state)
{
	(void)state;
	flight_open(&job, 2);
	in_function(0, 49);
	flight_went(&job, 1, 0, 18);
	job.set.seen[1]->page.left = FLIGHT_NOW - 2000000000;
	is_alone(COLL_FLIGHT_IN_FUNCTION, 0, 49);
	flight_open(&job, 1);
	in_function(0, 49);
	is_alone(COLL_FLIGHT_IN_FUNCTION, 0, 49);
}

static void a_function_that_has_just_begun(void **state)
{
	(void)state;
	flight_open(&job, 2);
	flight_went(&job, 0, 0, 18);
	flight_went(&job, 1, 0, 18);
	job.set.seen[0]->page.user_function = 1;
	is_cause(COLL_FLIGHT_NO_CAUSE, COLL_FLIGHT_NO_RANK);
}

static void a_stopped_rank_that_nobody_waits_for(void **state)
{
	(void)state;
	flight_open(&job, 3);
	flight_went(&job, 1, 0, 17);
	job.set.seen[1]->state = 'T';
	job.set.seen[1]->page.now = job.set.seen[1]->page.left = FLIGHT_NOW - 12000000000;
	is_alone(COLL_FLIGHT_STOPPED, 1, 12);
}

/* Who leaves a job does not go on either. */
static void a_rank_that_has_left_is_no_fact(void **state)
{
	(void)state;
	flight_open(&job, 2);
	flight_went(&job, 0, 0, 17);
	flight_went(&job, 1, 0, 17);
	job.set.seen[1]->state = 'Z';
	job.set.seen[1]->page.now = job.set.seen[1]->page.left = FLIGHT_NOW - 12000000000;
	job.set.seen[0]->state = 'T';
	job.set.seen[0]->page.ended = FLIGHT_NOW - 2000000000;
	job.set.seen[0]->page.now = job.set.seen[0]->page.left = job.set.seen[0]->page.ended;
	is_cause(COLL_FLIGHT_NO_CAUSE, COLL_FLIGHT_NO_RANK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_waits),
		cmocka_unit_test(a_rank_that_has_not_called),
		cmocka_unit_test(groups_in_different_orders),
		cmocka_unit_test(a_call_further_is_no_deadlock),
		cmocka_unit_test(a_lost_path_between_calls),
		cmocka_unit_test(a_lost_path_in_one_call),
		cmocka_unit_test(a_rank_that_calls_late_again_and_again),
		cmocka_unit_test(a_rank_that_is_last_by_chance),
		cmocka_unit_test(four_calls_prove_nothing),
		cmocka_unit_test(a_stopped_rank_that_one_outside_may_wait_for),
		cmocka_unit_test(a_late_rank_is_not_blamed_for_another),
		cmocka_unit_test(a_message_of_a_call_just_left_may_still_come),
		cmocka_unit_test(a_kernel_thread_that_gets_no_time),
		cmocka_unit_test(kernel_threads_that_run),
		cmocka_unit_test(groups_in_different_orders_in_the_kernel),
		cmocka_unit_test(a_rank_that_the_kernel_waits_for),
		cmocka_unit_test(a_rank_twice_and_one_that_waits_for_itself),
		cmocka_unit_test(a_rank_that_reduces_alone),
		cmocka_unit_test(a_function_that_has_just_begun),
		cmocka_unit_test(a_stopped_rank_that_nobody_waits_for),
		cmocka_unit_test(a_rank_that_has_left_is_no_fact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
