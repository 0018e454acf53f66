// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Runs that are the engine's, and boards (libcoll/exec/board_runs.c): they read them until the thread may sleep, and
 * have left when it does. A message comes by one way at least, whatever the order of writer and reader, and counts
 * once.
 */
#include <string.h>

#include "board_world.h"
#include "libcoll/exec/alarm.h"

/* It is not executed in order, and posts what it sends. */
static void begin_run(struct coll_run *run)
{
	w.context.engine.now = w.context.polled_at = coll_now();
	assert_int_equal(coll_exec_start(run, coll_now() + COLL_SECOND), 0);
	assert_int_equal(w.asked.sent_now[1] + w.asked.sent_now[2], 0);
	assert_int_equal(w.asked.sent[1] + w.asked.sent[2], 0);
}

/* ---- either way -------------------------------------------------------------------------------- */

/* Bits: the steps of the writer in their order among the four. Whether the reader finds it, and is told by its ring. */
static void interleave(uint32_t writers, bool *found, bool *told)
{
	uint32_t step, w_done = 0, r_done = 0;

	memset(area, 0, RANKS * sizeof(area[0]));
	*found = *told = false;
	for (step = 0; step < 4; step++) {
		if (writers >> step & 1) {
			if (!w_done++)
				coll_board_post(entry_of(1, 6), 6);
			else
				*told = (int32_t)(coll_board_from(board_of(2)) - 6) > 0;
		} else if (!r_done++) {
			coll_board_leave_run(board_of(2), 7);
		} else {
			*found = coll_board_entry_is_of(entry_of(1, 6), 6);
		}
	}
}

static void one_of_the_two_sees_the_other(void **state)
{
	uint32_t writers, orders = 0, twice = 0;
	bool found, told;

	(void)state;
	for (writers = 0; writers < 16; writers++) {
		if (__builtin_popcount(writers) != 2)
			continue;
		interleave(writers, &found, &told);
		assert_true(found || told);
		twice += found && told;
		orders++;
	}
	assert_int_equal(orders, 6);
	assert_int_equal(twice, 4);
}

static void what_was_taken_in_order_may_come_again(void **state)
{
	struct coll_exec *exec;

	(void)state;
	meet();
	peer_posts(1, 2, 3);
	exec = call();
	engine_goes_on(exec, true, 0);
	assert_got(3, 102);
	both_have_completed(3);
}

/* It looks once more: what was posted after its last look in order is there. */
static void what_comes_late_is_found_once_more(void **state)
{
	struct coll_run run = run_of_one_shot();
	const uint64_t stale = w.context.counters.stale;

	(void)state;
	meet();
	begin_run(&run);
	peer_posts(1, 2, 3);
	coll_board_leave(w.group);
	assert_int_equal(board_of(0)->head.from, 3);
	assert_int_equal(board_of(0)->head.completed, 3);
	assert_int_equal(w.links[1]->expected, 0);
	assert_int_equal(w.links[2]->expected, 1);
	message_arrives(w.links[1], header_of(2, 0, BYTES), 99);
	assert_int_equal(w.context.counters.stale, stale + 1);
	message_arrives(w.links[2], header_of(2, 0, BYTES), 102);
	assert_null(run.exec);
	assert_got(3, 102);
	message_arrives(w.links[1], header_of(2, 0, BYTES), 99);	/* its run is over: as any stale one */
	assert_int_equal(w.context.counters.stale, stale + 2);
	assert_int_equal(w.group->state, GROUP_OK);
}

static void a_run_of_the_engine_reads_boards(void **state)
{
	struct coll_run run = run_of_one_shot();

	(void)state;
	meet();
	peer_posts(1, 2, 3);			/* it is there when its receive starts */
	begin_run(&run);
	assert_true(coll_board_entry_is_for(entry_of(0, 2), 2, 1) && coll_board_entry_is_for(entry_of(0, 2), 2, 2));
	assert_int_equal(w.links[1]->expected, 0);
	assert_int_equal(coll_context_poll(&w.context, 0), 0);
	assert_non_null(run.exec);
	assert_int_equal(board_of(0)->head.from, 2);	/* nobody need tell it by a ring */
	peer_posts(2, 2, 102);
	assert_int_equal(coll_context_poll(&w.context, 0), 0);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	assert_int_equal(w.context.board_readers, 0);
	assert_got(3, 102);
}

