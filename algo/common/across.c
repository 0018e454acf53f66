// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The phase across a level: its algorithm, and what it costs. */
#include "levels.h"

enum {
	STEP_BYTES = 1 << 12,	/* a ring's messages should not be shorter */
	WINDOW_BYTES = 1 << 15,	/* a connection may have on its way when it begins, about */
};

/* ---- the algorithm --------------------------------------------------------- */

/* Algorithms by collective: made for clusters, one link or many; flat, for short and long. */
static const struct level_names {
	const char *far[2];		/* leader, lanes */
	const char *brief, *lengthy;	/* NULL: `brief` */
} level_names[COLL_COLLECTIVES] = {
	[COLL_BARRIER] = { { "twotier", "twotier" }, "dissemination", NULL },
	[COLL_BCAST] = { { "farfirst", "vandegeijn-extended" }, "binomial", "chain" },
	[COLL_GATHER] = { { "twotier", "twotier" }, "linear", NULL },
	[COLL_GATHERV] = { { "twotier", "twotier" }, "linear", NULL },
	[COLL_SCATTER] = { { "twotier", "twotier" }, "linear", NULL },
	[COLL_SCATTERV] = { { "twotier", "twotier" }, "linear", NULL },
	[COLL_ALLGATHER] = { { "vandegeijn-extended", "vandegeijn-extended" }, "bruck", "ring" },
	[COLL_ALLGATHERV] = { { "vandegeijn-extended", "vandegeijn-extended" }, "bruck", "ring" },
	[COLL_ALLTOALL] = { { "gateways", "gateways" }, "pairwise", NULL },
	[COLL_ALLTOALLV] = { { "turns", "turns" }, "pairwise", NULL },
	[COLL_REDUCE] = { { "twotier", "rabenseifner-extended" }, "binomial", "chain" },
	[COLL_ALLREDUCE] = { { "twotier", "rabenseifner-extended" }, "butterfly", "rabenseifner" },
	[COLL_REDUCE_SCATTER] = { { "rabenseifner-extended", "rabenseifner-extended" },
				  "pairwise", NULL },
	[COLL_REDUCE_SCATTER_BLOCK] = { { "rabenseifner-extended", "rabenseifner-extended" },
					"pairwise", NULL },
	[COLL_SCAN] = { { "twotier", "twotier" }, "doubling", "linear" },
	[COLL_EXSCAN] = { { "twotier", "twotier" }, "doubling", "linear" },
};

static bool is_of_blocks(const struct coll_call *call)
{
	return call->collective == COLL_ALLGATHER || call->collective == COLL_ALLGATHERV;
}

static const struct coll_algo *usual_algo(const struct coll_call *call)
{
	const struct level_names *names = &level_names[call->collective];
	const u64 n = is_of_blocks(call) ? blocks_bytes(call, 0, call->ranks) : call_bytes(call);
	const char *name = names->brief;

	if (names->lengthy && n >= LEVELS_LONG_BYTES)
		name = names->lengthy;
	if (call->collective == COLL_REDUCE && n >= LEVELS_LONG_BYTES && !call->commutative)
		name = "rabenseifner";
	/* With a power of two of ranks rabenseifner has the fewest bytes, and few messages. */
	if (call->collective == COLL_ALLREDUCE && call->commutative && n >= LEVELS_LONG_BYTES &&
	    call->ranks & (call->ranks - 1) && n / call->ranks >= STEP_BYTES)
		name = "ring";
	return coll_algo_find(call->collective, name);
}

const char *const coll_across_names[COLL_ACROSS] = {
	"binomial", "bruck", "butterfly", "chain", "circulant", "dissemination", "doubling",
	"halving", "linear", "one-shot", "pairwise", "rabenseifner", "reduce-bcast", "ring", "vandegeijn",
};

/* NULL: none is asked for, the collective has none of this name, or it refuses the call. */
static const struct coll_algo *across_algo(const struct coll_call *call, u64 across)
{
	const struct coll_tuning unset = COLL_TUNING_UNSET;
	const struct coll_algo *algo =
		across < COLL_ACROSS ? coll_algo_find(call->collective, coll_across_names[across]) : NULL;

	return algo && !coll_algo_refuses_plain(algo, call, &unset) ? algo : NULL;
}

/* By a call of one rank of each part of the highest level. */
static struct coll_call top_call(const struct coll_call *call)
{
	struct coll_call top = *call;

	top.ranks = call->level[call->levels - 1].parts;
	top.rank = top.root = 0;
	top.level = NULL;
	top.near = NULL;
	top.cluster = NULL;
	top.clusters = 1;
	top.levels = 0;
	return top;
}

bool coll_across_fits(const struct coll_call *call, u64 across)
{
	const struct coll_call top = top_call(call);

	return !coll_levels_reach_clusters(call) && across_algo(&top, across);
}

