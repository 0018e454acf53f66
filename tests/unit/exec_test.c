// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Executing schedules by itself: fake links below, in place of libcoll/link, and a fake job
 * above. This process is rank 0 of three. A message arrives when a test says so.
 *
 * Length: the fakes are 400 lines and of use to these tests alone, which share one world.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "core/build.h"
#include "libcoll/exec/failure.h"
#include "libcoll/exec/poll.h"
#include "libcoll/exec/receive.h"
#include "libcoll/exec/run.h"
#include "libcoll/exec/unexpected.h"
#include "libcoll/link/arbiter.h"
#include "libcoll/link/stream.h"
#include "libcoll/transport/arrival.h"
#include "libcoll/transport/connect.h"
#include "libcoll/transport/listen.h"
#include "libcoll/transport/mux.h"
#include "libcoll/transport/seek.h"
#include "libcoll/transport/transport.h"
#include "tests/lib/schedules.h"

enum {
	RANKS = 3,
	SMALL = 100,			/* sent from the library's copy */
	LARGE = 5000,			/* sent from the application's buffer */
	HASH = 0x1234,
	CONTROLS = 64,
};

#define MS 1000000ull

static struct coll_context context;
static struct coll_flight_page flight_page;
static const struct coll_transport no_transport;
static uint32_t job_ranks[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
static struct coll_group group;
static struct coll_link *links[RANKS], link_of[RANKS];
static uint8_t failed[RANKS], in[LARGE], out[2 * LARGE];

/* ---- below: links ---------------------------------------------------------------- */

/* What the links were asked to do. */
static struct {
	uint32_t opened[RANKS], sent[RANKS], closed[RANKS];
	struct { enum coll_message_kind kind; uint32_t rank, run, slot, hash; } control[CONTROLS];
	uint32_t controls;
	bool undelivered;		/* the peers' hosts have not acknowledged all */
	uint32_t suspect[RANKS];	/* the answer to a ping; COLL_NONE: no answer */
	bool answers[RANKS];
} asked;

static const struct coll_link_events *up(void)
{
	return &coll_exec_link_events;
}

struct coll_link *coll_link_get(struct coll_group *of, uint32_t rank)
{
	assert_ptr_equal(of, &group);
	return links[rank];
}

void coll_link_set_state(struct coll_link *link, enum coll_link_state state)
{
	link->state = state;
}

void coll_link_open(struct coll_link *link)
{
	asked.opened[link->rank]++;
	link->state = LINK_UP;
}

void coll_link_send(struct coll_link *link, struct coll_message *message)
{
	struct coll_message **slot = &link->queue;

	assert_true(link->state == LINK_UP);
	while (*slot)
		slot = &(*slot)->next;
	message->next = NULL;
	*slot = message;
	asked.sent[link->rank]++;
}

/* The first message of the queue has been sent, or never will be. */
static void message_leaves(uint32_t rank)
{
	struct coll_message *message = links[rank]->queue;

	assert_non_null(message);
	links[rank]->queue = message->next;
	up()->sent(message);
}

/* The kernel has begun to send the first message, so that one stays. */
void coll_link_drop_queue(struct coll_link *link, bool keep_begun)
{
	struct coll_message *first = link->queue;

	if (keep_begun && first)
		link->queue = first->next;
	while (link->queue)
		message_leaves(link->rank);
	if (keep_begun && first) {
		first->next = NULL;
		link->queue = first;
	}
}

void coll_link_close(struct coll_link *link)
{
	if (link->state == LINK_CLOSED)
		return;
	asked.closed[link->rank]++;
	up()->closing(link);
	link->state = LINK_CLOSED;
	coll_link_drop_queue(link, true);
}

int coll_link_control(struct coll_link *link, enum coll_message_kind kind, uint32_t run,
		      uint32_t slot, uint32_t hash)
{
	const struct coll_header pong = { .kind = COLL_MESSAGE_PONG,
					  .slot = asked.suspect[link->rank] };

	assert_true(asked.controls < CONTROLS);
	asked.control[asked.controls].kind = kind;
	asked.control[asked.controls].rank = link->rank;
	asked.control[asked.controls].run = run;
	asked.control[asked.controls].slot = slot;
	asked.control[asked.controls++].hash = hash;
	if (kind == COLL_MESSAGE_PING && asked.answers[link->rank])
		up()->control(link, &pong);
	return 0;
}

static uint32_t controls_to(uint32_t rank, enum coll_message_kind kind)
{
	uint32_t count = 0, i;

	for (i = 0; i < asked.controls; i++)
		count += asked.control[i].rank == rank && asked.control[i].kind == kind;
	return count;
}

bool coll_link_delivered(const struct coll_link *link)
{
	return !link->queue && !asked.undelivered;
}

bool coll_link_wants_recv(const struct coll_link *link)
{
	return link->expected;
}

void coll_link_touch(struct coll_link *link)
{
	(void)link;
}

void coll_link_leave(struct coll_link *link)
{
	coll_link_close(link);
}

void coll_arbiter_update(struct coll_link *link)
{
	(void)link;
}

void coll_arbiter_check(struct coll_context *of, uint64_t now)
{
	(void)of;
	(void)now;
}

void coll_link_await(struct coll_link *link)
{
	(void)link;
}

int coll_link_fd(const struct coll_link *link)
{
	(void)link;
	return -1;
}

void coll_muxes_touch(struct coll_context *of)
{
	(void)of;
}

void coll_muxes_reap(struct coll_context *of)
{
	(void)of;
}

void coll_arrivals_adopt(struct coll_group *of)
{
	(void)of;
}

void coll_arrivals_bury(struct coll_context *of, uint64_t id, const struct coll_header *news)
{
	(void)of;
	(void)id;
	(void)news;
}

void coll_transport_check(struct coll_context *of, uint64_t now)
{
	(void)of;
	(void)now;
}

void coll_seek(struct coll_link *link, uint64_t now, bool look)
{
	(void)link;
	(void)now;
	(void)look;
}

int coll_connect_look(struct coll_context *of, uint32_t world)
{
	(void)of;
	(void)world;
	return 0;
}

void coll_listen_check(struct coll_context *of)
{
	(void)of;
}

bool coll_streams_delivered(const struct coll_link *link)
{
	(void)link;
	return true;
}

void coll_streams_free(struct coll_link *link)
{
	(void)link;
}

bool coll_streams_send_for(const struct coll_link *link, const struct coll_exec *exec)
{
	(void)link;
	(void)exec;
	return false;
}

bool coll_streams_owe_goodbye(const struct coll_link *link)
{
	(void)link;
	return false;
}

/* An engine that only lets time pass. */
static int fake_advance(struct coll_engine *engine, uint64_t deadline)
{
	struct timespec ms = { 0, MS };

	(void)engine;
	if (deadline)
		nanosleep(&ms, NULL);
	return 0;
}

static const struct coll_engine_ops engine = { .name = "fake", .advance = fake_advance };

/* ---- above: a job, and the application's handle ------------------------------------ */

static uint32_t completed;

static bool fake_circuit_free(const struct coll_exec *exec, uint32_t peer)
{
	(void)exec;
	(void)peer;
	return true;
}

static void fake_completed(struct coll_exec *exec)
{
	(void)exec;
	completed++;
}

static const struct coll_job_ops job = { .circuit_free = fake_circuit_free,
					 .circuits_completed = fake_completed };

/* ---- a schedule ---------------------------------------------------------------------- */

static struct coll_build build;
static uint64_t build_memory[1024];

static struct coll_build *schedule_begin(void)
{
	coll_build_init(&build, build_memory, sizeof(build_memory), 0, RANKS);
	coll_build_buffers(&build, sizeof(in), sizeof(out));
	return &build;
}

static void *copy_of(const void *from, size_t bytes)
{
	void *copy = malloc(bytes);

	assert_non_null(copy);
	return memcpy(copy, from, bytes);
}

/* What coll_planned_get() makes; coll_planned_put() frees it. */
static struct coll_planned *schedule_end(void)
{
	struct coll_planned *planned = calloc(1, sizeof(*planned));
	struct coll_refusal refusal;
	struct coll_schedule *s;
	uint32_t i;

	assert_non_null(planned);
	assert_int_equal(coll_build_finish(&build, &s), 0);
	assert_int_equal(check_schedule(s, s->bytes, &refusal), 0);
	planned->references = 1;
	planned->hash = HASH;
	planned->group = &group;
	planned->schedule = copy_of(s, s->bytes);
	coll_plan_init(&planned->plan, planned->schedule, malloc(coll_plan_bytes(s)));
	planned->links = calloc(s->peers + 1, sizeof(*planned->links));
	for (i = 0; i < s->peers; i++)
		planned->links[i] = links[coll_peers(s)[i].rank];
	for (i = 0; i < s->ops; i++)
		planned->sends += coll_ops(s)[i].kind == COLL_OP_SEND;
	return planned;
}

/* Sends IN to rank 1 and receives OUT from it. */
static struct coll_planned *exchange(uint64_t bytes)
{
	struct coll_build *b = schedule_begin();

	coll_emit_send(b, 1, COLL_ADDRESS(COLL_IN, 0), bytes);
	coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), bytes);
	return schedule_end();
}

