// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>

#include "route.h"

const char *const flit_routing_names[] = { "dor", "north-last", "tesh", "adaptive", NULL };

/* A packet's state in TESH. */
enum {
	STATE_LEFT = 1,			/* it has left its module */
	STATE_RAIL = 2,			/* and 4: which of 2^q links it takes */
	STATE_ACROSS = 8,		/* on the way to a horizontal outlet out of order */
};

/* Classes of a basic module's channels. */
enum { CLASS_LEAVING, CLASS_ARRIVED, CLASS_BETWEEN };

static u16 all_channels(const struct flit_route *route)
{
	return (1u << route->vcs) - 1;
}

static u16 channels_from(const struct flit_route *route, u32 first)
{
	return all_channels(route) & ~((1u << first) - 1);
}

static u32 route_add(struct flit_choice *choice, u32 n, u32 link, u16 escape, u16 spare, u8 state)
{
	if (link == FLIT_NONE || !(escape | spare) || n == FLIT_CHOICES)
		return n;
	choice[n] = (struct flit_choice){ link, escape, spare, state };
	return n + 1;
}

/* ---- mesh and torus ----------------------------------------------------- */

/* Direction around a ring; if both are equally long, each is used by half of the nodes. */
static u32 direction_in(const struct flit_net *net, u32 d, u32 at, u32 to)
{
	u32 size = net->size[d], up = (to + size - at) % size;
	bool down = net->shape == FLIT_MESH ? to < at :
		    2 * up == size ? at & 1 : 2 * up > size;

	return 2 * d + down;
}

/* Torus: the channels before the edge, or those behind it; `each` of them. */
static u16 ring_class(const struct flit_route *route, u32 direction, u32 at, u32 to, u32 each)
{
	bool crosses = direction & 1 ? at < to : at > to;

	if (route->broken)
		return (1u << 2 * each) - 1;
	return ((1u << each) - 1) << (crosses ? 0 : each);
}

/* The channels of the next link of dor. */
static u16 mesh_escape(const struct flit_route *route, u32 direction, u32 at, u32 to)
{
	const bool adaptive = route->routing == FLIT_ADAPTIVE;

	if (route->net->shape == FLIT_MESH)
		return adaptive ? 1 : all_channels(route);
	return ring_class(route, direction, at, to, adaptive ? 1 : route->vcs / 2);
}

static u32 mesh_choices(const struct flit_route *route, u32 node, u32 target, u8 state,
			struct flit_choice *choice)
{
	const struct flit_net *net = route->net;
	const bool adaptive = route->routing == FLIT_ADAPTIVE;
	const u16 spare = adaptive ? channels_from(route, net->shape == FLIT_MESH ? 1 : 2) : 0;
	u32 d, n = 0;

	for (d = 0; d < net->dimensions; d++) {
		u32 at = flit_coordinate(net, node, d), to = flit_coordinate(net, target, d);
		u32 direction, link;

		if (at == to)
			continue;
		direction = direction_in(net, d, at, to);
		link = flit_link_towards(net, node, direction);
		if (!n)		/* the first remaining dimension is dor's */
			n = route_add(choice, n, link, mesh_escape(route, direction, at, to), spare,
				      state);
		else
			n = route_add(choice, n, link, 0, spare, state);
		if (!adaptive)
			break;
	}
	return n;
}

/* The thesis' order of preference; never back. */
static u32 north_last_choices(const struct flit_route *route, u32 node, u32 from, u32 target,
			      u8 state, struct flit_choice *choice)
{
	static const u8 below[] = { FLIT_DOWN, FLIT_RIGHT, FLIT_LEFT };
	static const u8 left[] = { FLIT_LEFT, FLIT_DOWN };
	static const u8 right[] = { FLIT_RIGHT, FLIT_DOWN };
	static const u8 above[] = { FLIT_UP };
	const struct flit_net *net = route->net;
	const u32 x = flit_coordinate(net, node, 0), tx = flit_coordinate(net, target, 0);
	const u32 y = flit_coordinate(net, node, 1), ty = flit_coordinate(net, target, 1);
	const u8 *order = tx < x ? left : tx > x ? right : ty > y ? above : below;
	const u32 count = tx != x ? 2 : ty > y ? 1 : 3;
	u32 back = FLIT_NONE, n = 0, i;

	if (from != FLIT_NONE && net->link[from].direction != FLIT_INJECT)
		back = net->link[from].direction ^ 1;
	for (i = 0; i < count; i++)
		if (order[i] != back)
			n = route_add(choice, n, flit_link_towards(net, node, order[i]),
				      all_channels(route), 0, state);
	return n;
}

