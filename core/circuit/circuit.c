// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "circuit.h"

#define MS 1000000ull
#define NONE COLL_CIRCUIT_NONE
enum { RETRY_DOUBLED = 6 };	/* times, at most */

const struct coll_circuit_policy coll_circuit_policy_default = {
	.lease = 2000 * MS, .grace = 20 * MS, .keep = 1000 * MS, .timeout = 2000 * MS,
	.retry = 50 * MS, .retries = 4,
};

const char *const coll_circuit_state_names[COLL_CIRCUIT_STATES] = {
	"down", "requested", "switching", "up", "draining", "failed",
};

/* ---- tables -------------------------------------------------------------- */

void coll_circuit_manager_init(struct coll_circuit_manager *c)
{
	u32 i;

	for (i = 0; i < COLL_CIRCUIT_BUCKETS; i++)
		c->bucket[i] = NONE;
	for (i = 0; i < c->leases; i++)
		c->lease[i].next = i + 1 < c->leases ? i + 1 : NONE;
	c->free_lease = c->leases ? 0 : NONE;
}

static u32 bucket_of(u32 low, u32 high)
{
	return (low * 0x9e3779b1u + high * 0x85ebca6bu) >> 24;
}

u32 coll_circuit_find(const struct coll_circuit_manager *c, u32 node, u32 peer)
{
	const u32 low = node < peer ? node : peer, high = node < peer ? peer : node;
	u32 i;

	for (i = c->bucket[bucket_of(low, high)]; i != NONE; i = c->circuit[i].next)
		if (c->circuit[i].node[0] == low && c->circuit[i].node[1] == high)
			return i;
	return NONE;
}

/* One that nobody wants and that is dark: its place is taken. */
static u32 circuit_recycle(struct coll_circuit_manager *c)
{
	u32 i, *slot;

	for (i = 0; i < c->made; i++)
		if (c->circuit[i].state == COLL_CIRCUIT_DOWN && c->circuit[i].leases == NONE)
			break;
	if (i == c->made)
		return NONE;
	slot = &c->bucket[bucket_of(c->circuit[i].node[0], c->circuit[i].node[1])];
	while (*slot != i)
		slot = &c->circuit[*slot].next;
	*slot = c->circuit[i].next;
	return i;
}

static u32 find_or_make(struct coll_circuit_manager *c, u32 node, u32 peer)
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
	bucket = &c->bucket[bucket_of(circuit->node[0], circuit->node[1])];
	circuit->next = *bucket;
	*bucket = i;
	return i;
}

static bool has_ports(const struct coll_circuit *circuit)
{
	return circuit->state == COLL_CIRCUIT_REQUESTED ||
	       circuit->state == COLL_CIRCUIT_SWITCHING || circuit->state == COLL_CIRCUIT_UP ||
	       circuit->state == COLL_CIRCUIT_DRAINING;
}

/* ---- ports --------------------------------------------------------------- */

static u32 count_bits(u64 bits)
{
	u32 count = 0;

	for (; bits; bits &= bits - 1)
		count++;
	return count;
}

static u32 free_ports(const struct coll_circuit_node *node)
{
	return node->unbounded ? NONE : count_bits(node->ports & ~node->taken);
}

static u8 take_port(struct coll_circuit_node *node)
{
	u64 free = node->ports & ~node->taken;
	u8 port = 0;

	if (node->unbounded)
		return COLL_CIRCUIT_NO_PORT;
	if (free & ~node->suspect)
		free &= ~node->suspect;
	while (!(free >> port & 1))
		port++;
	node->taken |= 1ull << port;
	return port;
}

static void give_ports(struct coll_circuit_manager *c, struct coll_circuit *circuit)
{
	u32 end;

	for (end = 0; end < 2; end++) {
		if (circuit->port[end] < COLL_CIRCUIT_PORTS_MAX)
			c->node[circuit->node[end]].taken &= ~(1ull << circuit->port[end]);
		circuit->port[end] = COLL_CIRCUIT_NO_PORT;
	}
	c->with_ports--;
}

/* Which of the two ends has failed nobody knows. */
static void suspect_ports(struct coll_circuit_manager *c, const struct coll_circuit *circuit,
			  bool failed)
{
	u32 end;

	for (end = 0; end < 2; end++) {
		struct coll_circuit_node *node = &c->node[circuit->node[end]];
		const u64 bit = circuit->port[end] < COLL_CIRCUIT_PORTS_MAX ?
				1ull << circuit->port[end] : 0;

		node->suspect = failed ? node->suspect | bit : node->suspect & ~bit;
	}
}

