/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The verifier: all ranks of one collective executed in one process, on symbols
 * instead of numbers, in random order, and compared with what the collective
 * promises.
 *
 *	verify_list	which cases there are
 *	verify_layout	what a case's ranks are given and what they must get
 *	verify_match	what can be said of the schedules without running them
 *	verify_order	which ops are surely done when an op starts
 *	verify_links	how many links between clusters are in use at once
 *	verify_circuits	that no op needs a circuit that is not there, and no node too many
 *	verify_world	running them
 *	verify_rescue	running them with ranks that stand still
 *	verify_plant	breaking them on purpose
 */
#ifndef COLL_VERIFY_H
#define COLL_VERIFY_H

#include "algo/common/algo.h"
#include "core/step.h"
#include "tools/common/arena.h"
#include "symbol.h"

enum {
	ELEMENT = 8,		/* bytes of an element; the verifier's unit of memory */
	CLUSTERS_MAX = 4,
};

/* How the blocks of a v collective differ in size. */
enum verify_shape {
	SHAPE_EQUAL,
	SHAPE_UNEQUAL,		/* some empty, gaps between them, not in rank order */
	SHAPE_ALONE,		/* one rank has everything */
	SHAPES,
};

/* One collective call of all ranks; verified in several random runs. */
struct verify_case {
	const struct coll_algo *algo;
	u32 ranks, root;
	u64 count;		/* v forms: of the largest block */
	struct coll_tuning tuning;
	u32 runs;		/* random runs */
	u32 frozen_exchanges;	/* j of the rescue property; 0: a plain case */
	u8 shape;		/* enum verify_shape */
	bool dealt;		/* the clusters' ranks alternate, else they are runs */
	u32 cluster[CLUSTERS_MAX];	/* ranks of each; none: all are near each other */
	bool in_place;
	bool commutative;
	bool root_counts;	/* gatherv, scatterv: only the root knows the counts */
	bool ports_differ;	/* k is 1, 2, ..., tuning.ports, 1, ... from rank to rank */
};

/* What to run and how hard. */
struct verify_options {
	u64 seed;
	const char *plant;	/* a defect to plant in every case, or NULL */
	bool quick;
};

struct verify_failure {
	bool failed;
	bool has_rank;
	u32 rank;		/* whose schedule is to be shown */
	u32 op;			/* in it, or COLL_NONE */
	char words[512];
};

/* ---- verify_layout ------------------------------------------------------ */

/* Elements of OUT that are not one known symbol. */
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

/* ---- verify_world ------------------------------------------------------- */

enum item_kind {
	ITEM_PULL,		/* ask the rank's step for an op */
	ITEM_LOCAL,		/* execute a local op */
	ITEM_READ,		/* the network takes a message's bytes from the sender */
	ITEM_SENT,		/* a send is done */
	ITEM_ARRIVE,		/* a message reaches the rank that has this receive */
	ITEM_RECEIVED,		/* a receive is done */
	ITEM_LIT,		/* a circuit is there: a connect is done */
};

/* Something that can happen now. */
struct item {
	u32 kind, rank, op;
};

struct pool {
	struct item *item;
	u32 count, capacity;
};

/* The message for one receive. */
struct mail {
	u32 *content;		/* symbols; NULL: not taken from the sender yet */
	bool parked;		/* the sender waits for the receive to start */
	bool early;		/* it arrived before the receive started */
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
	u32 *coming;		/* per rank of another cluster: messages with data on the way */
	struct light *light;	/* per rank: the circuits to it */
	u32 held[2];		/* senders and receivers in use; duplex: the first counts */
	bool to_freeze, frozen, pulling, finished, slow;
};

enum send_mode {
	SEND_EARLY,		/* done at once, its bytes read at its start */
	SEND_BUFFERED,		/* its bytes are read later, whatever the receiver does */
	SEND_LATE,		/* its bytes are read once the receive has started */
	SEND_MIXED,		/* each message one of these */
	SEND_MODES,
};

struct world {
	struct arena arena;	/* emptied for each case */
	struct symbols symbols;
	struct verify_rank *rank;
	u32 ranks;
	const struct verify_case *vcase;
	struct verify_blocks blocks;
	u32 *cluster;		/* per rank, or NULL */
	u32 clusters;
	struct pool now, slow, frozen;
	u64 random;
	enum send_mode mode;
	u32 last_first;		/* of 256: how often the newest item is taken */
	struct verify_failure failure;
	u64 schedules;		/* rank schedules executed */
	u64 planted;		/* cases with a defect in them */
	u32 links[CLUSTERS_MAX][CLUSTERS_MAX];	/* in use now, between lower and higher */
	u32 most_links;		/* in use at once, so far */
	u32 *ports;		/* per rank, or NULL: its k */
	u32 lit;		/* circuits that are up now */
	bool refused;		/* the algorithm cannot serve this case, and says so */
	void *emit_memory;
	size_t emit_bytes, emit_capacity;
};

