// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The states of a circuit, and what each change entails. */
#include "manager.h"

/* By state: those that it may change to. FAILED and DRAINING as circuit.h draws them. */
static const u8 allowed[COLL_CIRCUIT_STATES] = {
	[COLL_CIRCUIT_DOWN] = 1 << COLL_CIRCUIT_REQUESTED |
			      1 << COLL_CIRCUIT_UP,	/* adopted */
	[COLL_CIRCUIT_REQUESTED] = 1 << COLL_CIRCUIT_SWITCHING | 1 << COLL_CIRCUIT_UP |
				   1 << COLL_CIRCUIT_DRAINING |
				   1 << COLL_CIRCUIT_DOWN,	/* before the switch knew */
	[COLL_CIRCUIT_SWITCHING] = 1 << COLL_CIRCUIT_UP | 1 << COLL_CIRCUIT_DRAINING,
	[COLL_CIRCUIT_UP] = 1 << COLL_CIRCUIT_DRAINING,
	[COLL_CIRCUIT_DRAINING] = 1 << COLL_CIRCUIT_DRAINING |	/* lost meanwhile */
				  1 << COLL_CIRCUIT_DOWN | 1 << COLL_CIRCUIT_FAILED,
	[COLL_CIRCUIT_FAILED] = 1 << COLL_CIRCUIT_DOWN,
};

void coll_circuit_set_state(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now,
			    u8 state, u64 until)
{
	coll_assert(allowed[circuit->state] & 1 << state);
	circuit->state = state;
	circuit->since = circuit->charged = now;
	circuit->until = until;
	circuit->changed = c->changes = true;
}

void coll_circuit_give_order(struct coll_circuit_manager *c, struct coll_circuit *circuit, u8 what)
{
	circuit->order = what;
	circuit->serial++;
	c->orders = true;
}

void coll_circuit_order_down(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now)
{
	circuit->down_ordered = true;
	coll_circuit_notify(c, circuit, COLL_CIRCUIT_NOTIFY_DOWN, false);
	coll_circuit_give_order(c, circuit, COLL_CIRCUIT_ORDER_DOWN);
	circuit->until = now + c->policy.timeout;
}

void coll_circuit_begin_drain(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now,
			      u64 grace)
{
	if (circuit->state == COLL_CIRCUIT_REQUESTED && circuit->order == COLL_CIRCUIT_ORDER_UP) {
		/* The switch does not know of it yet. */
		circuit->order = COLL_CIRCUIT_NO_ORDER;
		circuit->serial++;
		coll_circuit_give_ports(c, circuit);
		coll_circuit_set_state(c, circuit, now, COLL_CIRCUIT_DOWN, COLL_CIRCUIT_FOREVER);
		return;
	}
	if (circuit->state != COLL_CIRCUIT_UP || circuit->leases == NONE)
		grace = 0;
	else if (!circuit->error)
		c->revoked++;
	coll_circuit_charge(c, now);		/* what was used until now */
	coll_circuit_set_state(c, circuit, now, COLL_CIRCUIT_DRAINING, now + grace);
	circuit->down_ordered = false;
	if (grace)
		coll_circuit_notify(c, circuit, COLL_CIRCUIT_NOTIFY_DRAINING, true);
	else
		coll_circuit_order_down(c, circuit, now);
}

/* The switch may still set it up late: only a confirmed order down frees the ports. */
void coll_circuit_fail(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now,
		       int error)
{
	circuit->error = error;
	coll_circuit_suspect_ports(c, circuit, true);
	c->failures++;
	coll_circuit_begin_drain(c, circuit, now, 0);
}

u64 coll_circuit_pause(const struct coll_circuit_manager *c, u32 attempts)
{
	return c->policy.retry << (attempts < PAUSE_DOUBLED ? attempts : PAUSE_DOUBLED);
}

/* Its requests queue again, behind those that have waited meanwhile. */
void coll_circuit_went_down(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now)
{
	const int error = circuit->error;
	u32 l;

	coll_circuit_give_ports(c, circuit);
	circuit->down_ordered = false;
	circuit->error = 0;
	for (l = circuit->leases; l != NONE; l = c->lease[l].next)
		c->lease[l].ticket = c->ticket++;
	if (!error) {
		coll_circuit_set_state(c, circuit, now, COLL_CIRCUIT_DOWN, COLL_CIRCUIT_FOREVER);
		return;
	}
	coll_circuit_set_state(c, circuit, now, COLL_CIRCUIT_FAILED,
			       now + coll_circuit_pause(c, circuit->attempts));
	if (circuit->attempts++ < c->policy.retries)
		return;
	circuit->attempts = 0;
	while (circuit->leases != NONE)
		coll_circuit_end_lease(c, circuit->leases, error);
}

void coll_circuit_unused(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now)
{
	if (circuit->leases != NONE)
		return;
	if (circuit->state == COLL_CIRCUIT_UP) {
		circuit->since = now;
		circuit->until = now + c->policy.keep;
		if (!c->policy.keep)
			coll_circuit_begin_drain(c, circuit, now, 0);
	} else if (circuit->state == COLL_CIRCUIT_DRAINING && !circuit->down_ordered) {
		coll_circuit_order_down(c, circuit, now);
	} else if (circuit->state == COLL_CIRCUIT_REQUESTED &&
		   circuit->order == COLL_CIRCUIT_ORDER_UP) {
		coll_circuit_begin_drain(c, circuit, now, 0);
	}
}

void coll_circuit_came_up(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now)
{
	circuit->attempts = 0;
	coll_circuit_suspect_ports(c, circuit, false);
	c->setups++;
	coll_circuit_set_state(c, circuit, now, COLL_CIRCUIT_UP, COLL_CIRCUIT_FOREVER);
	coll_circuit_notify_up(c, circuit);
	coll_circuit_unused(c, circuit, now);
}
