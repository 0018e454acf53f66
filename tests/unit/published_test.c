// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * One publication, many readers (libcoll/engine/published.h): a slot is free when all that were told of it have
 * acknowledged it, in any order. Readers that never do, do twice, map nothing, name a slot that is none, or whose
 * writer has gone, harm themselves at most.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_connection.h"
#include "fake_engine.h"
#include "libcoll/base/descriptors.h"
#include "libcoll/base/memory_limit.h"
#include "libcoll/engine/memory.h"
#include "libcoll/engine/memory_parts.h"
#include "libcoll/engine/published.h"

enum { SIZE = 16 << 10, READERS = 3, SLOTS = 4 };

static struct coll_counters counters;
static struct coll_engine writer, reader[READERS];
static struct coll_socket to[READERS], from[READERS];

/* ---- owners, and engines ---------------------------------------------------------------- */

static bool wants_nothing(struct coll_socket *socket)
{
	(void)socket;
	return false;
}

static void received_in(struct coll_socket *socket, const uint8_t *bytes, ssize_t result)
{
	(void)socket;
	(void)bytes;
	(void)result;
}

static void detached(struct coll_socket *socket)
{
	(void)socket;
}

static const struct coll_socket_ops owner_ops = {
	.wants_send = wants_nothing,
	.wants_recv = fake_wants_recv,
	.received_in = received_in,
	.detached = detached,
};

static struct coll_engine an_engine(void)
{
	return (struct coll_engine){ .ops = &fake_engine_ops, .counters = &counters, .exposes = true,
				     .arena = { .shares = true, .least = SLOTS * COLL_SLOT_BYTES } };
}

static int begin(void **state)
{
	int i;

	(void)state;
	writer = an_engine();
	for (i = 0; i < READERS; i++) {
		const struct fake_connection c = fake_connect(SIZE);

		reader[i] = an_engine();
		fake_attach(&to[i], &owner_ops, &writer, &c, 0);
		fake_attach(&from[i], &owner_ops, &reader[i], &c, 1);
	}
	return 0;
}

static void disconnect(struct coll_socket *socket)
{
	if (socket->memory)
		coll_socket_detach(socket);
}

static int end(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < READERS; i++) {
		disconnect(&to[i]);
		disconnect(&from[i]);
	}
	if (writer.published.slots)
		coll_shared_drop(&writer.published.region);
	return 0;
}

/* The reader looks at what has come, as its engine does when bytes come. */
static void hear(int i)
{
	coll_memory_await_area(from[i].memory);
}

static void all_map_the_area(void)
{
	int i;

	for (i = 0; i < READERS; i++) {
		assert_false(coll_memory_publishes(&to[i], NULL, 1));
		hear(i);
		assert_true(coll_memory_publishes(&to[i], NULL, 1));
	}
}

/* To the first so many readers. The slot. */
static uint32_t publish(uint8_t value, int readers)
{
	uint32_t slot;
	uint8_t *place = coll_memory_slot(&writer, &slot);
	int i;

	assert_non_null(place);
	memset(place, value, COLL_SLOT_BYTES);
	for (i = 0; i < readers; i++)
		coll_memory_lend_slot(&to[i], slot);
	return slot;
}

static void assert_reads(int i, uint32_t slot, uint8_t value)
{
	const uint8_t *data = coll_memory_published(&from[i], slot, 0, COLL_SLOT_BYTES);

	assert_non_null(data);
	assert_int_equal(data[0], value);
	assert_memory_equal(data, data + 1, COLL_SLOT_BYTES - 1);
}

static uint32_t free_slot(void)
{
	uint32_t slot;

	return coll_memory_slot(&writer, &slot) ? slot : COLL_SLOTS;
}

/* ---- tests ------------------------------------------------------------------------------- */

static void a_slot_is_free_when_all_have_read_it(void **state)
{
	static const int order[READERS] = { 2, 0, 1 };
	uint32_t slot;
	int round, i;

	(void)state;
	all_map_the_area();
	for (round = 0; round < 10; round++) {
		slot = publish(round, READERS);
		assert_int_equal(slot, 0);
		for (i = 0; i < READERS; i++) {
			assert_int_equal(free_slot(), 1);
			assert_reads(order[i], slot, round);
			coll_memory_took_published(&from[order[i]], slot);
		}
		assert_int_equal(free_slot(), 0);
	}
}