/* ---- port time ----------------------------------------------------------- */

/* Each holder pays for the circuits that it wants and has, in full. */
static void circuit_charge(struct coll_circuit_manager *c, u64 now)
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

/* Who comes, or comes back, has no claim from the time when it wanted nothing. */
static void catch_up(struct coll_circuit_manager *c, u32 holder)
{
	u64 least = COLL_CIRCUIT_FOREVER;
	u32 i;

	for (i = 0; i < c->holders; i++)
		if (c->holder[i].requests && c->holder[i].used < least)
			least = c->holder[i].used;
	if (least != COLL_CIRCUIT_FOREVER && c->holder[holder].used < least)
		c->holder[holder].used = least;
}

/* ---- states -------------------------------------------------------------- */

static void set_state(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now,
		      u8 state, u64 until)
{
	circuit->state = state;
	circuit->since = circuit->charged = now;
	circuit->until = until;
	circuit->changed = c->changes = true;
}

static void give_order(struct coll_circuit_manager *c, struct coll_circuit *circuit, u8 what)
{
	circuit->order = what;
	circuit->serial++;
	c->orders = true;
}

static void circuit_tell(struct coll_circuit_manager *c, struct coll_circuit *circuit, u8 notify,
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

/* Off the circuit, but there until its holder has been told. */
static void circuit_detach(struct coll_circuit_manager *c, u32 number)
{
	struct coll_circuit_lease *lease = &c->lease[number];
	u32 *slot = &c->circuit[lease->circuit].leases;

	while (*slot != number)
		slot = &c->lease[*slot].next;
	*slot = lease->next;
	lease->circuit = NONE;
	c->holder[lease->holder].requests--;
}

static void free_lease(struct coll_circuit_manager *c, u32 number)
{
	c->lease[number] = (struct coll_circuit_lease){ .next = c->free_lease };
	c->free_lease = number;
}

static void give_up(struct coll_circuit_manager *c, u32 number, int error)
{
	struct coll_circuit_lease *lease = &c->lease[number];

	lease->was = lease->circuit;
	circuit_detach(c, number);
	lease->up = false;
	lease->notify = COLL_CIRCUIT_NOTIFY_ENDED;
	lease->error = error;
	c->notifications = true;
}

static void order_down(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now)
{
	circuit->down_ordered = true;
	circuit_tell(c, circuit, COLL_CIRCUIT_NOTIFY_DOWN, false);
	give_order(c, circuit, COLL_CIRCUIT_ORDER_DOWN);
	circuit->until = now + c->policy.timeout;
}

/* To be dark: at once, or after a notice to those who use it. */
static void circuit_drain(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now,
			  u64 grace)
{
	if (circuit->state == COLL_CIRCUIT_REQUESTED && circuit->order == COLL_CIRCUIT_ORDER_UP) {
		/* The switch does not know of it yet. */
		circuit->order = COLL_CIRCUIT_NO_ORDER;
		circuit->serial++;
		give_ports(c, circuit);
		set_state(c, circuit, now, COLL_CIRCUIT_DOWN, COLL_CIRCUIT_FOREVER);
		return;
	}
	if (circuit->state != COLL_CIRCUIT_UP || circuit->leases == NONE)
		grace = 0;
	else if (!circuit->error)
		c->revoked++;
	circuit_charge(c, now);		/* what was used until now */
	set_state(c, circuit, now, COLL_CIRCUIT_DRAINING, now + grace);
	circuit->down_ordered = false;
	if (grace)
		circuit_tell(c, circuit, COLL_CIRCUIT_NOTIFY_DRAINING, true);
	else
		order_down(c, circuit, now);
}

/* The switch could not, or it has lost it. It may do so yet: only "down" makes sure. */
static void circuit_fail(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now,
			 int error)
{
	circuit->error = error;
	suspect_ports(c, circuit, true);
	c->failures++;
	circuit_drain(c, circuit, now, 0);
}

static u64 circuit_pause(const struct coll_circuit_manager *c, u32 attempts)
{
	return c->policy.retry << (attempts < RETRY_DOUBLED ? attempts : RETRY_DOUBLED);
}

/* Confirmed: it is dark. Its wants queue again, behind those that waited meanwhile. */
static void is_dark(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now)
{
	const int error = circuit->error;
	u32 l;

	give_ports(c, circuit);
	circuit->down_ordered = false;
	circuit->error = 0;
	for (l = circuit->leases; l != NONE; l = c->lease[l].next)
		c->lease[l].ticket = c->ticket++;
	if (!error) {
		set_state(c, circuit, now, COLL_CIRCUIT_DOWN, COLL_CIRCUIT_FOREVER);
		return;
	}
	set_state(c, circuit, now, COLL_CIRCUIT_FAILED, now + circuit_pause(c, circuit->attempts));
	if (circuit->attempts++ < c->policy.retries)
		return;
	circuit->attempts = 0;
	while (circuit->leases != NONE)
		give_up(c, circuit->leases, error);
}

/* ---- who is served ------------------------------------------------------- */

struct claim {
	bool ahead;
	u32 priority;
	u64 used, ticket;
};

static bool comes_before(const struct claim *a, const struct claim *b)
{
	if (a->ahead != b->ahead)
		return b->ahead;
	if (a->priority != b->priority)
		return a->priority > b->priority;
	if (a->used != b->used)
		return a->used < b->used;
	return a->ticket < b->ticket;
}

/* The other end's want for the same use, with all of these flags, or NONE. */
static u32 other_end(const struct coll_circuit_manager *c, const struct coll_circuit *circuit,
		     const struct coll_circuit_lease *want, u32 flags)
{
	u32 l;

	for (l = circuit->leases; l != NONE; l = c->lease[l].next)
		if (c->lease[l].holder == want->holder && c->lease[l].side != want->side &&
		    c->lease[l].session == want->session && (c->lease[l].flags & flags) == flags)
			break;
	return l;
}

/* Whether this want counts: the other end must want it too. */
static bool is_matched(const struct coll_circuit_manager *c, const struct coll_circuit *circuit,
		       const struct coll_circuit_lease *want)
{
	return want->flags & COLL_CIRCUIT_ONE_SIDED || other_end(c, circuit, want, 0) != NONE;
}

/*
 * There is light, for those that wait for it and whose other end has come. From now on each
 * counts by itself: the other end may release first, with its last bytes still on their way.
 */
static void tell_lit(struct coll_circuit_manager *c, struct coll_circuit *circuit)
{
	u32 l;

	for (l = circuit->leases; l != NONE; l = c->lease[l].next) {
		struct coll_circuit_lease *lease = &c->lease[l];

		if (lease->up || !is_matched(c, circuit, lease))
			continue;
		lease->up = c->notifications = true;
		lease->notify = COLL_CIRCUIT_NOTIFY_UP;
		if (!(lease->flags & COLL_CIRCUIT_AHEAD))
			lease->flags |= COLL_CIRCUIT_ONE_SIDED;
	}
}

static bool is_used(const struct coll_circuit_manager *c, const struct coll_circuit *circuit)
{
	u32 l;

	for (l = circuit->leases; l != NONE && !c->lease[l].up; l = c->lease[l].next)
		;
	return l != NONE;
}

/* The best of its wants that count, or false. */
static bool claim_of(const struct coll_circuit_manager *c, const struct coll_circuit *circuit,
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

		if (is_matched(c, circuit, lease) && (!any || comes_before(&claim, best))) {
			*best = claim;
			any = true;
		}
	}
	return any;
}

