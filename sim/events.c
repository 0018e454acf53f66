// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calendar.h"
#include "circuits.h"
#include "events.h"
#include "trunk.h"

/* `what` of a happening: the op, then what happens to it. */
enum {
	WHAT_START,	/* of the rank; its op is 0 */
	WHAT_REQUEST,	/* a sender asks whether this receive has started */
	WHAT_ARRIVE,	/* its message is there */
	WHAT_DELIVER,	/* its message is through the NIC */
	WHAT_GRANT,	/* this send may send its bytes */
	WHAT_DONE,
	WHAT_BITS = 3,
};

/*
 * What a rank is in the middle of. Behind it lie coll_step's arrays and one bit
 * an op: its message, or the request for it, came before the receive started.
 */
struct rank {
	sim_time cpu;		/* is busy until then */
	sim_time sent;		/* the last send began before that */
	sim_time out, in;	/* the NIC is busy until then */
	u32 head, tail, left, skipped;
};

/* A message on a trunk. */
struct crossing {
	u32 to, op;
	sim_time more;		/* its way when it has left the trunk */
	u32 free;		/* the next unused one, + 1 */
};

struct events {
	const struct program *program;
	const struct machine *machine;
	u64 *place;		/* per class: bytes of a rank */
	u64 *first;		/* per class: where its first member lies */
	char *memory;
	u64 bytes;
	struct calendar calendar;
	struct wire *wire;	/* per class and op; first_op[class] + op */
	u32 *first_op;
	sim_time *finish;	/* per rank, or NULL */
	sim_time *phase;	/* of the ranks' noise, or NULL */
	struct trunk *trunk;	/* per link of the network; NULL: no trunks */
	struct crossing *crossing;
	u32 crossings, crossing_room, free;
	struct bytes *carried;	/* or NULL */
	struct sim_log *log;	/* or NULL */
	struct circuits_state *circuits;	/* or NULL */
	struct sim_outcome *outcome;
	u64 running;		/* ranks that are not done */
	/* the rank being served */
	u32 rank;
	const struct program_class *class;
	const struct wire *class_wire;
	struct rank *state;
	struct coll_step step;
	u8 *early;
	sim_time now, end;	/* end of the window */
	struct happening *local;	/* of this rank, in this window: a heap */
	u32 locals, local_room;
	int error;
};

/* ---- memory ------------------------------------------------------------------ */

static u64 early_bytes(const struct program_class *class)
{
	return (class->schedule->ops + 7) / 8;
}

static u64 rank_bytes(const struct program_class *class)
{
	return (sizeof(struct rank) + coll_step_bytes(&class->plan) + early_bytes(class) + 7) &
	       ~7ull;
}

u64 events_bytes(const struct program *program)
{
	u64 bytes = 0;
	u32 c;

	for (c = 0; c < program->classes; c++)
		bytes += program->class[c].members * rank_bytes(&program->class[c]);
	return bytes;
}

static void lay_out(struct events *e)
{
	u32 c, ops = 0;

	for (c = 0; c < e->program->classes; c++) {
		e->place[c] = rank_bytes(&e->program->class[c]);
		e->first[c] = e->bytes;
		e->bytes += e->program->class[c].members * e->place[c];
		e->first_op[c] = ops;
		ops += e->program->class[c].schedule->ops;
	}
	e->first_op[c] = ops;
}

/* Where memory is promised freely, what does not fit would end the process. */
static bool fits_in_memory(const struct program *program)
{
	return events_bytes(program) / sysconf(_SC_PAGESIZE) <
	       (u64)sysconf(_SC_PHYS_PAGES) / 4 * 3;
}

int events_new(const struct program *program, struct events **events)
{
	struct events *e = fits_in_memory(program) ? calloc(1, sizeof(*e)) : NULL;

	if (!e)
		return -ENOMEM;
	e->program = program;
	e->place = calloc(program->classes, sizeof(*e->place));
	e->first = calloc(program->classes, sizeof(*e->first));
	e->first_op = calloc(program->classes + 1, sizeof(*e->first_op));
	if (e->place && e->first && e->first_op) {
		lay_out(e);
		e->memory = malloc(e->bytes);
		e->wire = calloc(e->first_op[program->classes] + 1, sizeof(*e->wire));
	}
	if (!e->memory || !e->wire) {
		events_free(e);
		return -ENOMEM;
	}
	*events = e;
	return 0;
}

void events_free(struct events *e)
{
	if (!e)
		return;
	free(e->place);
	free(e->first);
	free(e->first_op);
	free(e->memory);
	free(e->wire);
	free(e->local);
	free(e->crossing);
	free(e);
}