/* Receives OUT from ranks 1 and 2. */
static struct coll_planned *gather(uint64_t bytes)
{
	struct coll_build *b = schedule_begin();

	coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), bytes);
	coll_emit_recv(b, 2, COLL_ADDRESS(COLL_OUT, bytes), bytes);
	return schedule_end();
}

static struct coll_run run_of(struct coll_planned *planned)
{
	return (struct coll_run){ .group = &group, .planned = planned, .in = in, .out = out };
}

static void start(struct coll_run *run)
{
	assert_int_equal(coll_exec_start(run, coll_now() + 60 * COLL_SECOND), 0);
}

/* Its plan and its execs are freed: none is in use. */
static void finish(struct coll_run *run)
{
	assert_null(run->exec);
	assert_null(group.active);
	coll_planned_put(run->planned);
}

/* ---- messages that arrive ---------------------------------------------------------------- */

static struct coll_header header_of(uint32_t run, uint32_t slot, uint64_t bytes)
{
	return (struct coll_header){ .kind = COLL_MESSAGE_DATA, .version = COLL_WIRE_VERSION,
				     .run = run, .slot = slot, .hash = HASH, .bytes = bytes };
}

static void message_begins(uint32_t rank, struct coll_header header)
{
	links[rank]->header = header;
	up()->begin(links[rank]);
}

