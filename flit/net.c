// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

/* ---- reading the name --------------------------------------------------- */

/* Digits at *text, and moves past them. */
static bool read_number(const char **text, u32 most, u32 *number)
{
	const char *from = *text;

	for (*number = 0; **text >= '0' && **text <= '9'; ++*text) {
		*number = 10 * *number + (**text - '0');
		if (*number > most)
			return false;
	}
	return *text > from;
}

static bool read_sizes(struct flit_net *net, const char *text)
{
	u64 nodes = 1;
	u32 size;

	for (net->dimensions = 0; net->dimensions < FLIT_DIMENSIONS; text++) {
		if (!read_number(&text, FLIT_NODES_MAX, &size) || size < 2)
			return false;
		nodes *= size;
		net->size[net->dimensions++] = size;
		if (*text != 'x' || net->dimensions == FLIT_DIMENSIONS)
			break;
	}
	net->nodes = net->module = nodes;
	return !*text && nodes <= FLIT_NODES_MAX;
}

static bool read_tesh(struct flit_net *net, const char *text)
{
	u32 m, levels, q;

	if (!read_number(&text, 4, &m) || *text++ != ',' || !read_number(&text, FLIT_LEVELS_MAX, &levels) ||
	    *text++ != ',' || !read_number(&text, 2, &q) || *text)
		return false;
	if (m < 1 || levels < 1 || 2 * m * levels > 14 || (levels - 1) << q > 1u << m)
		return false;
	net->m = m;
	net->levels = levels;
	net->rails = 1 << q;
	net->dimensions = 2;
	net->size[0] = net->size[1] = 1 << m;
	net->module = 1 << 2 * m;
	net->nodes = 1 << 2 * m * levels;
	return true;
}

static int read_name(struct flit_net *net, const char *text, char *why, size_t bytes)
{
	snprintf(net->name, sizeof(net->name), "%s", text);
	if (!strncmp(text, "mesh:", 5) || !strncmp(text, "torus:", 6)) {
		net->shape = *text == 'm' ? FLIT_MESH : FLIT_TORUS;
		if (read_sizes(net, strchr(text, ':') + 1))
			return 0;
	} else if (!strncmp(text, "tesh:", 5)) {
		net->shape = FLIT_TESH;
		if (read_tesh(net, text + 5))
			return 0;
		snprintf(why, bytes, "no TESH '%s'; valid: tesh:m,L,q with (L-1) * 2^q <= 2^m, "
			 "L <= 5 and 2^(2mL) <= %d, such as tesh:2,2,0", text + 5, FLIT_NODES_MAX);
		return -EINVAL;
	}
	snprintf(why, bytes, "no network '%s'; valid: mesh:AxB, mesh:AxBxC, torus:AxB, torus:AxBxC "
		 "(sides from 2, at most %d nodes), tesh:m,L,q", text, FLIT_NODES_MAX);
	return -EINVAL;
}

/* ---- links -------------------------------------------------------------- */

/* The neighbour in a direction of the mesh, or FLIT_NONE at an edge. */
static u32 net_neighbour(const struct flit_net *net, u32 node, u32 direction, bool *wraps)
{
	u32 dimension = direction / 2, step = 1, d;
	u32 at = flit_coordinate(net, node, dimension), size = net->size[dimension];
	bool down = direction & 1;

	for (d = 0; d < dimension; d++)
		step *= net->size[d];
	*wraps = at == (down ? 0 : size - 1);
	if (!*wraps)
		return down ? node - step : node + step;
	if (net->shape != FLIT_TORUS)
		return FLIT_NONE;
	return down ? node + step * (size - 1) : node - step * (size - 1);
}

static void add_link(struct flit_net *net, struct flit_link link)
{
	net->link[net->links++] = link;
}

static void mesh_links(struct flit_net *net, u32 node)
{
	u32 direction;

	for (direction = 0; direction < 2 * net->dimensions; direction++) {
		bool wraps;
		u32 to = net_neighbour(net, node, direction, &wraps);

		if (to != FLIT_NONE)
			add_link(net, (struct flit_link){ .from = node, .to = to, .wraps = wraps,
							  .direction = direction });
	}
}

/*
 * The free ports of a basic module, in pairs of an in and an out, as in figure 6.1 of the thesis:
 * the first two levels at the corners, the next along the left and the lower side, then the right
 * and the upper one, and so on.
 */
