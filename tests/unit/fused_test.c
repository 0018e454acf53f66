// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Messages that are reduced as they arrive, in pieces from a ring whose ends cut elements: the
 * result has the bits of a reduction of the whole, for each type, reduction and order.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/reduce.h"
#include "libcoll/base/clock.h"
#include "libcoll/engine/ring.h"
#include "libcoll/exec/receive.h"
#include "tests/unit/exec_world.h"

enum {
	RING = 512,
	PIECE_MAX = 97,
	BYTES = 4800,			/* of messages: elements of any size, and no short ones */
};

static uint8_t theirs[LARGE], expected[LARGE];
static uint8_t ring_memory[sizeof(struct coll_ring_shared) + RING] __attribute__((aligned(128)));
static uint32_t seed;

static uint32_t number(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 8;
}

/* No NaN: which of two a sum gives is the compiler's choice. */
static void fill(uint8_t *bytes, uint64_t count)
{
	while (count--)
		*bytes++ = number() & 0x3f;
}

static int begin(void **state)
{
	(void)state;
	world_begin();
	seed = 1;
	fill(w.in, sizeof(w.in));
	fill(theirs, sizeof(theirs));
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end();
	return 0;
}

static void start(struct coll_run *run, struct coll_planned *planned)
{
	*run = (struct coll_run){ .group = w.group, .planned = planned, .in = w.in, .out = w.out };
	assert_int_equal(coll_exec_start(run, coll_now() + 60 * COLL_SECOND), 0);
}

static void finish(struct coll_run *run)
{
	assert_null(run->exec);
	assert_null(w.group->active);
	coll_planned_put(run->planned);
}

/* ---- schedules ------------------------------------------------------------------- */

struct form {
	uint32_t type, reduction;
	bool below;			/* rank 1's operand is the left one */
	bool in_place;			/* the result replaces the message, and is copied to OUT */
};

/* OUT is IN reduced with a message of rank 1. */
static struct coll_planned *reduces(const struct form *form, uint64_t bytes)
{
	struct coll_build *b = schedule_begin(bytes, bytes);
	const uint64_t place = coll_emit_scratch(b, bytes), out = COLL_ADDRESS(COLL_OUT, 0);
	const uint64_t result = form->in_place ? place : out, mine = COLL_ADDRESS(COLL_IN, 0);
	uint32_t reduced;

	coll_build_reduction(b, form->type, form->reduction, 0);
	coll_emit_after(b, coll_emit_recv(b, 1, place, bytes));
	reduced = coll_emit_reduce(b, result, form->below ? place : mine, form->below ? mine : place,
				   bytes);
	if (form->in_place) {
		coll_emit_after(b, reduced);
		coll_emit_copy(b, out, place, bytes);
	}
	return schedule_end();
}

static void expect(const struct form *form, const uint8_t *mine, uint64_t bytes)
{
	coll_reduce_local(form->type, form->reduction, expected, form->below ? theirs : mine,
			  form->below ? mine : theirs, bytes);
}

static const struct form doubles = { COLL_DOUBLE, COLL_SUM, false, false };

/* ---- messages ---------------------------------------------------------------------- */

/* The message goes through a ring, written and read in odd pieces. */
static void bring_by_ring(struct coll_link *link, const uint8_t *data, uint64_t bytes)
{
	struct coll_ring writer, reader;
	const uint8_t *from;
	ssize_t got;

	memset(ring_memory, 0, sizeof(ring_memory));
	coll_ring_init(&writer, ring_memory, RING);
	coll_ring_init(&reader, ring_memory, RING);
	while (bytes) {
		uint64_t part = 1 + number() % PIECE_MAX;
		struct iovec iov = { (void *)(uintptr_t)data, part < bytes ? part : bytes };

		assert_int_equal(coll_ring_write(&writer, &iov, 1), iov.iov_len);
		data += iov.iov_len;
		bytes -= iov.iov_len;
		while ((got = coll_ring_peek(&reader, &from)) > 0) {
			message_brings_bytes(link, from, got);
			coll_ring_consume(&reader, got);
		}
		assert_int_equal(got, 0);
	}
}

static void assert_pieces_give_the_whole(const struct form *form)
{
	struct coll_run run;

	expect(form, w.in, BYTES);
	memset(w.out, 0xee, sizeof(w.out));
	start(&run, reduces(form, BYTES));
	message_begins(w.links[1], header_of(run.exec->number, 0, BYTES));
	assert_true(w.links[1]->in_pieces);
	bring_by_ring(w.links[1], theirs, BYTES);
	message_ends(w.links[1], 0);
	assert_int_equal(run.status, 0);
	if (memcmp(w.out, expected, BYTES))
		fail_msg("type %u, reduction %u, below %d, in place %d: other bits", form->type,
			 form->reduction, form->below, form->in_place);
	assert_int_equal(w.out[BYTES], 0xee);
	finish(&run);
}

