/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A model in integers, ready for one run: the costs of ops and messages. Both paths use
 * these functions, so they agree.
 */
#ifndef COLL_SIM_MACHINE_H
#define COLL_SIM_MACHINE_H

#include "core/schedule.h"
#include "noise.h"

struct sim_machine {
	double alpha, beta, gamma, copy, user;	/* picoseconds (a byte) */
	double gap, nic, byte_overhead;
	sim_time send, recv, redundant;
	u64 eager;
	enum sim_message_semantics messages;
	enum sim_semantics semantics;
	struct sim_noise_sources os, link;
	const bool *bad_links;			/* per rank, or NULL: all are */
	u64 message_key;
	const double *slowness;
	const sim_time *start;
	const struct sim_network *network;
	const struct sim_nodes *nodes;
	struct sim_link inside[COLL_LEVEL_CLUSTER];	/* of nodes and domains */
	sim_time inside_work[COLL_LEVEL_CLUSTER];	/* of a message's end there */
	const struct sim_circuits *circuits;
	u64 circuit_key;
	sim_time longest;			/* of an op, a message or its NIC in this program */
};

void machine_init(struct sim_machine *machine, const struct sim_model *model, u64 seed);

/*
 * Virtual time ends after 2^61 ps, 26 days: -EOVERFLOW. An op is at most 2^58 ps long without noise,
 * so its end does not wrap, whatever begins before the end and under noise of 95 %.
 */
#define MACHINE_LAST (1ll << 61)
#define MACHINE_LONGEST (1ll << 58)

/* The most seconds of an op, a message or its NIC, without noise. Bytes of messages, and of other ops. */
double machine_longest(const struct sim_model *model, u32 ranks, u64 sent, u64 worked);

/* Picoseconds, to the nearest; what is longer than virtual time is as long. */
static inline sim_time to_time(double picoseconds)
{
	return picoseconds < MACHINE_LAST ? (sim_time)(picoseconds + 0.5) : MACHINE_LAST;
}

/* Whether it is in virtual time; a sum that has wrapped is not. */
static inline bool machine_in_time(sim_time time)
{
	return (u64)time < MACHINE_LAST;
}

/* Time of a message from send to arrival, without noise; never negative. */
static inline sim_time machine_way(const struct sim_machine *machine, u64 bytes)
{
	sim_time way = to_time(machine->alpha + bytes * machine->beta);

	return way ? way : 1;
}

/* Time of a message on this wire, whose noise has this stream. */
static inline sim_time machine_travel(const struct sim_machine *machine, u32 from, u32 to, u64 stream,
				      struct sim_wire wire)
{
	if (machine->bad_links && !machine->bad_links[from] && !machine->bad_links[to])
		return wire.length;
	return noise_travel(&machine->link, stream, wire);
}

/* What two ranks have in common: a domain, a node, or less. */
static inline enum coll_level_kind machine_level(const struct sim_machine *machine, u32 from,
						 u32 to)
{
	const struct sim_nodes *n = machine->nodes;

	if (!n || n->node[from] != n->node[to])
		return COLL_LEVEL_CLUSTER;
	return n->domain && n->domain[from] == n->domain[to] ? COLL_LEVEL_DOMAIN : COLL_LEVEL_NODE;
}

/* The link between two ranks; NULL: all are alike. */
static inline const struct sim_link *machine_link(const struct sim_machine *machine, u32 from,
						  u32 to)
{
	const struct sim_network *n = machine->network;
	const enum coll_level_kind level = machine_level(machine, from, to);

	if (level != COLL_LEVEL_CLUSTER)
		return &machine->inside[level];
	return n ? &n->link[n->area[from] * n->areas + n->area[to]] : NULL;
}

/* As machine_way(), on that link. */
static inline sim_time machine_way_on(const struct sim_machine *machine,
				      const struct sim_link *link, u64 bytes)
{
	sim_time way;

	if (!link)
		return machine_way(machine, bytes);
	way = to_time((link->alpha + bytes * link->beta) * SIM_SECOND);
	return way ? way : 1;
}

/* Whether it sends a result that its peer may have already. */
static inline bool op_is_redundant(const struct coll_op *op)
{
	return op->kind == COLL_OP_SEND &&
	       (op->flags & (COLL_OPTIONAL | COLL_WAIT_ANY)) == (COLL_OPTIONAL | COLL_WAIT_ANY);
}

/* Ops without CPU time. */
static inline bool op_is_free(const struct coll_op *op)
{
	return op->kind == COLL_OP_CONNECT || op->kind == COLL_OP_RELEASE ||
	       (op->kind == COLL_OP_COPY && !op->bytes);
}

/* CPU time of an op, without noise. */
static inline sim_time machine_work(const struct sim_machine *machine, const struct coll_op *op)
{
	switch (op->kind) {
	case COLL_OP_SEND:
		return op_is_redundant(op) ? machine->redundant : machine->send;
	case COLL_OP_RECV:
		return machine->recv;
	case COLL_OP_REDUCE:
		return to_time(op->bytes * (op->reduction == COLL_USER_REDUCTION ? machine->user :
										   machine->gamma));
	case COLL_OP_COPY:
		return to_time(op->bytes * machine->copy);
	default:
		return 0;
	}
}

/* The same of a message's end whose other end is this rank. */
static inline sim_time machine_work_with(const struct sim_machine *machine,
					 const struct coll_op *op, u32 rank, u32 peer)
{
	const enum coll_level_kind level = machine_level(machine, rank, peer);

	return level == COLL_LEVEL_CLUSTER ? machine_work(machine, op) :
					     machine->inside_work[level];
}

static inline sim_time machine_start(const struct sim_machine *machine, u32 rank)
{
	return machine->start ? machine->start[rank] : 0;
}

#endif