u64 dice_next(u64 *state);
/* 0 .. limit - 1, limit > 0. */
u32 dice_below(u64 *state, u32 limit);

/* Notes the first failure; rank and op may be COLL_NONE. */
__attribute__((format(printf, 4, 5)))
void world_fail(struct world *world, u32 rank, u32 op, const char *format, ...);

/* Who gets what: fills world->blocks, and after emission want[] of each rank. */
void layout_blocks(struct world *world);
void layout_call(const struct world *world, u32 rank, struct coll_call *call);
void layout_images(struct world *world);

/*
 * Everything that holds without running: check, sizes of buffers, messages that
 * meet, whole elements, ops that share memory and are ordered. Fills
 * counterpart[] and redundant[].
 */
void match_schedules(struct world *world);

/* ---- verify_order ------------------------------------------------------- */

/* done[i]: the ops of all ranks that are surely done when op i is. */
struct world_order {
	u32 *base;		/* per rank: number of its first op */
	u32 ops, words;
	u64 *done;
	u64 *sure;		/* when the op `asked` of last starts */
	u32 asked;
	bool made;
};

void order_init(struct world *world, struct world_order *order);
/* Whether the world is small enough to ask. */
bool order_fits(const struct world_order *order);
/* Whether one rank's op is surely done when another's starts. */
bool order_is_sure(struct world *world, struct world_order *order, u32 first_rank, u32 first,
		   u32 second_rank, u32 second);

/* ---- verify_links ------------------------------------------------------- */

/*
 * Never more than n links between two clusters have data on the way at once, in
 * no run: proved from the order of ops, for what fits.
 */
void match_links(struct world *world, struct world_order *order);
/* The same counted in a run, of any size: data sets off, and has come. */
void links_reset(struct world *world);
void links_begin(struct world *world, u32 from, u32 to, u64 bytes);
void links_end(struct world *world, u32 from, u32 to, u64 bytes);
/* n of the case. */
u32 links_bound(const struct world *world);

/* The largest number of things of which none is before another. before[a * count + b]. */
u32 order_at_once(struct world *world, const bool *before, u32 count);

/* ---- verify_circuits ---------------------------------------------------- */

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

/*
 * In every run: each message with data lies between a connect and a release at both
 * its ends, the same ones; a node never asks for more than k circuits at once; and,
 * for what fits, there are never more than W.
 */
void match_circuits(struct world *world, struct world_order *order);
/* The same in one run, in which a circuit is up when both ends have asked for it. */
void verify_circuits_reset(struct world *world);
void verify_circuits_connect(struct world *world, u32 rank, u32 op);
void verify_circuits_release(struct world *world, u32 rank, u32 op);
void verify_circuits_send(struct world *world, u32 rank, u32 op);
void verify_circuits_arrive(struct world *world, u32 rank, u32 op);

/* One way of a circuit, as its one end sees it. */
struct light {
	struct {
		bool asked, lit;
		u32 connect;	/* the op that waits for it */
	} way[3];		/* both, out, in */
};

/* Ops that are surely done when op i of a schedule starts, `words` words each. */
u64 *order_in_rank(struct world *world, const struct coll_schedule *s, u32 words);

/* Something is going to happen. */
void world_happen(struct world *world, enum item_kind kind, u32 rank, u32 op);

/* Brings all ranks to the start of a run. */
void world_reset(struct world *world);
/* Lets everything happen that can, in random order. */
void world_drain(struct world *world);
/* Lets the frozen ranks go on. */
void world_thaw(struct world *world);
/* Ranks that have finished have the right result; all but frozen ones have finished. */
void world_judge(struct world *world);
/* Executes a reduction or a copy. */
void world_compute(struct world *world, u32 rank, u32 op);

/* Whether the algorithm promises that ranks which stand still are done without. */
void rescue_run(struct world *world, const struct verify_options *options);
/* A barrier's promise: nobody leaves before everybody has come. */
void barrier_run(struct world *world);

/* The defects there are, in words; ends with NULL. */
extern const char *const plant_names[];
/* Plants it somewhere; whether a place was found. */
bool plant_defect(struct world *world, const char *defect);

/*
 * Emits, matches and runs a case; one that all ranks refuse holds. False, with
 * world->failure filled in and the schedules still there, if it does not hold.
 */
bool verify_case(struct world *world, const struct verify_case *vcase,
		 const struct verify_options *options);
/* "allreduce ring: 5 ranks, count 11, in place, T=2": the case in words. */
const char *case_print(const struct verify_case *vcase, char *text, size_t bytes);
void world_free(struct world *world);

/* ---- verify_list -------------------------------------------------------- */

/* Which of all cases. */
struct verify_filter {
	int collective;			/* enum coll_collective, or -1 */
	const char *algorithm;		/* NULL: all */
	u32 first_rank, last_rank;	/* 0, 0: the usual rank counts */
};

/* All cases that pass, fewest ranks first. To be freed with memory_free(). */
struct verify_case *list_cases(const struct verify_filter *filter, bool quick, u32 *count);

#endif
