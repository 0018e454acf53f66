// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "levels.h"
#include "sort.h"

const char *const coll_level_names[COLL_LEVELS_MAX] = {
	[COLL_LEVEL_DOMAIN] = "domain",
	[COLL_LEVEL_NODE] = "node",
	[COLL_LEVEL_CLUSTER] = "cluster",
};

/* ---- making them --------------------------------------------------------- */

u64 coll_levels_bytes(u32 ranks)
{
	/* Of each level three tables, twice; items to sort, and parts by rank, of two levels. */
	return (u64)COLL_LEVELS_MAX * 2 * (3 * (u64)ranks + 1) * sizeof(u32) +
	       (u64)ranks * (sizeof(struct coll_sort_item) + 2 * sizeof(u32));
}

/*
 * Numbers the parts by their lowest ranks: part[rank], of ranks whose `above` and `id` are equal.
 * The lowest rank of each stands for it until it has its number.
 */
static u32 number_parts(const u32 *above, const u32 *id, u32 ranks, struct coll_sort_item *item,
			u32 *part)
{
	u32 lowest = 0, parts = 0, i;

	for (i = 0; i < ranks; i++)
		item[i] = (struct coll_sort_item){
			.major = (u64)(above ? above[i] : 0) << 32 | (id ? id[i] : i),
			.minor = i,
		};
	sort_items(item, ranks);
	for (i = 0; i < ranks; i++) {
		if (!i || item[i].major != item[i - 1].major)
			lowest = item[i].minor;
		part[item[i].minor] = lowest;
	}
	for (i = 0; i < ranks; i++)
		part[i] = part[i] == i ? parts++ : part[part[i]];
	return parts;
}

/* first[], member[] and the rest, from the part of each member. Returns the memory after them. */
static u32 *level_fill(struct coll_level *level, u32 *part)
{
	u32 *first = part + level->members, *member = first + level->parts + 1, i;

	level->part = part;
	level->first = first;
	level->member = member;
	level->runs = true;
	level->largest = 0;
	level->smallest = level->members;
	memset(first, 0, (level->parts + 1) * sizeof(*first));
	for (i = 0; i < level->members; i++) {
		first[part[i] + 1]++;
		level->runs = level->runs && (!i || part[i] >= part[i - 1]);
	}
	for (i = 0; i < level->parts; i++) {
		const u32 size = first[i + 1];

		level->largest = size > level->largest ? size : level->largest;
		level->smallest = size < level->smallest ? size : level->smallest;
		first[i + 1] += first[i];
	}
	for (i = 0; i < level->members; i++)
		member[first[part[i]]++] = i;
	for (i = level->parts; i; i--)
		first[i] = first[i - 1];
	first[0] = 0;
	return member + level->members;
}

/* The number of each rank's part of this kind: of those of the kinds above it. */
static u32 kind_number(const u32 *const of[COLL_LEVELS_MAX], u32 kind, u32 ranks,
		       struct coll_sort_item *item, u32 *part)
{
	const u32 *above = NULL;
	u32 parts = 1, k;

	for (k = COLL_LEVELS_MAX; k-- > kind;) {
		if (!of[k])
			continue;
		parts = number_parts(above, of[k], ranks, item, part);
		above = part;
	}
	return parts;
}

/* A level of these parts; below[] has each rank's part of the level below. Returns the memory after. */
static u32 *level_add(struct coll_levels *levels, struct coll_level like, const u32 *below,
		      const u32 *by_rank, u32 ranks, u32 *memory)
{
	struct coll_level *level = &levels->level[levels->count];
	struct coll_level *of_ranks = &levels->of_ranks[levels->count++];
	u32 i;

	*level = *of_ranks = like;
	of_ranks->members = ranks;
	for (i = 0; i < ranks; i++)
		memory[below[i]] = by_rank[i];
	memory = level_fill(level, memory);
	memcpy(memory, by_rank, ranks * sizeof(*memory));
	memory = level_fill(of_ranks, memory);
	level->of_ranks = of_ranks->of_ranks = of_ranks;
	return memory;
}

/* Whether these parts make a level of their own. Each cluster may be one node. */
static bool is_level(u32 kind, u32 parts, u32 members)
{
	return parts > 1 && (parts < members || kind == COLL_LEVEL_CLUSTER);
}

void coll_levels_make(const u32 *const of[COLL_LEVELS_MAX], u32 ranks, void *memory,
		      struct coll_levels *levels)
{
	struct coll_sort_item *item = memory;
	u32 *below = (u32 *)(item + ranks), *by_rank = below + ranks, *next = by_rank + ranks;
	u32 members = ranks, kind, i;