/* Who has to go first; higher: sooner. 0: not now. */
static u32 circuit_expendable(const struct coll_circuit_manager *c,
			      const struct coll_circuit *circuit, const struct claim *for_whom,
			      u64 now)
{
	struct claim claim;

	if (circuit->state != COLL_CIRCUIT_UP)
		return 0;
	if (!is_used(c, circuit))
		return 4;
	if (for_whom->ahead)
		return 0;
	if (!claim_of(c, circuit, &claim))	/* one end has gone, or never came */
		return now >= circuit->since + c->policy.lease ? 1 : 0;
	if (claim.ahead)
		return 3;
	if (claim.priority != for_whom->priority)
		return claim.priority < for_whom->priority ? 2 : 0;
	return now >= circuit->since + c->policy.lease ? 1 : 0;
}

static bool ends_at(const struct coll_circuit *circuit, u32 node)
{
	return node == NONE || circuit->node[0] == node || circuit->node[1] == node;
}

/*
 * Room for one circuit more at that node (NONE: in the domain), where `needed` are
 * waited for and so many are on their way already.
 */
static void make_room(struct coll_circuit_manager *c, u32 node, u32 needed,
		      const struct claim *for_whom, u64 now)
{
	u32 i, best = 0, victim = NONE, leaving = 0;

	for (i = 0; i < c->made; i++) {
		struct coll_circuit *circuit = &c->circuit[i];
		u32 worth;

		if (!has_ports(circuit) || !ends_at(circuit, node))
			continue;
		leaving += circuit->state == COLL_CIRCUIT_DRAINING;
		worth = circuit_expendable(c, circuit, for_whom, now);
		if (worth > best || (worth && worth == best &&
				     circuit->since < c->circuit[victim].since)) {
			best = worth;
			victim = i;
		}
	}
	if (leaving < needed && victim != NONE)
		circuit_drain(c, &c->circuit[victim], now, best == 4 ? 0 : c->policy.grace);
}