/* ---- TESH --------------------------------------------------------------- */

static bool in_one_place(const struct flit_outlet *outlet)
{
	return outlet->in == outlet->out;
}

/* Channels with a class of their own on a link; all others are free. */
static u32 classes_of(const struct flit_route *route, const struct flit_link *link)
{
	const struct flit_net *net = route->net;

	if (link->direction == FLIT_OUTER)
		return 2;
	if (route->routing == FLIT_ADAPTIVE && link->transit & FLIT_TRANSIT_OTHER)
		return 4;
	if (!(link->transit & FLIT_TRANSIT_USUAL))
		return 2;
	return in_one_place(&net->outlet[net->levels][0][net->rails - 1]) ? 3 : 4;
}

struct route_leg {
	u32 level, vertical, rail;
	u32 out;		/* the node where it leaves the module */
	bool crosses;		/* the level's edge is still ahead */
};

/* The next link between modules in the usual order; false: none is left. */
static bool next_leg(const struct flit_net *net, u32 node, u32 target, u8 state,
		     struct route_leg *leg)
{
	int vertical;

	for (leg->level = net->levels; leg->level >= 2; leg->level--)
		for (vertical = 1; vertical >= 0; vertical--) {
			u32 at = flit_digit(net, node, leg->level, vertical);
			u32 to = flit_digit(net, target, leg->level, vertical);

			if (at == to)
				continue;
			leg->vertical = vertical;
			leg->rail = state / STATE_RAIL % 4;
			leg->out = node - node % net->module +
				   net->outlet[leg->level][vertical][leg->rail].out;
			leg->crosses = at > to;
			return true;
		}
	return false;
}

/*
 * The class of a link on the way to `leg`'s outlet. If that way is part of a ring of modules, it
 * too has channels before and behind the edge.
 */
static u32 class_towards(const struct flit_route *route, const struct flit_link *link,
			 const struct route_leg *leg, u8 state)
{
	if (!(state & STATE_LEFT))
		return CLASS_LEAVING;
	return CLASS_BETWEEN + (classes_of(route, link) > 3 && !leg->crosses);
}

/* Adds one link towards a leg's outlet, or over it. */
static u32 add_towards(const struct flit_route *route, u32 node, const struct route_leg *leg,
		       u8 state, bool escape, struct flit_choice *choice, u32 n)
{
	const struct flit_net *net = route->net;
	u32 link, class;

	if (node == leg->out) {
		link = flit_link_outer(net, node, leg->level, leg->vertical, leg->rail);
		class = leg->crosses || route->broken ? 0 : 1;
		state = (state | STATE_LEFT) & ~STATE_ACROSS;
	} else {
		link = flit_link_towards(net, node, flit_step(net, node, leg->out));
		class = class_towards(route, &net->link[link], leg, state);
	}
	return route_add(choice, n, link, escape ? 1 << class : 0,
			 channels_from(route, classes_of(route, &net->link[link])), state);
}

static u32 add_arrived(const struct flit_route *route, u32 node, u32 target, u8 state,
		       struct flit_choice *choice, u32 n)
{
	const struct flit_net *net = route->net;
	u32 link = flit_link_towards(net, node, flit_step(net, node, target));

	return route_add(choice, n, link, 1 << CLASS_ARRIVED,
			 channels_from(route, classes_of(route, &net->link[link])), state);
}

/* Adds the other shortest path inside a module: horizontal first, in free channels. */
static u32 add_sideways(const struct flit_route *route, u32 node, u32 to, u8 state,
			struct flit_choice *choice, u32 n)
{
	const struct flit_net *net = route->net;
	const u32 k = net->size[0], inside = node % net->module, want = to % net->module;
	u32 link;

	if (inside / k == want / k || inside % k == want % k)
		return n;
	link = flit_link_towards(net, node, inside % k < want % k ? FLIT_RIGHT : FLIT_LEFT);
	return route_add(choice, n, link, 0,
			 channels_from(route, classes_of(route, &net->link[link])), state);
}

static u32 tesh_choices(const struct flit_route *route, u32 node, u32 target, u8 state,
			struct flit_choice *choice)
{
	struct route_leg leg;

	if (next_leg(route->net, node, target, state, &leg))
		return add_towards(route, node, &leg, state, true, choice, 0);
	return add_arrived(route, node, target, state, choice, 0);
}