static void message_ends(uint32_t rank, uint8_t value)
{
	if (links[rank]->target)
		memset(links[rank]->target, value, links[rank]->header.bytes);
	up()->end(links[rank]);
}

static void message_arrives(uint32_t rank, struct coll_header header, uint8_t value)
{
	message_begins(rank, header);
	message_ends(rank, value);
}

static void assert_bytes(const uint8_t *data, uint8_t value, size_t bytes)
{
	while (bytes--)
		assert_int_equal(*data++, value);
}

/* Until the group has failed and its runs have ended; at most 5 s. */
static void poll_until_failed(void)
{
	const uint64_t until = coll_now() + 5 * COLL_SECOND;

	while (group.state != GROUP_FAILED && coll_now() < until)
		assert_int_equal(coll_context_poll(&context, until), 0);
	assert_int_equal(group.state, GROUP_FAILED);
}

static int begin(void **state)
{
	uint32_t i;

	(void)state;
	memset(&context, 0, sizeof(context));
	memset(&group, 0, sizeof(group));
	memset(&asked, 0, sizeof(asked));
	memset(failed, 0, sizeof(failed));
	memset(in, 7, sizeof(in));
	memset(out, 0, sizeof(out));
	completed = 0;
	context.engine.ops = &engine;
	context.engine.counters = &context.counters;
	context.engine.next_check = COLL_FOREVER;
	context.events = &coll_exec_link_events;
	context.flight.page = &flight_page;
	context.job = &job;
	context.groups = &group;
	group.context = &context;
	_Static_assert(RANKS <= sizeof(job_ranks) / sizeof(*job_ranks), "a rank of the job each");
	group.ranks = RANKS;
	group.world = job_ranks;
	group.links = links;
	group.failed = failed;
	group.active_end = &group.active;
	group.failed_rank = group.reporter = COLL_NONE;
	group.options.deadline_ns = 60 * COLL_SECOND;
	group.options.unexpected_bytes = 1 << 20;
	for (i = 1; i < RANKS; i++) {
		link_of[i] = (struct coll_link){ .group = &group, .rank = i, .attached = true,
						 .whole = &link_of[i], .suspect = COLL_NONE,
						 .transport = &no_transport };
		link_of[i].kept_end = &link_of[i].kept;
		links[i] = &link_of[i];
		asked.suspect[i] = COLL_NONE;
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	coll_unexpected_free_all(&group);
	return 0;
}

/* ---- a run's life -------------------------------------------------------------------------- */

static void a_run_completes_with_its_last_op(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));

	(void)state;
	start(&run);
	assert_int_equal(asked.opened[1], 1);
	assert_int_equal(asked.opened[2], 0);
	assert_int_equal(asked.sent[1], 1);
	assert_non_null(run.exec);
	assert_int_equal(links[1]->expected, 1);
	message_arrives(1, header_of(0, 0, SMALL), 5);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	assert_int_equal(completed, 1);
	assert_int_equal(links[1]->expected, 0);
	assert_bytes(out, 5, SMALL);
	assert_bytes(out + SMALL, 0, SMALL);
	message_leaves(1);
	finish(&run);
}

