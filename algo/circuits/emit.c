// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * One rank's schedule with its circuits: its ops in order of epochs, and among them the connects
 * and releases.
 *
 * Within an epoch: connects, ops by round, releases, signals. Both ends of a message have it in
 * the same epoch and round, and a signal in the epoch of its session, so slots agree.
 */
#include "core/step.h"
#include "circuits.h"
#include "algo/common/sort.h"

enum circuits_phase { PHASE_CONNECT, PHASE_OPS, PHASE_RELEASE, PHASE_SIGNAL, PHASES };

/* What an entry of the list is; the rest of its value is an op or a session. */
enum circuits_entry { WHAT_OP, WHAT_CONNECT, WHAT_RELEASE, WHAT_TELL, WHAT_HEAR };

struct circuits_emitting {
	struct coll_build b;
	struct coll_arena *arena;
	const struct coll_circuits *c;
	const struct coll_schedule *s;	/* the rank's own, without circuits */
	u32 rank;
	u32 *message_of;	/* per op: COLL_NONE: local */
	u32 *round;		/* per op */
	struct coll_sort_item *item;
	u32 items, capacity;
	u32 *op;		/* per op: its new index */
	u32 *connect, *release;	/* per session: mine */
	u32 *heard;		/* per session: the join of the signals it waits for */
	u32 *next_in_session;	/* per op */
	u32 *first_in_session;	/* per session */
	u32 turn, turns_from;	/* COLL_AHEAD_TURNS: what the next turn waits for */
	u32 turn_epoch;
	u32 *released, releases;
	bool aside;		/* the input is in OUT: it is copied first, */
	u64 input;		/* here, */
	u32 copied;		/* by this op */
};

static u64 value_of(enum circuits_entry what, u32 side, u32 id)
{
	return (u64)what << 40 | (u64)side << 32 | id;
}

static void circuits_emit_list(struct circuits_emitting *e, u32 epoch, enum circuits_phase phase,
			       u64 minor, u64 value)
{
	e->item[e->items++] =
		(struct coll_sort_item){ (u64)epoch * PHASES + phase, minor, value };
}

/* ---- what there is to emit --------------------------------------------------- */

/* The message that this op was when all was played: in place changes local ops only. */
static u32 message_of(const struct circuits_emitting *e, u32 index)
{
	const struct coll_schedule *played = e->c->rounds.schedule[e->rank];
	const struct coll_op *op = &coll_ops(e->s)[index];
	const u32 peer = coll_op_rank(e->s, op);
	u32 i;

	if (op->kind != COLL_OP_SEND && op->kind != COLL_OP_RECV)
		return COLL_NONE;
	if (index < played->ops) {
		const struct coll_op *same = &coll_ops(played)[index];

		if (same->kind == op->kind && same->slot == op->slot &&
		    coll_op_rank(played, same) == peer)
			return e->c->rounds.message_of[e->rank][index];
	}
	for (i = 0; i < played->ops; i++) {
		const struct coll_op *other = &coll_ops(played)[i];

		if (other->kind == op->kind && other->slot == op->slot &&
		    coll_op_rank(played, other) == peer)
			return e->c->rounds.message_of[e->rank][i];
	}
	return COLL_NONE;
}

static void list_op(struct circuits_emitting *e, u32 index)
{
	const struct coll_circuits *c = e->c;
	const struct coll_op *op = &coll_ops(e->s)[index];
	const struct coll_round_message *m;
	u32 round = 0, k;

	e->message_of[index] = message_of(e, index);
	if (e->message_of[index] != COLL_NONE) {
		m = &c->rounds.message[e->message_of[index]];
		e->round[index] = m->round;
		circuits_emit_list(e, m->epoch, PHASE_OPS, (u64)m->round << 33 | 1ull << 32 | index,
				   value_of(WHAT_OP, 0, index));
		if (m->session == COLL_NONE)
			return;
		e->next_in_session[index] = e->first_in_session[m->session];
		e->first_in_session[m->session] = index;
		return;
	}
	for (k = 0; k < op->waits; k++) {
		const u32 earlier = coll_waits(e->s)[op->wait + k];
		const u32 after = e->round[earlier] + (e->message_of[earlier] != COLL_NONE);

		round = after > round ? after : round;
	}
	e->round[index] = round;
	circuits_emit_list(e, c->epoch_of[round < c->rounds.rounds ? round : c->rounds.rounds],
			   PHASE_OPS, (u64)round << 33 | index, value_of(WHAT_OP, 0, index));
}

