// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "manager.h"

#define MS 1000000ull

const struct coll_circuit_policy coll_circuit_policy_default = {
	.lease = 2000 * MS, .grace = 20 * MS, .keep = 1000 * MS, .timeout = 2000 * MS,
	.retry = 50 * MS, .retries = 4,
};

const char *const coll_circuit_state_names[COLL_CIRCUIT_STATES] = {
	"down", "requested", "switching", "up", "draining", "failed",
};

/* ---- tables --------------------------------------------------------------- */

void coll_circuit_manager_init(struct coll_circuit_manager *c)
{
	u32 i;

	for (i = 0; i < COLL_CIRCUIT_BUCKETS; i++)
		c->bucket[i] = NONE;
	for (i = 0; i < c->leases; i++)
		c->lease[i].next = i + 1 < c->leases ? i + 1 : NONE;
	c->free_lease = c->leases ? 0 : NONE;
}

static u32 circuit_bucket(u32 low, u32 high)
{
	return (low * 0x9e3779b1u + high * 0x85ebca6bu) >> 24;
}

u32 coll_circuit_find(const struct coll_circuit_manager *c, u32 node, u32 peer)
{
	const u32 low = node < peer ? node : peer, high = node < peer ? peer : node;
	u32 i;

	for (i = c->bucket[circuit_bucket(low, high)]; i != NONE; i = c->circuit[i].next)
		if (c->circuit[i].node[0] == low && c->circuit[i].node[1] == high)
			return i;
	return NONE;
}

/* A circuit that is unused and down gives its entry up. */
static u32 circuit_recycle(struct coll_circuit_manager *c)
{
	u32 i, *slot;

	for (i = 0; i < c->made; i++)
		if (c->circuit[i].state == COLL_CIRCUIT_DOWN && c->circuit[i].leases == NONE)
			break;
	if (i == c->made)
		return NONE;
	slot = &c->bucket[circuit_bucket(c->circuit[i].node[0], c->circuit[i].node[1])];
	while (*slot != i)
		slot = &c->circuit[*slot].next;
	*slot = c->circuit[i].next;
	return i;
}

static u32 circuit_find_or_make(struct coll_circuit_manager *c, u32 node, u32 peer)
{
	u32 i = coll_circuit_find(c, node, peer), *bucket, serial = 0;
	struct coll_circuit *circuit;

	if (i != NONE)
		return i;
	if (c->made < c->circuits) {
		i = c->made++;
	} else {
		i = circuit_recycle(c);
		if (i == NONE)
			return NONE;
		serial = c->circuit[i].serial;	/* late answers are still late */
	}
	circuit = &c->circuit[i];
	*circuit = (struct coll_circuit){ .used = true, .leases = NONE, .serial = serial,
					  .until = COLL_CIRCUIT_FOREVER };
	circuit->node[0] = node < peer ? node : peer;
	circuit->node[1] = node < peer ? peer : node;
	circuit->port[0] = circuit->port[1] = COLL_CIRCUIT_NO_PORT;
	bucket = &c->bucket[circuit_bucket(circuit->node[0], circuit->node[1])];
	circuit->next = *bucket;
	*bucket = i;
	return i;
}

/* ---- nodes and holders ---------------------------------------------------- */

void coll_circuit_set_ports(struct coll_circuit_manager *c, u64 now, u32 node, u64 ports)
{
	u32 i, end;

	c->node[node].ports = ports;
	for (i = 0; i < c->made; i++) {
		struct coll_circuit *circuit = &c->circuit[i];

		for (end = 0; end < 2; end++)
			if (circuit->node[end] == node && coll_circuit_has_ports(circuit) &&
			    circuit->state != COLL_CIRCUIT_DRAINING &&
			    circuit->port[end] < COLL_CIRCUIT_PORTS_MAX &&
			    !(ports >> circuit->port[end] & 1))
				coll_circuit_begin_drain(c, circuit, now, c->policy.grace);
	}
	coll_circuit_serve(c, now);
}