/* ---- the rank being served ----------------------------------------------------- */

static void step_view(struct events *e)
{
	const u32 ops = e->class->schedule->ops;

	e->step.plan = &e->class->plan;
	e->step.pending = (u32 *)(e->state + 1);
	e->step.state = (u8 *)(e->step.pending + ops);
	e->early = e->step.state + ops;
}

static void rank_open(struct events *e, u32 rank)
{
	const u32 class = program_class_of(e->program, rank);

	e->rank = rank;
	e->class = &e->program->class[class];
	e->class_wire = e->wire + e->first_op[class];
	e->state = (struct rank *)(e->memory + e->first[class] +
				   program_member_of(e->program, rank) * e->place[class]);
	step_view(e);
	e->step.head = e->state->head;
	e->step.tail = e->state->tail;
	e->step.left = e->state->left;
	e->step.skipped = e->state->skipped;
}

static void rank_close(struct events *e)
{
	e->state->head = e->step.head;
	e->state->tail = e->step.tail;
	e->state->left = e->step.left;
	e->state->skipped = e->step.skipped;
}

static void rank_reset(struct events *e, u32 rank)
{
	const sim_time start = machine_start(e->machine, rank);

	rank_open(e, rank);
	*e->state = (struct rank){ .cpu = start, .sent = start, .out = INT64_MIN / 2,
				   .in = INT64_MIN / 2 };
	coll_step_init(&e->step, &e->class->plan, e->step.pending);
	memset(e->early, 0, early_bytes(e->class));
	rank_close(e);
	calendar_add(&e->calendar, (struct happening){ start, rank, WHAT_START });
}

/* ---- things to come -------------------------------------------------------------- */

static bool events_before(const struct happening *a, const struct happening *b)
{
	return a->time != b->time ? a->time < b->time : a->what < b->what;
}

static void local_push(struct events *e, struct happening new)
{
	u32 i;

	if (e->locals == e->local_room) {
		u32 room = e->local_room ? 2 * e->local_room : 64;
		void *more = realloc(e->local, room * sizeof(new));

		if (!more) {
			e->error = -ENOMEM;
			return;
		}
		e->local = more;
		e->local_room = room;
	}
	for (i = e->locals++; i && events_before(&new, &e->local[(i - 1) / 2]); i = (i - 1) / 2)
		e->local[i] = e->local[(i - 1) / 2];
	e->local[i] = new;
}

static struct happening local_pop(struct events *e)
{
	struct happening first = e->local[0], moved = e->local[--e->locals];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < e->locals) {
		if (child + 1 < e->locals && events_before(&e->local[child + 1], &e->local[child]))
			child++;
		if (!events_before(&e->local[child], &moved))
			break;
		e->local[i] = e->local[child];
		i = child;
	}
	e->local[i] = moved;
	return first;
}

/* On this rank; another's events are at least a window away. */
static void events_later(struct events *e, sim_time time, u32 op, u32 what)
{
	const struct happening happening = { time, e->rank, op << WHAT_BITS | what };

	if (time < e->end)
		local_push(e, happening);
	else
		calendar_add(&e->calendar, happening);
}

static void later_at(struct events *e, u32 rank, sim_time time, u32 op, u32 what)
{
	calendar_add(&e->calendar, (struct happening){ time, rank, op << WHAT_BITS | what });
}

/* ---- ops -------------------------------------------------------------------------- */

static sim_time work_of(const struct events *e, const struct coll_op *op)
{
	sim_time work = machine_work(e->machine, op);

	return e->machine->slowness ? to_time(work * e->machine->slowness[e->rank]) : work;
}

static void log_work(struct events *e, u32 op, sim_time begin, sim_time work)
{
	struct span *span = log_span(e->log, e->rank, op);

	span->begin = begin;
	span->work = work;
}

static void log_done(struct events *e, u32 op)
{
	struct span *span = log_span(e->log, e->rank, op);

	span->end = e->now;
	if (span->begin == SIM_NEVER)
		span->begin = e->now;
}

/* The message for a receive of this rank has left. */
static void log_left(struct events *e, u32 rank, u32 op, sim_time left, sim_time way)
{
	struct span *span = log_span(e->log, rank, op);

	span->left = left;
	span->way = way;
}

/*
 * When the CPU work of an op ends that is ready now. What costs nothing does not
 * wait for the CPU.
 */
static sim_time events_serve(struct events *e, u32 op, sim_time work, sim_time *begin)
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

/* How long a message keeps a NIC for itself. */
static sim_time nic_time(const struct machine *machine, u64 bytes)
{
	return to_time(machine->gap + bytes * machine->nic);
}