static void circuit_begin(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now)
{
	u32 end;

	for (end = 0; end < 2; end++)
		circuit->port[end] = take_port(&c->node[circuit->node[end]]);
	c->with_ports++;
	circuit->error = 0;
	set_state(c, circuit, now, COLL_CIRCUIT_REQUESTED, now + c->policy.timeout);
	give_order(c, circuit, COLL_CIRCUIT_ORDER_UP);
}

/* The best that waits and was not passed yet. */
static struct coll_circuit *next_waiting(struct coll_circuit_manager *c, struct claim *claim)
{
	struct coll_circuit *best = NULL;
	u32 i;

	for (i = 0; i < c->made; i++) {
		struct coll_circuit *circuit = &c->circuit[i];
		struct claim mine;

		if (circuit->state != COLL_CIRCUIT_DOWN || circuit->passed ||
		    !claim_of(c, circuit, &mine) || (best && !comes_before(&mine, claim)))
			continue;
		best = circuit;
		*claim = mine;
	}
	return best;
}

static void circuit_serve(struct coll_circuit_manager *c, u64 now)
{
	u32 i, end, reserved = 0;
	struct coll_circuit *circuit;
	struct claim claim;

	circuit_charge(c, now);
	c->served = now;
	for (i = 0; i < c->nodes; i++)
		c->node[i].reserved = 0;
	for (i = 0; i < c->made; i++)
		c->circuit[i].passed = false;
	while ((circuit = next_waiting(c, &claim))) {
		bool room = !c->policy.limit || c->with_ports + reserved < c->policy.limit;
		const bool in_limit = room;

		circuit->passed = true;
		for (end = 0; end < 2; end++) {
			const struct coll_circuit_node *node = &c->node[circuit->node[end]];

			if (!node->unbounded && !node->ports)
				break;		/* it waits for ports to come, in nobody's way */
			room &= free_ports(node) > node->reserved;
		}
		if (end < 2)
			continue;
		if (room) {
			circuit_begin(c, circuit, now);
			continue;
		}
		reserved++;
		if (!in_limit)
			make_room(c, NONE, reserved, &claim, now);
		for (end = 0; end < 2; end++) {
			struct coll_circuit_node *node = &c->node[circuit->node[end]];

			node->reserved++;
			if (free_ports(node) < node->reserved)
				make_room(c, circuit->node[end], node->reserved, &claim, now);
		}
	}
}

/* ---- nodes and holders --------------------------------------------------- */

