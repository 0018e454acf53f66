// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Ops in virtual time: starts, messages and completions. */
#include <errno.h>

#include "events_state.h"

static sim_time work_of(const struct sim_events *e, u32 index)
{
	const struct coll_op *op = &coll_ops(e->class->schedule)[index];
	sim_time work = machine_work(e->machine, op);

	if (e->nic && (op->kind == COLL_OP_SEND || op->kind == COLL_OP_RECV))
		work = machine_work_with(e->machine, op, e->rank,
					 program_peer_rank(e->program, &e->class->peer[index],
							   e->rank));
	return e->machine->slowness ? to_time(work * e->machine->slowness[e->rank]) : work;
}

static void log_work(struct sim_events *e, u32 op, sim_time begin, sim_time work)
{
	struct sim_span *span = log_span(e->log, e->rank, op);

	span->begin = begin;
	span->work = work;
}

static void log_done(struct sim_events *e, u32 op)
{
	struct sim_span *span = log_span(e->log, e->rank, op);

	span->end = e->now;
	if (span->begin == SIM_NEVER)
		span->begin = e->now;
}

/* The message for a receive of this rank has left. */
static void log_left(struct sim_events *e, u32 rank, u32 op, sim_time left, sim_time way)
{
	struct sim_span *span = log_span(e->log, rank, op);

	span->left = left;
	span->way = way;
}

/*
 * When the CPU work of an op ends that is ready now. An op without cost does not wait for the CPU.
 */
static sim_time events_serve(struct sim_events *e, u32 op, sim_time work, sim_time *begin)
{
	sim_time end;

	*begin = work && e->state->cpu > e->now ? e->state->cpu : e->now;
	end = noise_end_at(&e->machine->os, e->phase, e->rank, *begin, work);
	if (work)
		e->state->cpu = end;
	if (e->log)
		log_work(e, op, *begin, work);
	return end;
}

/* How long a send above S takes from its departure on: on nodes until it has arrived, else until it has left. */
static sim_time send_takes(const struct sim_events *e, const struct sim_link *link, u64 bytes, sim_time way)
{
	if (e->nic)
		return way;
	return to_time(bytes * (link ? link->beta * SIM_SECOND : e->machine->beta));
}

sim_time events_carry(struct sim_events *e, u32 rank, u32 op, sim_time time)
{
	const struct sim_machine *machine = e->machine;
	const u32 number = program_class_of(e->program, rank);
	const struct sim_class *class = &e->program->class[number];
	const struct coll_op *send = &coll_ops(class->schedule)[op];
	const u32 to = program_peer_rank(e->program, &class->peer[op], rank);
	const u32 recv = program_match_op(e->program, class, op, rank);
	const u64 stream = noise_message(machine->message_key, rank, to, send->slot);
	const struct sim_link *link = machine_link(machine, rank, to);
	struct sim_wire wire = e->wire[e->first_op[number] + op];
	sim_time travel;

	if (link)
		wire = noise_wire(&machine->link, machine_way_on(machine, link, send->bytes));
	travel = machine_travel(machine, rank, to, stream, wire);
	if (e->log)
		log_left(e, to, recv, time, wire.length);
	if (link && link->trunk > 0 && send->bytes) {
		travel -= wire.length - machine_way_on(machine, link, 0);
		events_cross(e, &e->trunk[link - machine->network->link], send->bytes, time,
			     (struct sim_crossing){ .to = to, .op = recv, .more = travel, .from = rank,
				.sent = send->bytes > machine->eager ? op : COLL_NONE });
		return SIM_NEVER;
	}
	if (machine_level(machine, rank, to) == COLL_LEVEL_CLUSTER) {
		events_land(e, to, time + travel, recv);
	} else {
		events_at(e, to, time + travel, recv, WHAT_ARRIVE);
	}
	return send_takes(e, link, send->bytes, wire.length);
}

/*
 * The bytes of a send leave the rank as soon as the NIC is free. Returns when a send above S is
 * done; SIM_NEVER: known later.
 */