u32 coll_circuit_add_holder(struct coll_circuit_manager *c, u32 priority)
{
	u32 i;

	for (i = 0; i < c->holders && c->holder[i].known; i++)
		;
	if (i == c->holders)
		return NONE;
	c->holder[i] = (struct coll_circuit_holder){ .known = true, .priority = priority };
	return i;
}

static void circuit_drop_lease(struct coll_circuit_manager *c, u64 now, u32 lease)
{
	const u32 circuit = c->lease[lease].circuit;

	if (circuit != NONE) {
		coll_circuit_charge(c, now);
		coll_circuit_detach_lease(c, lease);
		coll_circuit_unused(c, &c->circuit[circuit], now);
	}
	coll_circuit_free_lease(c, lease);
}

void coll_circuit_remove_holder(struct coll_circuit_manager *c, u64 now, u32 holder)
{
	u32 i;

	for (i = 0; i < c->leased; i++)
		if (c->lease[i].used && c->lease[i].holder == holder)
			circuit_drop_lease(c, now, i);
	c->holder[holder].known = false;
	coll_circuit_serve(c, now);
}

/* ---- requests ------------------------------------------------------------- */

/* A new lease at the head of the circuit's list. There is a free one. */
static u32 circuit_add_lease(struct coll_circuit_manager *c, u32 number, u64 now,
			     struct coll_circuit_lease contents)
{
	struct coll_circuit *circuit = &c->circuit[number];
	const u32 i = c->free_lease;

	coll_assert(i != NONE && !c->lease[i].used);
	c->free_lease = c->lease[i].next;
	if (c->leased <= i)
		c->leased = i + 1;
	contents.used = true;
	contents.circuit = number;
	contents.next = circuit->leases;
	contents.ticket = c->ticket++;
	c->lease[i] = contents;
	if (circuit->state == COLL_CIRCUIT_UP) {
		if (circuit->leases == NONE)
			circuit->since = now;	/* a lease begins */
		circuit->until = COLL_CIRCUIT_FOREVER;
	}
	circuit->leases = i;
	return i;
}

int coll_circuit_request(struct coll_circuit_manager *c, u64 now, u32 holder, u32 node, u32 peer,
			 u32 flags, u64 session, u64 deadline, u64 cookie, u32 *number)
{
	struct coll_circuit *circuit;
	u32 i, other = NONE;

	if (node >= c->nodes || peer >= c->nodes || node == peer || holder >= c->holders ||
	    !c->holder[holder].known)
		return -EINVAL;
	if (c->free_lease == NONE)
		return -ENOSPC;
	i = circuit_find_or_make(c, node, peer);
	if (i == NONE)
		return -ENOSPC;
	circuit = &c->circuit[i];
	coll_circuit_charge(c, now);
	if (!c->holder[holder].requests++)
		coll_circuit_catch_up(c, holder);
	*number = circuit_add_lease(c, i, now, (struct coll_circuit_lease){
		.side = node != circuit->node[0], .flags = flags, .holder = holder,
		.deadline = deadline, .session = session, .cookie = cookie });
	if (flags & COLL_CIRCUIT_COMPLETED)
		other = coll_circuit_other_end(c, circuit, &c->lease[*number],
					       COLL_CIRCUIT_COMPLETED);
	if (other != NONE) {	/* both ends have completed it */
		coll_circuit_end_lease(c, *number, -EALREADY);
		coll_circuit_end_lease(c, other, -EALREADY);
		coll_circuit_unused(c, circuit, now);
	}
	if (circuit->state == COLL_CIRCUIT_UP)
		coll_circuit_notify_up(c, circuit);
	circuit->changed = c->changes = true;
	coll_circuit_serve(c, now);
	return 0;
}

void coll_circuit_release(struct coll_circuit_manager *c, u64 now, u32 lease)
{
	circuit_drop_lease(c, now, lease);
	coll_circuit_serve(c, now);
}

/* ---- the switch ----------------------------------------------------------- */