/* A large message is in the application's buffer: the run waits until it has been sent. */
static void a_large_send_delays_the_end(void **state)
{
	struct coll_run run = run_of(exchange(LARGE));

	(void)state;
	start(&run);
	message_arrives(1, header_of(0, 0, LARGE), 5);
	assert_non_null(run.exec);
	assert_ptr_equal(links[1]->queue->payload, in);
	message_leaves(1);
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
	message_arrives(1, header_of(0, 0, SMALL), 5);
	assert_null(run.exec);
	memset(in, 8, SMALL);		/* the buffers are the caller's again */
	assert_null(links[1]->queue->payload);
	assert_bytes(links[1]->queue->small, 7, SMALL);
	assert_int_equal(group.draining, 1);
	assert_null(run.planned->spare);

	start(&run);			/* the next run needs other memory */
	second = run.exec;
	assert_ptr_not_equal(second, first);
	message_leaves(1);
	assert_int_equal(group.draining, 0);
	assert_ptr_equal(run.planned->spare, first);
	assert_int_equal(first->state, EXEC_IDLE);
	message_arrives(1, header_of(1, 0, SMALL), 6);
	message_leaves(1);
	assert_bytes(out, 6, SMALL);

	start(&run);
	assert_true(run.exec == first || run.exec == second);
	assert_int_equal(run.exec->number, 2);
	assert_int_equal(links[1]->expected, 1);
	message_arrives(1, header_of(2, 0, SMALL), 7);
	message_leaves(1);
	assert_bytes(out, 7, SMALL);
	finish(&run);
}

/* ---- unexpected, stale and optional messages ------------------------------------------------- */

static void a_message_before_its_run_is_kept(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));

	(void)state;
	message_arrives(1, header_of(0, 0, SMALL), 5);
	assert_int_equal(context.counters.unexpected, 1);
	assert_bytes(out, 0, SMALL);
	start(&run);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	assert_bytes(out, 5, SMALL);
	assert_null(links[1]->kept);
	assert_int_equal(links[1]->expected, 0);
	message_leaves(1);
	finish(&run);
}

/* Two runs ahead; each takes its own. */
static void kept_messages_go_to_their_runs(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));
	uint8_t i;

	(void)state;
	message_arrives(1, header_of(1, 0, SMALL), 12);
	message_arrives(1, header_of(0, 0, SMALL), 11);
	for (i = 0; i < 2; i++) {
		start(&run);
		assert_null(run.exec);
		assert_bytes(out, 11 + i, SMALL);
		message_leaves(1);
	}
	finish(&run);
}

static void a_run_may_start_within_its_message(void **state)
{
	struct coll_run run = run_of(exchange(LARGE));

	(void)state;
	message_begins(1, header_of(0, 0, LARGE));
	start(&run);
	assert_bytes(out, 0, LARGE);
	message_ends(1, 5);
	message_leaves(1);
	assert_null(run.exec);
	assert_bytes(out, 5, LARGE);
	finish(&run);
}

static void a_stale_message_is_discarded(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));

	(void)state;
	start(&run);
	message_arrives(1, header_of(0, 0, SMALL), 5);
	message_leaves(1);
	message_begins(1, header_of(0, 0, SMALL));
	assert_null(links[1]->target);
	assert_null(links[1]->exec);
	message_ends(1, 6);
	assert_int_equal(context.counters.stale, 1);
	assert_int_equal(group.state, GROUP_OK);
	assert_bytes(out, 5, SMALL);
	finish(&run);
}