static sim_time events_depart(struct sim_events *e, u32 op, sim_time time)
{
	const struct coll_op *send = &coll_ops(e->class->schedule)[op];
	const u32 to = program_peer_rank(e->program, &e->class->peer[op], e->rank);
	sim_time takes;

	if (e->nic && machine_level(e->machine, e->rank, to) == COLL_LEVEL_CLUSTER) {
		events_leave(e, op, time);
		return SIM_NEVER;
	}
	if (!e->nic && time < e->state->out)
		time = e->state->out;
	if (e->circuits && send->bytes) {
		time = sim_circuits_carry(e->circuits, e->rank, to, send->bytes, time,
					  e->class_wire[op].length);
		if (time < 0) {
			e->error = -ENOTCONN;
			return e->now;
		}
	}
	e->state->out = time + events_nic_time(e->machine, send->bytes);
	takes = events_carry(e, e->rank, op, time);
	return takes == SIM_NEVER ? SIM_NEVER : time + takes;
}

/* Returns when the send is done; SIM_NEVER: known later. */
static sim_time start_send(struct sim_events *e, u32 op)
{
	const struct coll_op *send = &coll_ops(e->class->schedule)[op];
	sim_time begin, end, out;
	u32 to;

	end = events_serve(e, op, work_of(e, op), &begin);
	if (e->state->sent < end)
		e->state->sent = end;
	out = e->machine->semantics == SIM_GOAL ? begin + work_of(e, op) : end;
	e->outcome->messages++;
	e->outcome->events++;
	to = program_peer_rank(e->program, &e->class->peer[op], e->rank);
	if (e->carried && bytes_send(e->carried, e->rank, op, to,
				     program_match_op(e->program, e->class, op, e->rank)))
		e->error = -ENOMEM;
	if (send->bytes <= e->machine->eager) {
		events_depart(e, op, out);
		return end;
	}
	events_at(e, to, out + machine_way_on(e->machine, machine_link(e->machine, e->rank, to), 0),
		  program_match_op(e->program, e->class, op, e->rank), WHAT_REQUEST);
	return SIM_NEVER;
}

/* The receive of this op has started and its request has arrived: the sender may send. */
static void events_grant(struct sim_events *e, u32 op)
{
	const u32 from = program_peer_rank(e->program, &e->class->peer[op], e->rank);

	events_at(e, from,
		  e->now + machine_way_on(e->machine, machine_link(e->machine, from, e->rank), 0),
		  program_match_op(e->program, e->class, op, e->rank), WHAT_GRANT);
}

/* The rank handles a message that has arrived. Returns when it is done. */
static sim_time recv_process(struct sim_events *e, u32 op)
{
	sim_time begin;

	e->outcome->events++;
	return events_serve(e, op, work_of(e, op), &begin);
}

static sim_time start_recv(struct sim_events *e, u32 op)
{
	const u8 bit = 1 << op % 8;

	if (!(e->early[op / 8] & bit))
		return SIM_NEVER;
	if (coll_ops(e->class->schedule)[op].bytes > e->machine->eager) {
		events_grant(e, op);
		return SIM_NEVER;
	}
	return recv_process(e, op);
}

/* Done when the circuit is up; the later request completes both ends. */
static sim_time start_connect(struct sim_events *e, u32 index)
{
	const u32 peer = program_peer_rank(e->program, &e->class->peer[index], e->rank);
	u32 other = COLL_NONE;
	sim_time up_at;

	if (!e->circuits)
		return e->now;
	up_at = sim_circuits_request(e->circuits, e->rank, peer,
				   coll_ops(e->class->schedule)[index].flags, index, e->now,
				   &other);
	if (up_at < 0)
		e->error = -EBUSY;
	else if (up_at != SIM_NEVER)
		events_at(e, peer, up_at, other, WHAT_DONE);
	return up_at < 0 ? SIM_NEVER : up_at;
}

static sim_time start_release(struct sim_events *e, u32 index)
{
	const u32 peer = program_peer_rank(e->program, &e->class->peer[index], e->rank);

	sim_time freed = e->now;

	if (e->circuits)
		freed = sim_circuits_release(e->circuits, e->rank, peer,
					     coll_ops(e->class->schedule)[index].flags, e->now);
	if (freed < 0)
		e->error = -ENOTCONN;
	return freed;
}

