// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The way of long messages (libcoll/engine/copy_costs.h), with readers and writers that are played:
 * what it takes at first, what trials cost, how soon it follows a thread that has moved.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/engine/copy_costs.h"

enum { BYTES = 64 << 10, MESSAGES = 100000, FIRST = 8 };

static struct coll_copy_writer writer;
static struct coll_copy_reader reader;
static bool busy;

/* Nanoseconds that a message takes now, by either way; `in`: the writer's part by the ring. */
static struct {
	uint64_t in, ring, read;
} machine;

static int begin(void **state)
{
	(void)state;
	memset(&writer, 0, sizeof(writer));
	memset(&reader, 0, sizeof(reader));
	busy = false;
	return 0;
}

/* One message. Returns whether it was read in place. */
static bool message(void)
{
	const uint32_t octave = coll_copy_octave(BYTES);

	if (coll_copy_reads(&writer, &reader, BYTES, busy)) {
		coll_copy_met(&writer.read[busy][octave], machine.read, BYTES);
		return true;
	}
	coll_copy_met(&writer.in[octave], machine.in, BYTES);
	if (machine.ring)		/* else the reader's clock misses it */
		coll_copy_met(&reader.ring[busy][octave], machine.ring, BYTES);
	return false;
}

/* How many of these messages are read in place. */
static uint32_t messages(uint32_t count)
{
	uint32_t reads = 0;

	while (count--)
		reads += message();
	return reads;
}

static void octaves_begin_at_the_least(void **state)
{
	(void)state;
	assert_int_equal(coll_copy_octave(COLL_COPY_LEAST), 0);
	assert_int_equal(coll_copy_octave(2 * COLL_COPY_LEAST - 1), 0);
	assert_int_equal(coll_copy_octave(2 * COLL_COPY_LEAST), 1);
	assert_int_equal(coll_copy_octave((uint64_t)COLL_COPY_LEAST << (COLL_COPY_OCTAVES - 1)),
			 COLL_COPY_OCTAVES - 1);
	assert_int_equal(coll_copy_octave(UINT64_MAX), COLL_COPY_OCTAVES - 1);
}

static void a_lost_core_changes_little(void **state)
{
	uint32_t cost = 0;
	int i;

	(void)state;
	coll_copy_met(&cost, 1000, 1 << 20);
	assert_int_equal(cost, 1000);
	coll_copy_met(&cost, 4000000, 1 << 20);
	assert_in_range(cost, 1001, 1250);
	for (i = 0; i < 10; i++)
		coll_copy_met(&cost, 4000, 1 << 20);
	assert_in_range(cost, 3000, 4000);
	coll_copy_met(&cost, 1000, 1 << 20);
	coll_copy_met(&cost, 1000, 1 << 20);
	assert_in_range(cost, 1000, 2000);
	/* No time that a clock may show is too long. */
	cost = 0;
	coll_copy_met(&cost, UINT64_MAX, COLL_COPY_LEAST);
	assert_true(cost);
	coll_copy_met(&cost, 0, UINT64_MAX);
	assert_true(cost);
}

static void the_first_messages_go_by_turns(void **state)
{
	int i;

	(void)state;
	machine.in = machine.ring = machine.read = 10000;
	for (i = 0; i < FIRST; i++)
		assert_int_equal(message(), !(i % 2));
}

/* For all ratios of both ways: the better one, but for trials that cost less than 1 / 64. */
static void trials_are_cheap(void **state)
{
	uint64_t ratio;

	for (ratio = 2; ratio <= 40; ratio++) {
		uint32_t reads;

		begin(state);
		machine.in = 0;
		machine.ring = 10000;
		machine.read = 10000 * ratio;
		messages(100);
		reads = messages(MESSAGES);
		assert_true(reads);
		assert_true(reads * (machine.read - machine.ring) * 64 <
			    MESSAGES * machine.ring * (ratio > 16 ? ratio / 16 + 1 : 1));
		begin(state);
		machine.in = 0;
		machine.ring = 10000 * ratio;
		machine.read = 10000;
		messages(100);
		reads = messages(MESSAGES);
		assert_true(reads < MESSAGES);
		assert_true((MESSAGES - reads) * (machine.ring - machine.read) * 64 <
			    MESSAGES * machine.read * (ratio > 16 ? ratio / 16 + 1 : 1));
	}
}

/* The cores were near each other, are far, and near again: times of a measured machine. */
static void it_follows_threads_that_move(void **state)
{
	(void)state;
	machine.in = 4000;
	machine.ring = 9000;
	machine.read = 12500;
	messages(200);
	assert_in_range(messages(1000), 0, 20);
	machine.in = 25000;
	machine.ring = 32000;
	machine.read = 13500;
	messages(20);
	assert_in_range(messages(1000), 980, 1000);
	machine.in = 4000;
	machine.ring = 9000;
	machine.read = 12500;
	messages(1000);
	assert_in_range(messages(1000), 0, 20);
}

/* Both copy at once, unless the writer has something else to do. */
static void a_busy_writer_pays_for_its_copy(void **state)
{
	(void)state;
	machine.in = 8000;
	machine.ring = 9000;
	machine.read = 14000;
	messages(200);
	assert_in_range(messages(1000), 0, 20);
	busy = true;
	messages(200);
	assert_in_range(messages(1000), 980, 1000);
}

/* A reader whose clock missed the first messages is asked again. */
static void what_is_not_met_is_tried(void **state)
{
	(void)state;
	machine.in = 4000;
	machine.ring = 0;
	machine.read = 12500;
	messages(FIRST);
	machine.ring = 9000;
	messages(1200);
	assert_in_range(messages(1000), 0, 20);
}

/* The writer of a ring does not wait for who is late. */
static void late_readers_get_a_ring(void **state)
{
	(void)state;
	machine.in = 25000;
	machine.ring = 32000;
	machine.read = 13500;
	messages(200);
	assert_in_range(messages(1000), 980, 1000);
	machine.read = 500000;
	messages(40);
	assert_in_range(messages(1000), 0, 20);
}

/* It may say anything, and gets its messages. */
static void a_hostile_reader_changes_only_the_way(void **state)
{
	static const uint32_t said[] = { 0, 1, UINT32_MAX };
	const uint32_t octave = coll_copy_octave(BYTES);
	size_t i, j;

	(void)state;
	writer.in[octave] = UINT32_MAX >> 1;
	for (i = 0; i < sizeof(said) / sizeof(*said); i++)
		for (j = 0; j < sizeof(said) / sizeof(*said); j++) {
			writer.first[busy][octave] = FIRST;
			writer.read[busy][octave] = said[j] >> 1;
			reader.ring[busy][octave] = said[i];
			coll_copy_reads(&writer, &reader, BYTES, busy);
		}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(octaves_begin_at_the_least),
		cmocka_unit_test(a_lost_core_changes_little),
		cmocka_unit_test_setup(the_first_messages_go_by_turns, begin),
		cmocka_unit_test_setup(trials_are_cheap, begin),
		cmocka_unit_test_setup(it_follows_threads_that_move, begin),
		cmocka_unit_test_setup(a_busy_writer_pays_for_its_copy, begin),
		cmocka_unit_test_setup(what_is_not_met_is_tried, begin),
		cmocka_unit_test_setup(late_readers_get_a_ring, begin),
		cmocka_unit_test_setup(a_hostile_reader_changes_only_the_way, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
