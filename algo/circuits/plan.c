// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Epochs, sessions and ports (circuits.h). The owner of ports is called a *place*: in duplex a
 * node, in simplex a node's senders or a node's receivers.
 */
#include "circuits.h"
#include "algo/common/sort.h"

struct planning {
	struct coll_circuits *c;
	struct coll_arena *arena;
	u32 places;
	const u32 *ports;	/* per place */
	u32 wavelengths;	/* COLL_NONE: enough */
	u32 *load;		/* per place: sessions of the current epoch */
	u32 load_in_all;
	u32 epoch;
	bool begun;		/* there is a current epoch */
	u32 capacity;		/* of session[] */
	u32 *table;		/* hash of two ranks -> their last session + 1 */
	u32 table_mask;
	/* the round at hand */
	struct edge {
		u32 end[2];
		u32 session;	/* its last one, or COLL_NONE */
		u32 epoch;
		u32 colour;	/* of a round that is split; COLL_NONE: kept up */
	} *edge;
	u32 edges;
	bool split;		/* some round was */
	/* its colours: per colour and place whether an edge has it; edges of each */
	u32 *coloured, *of_colour, *first_free;
};

static u32 place_of(const struct coll_circuits *c, const u32 *end, u32 side)
{
	return c->simplex && side ? c->rounds.ranks + end[1] : end[side];
}

/* ---- the table of sessions ------------------------------------------------- */

static u32 *table_find(struct planning *p, const u32 *end)
{
	u32 at = (end[0] * 2654435761u ^ end[1] * 2246822519u) & p->table_mask;

	for (; p->table[at]; at = (at + 1) & p->table_mask) {
		const struct coll_session *s = &p->c->session[p->table[at] - 1];

		if (s->end[0] == end[0] && s->end[1] == end[1])
			break;
	}
	return &p->table[at];
}

static int session_new(struct planning *p, const u32 *end, u32 epoch, u32 *session)
{
	struct coll_circuits *c = p->c;

	if (c->sessions == p->capacity)
		return -ENOSPC;
	c->session[c->sessions] = (struct coll_session){
		.end = { end[0], end[1] }, .first = epoch, .last = epoch,
		.before = { COLL_NONE, COLL_NONE }, .before_in_all = COLL_NONE,
		.before_same = COLL_NONE,
	};
	*session = c->sessions++;
	*table_find(p, end) = c->sessions;
	return 0;
}

/* ---- a round's edges --------------------------------------------------------- */

/* Messages of a round follow each other by their ranks, so those of one edge do. */
static void find_edges(struct planning *p, u32 round)
{
	const struct coll_rounds *r = &p->c->rounds;
	u32 i;

	p->edges = 0;
	for (i = r->first[round]; i < r->first[round + 1]; i++) {
		struct coll_round_message *m = &r->message[r->order[i]];
		const bool turned = !p->c->simplex && m->from > m->to;
		const u32 end[2] = { turned ? m->to : m->from, turned ? m->from : m->to };
		struct edge *last = p->edges ? &p->edge[p->edges - 1] : NULL;
		const u32 *known;

		if (!m->bytes)
			continue;
		if (!last || last->end[0] != end[0] || last->end[1] != end[1]) {
			known = table_find(p, end);
			last = &p->edge[p->edges++];
			*last = (struct edge){ { end[0], end[1] }, *known - 1, 0, 0 };
		}
		m->session = p->edges - 1;	/* the edge, for now */
	}
}

/* An edge whose circuit is up in the current epoch. */
static bool is_up(const struct planning *p, const struct edge *edge)
{
	return p->begun && edge->session != COLL_NONE &&
	       p->c->session[edge->session].last == p->epoch;
}

static bool circuits_plan_fits(const struct planning *p, const struct edge *edge, const u32 *load,
			       u32 in_all)
{
	const u32 a = place_of(p->c, edge->end, 0), b = place_of(p->c, edge->end, 1);

	return load[a] < p->ports[a] && load[b] < p->ports[b] && in_all < p->wavelengths;
}

static void circuits_plan_take(const struct planning *p, const struct edge *edge, u32 *load,
			       u32 *in_all, u32 more)
{
	load[place_of(p->c, edge->end, 0)] += more;
	load[place_of(p->c, edge->end, 1)] += more;
	*in_all += more;
}

