/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Algorithms for nested levels. A level algorithm makes one step for the lowest level: a phase
 * inside each part, a phase across, among one rank of each part (its *leader*) or among one rank of
 * each part for every lane, and a phase inside again. The step is an algorithm made for clusters,
 * with the parts of the lowest level for clusters. The phase across is the level algorithm of the
 * levels above; over clusters one made for clusters; and at the top a flat algorithm.
 *
 * So an algorithm for levels is the name of the one for clusters that makes its step:
 *
 *	leader	short: the fewest messages leave a node
 *	lanes	long: each rank of a node communicates a part of the vector with its like on the
 *		other nodes, so that the overhead of messages and the reductions are shared, too
 *
 * In both a node's NIC carries each byte the fewest times.
 */
#ifndef COLL_LEVELS_H
#define COLL_LEVELS_H

#include "clusters.h"

enum { LEVELS_LONG_BYTES = 1 << 15 };	/* from here on bytes count, not messages */

/* ---- making them --------------------------------------------------------- */

/* Bytes of memory for the levels of so many ranks. */
u64 coll_levels_bytes(u32 ranks);

struct coll_levels {
	u32 count;
	struct coll_level level[COLL_LEVELS_MAX], of_ranks[COLL_LEVELS_MAX];
};

/*
 * Makes the levels from numbers that name each rank's part: of[kind][rank], or NULL. Ranks are in
 * the same part if its number and those of the kinds above are equal. There are none if only
 * clusters differ: these need no levels. `memory` is that of coll_levels_bytes(), and stays.
 */
void coll_levels_make(const u32 *const of[COLL_LEVELS_MAX], u32 ranks, void *memory,
		      struct coll_levels *levels);

extern const char *const coll_level_names[COLL_LEVELS_MAX];

/* ---- looking at them ------------------------------------------------------ */

/* Whether the call has a level below clusters. */
static inline bool call_has_levels(const struct coll_call *call)
{
	return call->levels && call->level[0].kind != COLL_LEVEL_CLUSTER;
}

/* Whether the highest level is that of clusters. */
static inline bool coll_levels_reach_clusters(const struct coll_call *call)
{
	return call->levels && call->level[call->levels - 1].kind == COLL_LEVEL_CLUSTER;
}

/* Whether the parts of all levels are runs. */
bool coll_levels_are_runs(const struct coll_call *call);

/*
 * Whether each level is runs of equal sizes, the highest of 2^k nodes, and where vectors are cut
 * all parts are equal.
 */
bool coll_levels_are_even(const struct coll_call *call);

/* For `refuses`: there must be levels, and runs if the order is to be kept. */
const char *coll_levels_refuse(const struct coll_call *call, const struct coll_tuning *tuning);
const char *coll_levels_pipeline_refuse(const struct coll_call *call,
					const struct coll_tuning *tuning);

/* The call with the parts of its lowest level for clusters. */
struct coll_call coll_levels_view(const struct coll_call *call, bool leader);

/* ---- one step ------------------------------------------------------------ */

/* Emits the algorithm `step` on the lowest level. */
void coll_levels_emit(struct coll_build *b, const struct coll_call *call,
		      const struct coll_tuning *tuning, const char *step, bool leader);

/* Its predicted seconds, with those of the levels above. */
double coll_levels_cost(const struct coll_call *call, const struct coll_tuning *tuning,
			const struct coll_machine *m, const char *step, bool leader);

/* The call with the parts of the highest level below clusters, and with ranks for their members. */
struct coll_call coll_nodes_view(const struct coll_call *call, bool leader);

/*
 * The same for an algorithm that has no phase across: on the highest level below clusters, with
 * ranks for members.
 */
void coll_nodes_emit(struct coll_build *b, const struct coll_call *call,
		     const struct coll_tuning *tuning, const char *step, bool leader);
double coll_nodes_cost(const struct coll_call *call, const struct coll_tuning *tuning,
		       const struct coll_machine *m, const char *step, bool leader);
/* For its `refuses`. */
const char *coll_nodes_refuse(const struct coll_call *call, const struct coll_tuning *tuning);