static bool is_mine(const struct circuits_emitting *e, const struct coll_session *s)
{
	return s->end[0] == e->rank || s->end[1] == e->rank;
}

/*
 * Both ends of the session before on the same wavelength signal to the ends of the next one
 * that it has been released. A signal has no bytes and needs no circuit.
 */
static void list_signals(struct circuits_emitting *e, u32 session)
{
	const struct coll_session *s = &e->c->session[session];
	const struct coll_session *before = &e->c->session[s->before_in_all];
	u32 side;

	for (side = 0; side < 2; side++) {
		if (before->end[side] == s->end[0])
			continue;
		if (before->end[side] == e->rank)
			circuits_emit_list(e, before->last, PHASE_SIGNAL, (u64)session << 1 | side,
					   value_of(WHAT_TELL, side, session));
		if (s->end[0] == e->rank)
			circuits_emit_list(e, before->last, PHASE_SIGNAL, (u64)session << 1 | side,
					   value_of(WHAT_HEAR, side, session));
	}
}

/*
 * Where several circuits come up at once, sends begin in the order of the connects: in
 * that of the rank's own list.
 */
static u64 first_use(const struct circuits_emitting *e, u32 session)
{
	u64 first = ~(u64)0, use;
	u32 op;

	for (op = e->first_in_session[session]; op != COLL_NONE; op = e->next_in_session[op]) {
		use = (u64)e->round[op] << 32 | op;
		first = use < first ? use : first;
	}
	return first;
}

static void list_sessions(struct circuits_emitting *e)
{
	u32 i;

	for (i = 0; i < e->c->sessions; i++) {
		const struct coll_session *s = &e->c->session[i];

		if (s->before_in_all != COLL_NONE)
			list_signals(e, i);
		if (!is_mine(e, s))
			continue;
		circuits_emit_list(e, s->first, PHASE_CONNECT, first_use(e, i),
				   value_of(WHAT_CONNECT, 0, i));
		circuits_emit_list(e, s->last, PHASE_RELEASE, i, value_of(WHAT_RELEASE, 0, i));
	}
}

/* ---- emitting -------------------------------------------------------------------- */

static void emit_circuit_way(struct circuits_emitting *e, const struct coll_session *s)
{
	if (e->c->simplex)
		coll_emit_one_way(&e->b, s->end[0] == e->rank ? COLL_CIRCUIT_OUT : COLL_CIRCUIT_IN);
}

static u32 other_end(const struct circuits_emitting *e, const struct coll_session *s)
{
	return s->end[s->end[0] == e->rank];
}

/* In turns all ports are set together, when all that were set before are free. */
static void wait_for_turn(struct circuits_emitting *e, u32 epoch)
{
	u32 i;

	if (e->turn_epoch != epoch) {
		coll_emit_after(&e->b, e->turn);
		for (i = e->turns_from; i < e->releases; i++)
			coll_emit_after(&e->b, e->released[i]);
		e->turn = e->releases > e->turns_from || e->turn != COLL_NONE
				  ? coll_emit_join(&e->b)
				  : COLL_NONE;
		e->turns_from = e->releases;
		e->turn_epoch = epoch;
	}
	coll_emit_after(&e->b, e->turn);
}

static void emit_connect_of(struct circuits_emitting *e, u32 session)
{
	const struct coll_session *s = &e->c->session[session];
	const struct coll_session *waved =
		s->before_in_all == COLL_NONE ? NULL : &e->c->session[s->before_in_all];
	u32 side;

	if (e->c->ahead == COLL_AHEAD_TURNS)
		wait_for_turn(e, s->first);
	for (side = 0; side < 2; side++)
		if (s->end[side] == e->rank && s->before[side] != COLL_NONE)
			coll_emit_after(&e->b, e->release[s->before[side]]);
	if (s->before_same != COLL_NONE)
		coll_emit_after(&e->b, e->release[s->before_same]);
	if (waved && s->end[0] == e->rank) {
		coll_emit_after(&e->b, e->heard[2 * session]);
		coll_emit_after(&e->b, e->heard[2 * session + 1]);
		if (is_mine(e, waved))
			coll_emit_after(&e->b, e->release[s->before_in_all]);
	}
	emit_circuit_way(e, s);
	e->connect[session] = coll_emit_connect(&e->b, other_end(e, s));
}