static void without_a_free_slot_nothing_waits(void **state)
{
	int i;

	(void)state;
	all_map_the_area();
	for (i = 0; i < SLOTS; i++)
		assert_int_equal(publish(i, READERS), i);
	assert_int_equal(free_slot(), COLL_SLOTS);
	for (i = 0; i < READERS; i++)
		coll_memory_took_published(&from[i], 2);
	assert_int_equal(free_slot(), 2);
}

/* How many messages do not ask until one does. */
static uint32_t messages_skipped(void)
{
	uint32_t skipped = 0;

	while (!coll_memory_asks_for_slot(&writer))
		assert_true(++skipped < 1000);
	return skipped;
}

/* After each time in a row twice as many messages do not ask; one that is found ends it. */
static void without_a_free_slot_few_ask(void **state)
{
	static const uint32_t skipped[] = { 1, 3, 7, 15, 31, 31 };
	uint32_t i;

	(void)state;
	all_map_the_area();
	for (i = 0; i < SLOTS; i++)
		publish(i, READERS);
	assert_int_equal(messages_skipped(), 0);
	for (i = 0; i < sizeof(skipped) / sizeof(*skipped); i++) {
		assert_int_equal(free_slot(), COLL_SLOTS);
		assert_int_equal(messages_skipped(), skipped[i]);
	}
	for (i = 0; i < READERS; i++)
		coll_memory_took_published(&from[i], 2);
	assert_int_equal(free_slot(), 2);
	assert_int_equal(messages_skipped(), 0);
	publish(0, READERS);
	assert_int_equal(free_slot(), COLL_SLOTS);
	assert_int_equal(messages_skipped(), skipped[0]);
}

/* In memory of the process itself, if the peer may read there. */
static void a_long_message_is_read_where_it_is(void **state)
{
	(void)state;
	all_map_the_area();
	assert_true(coll_memory_publishes(&to[0], NULL, 1 << 20));
	assert_false(coll_memory_publishes(&to[0], NULL, (1 << 20) + 1));
	to[0].memory->exposed_out.refused = COLL_EXPOSED_MEMORY;
	assert_true(coll_memory_publishes(&to[0], NULL, (1 << 20) + 1));
}

/* What the rings hold goes there, if ranks share cores: to each. */
static void what_is_in_the_arena_is_read_there(void **state)
{
	void *block = coll_shared_take(&writer.arena, 2 * SIZE);

	(void)state;
	assert_non_null(block);
	all_map_the_area();
	assert_true(coll_memory_publishes(&to[0], block, SIZE));
	assert_false(coll_memory_publishes(&to[0], block, SIZE + 1));
	coll_shared_end(&writer.arena);
}

/* It counts what it was not told of. */
static void a_reader_that_acknowledges_twice_is_ended(void **state)
{
	(void)state;
	all_map_the_area();
	publish(1, READERS);
	coll_memory_took_published(&from[1], 0);
	coll_memory_took_published(&from[2], 0);
	coll_memory_took_published(&from[0], 0);
	coll_memory_took_published(&from[0], 0);
	free_slot();
	assert_true(to[0].memory->ended);
	assert_int_equal(coll_memory_loss(to[0].memory), -EPROTO);
	assert_false(to[1].memory->ended);
	coll_socket_untouch(&to[0]);
}

/* The end of the connection does not say that it reads no more. */
static void a_reader_that_has_gone_keeps_its_slots(void **state)
{
	(void)state;
	all_map_the_area();
	publish(1, READERS);
	coll_memory_took_published(&from[1], 0);
	coll_memory_took_published(&from[2], 0);
	assert_int_equal(free_slot(), 1);
	disconnect(&from[0]);
	coll_memory_listen(to[0].memory);
	assert_true(to[0].memory->ended);
	assert_int_equal(free_slot(), 1);
	disconnect(&to[0]);
	assert_int_equal(free_slot(), 1);
}

/* It may come yet, though this side has closed. */
static void what_may_be_read_is_not_used_again(void **state)
{
	(void)state;
	all_map_the_area();
	publish(7, 1);
	disconnect(&to[0]);
	assert_int_equal(free_slot(), 1);
	assert_int_equal(publish(8, 0), 1);
	assert_reads(0, 0, 7);
}

