/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What an algorithm is: a name, a line about it, the calls that it fits, a function that emits
 * one rank's schedule, and its cost. It knows nothing of sockets, time or memory.
 *
 * The heads of the algorithms give costs in the terms of the LogP family:
 *
 *	p	ranks;  K  exchanges of a butterfly of 2^K ranks;  c  clusters
 *	n	bytes, of what the head says;  S  segments of them
 *	alpha	seconds from the start of a send to the end of its receive, without bytes
 *	beta	seconds per byte on the way;  gamma  seconds per byte reduced or copied
 *	o	seconds of a sender per message (overhead);  G  per byte (gap)
 *	A	alpha across the WAN;  B_wan  seconds per byte over all lanes together
 */
#ifndef COLL_ALGO_H
#define COLL_ALGO_H

#include "core/build.h"

enum coll_collective {
	COLL_BARRIER,
	COLL_BCAST,
	COLL_GATHER,
	COLL_GATHERV,
	COLL_SCATTER,
	COLL_SCATTERV,
	COLL_ALLGATHER,
	COLL_ALLGATHERV,
	COLL_ALLTOALL,
	COLL_ALLTOALLV,
	COLL_REDUCE,
	COLL_ALLREDUCE,
	COLL_REDUCE_SCATTER,
	COLL_REDUCE_SCATTER_BLOCK,
	COLL_SCAN,
	COLL_EXSCAN,
	COLL_COLLECTIVES,
};

/* Point to point: calls without an algorithm, whose numbers and names follow. */
#define COLL_CALL_SEND	((enum coll_collective)COLL_COLLECTIVES)
#define COLL_CALL_RECV	((enum coll_collective)(COLL_COLLECTIVES + 1))
#define COLL_CALLS	(COLL_COLLECTIVES + 2)

/*
 * Levels nest: a cluster has nodes, a node has domains (a NUMA node or an L3 cache), a domain has
 * ranks. A level groups members into parts; the members of the lowest are the ranks, those of
 * another are the parts of the level below. Parts are numbered by their lowest ranks. A level
 * that groups nothing, or has one part and nothing above, is left out.
 */
enum coll_level_kind {
	COLL_LEVEL_DOMAIN,
	COLL_LEVEL_NODE,
	COLL_LEVEL_CLUSTER,
	COLL_LEVELS_MAX,
};

struct coll_level {
	enum coll_level_kind kind;
	u32 members, parts;
	u32 smallest, largest;	/* members of a part */
	bool runs;		/* each part is a run of members, lower parts have lower ones */
	const u32 *part;	/* per member */
	const u32 *first;	/* per part, and one more: where its members begin in member[] */
	const u32 *member;	/* the members by part, ascending in each */
	const struct coll_level *of_ranks;	/* the same parts, with ranks for members */
};

/*
 * One rank's call. Counts and displacements are in elements. Buffers, with p
 * ranks, rank r, n = count:
 *
 *   collective       IN                       OUT
 *   barrier          -                        -
 *   bcast            -                        n (the data, on every rank)
 *   gather(v)        n: my block              root: p blocks (v: at displs)
 *   scatter(v)       root: p blocks           n: my block
 *   allgather(v)     n: my block              p blocks
 *   alltoall(v)      p blocks, one a rank     p blocks
 *   reduce           n                        root: n
 *   allreduce, scan  n                        n
 *   exscan           n                        n; rank 0: none
 *   reduce_scatter(_block)    p blocks        n: my block
 *
 * In place there is no IN:
 *   gather(v)        root: its block is in OUT already
 *   scatter(v)       root: its block stays in IN, there is no OUT at the root
 *   allgather(v)     my block is in OUT already
 *   alltoall(v), allreduce, reduce (root), scan, exscan: the input is in OUT
 *   reduce_scatter(_block): the input is in OUT (p blocks); my result goes to
 *                    the beginning of OUT, the rest of OUT is then undefined
 *   For reduce and gather `in_place` is set on the root only, likewise scatter.
 *
 * The forms without v are the v forms with equal counts: algorithms use
 * call_block() and the like of blocks.h and need not distinguish them.
 */