static void emit_release_of(struct circuits_emitting *e, u32 session)
{
	const struct coll_session *s = &e->c->session[session];
	u32 op;

	coll_emit_after(&e->b, e->connect[session]);
	for (op = e->first_in_session[session]; op != COLL_NONE; op = e->next_in_session[op])
		coll_emit_after(&e->b, e->op[op]);
	emit_circuit_way(e, s);
	e->release[session] = coll_emit_release(&e->b, other_end(e, s));
	e->released[e->releases++] = e->release[session];
}

static void emit_signal(struct circuits_emitting *e, enum circuits_entry what, u32 side,
			u32 session)
{
	const struct coll_session *s = &e->c->session[session];
	const struct coll_session *before = &e->c->session[s->before_in_all];

	if (what == WHAT_HEAR) {
		e->heard[2 * session + side] = coll_emit_recv(&e->b, before->end[side],
							      COLL_ADDRESS(COLL_SCRATCH, 0), 0);
		return;
	}
	coll_emit_after(&e->b, e->release[s->before_in_all]);
	coll_emit_send(&e->b, s->end[0], COLL_ADDRESS(COLL_SCRATCH, 0), 0);
}

/* Where the op reads: of the input that was put aside, that copy. */
static u64 read_place(struct circuits_emitting *e, u64 place)
{
	if (!e->aside || COLL_ADDRESS_BUFFER(place) != COLL_IN)
		return place;
	coll_emit_after(&e->b, e->copied);
	return e->input + COLL_ADDRESS_OFFSET(place);
}

/* Input copied aside is read before it is overwritten. */
static u64 write_place(struct circuits_emitting *e, u64 place)
{
	if (e->aside && COLL_ADDRESS_BUFFER(place) == COLL_OUT)
		coll_emit_after(&e->b, e->copied);
	return place;
}

/* False: it waits for an op that is not emitted yet. */
static bool emit_op(struct circuits_emitting *e, u32 index)
{
	const struct coll_op *op = &coll_ops(e->s)[index];
	const u32 peer = coll_op_rank(e->s, op);
	const u32 session = e->message_of[index] == COLL_NONE ?
				    COLL_NONE :
				    e->c->rounds.message[e->message_of[index]].session;
	u32 k;

	for (k = 0; k < op->waits; k++) {
		const u32 earlier = e->op[coll_waits(e->s)[op->wait + k]];

		if (earlier == COLL_NONE)
			return false;
		coll_emit_after(&e->b, earlier);
	}
	switch (op->kind) {
	case COLL_OP_SEND:
		if (session != COLL_NONE)
			coll_emit_after(&e->b, e->connect[session]);
		e->op[index] = coll_emit_send(&e->b, peer, read_place(e, op->left), op->bytes);
		break;
	case COLL_OP_RECV:
		e->op[index] = coll_emit_recv(&e->b, peer, write_place(e, op->result), op->bytes);
		break;
	case COLL_OP_REDUCE:
		e->op[index] =
			coll_emit_reduce(&e->b, write_place(e, op->result), read_place(e, op->left),
					 read_place(e, op->right), op->bytes);
		break;
	default:
		e->op[index] = coll_emit_copy(&e->b, write_place(e, op->result),
					      read_place(e, op->left), op->bytes);
		break;
	}
	return e->op[index] != COLL_NONE || e->b.error;
}

static bool emit_item(struct circuits_emitting *e, u64 value)
{
	const u32 id = (u32)value, side = value >> 32 & 1;

	switch ((enum circuits_entry)(value >> 40)) {
	case WHAT_OP:
		return emit_op(e, id);
	case WHAT_CONNECT:
		emit_connect_of(e, id);
		return true;
	case WHAT_RELEASE:
		emit_release_of(e, id);
		return true;
	default:
		emit_signal(e, value >> 40, side, id);
		return true;
	}
}