static u32 crossing_new(struct events *e)
{
	u32 index = e->free, room = e->crossing_room ? 2 * e->crossing_room : 64;
	struct crossing *more;

	if (index) {
		e->free = e->crossing[index - 1].free;
		return index - 1;
	}
	if (e->crossings == e->crossing_room) {
		more = realloc(e->crossing, room * sizeof(*more));
		if (!more) {
			e->error = -ENOMEM;
			return COLL_NONE;
		}
		e->crossing = more;
		e->crossing_room = room;
	}
	return e->crossings++;
}

/* The message takes a trunk that is shared. */
static void events_cross(struct events *e, struct trunk *trunk, u64 bytes, sim_time time,
			 struct crossing crossing)
{
	const u32 name = crossing_new(e);

	if (name == COLL_NONE)
		return;
	e->crossing[name] = crossing;
	if (trunk_add(trunk, (struct flow){ bytes, time, name }))
		e->error = -ENOMEM;
}

/* The bytes of a send leave the rank as soon as the NIC has time. Returns when. */
static sim_time events_depart(struct events *e, u32 op, sim_time time)
{
	const struct machine *machine = e->machine;
	const struct coll_op *send = &coll_ops(e->class->schedule)[op];
	const u32 to = program_peer_rank(e->program, &e->class->peer[op], e->rank);
	const u32 recv = program_match_op(e->program, e->class, op, e->rank);
	const u64 stream = noise_message(machine->message_key, e->rank, to, send->slot);
	const struct sim_link *link = machine_link(machine, e->rank, to);
	struct wire wire = e->class_wire[op];
	sim_time travel;

	if (time < e->state->out)
		time = e->state->out;
	if (e->circuits && send->bytes) {
		time = sim_circuits_carry(e->circuits, e->rank, to, send->bytes, time, wire.length);
		if (time < 0) {
			e->error = -ENOTCONN;
			return e->now;
		}
	}
	e->state->out = time + nic_time(machine, send->bytes);
	if (link)
		wire = noise_wire(&machine->link, machine_way_on(machine, link, send->bytes));
	travel = noise_travel(&machine->link, stream, wire);
	if (e->log)
		log_left(e, to, recv, time, wire.length);
	if (link && link->trunk > 0 && send->bytes) {
		travel -= wire.length - machine_way_on(machine, link, 0);
		events_cross(e, &e->trunk[link - machine->network->link], send->bytes, time,
			     (struct crossing){ .to = to, .op = recv, .more = travel });
	} else {
		later_at(e, to, time + travel, recv, WHAT_ARRIVE);
	}
	return time;
}

/* Returns when the send is done; SIM_NEVER: that will be said later. */
static sim_time start_send(struct events *e, u32 op)
{
	const struct coll_op *send = &coll_ops(e->class->schedule)[op];
	sim_time begin, end, out;
	u32 to;

	end = events_serve(e, op, work_of(e, send), &begin);
	if (e->state->sent < end)
		e->state->sent = end;
	out = e->machine->semantics == SIM_GOAL ? begin + work_of(e, send) : end;
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
	later_at(e, to, out + machine_way_on(e->machine, machine_link(e->machine, e->rank, to), 0),
		 program_match_op(e->program, e->class, op, e->rank), WHAT_REQUEST);
	return SIM_NEVER;
}

/* The receive of this op has started and its request is here: the sender may send. */
static void events_grant(struct events *e, u32 op)
{
	const u32 from = program_peer_rank(e->program, &e->class->peer[op], e->rank);

	later_at(e, from,
		 e->now + machine_way_on(e->machine, machine_link(e->machine, from, e->rank), 0),
		 program_match_op(e->program, e->class, op, e->rank), WHAT_GRANT);
}

/* The rank looks at a message that is there. Returns when it has. */
static sim_time take_in(struct events *e, u32 op)
{
	sim_time begin;

	e->outcome->events++;
	return events_serve(e, op, work_of(e, &coll_ops(e->class->schedule)[op]), &begin);
}

static sim_time start_recv(struct events *e, u32 op)
{
	const u8 bit = 1 << op % 8;

	if (!(e->early[op / 8] & bit))
		return SIM_NEVER;
	if (coll_ops(e->class->schedule)[op].bytes > e->machine->eager) {
		events_grant(e, op);
		return SIM_NEVER;
	}
	return take_in(e, op);
}

