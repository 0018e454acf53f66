// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "depend.h"

enum { VC_STRIDE = 16 };

/* A set of pairs (from, to) of channels; open addressing, 0 is empty. */
struct depend_pairs {
	u64 *slot;
	u64 size, used;
};

/* A packet's head in a channel. */
struct depend_position {
	u32 channel;		/* link * VC_STRIDE + vc */
	u8 state;
};

struct depend_stack {
	struct depend_position *item;
	u32 used, size;
};

struct depend_search {
	const struct flit_route *route;
	u32 target;
	struct depend_pairs edges;
	u64 *seen, *seen_free;		/* per channel: bit per state */
	struct depend_stack open, touched, open_free, touched_free;
	bool failed;			/* out of memory */
};

/* ---- containers --------------------------------------------------------- */

static u64 depend_hash(u64 key)
{
	key *= 0x9e3779b97f4a7c15u;
	return key ^ key >> 29;
}

static bool pairs_grow(struct depend_pairs *set)
{
	struct depend_pairs bigger = { .size = set->size ? set->size * 2 : 1 << 12 };
	u64 i, at;

	bigger.slot = calloc(bigger.size, sizeof(u64));
	if (!bigger.slot)
		return false;
	for (i = 0; i < set->size; i++) {
		if (!set->slot[i])
			continue;
		for (at = depend_hash(set->slot[i]) % bigger.size; bigger.slot[at]; )
			at = (at + 1) % bigger.size;
		bigger.slot[at] = set->slot[i];
	}
	bigger.used = set->used;
	free(set->slot);
	*set = bigger;
	return true;
}

static void pairs_add(struct depend_search *s, u32 from, u32 to)
{
	struct depend_pairs *set = &s->edges;
	u64 key = ((u64)from << 32 | to) + 1, at;

	if (set->used * 2 >= set->size && !pairs_grow(set)) {
		s->failed = true;
		return;
	}
	for (at = depend_hash(key) % set->size; set->slot[at]; at = (at + 1) % set->size)
		if (set->slot[at] == key)
			return;
	set->slot[at] = key;
	set->used++;
}

static void depend_push(struct depend_search *s, struct depend_stack *stack,
			struct depend_position item)
{
	if (stack->used == stack->size) {
		u32 size = stack->size ? stack->size * 2 : 1024;
		struct depend_position *grown = reallocarray(stack->item, size, sizeof(*grown));

		if (!grown) {
			s->failed = true;
			return;
		}
		stack->item = grown;
		stack->size = size;
	}
	stack->item[stack->used++] = item;
}

/* Records a position; returns whether it is new. */
static void depend_visit(struct depend_search *s, u64 *seen, struct depend_stack *open,
			 struct depend_stack *touched, struct depend_position at)
{
	u64 bit = 1ull << (at.state & 63);

	if (seen[at.channel] & bit)
		return;
	seen[at.channel] |= bit;
	depend_push(s, open, at);
	depend_push(s, touched, at);
}

static void depend_forget(u64 *seen, struct depend_stack *touched)
{
	while (touched->used)
		seen[touched->item[--touched->used].channel] = 0;
}

/* ---- following packets -------------------------------------------------- */

/* One channel represents all of a mask: they are offered together. */
static u32 channel_of(u32 link, u16 mask)
{
	return link * VC_STRIDE + __builtin_ctz(mask);
}

static u32 choices_at(const struct depend_search *s, struct depend_position at,
		      struct flit_choice *choice)
{
	const struct flit_net *net = s->route->net;
	u32 link = at.channel / VC_STRIDE;

	return flit_choices(s->route, net->link[link].to, link, s->target, at.state, choice);
}

static bool is_escape(const struct flit_choice *choice, u32 n)
{
	while (n--)
		if (choice[n].escape)
			return true;
	return false;
}

/*
 * Adds the channels that a packet may wait for while it holds `from` and has advanced in free
 * channels.
 */
static void follow_free(struct depend_search *s, u32 from)
{
	struct flit_choice choice[FLIT_CHOICES];
	u32 n, i;

	while (s->open_free.used) {
		struct depend_position at = s->open_free.item[--s->open_free.used];

		n = choices_at(s, at, choice);
		for (i = 0; i < n; i++) {
			if (choice[i].escape)
				pairs_add(s, from, channel_of(choice[i].link, choice[i].escape));
			if (choice[i].free)
				depend_visit(s, s->seen_free, &s->open_free, &s->touched_free,
					     (struct depend_position){
						     channel_of(choice[i].link, choice[i].free),
						     choice[i].state });
		}
	}
	depend_forget(s->seen_free, &s->touched_free);
}

/* Adds the dependencies of a packet here, and its next positions. */
static bool depend_expand(struct depend_search *s, struct depend_position at)
{
	const struct flit_net *net = s->route->net;
	struct flit_choice choice[FLIT_CHOICES];
	const bool ends = net->link[at.channel / VC_STRIDE].direction == FLIT_EJECT;
	u32 n, i;

	if (ends)
		return true;
	n = choices_at(s, at, choice);
	for (i = 0; i < n; i++) {
		struct depend_position next = { 0, choice[i].state };

		if (choice[i].escape) {
			next.channel = channel_of(choice[i].link, choice[i].escape);
			pairs_add(s, at.channel, next.channel);
			depend_visit(s, s->seen, &s->open, &s->touched, next);
		}
		if (choice[i].free) {
			next.channel = channel_of(choice[i].link, choice[i].free);
			depend_visit(s, s->seen, &s->open, &s->touched, next);
			depend_visit(s, s->seen_free, &s->open_free, &s->touched_free, next);
		}
	}
	follow_free(s, at.channel);
	return is_escape(choice, n);
}