static int circuits_emit_prepare(struct circuits_emitting *e)
{
	const u32 ops = e->s->ops, sessions = e->c->sessions;
	struct coll_arena *arena = e->arena;

	e->message_of = coll_arena_get(arena, ops, sizeof(u32));
	e->round = coll_arena_get(arena, ops, sizeof(u32));
	e->op = coll_arena_get(arena, ops, sizeof(u32));
	e->next_in_session = coll_arena_get(arena, ops, sizeof(u32));
	e->first_in_session = coll_arena_get(arena, sessions, sizeof(u32));
	e->connect = coll_arena_get(arena, sessions, sizeof(u32));
	e->release = coll_arena_get(arena, sessions, sizeof(u32));
	e->released = coll_arena_get(arena, sessions, sizeof(u32));
	e->heard = coll_arena_get(arena, 2 * (u64)sessions, sizeof(u32));
	e->item = coll_arena_get(arena, ops + 6 * (u64)sessions, sizeof(*e->item));
	if (!e->message_of || !e->round || !e->op || !e->next_in_session ||
	    !e->first_in_session || !e->connect || !e->release || !e->released || !e->heard ||
	    !e->item)
		return -ENOSPC;
	memset(e->op, 0xff, ops * sizeof(u32));
	memset(e->first_in_session, 0xff, sessions * sizeof(u32));
	memset(e->heard, 0xff, 2 * (u64)sessions * sizeof(u32));
	return 0;
}

static int emit_all(struct circuits_emitting *e, struct coll_schedule **schedule)
{
	const struct coll_schedule *s = e->s;
	u32 i;

	for (i = 0; i < s->ops; i++)
		list_op(e, i);
	list_sessions(e);
	sort_items(e->item, e->items);
	for (i = 0; i < e->items; i++)
		if (!emit_item(e, e->item[i].value))
			return e->b.error ? e->b.error : -EINVAL;
	return coll_build_finish(&e->b, schedule);
}

/*
 * The rank's own schedule: as executed in lockstep, except for what only the root knows. A
 * reduction in place may have another order of messages. So its input is copied aside, and
 * the schedule is that of a call that is not in place.
 */
static int own_schedule(struct circuits_emitting *e, const struct coll_algo *algo,
			const struct coll_call *call, const struct coll_tuning *tuning)
{
	struct coll_schedule *s = e->c->rounds.schedule[call->rank];
	int error = 0;

	e->aside = call->in_place && call->rank == call->root && call->collective == COLL_REDUCE;
	if (call->in_place && call->rank == call->root && !e->aside) {
		error = coll_algo_emit_plain(algo, call, tuning, e->arena->at, e->arena->left, &s);
		if (!error)
			coll_arena_get(e->arena, s->bytes, 1);
	}
	e->s = s;
	return error;
}

/* The type and the operation of the reduces, as the table sets them. */
static void circuits_emit_begin(struct circuits_emitting *e, const struct coll_call *call,
				void *memory, u64 bytes)
{
	coll_build_init(&e->b, memory, bytes, call->rank, call->ranks);
	coll_build_buffers(&e->b, e->aside ? 0 : e->s->buffer[COLL_IN], e->s->buffer[COLL_OUT]);
	coll_build_reduction(&e->b, call->type, call->reduction, e->s->element);
	if (e->s->buffer[COLL_SCRATCH])
		coll_emit_scratch(&e->b, e->s->buffer[COLL_SCRATCH]);
	if (e->aside) {
		e->input = coll_emit_scratch(&e->b, e->s->buffer[COLL_IN]);
		e->copied = coll_emit_copy(&e->b, e->input, COLL_ADDRESS(COLL_OUT, 0),
					   e->s->buffer[COLL_IN]);
	}
}

int coll_circuits_emit(const struct coll_algo *algo, const struct coll_call *call,
		       const struct coll_tuning *tuning, void *memory, u64 bytes,
		       struct coll_schedule **schedule)
{
	/* The schedule begins at `memory`; all else lies behind its quarter. */
	const u64 mine = bytes / 4 & ~(u64)7;
	struct coll_arena arena = { (u8 *)memory + mine, bytes - mine };
	struct circuits_emitting e = { .arena = &arena, .rank = call->rank, .turn = COLL_NONE };
	struct coll_circuits c;
	int error;

	error = coll_circuits_plan(algo, call, tuning, &arena, &c);
	e.c = &c;
	if (!error)
		error = own_schedule(&e, algo, call, tuning);
	if (!error)
		error = circuits_emit_prepare(&e);
	if (error)
		return error;
	circuits_emit_begin(&e, call, memory, mine);
	return emit_all(&e, schedule);
}