/* Done when it is lit: for both ends, by the one that asked last. */
static sim_time start_connect(struct events *e, u32 index)
{
	const u32 peer = program_peer_rank(e->program, &e->class->peer[index], e->rank);
	u32 other = COLL_NONE;
	sim_time lit;

	if (!e->circuits)
		return e->now;
	lit = sim_circuits_ask(e->circuits, e->rank, peer,
			   coll_ops(e->class->schedule)[index].flags, index, e->now, &other);
	if (lit < 0)
		e->error = -EBUSY;
	else if (lit != SIM_NEVER)
		later_at(e, peer, lit, other, WHAT_DONE);
	return lit < 0 ? SIM_NEVER : lit;
}

static sim_time start_release(struct events *e, u32 index)
{
	const u32 peer = program_peer_rank(e->program, &e->class->peer[index], e->rank);

	sim_time freed = e->now;

	if (e->circuits)
		freed = circuits_give_back(e->circuits, e->rank, peer,
					   coll_ops(e->class->schedule)[index].flags, e->now);
	if (freed < 0)
		e->error = -ENOTCONN;
	return freed;
}

static sim_time start_op(struct events *e, u32 index)
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
		return events_serve(e, index, work_of(e, op), &begin);
	}
}

static void rank_finished(struct events *e)
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

static void op_done(struct events *e, u32 op)
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

/* Starts all that may start now, and what that lets go. */
static void events_advance(struct events *e)
{
	sim_time done;
	u32 op;

	while ((op = coll_step_next(&e->step)) != COLL_NONE) {
		done = start_op(e, op);
		if (done <= e->now)
			op_done(e, op);
		else if (done != SIM_NEVER)
			events_later(e, done, op, WHAT_DONE);
	}
}

/* A started receive's message, or one that must wait for its receive. */
static void events_arrive(struct events *e, u32 op, u32 what)
{
	sim_time done;

	if (coll_step_finished(&e->step))	/* too late */
		return;
	if (e->step.state[op] != COLL_OP_STARTED) {
		e->early[op / 8] |= 1 << op % 8;
		return;
	}
	if (what == WHAT_REQUEST) {
		events_grant(e, op);
		return;
	}
	done = take_in(e, op);
	if (done > e->now) {
		events_later(e, done, op, WHAT_DONE);
		return;
	}
	op_done(e, op);
	events_advance(e);
}

