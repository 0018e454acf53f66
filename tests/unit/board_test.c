// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Boards (libcoll/exec/board.h): one write is for several readers, an entry is written again when all have
 * completed its run, and a message comes by one way at least, whatever the order of writer and reader. What a
 * peer's board has that is wrong, or of another run, is not there.
 *
 * Length: all tests stand on one world, of this process and two peers.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "libcoll/engine/board.h"
#include "libcoll/engine/memory_parts.h"
#include "libcoll/exec/board.h"
#include "libcoll/exec/in_order.h"
#include "libcoll/exec/order.h"
#include "libcoll/exec/published.h"
#include "libcoll/exec/receive.h"
#include "libcoll/exec/unexpected.h"
#include "tests/unit/exec_world.h"

enum { GROUP = 0, BYTES = 24, AREA = 64 << 10 };

/* Of this process, and of the two peers as it has them mapped. */
static struct coll_board area[RANKS][COLL_BOARDS] __attribute__((aligned(4096)));
static struct coll_ring_shared ring[RANKS];
static struct coll_memory memory[RANKS];
static struct coll_socket sockets[RANKS];
static struct coll_planned *planned;

_Static_assert(sizeof(area[0]) <= AREA, "boards fit");

static struct coll_socket *memory_of(const struct coll_link *link)
{
	return &sockets[link->rank];
}

/* Nothing comes by rings but what a test sends to the engine. */
static enum coll_look look_at_ring(struct coll_link *link, const struct coll_header *header, const uint8_t **payload)
{
	(void)link;
	(void)header;
	(void)payload;
	return COLL_LOOK_NOTHING;
}

static const struct coll_transport transport = { .look = look_at_ring, .memory = memory_of };

/* ---- the world ---------------------------------------------------------------------------- */

static struct coll_board *board_of(uint32_t rank)
{
	return &area[rank][coll_boards_index(GROUP)];
}

static struct coll_board_entry *entry_of(uint32_t rank, uint32_t run)
{
	return &board_of(rank)->entry[run % COLL_BOARD_ENTRIES];
}

/* The peer has posted its message of the run, for ranks 0 and those of `others`. */
static void peer_posts(uint32_t rank, uint32_t run, uint8_t value)
{
	struct coll_board_entry *entry = entry_of(rank, run);

	entry->readers = 1 | 1 << (3 - rank);
	entry->first = 0;
	entry->hash = HASH;
	entry->slot = 0;
	entry->bytes = BYTES;
	memset(entry->data, value, BYTES);
	coll_board_post(entry, run);
}

static void both_post(uint32_t run)
{
	peer_posts(1, run, 1 + run);
	peer_posts(2, run, 101 + run);
}

static void both_have_completed(uint32_t run)
{
	coll_board_completed(board_of(1), run);
	coll_board_completed(board_of(2), run);
}

/* Rank 0 sends the same to both, and receives from both. */
static struct coll_planned *one_shot(void)
{
	struct coll_build *b = schedule_begin(BYTES, 2 * BYTES);
	uint32_t rank;

	for (rank = 1; rank < RANKS; rank++) {
		coll_emit_send(b, rank, COLL_ADDRESS(COLL_IN, 0), BYTES);
		coll_emit_recv(b, rank, COLL_ADDRESS(COLL_OUT, (rank - 1) * BYTES), BYTES);
	}
	return schedule_end();
}

static void areas_begin(void)
{
	uint32_t rank;

	memset(area, 0, sizeof(area));
	memset(ring, 0, sizeof(ring));
	w.context.engine.arena.shares = true;
	w.context.engine.boards = (struct coll_boards){
		.tried = true, .region = { .base = (uint8_t *)area[0], .bytes = AREA },
	};
	for (rank = 1; rank < RANKS; rank++) {
		memory[rank] = (struct coll_memory){
			.regions.boards = { (uint8_t *)area[rank], AREA }, .out.shared = &ring[rank], .boards_told = true,
		};
		sockets[rank] = (struct coll_socket){ .memory = &memory[rank], .engine = &w.context.engine };
		board_of(rank)->head.claimed = 1;
		coll_board_find(board_of(rank), 0, true);
	}
}

