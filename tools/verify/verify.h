/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The verifier: executes all ranks of one collective in one process, on symbols instead of
 * numbers, in random order, and compares the results with the collective's definition.
 *
 *	list.c		the cases
 *	layout.c	inputs and expected results of a case
 *	match.c		checks without running
 *	order.c		which ops are done, in every run, when an op starts
 *	links.c		links between clusters in use at once
 *	nodes.c		random topologies of nested levels; bytes between nodes
 *	circuits.c	each message has a circuit; ports and wavelengths suffice
 *	world.c		random runs
 *	rescue.c	random runs with frozen ranks
 *	plant.c		planted defects
 */
#ifndef COLL_VERIFY_H
#define COLL_VERIFY_H

#include "algo/common/levels.h"
#include "core/step.h"
#include "tools/common/arena.h"
#include "symbol.h"

enum {
	ELEMENT = 8,		/* bytes of an element, the unit of the verifier's memory */
	CLUSTERS_MAX = 4,
};

/* Distribution of block sizes in a v collective. */
enum verify_shape {
	SHAPE_EQUAL,
	SHAPE_UNEQUAL,		/* some empty, gaps between them, not in rank order */
	SHAPE_ALONE,		/* one rank has all elements */
	SHAPES,
};

/* One collective call of all ranks; verified in several random runs. */
/* How the ranks of a topology lie on nodes. */
enum verify_nodes {
	NODES_RANDOM,	/* runs of random lengths, or dealt at random */
	NODES_EQUAL,	/* runs of one length, the last perhaps shorter */
	NODES_DEALT,	/* rank i on node i mod N; where order is kept as NODES_EQUAL */
	NODES_GROWING,	/* runs of 1, 2, 3, ... */
	NODES_ONE_LARGE,	/* one of many ranks, and some of one rank each */
	NODES_SHAPES,
};

struct verify_case {
	const struct coll_algo *algo;
	u32 ranks, root;
	u64 count;		/* v forms: of the largest block */
	struct coll_tuning tuning;
	u32 runs;		/* random runs */
	u32 frozen_exchanges;	/* j of the rescue property; 0: not tested */
	u8 shape;		/* enum verify_shape */
	bool dealt;		/* clusters alternate rank by rank, else they are contiguous */
	u32 cluster[CLUSTERS_MAX];	/* ranks of each; none: all ranks are in one cluster */
	u64 topology;		/* seed of the levels; 0: there are none */
	u32 nodes;		/* enum verify_nodes: their shape */
	u32 kinds;		/* bits of enum coll_level_kind besides nodes */
	bool lengthy;		/* so long that bytes decide, not messages */
	bool in_place;
	bool commutative;
	bool root_counts;	/* gatherv, scatterv: only the root knows the counts */
	bool ports_differ;	/* k is 1, 2, ..., tuning.ports, 1, ... from rank to rank */
};

/* Which cases to run, and how. */
struct verify_options {
	u64 seed;
	const char *plant;	/* a defect to plant in every case, or NULL */
	bool quick;
};

struct verify_failure {
	bool failed;
	bool has_rank;
	u32 rank;		/* whose schedule is printed */
	u32 op;			/* op of that schedule, or COLL_NONE */
	char words[512];
};

/* ---- layout.c ------------------------------------------------------------- */

/* Elements of OUT without one expected symbol. */
enum {
	WANT_REDUCTION = 0xffffffffu,	/* see struct verify_want */
	WANT_ANYTHING = 0xfffffffeu,
};

/* One rank's buffers before and after. */
struct verify_want {
	u64 in_elements, out_elements;
	u32 *in, *out;		/* symbols before the call */
	u32 *want;		/* per element of OUT: a symbol or WANT_... */
	/* A reduction at OUT[e] is of element first + e and ranks low .. high - 1. */
	u32 first, low, high;
};

/* Counts and displacements of a v form, all in elements. */
struct verify_blocks {
	u64 *counts, *displs;			/* per rank */
	u64 *send_counts, *send_displs;		/* per rank and peer: alltoallv */
	u64 *recv_counts, *recv_displs;
};

/* ---- world.c -------------------------------------------------------------- */

enum item_kind {
	ITEM_PULL,		/* ask the rank's step for an op */
	ITEM_LOCAL,		/* execute a local op */
	ITEM_READ,		/* the network reads a message's bytes at the sender */
	ITEM_SENT,		/* a send is done */
	ITEM_ARRIVE,		/* a message arrives at the rank with this receive */
	ITEM_RECEIVED,		/* a receive is done */
	ITEM_UP,		/* a circuit is up: a connect is done */
};

/* An event that can happen now. */
struct item {
	u32 kind, rank, op;
};

struct pool {
	struct item *item;
	u32 count, capacity;
};

/* The message for one receive. */
struct mail {
	u32 *content;		/* symbols; NULL: not yet read at the sender */
	bool parked;		/* the sender waits for the receive to start */
	bool unexpected;	/* it arrived before the receive started */
};

