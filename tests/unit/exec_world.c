// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Length: a fake for each function of the floors below. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/port.h"
#include "libcoll/base/clock.h"
#include "libcoll/exec/fused.h"
#include "libcoll/exec/group.h"
#include "libcoll/exec/poll.h"
#include "libcoll/exec/published.h"
#include "libcoll/exec/receive.h"
#include "libcoll/link/arbiter.h"
#include "libcoll/link/published.h"
#include "libcoll/link/stream.h"
#include "libcoll/transport/arrival.h"
#include "libcoll/transport/connect.h"
#include "libcoll/transport/listen.h"
#include "libcoll/transport/mux.h"
#include "libcoll/transport/pending.h"
#include "libcoll/transport/seek.h"
#include "libcoll/transport/transport.h"
#include "tests/lib/schedules.h"
#include "tests/unit/exec_world.h"

struct world w;

static struct coll_flight_page flight_page;
static struct coll_boot boot = { .ranks = RANKS };
static const struct coll_transport no_transport;

/* ---- below: links ---------------------------------------------------------------- */

static const struct coll_link_events *above(const struct coll_link *link)
{
	return coll_link_events(link->group);
}

static void link_make(struct coll_link *link, struct coll_group *group, uint32_t rank)
{
	*link = (struct coll_link){ .group = group, .rank = rank, .attached = true, .whole = link,
				    .suspect = COLL_NONE, .transport = &no_transport };
	link->kept_end = &link->kept;
}

struct coll_link *coll_link_get(struct coll_group *group, uint32_t rank)
{
	struct coll_link *link = group->links[rank];

	if (link)
		return link;
	link = calloc(1, sizeof(*link));
	coll_assert(link);
	link_make(link, group, rank);
	return group->links[rank] = link;
}

void coll_link_set_state(struct coll_link *link, enum coll_link_state state)
{
	link->state = state;
}

/* The connection is up at once. */
void coll_link_open(struct coll_link *link)
{
	uint32_t i;

	if (link->state != LINK_IDLE)
		return;
	w.asked.opened[link->rank]++;
	link->state = LINK_UP;
	for (i = 0; i < link->streams; i++)
		link->stream[i].state = LINK_UP;
	above(link)->up(link);
}

/* Messages are queued here, and wait for the test, unless it lets some go at once. */
bool coll_link_send_now(struct coll_link *link, struct coll_message *message)
{
	coll_assert(message->exec);
	if (!w.sends_now)
		return false;
	w.sends_now--;
	w.asked.sent_now[link->rank]++;
	return true;
}

/* So many chunks are published, of all links together. */
bool coll_link_publishes(struct coll_link *link, const void *data, uint64_t bytes)
{
	(void)link;
	(void)data;
	(void)bytes;
	return w.publishes > w.published;
}

bool coll_link_publish(struct coll_link *link, const struct coll_header *header, const void *data,
		       struct coll_published_place place)
{
	if (w.refuses || !coll_link_publishes(link, data, header->bytes))
		return false;
	w.published++;
	w.publication = *header;
	w.place = place;
	return true;
}

void coll_link_send(struct coll_link *link, struct coll_message *message)
{
	coll_link_queue(link, message);
}

void coll_link_queue(struct coll_link *link, struct coll_message *message)
{
	struct coll_message **slot = &link->queue;

	coll_assert(link->state != LINK_CLOSED);
	while (*slot)
		slot = &(*slot)->next;
	message->next = NULL;
	*slot = message;
	w.asked.sent[link->rank]++;
}

/* The message at this place of the queue: one without an exec has memory of its own. */
static void queue_drop(struct coll_link *link, struct coll_message **slot)
{
	struct coll_message *message = *slot;

	coll_assert(message);
	*slot = message->next;
	if (message->exec)
		above(link)->sent(message);
	else
		free(message);
}

void message_leaves(struct coll_link *link)
{
	queue_drop(link, &link->queue);
}

/* The kernel has begun to send the first message, so that one stays. */
void coll_link_drop_queue(struct coll_link *link, bool keep_begun)
{
	struct coll_message **slot = &link->queue;

	if (keep_begun && *slot)
		slot = &(*slot)->next;
	while (*slot)
		queue_drop(link, slot);
}