/* The whole round in the current epoch, besides what is up; or nothing of it. */
static bool join_epoch(struct planning *p)
{
	u32 i, k;

	if (!p->begun || p->c->ahead == COLL_AHEAD_NOT)
		return false;
	for (i = 0; i < p->edges; i++) {
		if (is_up(p, &p->edge[i]))
			continue;
		if (!circuits_plan_fits(p, &p->edge[i], p->load, p->load_in_all))
			break;
		circuits_plan_take(p, &p->edge[i], p->load, &p->load_in_all, 1);
	}
	for (k = 0; i < p->edges && k < i; k++)
		if (!is_up(p, &p->edge[k]))
			circuits_plan_take(p, &p->edge[k], p->load, &p->load_in_all, -1);
	for (k = 0; i == p->edges && k < i; k++)
		p->edge[k].epoch = p->epoch;
	return i == p->edges;
}

/* First fit: the first colour that neither end has. A colour has at most W edges. */
static int colour_edge(struct planning *p, struct edge *edge, u32 *colours)
{
	const u32 place[2] = { place_of(p->c, edge->end, 0), place_of(p->c, edge->end, 1) };
	u32 at = p->first_free[place[0]], side;

	if (at < p->first_free[place[1]])
		at = p->first_free[place[1]];
	for (;; at++) {
		const u32 *row = p->coloured + (u64)at * p->places;

		if (at == *colours) {	/* the arena at the end is free: coloured[] grows */
			if (!coll_arena_get_zero(p->arena, p->places + 2, sizeof(u32)))
				return -ENOSPC;
			p->of_colour[(*colours)++] = 0;
		}
		if (!row[place[0]] && !row[place[1]] && p->of_colour[at] < p->wavelengths)
			break;
	}
	edge->colour = at;
	p->of_colour[at]++;
	for (side = 0; side < 2; side++) {
		u32 *first = &p->first_free[place[side]];

		p->coloured[(u64)at * p->places + place[side]] = 1;
		while (*first < *colours && p->coloured[(u64)*first * p->places + place[side]])
			++*first;
	}
	return 0;
}

static int colour_round(struct planning *p, u32 *colours)
{
	int error = 0;
	u32 i;

	*colours = 0;
	p->of_colour = coll_arena_get(p->arena, p->edges + 1, sizeof(u32));
	p->first_free = coll_arena_get_zero(p->arena, p->places, sizeof(u32));
	p->coloured = (u32 *)p->arena->at;
	if (!p->of_colour || !p->first_free)
		return -ENOSPC;
	for (i = 0; i < p->edges && !error; i++)
		if (p->edge[i].colour != COLL_NONE)
			error = colour_edge(p, &p->edge[i], colours);
	return error;
}

static void next_epoch(struct planning *p)
{
	p->epoch = p->begun ? p->epoch + 1 : 0;
	p->begun = true;
	memset(p->load, 0, p->places * sizeof(u32));
	p->load_in_all = 0;
}

/* All edges of a colour into the current epoch, or nothing of them. */
static bool pack_colour(struct planning *p, u32 colour)
{
	u32 i;

	for (i = 0; i < p->edges; i++)
		if (p->edge[i].colour == colour && !circuits_plan_fits(p, &p->edge[i], p->load, 0))
			return false;
	if (p->load_in_all + p->of_colour[colour] > p->wavelengths)
		return false;
	for (i = 0; i < p->edges; i++)
		if (p->edge[i].colour == colour) {
			circuits_plan_take(p, &p->edge[i], p->load, &p->load_in_all, 1);
			p->edge[i].epoch = p->epoch;
		}
	return true;
}

/*
 * The round in epochs of its own: first, with what is up already, as many colours as
 * fit, and so on.
 */
static int split_round(struct planning *p)
{
	const struct coll_arena before = *p->arena;
	u32 colours, i;
	int error;

	for (i = 0; i < p->edges; i++) {
		struct edge *edge = &p->edge[i];

		edge->colour = p->c->ahead == COLL_AHEAD_PORTS && is_up(p, edge) ? COLL_NONE : 0;
		if (!edge->colour)
			edge->session = COLL_NONE;
	}
	next_epoch(p);
	for (i = 0; i < p->edges; i++)
		if (p->edge[i].colour == COLL_NONE) {
			circuits_plan_take(p, &p->edge[i], p->load, &p->load_in_all, 1);
			p->edge[i].epoch = p->epoch;
		}
	error = colour_round(p, &colours);
	for (i = 0; i < colours && !error; i++)
		if (!pack_colour(p, i)) {
			next_epoch(p);
			pack_colour(p, i);
			p->split = true;
		}
	*p->arena = before;
	return error;
}

