// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Boards (libcoll/engine/board.h): one write is for several readers, and an entry is written again when all have
 * completed its run. What a peer's board has that is wrong, or of another run, is not there.
 */
#include <errno.h>
#include <string.h>

#include "board_world.h"
#include "libcoll/exec/order.h"

static void one_write_is_for_all(void **state)
{
	const uint64_t sends = w.context.counters.sends, bytes = w.context.counters.published_bytes;
	const struct coll_board_entry *entry = entry_of(0, 2);

	(void)state;
	meet();
	call_by_boards(2);
	assert_int_equal(w.context.counters.sends, sends + 2 + 2);
	assert_int_equal(w.context.counters.board_sends, 2 + 2);		/* run 1, too */
	assert_int_equal(w.context.counters.published_bytes, bytes + 2 * BYTES);	/* run 1, too */
	assert_int_equal(w.asked.sent[1] + w.asked.sent_now[1] + w.asked.sent[2] + w.asked.sent_now[2], 0);
	assert_true(coll_board_entry_is_of(entry, 2));
	assert_true(coll_board_entry_is_for(entry, 2, 1) && coll_board_entry_is_for(entry, 2, 2));
	assert_false(coll_board_entry_is_for(entry, 2, 0) || coll_board_entry_is_for(entry, 2, 3));
	assert_false(coll_board_entry_is_for(entry, 2 + COLL_BOARD_ENTRIES, 1));
	assert_int_equal(entry->hash, HASH);
	assert_int_equal(entry->bytes, BYTES);
	assert_memory_equal(entry->data, w.in, BYTES);
	assert_int_equal(w.links[1]->expected + w.links[2]->expected, 0);
	both_have_completed(3);
}

static void who_has_not_found_it_has_its_ring(void **state)
{
	(void)state;
	coll_board_set_found(board_of(1), 0, false);
	coll_board_set_found(board_of(2), 0, false);
	meet();
	w.sends_now = 2;
	call_by_boards(2);
	assert_false(coll_board_entry_is_of(entry_of(0, 2), 2));
	assert_int_equal(w.asked.sent_now[1] + w.asked.sent_now[2], 2);
	assert_true(coll_board_has_found(board_of(0), 1) && coll_board_has_found(board_of(0), 2));
	both_have_completed(3);
}

static void who_left_has_its_ring_too(void **state)
{
	struct coll_exec *exec;

	(void)state;
	meet();
	both_post(2);
	coll_board_leave_run(board_of(2), 3);
	w.sends_now = 1;
	exec = call();
	assert_true(coll_in_order_execute(exec));
	assert_int_equal(w.asked.sent_now[1], 0);
	assert_int_equal(w.asked.sent_now[2], 1);
	assert_true(coll_board_entry_is_for(entry_of(0, 2), 2, 2));	/* it may have it already */
	both_have_completed(3);
}

static void an_entry_waits_for_its_slowest_reader(void **state)
{
	uint32_t run;

	(void)state;
	meet();
	for (run = 2; run < 2 + COLL_BOARD_ENTRIES; run++)
		call_by_boards(run);
	coll_board_completed(board_of(1), run);
	coll_board_completed(board_of(2), 2);			/* it may read entry 2 yet */
	w.sends_now = 2;
	call_by_boards(run);
	assert_int_equal(w.asked.sent_now[1] + w.asked.sent_now[2], 2);
	assert_true(coll_board_entry_is_of(entry_of(0, 2), 2));
	coll_board_completed(board_of(2), 4);
	call_by_boards(++run);
	assert_int_equal(w.asked.sent_now[1] + w.asked.sent_now[2], 2);
	assert_true(coll_board_entry_is_of(entry_of(0, run), run));
	both_have_completed(run + 1);
}

static void it_says_what_it_has_completed(void **state)
{
	uint32_t run;

	(void)state;
	meet();
	for (run = 2; run < 8; run++)
		call_by_boards(run);
	assert_int_equal(board_of(0)->head.completed, 8);
	assert_int_equal(board_of(0)->head.from, 2);
	both_have_completed(8);
}

