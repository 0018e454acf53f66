// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>
#include <sys/mman.h>

#include "board_world.h"
#include "libcoll/exec/order.h"
#include "libcoll/exec/published.h"

struct coll_board (*area)[COLL_BOARDS];
struct coll_ring_shared ring[RANKS];
struct coll_memory memory[RANKS];
struct coll_socket sockets[RANKS];
struct coll_planned *one_shot;

struct coll_run run_of_one_shot(void)
{
	return (struct coll_run){ .group = w.group, .planned = one_shot, .in = w.in, .out = w.out };
}

_Static_assert(sizeof(area[0]) <= AREA, "boards fit");

enum { AREAS = RANKS * sizeof(area[0]) };

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

struct coll_board *board_of(uint32_t rank)
{
	return &area[rank][coll_boards_index(GROUP)];
}

struct coll_board_entry *entry_of(uint32_t rank, uint32_t run)
{
	return &board_of(rank)->entry[run % COLL_BOARD_ENTRIES];
}

void peer_posts(uint32_t rank, uint32_t run, uint8_t value)
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

void both_post(uint32_t run)
{
	peer_posts(1, run, 1 + run);
	peer_posts(2, run, 101 + run);
}

void both_have_completed(uint32_t run)
{
	coll_board_completed(board_of(1), run);
	coll_board_completed(board_of(2), run);
}

static struct coll_planned *one_shot_make(void)
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

	if (!area)
		area = mmap(NULL, AREAS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(area != MAP_FAILED);
	memset(area, 0, AREAS);
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
		coll_board_set_found(board_of(rank), 0, true);
	}
}

int boards_begin(void **state)
{
	struct coll_run run;
	uint32_t rank;

	(void)state;
	world_begin();
	assert_int_equal(w.group->id, GROUP);
	areas_begin();
	one_shot = one_shot_make();
	one_shot->call = coll_call_of(w.group, COLL_ALLREDUCE);
	coll_published_mark(one_shot);
	coll_order_make(one_shot);
	one_shot->board_tries = coll_board_suits(one_shot);
	assert_true(one_shot->board_tries);
	one_shot->board_tries = 0;		/* until meet() */
	w.group->planned[5] = one_shot;
	run = run_of_one_shot();
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

int boards_end(void **state)
{
	(void)state;
	coll_planned_forget(w.group);
	world_end();
	return 0;
}

/* ---- calls ------------------------------------------------------------------------------------ */

struct coll_exec *call(void)
{
	struct coll_exec *exec;

	w.context.engine.now = w.context.polled_at = coll_now();
	w.context.engine.spin_ns = 1000;
	exec = coll_in_order_begin(one_shot, w.in, w.out);
	assert_non_null(exec);
	return exec;
}

void assert_got(uint8_t first, uint8_t second)
{
	uint32_t i;

	for (i = 0; i < 2 * BYTES; i++)
		assert_int_equal(w.out[i], i < BYTES ? first : second);
}

void call_by_boards(uint32_t run)
{
	struct coll_exec *exec;

	both_post(run);
	exec = call();
	assert_int_equal(exec->number, run);
	assert_true(coll_in_order_execute(exec));
	assert_got(1 + run, 101 + run);
}

/* Run 1 is told by rings alone, as of one that may sleep. */
void meet(void)
{
	struct coll_run run = run_of_one_shot();

	one_shot->board_tries = 1;
	coll_board_join(one_shot);
	assert_false(one_shot->board_tries);
	w.context.engine.slept_elsewhere = true;
	w.sends_now = 2;
	assert_int_equal(coll_exec_start(&run, coll_now() + COLL_SECOND), 0);
	message_arrives(w.links[1], header_of(1, 0, BYTES), 1);
	message_arrives(w.links[2], header_of(1, 0, BYTES), 2);
	assert_null(run.exec);
	assert_int_equal(board_of(0)->head.from, 2);
	assert_int_equal(w.context.board_readers, 0);
	both_have_completed(2);
	w.context.engine.slept_elsewhere = false;
	w.sends_now = 0;
	memset(&w.asked, 0, sizeof(w.asked));
}

void engine_goes_on(struct coll_exec *exec, bool again, uint32_t kept)
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
