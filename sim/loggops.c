// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "loggops.h"
#include "loggops_queue.h"

struct loggops {
	struct sim_events *e;
	struct loggops_queue queue;
	struct sim_wire wire;		/* of all messages */
	u32 *ready;			/* ops of one rank */
	u32 ready_capacity;
};

/* ---- costs ----------------------------------------------------------------------- */

/* Times a message's bytes: the first one costs nothing (also if there is none). */
static sim_time each_byte(double time, u64 bytes)
{
	return bytes ? to_time((bytes - 1) * time) : 0;
}

static sim_time loggops_nic(const struct sim_events *e, u64 bytes)
{
	return to_time(e->machine->gap) + each_byte(e->machine->nic, bytes);
}

static sim_time slowed_work(const struct sim_events *e, sim_time work)
{
	return e->machine->slowness ? to_time(work * e->machine->slowness[e->rank]) : work;
}

static sim_time overhead_of_bytes(const struct sim_events *e, u64 bytes)
{
	return slowed_work(e, each_byte(e->machine->byte_overhead, bytes));
}

/*
 * The current rank's CPU is taken from now on, for `work` and then for `more`. By LogGOPSim's rule
 * for noise `more` meets none.
 */
static void cpu_take(struct sim_events *e, u32 op, sim_time work, sim_time more)
{
	const bool goal = e->machine->semantics == SIM_GOAL;
	struct sim_span *span;

	e->state->cpu = noise_end_at(&e->machine->os, e->phase, e->rank, e->now,
				     goal ? work : work + more) +
			(goal ? more : 0);
	if (!e->log)
		return;
	span = log_span(e->log, e->rank, op);
	span->begin = e->now;
	span->work = work + more;
	span->end = e->state->cpu;
}

/* When the rank can begin with such an event. */
static sim_time loggops_free_at(const struct sim_events *e, enum loggops_kind kind)
{
	const struct sim_events_rank *state = e->state;
	const sim_time nic = kind == LOGGOPS_SEND    ? state->out :
			     kind == LOGGOPS_MESSAGE ? state->in :
						       state->cpu;

	if (kind == LOGGOPS_RECV)
		return INT64_MIN;
	return nic > state->cpu ? nic : state->cpu;
}

/* ---- ops that become ready --------------------------------------------------------- */

static enum loggops_kind loggops_kind_of(const struct coll_op *op)
{
	return op->kind == COLL_OP_SEND ? LOGGOPS_SEND :
	       op->kind == COLL_OP_RECV ? LOGGOPS_RECV :
					  LOGGOPS_CALC;
}

/* The current rank's ops that are ready now, in ready[]. */
static u32 ready_take(struct loggops *l)
{
	struct sim_events *e = l->e;
	u32 count = 0, op;

	while ((op = coll_step_next(&e->step)) != COLL_NONE) {
		if (count == l->ready_capacity) {
			const u32 capacity = count ? 2 * count : 64;
			u32 *more = realloc(l->ready, capacity * sizeof(*more));

			if (!more) {
				e->error = -ENOMEM;
				return 0;
			}
			l->ready = more;
			l->ready_capacity = capacity;
		}
		l->ready[count++] = op;
	}
	return count;
}

/* Queues a rank's ready ops: sends first, then receives, then others. */
static void loggops_advance(struct loggops *l, u32 rank)
{
	struct sim_events *e = l->e;
	enum loggops_kind kind;
	u32 count, i;

	events_rank_open(e, rank);
	count = ready_take(l);
	for (kind = 0; kind < LOGGOPS_MESSAGE && count; kind++) {
		sim_time time = loggops_free_at(e, kind);

		if (time < e->state->cpu)
			time = e->state->cpu;
		for (i = 0; i < count; i++)
			if (loggops_kind_of(&coll_ops(e->class->schedule)[l->ready[i]]) == kind)
				loggops_queue_add(&l->queue, (struct loggops_event){
					.time = time, .rank = rank, .op = l->ready[i],
					.kind = kind });
	}
	events_rank_close(e);
}

