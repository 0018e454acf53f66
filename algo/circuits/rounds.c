// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A collective in lockstep: in each round all local ops that are ready are done, and a message is
 * sent when both its ends are ready.
 */
#include "core/step.h"
#include "circuits.h"
#include "algo/common/sort.h"

enum { FIRST_GUESS = 4096 };

void *coll_arena_get(struct coll_arena *arena, u64 count, u64 size)
{
	const u64 bytes = (count * size + 7) & ~(u64)7;
	void *got = arena->at;

	if (bytes > arena->left) {
		arena->left = 0;
		return NULL;
	}
	arena->at += bytes;
	arena->left -= bytes;
	return got;
}

void *coll_arena_get_zero(struct coll_arena *arena, u64 count, u64 size)
{
	void *got = coll_arena_get(arena, count, size);

	/* All of it: what is taken piece by piece is one array. */
	return got ? memset(got, 0, (count * size + 7) & ~(u64)7) : NULL;
}

/* What `rank` is asked for, as far as the others know: in place shows at the root only. */
static struct coll_call call_of(const struct coll_call *call, u32 rank)
{
	struct coll_call theirs = *call;

	theirs.rank = rank;
	switch (call->collective) {
	case COLL_REDUCE:
	case COLL_GATHER:
	case COLL_SCATTER:
		theirs.in_place = false;
		break;
	default:
		break;
	}
	return theirs;
}

/* With little memory first: the builder's time grows with what it is given. */
static int emit_rank(const struct coll_algo *algo, const struct coll_call *call,
		     const struct coll_tuning *tuning, struct coll_arena *arena, u64 *guess,
		     struct coll_schedule **schedule)
{
	int error;

	for (;; *guess *= 2) {
		const u64 bytes = *guess < arena->left ? *guess : arena->left;

		error = coll_algo_emit_plain(algo, call, tuning, arena->at, bytes, schedule);
		if (error != -ENOSPC || bytes == arena->left)
			break;
	}
	if (!error)
		coll_arena_get(arena, (*schedule)->bytes, 1);
	return error;
}

static int emit_all(const struct coll_algo *algo, const struct coll_call *call,
		    const struct coll_tuning *tuning, struct coll_arena *arena,
		    struct coll_rounds *r)
{
	u64 guess = FIRST_GUESS;
	void *shared = NULL;
	int error = 0;
	u32 i;

	if (algo->share) {
		shared = coll_arena_get(arena, r->ranks, algo->shared);
		if (!shared)
			return -ENOSPC;
		algo->share(call, tuning, shared);
	}
	r->schedule = coll_arena_get(arena, r->ranks, sizeof(*r->schedule));
	if (!r->schedule)
		return -ENOSPC;
	for (i = 0; i < r->ranks && !error; i++) {
		struct coll_call theirs = call_of(call, i);

		theirs.shared = shared;
		error = emit_rank(algo, &theirs, tuning, arena, &guess, &r->schedule[i]);
	}
	return error;
}

/* ---- messages ------------------------------------------------------------ */

/* The sends of one rank, each with the op that receives it. */
static int join_sends(struct coll_rounds *r, u32 rank)
{
	const struct coll_schedule *s = r->schedule[rank];
	const struct coll_plan *plan = r->plan;
	u32 i;

	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];
		const u32 to = coll_op_rank(s, op);
		u32 back, recv;

		if (op->kind != COLL_OP_SEND)
			continue;
		back = coll_peer_find(r->schedule[to], rank);
		if (back == COLL_NONE || op->slot >= coll_peers(r->schedule[to])[back].recvs)
			return -EINVAL;
		recv = plan[to].recv[plan[to].first_recv[back] + op->slot];
		r->message_of[rank][i] = r->message_of[to][recv] = r->messages;
		r->message[r->messages++] = (struct coll_round_message){
			.from = rank, .to = to, .send = i, .recv = recv, .bytes = op->bytes,
			.session = COLL_NONE,
		};
	}
	return 0;
}

static int join_all(struct coll_rounds *r, struct coll_arena *arena)
{
	u32 sends = 0, i, k;
	int error = 0;

	r->message_of = coll_arena_get(arena, r->ranks, sizeof(*r->message_of));
	if (!r->message_of)
		return -ENOSPC;
	for (i = 0; i < r->ranks; i++) {
		const struct coll_schedule *s = r->schedule[i];

		r->message_of[i] = coll_arena_get(arena, s->ops, sizeof(u32));
		if (!r->message_of[i])
			return -ENOSPC;
		memset(r->message_of[i], 0xff, s->ops * sizeof(u32));
		for (k = 0; k < s->ops; k++)
			sends += coll_ops(s)[k].kind == COLL_OP_SEND;
	}
	r->message = coll_arena_get(arena, sends, sizeof(*r->message));
	r->order = coll_arena_get(arena, sends, sizeof(u32));
	if (!r->message || !r->order)
		return -ENOSPC;
	for (i = 0; i < r->ranks && !error; i++)
		error = join_sends(r, i);
	return error;
}

/* ---- playing --------------------------------------------------------------- */

static int make_plans(struct coll_rounds *r, struct coll_arena *arena)
{
	u32 i;

	r->plan = coll_arena_get(arena, r->ranks, sizeof(*r->plan));
	if (!r->plan)
		return -ENOSPC;
	for (i = 0; i < r->ranks; i++) {
		void *memory = coll_arena_get(arena, 1, coll_plan_bytes(r->schedule[i]));

		if (!memory)
			return -ENOSPC;
		coll_plan_init(&r->plan[i], r->schedule[i], memory);
	}
	return 0;
}