bool coll_circuit_next_order(struct coll_circuit_manager *c, u64 now,
			     struct coll_circuit_order *order)
{
	struct coll_circuit *circuit;
	u32 i, found = NONE;

	if (!c->orders)
		return false;
	for (i = 0; i < c->made; i++) {
		if (c->circuit[i].order == COLL_CIRCUIT_NO_ORDER)
			continue;
		if (c->circuit[i].order == COLL_CIRCUIT_ORDER_DOWN || found == NONE)
			found = i;
		if (c->circuit[i].order == COLL_CIRCUIT_ORDER_DOWN)
			break;
	}
	if (found == NONE) {
		c->orders = false;
		return false;
	}
	circuit = &c->circuit[found];
	*order = (struct coll_circuit_order){
		.kind = circuit->order, .circuit = found, .serial = circuit->serial,
		.node = { circuit->node[0], circuit->node[1] },
		.port = { circuit->port[0], circuit->port[1] },
	};
	circuit->order = COLL_CIRCUIT_NO_ORDER;
	circuit->until = now + c->policy.timeout;	/* counts from here */
	return true;
}

static struct coll_circuit *circuit_answered(struct coll_circuit_manager *c, u32 circuit,
					     u32 serial)
{
	return circuit < c->made && c->circuit[circuit].serial == serial &&
			       c->circuit[circuit].order == COLL_CIRCUIT_NO_ORDER ?
		       &c->circuit[circuit] : NULL;
}

void coll_circuit_order_begun(struct coll_circuit_manager *c, u64 now, u32 number, u32 serial)
{
	struct coll_circuit *circuit = circuit_answered(c, number, serial);

	if (circuit && circuit->state == COLL_CIRCUIT_REQUESTED)
		coll_circuit_set_state(c, circuit, now, COLL_CIRCUIT_SWITCHING,
				       now + c->policy.timeout);
}

void coll_circuit_order_done(struct coll_circuit_manager *c, u64 now, u32 number, u32 serial,
			     int error)
{
	struct coll_circuit *circuit = circuit_answered(c, number, serial);

	if (!circuit)
		return;
	if (circuit->state == COLL_CIRCUIT_REQUESTED || circuit->state == COLL_CIRCUIT_SWITCHING) {
		if (error)
			coll_circuit_fail(c, circuit, now, error);
		else
			coll_circuit_came_up(c, circuit, now);
	} else if (circuit->state == COLL_CIRCUIT_DRAINING && circuit->down_ordered) {
		if (error)		/* its ports are of no use: again, and again */
			circuit->until = now + coll_circuit_pause(c, PAUSE_DOUBLED);
		else
			coll_circuit_went_down(c, circuit, now);
	}
	coll_circuit_serve(c, now);
}

void coll_circuit_lost(struct coll_circuit_manager *c, u64 now, u32 number)
{
	struct coll_circuit *circuit = &c->circuit[number];

	if (number >= c->made ||
	    (circuit->state != COLL_CIRCUIT_UP &&
	     !(circuit->state == COLL_CIRCUIT_DRAINING && !circuit->down_ordered)))
		return;
	c->lost++;
	coll_circuit_fail(c, circuit, now, -ENOLINK);
	coll_circuit_serve(c, now);
}

int coll_circuit_adopt(struct coll_circuit_manager *c, u64 now, u32 node, u8 port, u32 peer,
		       u8 peer_port)
{
	const u32 number = node < c->nodes && peer < c->nodes && node != peer ?
				   circuit_find_or_make(c, node, peer) : NONE;
	struct coll_circuit *circuit = number == NONE ? NULL : &c->circuit[number];
	u32 end;

	if (!circuit || circuit->state != COLL_CIRCUIT_DOWN ||
	    (c->policy.limit && c->with_ports >= c->policy.limit))
		return -EBUSY;
	for (end = 0; end < 2; end++) {
		const struct coll_circuit_node *n = &c->node[circuit->node[end]];
		const u8 p = circuit->node[end] == node ? port : peer_port;

		if (!n->unbounded && (p >= COLL_CIRCUIT_PORTS_MAX ||
				      !((n->ports & ~n->taken) >> p & 1)))
			return -EBUSY;
	}
	for (end = 0; end < 2; end++) {
		struct coll_circuit_node *n = &c->node[circuit->node[end]];
		const u8 p = circuit->node[end] == node ? port : peer_port;

		if (!n->unbounded)
			n->taken |= 1ull << p;
		circuit->port[end] = n->unbounded ? COLL_CIRCUIT_NO_PORT : p;
	}
	c->with_ports++;
	coll_circuit_came_up(c, circuit, now);
	c->setups--;		/* not ours */
	return 0;
}