struct coll_call {
	enum coll_collective collective;
	u32 rank, ranks, root;
	u32 type;		/* enum coll_type, or COLL_OPAQUE_TYPE */
	u32 reduction;		/* enum coll_reduction */
	u32 element;		/* bytes of one element */
	bool commutative;
	bool in_place;
	u64 count;
	/*
	 * v forms: one for each rank, on every rank. gatherv and scatterv may have NULL
	 * on other ranks than the root; then only algorithms without `needs_counts` fit.
	 * Displacements: gatherv OUT, scatterv IN (root), allgatherv OUT;
	 * reduce_scatter has none, its blocks are contiguous.
	 */
	const u64 *counts, *displs;
	/* alltoallv: of the blocks to each rank and from each rank. */
	const u64 *send_counts, *send_displs, *recv_counts, *recv_displs;
	/*
	 * The cluster of each rank: 0 .. clusters - 1, no cluster is empty. NULL: all ranks
	 * are near each other, and `clusters` is not used.
	 */
	const u32 *cluster;
	u32 clusters;
	/*
	 * Levels, the lowest first; if there are several clusters, they are the last. Without levels
	 * below clusters there are none.
	 */
	const struct coll_level *level;
	u32 levels;
	/*
	 * A level algorithm's own view of the call (levels.h): `cluster` are the parts of this
	 * level, level[] those above, and `leader` says that one rank of each part communicates.
	 */
	const struct coll_level *near;
	bool leader;
	/* The ports k of each rank, where nodes differ; NULL: all have tuning->ports. */
	const u32 *ports;
	/* Result of the algorithm's share() for all ranks; NULL: each rank computes it. */
	const void *shared;
};

/* Seconds a byte where nobody knows: TCP and its copies. */
#define COLL_USUAL_BETA 0.25e-9

/*
 * How an algorithm is tuned: `NAME:T=2,segment=64K`. COLL_UNSET: the algorithm
 * chooses for itself. Start from COLL_TUNING_UNSET.
 */
#define COLL_UNSET (~(u64)0)
struct coll_tuning {
	u64 redundancy; /* T: redundant exchanges of the butterfly */
	u64 segment;	/* bytes a pipelined message carries at most */
	u64 bound;	/* alltoallv bruck: elements of a block that travel in rounds */
	u64 lanes;	/* n: links in use at once between two clusters */
	u64 relays;	/* relays: redundant exchanges in the middle of the butterfly */
	u64 radix;	/* of a de Bruijn graph: ranks that each rank sends to */
	u64 across;	/* of levels: the algorithm between nodes, a number of coll_across_names[] */
	u64 replicas;	/* ranks of a node that have its sum */
	/*
	 * Circuits, if `ports` is set: connect and release ops are added to any
	 * algorithm's schedule (algo/circuits/circuits.h).
	 */
	u64 ports;		/* k: circuits a node can hold at once */
	u64 wavelengths;	/* W: circuits at once in the whole network */
	u64 ahead;		/* enum coll_ahead */
	u64 simplex;		/* 1: a circuit has one direction, a port is a sender and a receiver */
	/* Ranks that are often late; COLL_NONE ends the list. */
#define COLL_LATE_MAX 4
	u32 late[COLL_LATE_MAX];
};
#define COLL_TUNING_UNSET \
	((struct coll_tuning){ COLL_UNSET, COLL_UNSET, COLL_UNSET, COLL_UNSET, COLL_UNSET, \
			       COLL_UNSET, COLL_UNSET, COLL_UNSET, COLL_UNSET, COLL_UNSET, COLL_UNSET, \
			       COLL_UNSET, { COLL_NONE, COLL_NONE, COLL_NONE, COLL_NONE } })

/* When circuits are requested. */
enum coll_ahead {
	COLL_AHEAD_NOT,		/* "naive": for each message, when it is ready */
	COLL_AHEAD_TURNS,	/* paper 5: k at once, when the last k have been used */
	COLL_AHEAD_PORTS,	/* each as soon as a port is free; kept for the next round */
	COLL_AHEADS,
};

/* Noise of one kind on each rank or link: events per second, seconds per event. */
struct coll_noise_rate {
	double rate, duration;
};
enum { COLL_NOISES_MAX = 8 };

/* The few ranks that others often wait for. */
struct coll_late {
	u32 ranks;		/* of the group whose ranks these are; 0: none is known */
	u32 rank[COLL_LATE_MAX];	/* COLL_NONE ends the list */
	double part, behind;	/* of its calls that such a rank begins late; seconds, on average */
	struct coll_noise_rate stops;	/* of such a rank in a call */
	bool alone;		/* no other rank has such noise: that of ranks is theirs */
	struct coll_noise_rate links;	/* of messages of and to such a rank; rate 0: its links are not bad */
	bool links_alone;	/* no others are: noise of links is theirs, as if all had it the less often */
	u32 peer;		/* only messages of and to this one; COLL_NONE: all */
};

/* To copy a shorter message to each rank of a node is as quick. */
enum { COLL_PUBLISHED_MIN = 16 << 10 };
/* One of at most so many bytes they read from one write: of few ranks, whose schedules are executed in order. */
enum { COLL_POSTED_MAX = 1024, COLL_POSTED_RANKS = 20 };