/* Rank 1 called something else in a run that has completed here. */
static void a_stale_message_of_another_call_fails_the_group(void **state)
{
	struct coll_header other = header_of(0, 0, SMALL);
	struct coll_run run = run_of(exchange(SMALL));

	(void)state;
	start(&run);
	message_arrives(1, header_of(0, 0, SMALL), 5);
	message_leaves(1);
	other.hash++;
	message_arrives(1, other, 6);
	assert_int_equal(group.error, -EPROTO);
	assert_int_equal(group.failed_rank, 1);
	finish(&run);
}

static struct coll_planned *with_optional_receive(void)
{
	struct coll_build *b = schedule_begin();

	coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), SMALL);
	coll_emit_optional(b);
	coll_emit_recv(b, 2, coll_emit_scratch(b, SMALL), SMALL);
	return schedule_end();
}

static void an_optional_message_may_never_come(void **state)
{
	struct coll_run run = run_of(with_optional_receive());

	(void)state;
	start(&run);
	assert_int_equal(links[2]->expected, 1);
	message_arrives(1, header_of(0, 0, SMALL), 5);
	assert_null(run.exec);
	assert_int_equal(run.status, 0);
	assert_int_equal(links[2]->expected, 0);
	assert_null(group.active);
	message_begins(2, header_of(0, 0, SMALL));	/* stale by now */
	assert_null(links[2]->target);
	message_ends(2, 6);
	assert_int_equal(context.counters.stale, 1);
	finish(&run);
}

/* The bytes of the optional message are still written to the run's scratch memory. */
static void a_message_in_progress_keeps_its_exec(void **state)
{
	struct coll_run run = run_of(with_optional_receive());

	(void)state;
	start(&run);
	message_begins(2, header_of(0, 0, SMALL));
	message_arrives(1, header_of(0, 0, SMALL), 5);
	assert_null(run.exec);
	assert_int_equal(group.draining, 1);
	message_ends(2, 6);
	assert_int_equal(group.draining, 0);
	finish(&run);
}

static void a_left_rank_may_owe_an_optional_message(void **state)
{
	const struct coll_header bye = { .kind = COLL_MESSAGE_BYE };
	struct coll_run run = run_of(with_optional_receive());

	(void)state;
	start(&run);
	up()->control(links[2], &bye);
	assert_int_equal(links[2]->state, LINK_LEFT);
	assert_int_equal(group.state, GROUP_OK);
	assert_false(up()->needs(links[2]));
	assert_true(up()->needs(links[1]));
	message_arrives(1, header_of(0, 0, SMALL), 5);
	finish(&run);
}

/* ---- errors --------------------------------------------------------------------------------- */

static void a_message_of_another_size_fails_the_group(void **state)
{
	struct coll_build *b = schedule_begin();
	struct coll_run run;

	(void)state;
	coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), SMALL);
	coll_emit_send(b, 2, COLL_ADDRESS(COLL_IN, 0), SMALL);
	run = run_of(schedule_end());
	message_arrives(1, header_of(0, 0, SMALL - 1), 5);	/* kept, then compared */
	start(&run);
	assert_int_equal(group.error, -EPROTO);
	assert_int_equal(group.failed_rank, 1);
	assert_bytes(out, 0, SMALL);
	assert_int_equal(asked.sent[2], 0);	/* it was ready, but no op starts now */
	poll_until_failed();
	assert_int_equal(run.status, -EPROTO);
	finish(&run);
}

static void a_message_outside_the_schedule_fails_the_group(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));

	(void)state;
	start(&run);
	message_begins(1, header_of(0, 1, SMALL));
	assert_int_equal(group.error, -EPROTO);
	assert_null(links[1]->exec);
	poll_until_failed();
	message_leaves(1);
	finish(&run);
}

/* A part of rank 1's message of LARGE bytes, on one of its two streams. */
static void chunk_begins(struct coll_link *stream, uint64_t offset)
{
	stream->header = header_of(0, 0, LARGE);
	stream->header.chunk = 1;
	stream->header.offset = offset;
	up()->begin(stream);
}

static void chunk_ends(struct coll_link *stream, uint8_t value)
{
	if (stream->target)
		memset(stream->target, value, coll_chunk_bytes(&stream->header));
	up()->end(stream);
}

