// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Sends of the same bytes to several ranks (libcoll/exec/published.h): which are marked; that they are done
 * with one copy, which lasts until the last of them has gone; and that they go as before where there
 * is no copy.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/engine/engine.h"
#include "libcoll/exec/failure.h"
#include "tests/unit/exec_world.h"

enum { LENGTH = 20000, LONG = 1 << 20 };

static uint8_t in[LENGTH], out[2 * LONG];

/* ---- links, of which all reach their peers through memory --------------------------------- */

static bool reached = true;

static bool through_memory(const struct coll_link *link)
{
	(void)link;
	return reached;
}

static const struct coll_transport memory_transport = { .through_memory = through_memory };

static int begin(void **state)
{
	(void)state;
	reached = true;
	world_begin();
	w.context.engine.arena.shares = true;
	w.context.engine.arena.least = 4 << 20;
	memset(in, 7, sizeof(in));
	return 0;
}

static int end(void **state)
{
	struct coll_engine *engine = &w.context.engine;

	(void)state;
	assert_int_equal(engine->publications.count, 0);
	world_end();
	coll_publications_end(engine);
	coll_shared_end(&engine->arena);
	return 0;
}

/* Of this rank: the first `from` bytes of a buffer to rank 1, 2, 1, ... */
static void emit_sends(struct coll_build *b, uint64_t from, uint64_t bytes, uint32_t sends)
{
	uint32_t i;

	for (i = 0; i < sends; i++)
		coll_emit_send(b, 1 + i % 2, from, bytes);
}

static struct coll_planned *plan(void)
{
	struct coll_planned *planned = schedule_end();
	uint32_t i;

	for (i = 0; i < planned->schedule->peers; i++) {
		planned->links[i]->transport = &memory_transport;
		planned->links[i]->state = LINK_UP;
	}
	return planned;
}

static struct coll_planned *three_sends(void)
{
	emit_sends(schedule_begin(LENGTH, 0), COLL_ADDRESS(COLL_IN, 0), LENGTH, 3);
	return plan();
}

/* ---- marks ---------------------------------------------------------------------------------- */

static void marks_are(struct coll_planned *planned, uint32_t publications, const char *marks)
{
	uint32_t i;

	assert_int_equal(planned->publications, publications);
	for (i = 0; publications && i < planned->schedule->ops; i++)
		assert_int_equal(planned->published[i],
				 marks[i] == '-' ? COLL_NONE : (uint32_t)(marks[i] - '0'));
	coll_planned_put(planned);
}

static void sends_of_the_same_bytes_have_a_mark(void **state)
{
	struct coll_build *b = schedule_begin(2 * LENGTH, 0);

	(void)state;
	emit_sends(b, COLL_ADDRESS(COLL_IN, 0), LENGTH, 3);
	emit_sends(b, COLL_ADDRESS(COLL_IN, 0), LENGTH / 2, 4);	/* short */
	emit_sends(b, COLL_ADDRESS(COLL_IN, LENGTH), LENGTH, 2);
	emit_sends(b, COLL_ADDRESS(COLL_IN, 0), LENGTH, 3);
	marks_are(plan(), 2, "000------111");
}

static void two_are_too_few(void **state)
{
	(void)state;
	emit_sends(schedule_begin(LENGTH, 0), COLL_ADDRESS(COLL_IN, 0), LENGTH, 2);
	marks_are(plan(), 0, "");
}

/* What is written between is another message. */
static void a_change_of_the_bytes_separates_sends(void **state)
{
	struct coll_build *b = schedule_begin(LENGTH, LENGTH);
	uint32_t i, op = COLL_NONE;

	(void)state;
	for (i = 0; i < 4; i++)
		op = coll_emit_send(b, 1, COLL_ADDRESS(COLL_OUT, 0), LENGTH);
	coll_emit_after(b, op);
	op = coll_emit_copy(b, COLL_ADDRESS(COLL_OUT, LENGTH - 8), COLL_ADDRESS(COLL_IN, 0), 8);
	for (i = 0; i < 3; i++) {
		coll_emit_after(b, op);
		coll_emit_send(b, 2, COLL_ADDRESS(COLL_OUT, 0), LENGTH);
	}
	marks_are(plan(), 2, "0000-111");
}

/* Its rings hold shorter ones while it receives. */
static void a_rank_that_receives_publishes_long_messages_only(void **state)
{
	struct coll_build *b = schedule_begin(LENGTH, LONG);

	(void)state;
	coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), LONG);
	emit_sends(b, COLL_ADDRESS(COLL_IN, 0), LENGTH, 3);
	marks_are(plan(), 0, "");
	b = schedule_begin(LONG, LONG);
	coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), LONG);
	emit_sends(b, COLL_ADDRESS(COLL_IN, 0), LONG, 3);
	marks_are(plan(), 1, "-000");
}

/* ---- sends ------------------------------------------------------------------------------------ */

static const uint8_t *payload_to(uint32_t rank)
{
	return w.links[rank]->queue->payload;
}

static void run_starts(struct coll_run *run, struct coll_planned *planned)
{
	*run = (struct coll_run){ .group = w.group, .planned = planned, .in = in, .out = out };
	assert_int_equal(coll_exec_start(run, coll_now() + 1000 * MS), 0);
}

