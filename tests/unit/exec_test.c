// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Executing schedules by itself: a message arrives when a test says so.
 *
 * Length: a test for each way in which messages, runs and failures meet.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "libcoll/exec/failure.h"
#include "libcoll/exec/poll.h"
#include "libcoll/exec/receive.h"
#include "libcoll/exec/survey.h"
#include "libcoll/exec/unexpected.h"
#include "tests/unit/exec_world.h"

static int begin(void **state)
{
	(void)state;
	world_begin();
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end();
	return 0;
}

static struct coll_run run_of(struct coll_planned *planned)
{
	return (struct coll_run){ .group = w.group, .planned = planned, .in = w.in, .out = w.out };
}

static void start(struct coll_run *run)
{
	assert_int_equal(coll_exec_start(run, coll_now() + 60 * COLL_SECOND), 0);
}

/* Its plan and its execs are freed: none is in use. */
static void finish(struct coll_run *run)
{
	assert_null(run->exec);
	assert_null(w.group->active);
	coll_planned_put(run->planned);
}

static void assert_bytes(const uint8_t *data, uint8_t value, size_t bytes)
{
	while (bytes--)
		assert_int_equal(*data++, value);
}

/* ---- a run's life -------------------------------------------------------------------------- */

static void a_run_completes_with_its_last_op(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));

	(void)state;
	start(&run);
	assert_int_equal(w.asked.opened[1], 1);
	assert_int_equal(w.asked.opened[2], 0);
	assert_int_equal(w.asked.sent[1], 1);
	assert_non_null(run.exec);
	assert_int_equal(w.links[1]->expected, 1);
	message_arrives(w.links[1], header_of(0, 0, SMALL), 5);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	assert_int_equal(w.completed, 1);
	assert_int_equal(w.links[1]->expected, 0);
	assert_bytes(w.out, 5, SMALL);
	assert_bytes(w.out + SMALL, 0, SMALL);
	message_leaves(w.links[1]);
	finish(&run);
}

/* A large message is in the application's buffer: the run waits until it has been sent. */
static void a_large_send_delays_the_end(void **state)
{
	struct coll_run run = run_of(exchange(LARGE));

	(void)state;
	start(&run);
	message_arrives(w.links[1], header_of(0, 0, LARGE), 5);
	assert_non_null(run.exec);
	assert_ptr_equal(w.links[1]->queue->payload, w.in);
	message_leaves(w.links[1]);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	finish(&run);
}

/* A small one has a copy: the run completes, and its memory is idle when the copy has been sent. */
static void memory_is_used_again_when_nothing_refers_to_it(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));
	struct coll_exec *first, *second;

	(void)state;
	start(&run);
	first = run.exec;
	message_arrives(w.links[1], header_of(0, 0, SMALL), 5);
	assert_null(run.exec);
	memset(w.in, 8, SMALL);		/* the buffers are the caller's again */
	assert_null(w.links[1]->queue->payload);
	assert_bytes(w.links[1]->queue->small, 7, SMALL);
	assert_int_equal(w.group->draining, 1);
	assert_null(run.planned->spare);

	start(&run);			/* the next run needs other memory */
	second = run.exec;
	assert_ptr_not_equal(second, first);
	message_leaves(w.links[1]);
	assert_int_equal(w.group->draining, 0);
	assert_ptr_equal(run.planned->spare, first);
	assert_int_equal(first->state, EXEC_IDLE);
	message_arrives(w.links[1], header_of(1, 0, SMALL), 6);
	message_leaves(w.links[1]);
	assert_bytes(w.out, 6, SMALL);

	start(&run);
	assert_true(run.exec == first || run.exec == second);
	assert_int_equal(run.exec->number, 2);
	assert_int_equal(w.links[1]->expected, 1);
	message_arrives(w.links[1], header_of(2, 0, SMALL), 7);
	message_leaves(w.links[1]);
	assert_bytes(w.out, 7, SMALL);
	finish(&run);
}

/* ---- unexpected, stale and optional messages ------------------------------------------------- */