bool coll_across_is_regular(const struct coll_call *call, const struct coll_tuning *tuning)
{
	const struct coll_call top = top_call(call);
	const struct coll_algo *algo = across_algo(&top, tuning->across);

	return !algo || algo->regular;
}

/* What the tuning says, if it serves the call. */
static const struct coll_algo *flat_algo(const struct coll_call *call, const struct coll_tuning *tuning)
{
	const struct coll_algo *algo = across_algo(call, tuning->across);

	return algo ? algo : usual_algo(call);
}

const struct coll_algo *coll_above_algo(const struct coll_call *call, const struct coll_tuning *tuning,
					bool leader)
{
	const struct coll_algo *algo = NULL;

	if (call_has_levels(call) && !leader)
		algo = coll_algo_find(call->collective, "lanes");
	if (call_has_levels(call) && !algo)
		algo = coll_algo_find(call->collective, "leader");
	if (algo)
		return algo;
	return call->cluster ? coll_algo_find(call->collective,
					      level_names[call->collective].far[!leader]) :
			       flat_algo(call, tuning);
}

void coll_call_above(struct coll_call *call, const struct coll_level *above, u32 levels)
{
	call->near = NULL;
	call->cluster = NULL;
	call->clusters = 1;
	call->level = levels ? above : NULL;
	call->levels = levels;
	if (levels && above[levels - 1].kind == COLL_LEVEL_CLUSTER) {
		/* A call with levels below clusters does not look at them itself. */
		call->cluster = above[levels - 1].part;
		call->clusters = above[levels - 1].parts;
	}
	if (levels && above[0].kind == COLL_LEVEL_CLUSTER) {
		call->level = NULL;
		call->levels = 0;
	}
}

struct coll_tuning coll_across_tuning(const struct coll_call *call,
				      const struct coll_tuning *tuning)
{
	struct coll_tuning across = COLL_TUNING_UNSET;

	across.across = tuning->across;
	if (call->near && tuning->lanes != COLL_UNSET)
		across.lanes = tuning->lanes / coll_clusters_lanes(call, tuning);
	return across;
}

/* ---- its cost --------------------------------------------------------------- */

/* Else the levels above share it. */
static bool lanes_share_nic(const struct coll_call *view)
{
	return view->near->kind == COLL_LEVEL_NODE || !view->levels ||
	       view->level[0].kind != COLL_LEVEL_NODE;
}

/* The machine as the ranks of a lane see it: with the levels above, and a NIC for all lanes. */
static struct coll_machine machine_across(const struct coll_call *view,
					  const struct coll_machine *m, u32 lanes)
{
	struct coll_machine above = *m;
	u32 kind;

	above.crowding *= (double)lanes / view->near->largest;	/* the others do nothing meanwhile */
	above.alike = lanes * (m->alike > 1 ? m->alike : 1);
	if (!lanes_share_nic(view))
		return above;
	above.beta *= lanes;
	above.byte_gap *= lanes;
	if (above.crowding <= 1)	/* else that is work of the cores, which the lanes' ranks share */
		above.alpha += (lanes - 1) * m->overhead;
	for (kind = 0; kind < COLL_LEVEL_CLUSTER; kind++) {
		above.inside[kind].beta *= lanes;
		above.inside[kind].byte_gap *= lanes;
	}
	return above;
}

/* The call that a lane makes across. */
static struct coll_call lane_call(const struct coll_call *view, u32 lanes)
{
	struct coll_call across = *view;
	const bool blocks = view->collective >= COLL_GATHER && view->collective <= COLL_ALLTOALLV;

	coll_call_above(&across, view->level, view->levels);
	across.rank = 0;
	across.root = 0;
	across.ranks = view->clusters;
	across.counts = across.displs = NULL;
	across.count = blocks || view->collective == COLL_REDUCE_SCATTER ||
			       view->collective == COLL_REDUCE_SCATTER_BLOCK ?
			       blocks_bytes(view, 0, view->ranks) / view->element /
				       view->clusters / lanes :
			       view->count / lanes;
	return across;
}

/* How a vector goes across: by which algorithm, and in which pieces if that cuts it itself. */
struct across_way {
	const struct coll_algo *algo;
	struct coll_tuning tuning;
	double messages;	/* seconds of those of further segments */
};

/* What a rank does for a message, and where ranks share cores, these. */
static double piece_message_work(const struct coll_machine *m)
{
	return m->crowding > 1 ? coll_wire_work(m) : m->overhead;
}

/* A machine on which a message takes its work alone: no latency, no byte, no WAN. */
static struct coll_machine machine_of_work(const struct coll_machine *m)
{
	struct coll_machine work = *m;
	u32 kind;