static int name_sessions(struct planning *p, u32 round)
{
	const struct coll_rounds *r = &p->c->rounds;
	int error = 0;
	u32 i;

	for (i = 0; i < p->edges && !error; i++) {
		struct edge *edge = &p->edge[i];
		struct coll_session *s = edge->session == COLL_NONE ? NULL :
								 &p->c->session[edge->session];

		/* Kept from the epoch before, or up: the session grows. */
		if (s && s->last + 1 >= edge->epoch && p->c->ahead != COLL_AHEAD_NOT)
			s->last = edge->epoch;
		else
			error = session_new(p, edge->end, edge->epoch, &edge->session);
	}
	for (i = r->first[round]; i < r->first[round + 1]; i++) {
		struct coll_round_message *m = &r->message[r->order[i]];

		m->epoch = p->c->epoch_of[round];
		if (!m->bytes)
			continue;
		m->epoch = p->edge[m->session].epoch;
		m->session = p->edge[m->session].session;
	}
	return error;
}

static int plan_round(struct planning *p, u32 round)
{
	int error = 0;

	find_edges(p, round);
	p->c->epoch_of[round] = p->epoch;
	if (p->edges && !join_epoch(p)) {
		p->c->epoch_of[round] = p->begun ? p->epoch + 1 : 0;
		error = split_round(p);
	}
	return error ? error : name_sessions(p, round);
}

/* ---- ports --------------------------------------------------------------------- */

/* Sessions in order of their first epochs. */
static int sort_sessions(struct planning *p)
{
	struct coll_circuits *c = p->c;
	const struct coll_arena before = *p->arena;
	struct coll_sort_item *item = coll_arena_get(p->arena, c->sessions, sizeof(*item));
	struct coll_session *sorted = coll_arena_get(p->arena, c->sessions, sizeof(*sorted));
	u32 *place = coll_arena_get(p->arena, c->sessions, sizeof(u32)), i;

	if (!item || !sorted || !place)
		return -ENOSPC;
	for (i = 0; i < c->sessions; i++)
		item[i] = (struct coll_sort_item){ c->session[i].first, i, i };
	sort_items(item, c->sessions);
	for (i = 0; i < c->sessions; i++) {
		sorted[i] = c->session[item[i].value];
		place[item[i].value] = i;
	}
	memcpy(c->session, sorted, c->sessions * sizeof(*sorted));
	for (i = 0; i < c->rounds.messages; i++)
		if (c->rounds.message[i].session != COLL_NONE)
			c->rounds.message[i].session = place[c->rounds.message[i].session];
	*p->arena = before;
	return 0;
}

/* Takes the port of `count` that is free first; returns the session that had it. */
static u32 take_port(const struct coll_circuits *c, u32 *port, u32 count, u32 session)
{
	u32 best = 0, i, before;

	for (i = 0; i < count; i++) {
		if (port[i] == COLL_NONE) {
			best = i;
			break;
		}
		if (c->session[port[i]].last < c->session[port[best]].last)
			best = i;
	}
	before = port[best];
	port[best] = session;
	return before;
}

static int take_ports(struct planning *p)
{
	struct coll_circuits *c = p->c;
	const struct coll_arena before = *p->arena;
	u32 *first = coll_arena_get(p->arena, p->places + 1, sizeof(u32)), *port, *wave, waves, i,
	    side;

	if (!first)
		return -ENOSPC;
	first[0] = 0;
	for (i = 0; i < p->places; i++)
		first[i + 1] = first[i] + p->ports[i];
	waves = p->wavelengths < c->sessions ? p->wavelengths : 0;
	port = coll_arena_get(p->arena, first[p->places], sizeof(u32));
	wave = coll_arena_get(p->arena, waves, sizeof(u32));
	if (!port || !wave)
		return -ENOSPC;
	memset(p->table, 0, ((u64)p->table_mask + 1) * sizeof(u32));
	memset(port, 0xff, first[p->places] * sizeof(u32));
	memset(wave, 0xff, waves * sizeof(u32));
	for (i = 0; i < c->sessions; i++) {
		struct coll_session *s = &c->session[i];
		u32 *same = table_find(p, s->end);

		s->before_same = *same - 1;	/* 0: COLL_NONE */
		*same = i + 1;
		for (side = 0; side < 2; side++) {
			const u32 place = place_of(c, s->end, side);

			s->before[side] = take_port(c, port + first[place], p->ports[place], i);
		}
		if (waves)
			s->before_in_all = take_port(c, wave, waves, i);
	}
	*p->arena = before;
	return 0;
}

/* ---- all of it --------------------------------------------------------------------- */