void coll_circuit_set_ports(struct coll_circuit_manager *c, u64 now, u32 node, u64 ports)
{
	u32 i, end;

	c->node[node].ports = ports;
	for (i = 0; i < c->made; i++) {
		struct coll_circuit *circuit = &c->circuit[i];

		for (end = 0; end < 2; end++)
			if (circuit->node[end] == node && has_ports(circuit) &&
			    circuit->state != COLL_CIRCUIT_DRAINING &&
			    circuit->port[end] < COLL_CIRCUIT_PORTS_MAX &&
			    !(ports >> circuit->port[end] & 1))
				circuit_drain(c, circuit, now, c->policy.grace);
	}
	circuit_serve(c, now);
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

static void circuit_unwanted(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now)
{
	if (circuit->leases != NONE)
		return;
	if (circuit->state == COLL_CIRCUIT_UP) {
		circuit->since = now;
		circuit->until = now + c->policy.keep;
		if (!c->policy.keep)
			circuit_drain(c, circuit, now, 0);
	} else if (circuit->state == COLL_CIRCUIT_DRAINING && !circuit->down_ordered) {
		order_down(c, circuit, now);
	} else if (circuit->state == COLL_CIRCUIT_REQUESTED &&
		   circuit->order == COLL_CIRCUIT_ORDER_UP) {
		circuit_drain(c, circuit, now, 0);
	}
}

static void circuit_drop(struct coll_circuit_manager *c, u64 now, u32 lease)
{
	const u32 circuit = c->lease[lease].circuit;

	if (circuit != NONE) {
		circuit_charge(c, now);
		circuit_detach(c, lease);
		circuit_unwanted(c, &c->circuit[circuit], now);
	}
	free_lease(c, lease);
}

void coll_circuit_remove_holder(struct coll_circuit_manager *c, u64 now, u32 holder)
{
	u32 i;

	for (i = 0; i < c->leased; i++)
		if (c->lease[i].used && c->lease[i].holder == holder)
			circuit_drop(c, now, i);
	c->holder[holder].known = false;
	circuit_serve(c, now);
}

/* ---- wants --------------------------------------------------------------- */

int coll_circuit_request(struct coll_circuit_manager *c, u64 now, u32 holder, u32 node, u32 peer,
			 u32 flags, u64 session, u64 deadline, u64 cookie, u32 *number)
{
	struct coll_circuit_lease *lease;
	struct coll_circuit *circuit;
	u32 i, other;

	if (node >= c->nodes || peer >= c->nodes || node == peer || holder >= c->holders ||
	    !c->holder[holder].known)
		return -EINVAL;
	if (c->free_lease == NONE)
		return -ENOSPC;
	i = find_or_make(c, node, peer);
	if (i == NONE)
		return -ENOSPC;
	circuit_charge(c, now);
	if (!c->holder[holder].requests++)
		catch_up(c, holder);
	*number = c->free_lease;
	lease = &c->lease[*number];
	c->free_lease = lease->next;
	if (c->leased <= *number)
		c->leased = *number + 1;
	circuit = &c->circuit[i];
	*lease = (struct coll_circuit_lease){
		.used = true, .side = node != circuit->node[0], .flags = flags, .circuit = i,
		.holder = holder, .next = circuit->leases, .deadline = deadline,
		.session = session, .ticket = c->ticket++, .cookie = cookie,
	};
	if (circuit->state == COLL_CIRCUIT_UP) {
		if (circuit->leases == NONE)
			circuit->since = now;	/* a lease begins */
		circuit->until = COLL_CIRCUIT_FOREVER;
	}
	circuit->leases = *number;
	other = flags & COLL_CIRCUIT_COMPLETED
			? other_end(c, circuit, lease, COLL_CIRCUIT_COMPLETED)
			: NONE;
	if (other != NONE) {	/* both have had it */
		give_up(c, *number, -EALREADY);
		give_up(c, other, -EALREADY);
		circuit_unwanted(c, circuit, now);
	}
	if (circuit->state == COLL_CIRCUIT_UP)
		tell_lit(c, circuit);
	circuit->changed = c->changes = true;
	circuit_serve(c, now);
	return 0;
}

void coll_circuit_release(struct coll_circuit_manager *c, u64 now, u32 lease)
{
	circuit_drop(c, now, lease);
	circuit_serve(c, now);
}

static u64 circuit_guaranteed(const struct coll_circuit_manager *c,
			      const struct coll_circuit *circuit, u64 now)
{
	const u64 end = circuit->state == COLL_CIRCUIT_UP ? circuit->since + c->policy.lease :
							     circuit->until;

	return end > now ? end - now : 0;
}

bool coll_circuit_next_notification(struct coll_circuit_manager *c, u64 now,
				    struct coll_circuit_notification *told)
{
	u32 i;

	if (!c->notifications)
		return false;
	for (i = 0; i < c->leased; i++) {
		struct coll_circuit_lease *lease = &c->lease[i];

		if (!lease->used || !lease->notify)
			continue;
		*told = (struct coll_circuit_notification){
			.lease = i, .holder = lease->holder,
			.circuit = lease->circuit == NONE ? lease->was : lease->circuit,
			.kind = lease->notify, .error = lease->error, .cookie = lease->cookie,
		};
		if (lease->circuit != NONE)
			told->time = circuit_guaranteed(c, &c->circuit[lease->circuit], now);
		lease->notify = COLL_CIRCUIT_NOTIFY_NONE;
		if (told->kind == COLL_CIRCUIT_NOTIFY_ENDED)
			free_lease(c, i);
		return true;
	}
	c->notifications = false;
	return false;
}

/* ---- the switch ---------------------------------------------------------- */

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
		set_state(c, circuit, now, COLL_CIRCUIT_SWITCHING, now + c->policy.timeout);
}

