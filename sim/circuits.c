// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>

#include "circuits.h"
#include "random.h"

/* One end of a circuit, while a node holds it. */
struct circuit_port {
	sim_time free;		/* SIM_NEVER: taken */
	sim_time drained;	/* all data sent has arrived by then */
	sim_time busy;		/* the next message leaves then */
	u32 peer;
	u8 way;			/* COLL_ONE_WAY of its flags */
	bool up;
};

/* Two ranks and a direction: their sessions so far. */
struct circuit_pair {
	u64 key;		/* + 1; 0: unused */
	u32 asked[2], ended[2];	/* by either end */
	sim_time begin, end;	/* time of the last request, of the last release */
	u32 op;			/* the connect that waits */
};

struct circuit_change {
	sim_time time;
	int more;
};

struct sim_circuits_state {
	const struct sim_machine *machine;
	u32 ranks, ports;
	struct circuit_port *port;	/* 2 * ports per rank: senders (or duplex), receivers */
	struct circuit_pair *pair;
	u32 pairs, capacity;
	struct circuit_change *change;
	u64 changes, change_room;
	u64 setups, failures;
	bool failed;		/* out of memory */
};

struct sim_circuits_state *sim_circuits_new(const struct sim_machine *machine, u32 ranks)
{
	struct sim_circuits_state *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->machine = machine;
	s->ranks = ranks;
	s->ports = machine->circuits->ports;
	s->capacity = 1024;
	s->port = calloc((size_t)ranks * 2 * s->ports, sizeof(*s->port));
	s->pair = calloc(s->capacity, sizeof(*s->pair));
	if (!s->port || !s->pair) {
		sim_circuits_free(s);
		return NULL;
	}
	return s;
}

void sim_circuits_free(struct sim_circuits_state *s)
{
	if (!s)
		return;
	free(s->port);
	free(s->pair);
	free(s->change);
	free(s);
}

bool sim_circuits_failed(const struct sim_circuits_state *s)
{
	return s && s->failed;
}

/* ---- pairs ------------------------------------------------------------------ */

static u64 key_of(u32 rank, u32 peer, u8 way)
{
	const u32 low = rank < peer ? rank : peer, high = rank ^ peer ^ low;
	const u32 from = way == COLL_CIRCUIT_OUT ? rank : peer;

	return 1 + ((u64)low << 28 | high) * 3 + (way ? 1 + (from == low) : 0);
}

static struct circuit_pair *pair_at(struct circuit_pair *pair, u32 capacity, u64 key)
{
	u32 at = random_mix(key) & (capacity - 1);

	while (pair[at].key && pair[at].key != key)
		at = (at + 1) & (capacity - 1);
	return &pair[at];
}

static struct circuit_pair *pair_of(struct sim_circuits_state *s, u32 rank, u32 peer, u8 way)
{
	const u64 key = key_of(rank, peer, way);
	struct circuit_pair *pair, *more;
	u32 i;

	if (2 * s->pairs >= s->capacity) {
		more = calloc(2 * (size_t)s->capacity, sizeof(*more));
		if (!more) {
			s->failed = true;
			return NULL;
		}
		for (i = 0; i < s->capacity; i++)
			if (s->pair[i].key)
				*pair_at(more, 2 * s->capacity, s->pair[i].key) = s->pair[i];
		free(s->pair);
		s->pair = more;
		s->capacity *= 2;
	}
	pair = pair_at(s->pair, s->capacity, key);
	s->pairs += !pair->key;
	pair->key = key;
	return pair;
}

static void note_change(struct sim_circuits_state *s, sim_time time, int more)
{
	if (s->changes == s->change_room) {
		const u64 capacity = s->change_room ? 2 * s->change_room : 256;
		void *grown = realloc(s->change, capacity * sizeof(*s->change));

		if (!grown) {
			s->failed = true;
			return;
		}
		s->change = grown;
		s->change_room = capacity;
	}
	s->change[s->changes++] = (struct circuit_change){ time, more };
}

/* ---- ports -------------------------------------------------------------------- */

static struct circuit_port *ports_of(struct sim_circuits_state *s, u32 rank, u8 way)
{
	return s->port + ((size_t)rank * 2 + (way == COLL_CIRCUIT_IN)) * s->ports;
}

static u32 count_of(const struct sim_circuits_state *s, u32 rank)
{
	const u32 *each = s->machine->circuits->of_rank;

	return each ? each[rank] : s->ports;
}

