/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Routing: where a packet may go next, and in which virtual channels.
 *
 *	dor		one dimension after the other; a torus has two classes of
 *			channels, before and after the edge
 *	north-last	the turn model of the thesis, adaptive: up is the last leg
 *	tesh		from the top level down, vertical first; inside a module
 *			vertical first. Classes: on the way to the outlet, arrived,
 *			between (on the links that need it); between modules
 *			before and after the edge; the rest is free for all
 *	adaptive	any shortest way in free channels, dor or tesh in the others;
 *			TESH: also a level's horizontal links before its vertical
 */
#ifndef FLIT_ROUTE_H
#define FLIT_ROUTE_H

#include "net.h"

enum flit_routing { FLIT_DOR, FLIT_NORTH_LAST, FLIT_ROUTE_TESH, FLIT_ADAPTIVE, FLIT_ROUTINGS };

extern const char *const flit_routing_names[];

enum { FLIT_CHOICES = 6 };

struct flit_route {
	const struct flit_net *net;
	enum flit_routing routing;
	u32 vcs;
	bool broken;		/* one class where two are needed: can deadlock */
};

/*
 * A possible next hop. Channels of `escape` belong to the part of the routing that is free of
 * deadlock by itself; those of `free` may be used in addition.
 */
struct flit_choice {
	u32 link;
	u16 escape, free;
	u8 state;		/* of a packet that takes it */
};

/* Whether this routing fits the network, and the channels suffice. */
int flit_route_make(struct flit_route *route, const struct flit_net *net,
		    enum flit_routing routing, u32 vcs, bool broken, char *why, size_t bytes);

/* A packet's routing state at its source. */
u8 flit_route_state(const struct flit_route *route, u32 source);

/*
 * The possible next hops of a packet at `node` that arrived by link `from` (FLIT_NONE: it starts
 * here), better ones first. Returns their number, at most FLIT_CHOICES.
 */
u32 flit_choices(const struct flit_route *route, u32 node, u32 from, u32 target, u8 state,
		 struct flit_choice *choice);

#endif