	levels->count = 0;
	for (i = 0; i < ranks; i++)
		below[i] = i;
	for (kind = 0; kind < COLL_LEVELS_MAX; kind++) {
		const u32 parts = of[kind] ? kind_number(of, kind, ranks, item, by_rank) : 1;
		const struct coll_level like = {
			.kind = kind, .members = members, .parts = parts,
		};

		if (is_level(kind, parts, members)) {
			next = level_add(levels, like, below, by_rank, ranks, next);
			members = parts;
			memcpy(below, by_rank, ranks * sizeof(*below));
		} else if (levels->count && parts == members) {
			levels->level[levels->count - 1].kind = kind;	/* a node is a domain */
			levels->of_ranks[levels->count - 1].kind = kind;
		}
	}
	if (levels->count && levels->level[0].kind == COLL_LEVEL_CLUSTER)
		levels->count = 0;
}

/* ---- looking at them ------------------------------------------------------ */

bool coll_levels_are_runs(const struct coll_call *call)
{
	u32 i;

	for (i = 0; i < call->levels; i++)
		if (!call->level[i].runs)
			return false;
	return true;
}

bool coll_levels_are_even(const struct coll_call *call)
{
	u32 i;

	for (i = 0; i < call->levels; i++)
		if (!call->level[i].runs || call->level[i].smallest != call->level[i].largest)
			return false;
	if (!call_has_levels(call) || coll_levels_reach_clusters(call) ||
	    call->level[call->levels - 1].parts & (call->level[call->levels - 1].parts - 1))
		return false;
	return !(call->count % call->ranks) || call_bytes(call) < LEVELS_LONG_BYTES;
}

const char *coll_levels_refuse(const struct coll_call *call, const struct coll_tuning *tuning)
{
	(void)tuning;
	if (call->ranks == 1)
		return NULL;
	if (!call_has_levels(call))
		return "the ranks have no levels: all are on one node, or each is on its own";
	if (!call->commutative && !coll_levels_are_runs(call))
		return "the operation does not commute, and the nodes are no runs of ranks";
	return NULL;
}

const char *coll_levels_pipeline_refuse(const struct coll_call *call,
					const struct coll_tuning *tuning)
{
	const char *why = coll_levels_refuse(call, tuning);

	return why ? why : pipeline_refuses(call, tuning);
}

struct coll_call coll_levels_view(const struct coll_call *call, bool leader)
{
	struct coll_call view = *call;

	view.near = call->levels ? &call->level[0] : NULL;
	view.cluster = call->levels ? call->level[0].part : NULL;
	view.clusters = call->levels ? call->level[0].parts : 1;
	view.level = call->levels ? call->level + 1 : NULL;
	view.levels = call->levels ? call->levels - 1 : 0;
	view.leader = leader;
	return view;
}

/* ---- across --------------------------------------------------------------- */

struct coll_phase_end coll_emit_above(struct coll_build *b, const struct coll_clusters *c,
				      const struct coll_call *call, const struct coll_phase *part)
{
	struct coll_tuning tuning = c->tuning;
	struct coll_phase_end end;
	struct coll_call across = *call;
	void *tables = b->tables;

	coll_call_above(&across, c->above, c->levels);
	/* The vector is cut already; what is left goes in one piece. */
	if (call_bytes(&across))
		tuning.segment = ~(u64)0 >> 1;
	b->tables = (u8 *)tables + coll_clusters_table_bytes(c->first[c->count]);
	coll_emit_phase_begin(b, part);
	coll_above_algo(&across, &tuning, c->leader)->emit(b, &across, &tuning);
	end = coll_emit_phase_end(b);
	b->tables = tables;
	return end;
}

void coll_levels_emit(struct coll_build *b, const struct coll_call *call,
		      const struct coll_tuning *tuning, const char *step, bool leader)
{
	const struct coll_call view = coll_levels_view(call, leader);

	coll_algo_find(call->collective, step)->emit(b, &view, tuning);
}

struct coll_call coll_nodes_view(const struct coll_call *call, bool leader)
{
	struct coll_call view = *call;
	u32 i = call->levels;

	while (i-- && call->level[i].kind == COLL_LEVEL_CLUSTER)
		;
	view.near = call->levels ? call->level[i].of_ranks : NULL;
	view.cluster = call->levels ? view.near->part : NULL;
	view.clusters = call->levels ? view.near->parts : 1;
	view.level = NULL;
	view.levels = 0;
	view.leader = leader;
	return view;
}

const char *coll_nodes_refuse(const struct coll_call *call, const struct coll_tuning *tuning)
{
	if (call->cluster && call->clusters > 1)
		return "it does not limit the links between clusters";
	return coll_levels_refuse(call, tuning);
}

void coll_nodes_emit(struct coll_build *b, const struct coll_call *call,
		     const struct coll_tuning *tuning, const char *step, bool leader)
{
	const struct coll_call view = coll_nodes_view(call, leader);

	coll_algo_find(call->collective, step)->emit(b, &view, tuning);
}

const struct coll_algo *coll_reduce_inside(const struct coll_call *call)
{
	const bool brief = call->near && call_bytes(call) < LEVELS_LONG_BYTES;

	return coll_algo_find(COLL_REDUCE, brief ? "binomial" : "rabenseifner");
}

/* ---- costs ----------------------------------------------------------------- */