struct verify_rank {
	struct coll_schedule *schedule;
	struct coll_plan plan;
	struct coll_step step;
	struct verify_want want;
	u32 *memory[COLL_BUFFERS];	/* symbols */
	u32 *counterpart;	/* per message op: the peer's op of the same message */
	struct mail *mail;	/* per op; receives use it */
	bool *redundant;	/* per op: one of several ways to the same contents */
	bool *key;		/* per op: counts towards the rank's freezing */
	u32 keys, keys_left;
	u32 *coming;		/* per rank of another cluster: messages in flight */
	struct circuit_end *circuit_end;	/* per rank: the circuits to it */
	u32 held[2];		/* senders and receivers in use; duplex: the first counts */
	bool to_freeze, frozen, pulling, finished, slow;
};

enum send_mode {
	SEND_EARLY,		/* done at once; bytes are read at the start */
	SEND_BUFFERED,		/* bytes are read later, whatever the receiver does */
	SEND_LATE,		/* bytes are read once the receive has started */
	SEND_MIXED,		/* each message one of these */
	SEND_MODES,
};

struct world {
	struct arena arena;	/* released after each case */
	struct symbols symbols;
	struct verify_rank *rank;
	u32 ranks;
	const struct verify_case *vcase;
	struct verify_blocks blocks;
	u32 *cluster;		/* per rank, or NULL */
	u32 clusters;
	struct coll_levels levels;
	struct pool now, slow, frozen;
	u32 cut_off;		/* rank whose messages are held back, of and to it; COLL_NONE: none */
	u32 cut_after;		/* ... but for so many of its first sends */
	u64 random;
	enum send_mode mode;
	u32 last_first;		/* of 256: how often the newest item is taken */
	struct verify_failure failure;
	u64 schedules;		/* rank schedules executed */
	u64 planted;		/* cases with a planted defect */
	u32 links[CLUSTERS_MAX][CLUSTERS_MAX];	/* in use now, between lower and higher */
	u32 most_links;		/* maximum in use at once */
	u32 *ports;		/* per rank, or NULL: its k */
	u32 circuits_up;		/* circuits that are up now */
	bool refused;		/* the algorithm refuses this case */
	void *emit_memory;
	size_t emit_bytes, emit_capacity;
};

u64 dice_next(u64 *state);
/* 0 .. limit - 1, limit > 0. */
u32 dice_below(u64 *state, u32 limit);

/* Records the first failure; rank and op may be COLL_NONE. */
__attribute__((format(printf, 4, 5)))
void world_fail(struct world *world, u32 rank, u32 op, const char *format, ...);

/* Fills world->blocks, and after emission want[] of each rank. */
void layout_blocks(struct world *world);
void layout_call(const struct world *world, u32 rank, struct coll_call *call);
void layout_images(struct world *world);

/*
 * All checks without running: schedules, sizes of buffers, matching messages, whole elements,
 * order of ops that share memory. Fills counterpart[] and redundant[].
 */
void match_schedules(struct world *world);

/* ---- nodes.c -------------------------------------------------------------- */

/* Random levels of the case, and clusters if they have some. */
void layout_levels(struct world *world);
/* The nodes as parts of ranks; NULL: there are none. */
const struct coll_level *world_nodes(const struct world *world);
/* Holds the bytes between nodes to the lower bound. */
void match_nodes(struct world *world);

/* ---- order.c -------------------------------------------------------------- */

/* done[i]: the ops of all ranks that are done, in every run, when op i is. */
struct world_order {
	u32 *base;		/* per rank: number of its first op */
	u32 ops, words;
	u64 *done;
	u64 *sure;		/* when the op `queried` starts */
	u32 queried;
	bool made;
};

void order_init(struct world *world, struct world_order *order);
/* Whether the world is small enough for order_is_sure(). */
bool order_fits(const struct world_order *order);
/* Whether one rank's op is done, in every run, when another's starts. */
bool order_is_sure(struct world *world, struct world_order *order, u32 first_rank, u32 first,
		   u32 second_rank, u32 second);

/* ---- links.c -------------------------------------------------------------- */

/*
 * Proves from the order of ops that at most n links between two clusters are in use at once, if
 * the world is small enough.
 */
void match_links(struct world *world, struct world_order *order);
/* Counts the same in a random run of any size. */
void links_reset(struct world *world);
void links_begin(struct world *world, u32 from, u32 to, u64 bytes);
void links_end(struct world *world, u32 from, u32 to, u64 bytes);
/* n of the case. */
u32 links_bound(const struct world *world);

/* The maximum number of items without one that is before another. before[a * count + b]. */
u32 order_at_once(struct world *world, const bool *before, u32 count);

/* ---- circuits.c ----------------------------------------------------------- */