static void a_message_before_its_run_is_kept(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));

	(void)state;
	message_arrives(w.links[1], header_of(0, 0, SMALL), 5);
	assert_int_equal(w.context.counters.unexpected, 1);
	assert_bytes(w.out, 0, SMALL);
	start(&run);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	assert_bytes(w.out, 5, SMALL);
	assert_null(w.links[1]->kept);
	assert_int_equal(w.links[1]->expected, 0);
	message_leaves(w.links[1]);
	finish(&run);
}

/* Two runs ahead; each takes its own. */
static void kept_messages_go_to_their_runs(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));
	uint8_t i;

	(void)state;
	message_arrives(w.links[1], header_of(1, 0, SMALL), 12);
	message_arrives(w.links[1], header_of(0, 0, SMALL), 11);
	for (i = 0; i < 2; i++) {
		start(&run);
		assert_null(run.exec);
		assert_bytes(w.out, 11 + i, SMALL);
		message_leaves(w.links[1]);
	}
	finish(&run);
}

static void a_run_may_start_within_its_message(void **state)
{
	struct coll_run run = run_of(exchange(LARGE));

	(void)state;
	message_begins(w.links[1], header_of(0, 0, LARGE));
	start(&run);
	assert_bytes(w.out, 0, LARGE);
	message_ends(w.links[1], 5);
	message_leaves(w.links[1]);
	assert_null(run.exec);
	assert_bytes(w.out, 5, LARGE);
	finish(&run);
}

static void a_stale_message_is_discarded(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));

	(void)state;
	start(&run);
	message_arrives(w.links[1], header_of(0, 0, SMALL), 5);
	message_leaves(w.links[1]);
	message_begins(w.links[1], header_of(0, 0, SMALL));
	assert_null(w.links[1]->target);
	assert_null(w.links[1]->exec);
	message_ends(w.links[1], 6);
	assert_int_equal(w.context.counters.stale, 1);
	assert_int_equal(w.group->state, GROUP_OK);
	assert_bytes(w.out, 5, SMALL);
	finish(&run);
}

/* Rank 1 called something else in a run that has completed here. */
static void a_stale_message_of_another_call_fails_the_group(void **state)
{
	struct coll_header other = header_of(0, 0, SMALL);
	struct coll_run run = run_of(exchange(SMALL));

	(void)state;
	start(&run);
	message_arrives(w.links[1], header_of(0, 0, SMALL), 5);
	message_leaves(w.links[1]);
	other.hash++;
	message_arrives(w.links[1], other, 6);
	assert_int_equal(w.group->error, -EPROTO);
	assert_int_equal(w.group->failed_rank, 1);
	finish(&run);
}

static void an_optional_message_may_never_come(void **state)
{
	struct coll_run run = run_of(with_optional_receive(SMALL));

	(void)state;
	start(&run);
	assert_int_equal(w.links[2]->expected, 1);
	message_arrives(w.links[1], header_of(0, 0, SMALL), 5);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	assert_int_equal(w.links[2]->expected, 0);
	assert_null(w.group->active);
	message_begins(w.links[2], header_of(0, 0, SMALL));	/* stale by now */
	assert_null(w.links[2]->target);
	message_ends(w.links[2], 6);
	assert_int_equal(w.context.counters.stale, 1);
	finish(&run);
}

/* The bytes of the optional message are still written to the run's scratch memory. */
static void a_message_in_progress_keeps_its_exec(void **state)
{
	struct coll_run run = run_of(with_optional_receive(SMALL));

	(void)state;
	start(&run);
	message_begins(w.links[2], header_of(0, 0, SMALL));
	message_arrives(w.links[1], header_of(0, 0, SMALL), 5);
	assert_null(run.exec);
	assert_int_equal(w.group->draining, 1);
	message_ends(w.links[2], 6);
	assert_int_equal(w.group->draining, 0);
	finish(&run);
}

static void a_left_rank_may_owe_an_optional_message(void **state)
{
	const struct coll_header bye = { .kind = COLL_MESSAGE_BYE };
	struct coll_run run = run_of(with_optional_receive(SMALL));

	(void)state;
	start(&run);
	coll_exec_link_events.control(w.links[2], &bye);
	assert_int_equal(w.links[2]->state, LINK_LEFT);
	assert_int_equal(w.group->state, GROUP_OK);
	assert_false(coll_exec_link_events.needs(w.links[2]));
	assert_true(coll_exec_link_events.needs(w.links[1]));
	message_arrives(w.links[1], header_of(0, 0, SMALL), 5);
	finish(&run);
}