static void op_done(struct sim_events *e, u32 op)
{
	const bool was_finished = coll_step_finished(&e->step);

	if (e->carried && !was_finished)
		bytes_done(e->carried, e->rank, op);
	coll_step_done(&e->step, op);
	e->running -= !was_finished && coll_step_finished(&e->step);
}

/* ---- events ------------------------------------------------------------------------ */

/* Puts the message of a send under way. `left`: its sender has spent the overhead. */
static void loggops_post(struct loggops *l, u32 op, u32 to, u32 recv, sim_time left)
{
	struct sim_events *e = l->e;
	const u32 slot = coll_ops(e->class->schedule)[op].slot;
	const u64 stream = noise_message(e->machine->message_key, e->rank, to, slot);
	struct sim_span *span = e->log ? log_span(e->log, to, recv) : NULL;

	if (span) {
		span->left = left;
		span->way = l->wire.length;
	}
	loggops_queue_add(&l->queue, (struct loggops_event){
		.time = left + machine_travel(e->machine, e->rank, to, stream, l->wire),
		.rank = to, .op = recv, .kind = LOGGOPS_MESSAGE });
}

static void loggops_send(struct loggops *l, u32 op)
{
	struct sim_events *e = l->e;
	const struct sim_machine *machine = e->machine;
	const struct coll_op *send = &coll_ops(e->class->schedule)[op];
	const u32 to = program_peer_rank(e->program, &e->class->peer[op], e->rank);
	const u32 recv = program_match_op(e->program, e->class, op, e->rank);
	const sim_time work = slowed_work(e, machine_work(machine, send));
	const sim_time left = machine->semantics == SIM_GOAL ?
				      e->now + work :
				      noise_end_at(&machine->os, e->phase, e->rank, e->now, work);

	cpu_take(e, op, work, overhead_of_bytes(e, send->bytes));
	e->state->out = e->now + loggops_nic(e, send->bytes);
	e->outcome->messages++;
	e->outcome->events += 2;	/* the send, the message */
	if (e->carried && bytes_send(e->carried, e->rank, op, to, recv))
		e->error = -ENOMEM;
	loggops_post(l, op, to, recv, left);
	if (send->bytes <= machine->eager)
		op_done(e, op);
}

static void loggops_calc(struct sim_events *e, u32 op)
{
	const struct coll_op *calc = &coll_ops(e->class->schedule)[op];

	e->outcome->events += calc->kind == COLL_OP_REDUCE;
	cpu_take(e, op, slowed_work(e, machine_work(e->machine, calc)), 0);
	op_done(e, op);
}

/* The current rank's receive has its message; the sender of a long one can go on. */
static void loggops_match(struct loggops *l, u32 op, u32 *sender)
{
	struct sim_events *e = l->e;
	const u32 from = program_peer_rank(e->program, &e->class->peer[op], e->rank);
	const u32 send = program_match_op(e->program, e->class, op, e->rank);
	const u32 receiver = e->rank;

	op_done(e, op);
	if (coll_ops(e->class->schedule)[op].bytes <= e->machine->eager)
		return;
	events_rank_close(e);
	events_rank_open(e, from);
	if (e->state->cpu < e->now)
		e->state->cpu = e->now;
	if (e->state->out < e->now)
		e->state->out = e->now;
	if (e->log && log_span(e->log, from, send)->end < e->now)
		log_span(e->log, from, send)->end = e->now;
	op_done(e, send);
	events_rank_close(e);
	events_rank_open(e, receiver);
	*sender = from;
}

/* The receive, and its message: the second of both completes it. */
static void loggops_meet(struct loggops *l, u32 op, u32 *sender)
{
	u8 *early = &l->e->early[op / 8];
	const u8 bit = 1 << op % 8;

	if (*early & bit)
		loggops_match(l, op, sender);
	*early |= bit;
}

