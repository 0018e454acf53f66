// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Sends of the same bytes are one publication (libcoll/exec/published.h): what readers were told of is sent, the rest
 * goes the ordinary way, and the next run tries again. Links and their answers are fake.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "libcoll/engine/published.h"
#include "libcoll/exec/published.h"
#include "tests/unit/exec_world.h"

enum { SLOTS = 3, BYTES = 2 * COLL_SLOT_BYTES + 5000, READERS = 2, GENERATIONS = 4096 };

static uint8_t bytes[BYTES], area[SLOTS * COLL_SLOT_BYTES + GENERATIONS];

static struct coll_socket *some_memory(const struct coll_link *link)
{
	static struct coll_socket socket;

	(void)link;
	return &socket;
}

static const struct coll_transport through_memory = { .memory = some_memory };

static int begin(void **state)
{
	uint32_t i;

	(void)state;
	world_begin();
	for (i = 0; i < BYTES; i++)
		bytes[i] = i * 7 + (i >> 12);
	memset(area, 0, sizeof(area));
	for (i = 1; i < RANKS; i++)
		w.links[i]->transport = &through_memory;
	w.context.engine.published = (struct coll_published_area){ .region = { .base = area },
								   .slots = SLOTS };
	return 0;
}

static int end(void **state)
{
	(void)state;
	w.context.engine.published.slots = 0;
	world_end();
	return 0;
}

/* Sends IN to ranks 1 and 2. */
static struct coll_planned *to_both(void)
{
	struct coll_build *b = schedule_begin(BYTES, 0);
	uint32_t rank;

	for (rank = 1; rank <= READERS; rank++)
		coll_emit_send(b, rank, COLL_ADDRESS(COLL_IN, 0), BYTES);
	return schedule_end();
}

/* Links take so many chunks. */
static struct coll_run run_of(struct coll_planned *planned, uint32_t publishes)
{
	w.publishes = publishes;
	w.published = 0;
	return (struct coll_run){ .group = w.group, .planned = planned, .in = bytes };
}

static void go(struct coll_run *run)
{
	assert_int_equal(coll_exec_start(run, coll_now() + 60 * COLL_SECOND), 0);
}

/* The rest of the message to this rank is queued, from its byte `offset` on, in its own place. */
static void assert_queued(uint32_t rank, uint64_t offset)
{
	const struct coll_message *message = w.links[rank]->queue;

	assert_non_null(message);
	assert_int_equal(message->header.kind, COLL_MESSAGE_DATA);
	assert_int_equal(message->header.offset, offset);
	assert_int_equal(message->header.bytes, BYTES);
	assert_ptr_equal(message->payload, bytes);
	message_leaves(w.links[rank]);
}

/* ---- tests -------------------------------------------------------------------------- */

static void what_is_published_is_sent(void **state)
{
	struct coll_planned *planned = to_both();
	struct coll_run run = run_of(planned, 100);

	(void)state;
	go(&run);
	assert_null(run.exec);			/* it has completed */
	assert_int_equal(run.status, 0);
	assert_int_equal(w.published, 3 * READERS);
	assert_int_equal(w.publication.offset, 2 * COLL_SLOT_BYTES);
	assert_int_equal(w.publication.chunk, 0);
	assert_int_equal(w.context.counters.sends, READERS);
	assert_int_equal(w.context.counters.published_bytes, BYTES);
	assert_null(w.links[1]->queue);
	assert_null(w.links[2]->queue);
	coll_planned_put(planned);
}

/* With no other connection they are all the same slot: nobody has one of it to read. */
static void a_piece_is_where_its_slot_is(void **state)
{
	struct coll_planned *planned = to_both();
	struct coll_run run = run_of(planned, READERS);

	(void)state;
	go(&run);
	assert_int_equal(w.publication.offset, 0);
	assert_int_equal(w.publication.chunk, COLL_SLOT_BYTES / COLL_CHUNK_UNIT);
	assert_memory_equal(area, bytes + COLL_SLOT_BYTES, COLL_SLOT_BYTES);	/* copied, told to nobody */
	assert_queued(1, COLL_SLOT_BYTES);
	assert_queued(2, COLL_SLOT_BYTES);
	assert_null(run.exec);
	coll_planned_put(planned);
}

static void the_rest_goes_the_ordinary_way(void **state)
{
	struct coll_planned *planned = to_both();
	struct coll_run run = run_of(planned, READERS + 1), next;

	(void)state;
	go(&run);
	assert_queued(1, 2 * COLL_SLOT_BYTES);
	assert_non_null(run.exec);		/* of the other the bytes are needed still */
	assert_queued(2, COLL_SLOT_BYTES);
	assert_null(run.exec);
	next = run_of(planned, 100);		/* in the same exec */
	go(&next);
	assert_null(next.exec);
	assert_int_equal(w.published, 3 * READERS);
	coll_planned_put(planned);
}

static void without_slots_or_readers_nothing_is_copied(void **state)
{
	struct coll_planned *planned = to_both();
	int way;

	(void)state;
	for (way = 0; way < 2; way++) {
		struct coll_run run = run_of(planned, way ? 100 : 0);

		if (way)
			w.context.engine.published.lost = ~0u;
		go(&run);
		assert_queued(1, 0);
		assert_queued(2, 0);
		assert_null(run.exec);
	}
	assert_int_equal(w.context.counters.published_bytes, 0);
	w.context.engine.published.lost = 0;
	coll_planned_put(planned);
}