static sim_time start_op(struct sim_events *e, u32 index)
{
	const struct coll_op *op = &coll_ops(e->class->schedule)[index];
	sim_time begin;

	switch (op->kind) {
	case COLL_OP_SEND:
		return start_send(e, index);
	case COLL_OP_RECV:
		return start_recv(e, index);
	case COLL_OP_CONNECT:
		return start_connect(e, index);
	case COLL_OP_RELEASE:
		return start_release(e, index);
	default:
		if (op_is_free(op))
			return e->now;
		e->outcome->events += op->kind == COLL_OP_REDUCE;
		return events_serve(e, index, work_of(e, index), &begin);
	}
}

static void rank_finished(struct sim_events *e)
{
	const sim_time time = e->now > e->state->sent ? e->now : e->state->sent;

	e->running--;
	if (e->finish)
		e->finish[e->rank] = time;
	if (time > e->outcome->finish ||
	    (time == e->outcome->finish && e->rank < e->outcome->last)) {
		e->outcome->finish = time;
		e->outcome->last = e->rank;
	}
}

static void op_done(struct sim_events *e, u32 op)
{
	const bool was_finished = coll_step_finished(&e->step);

	if (e->log)
		log_done(e, op);
	if (e->carried && !was_finished)
		bytes_done(e->carried, e->rank, op);
	coll_step_done(&e->step, op);
	if (!was_finished && coll_step_finished(&e->step))
		rank_finished(e);
}

/* Starts all ops that are ready, and those that become ready thereby. */
static void events_advance(struct sim_events *e)
{
	sim_time done;
	u32 op;

	while (!events_failed(e) && (op = coll_step_next(&e->step)) != COLL_NONE) {
		done = start_op(e, op);
		if (done <= e->now)
			op_done(e, op);
		else if (done != SIM_NEVER)
			events_later(e, done, op, WHAT_DONE);
	}
}

/* Message or request for a receive that has started. */
static void events_arrive(struct sim_events *e, u32 op, u32 what)
{
	sim_time done;

	if (coll_step_finished(&e->step))	/* stale */
		return;
	if (e->step.state[op] != COLL_OP_STARTED) {
		e->early[op / 8] |= 1 << op % 8;
		return;
	}
	if (what == WHAT_REQUEST) {
		events_grant(e, op);
		return;
	}
	done = recv_process(e, op);
	if (done > e->now) {
		events_later(e, done, op, WHAT_DONE);
		return;
	}
	op_done(e, op);
	events_advance(e);
}

/* Messages that arrive together pass the receiver's NIC one after the other. */
static void nic_arrive(struct sim_events *e, u32 op)
{
	const sim_time busy = e->nic ? 0 : events_nic_time(e->machine,
							   coll_ops(e->class->schedule)[op].bytes);
	sim_time time = e->now;

	e->outcome->events++;
	if (e->log)
		log_span(e->log, e->rank, op)->there = e->now;
	if (busy && e->state->in + busy > time)
		time = e->state->in + busy;
	e->state->in = time;
	if (time > e->now)
		events_later(e, time, op, WHAT_DELIVER);
	else
		events_arrive(e, op, WHAT_ARRIVE);
}

void events_dispatch(struct sim_events *e, const struct sim_event *happening)
{
	const u32 what = happening->what & ((1 << WHAT_BITS) - 1),
		  op = happening->what >> WHAT_BITS;

	e->now = happening->time;
	switch (what) {
	case WHAT_START:
		if (coll_step_finished(&e->step))	/* not an op */
			rank_finished(e);
		events_advance(e);
		break;
	case WHAT_ARRIVE:
		nic_arrive(e, op);
		break;
	case WHAT_REQUEST:
	case WHAT_DELIVER:
		events_arrive(e, op, what);
		break;
	case WHAT_GRANT: {
		const sim_time done = events_depart(e, op, e->now);

		if (done != SIM_NEVER)
			events_later(e, done, op, WHAT_DONE);
		break;
	}
	case WHAT_LEAVE:
		events_leave(e, op, e->now);
		break;
	default:
		op_done(e, op);
		events_advance(e);
	}
}