/* ---- errors --------------------------------------------------------------------------------- */

static void a_message_of_another_size_fails_the_group(void **state)
{
	struct coll_build *b = schedule_begin(SMALL, SMALL);
	struct coll_run run;

	(void)state;
	coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), SMALL);
	coll_emit_send(b, 2, COLL_ADDRESS(COLL_IN, 0), SMALL);
	run = run_of(schedule_end());
	message_arrives(w.links[1], header_of(0, 0, SMALL - 1), 5);	/* kept, then compared */
	start(&run);
	assert_int_equal(w.group->error, -EPROTO);
	assert_int_equal(w.group->failed_rank, 1);
	assert_bytes(w.out, 0, SMALL);
	assert_int_equal(w.asked.sent[2], 0);	/* it was ready, but no op starts now */
	poll_until_failed();
	assert_int_equal(run.status, -EPROTO);
	finish(&run);
}

static void a_message_outside_the_schedule_fails_the_group(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));

	(void)state;
	start(&run);
	message_begins(w.links[1], header_of(0, 1, SMALL));
	assert_int_equal(w.group->error, -EPROTO);
	assert_null(w.links[1]->exec);
	poll_until_failed();
	message_leaves(w.links[1]);
	finish(&run);
}

/* A part of rank 1's message of LARGE bytes, on one of its two streams. */
static void chunk_begins(struct coll_link *stream, uint64_t offset)
{
	struct coll_header header = header_of(0, 0, LARGE);

	header.chunk = 1;
	header.offset = offset;
	message_begins(stream, header);
}

static void chunks_of_streams_come_in_any_order(void **state)
{
	int started;

	for (started = 0; started < 2; started++) {
		struct coll_link *stream;
		struct coll_run run;

		end(state);
		begin(state);
		run = run_of(exchange(LARGE));
		streams_begin(w.links[1], 2);
		stream = w.links[1]->stream;
		if (started)
			start(&run);
		chunk_begins(&stream[0], COLL_CHUNK_UNIT);
		chunk_begins(&stream[1], 0);
		message_ends(&stream[1], 5);
		assert_false(w.links[1]->kept && w.links[1]->kept->complete);
		message_ends(&stream[0], 6);
		if (!started)
			start(&run);
		assert_int_equal(w.group->state, GROUP_OK);
		assert_bytes(w.out, 5, COLL_CHUNK_UNIT);
		assert_bytes(w.out + COLL_CHUNK_UNIT, 6, LARGE - COLL_CHUNK_UNIT);
		message_leaves(w.links[1]);
		finish(&run);
	}
}

/* A message is never complete while a chunk of it is under way: its memory is another's then. */
static void a_chunk_twice_fails_the_group(void **state)
{
	int started;

	for (started = 0; started < 2; started++) {
		struct coll_link *stream;
		struct coll_run run;

		end(state);
		begin(state);
		run = run_of(exchange(LARGE));
		streams_begin(w.links[1], 2);
		stream = w.links[1]->stream;
		if (started)
			start(&run);
		chunk_begins(&stream[0], 0);
		chunk_begins(&stream[1], 0);
		assert_int_equal(w.group->state, GROUP_FAILING);
		assert_int_equal(w.group->error, -EPROTO);
		assert_int_equal(w.group->failed_rank, 1);
		assert_null(stream[1].target);
		message_ends(&stream[1], 6);
		chunk_begins(&stream[1], COLL_CHUNK_UNIT);
		message_ends(&stream[1], 6);
		assert_false(w.links[1]->kept && w.links[1]->kept->complete);
		message_ends(&stream[0], 5);
		if (started) {
			poll_until_failed();
			message_leaves(w.links[1]);
			assert_int_equal(run.status, -EPROTO);
		}
		finish(&run);
	}
}

static void another_call_fails_the_group(void **state)
{
	struct coll_header other = header_of(0, 0, SMALL);
	struct coll_run run = run_of(gather(SMALL));

	(void)state;
	start(&run);
	other.hash++;
	message_begins(w.links[2], other);
	assert_int_equal(w.group->error, -EPROTO);
	assert_int_equal(w.group->failed_rank, 2);
	assert_int_equal(controls_to(1, COLL_MESSAGE_FAIL), 1);
	assert_int_equal(controls_to(2, COLL_MESSAGE_FAIL), 1);
	poll_until_failed();
	assert_int_equal(run.status, -EPROTO);
	finish(&run);
}