/* For lack of credit: a piece is copied for nobody, all goes the ordinary way, and its slot is free. */
static void readers_that_refuse_get_all_the_ordinary_way(void **state)
{
	struct coll_planned *planned = to_both();
	struct coll_run run = run_of(planned, 100);
	uint32_t slot;

	(void)state;
	w.refuses = true;
	go(&run);
	assert_int_equal(w.published, 0);
	assert_int_equal(w.context.counters.published_bytes, 0);
	assert_memory_equal(area, bytes, COLL_SLOT_BYTES);
	assert_int_equal(area[COLL_SLOT_BYTES], 0);	/* the next piece was not */
	assert_non_null(coll_memory_slot(&w.context.engine, &slot));
	assert_int_equal(slot, 0);
	assert_queued(1, 0);
	assert_queued(2, 0);
	assert_null(run.exec);
	coll_planned_put(planned);
}

/* The next run after that does not ask, the one after it does. */
static void after_a_lack_of_slots_a_run_is_skipped(void **state)
{
	static const uint32_t published[] = { 0, 0, 3 * READERS, 3 * READERS };
	struct coll_planned *planned = to_both();
	uint32_t i;

	(void)state;
	w.context.engine.published.lost = ~0u;
	for (i = 0; i < sizeof(published) / sizeof(*published); i++) {
		struct coll_run run = run_of(planned, 100);

		go(&run);
		assert_int_equal(w.published, published[i]);
		w.context.engine.published.lost = 0;
		if (published[i])
			continue;
		assert_queued(1, 0);
		assert_queued(2, 0);
		assert_null(run.exec);
	}
	coll_planned_put(planned);
}

/* Over a socket to one of them: they are sends as others, and nothing is asked. */
static void fewer_than_two_readers_are_not_asked(void **state)
{
	static const struct coll_transport by_socket;
	struct coll_planned *planned = to_both();
	struct coll_run run = run_of(planned, 100);

	(void)state;
	w.links[2]->transport = &by_socket;
	go(&run);
	assert_int_equal(w.published, 0);
	assert_int_equal(w.context.counters.published_bytes, 0);
	assert_queued(1, 0);
	assert_queued(2, 0);
	assert_null(run.exec);
	coll_planned_put(planned);
}

/* Other bytes, others waits, what may never go, and what is short. */
static void only_the_same_is_one_publication(void **state)
{
	static const uint64_t length[] = { BYTES, BYTES, BYTES, COLL_PUBLISHED_MIN - 1 };
	int way;

	(void)state;
	for (way = 0; way < 4; way++) {
		struct coll_build *b = schedule_begin(2 * BYTES, way == 1 ? 1 : 0);
		const uint64_t place = way == 2 ? coll_emit_scratch(b, BYTES) : COLL_ADDRESS(COLL_IN, 0);
		const uint32_t received =
			way == 1 ? coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), 1) : COLL_NONE;
		struct coll_planned *planned;
		uint32_t i;

		coll_emit_send(b, 1, place, length[way]);
		if (way == 1)
			coll_emit_after(b, received);
		if (way == 2)
			coll_emit_optional(b);
		coll_emit_send(b, 2, place + (way == 0), length[way]);
		planned = schedule_end();
		for (i = 0; i < planned->schedule->ops; i++)
			assert_int_equal(coll_published_first(planned, i), COLL_NONE);
		coll_planned_put(planned);
	}
}

/* For boards: the same bytes of any place, or as many of each, if an entry has them all. */
static void what_is_short_may_be_alike(void **state)
{
	static const struct {
		uint64_t first, second, bytes;
		bool posted, each;
	} way[] = {
		{ 0, 0, 8, true, false },
		{ 0, 0, COLL_BOARD_BYTES, true, false },
		{ 0, 8, 8, true, true },
		{ 0, COLL_BOARD_BYTES / 2, COLL_BOARD_BYTES / 2, true, true },
		{ 0, COLL_BOARD_BYTES, COLL_BOARD_BYTES / 2 + 1, false, false },
	};
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(way) / sizeof(*way); i++) {
		struct coll_build *b = schedule_begin(2 * COLL_BOARD_BYTES, 0);
		struct coll_planned *planned;

		coll_emit_send(b, 1, COLL_ADDRESS(COLL_IN, way[i].first), way[i].bytes);
		coll_emit_send(b, 2, COLL_ADDRESS(COLL_IN, way[i].second), way[i].bytes);
		planned = schedule_end();
		assert_non_null(planned->publications);
		assert_int_equal(coll_board_first(planned, 0), way[i].posted ? 0 : COLL_NONE);
		assert_int_equal(coll_board_first(planned, 1), way[i].posted ? 0 : COLL_NONE);
		assert_int_equal(coll_published_first(planned, 0), COLL_NONE);
		if (way[i].posted)
			assert_int_equal(planned->publications[0].each, way[i].each);
		coll_planned_put(planned);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_published_is_sent, begin, end),
		cmocka_unit_test_setup_teardown(a_piece_is_where_its_slot_is, begin, end),
		cmocka_unit_test_setup_teardown(the_rest_goes_the_ordinary_way, begin, end),
		cmocka_unit_test_setup_teardown(without_slots_or_readers_nothing_is_copied, begin, end),
		cmocka_unit_test_setup_teardown(readers_that_refuse_get_all_the_ordinary_way, begin, end),
		cmocka_unit_test_setup_teardown(after_a_lack_of_slots_a_run_is_skipped, begin, end),
		cmocka_unit_test_setup_teardown(fewer_than_two_readers_are_not_asked, begin, end),
		cmocka_unit_test_setup_teardown(only_the_same_is_one_publication, begin, end),
		cmocka_unit_test_setup_teardown(what_is_short_may_be_alike, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
