// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What a plan of circuits costs, the lower bound of any plan, and the cheapest plan. All
 * operations are timed once, in order of epochs and rounds.
 */
#include "algo/common/blocks.h"
#include "circuits.h"
#include "debruijn.h"
#include "algo/common/sort.h"

struct timing {
	const struct coll_circuits *c;
	const struct coll_machine *m;
	double **done;		/* per rank and op */
	struct busy { double from, until; } *cpu;	/* per rank: of late */
	double *up_at;		/* per session; when it is up; negative: not requested yet */
	double *freed;		/* per session: its last byte has come */
	double *busy;		/* per session and way */
	double *turn;		/* per rank: its ports of earlier epochs are free */
	struct coll_sort_item *by_last;	/* sessions as they end */
	u32 ended;
	double finish;
};

static void at_least(double *time, double other)
{
	if (*time < other)
		*time = other;
}

static double circuits_cost_waited(const struct timing *t, u32 rank, u32 index)
{
	const struct coll_schedule *s = t->c->rounds.schedule[rank];
	const struct coll_op *op = &coll_ops(s)[index];
	double time = 0;
	u32 k;

	for (k = 0; k < op->waits; k++)
		at_least(&time, t->done[rank][coll_waits(s)[op->wait + k]]);
	return time;
}

/* Sessions that ended before this epoch have freed their ports. */
static void end_sessions(struct timing *t, u32 epoch)
{
	for (; t->ended < t->c->sessions && t->by_last[t->ended].major < epoch; t->ended++) {
		const struct coll_session *s = &t->c->session[t->by_last[t->ended].value];
		const double freed = t->freed[t->by_last[t->ended].value];

		at_least(&t->turn[s->end[0]], freed);
		at_least(&t->turn[s->end[1]], freed);
	}
}

/* When the session's circuit can carry data. */
static double circuits_cost_lit(struct timing *t, u32 session)
{
	const struct coll_session *s = &t->c->session[session];
	double asked = 0;
	u32 side;

	if (t->up_at[session] >= 0)
		return t->up_at[session];
	for (side = 0; side < 2; side++) {
		if (s->before[side] != COLL_NONE)
			at_least(&asked, t->freed[s->before[side]]);
		if (t->c->ahead == COLL_AHEAD_TURNS)
			at_least(&asked, t->turn[s->end[side]]);
	}
	if (s->before_same != COLL_NONE)
		at_least(&asked, t->freed[s->before_same]);
	if (s->before_in_all != COLL_NONE)	/* and a signal's way */
		at_least(&asked, t->freed[s->before_in_all] + t->m->alpha);
	return t->up_at[session] = asked + t->m->delta;
}

/*
 * When the CPU of `rank` begins this work: it does one thing after another. Events are not
 * timed exactly in order, so an event before all recent work finds the CPU idle.
 */
static double on_cpu(struct timing *t, u32 rank, double time, double work)
{
	struct busy *cpu = &t->cpu[rank];

	if (work <= 0 || time + work <= cpu->from)
		return time;
	if (time < cpu->until)
		time = cpu->until;
	else
		cpu->from = time;
	cpu->until = time + work;
	return time;
}

static void time_message(struct timing *t, const struct coll_round_message *m)
{
	const double overhead = t->m->overhead;
	double sent = circuits_cost_waited(t, m->from, m->send), come;
	const u32 way = m->session == COLL_NONE ? 0 : m->from == t->c->session[m->session].end[0];
	double *busy = m->session == COLL_NONE ? NULL : &t->busy[2 * m->session + way];

	if (busy) {
		at_least(&sent, circuits_cost_lit(t, m->session));
		at_least(&sent, *busy);
	}
	sent = on_cpu(t, m->from, sent, overhead);
	if (busy)
		*busy = sent + m->bytes * t->m->beta;
	come = sent + t->m->alpha + m->bytes * t->m->beta;
	come = on_cpu(t, m->to, come - overhead, overhead) + overhead;
	if (busy)
		at_least(&t->freed[m->session], come);
	t->done[m->from][m->send] = sent;
	at_least(&come, circuits_cost_waited(t, m->to, m->recv));
	t->done[m->to][m->recv] = come;
	at_least(&t->finish, come);
}

static void time_local(struct timing *t, u32 rank, u32 index)
{
	const struct coll_op *op = &coll_ops(t->c->rounds.schedule[rank])[index];
	const double work = op->kind == COLL_OP_REDUCE ? op->bytes * t->m->gamma : 0;
	double *done = &t->done[rank][index];

	*done = on_cpu(t, rank, circuits_cost_waited(t, rank, index), work) + work;
	at_least(&t->finish, *done);
}