/* ---- messages taken straight from memory ----------------------------------------------------- */

static struct coll_header looked_for;
static uint32_t taken;

static enum coll_look memory_look(struct coll_link *link, const struct coll_header *header,
				  const uint8_t **payload)
{
	static const uint8_t bytes[SMALL] = { 9, 9, 9 };

	(void)link;
	looked_for = *header;
	*payload = bytes;
	return COLL_LOOK_MESSAGE;
}

static void memory_took(struct coll_link *link, const struct coll_header *header)
{
	(void)link;
	assert_memory_equal(header, &looked_for, sizeof(*header));
	taken++;
}

static const struct coll_transport memory_transport = { .look = memory_look, .took = memory_took };

/* The only receive of the run. */
static uint32_t receive_of(const struct coll_exec *exec)
{
	uint32_t op;

	assert_true(coll_exec_awaits(exec, 0, &op));
	return op;
}

static void a_message_in_memory_is_taken(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));

	(void)state;
	start(&run);
	taken = 0;
	w.links[1]->transport = &memory_transport;
	assert_int_equal(coll_exec_look(run.exec, receive_of(run.exec)), COLL_LOOK_MESSAGE);
	assert_int_equal(taken, 1);
	assert_int_equal(looked_for.kind, COLL_MESSAGE_DATA);
	assert_int_equal(looked_for.hash, HASH);
	assert_int_equal(looked_for.bytes, SMALL);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	assert_int_equal(w.links[1]->expected, 0);
	assert_bytes(w.out, 9, 3);
	message_leaves(w.links[1]);
	finish(&run);
}

/* What the engine would refuse, or does itself, is not looked for. */
static void not_all_messages_may_be_taken(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));
	struct coll_inject *inject = w.context.inject;
	struct coll_exec *exec;
	uint32_t op;

	(void)state;
	start(&run);
	exec = run.exec;
	op = receive_of(exec);
	taken = 0;
	assert_int_equal(coll_exec_look(exec, op), COLL_LOOK_OTHER);	/* no memory */
	w.links[1]->transport = &memory_transport;
	w.group->peers = (struct coll_point_peer *)w.out;
	assert_int_equal(coll_exec_look(exec, op), COLL_LOOK_OTHER);
	w.group->peers = NULL;
	w.group->freed = true;
	assert_int_equal(coll_exec_look(exec, op), COLL_LOOK_OTHER);
	w.group->freed = false;
	w.group->state = GROUP_FAILING;
	assert_int_equal(coll_exec_look(exec, op), COLL_LOOK_OTHER);
	w.group->state = GROUP_OK;
	w.context.inject = (struct coll_inject *)w.out;
	assert_int_equal(coll_exec_look(exec, op), COLL_LOOK_OTHER);
	w.context.inject = inject;
	exec->got[op] = 1;		/* another part of it came before */
	assert_int_equal(coll_exec_look(exec, op), COLL_LOOK_OTHER);
	exec->got[op] = 0;
	assert_int_equal(taken, 0);
	assert_int_equal(coll_exec_look(exec, op), COLL_LOOK_MESSAGE);
	message_leaves(w.links[1]);
	finish(&run);
}

/* The run has the error when the kernel has released the application's buffer, not before. */
static void a_broken_connection_fails_the_run(void **state)
{
	struct coll_run run = run_of(exchange(LARGE));

	(void)state;
	start(&run);
	coll_link_open(w.links[2]);
	assert_true(coll_exec_link_events.needs(w.links[1]));
	coll_exec_link_events.lost(w.links[1], -ECONNRESET, "its connection ended");
	assert_int_equal(w.group->state, GROUP_OK);	/* another rank may know better */
	poll_until_failed();
	assert_int_equal(w.group->failed_rank, 1);
	assert_int_equal(w.group->failed[1], 1);
	assert_int_equal(controls_to(2, COLL_MESSAGE_FAIL), 1);
	assert_int_equal(w.asked.control[0].slot, 1);
	assert_int_equal(w.asked.control[0].hash, ECONNRESET);
	assert_non_null(run.exec);
	message_leaves(w.links[1]);
	assert_null(run.exec);
	assert_int_equal(run.status, -ECONNRESET);
	finish(&run);
}