static void place_outlets(struct flit_net *net)
{
	const u32 k = 1u << net->m;
	u32 level, rail;

	for (level = 2; level <= net->levels; level++)
		for (rail = 0; rail < net->rails; rail++) {
			u32 slot = (level - 2) * net->rails + rail;
			u32 far = slot % 2 ? k - 1 : 0;		/* upper or right side */
			u32 at = slot - slot % 2;
			struct flit_outlet *vertical = &net->outlet[level][1][rail];
			struct flit_outlet *horizontal = &net->outlet[level][0][rail];

			if (slot < 2) {
				vertical->in = vertical->out = far * k;
				horizontal->in = horizontal->out = far * k + k - 1;
			} else {
				vertical->in = (at - 1) * k + far;
				vertical->out = at * k + far;
				horizontal->in = far * k + at - 1;
				horizontal->out = far * k + at;
			}
		}
}

static void tesh_links(struct flit_net *net, u32 node)
{
	const u32 inside = node % net->module, mask = (1u << net->m) - 1;
	u32 level, vertical, rail;

	for (level = 2; level <= net->levels; level++)
		for (vertical = 0; vertical < 2; vertical++)
			for (rail = 0; rail < net->rails; rail++) {
				const struct flit_outlet *o = &net->outlet[level][vertical][rail];
				u32 shift = net->m * (2 * (level - 1) + vertical);
				u32 digit = node >> shift & mask;
				u32 to = (node & ~(mask << shift)) | ((digit + 1) & mask) << shift;

				if (inside != o->out)
					continue;
				add_link(net, (struct flit_link){ .from = node,
					.to = to - inside + o->in, .direction = FLIT_OUTER,
					.wraps = digit == mask, .level = level,
					.vertical = vertical, .rail = rail });
				net->outer++;
			}
}

static void make_links(struct flit_net *net)
{
	u32 node, i;

	for (node = 0; node < net->nodes; node++) {
		net->first[node] = net->links;
		mesh_links(net, node);
		if (net->shape == FLIT_TESH)
			tesh_links(net, node);
		add_link(net, (struct flit_link){ node, node, .direction = FLIT_EJECT });
	}
	net->first[node] = net->links;
	net->between = net->links - net->nodes;
	for (node = 0; node < net->nodes; node++)
		add_link(net, (struct flit_link){ node, node, .direction = FLIT_INJECT });
	for (i = 0; i < net->links; i++) {
		struct flit_link *link = &net->link[i];

		if (link->direction == FLIT_EJECT)
			continue;
		link->in_port = net->ports[link->to]++;
		net->into[link->to * FLIT_PORTS_MAX + link->in_port] = i;
	}
}

/* ---- walking ------------------------------------------------------------ */

u32 flit_link_towards(const struct flit_net *net, u32 node, u32 direction)
{
	u32 link;

	for (link = net->first[node]; link < net->first[node + 1]; link++)
		if (net->link[link].direction == direction)
			return link;
	return FLIT_NONE;
}

u32 flit_step(const struct flit_net *net, u32 from, u32 to)
{
	const u32 k = net->size[0];

	from %= net->module;
	to %= net->module;
	return from / k < to / k ? FLIT_UP : from / k > to / k ? FLIT_DOWN :
	       from % k < to % k ? FLIT_RIGHT : FLIT_LEFT;
}

u32 flit_link_outer(const struct flit_net *net, u32 node, u32 level, bool vertical, u32 rail)
{
	u32 i;

	for (i = net->first[node]; i < net->first[node + 1]; i++) {
		const struct flit_link *link = &net->link[i];

		if (link->direction == FLIT_OUTER && link->level == level &&
		    link->vertical == vertical && link->rail == rail)
			return i;
	}
	return FLIT_NONE;
}

/* Marks the links between two nodes of every module, vertical ones first. */
static void mark_path(struct flit_net *net, u32 from, u32 to, u32 mark)
{
	u32 base, at, link;

	for (base = 0; base < net->nodes; base += net->module)
		for (at = from; at != to; at = net->link[link].to - base) {
			link = flit_link_towards(net, base + at, flit_step(net, at, to));
			net->link[link].transit |= mark;
		}
}

/* All outlets of a module in the order in which packets use them. */
static u32 list_outlets(const struct flit_net *net, const struct flit_outlet **list)
{
	u32 level, rail, n = 0;
	int vertical;

	for (level = net->levels; level >= 2; level--)
		for (vertical = 1; vertical >= 0; vertical--)
			for (rail = 0; rail < net->rails; rail++)
				list[n++] = &net->outlet[level][vertical][rail];
	return n;
}