/* Whether the level's horizontal links are needed as well, after the vertical ones: *across. */
static bool across_leg(const struct flit_net *net, u32 node, u32 target,
		       const struct route_leg *leg, struct route_leg *across)
{
	u32 at = flit_digit(net, node, leg->level, false);
	u32 to = flit_digit(net, target, leg->level, false);

	*across = *leg;
	across->vertical = false;
	across->crosses = at > to;
	across->out = node - node % net->module + net->outlet[leg->level][0][leg->rail].out;
	return leg->vertical && at != to;
}

/*
 * A packet heads for one outlet at a time, and chooses it when it enters a module. On its way to
 * the horizontal one it may return to the usual order through escape channels. It changes at most
 * once per module, so it does not wander forever.
 */
static u32 tesh_adaptive_choices(const struct flit_route *route, u32 node, u32 from, u32 target,
				 u8 state, struct flit_choice *choice)
{
	const struct flit_net *net = route->net;
	const bool enters = from == FLIT_NONE || net->link[from].direction >= FLIT_OUTER;
	const u8 usual = state & ~STATE_ACROSS;
	struct route_leg leg, across;
	bool both;
	u32 n = 0;

	if (!next_leg(net, node, target, state, &leg)) {
		n = add_arrived(route, node, target, state, choice, n);
		return add_sideways(route, node, target, state, choice, n);
	}
	both = across_leg(net, node, target, &leg, &across);
	if (both && state & STATE_ACROSS) {
		n = add_towards(route, node, &across, state, false, choice, n);
		n = add_sideways(route, node, across.out, state, choice, n);
		return add_towards(route, node, &leg, usual, true, choice, n);
	}
	n = add_towards(route, node, &leg, usual, true, choice, n);
	n = add_sideways(route, node, leg.out, usual, choice, n);
	if (both && enters)
		n = add_towards(route, node, &across, usual | STATE_ACROSS, false, choice, n);
	return n;
}

/* ---- all ---------------------------------------------------------------- */

u8 flit_route_state(const struct flit_route *route, u32 source)
{
	const struct flit_net *net = route->net;

	return net->shape == FLIT_TESH ? source % net->module % net->rails * STATE_RAIL : 0;
}

u32 flit_choices(const struct flit_route *route, u32 node, u32 from, u32 target, u8 state,
		 struct flit_choice *choice)
{
	const bool tesh = route->net->shape == FLIT_TESH;

	if (node == target)
		return route_add(choice, 0, flit_eject_link(route->net, node), all_channels(route),
				 0, state);
	if (route->routing == FLIT_NORTH_LAST)
		return north_last_choices(route, node, from, target, state, choice);
	if (!tesh)
		return mesh_choices(route, node, target, state, choice);
	if (route->routing == FLIT_ADAPTIVE)
		return tesh_adaptive_choices(route, node, from, target, state, choice);
	return tesh_choices(route, node, target, state, choice);
}

/* Number of channels needed by the classes. */
static u32 vcs_needed(const struct flit_route *route)
{
	const struct flit_net *net = route->net;
	u32 most = 1, i;

	if (net->shape == FLIT_TORUS)
		most = route->routing == FLIT_ADAPTIVE ? 3 : 2;
	else if (net->shape == FLIT_MESH)
		most = route->routing == FLIT_ADAPTIVE ? 2 : 1;
	else
		for (i = 0; i < net->between; i++) {
			u32 classes = classes_of(route, &net->link[i]);

			if (classes > most)
				most = classes;
		}
	return most;
}

int flit_route_make(struct flit_route *route, const struct flit_net *net,
		    enum flit_routing routing, u32 vcs, bool broken, char *why, size_t bytes)
{
	const bool tesh = net->shape == FLIT_TESH;
	u32 needed;

	*route = (struct flit_route){ net, routing, vcs, broken };
	if (routing == FLIT_NORTH_LAST && (net->shape != FLIT_MESH || net->dimensions != 2)) {
		snprintf(why, bytes, "routing north-last is for meshes of two dimensions, not %s",
			 net->name);
		return -EINVAL;
	}
	if ((routing == FLIT_DOR && tesh) || (routing == FLIT_ROUTE_TESH && !tesh)) {
		snprintf(why, bytes, "routing %s does not fit %s; valid: %s, adaptive",
			 flit_routing_names[routing], net->name, tesh ? "tesh" : "dor");
		return -EINVAL;
	}
	needed = vcs_needed(route);
	if (vcs < needed) {
		snprintf(why, bytes, "%u virtual channels are too few: %s on %s needs %u classes",
			 vcs, flit_routing_names[routing], net->name, needed);
		return -EINVAL;
	}
	if (broken && (net->shape == FLIT_MESH)) {
		snprintf(why, bytes, "%s needs no classes of channels: there is none to break",
			 net->name);
		return -EINVAL;
	}
	return 0;
}