/* It is returned to programs: only what they take for an error. */
static void a_failure_has_an_errno_or_none(void **state)
{
	const uint32_t wrong[] = { 0, 512, 0x7fffffff, 0x80000000, 0xffffff92, UINT32_MAX };
	struct coll_header news = { .kind = COLL_MESSAGE_FAIL, .slot = COLL_NONE };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		news.hash = wrong[i];
		coll_exec_link_events.control(w.links[1], &news);
		assert_int_equal(w.group->error, -EPROTO);
		poll_until_failed();
		world_end();
		world_begin();
	}
}

/* The first cause is the group's: news of it arrives within 5 ms of the loss. */
static void news_of_a_failure_goes_before_a_lost_link(void **state)
{
	const struct coll_header news = { .kind = COLL_MESSAGE_FAIL, .run = 1, .slot = 2,
					  .hash = ETIMEDOUT };
	struct coll_run run = run_of(gather(SMALL));
	const uint64_t began = coll_now();

	(void)state;
	start(&run);
	coll_exec_link_events.lost(w.links[1], -ECONNRESET, "its connection ended");
	assert_true(w.group->lost_until >= began + 5 * MS);
	coll_exec_link_events.control(w.links[2], &news);
	poll_until_failed();
	assert_int_equal(w.group->error, -ETIMEDOUT);
	assert_int_equal(w.group->failed_rank, 2);
	assert_int_equal(run.status, -ETIMEDOUT);
	finish(&run);
}

static void a_needed_rank_that_leaves_fails_the_group(void **state)
{
	const struct coll_header bye = { .kind = COLL_MESSAGE_BYE };
	struct coll_run run = run_of(gather(SMALL));

	(void)state;
	start(&run);
	coll_exec_link_events.control(w.links[2], &bye);
	assert_int_equal(w.group->error, -ECONNRESET);
	assert_int_equal(w.group->failed_rank, 2);
	poll_until_failed();
	finish(&run);
}

/* After a revocation no op starts, and what arrives is discarded. */
static void a_cancelled_run_starts_nothing_more(void **state)
{
	struct coll_build *b = schedule_begin(SMALL, SMALL);
	struct coll_run run;

	(void)state;
	coll_emit_after(b, coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), SMALL));
	coll_emit_send(b, 2, COLL_ADDRESS(COLL_OUT, 0), SMALL);
	run = run_of(schedule_end());
	start(&run);
	coll_group_fail(w.group, -ECANCELED, 0, COLL_NONE, "revoked the group");
	assert_int_equal(controls_to(1, COLL_MESSAGE_FAIL), 1);
	message_arrives(w.links[1], header_of(0, 0, SMALL), 5);
	message_arrives(w.links[1], header_of(1, 0, SMALL), 5);
	assert_bytes(w.out, 0, SMALL);
	assert_null(w.links[1]->kept);
	assert_int_equal(w.asked.sent[2], 0);
	poll_until_failed();
	assert_int_equal(run.status, -ECANCELED);
	assert_int_equal(coll_exec_start(&run, coll_now() + COLL_SECOND), -ECANCELED);
	finish(&run);
}

/* A run that was started has no memory to begin: other ranks hear of it, before they take the next one for it. */
static void a_started_run_that_cannot_begin_fails_the_group(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));

	(void)state;
	coll_group_lacks_run(&run, -ENOMEM);
	assert_int_equal(w.group->state, GROUP_FAILING);
	assert_int_equal(w.group->error, -ENOMEM);
	assert_int_equal(w.group->failed_rank, 0);
	assert_int_equal(coll_exec_start(&run, coll_now() + COLL_SECOND), -ENOMEM);
	poll_until_failed();
	finish(&run);
}

/* ... but not where the program has the error before it can start another, nor where no rank begins it. */
static void a_call_that_is_refused_leaves_the_group(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));

	(void)state;
	coll_group_lacks_run(&run, -EOPNOTSUPP);
	run.local = true;
	coll_group_lacks_run(&run, -ENOMEM);
	assert_int_equal(w.group->state, GROUP_OK);
	start(&run);
	message_leaves(w.links[1]);
	message_arrives(w.links[1], header_of(0, 0, SMALL), 5);
	finish(&run);
}