static void streams_begin(struct coll_link stream[2])
{
	uint32_t i;

	for (i = 0; i < 2; i++) {
		stream[i] = *links[1];
		stream[i].whole = links[1];
		stream[i].number = i + 1;
	}
	links[1]->stream = stream;
	links[1]->streams = 2;
}

static void chunks_of_streams_come_in_any_order(void **state)
{
	struct coll_run run = run_of(exchange(LARGE));
	struct coll_link stream[2];
	int started;

	(void)state;
	for (started = 0; started < 2; started++) {
		end(state);
		begin(state);
		memset(out, 0, sizeof(out));
		streams_begin(stream);
		if (started)
			start(&run);
		chunk_begins(&stream[0], COLL_CHUNK_UNIT);
		chunk_begins(&stream[1], 0);
		chunk_ends(&stream[1], 5);
		assert_false(links[1]->kept && links[1]->kept->complete);
		chunk_ends(&stream[0], 6);
		if (!started)
			start(&run);
		assert_int_equal(group.state, GROUP_OK);
		assert_bytes(out, 5, COLL_CHUNK_UNIT);
		assert_bytes(out + COLL_CHUNK_UNIT, 6, LARGE - COLL_CHUNK_UNIT);
		message_leaves(1);
		assert_null(run.exec);
	}
	finish(&run);
}

/* A message is never complete while a chunk of it is under way: its memory is another's then. */
static void a_chunk_twice_fails_the_group(void **state)
{
	struct coll_link stream[2];
	int started;

	for (started = 0; started < 2; started++) {
		struct coll_run run;

		end(state);
		begin(state);
		run = run_of(exchange(LARGE));
		streams_begin(stream);
		if (started)
			start(&run);
		chunk_begins(&stream[0], 0);
		chunk_begins(&stream[1], 0);
		assert_int_equal(group.state, GROUP_FAILING);
		assert_int_equal(group.error, -EPROTO);
		assert_int_equal(group.failed_rank, 1);
		assert_null(stream[1].target);
		chunk_ends(&stream[1], 6);
		chunk_begins(&stream[1], COLL_CHUNK_UNIT);
		chunk_ends(&stream[1], 6);
		assert_false(links[1]->kept && links[1]->kept->complete);
		chunk_ends(&stream[0], 5);
		if (started) {
			poll_until_failed();
			message_leaves(1);
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
	message_begins(2, other);
	assert_int_equal(group.error, -EPROTO);
	assert_int_equal(group.failed_rank, 2);
	assert_int_equal(controls_to(1, COLL_MESSAGE_FAIL), 1);
	assert_int_equal(controls_to(2, COLL_MESSAGE_FAIL), 1);
	poll_until_failed();
	assert_int_equal(run.status, -EPROTO);
	finish(&run);
}

/* The run has the error when the kernel has released the application's buffer, not before. */
static void a_broken_connection_fails_the_run(void **state)
{
	struct coll_run run = run_of(exchange(LARGE));

	(void)state;
	start(&run);
	coll_link_open(links[2]);
	assert_true(up()->needs(links[1]));
	up()->lost(links[1], -ECONNRESET, "its connection ended");
	assert_int_equal(group.state, GROUP_OK);	/* another rank may know better */
	poll_until_failed();
	assert_int_equal(group.failed_rank, 1);
	assert_int_equal(failed[1], 1);
	assert_int_equal(controls_to(2, COLL_MESSAGE_FAIL), 1);
	assert_int_equal(asked.control[0].slot, 1);
	assert_int_equal(asked.control[0].hash, ECONNRESET);
	assert_non_null(run.exec);
	message_leaves(1);
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

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		news.hash = wrong[i];
		up()->control(links[1], &news);
		assert_int_equal(group.error, -EPROTO);
		poll_until_failed();
		end(state);
		begin(state);
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
	up()->lost(links[1], -ECONNRESET, "its connection ended");
	assert_true(group.lost_until >= began + 5 * MS);
	up()->control(links[2], &news);
	poll_until_failed();
	assert_int_equal(group.error, -ETIMEDOUT);
	assert_int_equal(group.failed_rank, 2);
	assert_int_equal(run.status, -ETIMEDOUT);
	finish(&run);
}

static void a_needed_rank_that_leaves_fails_the_group(void **state)
{
	const struct coll_header bye = { .kind = COLL_MESSAGE_BYE };
	struct coll_run run = run_of(gather(SMALL));

	(void)state;
	start(&run);
	up()->control(links[2], &bye);
	assert_int_equal(group.error, -ECONNRESET);
	assert_int_equal(group.failed_rank, 2);
	poll_until_failed();
	finish(&run);
}

/* After a revocation no op starts, and what arrives is discarded. */
static void a_cancelled_run_starts_nothing_more(void **state)
{
	struct coll_build *b = schedule_begin();
	struct coll_run run;

	(void)state;
	coll_emit_after(b, coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), SMALL));
	coll_emit_send(b, 2, COLL_ADDRESS(COLL_OUT, 0), SMALL);
	run = run_of(schedule_end());
	start(&run);
	coll_group_fail(&group, -ECANCELED, 0, COLL_NONE, "revoked the group");
	assert_int_equal(controls_to(1, COLL_MESSAGE_FAIL), 1);
	message_arrives(1, header_of(0, 0, SMALL), 5);
	message_arrives(1, header_of(1, 0, SMALL), 5);
	assert_bytes(out, 0, SMALL);
	assert_null(links[1]->kept);
	assert_int_equal(asked.sent[2], 0);
	poll_until_failed();
	assert_int_equal(run.status, -ECANCELED);
	assert_int_equal(coll_exec_start(&run, coll_now() + COLL_SECOND), -ECANCELED);
	finish(&run);
}

