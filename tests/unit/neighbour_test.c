// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* When a thread takes it that somebody computes on its core (libcoll/engine/neighbour.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "libcoll/engine/engine.h"

static const uint64_t us = 1000, ms = 1000000;

static struct coll_engine engine;
static struct coll_neighbour *const neighbour = &engine.neighbour;
static uint64_t now;

/* ---- a world with a clock of its own ---------------------------------------------------- */

static int begin(void **state)
{
	(void)state;
	now = COLL_SECOND;
	engine = (struct coll_engine){ .spin_ns = 100 * us };
	coll_neighbour_init(neighbour, COLL_WAIT_AUTO, false);
	return 0;
}

static int end(void **state)
{
	(void)state;
	coll_neighbour_let_go(neighbour);
	return 0;
}

/* A wait with one yield that takes so long, if the wait yields at all. Whether it does. */
static bool wait_once(uint64_t yield_ns)
{
	const uint64_t until = coll_engine_polls_until(&engine, now), before = now;
	const bool yields = until >= now + engine.spin_ns;

	now += yields ? yield_ns : 30 * us;
	if (yields)
		coll_neighbour_yielded(neighbour, before, now);
	return yields;
}

static void wait_often(uint64_t yield_ns, int waits)
{
	while (waits--)
		wait_once(yield_ns);
}

static void a_neighbour_comes(void)
{
	wait_often(8 * ms, 8);
	assert_true(coll_neighbour_is_near(neighbour));
}

/* Of this thread, ns; 0: the kernel has none. */
static uint64_t slice(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		uint32_t nice, priority;
		uint64_t slice, deadline, period;
	} schedule;

	memset(&schedule, 0, sizeof(schedule));
	assert_false(syscall(SYS_sched_getattr, 0, &schedule, sizeof(schedule), 0));
	return schedule.slice;
}

/* ---- tests ------------------------------------------------------------------------------ */

static void yields_that_return_soon_go_on(void **state)
{
	(void)state;
	wait_often(2 * us, 100000);
	assert_false(neighbour->near);
	assert_true(wait_once(2 * us));
}

/* Ranks of a crowded node that reduce long vectors. */
static void nor_do_turns_of_other_ranks_end_them(void **state)
{
	(void)state;
	wait_often(900 * us, 1000);
	assert_false(neighbour->near);
}

/* Each tenth of a second a daemon takes 2 ms. */
static void noise_is_no_neighbour(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		wait_once(2 * ms);
		wait_often(10 * us, 9800);
		assert_false(coll_neighbour_is_near(neighbour));
	}
}

/* In another group of the scheduler's: 4 ms of waits, of 50 us each, then 4 ms lost. */
static void slices_lost_now_and_then_are_borne(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		wait_often(50 * us, 80);
		wait_once(4 * ms);
		assert_false(coll_neighbour_is_near(neighbour));
	}
}

static void beside_a_neighbour_waits_sleep(void **state)
{
	(void)state;
	a_neighbour_comes();
	assert_false(wait_once(8 * ms));
	assert_int_equal(coll_engine_polls_until(&engine, now), now + COLL_KEEP_CORE_NS);
	engine.crowded = true;
	assert_int_equal(coll_engine_polls_until(&engine, now), now);
}

static void begin_crowded(void)
{
	engine.crowded = true;
	coll_neighbour_init(neighbour, COLL_WAIT_AUTO, true);
}

/* Ranks that start on this core, or copy 16 MB: slices are lost to them, but not in wait after wait. */
static void where_cores_are_shared_it_takes_more_waits(void **state)
{
	int i;

	(void)state;
	begin_crowded();
	wait_often(8 * ms, 8);
	assert_false(neighbour->near);
	begin_crowded();
	for (i = 0; i < 1000; i++) {
		wait_often(20 * us, 2);
		wait_once(8 * ms);
		assert_false(neighbour->near);
	}
	wait_often(8 * ms, 100);
	assert_true(neighbour->near);
}

/* Several yields of one wait tell no more than one. */
static void one_long_wait_decides_nothing(void **state)
{
	int i;

	(void)state;
	coll_engine_polls_until(&engine, now);
	for (i = 0; i < 100; i++, now += 8 * ms)
		coll_neighbour_yielded(neighbour, now, now + 8 * ms);
	assert_false(neighbour->near);
}

/* It was none: the first trial is soon. */
static void a_mistake_ends_soon(void **state)
{
	uint64_t from;

	(void)state;
	a_neighbour_comes();
	for (from = now; neighbour->near && now - from < COLL_SECOND;)
		wait_once(2 * us);
	assert_false(neighbour->near);
	assert_in_range(now - from, 0, 150 * ms);
}