/* Messages that come together leave the receiver's NIC one after the other. */
static void through_nic(struct events *e, u32 op)
{
	const sim_time busy = nic_time(e->machine, coll_ops(e->class->schedule)[op].bytes);
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

static void events_happen(struct events *e, const struct happening *happening)
{
	const u32 what = happening->what & ((1 << WHAT_BITS) - 1),
		  op = happening->what >> WHAT_BITS;

	e->now = happening->time;
	switch (what) {
	case WHAT_START:
		if (coll_step_finished(&e->step))	/* no op at all */
			rank_finished(e);
		events_advance(e);
		break;
	case WHAT_ARRIVE:
		through_nic(e, op);
		break;
	case WHAT_REQUEST:
	case WHAT_DELIVER:
		events_arrive(e, op, what);
		break;
	case WHAT_GRANT: {
		const u64 bytes = coll_ops(e->class->schedule)[op].bytes;
		sim_time out = events_depart(e, op, e->now);

		events_later(e, out + to_time(bytes * e->machine->beta), op, WHAT_DONE);
		break;
	}
	default:
		op_done(e, op);
		events_advance(e);
	}
}

/* The events of one rank in a window, and those that they lead to in it. */
static void serve_rank(struct events *e, const struct happening *batch, u32 count)
{
	u32 i = 0;

	rank_open(e, batch->rank);
	while (i < count || e->locals) {
		if (e->locals && (i == count || events_before(&e->local[0], &batch[i]))) {
			struct happening own = local_pop(e);

			events_happen(e, &own);
		} else {
			events_happen(e, &batch[i++]);
		}
	}
	rank_close(e);
}

/* ---- a run ------------------------------------------------------------------------ */

static void prepare_wire(struct events *e, struct wire *wire, u64 bytes, sim_time *least)
{
	const sim_time way = machine_way(e->machine, bytes);
	const sim_time first = bytes > e->machine->eager ? machine_way(e->machine, 0) : way;
	const struct sim_network *network = e->machine->network;
	u32 i;

	*wire = noise_wire(&e->machine->link, way);
	if (!network && *least > first)
		*least = first;
	for (i = 0; network && i < network->areas * network->areas; i++)
		if (*least > machine_way_on(e->machine, &network->link[i], 0))
			*least = machine_way_on(e->machine, &network->link[i], 0);
}

/* Wires of all sends. Returns the time of the shortest way. */
static sim_time prepare_wires(struct events *e)
{
	sim_time least = SIM_SECOND;
	u32 c, i;

	for (c = 0; c < e->program->classes; c++) {
		const struct coll_schedule *s = e->program->class[c].schedule;

		for (i = 0; i < s->ops; i++)
			if (coll_ops(s)[i].kind == COLL_OP_SEND)
				prepare_wire(e, &e->wire[e->first_op[c] + i], coll_ops(s)[i].bytes,
					     &least);
	}
	/* A circuit is news to its other end when it is lit, not before. */
	if (e->circuits && least > to_time(e->machine->circuits->setup * SIM_SECOND))
		least = to_time(e->machine->circuits->setup * SIM_SECOND);
	return least > 0 ? least : 1;
}

static void first_unfinished(struct events *e)
{
	u32 rank;

	for (rank = 0; rank < e->program->ranks; rank++) {
		rank_open(e, rank);
		if (!coll_step_finished(&e->step))
			break;
	}
	e->outcome->last = rank;
}

/* ---- trunks ------------------------------------------------------------------------- */

static int trunks_init(struct events *e)
{
	const struct sim_network *n = e->machine->network;
	u32 i;

	e->trunk = n ? calloc(n->areas * n->areas, sizeof(*e->trunk)) : NULL;
	e->crossings = e->free = 0;
	if (n && !e->trunk)
		return -ENOMEM;
	for (i = 0; n && i < n->areas * n->areas; i++)
		if (n->link[i].trunk > 0)
			trunk_init(&e->trunk[i], n->link[i].beta, n->link[i].trunk,
				   n->link[i].loss);
	return 0;
}

static void trunks_free(struct events *e)
{
	const struct sim_network *n = e->machine->network;
	u32 i;

	for (i = 0; e->trunk && i < n->areas * n->areas; i++)
		trunk_free(&e->trunk[i]);
	free(e->trunk);
	e->trunk = NULL;
}

/* What happens first on any trunk, before `limit`. Returns whether there was something. */
static bool trunks_step(struct events *e, sim_time limit)
{
	const struct sim_network *n = e->machine->network;
	struct trunk *first = NULL;
	u64 name;
	u32 i;

	for (i = 0; e->trunk && i < n->areas * n->areas; i++) {
		sim_time time = n->link[i].trunk > 0 ? trunk_next(&e->trunk[i]) : SIM_NEVER;

		if (time < limit) {
			limit = time;
			first = &e->trunk[i];
		}
	}
	if (first && trunk_step(first, &name)) {
		struct crossing *crossing = &e->crossing[name];

		later_at(e, crossing->to, first->now + crossing->more, crossing->op, WHAT_ARRIVE);
		crossing->free = e->free;
		e->free = name + 1;
	}
	return first;
}

/* ---- all of it ------------------------------------------------------------------------ */

/* One window of time, rank by rank; false: nothing will happen any more. */
static bool serve_window(struct events *e)
{
	const struct happening *batch;
	u32 count, i, next;

	while (trunks_step(e, calendar_next(&e->calendar)))
		;
	count = calendar_take(&e->calendar, &batch, &e->end);
	for (i = 0; i < count; i = next) {
		for (next = i + 1; next < count && batch[next].rank == batch[i].rank;)
			next++;
		serve_rank(e, batch + i, next - i);
	}
	return count && !e->error;
}

int events_run(struct events *e, const struct machine *machine, struct sim_outcome *outcome,
	       const struct extras *extras)
{
	int error;
	u32 i;

	*outcome = (struct sim_outcome){ .path = SIM_EVENTS };
	e->machine = machine;
	e->outcome = outcome;
	e->finish = extras->finish;
	e->carried = extras->bytes;
	e->log = extras->log;
	e->running = e->program->ranks;
	e->error = 0;
	e->phase = noise_phases(&machine->os, e->program->ranks);
	e->circuits = machine->circuits ? sim_circuits_new(machine, e->program->ranks) : NULL;
	error = machine->circuits && !e->circuits ? -ENOMEM : trunks_init(e);
	if (!error)
		error = calendar_init(&e->calendar, prepare_wires(e));
	for (i = 0; i < e->program->ranks && !error; i++)
		rank_reset(e, i);
	while (!error && serve_window(e))
		;
	if (!error)
		error = e->error ? e->error : e->calendar.error;
	if (!error && e->circuits) {
		sim_circuits_count(e->circuits, outcome);
		if (machine->circuits->wavelengths &&
		    outcome->circuits > machine->circuits->wavelengths)
			error = -EBUSY;
	}
	sim_circuits_free(e->circuits);
	calendar_free(&e->calendar);
	trunks_free(e);
	free(e->phase);
	if (!error && e->running) {
		first_unfinished(e);
		error = -EDEADLK;
	}
	return error;
}