static struct circuit_port *port_to(struct sim_circuits_state *s, u32 rank, u32 peer, u8 way)
{
	struct circuit_port *port = ports_of(s, rank, way);
	u32 i;

	for (i = 0; i < s->ports; i++)
		if (port[i].free == SIM_NEVER && port[i].peer == peer && port[i].way == way)
			return &port[i];
	return NULL;
}

static struct circuit_port *first_free(struct sim_circuits_state *s, u32 rank, u8 way)
{
	struct circuit_port *port = ports_of(s, rank, way), *first = port;
	u32 i;

	for (i = 1; i < count_of(s, rank); i++)
		if (port[i].free < first->free)
			first = &port[i];
	return first;
}

/* Time of set-ups until one succeeds. */
static u32 failures_of(struct sim_circuits_state *s, const struct circuit_pair *pair)
{
	const double share = s->machine->circuits->failures;
	const u64 stream = random_at(random_at(s->machine->circuit_key, pair->key), pair->asked[0]);
	u32 failures = 0;

	while (share > 0 && failures < 1000 && random_unit(random_at(stream, failures)) <= share)
		failures++;
	return failures;
}

sim_time sim_circuits_request(struct sim_circuits_state *s, u32 rank, u32 peer, u8 flags, u32 op,
			      sim_time now, u32 *peer_op)
{
	const u8 way = flags & COLL_ONE_WAY;
	const u32 side = rank > peer;
	struct circuit_port *port = first_free(s, rank, way), *theirs;
	struct circuit_pair *pair = pair_of(s, rank, peer, way);
	sim_time up_at;
	u32 failures;

	if (!pair || port->free == SIM_NEVER)
		return -1;
	if (port->free > now)
		now = port->free;
	*port = (struct circuit_port){ SIM_NEVER, now, now, peer, way, false };
	pair->asked[side]++;
	if (pair->asked[side] > pair->asked[!side]) {
		pair->begin = now;
		pair->op = op;
		return SIM_NEVER;
	}
	theirs = port_to(s, peer, rank, way ? way ^ COLL_ONE_WAY : 0);
	failures = failures_of(s, pair);
	if (now < pair->begin)
		now = pair->begin;
	up_at = now + to_time(s->machine->circuits->setup * SIM_SECOND * (1 + failures));
	s->setups++;
	s->failures += failures;
	note_change(s, now, 1);
	port->up = theirs->up = true;
	*peer_op = pair->op;
	return up_at;
}

sim_time sim_circuits_release(struct sim_circuits_state *s, u32 rank, u32 peer, u8 flags,
			      sim_time now)
{
	const u8 way = flags & COLL_ONE_WAY;
	const u32 side = rank > peer;
	struct circuit_port *port = port_to(s, rank, peer, way);
	struct circuit_pair *pair = pair_of(s, rank, peer, way);

	if (!port || !pair)
		return -1;
	port->free = port->drained > now ? port->drained : now;
	pair->ended[side]++;
	if (pair->ended[side] > pair->ended[!side])
		pair->end = port->free;
	else
		note_change(s, port->free > pair->end ? port->free : pair->end, -1);
	return port->free;
}

sim_time sim_circuits_carry(struct sim_circuits_state *s, u32 from, u32 to, u64 bytes,
			    sim_time time, sim_time way)
{
	struct circuit_port *port = port_to(s, from, to, 0);

	if (!port)
		port = port_to(s, from, to, COLL_CIRCUIT_OUT);
	if (!port || !port->up)
		return -1;
	if (time < port->busy)
		time = port->busy;
	port->busy = time + to_time(bytes * s->machine->beta);
	if (port->drained < time + way)
		port->drained = time + way;
	return time;
}

/* ---- at once -------------------------------------------------------------------- */

/* A circuit that ends frees its place for one that begins at the same time. */
static int change_order(const void *left, const void *right)
{
	const struct circuit_change *a = left, *b = right;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->more - b->more;
}

void sim_circuits_count(struct sim_circuits_state *s, struct sim_outcome *outcome)
{
	u64 most = 0, now = 0, i;

	if (s->changes)
		qsort(s->change, s->changes, sizeof(*s->change), change_order);
	for (i = 0; i < s->changes; i++) {
		now += s->change[i].more;
		most = now > most ? now : most;
	}
	outcome->setups = s->setups;
	outcome->setups_failed = s->failures;
	outcome->circuits = most;
}