static struct coll_step *begin_steps(const struct coll_rounds *r, struct coll_arena *arena)
{
	struct coll_step *step = coll_arena_get(arena, r->ranks, sizeof(*step));
	u32 i;

	for (i = 0; step && i < r->ranks; i++) {
		void *memory = coll_arena_get(arena, 1, coll_step_bytes(&r->plan[i]));

		if (!memory)
			return NULL;
		coll_step_init(&step[i], &r->plan[i], memory);
	}
	return step;
}

/* Sends of a rank that wait for their turn, as a list through `next`. */
struct turn {
	u32 first, last;
};

struct playing {
	struct coll_rounds *r;
	struct coll_step *step;
	struct turn *turn;	/* per rank; NULL: all at once */
	u32 *next;		/* per message */
	u32 sent;
};

/* One end of a message is ready; with both it is appended to order[]. */
static void rounds_start(struct playing *p, u32 number)
{
	struct coll_round_message *m = &p->r->message[number];

	if (++m->started < 2)
		return;
	m->round = p->r->rounds;
	p->r->order[p->sent++] = number;
}

static void rounds_queue(struct playing *p, u32 rank, u32 number)
{
	struct turn *turn = &p->turn[rank];

	p->next[number] = COLL_NONE;
	if (turn->first == COLL_NONE)
		turn->first = number;
	else
		p->next[turn->last] = number;
	turn->last = number;
}

/* All that a rank can do now. */
static void rounds_advance(struct playing *p, u32 rank)
{
	struct coll_rounds *r = p->r;
	u32 op;

	while ((op = coll_step_next(&p->step[rank])) != COLL_NONE) {
		const u32 number = r->message_of[rank][op];

		if (number == COLL_NONE) {
			r->happened[r->happenings++] = (struct coll_round_event){ rank, op };
			coll_step_done(&p->step[rank], op);
		} else if (p->turn && r->message[number].from == rank) {
			rounds_queue(p, rank, number);
		} else {
			rounds_start(p, number);
		}
	}
	if (p->turn && p->turn[rank].first != COLL_NONE) {
		op = p->turn[rank].first;
		p->turn[rank].first = p->next[op];
		rounds_start(p, op);
	}
}

static bool rounds_waiting(const struct playing *p)
{
	u32 i;

	for (i = 0; p->turn && i < p->r->ranks; i++)
		if (p->turn[i].first != COLL_NONE)
			return true;
	return false;
}

/* Messages of a round, as every rank has them in the same order. */
static void sort_round(const struct coll_rounds *r, struct coll_sort_item *item, u32 first, u32 end)
{
	u32 i;

	for (i = first; i < end; i++) {
		const struct coll_round_message *m = &r->message[r->order[i]];
		const u32 low = m->from < m->to ? m->from : m->to, high = m->from ^ m->to ^ low;

		item[i - first] = (struct coll_sort_item){ (u64)low << 32 | high,
							   (u64)(m->from > m->to) << 32 | m->send,
							   r->order[i] };
	}
	sort_items(item, end - first);
	for (i = first; i < end; i++)
		r->order[i] = item[i - first].value;
}

static int rounds_play(struct coll_rounds *r, struct coll_arena *arena, struct coll_step *step,
		       bool in_turn)
{
	struct coll_sort_item *item = coll_arena_get(arena, r->messages, sizeof(*item));
	struct playing p = { .r = r, .step = step };
	u32 before, ops = r->messages, i;

	for (i = 0; i < r->ranks; i++)
		ops += r->schedule[i]->ops;
	r->happened = coll_arena_get(arena, ops, sizeof(*r->happened));
	r->first = coll_arena_get(arena, 2 * (u64)r->messages + 2, sizeof(u32));
	p.next = coll_arena_get(arena, r->messages, sizeof(u32));
	p.turn = coll_arena_get(arena, r->ranks, sizeof(*p.turn));
	if (!item || !r->happened || !r->first || !p.next || !p.turn)
		return -ENOSPC;
	memset(p.turn, 0xff, r->ranks * sizeof(*p.turn));
	if (!in_turn)
		p.turn = NULL;
	for (;;) {
		before = p.sent;
		r->first[r->rounds] = before;
		for (i = 0; i < r->ranks; i++)
			rounds_advance(&p, i);
		/* Sends that started may wait for receives, and others for their turn. */
		if (p.sent == before && !rounds_waiting(&p))
			break;
		sort_round(r, item, before, p.sent);
		for (i = before; i < p.sent; i++) {
			const struct coll_round_message *m = &r->message[r->order[i]];

			r->happened[r->happenings++] =
				(struct coll_round_event){ COLL_NONE, r->order[i] };
			coll_step_done(&step[m->from], m->send);
			coll_step_done(&step[m->to], m->recv);
		}
		r->rounds++;
	}
	return p.sent == r->messages ? 0 : -EINVAL;
}

int coll_rounds_emit(const struct coll_algo *algo, const struct coll_call *call,
		     const struct coll_tuning *tuning, struct coll_arena *arena,
		     struct coll_rounds *r)
{
	int error;

	*r = (struct coll_rounds){ .ranks = call->ranks };
	error = emit_all(algo, call, tuning, arena, r);
	return error ? error : make_plans(r, arena);
}

int coll_rounds_play(struct coll_rounds *r, struct coll_arena *arena, bool in_turn)
{
	struct coll_step *step = begin_steps(r, arena);
	int error;

	r->rounds = r->messages = r->happenings = 0;
	if (!step)
		return -ENOSPC;
	error = join_all(r, arena);
	return error ? error : rounds_play(r, arena, step, in_turn);
}