/* Parameters of the machine; zero: unknown. */
struct coll_machine {
	double alpha;	 /* seconds per message */
	double overhead; /* of these, seconds in which the sender can do nothing else (o) */
	double beta;	 /* seconds per byte */
	double byte_gap; /* of these, seconds in which the sender can send no other (G) */
	double gamma;	 /* seconds per byte reduced */
	double byte_work; /* seconds in which cores work for a byte between nodes, at both ends together */
	double crowding; /* ranks per core; up to 1: no core is shared */
	double alike; /* calls like this one, of other ranks, that these cores have at the same time: lanes; 0: one */
	double core_delay; /* seconds that a message waits for its receiver's core, where others wait, too; 0: none */
	double published; /* bytes that ranks of a node get by one copy that all of them read; 0: each gets its own */
	bool copied;	 /* the ranks' cores copy the bytes, as inside a node; no wire does it beside them */
	/* Below one switch, of several that a cluster has; zero: as between switches. */
	double switch_alpha, switch_beta;
	/* Between clusters; zero: as inside. */
	double wan_alpha;	/* seconds per message */
	double wan_beta;	/* seconds per byte of all links together, in one direction */
	/*
	 * Loss by overload: links that together offer x times the WAN's bandwidth
	 * carry 1 / (1 + congestion (x - 1)) of it.
	 */
	double congestion;
	/*
	 * Noise; an entry with rate 0 ends the list. With a duration, and no rate, an option has
	 * said that there is none.
	 */
	struct coll_noise_rate noise[COLL_NOISES_MAX];	/* of a rank */
	struct coll_noise_rate link_noise;		/* of a message */
	/* Links inside a node, and inside a domain; zero: usual ones. */
	struct coll_level_cost {
		double alpha, overhead, beta, byte_gap;
	} inside[COLL_LEVEL_CLUSTER];
	struct coll_late late;
	bool noise_event;	/* an event counts only if it begins inside an op: paper 1 */
	double grain;		/* seconds that ranks compute before a call; 0: unknown */
	double delta;		/* reconfiguration delay: seconds from a request to the circuit up */
};

/*
 * Whether an algorithm is regular: each rank's schedule has the same ops with the same
 * bytes and waits, and its peers follow from the rank by one formula for each op (rank + d
 * or rank ^ x, modulo the ranks). The simulator keeps one such schedule for all ranks, and
 * checks the claim on a few of them.
 */
enum coll_regular {
	COLL_REGULAR = 1 << 0,			/* with more than one rank, and ... */
	COLL_REGULAR_POWER_OF_TWO = 1 << 1,	/* ... only with 2^k ranks */
	COLL_REGULAR_EVEN_PARTS = 1 << 2,	/* ... only if the ranks divide the count */
	/*
	 * On levels of coll_levels_are_even(): the schedules of ranks with one index in the parts of
	 * the highest level are so, and their peers also by rank + d modulo a part's ranks.
	 */
	COLL_REGULAR_NODES = 1 << 3,
};

struct coll_algo {
	enum coll_collective collective;
	const char *name;
	const char *about;	/* one line: how it works and what it costs */
	bool ordered;		/* keeps rank order: fits operations that do not commute */
	bool needs_counts;	/* gatherv, scatterv: counts must be known on every rank */
	bool power_of_two;	/* fits only 2^k ranks */
	bool clusters;		/* made for clusters: at most n links between any two */
	bool levels;		/* made for nested levels: needs at least one below clusters */
	bool neighbours;	/* a rank sends to neighbours only: one stream leaves a node */
	bool baseline;		/* for comparison: chosen by name only */
	u32 regular;		/* enum coll_regular; 0: not regular */
	u32 table_bytes;		/* bytes of b->tables for each rank */
	u32 shared;		/* bytes of the result of share() for each rank */
	const char *options;	/* its tuning options: "T", "segment", ... or NULL */
	/*
	 * Why the algorithm cannot serve this call, beyond the flags above, in words;
	 * NULL: it can. The function itself may be NULL.
	 */
	const char *(*refuses)(const struct coll_call *call, const struct coll_tuning *tuning);
	/* Predicted seconds: the formula at the head of its file. */
	double (*cost)(const struct coll_call *call, const struct coll_tuning *tuning,
		       const struct coll_machine *machine);
	void (*emit)(struct coll_build *b, const struct coll_call *call,
		     const struct coll_tuning *tuning);
	/* Computes call->shared: equal on all ranks, and expensive. May be NULL. */
	void (*share)(const struct coll_call *call, const struct coll_tuning *tuning,
		      void *memory);
};

/* --- list.c: generated by list.awk ---------------------------------------- */