static void pieces_give_the_bits_of_the_whole(void **state)
{
	struct form form;
	uint32_t way, forms = 0;

	(void)state;
	for (form.type = 0; form.type < COLL_TYPES; form.type++)
		for (form.reduction = 0; form.reduction < COLL_REDUCTIONS; form.reduction++)
			for (way = 0; way < 4; way++) {
				if (!coll_reduction_fits(form.type, form.reduction))
					continue;
				form.below = way & 1;
				form.in_place = way & 2;
				assert_pieces_give_the_whole(&form);
				forms++;
			}
	assert_true(forms > 4 * COLL_TYPES);
	assert_int_equal(w.context.counters.copied_bytes, 0);
}

/* Nothing waits for the end of the message. */
static void what_is_here_is_reduced(void **state)
{
	struct coll_run run;

	(void)state;
	expect(&doubles, w.in, BYTES);
	start(&run, reduces(&doubles, BYTES));
	message_begins(w.links[1], header_of(0, 0, BYTES));
	message_brings_bytes(w.links[1], theirs, 1003);
	assert_memory_equal(w.out, expected, 1000);
	assert_int_equal(w.out[1000], 0);
	message_brings_bytes(w.links[1], theirs + 1003, BYTES - 1003);
	assert_non_null(run.exec);
	message_ends(w.links[1], 0);
	assert_memory_equal(w.out, expected, BYTES);
	finish(&run);
}

static void chunks_continue_each_other(void **state)
{
	struct coll_header header = header_of(0, 0, BYTES);
	struct coll_run run;

	(void)state;
	expect(&doubles, w.in, BYTES);
	start(&run, reduces(&doubles, BYTES));
	header.chunk = 1;
	message_begins(w.links[1], header);
	bring_by_ring(w.links[1], theirs, COLL_CHUNK_UNIT);
	message_ends(w.links[1], 0);
	assert_non_null(run.exec);
	header.offset = COLL_CHUNK_UNIT;
	message_begins(w.links[1], header);
	assert_true(w.links[1]->in_pieces);
	bring_by_ring(w.links[1], theirs + COLL_CHUNK_UNIT, BYTES - COLL_CHUNK_UNIT);
	message_ends(w.links[1], 0);
	assert_memory_equal(w.out, expected, BYTES);
	finish(&run);
}

static void an_unexpected_message_is_not_copied(void **state)
{
	struct coll_run run;

	(void)state;
	expect(&doubles, w.in, BYTES);
	message_begins(w.links[1], header_of(0, 0, BYTES));
	message_brings_bytes(w.links[1], theirs, BYTES);
	message_ends(w.links[1], 0);
	start(&run, reduces(&doubles, BYTES));
	assert_int_equal(w.context.counters.copied_bytes, 0);
	assert_memory_equal(w.out, expected, BYTES);
	finish(&run);
}

/* ---- the other operand --------------------------------------------------------------- */

/* It comes when so many bytes of the message are here, which are in scratch until then. */
static void other_operand_comes_after(uint64_t first)
{
	uint8_t *other = w.in;
	struct coll_run run;

	coll_reduce_local(COLL_INT32, COLL_SUM, expected, other, theirs, BYTES);
	memset(w.out, 0, sizeof(w.out));
	start(&run, sum_of_two(BYTES));
	message_begins(w.links[1], header_of(run.exec->number, 0, BYTES));
	bring_by_ring(w.links[1], theirs, first);
	assert_false(w.links[1]->in_pieces);
	message_begins(w.links[2], header_of(run.exec->number, 0, BYTES));
	bring_by_ring(w.links[2], other, BYTES);
	message_ends(w.links[2], 0);
	assert_int_equal(w.out[0] | w.out[1] | w.out[2], 0);
	bring_by_ring(w.links[1], theirs + first, BYTES - first);
	assert_int_equal(w.links[1]->in_pieces, first < BYTES);
	message_ends(w.links[1], 0);
	assert_memory_equal(w.out, expected, BYTES);
	finish(&run);
}

static void a_late_operand_changes_nothing(void **state)
{
	const uint64_t first[] = { 0, 1, 3, 4, 5, 2400, 2405, BYTES - 1, BYTES };
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(first) / sizeof(*first); i++)
		other_operand_comes_after(first[i]);
}

/* ---- failures -------------------------------------------------------------------------- */