/* The same for a step that is no algorithm for clusters: `inside` costs its phases inside. */
typedef double coll_cost(const struct coll_call *view, const struct coll_tuning *tuning,
			 const struct coll_machine *near);
double coll_levels_cost_of(const struct coll_call *call, const struct coll_tuning *tuning,
			   const struct coll_machine *m, coll_cost *inside, bool leader);

/* The algorithm of the phase across, a call that has its levels and clusters. */
const struct coll_algo *coll_above_algo(const struct coll_call *call, const struct coll_tuning *tuning,
					bool leader);
/* Gives a call across a level the levels above. */
void coll_call_above(struct coll_call *call, const struct coll_level *above, u32 levels);
/* Its predicted seconds, of a view whose vector is in so many segments. */
double coll_above_cost(const struct coll_call *view, const struct coll_tuning *tuning, u32 segments,
		       const struct coll_machine *m);

/* The phase across a level: see coll_emit_across(). */
struct coll_phase_end coll_emit_above(struct coll_build *b, const struct coll_clusters *c,
				      const struct coll_call *call, const struct coll_phase *part);

/*
 * Flat algorithms that may make the phase across the highest level, where that is of nodes. Not all
 * are algorithms of every collective.
 */
enum { COLL_ACROSS = 15 };
extern const char *const coll_across_names[COLL_ACROSS];

/* Whether that one, a number, serves a call between the parts of the highest level. */
bool coll_across_fits(const struct coll_call *call, u64 across);
/* Whether a schedule is as regular with that one as without. */
bool coll_across_is_regular(const struct coll_call *call, const struct coll_tuning *tuning);

/* The tuning of that phase: the links between clusters are divided among the lanes. */
struct coll_tuning coll_across_tuning(const struct coll_call *call,
				      const struct coll_tuning *tuning);

/* A reduction of a whole vector inside a part: by tree if it is short. */
const struct coll_algo *coll_reduce_inside(const struct coll_call *call);

/* Costs inside a part: the machine's, or those of usual memory, or of its network if these are less. */
struct coll_level_cost coll_inside_cost(const struct coll_machine *m, enum coll_level_kind kind);
/* The machine as links inside a part see it; nothing is across. */
struct coll_machine coll_machine_inside(const struct coll_machine *m, enum coll_level_kind kind);

/* Whether the whole vector goes from neighbour to neighbour: over each link once, and segments follow each other. */
static inline bool algo_is_pipeline(const struct coll_algo *algo)
{
	return algo->neighbours &&
	       (algo->collective == COLL_BCAST || algo->collective == COLL_REDUCE ||
		algo->collective == COLL_SCAN || algo->collective == COLL_EXSCAN);
}

/*
 * What an algorithm costs whose messages take wires: where ranks share cores, these are busy for a part of
 * the latency and of a byte's time only, and free for other ranks in the rest.
 */
/* Seconds of both ends for a message, some of them beside its latency. */
double coll_wire_work(const struct coll_machine *m);
double coll_wire_cost(const struct coll_algo *algo, const struct coll_call *call,
		      const struct coll_tuning *tuning, const struct coll_machine *m);

/* The machine as the wires and as the cores see it, and how many messages at once share a NIC. */
struct coll_wire {
	struct coll_machine all, work;
	double streams;
};
struct coll_wire coll_wire_of(const struct coll_machine *m, double streams);
/*
 * The same where the wires take `seconds`. While bytes of one stream are on the NIC, the cores work for another one;
 * a stream alone waits for its own bytes.
 */
double coll_wire_cost_of(const struct coll_algo *algo, const struct coll_call *call, const struct coll_tuning *tuning,
			 const struct coll_wire *wire, double seconds);

/* The machine as all ranks of this call share its cores: with its core_delay. */
struct coll_machine coll_machine_shared(const struct coll_call *call, const struct coll_machine *m);

/*
 * What a flat algorithm costs on these levels: the part of its messages that leave a node share
 * its NIC with those of the node's other ranks (flat.c).
 */
double coll_flat_cost(const struct coll_algo *algo, const struct coll_call *call,
		      const struct coll_tuning *tuning, const struct coll_machine *m);

#endif