static int circuits_plan_prepare(struct planning *p, const struct coll_call *call,
				 const struct coll_tuning *tuning)
{
	struct coll_circuits *c = p->c;
	const u32 n = call->ranks;
	u32 *ports, i;

	p->places = c->simplex ? 2 * n : n;
	p->wavelengths = tuning->wavelengths < COLL_NONE ? tuning->wavelengths : COLL_NONE;
	ports = coll_arena_get(p->arena, p->places, sizeof(u32));
	p->load = coll_arena_get_zero(p->arena, p->places, sizeof(u32));
	p->capacity = c->rounds.messages;
	p->edge = coll_arena_get(p->arena, c->rounds.messages, sizeof(*p->edge));
	c->session = coll_arena_get(p->arena, p->capacity, sizeof(*c->session));
	c->epoch_of = coll_arena_get_zero(p->arena, c->rounds.rounds + 1, sizeof(u32));
	for (p->table_mask = 1; p->table_mask < 2 * c->rounds.messages; p->table_mask *= 2)
		;
	p->table = coll_arena_get_zero(p->arena, p->table_mask--, sizeof(u32));
	if (!ports || !p->load || !p->edge || !c->session || !c->epoch_of || !p->table)
		return -ENOSPC;
	for (i = 0; i < p->places; i++) {
		u64 k = call->ports ? call->ports[i % n] : tuning->ports;

		if (c->ahead == COLL_AHEAD_NOT)
			k = 1;
		ports[i] = k < n ? k : n;	/* more is of no use */
	}
	p->ports = ports;
	return 0;
}

static int circuits_plan_plan(const struct coll_call *call, const struct coll_tuning *tuning,
			      struct coll_arena *arena, bool in_turn, struct coll_circuits *c,
			      bool *split)
{
	struct planning p = { .c = c, .arena = arena };
	int error;
	u32 i;

	error = coll_rounds_play(&c->rounds, arena, in_turn);
	if (!error)
		error = circuits_plan_prepare(&p, call, tuning);
	for (i = 0; i < c->rounds.rounds && !error; i++)
		error = plan_round(&p, i);
	if (error)
		return error;
	*split = p.split;
	c->epochs = p.epoch + 1;
	c->epoch_of[c->rounds.rounds] = p.epoch;
	error = sort_sessions(&p);
	return error ? error : take_ports(&p);
}

/*
 * Two plans are tried, and the one with fewer epochs is taken: all ready messages coloured at
 * once, which is good where all ranks send to all; and each rank sending one message after
 * another in its own order, which is good for trees.
 */
int coll_circuits_plan(const struct coll_algo *algo, const struct coll_call *call,
		       const struct coll_tuning *tuning, struct coll_arena *arena,
		       struct coll_circuits *c)
{
	struct coll_circuits in_turn;
	bool split = false;
	int error;

	*c = (struct coll_circuits){
		.ahead = tuning->ahead == COLL_UNSET ? COLL_AHEAD_PORTS : tuning->ahead,
		.simplex = tuning->simplex == 1,
	};
	error = coll_rounds_emit(algo, call, tuning, arena, &c->rounds);
	in_turn = *c;
	if (!error)
		error = circuits_plan_plan(call, tuning, arena, false, c, &split);
	if (error || !split)
		return error;
	error = circuits_plan_plan(call, tuning, arena, true, &in_turn, &split);
	if (!error && in_turn.epochs < c->epochs)
		*c = in_turn;
	return error;
}

const char *coll_circuits_refuse(const struct coll_algo *algo, const struct coll_call *call,
				 const struct coll_tuning *tuning)
{
	const char *option = algo->options;
	u32 i;

	if (tuning->ports == COLL_UNSET && !call->ports)
		return NULL;
	for (i = 0; call->ports && i < call->ranks; i++)
		if (!call->ports[i])
			return "a node without a port for circuits";
	if (tuning->ports == 0)
		return "`ports` must be at least 1";
	if (tuning->wavelengths == 0)
		return "`wavelengths` must be at least 1";
	if (tuning->ahead != COLL_UNSET && tuning->ahead >= COLL_AHEADS)
		return "`ahead` must be 0, 1 or 2";
	if (call->collective == COLL_GATHERV || call->collective == COLL_SCATTERV ||
	    call->collective == COLL_ALLTOALLV)
		return "circuits are planned from all ranks' counts, which not all ranks know";
	if (algo->levels)
		return "circuits join nodes: they are planned for flat algorithms";
	if (option && (option[0] == 'T' || option[0] == 'l'))	/* T, late */
		return "circuits are not planned for messages that nobody may wait for";
	return NULL;
}