static void loggops_message(struct loggops *l, u32 op, u32 *sender)
{
	struct sim_events *e = l->e;
	const struct coll_op *recv = &coll_ops(e->class->schedule)[op];
	const sim_time bytes = each_byte(e->machine->nic, recv->bytes);
	const sim_time overhead = overhead_of_bytes(e, recv->bytes);

	e->outcome->events++;	/* the receive */
	cpu_take(e, op, slowed_work(e, machine_work(e->machine, recv)),
		 bytes > overhead ? bytes : overhead);
	e->state->in = e->now + loggops_nic(e, recv->bytes);
	loggops_meet(l, op, sender);
}

/* What a rank that is not busy does with an event. `sender`: a rank that can go on as well. */
static void loggops_begin(struct loggops *l, const struct loggops_event *event, u32 *sender)
{
	switch ((enum loggops_kind)event->kind) {
	case LOGGOPS_SEND:
		loggops_send(l, event->op);
		break;
	case LOGGOPS_RECV:
		loggops_meet(l, event->op, sender);
		break;
	case LOGGOPS_MESSAGE:
		loggops_message(l, event->op, sender);
		break;
	default:
		loggops_calc(l->e, event->op);
	}
}

/* A receive or a message for a rank that needs none any more. */
static bool loggops_stale(const struct sim_events *e, enum loggops_kind kind)
{
	return (kind == LOGGOPS_MESSAGE || kind == LOGGOPS_RECV) && coll_step_finished(&e->step);
}

static void loggops_arrived(const struct sim_events *e, const struct loggops_event *event)
{
	if (e->log && event->kind == LOGGOPS_MESSAGE && !event->waited)
		log_span(e->log, event->rank, event->op)->there = event->time;
}

/* Returns whether ops may have become ready: of the event's rank, and of `*sender`. */
static bool loggops_serve(struct loggops *l, struct loggops_event *event, u32 *sender)
{
	struct sim_events *e = l->e;
	sim_time free_at;

	e->now = event->time;
	events_rank_open(e, event->rank);
	loggops_arrived(e, event);
	free_at = loggops_free_at(e, event->kind);
	if (free_at > e->now) {
		loggops_queue_wait(&l->queue, event, free_at);
		return false;
	}
	if (event->waited && !loggops_queue_leave(&l->queue, event))
		return false;
	if (!loggops_stale(e, event->kind))
		loggops_begin(l, event, sender);
	if (event->waited)
		loggops_queue_next(&l->queue, event, loggops_free_at(e, event->kind));
	events_rank_close(e);
	return true;
}

/* ---- a run ------------------------------------------------------------------------- */

static void loggops_start(struct loggops *l)
{
	struct sim_events *e = l->e;
	u32 i;

	for (i = 0; i < e->program->ranks; i++) {
		events_rank_reset(e, i);
		e->running -= coll_step_finished(&e->step);	/* no op */
		loggops_advance(l, i);
	}
}

/* Times of all ranks: a rank is done when its CPU is. */
static void loggops_finish(struct sim_events *e)
{
	u32 i;

	for (i = 0; i < e->program->ranks; i++) {
		events_rank_open(e, i);
		if (e->finish)
			e->finish[i] = e->state->cpu;
		if (e->state->cpu > e->outcome->finish) {
			e->outcome->finish = e->state->cpu;
			e->outcome->last = i;
		}
	}
}

int loggops_run(struct sim_events *e)
{
	struct loggops l = {
		.e = e,
		.wire = noise_wire(&e->machine->link, to_time(e->machine->alpha)),
	};
	struct loggops_event event;
	int error = loggops_queue_init(&l.queue, e->program->ranks);

	if (!error)
		loggops_start(&l);
	while (!error && !e->error && loggops_queue_take(&l.queue, &event)) {
		u32 sender = event.rank;

		if (!loggops_serve(&l, &event, &sender))
			continue;
		loggops_advance(&l, sender < event.rank ? sender : event.rank);
		if (sender != event.rank)
			loggops_advance(&l, sender < event.rank ? event.rank : sender);
	}
	if (!error)
		error = e->error ? e->error : l.queue.error;
	if (!error && !e->running)
		loggops_finish(e);
	loggops_queue_free(&l.queue);
	free(l.ready);
	return error;
}