/* A memory link's usual costs. */
static const struct coll_level_cost usual_inside[COLL_LEVEL_CLUSTER] = {
	[COLL_LEVEL_DOMAIN] = { 1.5e-6, 0.4e-6, 0.08e-9, 0 },
	[COLL_LEVEL_NODE] = { 2e-6, 0.5e-6, 0.1e-9, 0 },
};

struct coll_level_cost coll_inside_cost(const struct coll_machine *m, enum coll_level_kind kind)
{
	struct coll_level_cost cost = m->inside[kind];

	if (cost.alpha <= 0)
		cost.alpha = usual_inside[kind].alpha < m->alpha ? usual_inside[kind].alpha :
								   m->alpha;
	if (cost.overhead <= 0)
		cost.overhead = usual_inside[kind].overhead < m->overhead ?
					usual_inside[kind].overhead : m->overhead;
	if (cost.overhead > cost.alpha)
		cost.overhead = cost.alpha;
	if (cost.beta <= 0)
		cost.beta = usual_inside[kind].beta < m->beta ? usual_inside[kind].beta : m->beta;
	if (cost.byte_gap <= 0)
		cost.byte_gap = cost.beta;
	return cost;
}

struct coll_machine coll_machine_inside(const struct coll_machine *m, enum coll_level_kind kind)
{
	const struct coll_level_cost cost = coll_inside_cost(m, kind);
	struct coll_machine near = *m;

	near.alpha = cost.alpha;
	near.overhead = cost.overhead;
	near.beta = cost.beta;
	near.byte_gap = cost.byte_gap;
	near.copied = true;
	machine_leave_wan(&near);
	return near;
}

double coll_levels_cost(const struct coll_call *call, const struct coll_tuning *tuning,
			const struct coll_machine *m, const char *step, bool leader)
{
	return coll_levels_cost_of(call, tuning, m, coll_algo_find(call->collective, step)->cost,
				   leader);
}

/* Seconds of cores in the phase across: the wires take none. */
static double work_above(const struct coll_call *view, const struct coll_tuning *tuning, u32 segments,
			 const struct coll_machine *m)
{
	struct coll_machine work = *m;

	work.alpha = coll_wire_work(m);
	work.byte_work = byte_work(m, m->beta);
	work.beta = work.byte_gap = 0;
	machine_leave_wan(&work);
	return coll_above_cost(view, tuning, segments, &work);
}

/* Seconds for which messages inside wait for their receivers' cores. */
static double inside_delay(const struct coll_call *view, const struct coll_tuning *tuning,
			   const struct coll_machine *near, double core_delay, coll_cost *inside_cost_of)
{
	struct coll_machine alone = *near;
	double seconds;

	if (core_delay <= 0)
		return 0;
	alone.crowding = 0;
	seconds = inside_cost_of(view, tuning, &alone);
	alone.alpha += core_delay;
	return inside_cost_of(view, tuning, &alone) - seconds;
}

double coll_levels_cost_of(const struct coll_call *call, const struct coll_tuning *tuning,
			   const struct coll_machine *m, coll_cost *inside_cost_of, bool leader)
{
	const struct coll_call view = coll_levels_view(call, leader);
	const struct coll_machine shared = coll_machine_shared(call, m);
	struct coll_machine near;
	double inside, outside, seconds, work, delay;
	u32 segments = 1, pieces;

	if (call->ranks == 1 || !call->levels)
		return 0;
	near = coll_machine_inside(m, view.near->kind);
	if (near.crowding > view.near->largest)	/* several parts share cores, and do the same */
		near.alike = view.near->parts * (m->alike > 1 ? m->alike : 1);
	inside = inside_cost_of(&view, tuning, &near);
	delay = inside_delay(&view, tuning, &near, shared.core_delay, inside_cost_of);
	if (tuning->segment != COLL_UNSET)
		segments = pipeline_parts(call, tuning, view.near->largest);
	outside = coll_above_cost(&view, tuning, segments, &shared);
	/* Lanes of an allgather hand the blocks of each part on as they come. */
	pieces = view.collective == COLL_ALLGATHER && !leader ? view.near->parts : segments;
	seconds = overlap_cost(inside, outside, pieces) + delay;
	if (m->crowding <= 1 || pieces == 1)
		return seconds;
	work = inside + work_above(&view, tuning, segments, m) + delay;	/* which does not overlap */
	return work > seconds ? work : seconds;
}

double coll_nodes_cost(const struct coll_call *call, const struct coll_tuning *tuning,
		       const struct coll_machine *m, const char *step, bool leader)
{
	const struct coll_call view = coll_nodes_view(call, leader);
	const struct coll_machine shared = coll_machine_shared(call, m);
	struct coll_machine near;

	if (call->ranks == 1 || !call->levels)
		return 0;
	near = coll_machine_inside(m, view.near->kind);
	near.wan_alpha = m->alpha;
	near.wan_beta = m->beta;
	near.overhead = m->overhead;	/* of what crosses; inside, a message's latency is its work */
	/* A message to the gateway, one across and one from there, each of which waits for a core. */
	return coll_algo_find(call->collective, step)->cost(&view, tuning, &near) + 3 * shared.core_delay;
}