static void who_may_sleep_leaves(void **state)
{
	struct coll_run run = run_of_one_shot();

	(void)state;
	meet();
	begin_run(&run);
	assert_int_equal(w.context.board_readers, 1);
	assert_int_equal(coll_context_poll(&w.context, coll_now() + MS), 0);
	assert_int_equal(w.context.board_readers, 0);
	assert_int_equal(board_of(0)->head.from, 3);
	peer_posts(1, 2, 3);			/* it looks no more, and is told by its ring */
	assert_int_equal(coll_context_poll(&w.context, 0), 0);
	assert_int_equal(w.links[1]->expected, 1);
	message_arrives(w.links[1], header_of(2, 0, BYTES), 3);
	message_arrives(w.links[2], header_of(2, 0, BYTES), 102);
	assert_null(run.exec);
	assert_got(3, 102);
}

/* The application may sleep on a descriptor, which no board tells. */
static void who_sleeps_elsewhere_leaves_at_once(void **state)
{
	struct coll_run run = run_of_one_shot();

	(void)state;
	meet();
	w.context.engine.slept_elsewhere = true;
	peer_posts(1, 2, 3);
	begin_run(&run);
	assert_int_equal(board_of(0)->head.from, 3);
	assert_int_equal(w.context.board_readers, 0);
	message_arrives(w.links[2], header_of(2, 0, BYTES), 102);
	assert_null(run.exec);
	assert_got(3, 102);
}

/* It takes what is there, and leaves all the same: of what is posted later nobody tells it. */
static void who_begins_to_sleep_elsewhere_leaves(void **state)
{
	struct coll_run run = run_of_one_shot();

	(void)state;
	meet();
	begin_run(&run);
	peer_posts(1, 2, 3);
	assert_int_equal(coll_alarm_open(&w.context), 0);
	coll_context_rest(&w.context);
	assert_int_equal(w.links[1]->expected, 0);
	assert_int_equal(w.context.board_readers, 0);
	assert_int_equal(board_of(0)->head.from, 3);
	message_arrives(w.links[2], header_of(2, 0, BYTES), 102);
	assert_null(run.exec);
	assert_got(3, 102);
	coll_alarm_close(&w.context);
}

/* Of a run that reads no board, too, peers learn that it is over: else nothing is posted any more. */
static void a_run_without_boards_is_completed(void **state)
{
	struct coll_run run = run_of_one_shot();

	(void)state;
	meet();
	call_by_boards(2);
	one_shot->short_receives = false;
	begin_run(&run);
	assert_int_equal(w.context.board_readers, 0);
	message_arrives(w.links[1], header_of(3, 0, BYTES), 3);
	message_arrives(w.links[2], header_of(3, 0, BYTES), 103);
	assert_null(run.exec);
	assert_int_equal(board_of(0)->head.completed, 4);
	one_shot->short_receives = true;
	both_have_completed(4);
}

/* An entry of the oldest may be read yet, whatever has ended since. */
static void the_oldest_run_keeps_its_entries(void **state)
{
	struct coll_run run[] = { run_of_one_shot(), run_of_one_shot() };

	(void)state;
	meet();
	begin_run(&run[0]);
	begin_run(&run[1]);
	both_post(3);
	assert_int_equal(coll_context_poll(&w.context, 0), 0);
	assert_null(run[1].exec);
	assert_non_null(run[0].exec);
	assert_got(4, 104);
	assert_int_equal(board_of(0)->head.completed, 2);
	assert_int_equal(board_of(0)->head.from, 2);
	both_post(2);
	assert_int_equal(coll_context_poll(&w.context, 0), 0);
	assert_null(run[0].exec);
	assert_got(3, 103);
	both_have_completed(4);
}