/* Long messages, beside which a neighbour was seen for long; then short ones, without. */
static void another_pace_of_waits_is_tried_at_once(void **state)
{
	const uint64_t until = now + 20 * COLL_SECOND;
	uint64_t from;

	(void)state;
	a_neighbour_comes();
	for (; now < until; now += 5 * ms)
		wait_once(8 * ms);
	while (neighbour->trial_at < now + 500 * ms)
		wait_once(8 * ms);
	for (from = now; neighbour->near && now - from < COLL_SECOND;)
		wait_once(2 * us);
	assert_false(neighbour->near);
	assert_in_range(now - from, 0, 100 * ms);
}

/* It also comes after a long time without one. */
static void a_neighbour_comes_late(void **state)
{
	(void)state;
	wait_often(10 * us, 1000000);
	a_neighbour_comes();
}

/* Trials take about a hundredth of the time. */
static void while_it_stays_trials_are_few(void **state)
{
	uint64_t lost = 0, from;

	(void)state;
	a_neighbour_comes();
	for (from = now; now - from < 60 * COLL_SECOND;)
		lost += wait_once(8 * ms) ? 8 * ms : 0;
	assert_true(coll_neighbour_is_near(neighbour));
	assert_in_range(lost, 1, 60 * COLL_SECOND / 100);
}

static void once_it_is_gone_waits_yield_again(void **state)
{
	const uint64_t from = now;

	(void)state;
	a_neighbour_comes();
	while (neighbour->near && now - from < 60 * COLL_SECOND)
		wait_once(2 * us);
	assert_false(neighbour->near);
	assert_in_range(now - from, 0, 2 * COLL_SECOND);
	assert_true(wait_once(2 * us));
}

static void a_trial_of_one_wait_decides_nothing(void **state)
{
	(void)state;
	a_neighbour_comes();
	now = neighbour->trial_at;
	assert_true(wait_once(2 * us));
	now += COLL_SECOND;		/* the application computes */
	assert_true(wait_once(2 * us));
	assert_true(coll_neighbour_is_near(neighbour));
}

static void an_option_forbids_it(void **state)
{
	(void)state;
	coll_neighbour_init(neighbour, COLL_WAIT_YIELD, false);
	wait_often(8 * ms, 100);
	assert_false(neighbour->near);
}

static void an_option_demands_it(void **state)
{
	(void)state;
	coll_neighbour_init(neighbour, COLL_WAIT_SLEEP, false);
	assert_false(wait_once(2 * us));
	now += 100 * COLL_SECOND;
	assert_false(wait_once(2 * us));
	assert_true(coll_neighbour_is_near(neighbour));
}

/* Who does not poll at all has nothing to decide. */
static void no_time_to_poll_stays_none(void **state)
{
	(void)state;
	engine.spin_ns = 0;
	coll_neighbour_init(neighbour, COLL_WAIT_SLEEP, false);
	assert_int_equal(coll_engine_polls_until(&engine, now), now);
}

static void slices_are_short_meanwhile(void **state)
{
	const uint64_t before = slice();

	(void)state;
	if (before <= 100 * us)
		skip();			/* a kernel before 6.12 */
	a_neighbour_comes();
	assert_int_equal(slice(), 100 * us);
	coll_neighbour_let_go(neighbour);
	assert_int_equal(slice(), before);
	coll_neighbour_take(neighbour);
	assert_int_equal(slice(), 100 * us);
	while (neighbour->near)
		wait_once(2 * us);
	assert_int_equal(slice(), before);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(yields_that_return_soon_go_on),
		TEST(nor_do_turns_of_other_ranks_end_them),
		TEST(noise_is_no_neighbour),
		TEST(slices_lost_now_and_then_are_borne),
		TEST(beside_a_neighbour_waits_sleep),
		TEST(where_cores_are_shared_it_takes_more_waits),
		TEST(one_long_wait_decides_nothing),
		TEST(a_mistake_ends_soon),
		TEST(another_pace_of_waits_is_tried_at_once),
		TEST(a_neighbour_comes_late),
		TEST(while_it_stays_trials_are_few),
		TEST(once_it_is_gone_waits_yield_again),
		TEST(a_trial_of_one_wait_decides_nothing),
		TEST(an_option_forbids_it),
		TEST(an_option_demands_it),
		TEST(no_time_to_poll_stays_none),
		TEST(slices_are_short_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