/* All algorithms, by collective and name; the array ends with NULL. */
extern const struct coll_algo *const coll_algos[];

/* --- find.c -------------------------------------------------------------- */

extern const char *const coll_collective_names[COLL_CALLS];

/* Whether the call is one of point to point. */
static inline bool coll_call_is_message(const struct coll_call *call)
{
	return call->collective >= COLL_COLLECTIVES;
}

/* The algorithm of this name, or NULL. */
const struct coll_algo *coll_algo_find(enum coll_collective collective, const char *name);

/* Why this algorithm cannot serve this call, circuits aside; NULL: it can. */
const char *coll_algo_refuses_plain(const struct coll_algo *algo, const struct coll_call *call,
				    const struct coll_tuning *tuning);

/* The same with the circuits of `tuning` or the call. */
const char *coll_algo_refuses(const struct coll_algo *algo, const struct coll_call *call,
			      const struct coll_tuning *tuning);

/* --- choice.c ------------------------------------------------------------ */

/*
 * The algorithm for this call: the one with the least predicted cost among
 * those that fit; with several clusters, among those made for clusters if any fits. The
 * same on every rank: the choice uses only what all ranks of a call agree on. Zero
 * fields of `machine` are replaced by those of a usual one.
 */
const struct coll_algo *coll_algo_choose(const struct coll_call *call,
					 const struct coll_tuning *tuning,
					 const struct coll_machine *machine);

/* The seconds that this choice is predicted to take: by which the above compares. */
double coll_algo_predict(const struct coll_algo *algo, const struct coll_call *call,
			 const struct coll_tuning *tuning, const struct coll_machine *machine);

/* The same with usual numbers of TCP for what is not known. */
struct coll_machine coll_machine_or_usual(const struct coll_machine *machine);

/*
 * n, the links that one call should use at once between two clusters: enough to fill the
 * WAN, at most the ranks of the smallest cluster.
 */
u32 coll_lanes_choose(const struct coll_call *call, const struct coll_machine *machine);

/*
 * Sets the segment of an algorithm that has the option if `tuning` does not, by its own cost: parts of
 * at least 8 KB. Of less than 16 KB it is not set.
 */
void coll_segment_choose(const struct coll_algo *algo, const struct coll_call *call,
			 const struct coll_machine *machine, struct coll_tuning *tuning);

/*
 * Sets T and relays of the butterflies with redundant exchanges if `tuning` does not: those
 * with the least predicted time under the machine's noise. Without known noise they are not
 * set.
 */
void coll_redundancy_choose(const struct coll_algo *algo, const struct coll_call *call,
			    const struct coll_machine *machine, struct coll_tuning *tuning);

/*
 * Sets the late ranks of an algorithm that takes some, and the radix of their tree, if `tuning` does
 * not and the machine knows such ranks of this group.
 */
void coll_late_choose(const struct coll_algo *algo, const struct coll_call *call,
		      const struct coll_machine *machine, struct coll_tuning *tuning);

/*
 * Sets all of these that `tuning` leaves open. To be called with the algorithm that was chosen, or
 * named, before it is emitted.
 */
void coll_tuning_choose(const struct coll_algo *algo, const struct coll_call *call,
			const struct coll_machine *machine, struct coll_tuning *tuning);

/* --- late.c -------------------------------------------------------------- */

/* "3+17"; "" if there is none. 48 bytes hold all. Returns `text`. */
const char *coll_late_print(const u32 rank[COLL_LATE_MAX], char *text, size_t bytes);
/* Which links of a rank are bad: "its links", "its link to rank 5". */
const char *coll_late_links_print(const struct coll_late *late, char *text, size_t bytes);

/* --- emit.c -------------------------------------------------------------- */

/*
 * So many bytes of its buffers a rank needs, by the table above; of a message one buffer alone. Known before
 * there is a schedule. Costs a look at all counts.
 */
void coll_call_buffers(const struct coll_call *call, u64 *in, u64 *out);

/* As coll_algo_emit(), but `ports` is only a hint: no circuits are added. */
int coll_algo_emit_plain(const struct coll_algo *algo, const struct coll_call *call,
			 const struct coll_tuning *tuning, void *memory, u64 bytes,
			 struct coll_schedule **schedule);

/*
 * Emits a whole schedule: checks coll_algo_refuses(), sets buffers and reduction, calls
 * emit(), finishes. Returns 0, -EOPNOTSUPP (refused), or the builder's error (-ENOSPC: retry
 * with more memory).
 */
int coll_algo_emit(const struct coll_algo *algo, const struct coll_call *call,
		   const struct coll_tuning *tuning, void *memory, u64 bytes,
		   struct coll_schedule **schedule);

#endif