/*
 * Packets between modules enter at one outlet and leave at another: of the same kind or a later
 * one in the usual order; out of order also at the level's other outlet.
 */
static void mark_transits(struct flit_net *net)
{
	const struct flit_outlet *list[FLIT_LEVELS_MAX * 2 * FLIT_PORTS_MAX];
	const u32 n = list_outlets(net, list), kind = net->rails, level = 2 * net->rails;
	u32 i, j;

	for (i = 0; i < n; i++)
		for (j = i / level * level; j < n; j++)
			mark_path(net, list[i]->in, list[j]->out, j / kind >= i / kind ?
				  FLIT_TRANSIT_USUAL : FLIT_TRANSIT_OTHER);
}

static u32 mesh_distance(const struct flit_net *net, u32 from, u32 to)
{
	u32 d, sum = 0;

	for (d = 0; d < net->dimensions; d++) {
		u32 a = flit_coordinate(net, from, d), b = flit_coordinate(net, to, d);
		u32 far = a > b ? a - b : b - a;

		if (net->shape == FLIT_TORUS && far > net->size[d] - far)
			far = net->size[d] - far;
		sum += far;
	}
	return sum;
}

u32 flit_distance(const struct flit_net *net, u32 from, u32 to)
{
	u32 level, at = from, sum = 0, rail;
	int vertical;

	if (net->shape != FLIT_TESH)
		return mesh_distance(net, from, to);
	rail = (from % net->module) % net->rails;
	for (level = net->levels; level >= 2; level--)
		for (vertical = 1; vertical >= 0; vertical--)
			while (flit_digit(net, at, level, vertical) !=
			       flit_digit(net, to, level, vertical)) {
				u32 out = net->outlet[level][vertical][rail].out;

				out += at - at % net->module;
				sum += mesh_distance(net, at, out) + 1;
				at = net->link[flit_link_outer(net, out, level, vertical, rail)].to;
			}
	return sum + mesh_distance(net, at, to);
}

/* ---- names -------------------------------------------------------------- */

char *flit_node_name(const struct flit_net *net, u32 node, char *text, size_t bytes)
{
	size_t used = 0;
	u32 level;
	int d;

	if (net->shape == FLIT_TESH) {
		for (level = net->levels; level >= 1 && used < bytes; level--)
			used += snprintf(text + used, bytes - used, "(%u,%u)",
					 flit_digit(net, node, level, true),
					 flit_digit(net, node, level, false));
		return text;
	}
	used = snprintf(text, bytes, "(");
	for (d = net->dimensions - 1; d >= 0 && used < bytes; d--)
		used += snprintf(text + used, bytes - used, "%u%s",
				 flit_coordinate(net, node, d), d ? "," : ")");
	return text;
}

char *flit_link_name(const struct flit_net *net, u32 link, char *text, size_t bytes)
{
	const struct flit_link *l = &net->link[link];
	char from[48], to[48];

	flit_node_name(net, l->from, from, sizeof(from));
	flit_node_name(net, l->to, to, sizeof(to));
	if (l->direction == FLIT_EJECT)
		snprintf(text, bytes, "%s->PE", from);
	else if (l->direction == FLIT_INJECT)
		snprintf(text, bytes, "PE->%s", to);
	else
		snprintf(text, bytes, "%s->%s", from, to);
	return text;
}

/* ---- opening ------------------------------------------------------------ */

int flit_net_make(struct flit_net *net, const char *text, char *why, size_t bytes)
{
	int error;

	memset(net, 0, sizeof(*net));
	error = read_name(net, text, why, bytes);
	if (error)
		return error;
	net->link = calloc((size_t)net->nodes * (FLIT_PORTS_MAX + 1), sizeof(*net->link));
	net->first = calloc(net->nodes + 1, sizeof(*net->first));
	net->into = calloc((size_t)net->nodes * FLIT_PORTS_MAX, sizeof(*net->into));
	net->ports = calloc(net->nodes, 1);
	if (!net->link || !net->first || !net->into || !net->ports) {
		flit_net_free(net);
		snprintf(why, bytes, "out of memory");
		return -ENOMEM;
	}
	if (net->shape == FLIT_TESH)
		place_outlets(net);
	make_links(net);
	if (net->shape == FLIT_TESH)
		mark_transits(net);
	return 0;
}

void flit_net_free(struct flit_net *net)
{
	free(net->link);
	free(net->first);
	free(net->into);
	free(net->ports);
	memset(net, 0, sizeof(*net));
}
