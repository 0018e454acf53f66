// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpret.h"
#include "core/check.h"
#include "core/match.h"
#include "core/step.h"

/* An op from its start until it is done. */
struct flight {
	void *source;		/* a send: the bytes as they were at the start */
	void *noise;		/* a receive: what was put where the message will come */
	bool started;
	bool delivered;		/* a send: the message is with the receiver */
	bool copied;		/* a send, done before that */
};

struct interpret_rank {
	struct coll_schedule *schedule;
	struct coll_plan plan;
	struct coll_step step;
	void *plan_memory, *step_memory;
	u8 *buffer[COLL_BUFFERS];
	struct flight *flight;	/* per op */
};

/* Ops under way, in no order. */
struct event {
	u32 rank, op;
};

/* Random choices of one run: the patience of sends, and the slow ranks. */
struct run {
	struct interpret *world;
	struct event *event;
	u32 events;
	u32 eager;		/* of 16 sends, how many may be done before they arrive */
	u32 laggard;		/* moves only when no other rank can; COLL_NONE: none */
	u32 absent;		/* never moves; COLL_NONE: none */
};

static u64 next_random(u64 *random)
{
	u64 z = *random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

u32 interpret_random(u64 *random, u32 limit)
{
	return next_random(random) % limit;
}

static void fill_noise(struct interpret *world, void *to, u64 bytes)
{
	u8 *byte = to;

	while (bytes--)
		*byte++ = next_random(&world->random);
}

__attribute__((format(printf, 2, 3))) static int interpret_fail(struct interpret *world,
								const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (!world->error[0])
		vsnprintf(world->error, sizeof(world->error), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static void *interpret_memory(u64 bytes)
{
	void *new = malloc(bytes ? bytes : 1);

	if (!new)
		abort();
	return new;
}

static void *interpret_duplicate(const void *from, u64 bytes)
{
	return memcpy(interpret_memory(bytes), from, bytes);
}

/* ---- making a world --------------------------------------------------------- */

static struct coll_schedule *emit_schedule(struct interpret *world, const struct coll_algo *algo,
					   const struct coll_call *call,
					   const struct coll_tuning *tuning)
{
	struct coll_schedule *schedule, *exact;
	u64 bytes = 1024;
	int error;

	do {
		void *room = interpret_memory(bytes *= 2);

		error = coll_algo_emit(algo, call, tuning, room, bytes, &schedule);
		exact = error ? NULL : interpret_duplicate(schedule, schedule->bytes);
		free(room);
	} while (error == -ENOSPC);
	if (error)
		interpret_fail(world, "rank %u of %u: emit gives %d", call->rank, call->ranks,
			       error);
	return exact;
}

static void check_schedule(struct interpret *world, const struct coll_schedule *s)
{
	void *work = interpret_memory(coll_check_bytes(s, s->bytes));
	struct coll_refusal refusal;

	if (coll_check(s, s->bytes, work, &refusal))
		interpret_fail(world, "rank %u of %u, op %u: %s", s->rank, s->ranks, refusal.op,
			       refusal.reason);
	free(work);
}

static void rank_init(struct interpret *world, struct interpret_rank *rank)
{
	const struct coll_schedule *s = rank->schedule;
	u32 i;

	rank->plan_memory = interpret_memory(coll_plan_bytes(s));
	coll_plan_init(&rank->plan, s, rank->plan_memory);
	rank->step_memory = interpret_memory(coll_step_bytes(&rank->plan));
	coll_step_init(&rank->step, &rank->plan, rank->step_memory);
	for (i = 0; i < COLL_BUFFERS; i++) {
		rank->buffer[i] = interpret_memory(s->buffer[i]);
		fill_noise(world, rank->buffer[i], s->buffer[i]);
	}
	rank->flight = interpret_memory(s->ops * sizeof(*rank->flight));
	memset(rank->flight, 0, s->ops * sizeof(*rank->flight));
}

struct interpret *interpret_new(const struct coll_algo *algo, const struct coll_call *calls,
				u32 ranks, const struct coll_tuning *tuning)
{
	struct interpret *world = interpret_memory(sizeof(*world));
	u32 r;

	memset(world, 0, sizeof(*world));
	world->ranks = ranks;
	world->rank = interpret_memory(ranks * sizeof(*world->rank));
	memset(world->rank, 0, ranks * sizeof(*world->rank));
	for (r = 0; r < ranks; r++) {
		world->rank[r].schedule = emit_schedule(world, algo, &calls[r], tuning);
		if (!world->rank[r].schedule)
			break;
		check_schedule(world, world->rank[r].schedule);
		rank_init(world, &world->rank[r]);
	}
	return world;
}

static void interpret_land(struct flight *flight)
{
	free(flight->source);
	free(flight->noise);
	*flight = (struct flight){ 0 };
}

static void rank_free(struct interpret_rank *rank)
{
	u32 i;

	if (!rank->schedule)
		return;
	for (i = 0; i < rank->schedule->ops; i++)
		interpret_land(&rank->flight[i]);
	for (i = 0; i < COLL_BUFFERS; i++)
		free(rank->buffer[i]);
	free(rank->flight);
	free(rank->step_memory);
	free(rank->plan_memory);
	free(rank->schedule);
}

void interpret_free(struct interpret *world)
{
	u32 r;

	for (r = 0; r < world->ranks; r++)
		rank_free(&world->rank[r]);
	free(world->rank);
	free(world);
}

void *interpret_buffer(struct interpret *world, u32 rank, enum coll_buffer buffer)
{
	return world->rank[rank].buffer[buffer];
}

const struct coll_schedule *interpret_schedule(const struct interpret *world, u32 rank)
{
	return world->rank[rank].schedule;
}

/* ---- one op ------------------------------------------------------------------- */

static const struct coll_op *op_of(const struct interpret_rank *rank, u32 op)
{
	return &coll_ops(rank->schedule)[op];
}

static void *interpret_address(const struct interpret_rank *rank, u64 place)
{
	return rank->buffer[COLL_ADDRESS_BUFFER(place)] + COLL_ADDRESS_OFFSET(place);
}

/* Remembers what a message carries, and spoils the place where one will come. */
static void interpret_start(struct interpret *world, struct interpret_rank *rank, u32 index)
{
	const struct coll_op *op = op_of(rank, index);
	struct flight *flight = &rank->flight[index];

	flight->started = true;
	if (op->kind == COLL_OP_SEND)
		flight->source = interpret_duplicate(interpret_address(rank, op->left), op->bytes);
	if (op->kind == COLL_OP_RECV) {
		fill_noise(world, interpret_address(rank, op->result), op->bytes);
		flight->noise = interpret_duplicate(interpret_address(rank, op->result), op->bytes);
	}
}

static bool interpret_changed(const struct interpret_rank *rank, const void *was, u64 place,
			      u64 bytes)
{
	return was && memcmp(was, interpret_address(rank, place), bytes);
}

/* Memory that a message is read from or will be written to must not be written meanwhile. */
static int check_race(struct interpret *world, struct interpret_rank *rank, u32 index)
{
	const struct coll_op *op = op_of(rank, index);
	const struct flight *flight = &rank->flight[index];

	if ((flight->copied || !interpret_changed(rank, flight->source, op->left, op->bytes)) &&
	    !interpret_changed(rank, flight->noise, op->result, op->bytes))
		return 0;
	return interpret_fail(world,
			      "rank %u of %u: op %u (%s) is under way, and its bytes were changed",
			      rank->schedule->rank, world->ranks, index,
			      op->kind == COLL_OP_SEND ? "send" : "receive");
}

static void do_local(struct interpret *world, struct interpret_rank *rank, u32 index)
{
	const struct coll_op *op = op_of(rank, index);

	if (op->kind == COLL_OP_COPY)
		memcpy(interpret_address(rank, op->result), interpret_address(rank, op->left),
		       op->bytes);
	if (op->kind == COLL_OP_REDUCE)
		world->reduce(op, interpret_address(rank, op->result),
			      interpret_address(rank, op->left),
			      interpret_address(rank, op->right));
	interpret_land(&rank->flight[index]);
	coll_step_done(&rank->step, index);
}

/*
 * The message arrives, if the receiver is ready for it: 1 if it did, 0 if not
 * yet.
 */
static int interpret_deliver(struct interpret *world, struct interpret_rank *from, u32 index)
{
	const struct coll_op *send = op_of(from, index);
	u32 to = coll_op_rank(from->schedule, send), target;
	struct interpret_rank *rank = &world->rank[to];
	int match = coll_match(&rank->step, from->schedule->rank, send->slot, send->bytes, &target);

	if (match < 0)
		return interpret_fail(
			world,
			"rank %u of %u: message %u (%llu bytes, op %u) to rank %u is not"
			" what that expects",
			from->schedule->rank, world->ranks, send->slot,
			(unsigned long long)send->bytes, index, to);
	if (match == COLL_MATCH_UNEXPECTED)
		return 0;
	from->flight[index].delivered = true;
	if (match == COLL_MATCH_STALE)
		return 1;
	if (check_race(world, rank, target) || check_race(world, from, index))
		return -EINVAL;
	memcpy(interpret_address(rank, op_of(rank, target)->result), from->flight[index].source,
	       send->bytes);
	interpret_land(&rank->flight[target]);
	coll_step_done(&rank->step, target);
	return 1;
}

/* ---- a run ---------------------------------------------------------------------- */

static int step_send(struct run *run, struct event *event)
{
	struct interpret *world = run->world;
	struct interpret_rank *rank = &world->rank[event->rank];
	struct flight *flight = &rank->flight[event->op];
	bool was_copied = flight->copied;

	if (!flight->delivered && !flight->copied &&
	    interpret_random(&world->random, 16) < run->eager) {
		if (check_race(world, rank, event->op))
			return -EINVAL;
		flight->copied = true;
		coll_step_done(&rank->step, event->op);
		return 1;
	}
	if (!flight->delivered) {
		int moved = interpret_deliver(world, rank, event->op);

		/* Without a copy, the send is done some time after the arrival. */
		if (moved <= 0 || !was_copied)
			return moved;
	} else if (check_race(world, rank, event->op)) {
		return -EINVAL;
	}
	interpret_land(flight);
	if (!was_copied)
		coll_step_done(&rank->step, event->op);
	*event = run->event[--run->events];
	return 1;
}

/* Moves an op that is under way: 1 if it moved, 0 if it cannot, or an error. */
static int step_event(struct run *run, struct event *event)
{
	struct interpret *world = run->world;
	struct interpret_rank *rank = &world->rank[event->rank];
	u32 index = event->op;

	if (op_of(rank, index)->kind == COLL_OP_SEND)
		return step_send(run, event);
	*event = run->event[--run->events];
	if (!coll_step_finished(&rank->step))	/* else it is optional, and too late */
		do_local(world, rank, index);
	return 1;
}

/* Starts an op of this rank: 1 if there was one. */
static int step_start(struct run *run, u32 r)
{
	struct interpret_rank *rank = &run->world->rank[r];
	u32 op = coll_step_next(&rank->step);

	if (op == COLL_NONE)
		return 0;
	interpret_start(run->world, rank, op);
	if (op_of(rank, op)->kind != COLL_OP_RECV)
		run->event[run->events++] = (struct event){ r, op };
	return 1;
}

static int step_one(struct run *run, u32 choice)
{
	u32 ranks = run->world->ranks;

	return choice < ranks ? step_start(run, choice) :
				step_event(run, &run->event[choice - ranks]);
}

static u32 interpret_whose(const struct run *run, u32 choice)
{
	return choice < run->world->ranks ? choice : run->event[choice - run->world->ranks].rank;
}

/* Anything at all that can happen, from a random point on; 0: nothing can. */
static int step_any(struct run *run, bool laggard)
{
	u32 choices = run->world->ranks + run->events;
	u32 first = interpret_random(&run->world->random, choices), i;

	for (i = 0; i < choices; i++) {
		u32 choice = (first + i) % choices;
		int moved;

		if (interpret_whose(run, choice) == run->absent ||
		    (!laggard && interpret_whose(run, choice) == run->laggard))
			continue;
		moved = step_one(run, choice);
		if (moved)
			return moved;
	}
	return 0;
}

static int fail_stuck(struct interpret *world, const struct interpret_rank *rank)
{
	const struct coll_schedule *s = rank->schedule;
	u32 i;

	for (i = 0; i < s->ops; i++)
		if (rank->flight[i].started)
			return interpret_fail(
				world, "rank %u of %u waits for ever: op %u, a %s, rank %u",
				s->rank, world->ranks, i,
				op_of(rank, i)->kind == COLL_OP_SEND ? "send to" : "receive from",
				coll_op_rank(s, op_of(rank, i)));
	return interpret_fail(world, "rank %u of %u waits for ever for nothing", s->rank,
			      world->ranks);
}

static int check_all_finished(struct interpret *world)
{
	u32 r;

	for (r = 0; r < world->ranks; r++)
		if (!coll_step_finished(&world->rank[r].step))
			return fail_stuck(world, &world->rank[r]);
	return 0;
}

static u64 interpret_reset(struct interpret *world)
{
	u64 ops = 0;
	u32 r, i;

	for (r = 0; r < world->ranks; r++) {
		struct interpret_rank *rank = &world->rank[r];

		for (i = 0; i < rank->schedule->ops; i++)
			interpret_land(&rank->flight[i]);
		fill_noise(world, rank->buffer[COLL_SCRATCH], rank->schedule->buffer[COLL_SCRATCH]);
		coll_step_reset(&rank->step);
		ops += rank->schedule->ops;
	}
	return ops;
}

/* Until nothing more can happen. */
static int interpret_play(struct interpret *world, u64 seed, u32 absent)
{
	static const u32 eager[] = { 0, 16, 1, 8 };
	struct run run = { .world = world, .laggard = COLL_NONE, .absent = absent };
	int moved;

	if (world->error[0])
		return -EINVAL;
	world->random = seed;
	run.event = interpret_memory(interpret_reset(world) * sizeof(*run.event));
	run.eager = eager[interpret_random(&world->random, 4)];
	if (interpret_random(&world->random, 2))
		run.laggard = interpret_random(&world->random, world->ranks);
	do {
		moved = step_any(&run, false);
		if (!moved)
			moved = step_any(&run, true);
	} while (moved > 0);
	free(run.event);
	return moved;
}

int interpret_run(struct interpret *world, u64 seed)
{
	int error = interpret_play(world, seed, COLL_NONE);

	return error ? error : check_all_finished(world);
}

int interpret_without(struct interpret *world, u32 absent, u64 seed)
{
	int error = interpret_play(world, seed, absent);
	u32 r;

	for (r = 0; !error && r < world->ranks; r++)
		if (r != absent && coll_step_finished(&world->rank[r].step))
			error = interpret_fail(
				world, "rank %u of %u has finished before rank %u has begun", r,
				world->ranks, absent);
	return error;
}