/* The events by epoch, within an epoch by round, in the order of execution. */
static struct coll_sort_item *sort_happened(const struct coll_circuits *c, struct coll_arena *arena)
{
	const struct coll_rounds *r = &c->rounds;
	struct coll_sort_item *item = coll_arena_get(arena, r->happenings, sizeof(*item));
	u32 round = 0, i;
	bool sent = false;

	for (i = 0; item && i < r->happenings; i++) {
		const bool local = r->happened[i].rank != COLL_NONE;
		const struct coll_round_message *m = local ? NULL : &r->message[r->happened[i].op];

		round += local && sent;
		sent = !local;
		if (m)
			round = m->round;
		item[i] = (struct coll_sort_item){ m ? m->epoch : c->epoch_of[round],
						   (u64)round << 33 | (u64)!local << 32 | i, i };
	}
	if (item)
		sort_items(item, r->happenings);
	return item;
}

static int circuits_cost_prepare(struct timing *t, struct coll_arena *arena)
{
	const struct coll_rounds *r = &t->c->rounds;
	const u32 sessions = t->c->sessions;
	u32 i;

	t->done = coll_arena_get(arena, r->ranks, sizeof(*t->done));
	t->cpu = coll_arena_get_zero(arena, r->ranks, sizeof(*t->cpu));
	t->turn = coll_arena_get_zero(arena, r->ranks, sizeof(double));
	t->up_at = coll_arena_get(arena, sessions, sizeof(double));
	t->freed = coll_arena_get_zero(arena, sessions, sizeof(double));
	t->busy = coll_arena_get_zero(arena, 2 * (u64)sessions, sizeof(double));
	t->by_last = coll_arena_get(arena, sessions, sizeof(*t->by_last));
	if (!t->done || !t->cpu || !t->turn || !t->up_at || !t->freed || !t->busy || !t->by_last)
		return -ENOSPC;
	for (i = 0; i < r->ranks; i++) {
		t->done[i] = coll_arena_get_zero(arena, r->schedule[i]->ops, sizeof(double));
		if (!t->done[i])
			return -ENOSPC;
	}
	for (i = 0; i < sessions; i++) {
		t->up_at[i] = -1;
		t->by_last[i] = (struct coll_sort_item){ t->c->session[i].last, i, i };
	}
	sort_items(t->by_last, sessions);
	return 0;
}

static int count_setups(const struct coll_circuits *c, struct coll_arena *arena,
			struct coll_circuits_cost *cost)
{
	u32 *of = coll_arena_get_zero(arena, c->rounds.ranks, sizeof(u32)), i;

	if (!of)
		return -ENOSPC;
	cost->setups = c->sessions;
	cost->fits = true;
	for (i = 0; i < 2 * c->sessions; i++) {
		const struct coll_session *s = &c->session[i / 2];
		const u32 rank = s->end[i % 2];

		if (s->before[i % 2] != COLL_NONE || s->before_in_all != COLL_NONE)
			cost->fits = false;
		if (c->simplex && i % 2)
			continue;
		if (++of[rank] > cost->most_setups)
			cost->most_setups = of[rank];
	}
	return 0;
}

int coll_circuits_cost(const struct coll_algo *algo, const struct coll_call *call,
		       const struct coll_tuning *tuning, const struct coll_machine *machine,
		       void *memory, u64 bytes, struct coll_circuits_cost *cost)
{
	struct coll_arena arena = { memory, bytes };
	struct coll_sort_item *item = NULL;
	struct coll_circuits c;
	struct timing t = { .c = &c, .m = machine };
	int error;
	u32 i;

	*cost = (struct coll_circuits_cost){ 0 };
	error = coll_circuits_plan(algo, call, tuning, &arena, &c);
	if (!error)
		error = circuits_cost_prepare(&t, &arena);
	if (!error)
		error = count_setups(&c, &arena, cost);
	if (!error) {
		item = sort_happened(&c, &arena);
		error = item ? 0 : -ENOSPC;
	}
	for (i = 0; i < c.rounds.happenings && !error; i++) {
		const struct coll_round_event *h = &c.rounds.happened[item[i].value];

		end_sessions(&t, item[i].major);
		if (h->rank == COLL_NONE)
			time_message(&t, &c.rounds.message[h->op]);
		else
			time_local(&t, h->rank, h->op);
	}
	cost->seconds = t.finish;
	return error;
}

