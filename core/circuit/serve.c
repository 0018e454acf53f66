// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Which waiting circuit is served next, and which one gives its ports up for it. */
#include "manager.h"

/* What decides the order of service. */
struct claim {
	bool ahead;
	u32 priority;
	u64 used, ticket;
};

static bool claim_before(const struct claim *a, const struct claim *b)
{
	if (a->ahead != b->ahead)
		return b->ahead;
	if (a->priority != b->priority)
		return a->priority > b->priority;
	if (a->used != b->used)
		return a->used < b->used;
	return a->ticket < b->ticket;
}

static bool circuit_in_use(const struct coll_circuit_manager *c, const struct coll_circuit *circuit)
{
	u32 l;

	for (l = circuit->leases; l != NONE && !c->lease[l].up; l = c->lease[l].next)
		;
	return l != NONE;
}

/* The best claim of its matched requests, or false. */
static bool circuit_claim(const struct coll_circuit_manager *c, const struct coll_circuit *circuit,
			  struct claim *best)
{
	bool any = false;
	u32 l;

	for (l = circuit->leases; l != NONE; l = c->lease[l].next) {
		const struct coll_circuit_lease *lease = &c->lease[l];
		const struct claim claim = {
			.ahead = lease->flags & COLL_CIRCUIT_AHEAD,
			.priority = c->holder[lease->holder].priority,
			.used = c->holder[lease->holder].used,
			.ticket = lease->ticket,
		};

		if (!coll_circuit_lease_is_matched(c, circuit, lease) ||
		    (any && !claim_before(&claim, best)))
			continue;
		*best = claim;
		any = true;
	}
	return any;
}

/* How expendable a circuit is: the most expendable is taken down first. */
enum expendable { NEEDED, LEASE_EXPIRED, LOWER_PRIORITY, AHEAD_OF_TIME, IDLE };

static enum expendable circuit_expendable(const struct coll_circuit_manager *c,
					  const struct coll_circuit *circuit,
					  const struct claim *waiting, u64 now)
{
	const enum expendable by_age = now >= circuit->since + c->policy.lease ? LEASE_EXPIRED :
										 NEEDED;
	struct claim claim;

	if (circuit->state != COLL_CIRCUIT_UP)
		return NEEDED;
	if (!circuit_in_use(c, circuit))
		return IDLE;
	if (waiting->ahead)
		return NEEDED;
	if (!circuit_claim(c, circuit, &claim))	/* one end has left, or has never joined */
		return by_age;
	if (claim.ahead)
		return AHEAD_OF_TIME;
	if (claim.priority != waiting->priority)
		return claim.priority < waiting->priority ? LOWER_PRIORITY : NEEDED;
	return by_age;
}

static bool circuit_ends_at(const struct coll_circuit *circuit, u32 node)
{
	return node == NONE || circuit->node[0] == node || circuit->node[1] == node;
}

/*
 * Takes down the most expendable circuit of the node (NONE: of the domain), unless as many
 * as are `needed` are draining already.
 */
static void circuit_make_room(struct coll_circuit_manager *c, u32 node, u32 needed,
			      const struct claim *waiting, u64 now)
{
	enum expendable best = NEEDED, worth;
	u32 i, victim = NONE, draining = 0;

	for (i = 0; i < c->made; i++) {
		struct coll_circuit *circuit = &c->circuit[i];

		if (!coll_circuit_has_ports(circuit) || !circuit_ends_at(circuit, node))
			continue;
		draining += circuit->state == COLL_CIRCUIT_DRAINING;
		worth = circuit_expendable(c, circuit, waiting, now);
		if (worth > best || (worth != NEEDED && worth == best &&
				     circuit->since < c->circuit[victim].since)) {
			best = worth;
			victim = i;
		}
	}
	if (draining < needed && victim != NONE)
		coll_circuit_begin_drain(c, &c->circuit[victim], now,
					 best == IDLE ? 0 : c->policy.grace);
}

static void circuit_begin(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now)
{
	coll_circuit_take_ports(c, circuit);
	circuit->error = 0;
	coll_circuit_set_state(c, circuit, now, COLL_CIRCUIT_REQUESTED, now + c->policy.timeout);
	coll_circuit_give_order(c, circuit, COLL_CIRCUIT_ORDER_UP);
}

/*
 * All ports of one end are for better claims, and the other end has none that could be reserved:
 * to examine it changes nothing. So a node with many peers and few ports examines few of them.
 */
static bool circuit_waits_in_vain(const struct coll_circuit_manager *c,
				  const struct coll_circuit *circuit)
{
	const struct coll_circuit_node *one = &c->node[circuit->node[0]];
	const struct coll_circuit_node *other = &c->node[circuit->node[1]];

	return (one->spoken_for && other->unbounded) || (other->spoken_for && one->unbounded);
}

/* The waiting circuit with the best claim that this pass has not examined yet. */
static struct coll_circuit *circuit_next_waiting(struct coll_circuit_manager *c,
						 struct claim *claim)
{
	struct coll_circuit *best = NULL;
	u32 i;

	for (i = 0; i < c->made; i++) {
		struct coll_circuit *circuit = &c->circuit[i];
		struct claim mine;

		if (circuit->state != COLL_CIRCUIT_DOWN || circuit->passed ||
		    circuit_waits_in_vain(c, circuit) || !circuit_claim(c, circuit, &mine) ||
		    (best && !claim_before(&mine, claim)))
			continue;
		best = circuit;
		*claim = mine;
	}
	return best;
}

void coll_circuit_serve(struct coll_circuit_manager *c, u64 now)
{
	u32 i, end, reserved = 0;
	struct coll_circuit *circuit;
	struct claim claim;

	coll_circuit_charge(c, now);
	c->served = now;
	for (i = 0; i < c->nodes; i++) {
		c->node[i].reserved = 0;
		c->node[i].spoken_for = !coll_circuit_has_unreserved(&c->node[i]);
	}
	for (i = 0; i < c->made; i++)
		c->circuit[i].passed = false;
	while ((circuit = circuit_next_waiting(c, &claim))) {
		bool room = !c->policy.limit || c->with_ports + reserved < c->policy.limit;
		const bool in_limit = room;

		circuit->passed = true;
		for (end = 0; end < 2; end++) {
			const struct coll_circuit_node *node = &c->node[circuit->node[end]];

			if (!node->unbounded && !node->ports)
				break;		/* it waits for ports, and reserves none */
			room &= coll_circuit_free_ports(node) > node->reserved;
		}
		if (end < 2)
			continue;
		if (room) {
			circuit_begin(c, circuit, now);
			continue;
		}
		reserved++;
		if (!in_limit)
			circuit_make_room(c, NONE, reserved, &claim, now);
		for (end = 0; end < 2; end++) {
			struct coll_circuit_node *node = &c->node[circuit->node[end]];

			node->reserved++;
			node->spoken_for = !coll_circuit_has_unreserved(node);
			if (coll_circuit_free_ports(node) < node->reserved)
				circuit_make_room(c, circuit->node[end], node->reserved, &claim,
						  now);
		}
	}
}