void coll_link_close(struct coll_link *link)
{
	uint32_t i;

	if (link->state == LINK_CLOSED)
		return;
	for (i = 0; i < link->streams; i++)
		coll_link_close(&link->stream[i]);
	w.asked.closed[link->rank] += !link->number;
	above(link)->closing(link);
	link->state = LINK_CLOSED;
	coll_link_drop_queue(link, true);
}

static bool link_may_end(const struct coll_link *link)
{
	return link->state == LINK_LEFT || link->group->freed ||
	       (!link->heard && !above(link)->needs(link));
}

/* As libcoll/link/end.c does it. */
void link_breaks(struct coll_link *link)
{
	const bool matters = link->group->state == GROUP_OK && link->state != LINK_LEFT &&
			     !link_may_end(link->whole);

	if (link->state == LINK_LOST || link->state == LINK_CLOSED)
		return;
	if (!matters)
		coll_link_close(link);
	else if (link->number)
		link->state = LINK_LOST;
	else
		above(link)->lost(link, -ECONNRESET, "its connection ended");
}

void link_detaches(struct coll_link *link)
{
	struct coll_exec *exec[] = { link->exec, link->speculative_exec };
	uint32_t i;

	coll_assert(link->state == LINK_CLOSED);
	link->exec = link->speculative_exec = NULL;
	link->attached = false;
	for (i = 0; i < 2; i++)
		if (exec[i])
			above(link)->release(exec[i]);
	coll_link_drop_queue(link, false);
}

int coll_link_control(struct coll_link *link, enum coll_message_kind kind, uint32_t run,
		      uint32_t slot, uint32_t hash)
{
	const struct coll_header pong = { .kind = COLL_MESSAGE_PONG,
					  .slot = w.suspect[link->rank] };
	const uint32_t i = w.asked.controls;

	coll_assert(link->state != LINK_CLOSED);
	if (i < CONTROLS) {
		w.asked.control[i].kind = kind;
		w.asked.control[i].rank = link->rank;
		w.asked.control[i].run = run;
		w.asked.control[i].slot = slot;
		w.asked.control[i].hash = hash;
		w.asked.controls++;
	}
	if (kind == COLL_MESSAGE_PING && w.answers[link->rank])
		above(link)->control(link, &pong);
	return 0;
}

uint32_t controls_to(uint32_t rank, enum coll_message_kind kind)
{
	uint32_t count = 0, i;

	coll_assert(w.asked.controls < CONTROLS);
	for (i = 0; i < w.asked.controls; i++)
		count += w.asked.control[i].rank == rank && w.asked.control[i].kind == kind;
	return count;
}

bool coll_link_delivered(const struct coll_link *link)
{
	return !link->queue && !w.undelivered;
}

bool coll_link_wants_recv(const struct coll_link *link)
{
	return link->expected;
}

void coll_link_leave(struct coll_link *link)
{
	coll_link_close(link);
}

void streams_begin(struct coll_link *link, uint32_t streams)
{
	uint32_t i;

	link->stream = calloc(streams, sizeof(*link->stream));
	coll_assert(link->stream && !link->streams);
	link->streams = streams;
	for (i = 0; i < streams; i++) {
		link_make(&link->stream[i], link->group, link->rank);
		link->stream[i].state = link->state;
		link->stream[i].whole = link;
		link->stream[i].number = i + 1;
	}
}

void coll_streams_free(struct coll_link *link)
{
	free(link->stream);
}

bool coll_streams_delivered(const struct coll_link *link)
{
	(void)link;
	return true;
}

bool coll_streams_send_for(const struct coll_link *link, const struct coll_exec *exec)
{
	(void)link;
	(void)exec;
	return false;
}