/* The group does not close its links before its news is with the peers' hosts. */
static void news_leaves_before_links_close(void **state)
{
	struct coll_run run = run_of(gather(SMALL));
	int i;

	(void)state;
	start(&run);
	asked.undelivered = true;
	coll_group_fail(&group, -ECANCELED, 0, COLL_NONE, "revoked the group");
	for (i = 0; i < 5; i++)
		coll_context_poll(&context, coll_now() + MS);
	assert_int_equal(asked.closed[1] + asked.closed[2], 0);
	assert_non_null(run.exec);
	asked.undelivered = false;
	poll_until_failed();
	assert_int_equal(asked.closed[1] + asked.closed[2], 2);
	finish(&run);
}

/* ---- deadlines --------------------------------------------------------------------------------- */

/* Rank 2 answers, rank 1 does not. */
static void a_deadline_blames_the_silent_rank(void **state)
{
	struct coll_run run = run_of(gather(SMALL));
	const uint64_t began = coll_now();

	(void)state;
	asked.answers[2] = true;
	assert_int_equal(coll_exec_start(&run, began + 160 * MS), 0);
	poll_until_failed();
	assert_true(coll_now() - began >= 144 * MS);
	assert_true(controls_to(1, COLL_MESSAGE_PING) > 0);
	assert_int_equal(group.error, -ETIMEDOUT);
	assert_int_equal(group.failed_rank, 1);
	assert_int_equal(run.status, -ETIMEDOUT);
	finish(&run);
}

/* Both answer; rank 1 waits for rank 2 itself. */
static void a_deadline_follows_the_wait_chain(void **state)
{
	struct coll_run run = run_of(exchange(SMALL));
	const uint64_t began = coll_now();

	(void)state;
	asked.answers[1] = true;
	asked.suspect[1] = 2;
	assert_int_equal(coll_exec_start(&run, began + 160 * MS), 0);
	message_leaves(1);
	poll_until_failed();
	assert_true(coll_now() - began >= 160 * MS);
	assert_int_equal(group.error, -ETIMEDOUT);
	assert_int_equal(group.failed_rank, 2);
	finish(&run);
}

/* A rank whose message has arrived is not asked. */
static void only_ranks_that_are_waited_for_are_pinged(void **state)
{
	struct coll_run run = run_of(gather(SMALL));

	(void)state;
	assert_int_equal(coll_exec_start(&run, coll_now() + 160 * MS), 0);
	message_arrives(2, header_of(0, 0, SMALL), 5);
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
		TEST(a_broken_connection_fails_the_run),
		TEST(a_failure_has_an_errno_or_none),
		TEST(news_of_a_failure_goes_before_a_lost_link),
		TEST(a_needed_rank_that_leaves_fails_the_group),
		TEST(a_cancelled_run_starts_nothing_more),
		TEST(news_leaves_before_links_close),
		TEST(a_deadline_blames_the_silent_rank),
		TEST(a_deadline_follows_the_wait_chain),
		TEST(only_ranks_that_are_waited_for_are_pinged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