/* A run that was told to leave takes all earlier ones with it. */
static void who_leaves_has_left_earlier_runs(void **state)
{
	struct coll_run run[] = { run_of_one_shot(), run_of_one_shot() };

	(void)state;
	meet();
	begin_run(&run[0]);
	w.context.engine.slept_elsewhere = true;
	both_post(2);
	begin_run(&run[1]);
	assert_null(run[0].exec);
	assert_got(3, 103);
	assert_int_equal(board_of(0)->head.from, 4);
	assert_int_equal(board_of(0)->head.completed, 4);
	message_arrives(w.links[1], header_of(3, 0, BYTES), 1);
	message_arrives(w.links[2], header_of(3, 0, BYTES), 2);
	assert_null(run[1].exec);
	both_have_completed(4);
}

static void what_was_posted_is_there_before_a_goodbye(void **state)
{
	struct coll_run run = run_of_one_shot();
	const struct coll_header bye = { .kind = COLL_MESSAGE_BYE, .version = COLL_WIRE_VERSION };

	(void)state;
	meet();
	begin_run(&run);
	peer_posts(1, 2, 3);
	coll_exec_link_events.control(w.links[1], &bye);
	assert_int_equal(w.group->state, GROUP_OK);
	message_arrives(w.links[2], header_of(2, 0, BYTES), 102);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	assert_got(3, 102);
}

/* A message of a later run, by its ring, is here already; nobody looks at the board of a peer that is gone later. */
static void what_is_kept_hides_no_board(void **state)
{
	struct coll_run run = run_of_one_shot();

	(void)state;
	meet();
	message_arrives(w.links[1], header_of(3, 0, BYTES), 9);
	assert_non_null(w.links[1]->kept);
	peer_posts(1, 2, 3);
	begin_run(&run);
	assert_int_equal(w.links[1]->expected, 0);
	message_arrives(w.links[2], header_of(2, 0, BYTES), 102);
	assert_null(run.exec);
	assert_got(3, 102);
	peer_posts(2, 3, 103);
	begin_run(&run);
	assert_null(run.exec);
	assert_got(9, 103);
	assert_null(w.links[1]->kept);
	both_have_completed(4);
}

/* By the ring alone: nobody has posted it, so it is the peer's fault. */
static void a_group_without_boards_takes_nothing_twice(void **state)
{
	struct coll_run run = run_of_one_shot();

	(void)state;
	assert_null(w.group->board);
	w.sends_now = 2;
	assert_int_equal(coll_exec_start(&run, coll_now() + COLL_SECOND), 0);
	message_arrives(w.links[1], header_of(1, 0, BYTES), 1);
	message_begins(w.links[1], header_of(1, 0, BYTES));
	assert_int_equal(w.group->state, GROUP_FAILING);
	poll_until_failed();
}

static void what_was_posted_outlives_the_link(void **state)
{
	struct coll_run run = run_of_one_shot();

	(void)state;
	meet();
	peer_posts(1, 1, 9);			/* its run is over */
	peer_posts(1, 2, 3);
	peer_posts(1, 3, 4);
	coll_exec_link_events.closing(w.links[1]);
	assert_false(coll_board_has_found(board_of(0), 1));
	memset(area[1], 0xee, sizeof(area[1]));
	assert_int_equal(w.links[1]->kept->header.run, 2);
	assert_int_equal(w.links[1]->kept->next->header.run, 3);
	assert_null(w.links[1]->kept->next->next);
	w.sends_now = 2;
	assert_int_equal(coll_exec_start(&run, coll_now() + COLL_SECOND), 0);
	message_arrives(w.links[2], header_of(2, 0, BYTES), 102);
	assert_null(run.exec);
	assert_got(3, 102);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, boards_begin, boards_end)
		TEST(one_of_the_two_sees_the_other),
		TEST(what_was_taken_in_order_may_come_again),
		TEST(what_comes_late_is_found_once_more),
		TEST(a_run_of_the_engine_reads_boards),
		TEST(who_may_sleep_leaves),
		TEST(who_sleeps_elsewhere_leaves_at_once),
		TEST(who_begins_to_sleep_elsewhere_leaves),
		TEST(a_run_without_boards_is_completed),
		TEST(the_oldest_run_keeps_its_entries),
		TEST(who_leaves_has_left_earlier_runs),
		TEST(what_was_posted_is_there_before_a_goodbye),
		TEST(what_is_kept_hides_no_board),
		TEST(a_group_without_boards_takes_nothing_twice),
		TEST(what_was_posted_outlives_the_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