void coll_circuit_drain(struct coll_circuit_manager *c, u64 now, u32 number)
{
	struct coll_circuit *circuit = &c->circuit[number];

	if (number < c->made && coll_circuit_has_ports(circuit) &&
	    circuit->state != COLL_CIRCUIT_DRAINING)
		coll_circuit_begin_drain(c, circuit, now, c->policy.grace);
	coll_circuit_serve(c, now);
}

/* ---- time ----------------------------------------------------------------- */

static u64 circuit_earlier(u64 a, u64 b)
{
	return a < b ? a : b;
}

u64 coll_circuit_next_tick(const struct coll_circuit_manager *c)
{
	u64 next = COLL_CIRCUIT_FOREVER;
	bool waiting = false;
	u32 i;

	for (i = 0; i < c->leased; i++)
		if (c->lease[i].used && c->lease[i].circuit != NONE && !c->lease[i].up) {
			next = circuit_earlier(next, c->lease[i].deadline);
			waiting = true;
		}
	for (i = 0; i < c->made; i++) {
		const struct coll_circuit *circuit = &c->circuit[i];

		next = circuit_earlier(next, circuit->until);
		/* A holder may have to release it then. */
		if (waiting && circuit->state == COLL_CIRCUIT_UP && circuit->leases != NONE &&
		    circuit->since + c->policy.lease > c->served)
			next = circuit_earlier(next, circuit->since + c->policy.lease);
	}
	return next;
}

static void circuit_time_out(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now)
{
	switch (circuit->state) {
	case COLL_CIRCUIT_REQUESTED:
	case COLL_CIRCUIT_SWITCHING:
		coll_circuit_fail(c, circuit, now, -ETIMEDOUT);
		break;
	case COLL_CIRCUIT_UP:
		coll_circuit_begin_drain(c, circuit, now, 0);
		break;
	case COLL_CIRCUIT_DRAINING:
		coll_circuit_order_down(c, circuit, now);
		break;
	case COLL_CIRCUIT_FAILED:
		coll_circuit_set_state(c, circuit, now, COLL_CIRCUIT_DOWN, COLL_CIRCUIT_FOREVER);
		break;
	}
}

void coll_circuit_tick(struct coll_circuit_manager *c, u64 now)
{
	u32 i;

	for (i = 0; i < c->made; i++)
		if (now >= c->circuit[i].until)
			circuit_time_out(c, &c->circuit[i], now);
	for (i = 0; i < c->leased; i++) {
		const u32 number = c->lease[i].circuit;

		if (!c->lease[i].used || number == NONE || c->lease[i].up ||
		    now < c->lease[i].deadline)
			continue;
		coll_circuit_end_lease(
			c, i, c->circuit[number].error ? c->circuit[number].error : -ETIMEDOUT);
		coll_circuit_unused(c, &c->circuit[number], now);
	}
	coll_circuit_serve(c, now);
}

/* ---- looking -------------------------------------------------------------- */

bool coll_circuit_next_change(struct coll_circuit_manager *c, u32 *number)
{
	u32 i;

	if (!c->changes)
		return false;
	for (i = 0; i < c->made; i++)
		if (c->circuit[i].changed) {
			c->circuit[i].changed = false;
			*number = i;
			return true;
		}
	c->changes = false;
	return false;
}
