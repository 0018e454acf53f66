/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A network of processing elements (PEs), each with a router. A link is unidirectional and carries
 * one flit per cycle. The links that leave a router are numbered consecutively: first those to
 * other routers, then the one to its PE (ejection). The links from each PE into its router
 * (injection) follow after all of these.
 *
 *	mesh:16x16  mesh:8x8x8  torus:8x8	x first; node = x + width * (y + ...)
 *	tesh:2,2,0				TESH(m,L,q); node = its address in
 *						digits of base 2^m, (a1 a0) last
 */
#ifndef FLIT_NET_H
#define FLIT_NET_H

#include "core/port.h"

enum flit_shape { FLIT_MESH, FLIT_TORUS, FLIT_TESH };

enum {
	FLIT_NONE = 0xffffffffu,
	FLIT_DIMENSIONS = 3,
	FLIT_NODES_MAX = 1 << 14,
	FLIT_LEVELS_MAX = 5,
	FLIT_PORTS_MAX = 8,	/* links into or out of a router, including its PE's */
};

/* Directions inside a mesh: 2 * dimension, + 1 for the lower neighbour. */
enum flit_direction {
	FLIT_RIGHT, FLIT_LEFT, FLIT_UP, FLIT_DOWN, FLIT_FRONT, FLIT_BACK,
	FLIT_OUTER,		/* between basic modules */
	FLIT_EJECT, FLIT_INJECT,
};

/* Packets that use a link inside a module on the way between two modules. */
enum { FLIT_TRANSIT_USUAL = 1, FLIT_TRANSIT_OTHER = 2 };

struct flit_link {
	u32 from, to;		/* nodes; both are the PE's node for injection and ejection */
	u8 direction;		/* enum flit_direction */
	u8 wraps;		/* torus: from one edge to the other */
	u8 level;		/* outer: 2 .. L */
	u8 vertical;		/* outer: changes the level's upper digit */
	u8 rail;		/* outer: which of the 2^q */
	u8 transit;		/* FLIT_TRANSIT_USUAL: also in the usual order of levels */
	u8 in_port;		/* index among the links into `to` */
};

/* Nodes of a basic module where a level's links leave and enter it. */
struct flit_outlet {
	u32 in, out;
};

struct flit_net {
	enum flit_shape shape;
	u32 nodes, links, between;	/* all links; links between routers */
	u32 dimensions, size[FLIT_DIMENSIONS];	/* TESH: of a basic module */
	u32 m, levels, rails;		/* TESH: rails = 2^q */
	u32 module;			/* TESH: nodes of a basic module; else all nodes */
	u32 outer;			/* links between modules */
	struct flit_link *link;
	u32 *first;			/* per node, and one past the last: its first link out */
	u32 *into;			/* per node and port: the link in */
	u8 *ports;			/* per node: number of links in; injection is the last */
	/* TESH: per level, vertical or not, rail. */
	struct flit_outlet outlet[FLIT_LEVELS_MAX + 1][2][FLIT_PORTS_MAX];
	char name[32];
};

/* `why` gets the reason why the text is invalid. -EINVAL or -ENOMEM. */
int flit_net_make(struct flit_net *net, const char *text, char *why, size_t bytes);
void flit_net_free(struct flit_net *net);

static inline u32 flit_eject_link(const struct flit_net *net, u32 node)
{
	return net->first[node + 1] - 1;
}

static inline u32 flit_inject_link(const struct flit_net *net, u32 node)
{
	return net->first[net->nodes] + node;
}

static inline u32 flit_module(const struct flit_net *net, u32 node)
{
	return node / net->module;
}

/* A coordinate inside the mesh, torus or basic module. */
static inline u32 flit_coordinate(const struct flit_net *net, u32 node, u32 dimension)
{
	u32 d;

	node %= net->module;
	for (d = 0; d < dimension; d++)
		node /= net->size[d];
	return node % net->size[dimension];
}

/* TESH: the digit of a module's address that a level's links change. */
static inline u32 flit_digit(const struct flit_net *net, u32 node, u32 level, bool vertical)
{
	return node >> net->m * (2 * (level - 1) + vertical) & ((1u << net->m) - 1);
}

/* The link out of a node in this direction of its mesh, or FLIT_NONE. */
u32 flit_link_towards(const struct flit_net *net, u32 node, u32 direction);
/* The direction of the first step between two nodes of a module, vertical first. */
u32 flit_step(const struct flit_net *net, u32 from, u32 to);
/* The link out of a node to another module. */
u32 flit_link_outer(const struct flit_net *net, u32 node, u32 level, bool vertical, u32 rail);

/* The number of links on the shortest path of the usual routing. */
u32 flit_distance(const struct flit_net *net, u32 from, u32 to);

/* "(3,4)", or "(1,2)(0,3)" for TESH, as the thesis writes nodes. */
char *flit_node_name(const struct flit_net *net, u32 node, char *text, size_t bytes);
char *flit_link_name(const struct flit_net *net, u32 link, char *text, size_t bytes);

#endif