/* Of two pieces one: the slot is as good as unread, and others serve. */
static void an_acknowledgement_that_is_lost_costs_a_slot(void **state)
{
	static struct coll_published_process process;	/* the end of the test still has it */
	int round;

	(void)state;
	to[0].reader = &process;
	all_map_the_area();
	assert_int_equal(publish(1, 1), 0);
	coll_memory_lend_slot(&to[0], 0);
	coll_memory_took_published(&from[0], 0);
	for (round = 0; round < 10; round++) {
		assert_int_equal(publish(round, 1), 1);
		coll_memory_took_published(&from[0], 1);
	}
	assert_false(to[0].memory->ended);
	coll_memory_reader_ended(&process);
	assert_int_equal(free_slot(), 0);
}

/* It is known by its process, not by its connection, whichever ends first. */
static void a_reader_that_is_dead_reads_no_more(void **state)
{
	static struct coll_published_process process;	/* the end of the test still has it */

	(void)state;
	to[0].reader = &process;
	all_map_the_area();
	publish(1, 1);
	assert_int_equal(free_slot(), 1);
	coll_memory_reader_ended(&process);
	assert_int_equal(free_slot(), 0);
	publish(2, 1);				/* its connection has not ended yet */
	assert_int_equal(free_slot(), 0);
	disconnect(&to[0]);
	assert_int_equal(free_slot(), 0);
	assert_null(writer.published.left);
}

/* Each slot waits for all that left it; of a reader that is not seen for ever. */
static void slots_that_were_left_wait_for_the_death_of_all(void **state)
{
	static struct coll_published_process process[2];
	int i;

	(void)state;
	for (i = 0; i < 2; i++)
		to[i].reader = &process[i];
	all_map_the_area();
	publish(1, 1);
	publish(2, 2);
	publish(3, READERS);
	coll_memory_took_published(&from[1], 2);	/* before it dies */
	for (i = 0; i < READERS; i++)
		disconnect(&to[i]);
	assert_int_equal(free_slot(), 3);
	coll_memory_reader_ended(&process[1]);
	assert_int_equal(free_slot(), 3);
	coll_memory_reader_ended(&process[0]);
	assert_int_equal(publish(4, 0), 0);
	assert_reads(1, 1, 2);				/* it is dead: here it shows that nothing was written there */
	assert_int_equal(writer.published.lost, 1u << 2);
}

/* A reader that still has a slot which is used again finds it changed. */
static void a_slot_has_a_generation(void **state)
{
	uint32_t slot, generation;

	(void)state;
	all_map_the_area();
	slot = publish(1, 1);
	generation = coll_memory_slot_generation(&writer, slot);
	assert_true(coll_memory_is_still_published(&from[0], slot, generation));
	coll_memory_took_published(&from[0], slot);
	assert_true(coll_memory_is_still_published(&from[0], slot, generation));
	assert_int_equal(publish(2, 1), slot);
	assert_false(coll_memory_is_still_published(&from[0], slot, generation));
	assert_true(coll_memory_is_still_published(&from[1], slot, generation + 1));
}

/* It sets the flag and announces nothing: each receive does not ask again. */
static void a_writer_that_announces_nothing_costs_one_look(void **state)
{
	unsigned long long before;

	(void)state;
	__atomic_store_n(&to[0].memory->out.shared->writer.publishes, 1, __ATOMIC_RELEASE);
	hear(0);
	before = counters.syscalls;
	hear(0);
	assert_int_equal(counters.syscalls, before);
	assert_false(coll_memory_publishes(&to[0], NULL, 1));
	coll_memory_listen(from[0].memory);		/* as when it wakes */
	assert_true(coll_memory_publishes(&to[0], NULL, 1));
}

static void the_writer_closes_before_all_have_read(void **state)
{
	int i;

	(void)state;
	all_map_the_area();
	publish(9, READERS);
	for (i = 0; i < READERS; i++)
		disconnect(&to[i]);
	coll_shared_drop(&writer.published.region);
	writer.published.slots = 0;
	for (i = 0; i < READERS; i++)
		assert_reads(i, 0, 9);
}

static void a_place_that_is_none_is_refused(void **state)
{
	(void)state;
	assert_null(coll_memory_published(&from[0], 0, 0, 1));	/* nothing was announced */
	all_map_the_area();
	assert_non_null(coll_memory_published(&from[0], SLOTS - 1, 0, COLL_SLOT_BYTES));
	assert_null(coll_memory_published(&from[0], SLOTS, 0, 1));
	assert_null(coll_memory_published(&from[0], COLL_SLOTS, 0, 1));
	assert_null(coll_memory_published(&from[0], UINT32_MAX, 0, 1));
	assert_null(coll_memory_published(&from[0], 0, 0, COLL_SLOT_BYTES + 1));
	assert_null(coll_memory_published(&from[0], 0, 0, UINT64_MAX));
	assert_non_null(coll_memory_published(&from[0], 0, COLL_SLOT_BYTES - 1, 1));
	assert_null(coll_memory_published(&from[0], 0, COLL_SLOT_BYTES - 1, 2));
	assert_null(coll_memory_published(&from[0], 0, COLL_SLOT_BYTES + 1, 1));
	assert_null(coll_memory_published(&from[0], 0, UINT32_MAX, 1));
}