	work.alpha = piece_message_work(m);
	work.beta = work.byte_gap = work.byte_work = work.gamma = 0;
	machine_leave_wan(&work);
	for (kind = 0; kind < COLL_LEVEL_CLUSTER; kind++) {
		const struct coll_machine near = coll_machine_inside(m, kind);

		/* No beta: coll_inside_cost() takes at most that between nodes for it, which is 0. */
		work.inside[kind] = (struct coll_level_cost){ .alpha = piece_message_work(&near), .overhead = near.overhead };
	}
	return work;
}

/* Seconds of the messages of a further piece. */
static double piece_messages(const struct coll_algo *algo, const struct coll_call *piece,
			     const struct coll_tuning *tuning, const struct coll_machine *m)
{
	const struct coll_machine work = machine_of_work(m);
	const double seconds = algo->cost(piece, tuning, &work);

	return seconds > message_cost(m) ? seconds : message_cost(m);
}

/*
 * Each segment is a call of its own. Between neighbours it follows the one before, as if the algorithm itself had
 * cut the vector; otherwise the sender's bytes take as long together as those of a whole vector.
 */
static struct across_way across_way_of(const struct coll_call *across, const struct coll_tuning *tuning,
				       bool leader, u32 segments, const struct coll_machine *m)
{
	struct across_way way = { .tuning = *tuning };
	struct coll_call piece = *across;

	piece.count = (across->count + segments - 1) / segments;
	way.algo = coll_above_algo(&piece, tuning, leader);
	way.tuning.segment = ~(u64)0 >> 1;
	if (way.algo->neighbours && way.algo->options && segments > 1)	/* `segment` */
		way.tuning.segment = piece.count * piece.element;
	else if (segments > 1)
		way.messages = (segments - 1) * piece_messages(way.algo, &piece, &way.tuning, m);
	return way;
}

/* Seconds that the NIC is busy with the messages of all lanes. */
static double lanes_busy(const struct across_way *way, const struct coll_call *across,
			 const struct coll_machine *above)
{
	struct coll_machine wire = *above;

	wire.alpha = 0;
	return algo_is_pipeline(way->algo) ? call_bytes(across) * above->beta :
					     way->algo->cost(across, &way->tuning, &wire);
}

/*
 * Whether some ranks have at once what they send in all rounds: a broadcast's root, the first ranks of a scan. Messages
 * longer than a connection's window share the NIC, so those of the first round take as long as all.
 */
static bool rounds_share_nic(const struct coll_algo *algo, const struct coll_call *across)
{
	return !algo->neighbours && call_bytes(across) > WINDOW_BYTES &&
	       (algo->collective == COLL_BCAST || algo->collective == COLL_SCAN || algo->collective == COLL_EXSCAN);
}

/*
 * Seconds of lanes that share a NIC, of which `above` has the part of one, on cores of their own. While a lane's message
 * is on its way the NIC sends those of others: a lane waits for all others once, not in each round, unless the NIC is
 * busy all the time.
 */
static double lanes_seconds(const struct across_way *way, const struct coll_call *across, u32 lanes,
			    const struct coll_machine *m, const struct coll_machine *above)
{
	const double together = way->algo->cost(across, &way->tuning, above);
	struct coll_machine alone = *above;
	double overlapped, busy;

	if (way->tuning.segment <= call_bytes(across) || rounds_share_nic(way->algo, across))
		return together;
	alone.beta = m->beta;
	alone.byte_gap = m->byte_gap;
	overlapped = way->algo->cost(across, &way->tuning, &alone) + (lanes - 1) * call_bytes(across) * m->beta;
	busy = lanes_busy(way, across, above) + m->alpha;
	overlapped = overlapped > busy ? overlapped : busy;
	return overlapped < together ? overlapped : together;
}

static double lanes_cost(const struct across_way *way, const struct coll_call *across, u32 lanes,
			 const struct coll_machine *m, const struct coll_machine *above)
{
	struct coll_wire wire = coll_wire_of(above, lanes);

	if (above->crowding <= 1)
		return lanes_seconds(way, across, lanes, m, above);
	return coll_wire_cost_of(way->algo, across, &way->tuning, &wire,
				 lanes_seconds(way, across, lanes, m, &wire.all));
}

double coll_above_cost(const struct coll_call *view, const struct coll_tuning *tuning, u32 segments,
		       const struct coll_machine *m)
{
	const u32 lanes = coll_clusters_lanes(view, tuning);
	const struct coll_machine above = machine_across(view, m, lanes);
	const struct coll_call across = lane_call(view, lanes);
	const struct coll_tuning tuned = coll_across_tuning(view, tuning);
	const struct across_way way = across_way_of(&across, &tuned, view->leader, segments, &above);

	if (lanes > 1 && lanes_share_nic(view))
		return lanes_cost(&way, &across, lanes, m, &above) + way.messages;
	return coll_wire_cost(way.algo, &across, &way.tuning, &above) + way.messages;
}