/* The result has a part of it; the run has ended only when nothing writes there any more. */
static void a_message_that_breaks_off_fails_its_run(void **state)
{
	struct coll_run run;

	(void)state;
	start(&run, reduces(&doubles, BYTES));
	message_begins(w.links[1], header_of(0, 0, BYTES));
	bring_by_ring(w.links[1], theirs, 1001);
	coll_exec_link_events.lost(w.links[1], -ECONNRESET, "its connection ended");
	poll_until_failed();
	assert_non_null(run.exec);
	bring_by_ring(w.links[1], theirs + 1001, 500);	/* was on its way */
	link_detaches(w.links[1]);
	assert_null(run.exec);
	assert_int_equal(run.status, -ECONNRESET);
	finish(&run);
}

static void a_message_that_begins_twice_fails_its_run(void **state)
{
	struct coll_header header = header_of(0, 0, BYTES);
	struct coll_run run;

	(void)state;
	start(&run, reduces(&doubles, BYTES));
	header.chunk = 1;
	message_begins(w.links[1], header);
	bring_by_ring(w.links[1], theirs, COLL_CHUNK_UNIT);
	message_ends(w.links[1], 0);
	message_begins(w.links[1], header);
	assert_int_equal(w.group->error, -EPROTO);
	assert_false(w.links[1]->reduces);
	poll_until_failed();
	assert_int_equal(run.status, -EPROTO);
	finish(&run);
}

/* ---- marks ------------------------------------------------------------------------------- */

/* How the schedule differs from one whose receive is marked. */
enum difference {
	NONE,
	RESULT_READ_LATER,		/* it replaced the message: nothing differs */
	MESSAGE_READ_BETWEEN,
	MESSAGE_READ_LATER,
	MESSAGE_LONGER,
	MESSAGE_SHORT,
	RECEIVED_TO_OUT,
	RECEIVE_OPTIONAL,
	WAITS_FOR_ANY,
	USER_FUNCTION,
	DIFFERENCES,
};

static bool is_marked_with(enum difference difference)
{
	struct coll_build *b = schedule_begin(4096, 4 * 4096);
	const uint64_t place = difference == RECEIVED_TO_OUT ? COLL_ADDRESS(COLL_OUT, 2 * 4096) :
							       coll_emit_scratch(b, 2 * 4096);
	const uint64_t out = COLL_ADDRESS(COLL_OUT, 0);
	const uint64_t bytes = difference == MESSAGE_SHORT ? 4092 : 4096;
	struct coll_planned *planned;
	uint32_t received, reduced;
	bool marked;

	coll_build_reduction(b, COLL_INT32,
			     difference == USER_FUNCTION ? COLL_USER_REDUCTION : COLL_SUM, 0);
	if (difference == RECEIVE_OPTIONAL)
		coll_emit_optional(b);
	received = coll_emit_recv(b, 1, place, difference == MESSAGE_LONGER ? bytes + 4 : bytes);
	if (difference == MESSAGE_READ_BETWEEN) {
		coll_emit_after(b, received);
		coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, 4096), place + bytes - 4, 4);
	}
	if (difference == WAITS_FOR_ANY)
		coll_emit_any(b, received);
	else
		coll_emit_after(b, received);
	if (difference == RECEIVE_OPTIONAL)
		coll_emit_optional(b);
	reduced = coll_emit_reduce(b, difference == RESULT_READ_LATER ? place : out, place,
				   COLL_ADDRESS(COLL_IN, 0), bytes);
	coll_emit_after(b, reduced);
	if (difference == RECEIVE_OPTIONAL)
		coll_emit_optional(b);
	coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, 4096),
		       difference == RESULT_READ_LATER || difference == MESSAGE_READ_LATER ? place : out,
		       bytes);
	planned = schedule_end();
	marked = planned->fused && planned->fused[received] == reduced &&
		 planned->fused[reduced] == received;
	coll_planned_put(planned);
	return marked;
}

static void only_what_one_reduce_reads_is_marked(void **state)
{
	enum difference difference;

	(void)state;
	for (difference = NONE; difference < DIFFERENCES; difference++)
		if (is_marked_with(difference) != (difference <= RESULT_READ_LATER))
			fail_msg("difference %u: %s", difference,
				 difference <= RESULT_READ_LATER ? "not marked" : "marked");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pieces_give_the_bits_of_the_whole, begin, end),
		cmocka_unit_test_setup_teardown(what_is_here_is_reduced, begin, end),
		cmocka_unit_test_setup_teardown(chunks_continue_each_other, begin, end),
		cmocka_unit_test_setup_teardown(an_unexpected_message_is_not_copied, begin, end),
		cmocka_unit_test_setup_teardown(a_late_operand_changes_nothing, begin, end),
		cmocka_unit_test_setup_teardown(a_message_that_breaks_off_fails_its_run, begin, end),
		cmocka_unit_test_setup_teardown(a_message_that_begins_twice_fails_its_run, begin, end),
		cmocka_unit_test_setup_teardown(only_what_one_reduce_reads_is_marked, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