/* A file that could lose its pages: it is not mapped, nor is another one later. */
static void an_area_that_could_shrink_is_not_mapped(void **state)
{
	const uint8_t byte = COLL_REGION_IS_PUBLISHED;
	const int file = memfd_create("area", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(ftruncate(file, SLOTS * COLL_SLOT_BYTES), 0);
	assert_int_equal(coll_send_with_descriptor(to[0].fd, &byte, 1, file), 1);
	close(file);
	coll_memory_listen(from[0].memory);
	assert_null(from[0].memory->regions.area.base);
	assert_false(coll_memory_publishes(&to[0], NULL, 1));
	coll_memory_listen(from[0].memory);
	assert_null(from[0].memory->regions.area.base);
	assert_false(coll_memory_publishes(&to[0], NULL, 1));
}

/* As if so many ranks asked, that an eighth of what each has left are five slots and a half. */
static void where_little_is_left_there_are_few_slots(void **state)
{
	int i;

	(void)state;
	writer.arena.least = 2 * SLOTS * COLL_SLOT_BYTES;
	writer.arena.asking = UINT64_MAX;
	assert_false(coll_memory_publishes(&to[0], NULL, 1));
	assert_int_equal(writer.published.slots, 0);
	writer.published.again = 0;
	writer.arena.asking = coll_memory_available() / 8 / (COLL_SLOT_BYTES * 11 / 2);
	all_map_the_area();
	assert_int_equal(writer.published.slots, 5);
	for (i = 0; i < 5; i++)
		assert_int_equal(publish(i, READERS), i);
	assert_int_equal(free_slot(), COLL_SLOTS);
	assert_reads(0, 4, 4);
	assert_null(coll_memory_published(&from[0], 5, 0, 1));
}

static void who_shares_nothing_publishes_nothing(void **state)
{
	(void)state;
	writer.arena.shares = false;
	assert_int_equal(coll_memory_publishes_most(&writer), 0);
	assert_false(coll_memory_publishes(&to[0], NULL, 1));
	assert_int_equal(writer.published.slots, 0);
	writer.arena.shares = true;
	writer.exposes = false;
	assert_false(coll_memory_publishes(&to[0], NULL, 1));
	assert_int_equal(writer.published.slots, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_slot_is_free_when_all_have_read_it, begin, end),
		cmocka_unit_test_setup_teardown(without_a_free_slot_nothing_waits, begin, end),
		cmocka_unit_test_setup_teardown(without_a_free_slot_few_ask, begin, end),
		cmocka_unit_test_setup_teardown(a_long_message_is_read_where_it_is, begin, end),
		cmocka_unit_test_setup_teardown(what_is_in_the_arena_is_read_there, begin, end),
		cmocka_unit_test_setup_teardown(a_reader_that_acknowledges_twice_is_ended, begin, end),
		cmocka_unit_test_setup_teardown(a_reader_that_has_gone_keeps_its_slots, begin, end),
		cmocka_unit_test_setup_teardown(what_may_be_read_is_not_used_again, begin, end),
		cmocka_unit_test_setup_teardown(an_acknowledgement_that_is_lost_costs_a_slot, begin, end),
		cmocka_unit_test_setup_teardown(a_reader_that_is_dead_reads_no_more, begin, end),
		cmocka_unit_test_setup_teardown(slots_that_were_left_wait_for_the_death_of_all, begin, end),
		cmocka_unit_test_setup_teardown(a_slot_has_a_generation, begin, end),
		cmocka_unit_test_setup_teardown(a_writer_that_announces_nothing_costs_one_look, begin, end),
		cmocka_unit_test_setup_teardown(the_writer_closes_before_all_have_read, begin, end),
		cmocka_unit_test_setup_teardown(a_place_that_is_none_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(an_area_that_could_shrink_is_not_mapped, begin, end),
		cmocka_unit_test_setup_teardown(where_little_is_left_there_are_few_slots, begin, end),
		cmocka_unit_test_setup_teardown(who_shares_nothing_publishes_nothing, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