static int follow_to(struct depend_search *s, u32 target, char *why, size_t bytes)
{
	const struct flit_net *net = s->route->net;
	char from[48], to[48];
	u32 source;

	s->target = target;
	for (source = 0; source < net->nodes; source++)
		depend_visit(s, s->seen, &s->open, &s->touched, (struct depend_position){
			flit_inject_link(net, source) * VC_STRIDE,
			flit_route_state(s->route, source) });
	while (s->open.used && !s->failed) {
		struct depend_position at = s->open.item[--s->open.used];

		if (depend_expand(s, at))
			continue;
		snprintf(why, bytes, "no channel that is free of deadlock leads from %s to %s",
			 flit_node_name(net, net->link[at.channel / VC_STRIDE].to, from,
					sizeof(from)), flit_node_name(net, target, to, sizeof(to)));
		return -ENOLINK;
	}
	depend_forget(s->seen, &s->touched);
	return s->failed ? -ENOMEM : 0;
}

/* ---- looking for a cycle ------------------------------------------------ */

struct depend_graph {
	u32 *first, *to;	/* per channel, and one past the last: its successors */
	u32 channels;
	u8 *colour;		/* 0 new, 1 on the path, 2 done */
	u32 *path, *edge;
};

/* An advance in a free channel is no dependency: only escape channels have edges. */
static bool graph_make(struct depend_graph *g, const struct depend_pairs *edges, u32 channels)
{
	u64 i;
	u32 c;

	g->channels = channels;
	g->first = calloc(channels + 2, sizeof(u32));
	g->to = calloc(edges->used + 1, sizeof(u32));
	g->colour = calloc(channels, 1);
	g->path = calloc(channels, sizeof(u32));
	g->edge = calloc(channels, sizeof(u32));
	if (!g->first || !g->to || !g->colour || !g->path || !g->edge)
		return false;
	for (i = 0; i < edges->size; i++)
		if (edges->slot[i])
			g->first[((edges->slot[i] - 1) >> 32) + 2]++;
	for (c = 0; c < channels; c++)
		g->first[c + 2] += g->first[c + 1];
	for (i = 0; i < edges->size; i++)
		if (edges->slot[i])
			g->to[g->first[((edges->slot[i] - 1) >> 32) + 1]++] =
				(u32)(edges->slot[i] - 1);
	return true;
}

static void graph_free(struct depend_graph *g)
{
	free(g->first);
	free(g->to);
	free(g->colour);
	free(g->path);
	free(g->edge);
}

static void note_cycle(const struct depend_graph *g, u32 depth, u32 again, struct flit_cycle *cycle)
{
	u32 i = depth;

	while (g->path[i] != again)
		i--;
	for (; i <= depth; i++, cycle->count++)
		if (cycle->count < FLIT_CYCLE_MAX)
			cycle->channel[cycle->count] = (struct flit_channel){
				g->path[i] / VC_STRIDE, g->path[i] % VC_STRIDE };
}

/* Depth first from one channel; returns whether it met its own path. */
static bool depend_walk(struct depend_graph *g, u32 start, struct flit_cycle *cycle)
{
	u32 depth = 0;

	g->path[0] = start;
	g->edge[0] = g->first[start];
	g->colour[start] = 1;
	for (;;) {
		u32 at = g->path[depth], next;

		if (g->edge[depth] == g->first[at + 1]) {
			g->colour[at] = 2;
			if (!depth--)
				return false;
			continue;
		}
		next = g->to[g->edge[depth]++];
		if (g->colour[next] == 1) {
			note_cycle(g, depth, next, cycle);
			return true;
		}
		if (!g->colour[next]) {
			g->colour[next] = 1;
			g->path[++depth] = next;
			g->edge[depth] = g->first[next];
		}
	}
}

static int find_cycle(const struct depend_search *s, struct flit_proof *proof)
{
	u32 channels = s->route->net->links * VC_STRIDE, c;
	struct depend_graph g = { 0 };
	int status = -ENOMEM;

	if (graph_make(&g, &s->edges, channels)) {
		status = 0;
		for (c = 0; c < channels && !status; c++) {
			proof->channels += g.first[c + 1] > g.first[c];
			if (!g.colour[c] && depend_walk(&g, c, &proof->cycle))
				status = -EDEADLK;
		}
	}
	proof->dependencies = s->edges.used;
	graph_free(&g);
	return status;
}

int flit_depend(const struct flit_route *route, struct flit_proof *proof, char *why, size_t bytes)
{
	struct depend_search s = { .route = route };
	u64 channels = (u64)route->net->links * VC_STRIDE;
	int status = 0;
	u32 target;

	memset(proof, 0, sizeof(*proof));
	s.seen = calloc(channels, sizeof(u64));
	s.seen_free = calloc(channels, sizeof(u64));
	if (!s.seen || !s.seen_free || !pairs_grow(&s.edges))
		status = -ENOMEM;
	for (target = 0; target < route->net->nodes && !status; target++)
		status = follow_to(&s, target, why, bytes);
	if (!status)
		status = find_cycle(&s, proof);
	free(s.seen);
	free(s.seen_free);
	free(s.edges.slot);
	free(s.open.item);
	free(s.touched.item);
	free(s.open_free.item);
	free(s.touched_free.item);
	return status;
}

void flit_cycle_print(const struct flit_net *net, const struct flit_cycle *cycle, char *text,
		      size_t bytes)
{
	size_t used = 0;
	char name[112];
	u32 i;

	for (i = 0; i < cycle->count && i < FLIT_CYCLE_MAX && used < bytes; i++)
		used += snprintf(text + used, bytes - used, "%s%s vc %u", i ? ", " : "",
				 flit_link_name(net, cycle->channel[i].link, name, sizeof(name)),
				 cycle->channel[i].vc);
}