void coll_link_touch(struct coll_link *link)
{
	(void)link;
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

void coll_arbiter_update(struct coll_link *link)
{
	(void)link;
}

void coll_arbiter_check(struct coll_context *context, uint64_t now)
{
	(void)context;
	(void)now;
}

void coll_muxes_touch(struct coll_context *context)
{
	(void)context;
}

uint64_t coll_pending_due(const struct coll_context *context)
{
	(void)context;
	return COLL_FOREVER;
}

void coll_muxes_reap(struct coll_context *context)
{
	(void)context;
}

void coll_arrivals_adopt(struct coll_group *group)
{
	(void)group;
}

void coll_arrivals_bury(struct coll_context *context, uint64_t id, const struct coll_header *news)
{
	(void)context;
	(void)id;
	(void)news;
}

void coll_transport_check(struct coll_context *context, uint64_t now)
{
	(void)context;
	(void)now;
}

void coll_seek(struct coll_link *link, uint64_t now, bool look)
{
	(void)link;
	(void)now;
	(void)look;
}

int coll_connect_look(struct coll_context *context, uint32_t world)
{
	(void)context;
	(void)world;
	return 0;
}

void coll_listen_check(struct coll_context *context)
{
	(void)context;
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

/* Nothing that is watched ever happens. */
static int fake_watch(struct coll_engine *engine, struct coll_watch *watch, int events)
{
	(void)events;
	watch->engine = engine;
	return 0;
}

static const struct coll_engine_ops engine = { .name = "fake", .advance = fake_advance, .watch = fake_watch };

/* ---- above: a job ------------------------------------------------------------------ */

static bool fake_circuit_free(const struct coll_exec *exec, uint32_t peer)
{
	(void)exec;
	(void)peer;
	return true;
}

static void fake_completed(struct coll_exec *exec)
{
	(void)exec;
	w.completed++;
}

static void fake_forget_group(const struct coll_group *group)
{
	(void)group;
}

static const struct coll_job_ops job = { .circuit_free = fake_circuit_free,
					 .circuits_completed = fake_completed,
					 .circuits_forget_group = fake_forget_group };

static void make_group(void)
{
	uint32_t *world = malloc(RANKS * sizeof(*world)), i;

	coll_assert(world);
	for (i = 0; i < RANKS; i++)
		world[i] = i;
	coll_assert(!coll_group_make(&w.context, 0, world, 0, RANKS, &w.group));
	w.links = w.group->links;
	for (i = 1; i < RANKS; i++)
		coll_link_get(w.group, i);
}

void world_begin(void)
{
	uint32_t i;

	memset(&w, 0, sizeof(w));
	memset(w.in, 7, sizeof(w.in));
	w.context.boot = &boot;
	w.context.engine.ops = &engine;
	w.context.engine.counters = &w.context.counters;
	w.context.engine.next_check = COLL_FOREVER;
	w.context.events = &coll_exec_link_events;
	w.context.flight.page = &flight_page;
	w.context.job = &job;
	w.context.options.deadline_ns = 60 * COLL_SECOND;
	w.context.options.unexpected_bytes = 1 << 20;
	for (i = 0; i < RANKS; i++)
		w.suspect[i] = COLL_NONE;
	make_group();
}

void world_end(void)
{
	coll_group_leave(w.group);
	coll_groups_reap(&w.context);
	coll_assert(!w.context.groups);
}

void poll_until_failed(void)
{
	const uint64_t until = coll_now() + 5 * COLL_SECOND;

	while (w.group->state != GROUP_FAILED && coll_now() < until)
		coll_assert(!coll_context_poll(&w.context, until));
	coll_assert(w.group->state == GROUP_FAILED);
}

/* ---- schedules ----------------------------------------------------------------------- */

static struct coll_build build;
static uint64_t build_memory[1024];

struct coll_build *schedule_begin(uint64_t in, uint64_t out)
{
	coll_build_init(&build, build_memory, sizeof(build_memory), 0, RANKS);
	coll_build_buffers(&build, in, out);
	return &build;
}

static void *copy_of(const void *from, size_t bytes)
{
	void *copy = malloc(bytes);

	coll_assert(copy);
	return memcpy(copy, from, bytes);
}

struct coll_planned *schedule_end(void)
{
	struct coll_planned *planned = calloc(1, sizeof(*planned));
	struct coll_refusal refusal;
	struct coll_schedule *s;
	uint32_t i;

	coll_assert(planned);
	coll_assert(!coll_build_finish(&build, &s));
	coll_assert(!check_schedule(s, s->bytes, &refusal));
	planned->references = 1;
	planned->hash = HASH;
	planned->group = w.group;
	planned->schedule = copy_of(s, s->bytes);
	coll_plan_init(&planned->plan, planned->schedule, malloc(coll_plan_bytes(s)));
	planned->links = calloc(s->peers + 1, sizeof(*planned->links));
	coll_assert(planned->links);
	for (i = 0; i < s->peers; i++)
		planned->links[i] = w.links[coll_peers(s)[i].rank];
	for (i = 0; i < s->ops; i++)
		planned->sends += coll_ops(s)[i].kind == COLL_OP_SEND;
	coll_fused_mark(planned);
	coll_published_mark(planned);
	return planned;
}

struct coll_planned *exchange(uint64_t bytes)
{
	struct coll_build *b = schedule_begin(bytes, bytes);

	coll_emit_send(b, 1, COLL_ADDRESS(COLL_IN, 0), bytes);
	coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), bytes);
	return schedule_end();
}