/* As an alltoall: what each is sent lies behind what the ranks below it are. */
static void each_has_bytes_of_its_own(void **state)
{
	struct coll_build *b = schedule_begin(2 * BYTES, 2 * BYTES);
	struct coll_board_entry *entry = entry_of(0, 2);
	struct coll_exec *exec;
	uint32_t rank;

	(void)state;
	for (rank = RANKS - 1; rank; rank--) {
		coll_emit_recv(b, rank, COLL_ADDRESS(COLL_OUT, (rank - 1) * BYTES), BYTES);
		coll_emit_send(b, rank, COLL_ADDRESS(COLL_IN, (rank - 1) * BYTES), BYTES);
	}
	meet();
	coll_planned_put(one_shot);
	one_shot = schedule_end();
	one_shot->call = coll_call_of(w.group, COLL_ALLTOALL);
	coll_order_make(one_shot);
	w.group->planned[5] = one_shot;
	one_shot->spare = coll_exec_take(one_shot, false);
	memset(w.in, 1, BYTES);
	memset(w.in + BYTES, 2, BYTES);
	both_post(2);
	entry_of(1, 2)->each = entry_of(2, 2)->each = 1;	/* for 0 and another: its own come first */
	exec = call();
	assert_true(coll_in_order_execute(exec));
	assert_got(3, 103);
	assert_int_equal(entry->bytes, BYTES);
	for (rank = 1; rank < RANKS; rank++)
		assert_memory_equal(coll_board_entry_data(entry, rank, BYTES), w.in + (rank - 1) * BYTES, BYTES);
	assert_ptr_equal(coll_board_entry_data(entry, 1, BYTES), entry->data);
	/* A peer says that there are more than an entry has. */
	entry = entry_of(1, 3);
	peer_posts(1, 3, 1);
	entry->readers = ~0ull;
	entry->each = 1;
	entry->first = -63u;
	assert_null(coll_board_entry_data(entry, 0, BYTES));
	entry->each = 0;
	assert_ptr_equal(coll_board_entry_data(entry, 0, BYTES), entry->data);
	assert_null(coll_board_entry_data(entry, 0, COLL_BOARD_BYTES + 1));
	both_have_completed(3);
}

/* ---- what is not there ----------------------------------------------------------------------- */

static void wrong_entries_are_not_there(void **state)
{
	uint32_t way, run;

	(void)state;
	meet();
	for (way = 0; way < 6; way++) {
		struct coll_board_entry *entry;
		struct coll_exec *exec;

		run = 2 + way;
		both_have_completed(run);
		entry = entry_of(2, run);
		both_post(run);
		entry->slot += way == 0;
		entry->bytes += way == 1;
		entry->readers &= way == 2 ? ~1ull : ~0ull;
		entry->first += way == 3;
		entry->sequence += way == 4 ? COLL_BOARD_ENTRIES : way == 5 ? -(uint64_t)COLL_BOARD_ENTRIES : 0;
		exec = call();
		assert_false(coll_board_take(exec, 3));
		assert_true(coll_board_take(exec, 1));
		entry->sequence = 0;			/* it is gone when the engine looks */
		engine_goes_on(exec, false, 0);
		assert_got(1 + run, 102);
		assert_int_equal(w.group->state, GROUP_OK);
	}
	both_have_completed(run + 1);
}

static void another_call_is_told(void **state)
{
	struct coll_run run = { .group = w.group, .local = true };
	struct coll_exec *exec;

	(void)state;
	meet();
	both_post(2);
	entry_of(2, 2)->hash++;
	exec = call();
	assert_false(coll_in_order_execute(exec));
	coll_exec_adopt(&run, exec);
	assert_int_equal(w.group->state, GROUP_FAILING);
	assert_int_equal(w.group->failed_rank, 2);
	poll_until_failed();
	assert_int_equal(run.status, -EPROTO);
	coll_planned_put(run.planned);
	both_have_completed(3);
}

static void an_entry_of_too_many_bytes_is_not_kept(void **state)
{
	(void)state;
	meet();
	peer_posts(1, 2, 3);
	entry_of(1, 2)->bytes = UINT16_MAX;
	coll_exec_link_events.closing(w.links[1]);
	assert_null(w.links[1]->kept);
}

/* ---- numbers and ends ------------------------------------------------------------------------ */