static inline const struct coll_op *world_op(const struct world *w, u32 rank, u32 op)
{
	return &coll_ops(w->rank[rank].schedule)[op];
}

/* The symbols at an address of a rank. */
static inline u32 *world_symbols(const struct world *w, u32 rank, u64 address)
{
	return w->rank[rank].memory[COLL_ADDRESS_BUFFER(address)] +
	       COLL_ADDRESS_OFFSET(address) / ELEMENT;
}

/* The rank of its peer. */
static inline u32 world_partner(const struct world *w, u32 rank, u32 op)
{
	return coll_op_rank(w->rank[rank].schedule, world_op(w, rank, op));
}

/* A message on bad links: of the rank, after its first ones, or to it. */
static inline bool world_holds_back(const struct world *w, const struct item *item)
{
	u32 from, op, before = 0;

	if (w->cut_off == COLL_NONE || item->kind != ITEM_ARRIVE)
		return false;
	from = world_partner(w, item->rank, item->op);
	if (item->rank == w->cut_off || from != w->cut_off)
		return item->rank == w->cut_off;
	for (op = 0; op < w->rank[item->rank].counterpart[item->op]; op++)
		before += world_op(w, from, op)->kind == COLL_OP_SEND;
	return before >= w->cut_after;
}

/* A send, and the rank that receives from it. */
struct world_send {
	u32 rank, op, to;
	u64 bytes;
};

/* The next send of all ranks; false: there is none. The first follows { .op = COLL_NONE }. */
static inline bool world_next_send(const struct world *w, struct world_send *send)
{
	for (; send->rank < w->ranks; send->rank++, send->op = COLL_NONE)
		while (++send->op < w->rank[send->rank].schedule->ops) {
			const struct coll_op *op = world_op(w, send->rank, send->op);

			if (op->kind != COLL_OP_SEND)
				continue;
			send->to = world_partner(w, send->rank, send->op);
			send->bytes = op->bytes;
			return true;
		}
	return false;
}

/*
 * Proves for every run: each message with data lies between a connect and a release of the same
 * circuit at both ends; a node never requests more than k circuits at once; and, if the world is
 * small enough, at most W circuits exist.
 */
void match_circuits(struct world *world, struct world_order *order);
/* Checks the same in a random run, in which a circuit is up when both ends have requested it. */
void verify_circuits_reset(struct world *world);
void verify_circuits_connect(struct world *world, u32 rank, u32 op);
void verify_circuits_release(struct world *world, u32 rank, u32 op);
void verify_circuits_send(struct world *world, u32 rank, u32 op);
void verify_circuits_arrive(struct world *world, u32 rank, u32 op);

/* The circuits to one peer as this end sees them, for each direction. */
struct circuit_end {
	struct {
		bool requested, up;
		u32 connect;	/* the op that waits for it */
	} way[3];		/* both, out, in */
};

/* Ops that are done in every run when op i of a schedule starts, `words` words each. */
u64 *order_in_rank(struct world *world, const struct coll_schedule *s, u32 words);

/* Adds an event that can happen now. */
void world_add_item(struct world *world, enum item_kind kind, u32 rank, u32 op);

/* Resets all ranks for a run. */
void world_reset(struct world *world);
/* Executes events in random order until none is left. */
void world_drain(struct world *world);
/* Lets frozen ranks and messages continue. */
void world_thaw(struct world *world);
/* Checks that all ranks but frozen ones have finished, with correct results. */
void world_judge(struct world *world);
/* Executes a reduction or a copy. */
void world_compute(struct world *world, u32 rank, u32 op);

/* Whether the other ranks finish without the ranks that the algorithm tolerates to be frozen. */
void rescue_run(struct world *world, const struct verify_options *options);
/* A barrier's promise: no rank leaves before all ranks have entered. */
void barrier_run(struct world *world);

/* The names of the defects; ends with NULL. */
extern const char *const plant_names[];
/* Plants a defect somewhere; false: no op can have it. */
bool plant_defect(struct world *world, const char *defect);

/*
 * Emits, matches and runs a case; if all ranks refuse, it passes. False: world->failure is filled
 * in, and the schedules still exist.
 */
bool verify_case(struct world *world, const struct verify_case *vcase,
		 const struct verify_options *options);
/* The case in words: "allreduce ring: 5 ranks, count 11, in place, T=2". */
const char *case_print(const struct verify_case *vcase, char *text, size_t bytes);
void world_free(struct world *world);

/* ---- list.c --------------------------------------------------------------- */

/* Selects cases. */
struct verify_filter {
	int collective;			/* enum coll_collective, or -1 */
	const char *algorithm;		/* NULL: all */
	u32 first_rank, last_rank;	/* 0, 0: the default rank counts */
};

/* All selected cases, fewest ranks first; free with memory_free(). */
struct verify_case *list_cases(const struct verify_filter *filter, bool quick, u32 *count);

#endif