/* The group does not close its links before its news is with the peers' hosts. */
static void news_leaves_before_links_close(void **state)
{
	struct coll_run run = run_of(gather(SMALL));
	int i;

	(void)state;
	start(&run);
	w.undelivered = true;
	coll_group_fail(w.group, -ECANCELED, 0, COLL_NONE, "revoked the group");
	for (i = 0; i < 5; i++)
		coll_context_poll(&w.context, coll_now() + MS);
	assert_int_equal(w.asked.closed[1] + w.asked.closed[2], 0);
	assert_non_null(run.exec);
	w.undelivered = false;
	poll_until_failed();
	assert_int_equal(w.asked.closed[1] + w.asked.closed[2], 2);
	finish(&run);
}

/* ---- surveys ---------------------------------------------------------------------------------- */

/* Delays of calls are the group's, so the messages that they are a part of are as well. */
static void a_survey_counts_the_messages_of_its_group(void **state)
{
	struct coll_run run = run_of(gather(SMALL));
	int i;

	(void)state;
	w.group->unsampled = 0;
	assert_int_equal(coll_survey_begin(&run, COLL_SECOND), 0);
	start(&run);
	message_arrives(w.links[1], header_of(0, 0, SMALL), 5);
	message_arrives(w.links[2], header_of(0, 0, SMALL), 6);
	assert_null(run.exec);
	w.context.counters.recvs += 100;	/* of another group */
	w.group->survey->due = w.group->survey->calls;
	assert_int_equal(coll_survey_begin(&run, COLL_SECOND), 0);
	assert_int_equal(w.group->survey->runs->sum.received, 2);
	coll_group_fail(w.group, -ECANCELED, 0, COLL_NONE, "revoked the group");
	for (i = 1; i < RANKS; i++)
		while (w.links[i]->queue)
			message_leaves(w.links[i]);
	poll_until_failed();
	finish(&run);
}

/* ---- tagged messages ------------------------------------------------------------------------- */

/* Receives w.out from rank 1 once it is granted; the link to rank 1, where the message may begin. */
static struct coll_link *grant(struct coll_run *run)
{
	const struct coll_header offer = { .kind = COLL_MESSAGE_DATA, .version = COLL_WIRE_VERSION,
					   .hash = COLL_POINT_OFFER, .bytes = sizeof(uint64_t) };
	const uint64_t length = LARGE;
	struct coll_link *link;

	*run = (struct coll_run){ .group = w.group, .out = w.out,
				  .call = { .collective = COLL_CALL_RECV, .ranks = RANKS, .root = 1,
					    .count = LARGE, .element = 1 } };
	assert_int_equal(coll_run_plan(run), 0);
	assert_int_equal(coll_run_begin(run), 0);
	link = w.group->twin->links[1];
	message_begins(link, offer);
	memcpy(link->target, &length, sizeof(length));
	link->payload_left = 0;
	message_ends(link, 0);
	assert_int_equal(link->queue->header.hash, COLL_POINT_GRANT);
	message_leaves(link);
	return link;
}

static struct coll_header granted_chunk(uint64_t offset, uint16_t units)
{
	return (struct coll_header){ .kind = COLL_MESSAGE_DATA, .version = COLL_WIRE_VERSION,
				     .hash = COLL_POINT_LONG, .bytes = LARGE, .offset = offset,
				     .chunk = units };
}

static void a_granted_message_may_come_in_chunks(void **state)
{
	struct coll_run run;
	struct coll_link *link = grant(&run);

	(void)state;
	message_arrives(link, granted_chunk(0, 1), 5);
	assert_non_null(run.exec);
	message_arrives(link, granted_chunk(COLL_CHUNK_UNIT, 0), 6);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	assert_bytes(w.out, 5, COLL_CHUNK_UNIT);
	assert_bytes(w.out + COLL_CHUNK_UNIT, 6, LARGE - COLL_CHUNK_UNIT);
	coll_run_ended(&run);
}