static void numbers_wrap(void **state)
{
	uint32_t run;

	(void)state;
	meet();
	coll_board_clear(entry_of(0, 1));
	w.group->next_run = UINT32_MAX - 12;
	coll_board_completed(board_of(0), w.group->next_run);
	coll_board_leave_run(board_of(1), w.group->next_run);
	coll_board_leave_run(board_of(2), w.group->next_run);
	for (run = UINT32_MAX - 12; run != 20; run++) {
		both_have_completed(run);
		call_by_boards(run);
	}
	assert_int_equal(w.asked.sent_now[1] + w.asked.sent_now[2], 0);
	assert_int_equal(board_of(0)->head.from, UINT32_MAX);
	both_have_completed(run);
}

/* 2^32 runs later it would be taken for that run's. */
static void old_entries_are_forgotten(void **state)
{
	(void)state;
	meet();
	call_by_boards(2);
	call_by_boards(3);
	coll_board_completed(board_of(1), 4);
	coll_board_completed(board_of(2), 3);
	w.group->next_run = INT32_MAX;
	coll_board_completed(board_of(0), INT32_MAX);
	both_post(INT32_MAX);
	w.sends_now = 2;
	assert_true(coll_in_order_execute(call()));
	assert_false(coll_board_entry_is_of(entry_of(0, 2), 2));
	assert_true(coll_board_entry_is_of(entry_of(0, 3), 3));	/* somebody may read it yet */
	both_have_completed(INT32_MAX);
}

/* Of a tag that nobody has had. */
static struct coll_board *claim_another(void)
{
	static uint64_t tag = GROUP;

	return coll_boards_claim(&w.context.engine, ++tag, 0);
}

/* The other boards are taken by groups of this process. */
static void take_others(void)
{
	uint32_t i;

	for (i = 1; i < COLL_BOARDS; i++)
		assert_non_null(claim_another());
}

/* It is any that is free, and found by its tag. */
static void a_board_is_one_groups(void **state)
{
	struct coll_board moved;
	uint64_t tag = GROUP + 1000;

	(void)state;
	meet();
	while (coll_boards_index(tag) != coll_boards_index(GROUP))
		tag++;
	assert_ptr_not_equal(coll_boards_claim(&w.context.engine, tag, 0), board_of(0));
	assert_null(coll_boards_of_peer(&sockets[1], tag));
	assert_ptr_equal(coll_boards_of_peer(&sockets[1], GROUP), board_of(1));
	moved = *board_of(1);
	board_of(1)->head.claimed = 0;
	assert_null(coll_boards_of_peer(&sockets[1], GROUP));
	area[1][(coll_boards_index(GROUP) + COLL_BOARDS - 1) % COLL_BOARDS] = moved;
	assert_ptr_equal(coll_boards_of_peer(&sockets[1], GROUP),
			 &area[1][(coll_boards_index(GROUP) + COLL_BOARDS - 1) % COLL_BOARDS]);
}

static void it_is_used_again_when_all_have_read_it(void **state)
{
	struct coll_engine *engine = &w.context.engine;
	uint32_t rank;

	(void)state;
	meet();
	call_by_boards(2);
	take_others();
	for (rank = 1; rank < RANKS; rank++) {
		memory[rank].socket = &sockets[rank];
		memory[rank].next = engine->memories;
		engine->memories = &memory[rank];
	}
	coll_board_free(w.group);
	coll_board_completed(board_of(1), 3);
	assert_null(claim_another());
	coll_board_completed(board_of(2), 3);
	engine->boards.ended++;			/* who broke off may read there yet */
	assert_null(claim_another());
	engine->boards.ended--;
	assert_ptr_equal(claim_another(), board_of(0));
	assert_false(coll_board_entry_is_of(entry_of(0, 2), 2));
	assert_null(claim_another());
	engine->memories = NULL;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, boards_begin, boards_end)
		TEST(one_write_is_for_all),
		TEST(each_has_bytes_of_its_own),
		TEST(who_has_not_found_it_has_its_ring),
		TEST(who_left_has_its_ring_too),
		TEST(an_entry_waits_for_its_slowest_reader),
		TEST(it_says_what_it_has_completed),
		TEST(wrong_entries_are_not_there),
		TEST(another_call_is_told),
		TEST(an_entry_of_too_many_bytes_is_not_kept),
		TEST(numbers_wrap),
		TEST(old_entries_are_forgotten),
		TEST(a_board_is_one_groups),
		TEST(it_is_used_again_when_all_have_read_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