/* The plan has run once, by rings, as run 0; it is the group's latest. */
static int begin(void **state)
{
	struct coll_run run;
	uint32_t rank;

	(void)state;
	world_begin();
	assert_int_equal(w.group->id, GROUP);
	areas_begin();
	planned = one_shot();
	planned->call = coll_call_of(w.group, COLL_ALLREDUCE);
	coll_published_mark(planned);
	coll_order_make(planned);
	planned->boards = coll_board_suits(planned);
	assert_true(planned->boards);
	w.group->planned[5] = planned;
	run = (struct coll_run){ .group = w.group, .planned = planned, .in = w.in, .out = w.out };
	assert_int_equal(coll_exec_start(&run, coll_now() + COLL_SECOND), 0);
	for (rank = 1; rank < RANKS; rank++)
		message_arrives(w.links[rank], header_of(0, 0, BYTES), 1);
	for (rank = 1; rank < RANKS; rank++) {
		if (w.links[rank]->queue)
			message_leaves(w.links[rank]);
		w.links[rank]->transport = &transport;
		w.links[rank]->socket.engine = &w.context.engine;
	}
	assert_null(run.exec);
	return 0;
}

static int end(void **state)
{
	(void)state;
	coll_planned_forget(w.group);
	world_end();
	return 0;
}

/* ---- calls ------------------------------------------------------------------------------------ */

static struct coll_exec *call(void)
{
	struct coll_exec *exec;

	w.context.engine.now = w.context.polled_at = coll_now();
	w.context.engine.spin_ns = 1000;
	exec = coll_in_order_begin(planned, w.in, w.out);
	assert_non_null(exec);
	return exec;
}

static void assert_got(uint8_t first, uint8_t second)
{
	uint32_t i;

	for (i = 0; i < 2 * BYTES; i++)
		assert_int_equal(w.out[i], i < BYTES ? first : second);
}

/* A call that needs no ring, as run number `run`. */
static void call_by_boards(uint32_t run)
{
	struct coll_exec *exec;

	both_post(run);
	exec = call();
	assert_int_equal(exec->number, run);
	assert_true(coll_in_order_execute(exec));
	assert_got(1 + run, 101 + run);
}

/* The group has its board, and knows those of the others. */
static void meet(void)
{
	struct coll_run run = { .group = w.group, .planned = planned, .in = w.in, .out = w.out };

	w.sends_now = 2;
	planned->boards = true;
	coll_board_join(planned);
	assert_false(planned->boards);
	assert_int_equal(coll_exec_start(&run, coll_now() + COLL_SECOND), 0);
	message_arrives(w.links[1], header_of(1, 0, BYTES), 1);
	message_arrives(w.links[2], header_of(1, 0, BYTES), 2);
	assert_null(run.exec);
	assert_int_equal(w.sends_now, 0);
	assert_int_equal(board_of(0)->head.from, 2);
	memset(&w.asked, 0, sizeof(w.asked));
}