static void is_lit(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now)
{
	circuit->attempts = 0;
	suspect_ports(c, circuit, false);
	c->setups++;
	set_state(c, circuit, now, COLL_CIRCUIT_UP, COLL_CIRCUIT_FOREVER);
	tell_lit(c, circuit);
	circuit_unwanted(c, circuit, now);
}

void coll_circuit_order_done(struct coll_circuit_manager *c, u64 now, u32 number, u32 serial,
			     int error)
{
	struct coll_circuit *circuit = circuit_answered(c, number, serial);

	if (!circuit)
		return;
	if (circuit->state == COLL_CIRCUIT_REQUESTED || circuit->state == COLL_CIRCUIT_SWITCHING) {
		if (error)
			circuit_fail(c, circuit, now, error);
		else
			is_lit(c, circuit, now);
	} else if (circuit->state == COLL_CIRCUIT_DRAINING && circuit->down_ordered) {
		if (error)		/* its ports are of no use: again, and again */
			circuit->until = now + circuit_pause(c, RETRY_DOUBLED);
		else
			is_dark(c, circuit, now);
	}
	circuit_serve(c, now);
}

void coll_circuit_lost(struct coll_circuit_manager *c, u64 now, u32 number)
{
	struct coll_circuit *circuit = &c->circuit[number];

	if (number >= c->made || (circuit->state != COLL_CIRCUIT_UP &&
				  !(circuit->state == COLL_CIRCUIT_DRAINING && !circuit->down_ordered)))
		return;
	c->lost++;
	circuit_fail(c, circuit, now, -ENOLINK);
	circuit_serve(c, now);
}

int coll_circuit_adopt(struct coll_circuit_manager *c, u64 now, u32 node, u8 port, u32 peer,
		       u8 peer_port)
{
	const u32 number = node < c->nodes && peer < c->nodes && node != peer ?
				   find_or_make(c, node, peer) : NONE;
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
	is_lit(c, circuit, now);
	c->setups--;		/* not ours */
	return 0;
}

void coll_circuit_drain(struct coll_circuit_manager *c, u64 now, u32 number)
{
	struct coll_circuit *circuit = &c->circuit[number];

	if (number < c->made && has_ports(circuit) && circuit->state != COLL_CIRCUIT_DRAINING)
		circuit_drain(c, circuit, now, c->policy.grace);
	circuit_serve(c, now);
}

/* ---- time ---------------------------------------------------------------- */

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
		/* Somebody may have to go then. */
		if (waiting && circuit->state == COLL_CIRCUIT_UP && circuit->leases != NONE &&
		    circuit->since + c->policy.lease > c->served)
			next = circuit_earlier(next, circuit->since + c->policy.lease);
	}
	return next;
}

static void time_out(struct coll_circuit_manager *c, struct coll_circuit *circuit, u64 now)
{
	switch (circuit->state) {
	case COLL_CIRCUIT_REQUESTED:
	case COLL_CIRCUIT_SWITCHING:
		circuit_fail(c, circuit, now, -ETIMEDOUT);
		break;
	case COLL_CIRCUIT_UP:
		circuit_drain(c, circuit, now, 0);
		break;
	case COLL_CIRCUIT_DRAINING:
		order_down(c, circuit, now);
		break;
	case COLL_CIRCUIT_FAILED:
		set_state(c, circuit, now, COLL_CIRCUIT_DOWN, COLL_CIRCUIT_FOREVER);
		break;
	}
}

void coll_circuit_tick(struct coll_circuit_manager *c, u64 now)
{
	u32 i;

	for (i = 0; i < c->made; i++)
		if (now >= c->circuit[i].until)
			time_out(c, &c->circuit[i], now);
	for (i = 0; i < c->leased; i++) {
		const u32 number = c->lease[i].circuit;

		if (!c->lease[i].used || number == NONE || c->lease[i].up ||
		    now < c->lease[i].deadline)
			continue;
		give_up(c, i, c->circuit[number].error ? c->circuit[number].error : -ETIMEDOUT);
		circuit_unwanted(c, &c->circuit[number], now);
	}
	circuit_serve(c, now);
}

/* ---- looking ------------------------------------------------------------- */

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