struct coll_planned *gather(uint64_t bytes)
{
	struct coll_build *b = schedule_begin(0, 2 * bytes);

	coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), bytes);
	coll_emit_recv(b, 2, COLL_ADDRESS(COLL_OUT, bytes), bytes);
	return schedule_end();
}

struct coll_planned *with_optional_receive(uint64_t bytes)
{
	struct coll_build *b = schedule_begin(0, bytes);

	coll_emit_recv(b, 1, COLL_ADDRESS(COLL_OUT, 0), bytes);
	coll_emit_optional(b);
	coll_emit_recv(b, 2, coll_emit_scratch(b, bytes), bytes);
	return schedule_end();
}

struct coll_planned *sum_of_two(uint64_t bytes)
{
	struct coll_build *b = schedule_begin(0, bytes);
	const uint64_t place = coll_emit_scratch(b, bytes), other = coll_emit_scratch(b, bytes);
	const uint32_t one = coll_emit_recv(b, 1, place, bytes);
	const uint32_t two = coll_emit_recv(b, 2, other, bytes);

	coll_build_reduction(b, COLL_INT32, COLL_SUM, 0);
	coll_emit_after(b, one);
	coll_emit_after(b, two);
	coll_emit_reduce(b, COLL_ADDRESS(COLL_OUT, 0), other, place, bytes);
	return schedule_end();
}

/* ---- messages that arrive ---------------------------------------------------------------- */

struct coll_header header_of(uint32_t run, uint32_t slot, uint64_t bytes)
{
	return (struct coll_header){ .kind = COLL_MESSAGE_DATA, .version = COLL_WIRE_VERSION,
				     .run = run, .slot = slot, .hash = HASH, .bytes = bytes };
}

void message_begins(struct coll_link *link, struct coll_header header)
{
	coll_assert(coll_header_valid(&header));
	link->whole->heard = true;
	link->header = header;
	link->header_got = sizeof(header);
	link->payload_left = coll_chunk_bytes(&header);
	link->target = NULL;
	link->reduces = link->in_pieces = false;
	above(link)->begin(link);
}

/* Not in one piece, and not at their place. */
static void reduce_bytes(struct coll_link *link, uint8_t value, uint64_t bytes)
{
	uint8_t piece[99];

	memset(piece, value, sizeof(piece));
	while (bytes) {
		const uint64_t part = bytes < sizeof(piece) ? bytes : sizeof(piece);

		above(link)->reduce(link, piece, part);
		link->target += part;
		bytes -= part;
	}
}

void message_brings(struct coll_link *link, uint8_t value, uint64_t bytes)
{
	if (bytes > link->payload_left)
		bytes = link->payload_left;
	if (link->target && !link->reduces)
		memset(link->target, value, bytes);
	if (link->reduces)
		reduce_bytes(link, value, bytes);
	else if (link->target)
		link->target += bytes;
	link->payload_left -= bytes;
}

void message_brings_bytes(struct coll_link *link, const uint8_t *data, uint64_t bytes)
{
	coll_assert(link->target && bytes <= link->payload_left);
	if (link->reduces)
		above(link)->reduce(link, data, bytes);
	else
		memcpy(link->target, data, bytes);
	link->target += bytes;
	link->payload_left -= bytes;
}

void message_ends(struct coll_link *link, uint8_t value)
{
	message_brings(link, value, link->payload_left);
	link->header_got = 0;
	above(link)->end(link);
}

void message_arrives(struct coll_link *link, struct coll_header header, uint8_t value)
{
	message_begins(link, header);
	message_ends(link, value);
}