static void one_write_is_for_all(void **state)
{
	const uint64_t sends = w.context.counters.sends, bytes = w.context.counters.published_bytes;
	const struct coll_board_entry *entry = entry_of(0, 2);

	(void)state;
	meet();
	call_by_boards(2);
	assert_int_equal(w.context.counters.sends, sends + 2 + 2);
	assert_int_equal(w.context.counters.published_bytes, bytes + BYTES);
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
	coll_board_find(board_of(1), 0, false);
	coll_board_find(board_of(2), 0, false);
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

/* ---- either way -------------------------------------------------------------------------------- */

/* Bits: the steps of the writer in their order among the four. Whether the reader finds it, and is told by its ring. */
static void interleave(uint32_t writers, bool *found, bool *told)
{
	uint32_t step, w_done = 0, r_done = 0;

	memset(area, 0, sizeof(area));
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

/* The engine goes on with a call, from its ops that are done on; its messages by rings come as said. */
static void engine_goes_on(struct coll_exec *exec, bool again, uint32_t kept)
{
	const uint64_t stale = w.context.counters.stale, unexpected = w.context.counters.unexpected;
	struct coll_run run = { .group = w.group, .local = true };

	assert_false(coll_in_order_execute(exec));
	coll_exec_adopt(&run, exec);
	assert_int_equal(w.context.counters.unexpected, unexpected + kept);
	assert_int_equal(board_of(0)->head.from, exec->number + 1);
	assert_int_equal(board_of(0)->head.completed, exec->number + 1);
	assert_non_null(run.exec);
	if (again)
		message_arrives(w.links[1], header_of(exec->number, 0, BYTES), 99);
	assert_int_equal(w.context.counters.stale, stale + again);
	message_arrives(w.links[2], header_of(exec->number, 0, BYTES), 102);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	assert_int_equal(w.group->state, GROUP_OK);
	coll_planned_put(run.planned);
	assert_null(w.links[1]->kept);
	assert_null(w.links[2]->kept);
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
	struct coll_run run = { .group = w.group, .planned = planned, .in = w.in, .out = w.out };
	const uint64_t stale = w.context.counters.stale;

	(void)state;
	meet();
	peer_posts(1, 2, 3);
	w.sends_now = 2;
	assert_int_equal(coll_exec_start(&run, coll_now() + COLL_SECOND), 0);	/* it is not executed in order */
	assert_int_equal(w.asked.sent_now[1] + w.asked.sent_now[2], 2);
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

/* By the ring alone: nobody has posted it, so it is the peer's fault. */
static void a_group_without_boards_takes_nothing_twice(void **state)
{
	struct coll_run run = { .group = w.group, .planned = planned, .in = w.in, .out = w.out };

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
	struct coll_run run = { .group = w.group, .planned = planned, .in = w.in, .out = w.out };

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

/* Another group's tag has the same place. */
static void a_board_is_one_groups(void **state)
{
	uint64_t other = GROUP + 1;

	(void)state;
	meet();
	while (coll_boards_index(other) != coll_boards_index(GROUP))
		other++;
	assert_null(coll_boards_claim(&w.context.engine, other, 0));
	assert_null(coll_boards_of_peer(&sockets[1], coll_boards_index(other), other));
	assert_ptr_equal(coll_boards_of_peer(&sockets[1], coll_boards_index(GROUP), GROUP), board_of(1));
}

/* Of another tag of the same place. */
static struct coll_board *claim_again(void)
{
	uint64_t other = GROUP + 1;

	while (coll_boards_index(other) != coll_boards_index(GROUP))
		other++;
	return coll_boards_claim(&w.context.engine, other, 0);
}

static void it_is_used_again_when_all_have_read_it(void **state)
{
	struct coll_engine *engine = &w.context.engine;
	uint32_t rank;

	(void)state;
	meet();
	call_by_boards(2);
	for (rank = 1; rank < RANKS; rank++) {
		memory[rank].socket = &sockets[rank];
		memory[rank].next = engine->memories;
		engine->memories = &memory[rank];
	}
	coll_board_free(w.group);
	coll_board_completed(board_of(1), 3);
	assert_null(claim_again());
	coll_board_completed(board_of(2), 3);
	engine->boards.ended++;			/* who broke off may read there yet */
	assert_null(claim_again());
	engine->boards.ended--;
	assert_ptr_equal(claim_again(), board_of(0));
	assert_false(coll_board_entry_is_of(entry_of(0, 2), 2));
	assert_null(claim_again());
	engine->memories = NULL;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
		TEST(one_write_is_for_all),
		TEST(who_has_not_found_it_has_its_ring),
		TEST(who_left_has_its_ring_too),
		TEST(an_entry_waits_for_its_slowest_reader),
		TEST(it_says_what_it_has_completed),
		TEST(one_of_the_two_sees_the_other),
		TEST(what_was_taken_in_order_may_come_again),
		TEST(what_comes_late_is_found_once_more),
		TEST(a_group_without_boards_takes_nothing_twice),
		TEST(what_was_posted_outlives_the_link),
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