/* One connection brings the chunks of a message in their order, each once. */
static void a_granted_chunk_twice_fails_the_group(void **state)
{
	struct coll_run run;
	struct coll_link *link = grant(&run);

	(void)state;
	message_arrives(link, granted_chunk(0, 1), 5);
	message_arrives(link, granted_chunk(0, 0), 6);
	assert_int_equal(w.group->error, -EPROTO);
	assert_int_equal(w.group->failed_rank, 1);
	assert_bytes(w.out, 5, COLL_CHUNK_UNIT);
	poll_until_failed();
	assert_int_equal(run.status, -EPROTO);
	coll_run_ended(&run);
}

/* ---- deadlines --------------------------------------------------------------------------------- */

/* Rank 2 answers, rank 1 does not. */
static void a_deadline_blames_the_silent_rank(void **state)
{
	struct coll_run run = run_of(gather(SMALL));
	const uint64_t began = coll_now();

	(void)state;
	w.answers[2] = true;
	assert_int_equal(coll_exec_start(&run, began + 160 * MS), 0);
	poll_until_failed();
	assert_true(coll_now() - began >= 144 * MS);
	assert_true(controls_to(1, COLL_MESSAGE_PING) > 0);
	assert_int_equal(w.group->error, -ETIMEDOUT);
	assert_int_equal(w.group->failed_rank, 1);
	assert_int_equal(run.status, -ETIMEDOUT);
	finish(&run);
}

/* Both answer; rank 1 waits for rank 2 itself. */
static void a_deadline_follows_the_wait_chain(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));
	const uint64_t began = coll_now();

	(void)state;
	w.answers[1] = true;
	w.suspect[1] = 2;
	assert_int_equal(coll_exec_start(&run, began + 160 * MS), 0);
	message_leaves(w.links[1]);
	poll_until_failed();
	assert_true(coll_now() - began >= 160 * MS);
	assert_int_equal(w.group->error, -ETIMEDOUT);
	assert_int_equal(w.group->failed_rank, 2);
	finish(&run);
}

/* A rank whose message has arrived is not w.asked. */
static void only_ranks_that_are_waited_for_are_pinged(void **state)
{
	struct coll_run run = run_of(gather(SMALL));

	(void)state;
	assert_int_equal(coll_exec_start(&run, coll_now() + 160 * MS), 0);
	message_arrives(w.links[2], header_of(0, 0, SMALL), 5);
	poll_until_failed();
	assert_true(controls_to(1, COLL_MESSAGE_PING) > 0);
	assert_int_equal(controls_to(2, COLL_MESSAGE_PING), 0);
	finish(&run);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_run_completes_with_its_last_op),
		TEST(a_large_send_delays_the_end),
		TEST(memory_is_used_again_when_nothing_refers_to_it),
		TEST(a_message_before_its_run_is_kept),
		TEST(kept_messages_go_to_their_runs),
		TEST(a_run_may_start_within_its_message),
		TEST(a_stale_message_is_discarded),
		TEST(a_stale_message_of_another_call_fails_the_group),
		TEST(an_optional_message_may_never_come),
		TEST(a_message_in_progress_keeps_its_exec),
		TEST(a_left_rank_may_owe_an_optional_message),
		TEST(a_message_of_another_size_fails_the_group),
		TEST(a_message_outside_the_schedule_fails_the_group),
		TEST(chunks_of_streams_come_in_any_order),
		TEST(a_chunk_twice_fails_the_group),
		TEST(another_call_fails_the_group),
		TEST(a_message_in_memory_is_taken),
		TEST(not_all_messages_may_be_taken),
		TEST(a_broken_connection_fails_the_run),
		TEST(a_failure_has_an_errno_or_none),
		TEST(news_of_a_failure_goes_before_a_lost_link),
		TEST(a_needed_rank_that_leaves_fails_the_group),
		TEST(a_cancelled_run_starts_nothing_more),
		TEST(a_started_run_that_cannot_begin_fails_the_group),
		TEST(a_call_that_is_refused_leaves_the_group),
		TEST(news_leaves_before_links_close),
		TEST(a_survey_counts_the_messages_of_its_group),
		TEST(a_granted_message_may_come_in_chunks),
		TEST(a_granted_chunk_twice_fails_the_group),
		TEST(a_deadline_blames_the_silent_rank),
		TEST(a_deadline_follows_the_wait_chain),
		TEST(only_ranks_that_are_waited_for_are_pinged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
