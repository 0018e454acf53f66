// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Leases: requests of holders, their notifications, and the port time that they use. */
#include "manager.h"

/* Off the circuit; the lease exists until its holder has been notified. */
void coll_circuit_detach_lease(struct coll_circuit_manager *c, u32 number)
{
	struct coll_circuit_lease *lease = &c->lease[number];
	u32 *slot = &c->circuit[lease->circuit].leases;

	coll_assert(c->holder[lease->holder].requests);
	while (*slot != number)
		slot = &c->lease[*slot].next;
	*slot = lease->next;
	lease->circuit = NONE;
	c->holder[lease->holder].requests--;
}

void coll_circuit_free_lease(struct coll_circuit_manager *c, u32 number)
{
	coll_assert(c->lease[number].used);
	c->lease[number] = (struct coll_circuit_lease){ .next = c->free_lease };
	c->free_lease = number;
}

void coll_circuit_end_lease(struct coll_circuit_manager *c, u32 number, int error)
{
	struct coll_circuit_lease *lease = &c->lease[number];

	coll_assert(lease->used && lease->circuit != NONE);
	lease->was = lease->circuit;
	coll_circuit_detach_lease(c, number);
	lease->up = false;
	lease->notify = COLL_CIRCUIT_NOTIFY_ENDED;
	lease->error = error;
	c->notifications = true;
}

u32 coll_circuit_other_end(const struct coll_circuit_manager *c, const struct coll_circuit *circuit,
			   const struct coll_circuit_lease *lease, u32 flags)
{
	u32 l;

	for (l = circuit->leases; l != NONE; l = c->lease[l].next)
		if (c->lease[l].holder == lease->holder && c->lease[l].side != lease->side &&
		    c->lease[l].session == lease->session && (c->lease[l].flags & flags) == flags)
			break;
	return l;
}

bool coll_circuit_lease_is_matched(const struct coll_circuit_manager *c,
				   const struct coll_circuit *circuit,
				   const struct coll_circuit_lease *lease)
{
	return lease->flags & COLL_CIRCUIT_ONE_SIDED ||
	       coll_circuit_other_end(c, circuit, lease, 0) != NONE;
}

/* ---- notifications -------------------------------------------------------- */

void coll_circuit_notify(struct coll_circuit_manager *c, struct coll_circuit *circuit, u8 notify,
			 bool up)
{
	u32 l;

	for (l = circuit->leases; l != NONE; l = c->lease[l].next) {
		struct coll_circuit_lease *lease = &c->lease[l];

		if (!lease->up)
			continue;
		lease->up = up;
		lease->notify = notify;
		c->notifications = true;
	}
}

/*
 * From now on each of the leases counts by itself: the other end may release first, with its
 * last bytes still on their way.
 */
void coll_circuit_notify_up(struct coll_circuit_manager *c, struct coll_circuit *circuit)
{
	u32 l;

	for (l = circuit->leases; l != NONE; l = c->lease[l].next) {
		struct coll_circuit_lease *lease = &c->lease[l];

		if (lease->up || !coll_circuit_lease_is_matched(c, circuit, lease))
			continue;
		lease->up = c->notifications = true;
		lease->notify = COLL_CIRCUIT_NOTIFY_UP;
		if (!(lease->flags & COLL_CIRCUIT_AHEAD))
			lease->flags |= COLL_CIRCUIT_ONE_SIDED;
	}
}

static u64 circuit_guaranteed(const struct coll_circuit_manager *c,
			      const struct coll_circuit *circuit, u64 now)
{
	const u64 end = circuit->state == COLL_CIRCUIT_UP ? circuit->since + c->policy.lease :
							     circuit->until;

	return end > now ? end - now : 0;
}

bool coll_circuit_next_notification(struct coll_circuit_manager *c, u64 now,
				    struct coll_circuit_notification *n)
{
	u32 i;

	if (!c->notifications)
		return false;
	for (i = 0; i < c->leased; i++) {
		struct coll_circuit_lease *lease = &c->lease[i];

		if (!lease->used || !lease->notify)
			continue;
		*n = (struct coll_circuit_notification){
			.lease = i, .holder = lease->holder,
			.circuit = lease->circuit == NONE ? lease->was : lease->circuit,
			.kind = lease->notify, .error = lease->error, .cookie = lease->cookie,
		};
		if (lease->circuit != NONE)
			n->time = circuit_guaranteed(c, &c->circuit[lease->circuit], now);
		lease->notify = COLL_CIRCUIT_NOTIFY_NONE;
		if (n->kind == COLL_CIRCUIT_NOTIFY_ENDED)
			coll_circuit_free_lease(c, i);
		return true;
	}
	c->notifications = false;
	return false;
}

/* ---- port time ------------------------------------------------------------ */

/* Each holder is charged in full for the circuits that it has leased and that are up. */
void coll_circuit_charge(struct coll_circuit_manager *c, u64 now)
{
	u32 i, l;

	for (i = 0; i < c->made; i++) {
		struct coll_circuit *circuit = &c->circuit[i];

		if (circuit->state == COLL_CIRCUIT_UP)
			for (l = circuit->leases; l != NONE; l = c->lease[l].next)
				if (c->lease[l].up)
					c->holder[c->lease[l].holder].used +=
						now - circuit->charged;
		circuit->charged = now;
	}
}

/* A holder that has been idle has no claim from that time: it starts at the least used. */
void coll_circuit_catch_up(struct coll_circuit_manager *c, u32 holder)
{
	u64 least = COLL_CIRCUIT_FOREVER;
	u32 i;

	for (i = 0; i < c->holders; i++)
		if (c->holder[i].requests && c->holder[i].used < least)
			least = c->holder[i].used;
	if (least != COLL_CIRCUIT_FOREVER && c->holder[holder].used < least)
		c->holder[holder].used = least;
}