/* ---- the least ----------------------------------------------------------------- */

/* Bytes that must go through the ports of one node, out or in. */
static double bytes_of_node(const struct coll_call *call)
{
	const double n = call->ranks, one = call_bytes(call);

	switch (call->collective) {
	case COLL_BCAST:
	case COLL_REDUCE:
	case COLL_SCAN:
	case COLL_EXSCAN:
		return one;
	case COLL_ALLREDUCE:
		return 2 * (n - 1) / n * one;
	case COLL_BARRIER:
		return 0;
	default:
		return (n - 1) * one;
	}
}

/*
 * All-to-all with C set-ups of a node takes at least (C delta + (n - 1) m beta (2 -
 * C / (n - 1))) / k: what goes by no circuit of its own goes twice. It is linear in C,
 * so the least is at one end, k or n - 1.
 */
static double port_time(const struct coll_call *call, double k, const struct coll_machine *m)
{
	const double n = call->ranks, bytes = call_bytes(call) * m->beta;
	const double most = n - 1, least = k < most ? k : most;
	const double few = least * m->delta + bytes * (2 * most - least);
	const double many = most * m->delta + most * bytes;

	return (few < many ? few : many) / k;
}

double coll_circuits_bound(const struct coll_call *call, const struct coll_tuning *tuning,
			   const struct coll_machine *m)
{
	u64 k = tuning->ports, reach;
	double latency = 0, bytes;
	u32 i;

	for (i = 0; call->ports && i < call->ranks; i++)
		if (!i || call->ports[i] > k)
			k = call->ports[i];
	if (call->ranks == 1)
		return 0;
	if (k >= call->ranks)
		k = call->ranks - 1;
	for (reach = 1; reach < call->ranks; reach *= k + 1)
		latency += m->alpha;
	bytes = bytes_of_node(call) * m->beta / k;
	if (call->collective == COLL_BARRIER)
		return latency;
	latency = m->delta + (latency > bytes ? latency : bytes);
	if (call->collective == COLL_ALLTOALL && latency < port_time(call, k, m))
		return port_time(call, k, m);
	return latency;
}

/* ---- the cheapest ---------------------------------------------------------------- */

static bool has_radix(const struct coll_algo *algo)
{
	const char *option = algo->options, *word = "radix";

	while (option && *word && *option == *word)
		option++, word++;
	return option && !*word;
}

static int try_one(const struct coll_algo *algo, const struct coll_call *call,
		   const struct coll_tuning *tuning, const struct coll_machine *machine,
		   void *memory, u64 bytes, struct coll_circuits_choice *choice)
{
	struct coll_circuits_cost cost;
	int error;

	if (coll_algo_refuses_plain(algo, call, tuning) ||
	    coll_circuits_refuse(algo, call, tuning))
		return 0;
	error = coll_circuits_cost(algo, call, tuning, machine, memory, bytes, &cost);
	if (error || (choice->algo && choice->cost.seconds <= cost.seconds))
		return error;
	choice->algo = algo;
	choice->tuning = *tuning;
	choice->cost = cost;
	return 0;
}

int coll_circuits_choose(const struct coll_call *call, const struct coll_tuning *tuning,
			 const struct coll_machine *machine, void *memory, u64 bytes,
			 struct coll_circuits_choice *choice)
{
	const u64 k = tuning->ports;
	const u64 radix[] = { k, k / 2, k - 1, 2, call->ranks };
	u32 same;
	const struct coll_algo *const *algo;
	int error = 0;
	u32 i;

	*choice = (struct coll_circuits_choice){ .bound = coll_circuits_bound(call, tuning, machine) };
	for (algo = coll_algos; *algo && !error; algo++) {
		struct coll_tuning one = *tuning;

		if ((*algo)->collective != call->collective || (*algo)->baseline ||
		    (*algo)->clusters || (*algo)->needs_counts)
			continue;
		if (!has_radix(*algo) || tuning->radix != COLL_UNSET) {
			error = try_one(*algo, call, &one, machine, memory, bytes, choice);
			continue;
		}
		for (i = 0; i < sizeof(radix) / sizeof(radix[0]) && !error; i++) {
			one.radix = radix[i];
			for (same = 0; radix[same] != radix[i]; same++)
				;
			if (radix[i] >= 2 && same == i)
				error = try_one(*algo, call, &one, machine, memory, bytes, choice);
		}
	}
	return error ? error : choice->algo ? 0 : -EOPNOTSUPP;
}