/* The second message to rank 1 waits behind the first, in the library's memory all the same. */
static void one_copy_serves_all(void **state)
{
	struct coll_planned *planned = three_sends();
	const uint8_t *copy;
	struct coll_run run;

	(void)state;
	run_starts(&run, planned);
	copy = payload_to(1);
	assert_ptr_not_equal(copy, in);
	assert_memory_equal(copy, in, LENGTH);
	assert_ptr_equal(payload_to(2), copy);
	assert_ptr_equal(w.links[1]->queue->next->payload, copy);
	assert_true(w.links[1]->queue->reported && w.links[2]->queue->reported);
	assert_false(w.links[1]->queue->next->reported);
	assert_non_null(run.exec);
	message_leaves(w.links[2]);
	message_leaves(w.links[1]);
	assert_non_null(run.exec);
	assert_int_equal(w.context.engine.publications.count, 1);
	message_leaves(w.links[1]);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	coll_planned_put(planned);
}

/* The run is over, and its memory the application's, before the bytes have gone. */
static void a_run_ends_with_the_copy(void **state)
{
	struct coll_planned *planned = three_sends();
	struct coll_run run;

	(void)state;
	run_starts(&run, planned);
	message_leaves(w.links[1]);
	message_leaves(w.links[1]);
	assert_null(run.exec);			/* rank 2 has yet to get it */
	memset(in, 9, sizeof(in));
	assert_int_equal(payload_to(2)[0], 7);
	assert_int_equal(payload_to(2)[LENGTH - 1], 7);
	assert_int_equal(w.context.engine.publications.count, 1);
	message_leaves(w.links[2]);
	assert_int_equal(w.context.engine.publications.count, 0);
	coll_planned_put(planned);
}

static void all_leaves(void)
{
	message_leaves(w.links[1]);
	message_leaves(w.links[1]);
	message_leaves(w.links[2]);
}

static void sent_as_they_are(void)
{
	struct coll_planned *planned = three_sends();
	struct coll_run run;

	run_starts(&run, planned);
	assert_ptr_equal(payload_to(1), in);
	assert_ptr_equal(payload_to(2), in);
	assert_non_null(run.exec);
	all_leaves();
	assert_null(run.exec);
	coll_planned_put(planned);
}

static void without_room_they_go_as_they_are(void **state)
{
	static uint8_t much[4 << 20];
	const uint8_t *all = coll_publish(&w.context.engine, much, sizeof(much));

	(void)state;
	assert_non_null(all);
	sent_as_they_are();
	coll_publication_end(&w.context.engine, all);
}

static void by_sockets_they_go_as_they_are(void **state)
{
	(void)state;
	reached = false;
	sent_as_they_are();
	assert_null(w.context.engine.publications.base);
}

/* Memory that peers map is read where it is. */
static void what_is_mapped_is_not_copied(void **state)
{
	struct coll_planned *planned = three_sends();
	uint8_t *mapped = coll_shared_take(&w.context.engine.arena, LENGTH);
	struct coll_run run = { .group = w.group, .planned = planned, .in = mapped };

	(void)state;
	assert_non_null(mapped);
	assert_int_equal(coll_exec_start(&run, coll_now() + 1000 * MS), 0);
	assert_ptr_equal(payload_to(1), mapped);
	all_leaves();
	assert_null(run.exec);
	coll_shared_give(&w.context.engine.arena, mapped);
	coll_planned_put(planned);
}

/* A peer is lost while the others read: the copy lasts until all of its messages are given up. */
static void a_failure_ends_a_publication(void **state)
{
	struct coll_planned *planned = three_sends();
	struct coll_run run;

	(void)state;
	run_starts(&run, planned);
	message_leaves(w.links[2]);
	assert_int_equal(w.context.engine.publications.count, 1);
	link_breaks(w.links[1]);
	poll_until_failed();
	assert_non_null(run.exec);		/* the engine has its first message */
	assert_int_equal(w.context.engine.publications.count, 1);
	link_detaches(w.links[1]);
	assert_null(run.exec);
	assert_true(run.status < 0);
	assert_int_equal(w.context.engine.publications.count, 0);
	coll_planned_put(planned);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sends_of_the_same_bytes_have_a_mark, begin, end),
		cmocka_unit_test_setup_teardown(two_are_too_few, begin, end),
		cmocka_unit_test_setup_teardown(a_change_of_the_bytes_separates_sends, begin, end),
		cmocka_unit_test_setup_teardown(a_rank_that_receives_publishes_long_messages_only, begin,
						end),
		cmocka_unit_test_setup_teardown(one_copy_serves_all, begin, end),
		cmocka_unit_test_setup_teardown(a_run_ends_with_the_copy, begin, end),
		cmocka_unit_test_setup_teardown(without_room_they_go_as_they_are, begin, end),
		cmocka_unit_test_setup_teardown(by_sockets_they_go_as_they_are, begin, end),
		cmocka_unit_test_setup_teardown(what_is_mapped_is_not_copied, begin, end),
		cmocka_unit_test_setup_teardown(a_failure_ends_a_publication, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
