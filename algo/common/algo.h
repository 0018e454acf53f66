/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What an algorithm is: a name, what it is good for, and a function that emits
 * one rank's schedule. It knows nothing of sockets, time or memory.
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
 *   allreduce, scan, exscan   n               n
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
 * call_block() and friends of blocks.h and need not tell them apart.
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
	 * v forms: per rank, on every rank; but gatherv and scatterv may have
	 * NULL off the root, then only algorithms without `needs_counts` fit.
	 * Displacements: gatherv OUT, scatterv IN (root), allgatherv OUT;
	 * reduce_scatter has none, its blocks follow each other.
	 */
	const u64 *counts, *displs;
	/* alltoallv: what goes to and what comes from each rank. */
	const u64 *send_counts, *send_displs, *recv_counts, *recv_displs;
	/*
	 * Per rank the cluster it is in: 0 .. clusters - 1, none of them empty.
	 * NULL, and then `clusters` is not looked at: all ranks are near each other.
	 */
	const u32 *cluster;
	u32 clusters;
	/* Per rank its k, where nodes differ; NULL: all have tuning->ports. */
	const u32 *ports;
	/* What the algorithm's share() has made for all ranks; NULL: each makes it itself. */
	const void *shared;
};

/*
 * How an algorithm is tuned: `NAME:T=2,segment=64K`. COLL_UNSET: the algorithm
 * chooses for itself. Start from COLL_TUNING_UNSET.
 */
#define COLL_UNSET (~(u64)0)
struct coll_tuning {
	u64 redundancy; /* T: redundant exchanges of the butterfly */
	u64 segment;	/* bytes a pipelined message carries at most */
	u64 bound;	/* alltoallv bruck: elements of a block that go round */
	u64 lanes;	/* n: links in use at once between two clusters */
	u64 relays;	/* redundant exchanges on the butterfly's way: after so many of it */
	u64 radix;	/* of a de Bruijn graph: how many each rank sends to */
	/*
	 * Circuits, if `ports` is set: any algorithm's schedule gets the ops that ask
	 * for them and give them back (algo/circuits/circuits.h).
	 */
	u64 ports;		/* k: circuits a node can hold at once */
	u64 wavelengths;	/* W: circuits there can be at once in all */
	u64 ahead;		/* enum coll_ahead */
	u64 simplex;		/* 1: a circuit goes one way, a port is a sender and a receiver */
};
#define COLL_TUNING_UNSET \
	((struct coll_tuning){ COLL_UNSET, COLL_UNSET, COLL_UNSET, COLL_UNSET, COLL_UNSET, \
			       COLL_UNSET, COLL_UNSET, COLL_UNSET, COLL_UNSET, COLL_UNSET })

/* When circuits are asked for. */
enum coll_ahead {
	COLL_AHEAD_NOT,		/* "naive": each for one message, when it is to go */
	COLL_AHEAD_TURNS,	/* paper 5: k together, when the last k have been used */
	COLL_AHEAD_PORTS,	/* each as soon as a port is free; kept for the next round */
	COLL_AHEADS,
};

/* Noise of one kind: so often on each rank (or link), each time so long; seconds. */
struct coll_noise_rate {
	double rate, duration;
};
enum { COLL_NOISES_MAX = 8 };

/* What is known of the machine; all zero: nothing. */
struct coll_machine {
	double alpha;	 /* seconds a message takes */
	double overhead; /* of these, those in which its sender can do nothing else */
	double beta;	 /* seconds a byte takes */
	double byte_gap; /* of these, those in which its sender can send no other (LogGP's G) */
	double gamma;	 /* seconds a byte's reduction takes */
	double crowding; /* ranks that share a core; up to 1: none do */
	/* Between clusters; zero: as inside. */
	double wan_alpha;	/* seconds a message takes */
	double wan_beta;	/* seconds a byte takes, of all that goes one way together */
	/*
	 * What overload costs: links that together could carry x times what the
	 * WAN does carry 1 / (1 + congestion (x - 1)) of it.
	 */
	double congestion;
	/* Noise; the first without rate ends it. */
	struct coll_noise_rate noise[COLL_NOISES_MAX];	/* of a rank */
	struct coll_noise_rate link_noise;		/* of a message */
	bool noise_event;	/* it counts where it begins inside an op only: paper 1 */
	double grain;		/* seconds that ranks compute before a call; 0: nothing is known */
	double delta;		/* seconds from asking for a circuit until it is lit */
};

/*
 * What of an algorithm is regular: every rank's schedule has the same ops with the same
 * bytes and waits, and its peers follow from the rank by one formula for each op (rank + d
 * or rank ^ x, modulo the ranks). The simulator keeps one such schedule for all ranks, and
 * checks the claim on a few of them.
 */
enum coll_regular {
	COLL_REGULAR = 1 << 0,			/* with more than one rank, and ... */
	COLL_REGULAR_POWER_OF_TWO = 1 << 1,	/* ... only with 2^k ranks */
	COLL_REGULAR_EVEN_PARTS = 1 << 2,	/* ... only if the ranks divide the count */
};

struct coll_algo {
	enum coll_collective collective;
	const char *name;
	const char *about;	/* one line: how it works and what it costs */
	bool ordered;		/* keeps rank order: fits operations that do not commute */
	bool needs_counts;	/* gatherv, scatterv: counts must be known on every rank */
	bool power_of_two;	/* fits only 2^k ranks */
	bool clusters;		/* made for clusters: at most n links between any two */
	bool baseline;		/* to compare with: chosen by name only */
	u32 regular;		/* enum coll_regular; 0: not regular */
	u32 table_bytes;		/* bytes of b->tables it needs for each rank */
	u32 shared;		/* bytes for each rank of what share() makes */
	const char *options;	/* tuning it understands: "T", "segment", ... or NULL */
	/*
	 * Why it cannot serve this call beyond the flags above, in words; NULL:
	 * it can. The function itself may be NULL.
	 */
	const char *(*refuses)(const struct coll_call *call, const struct coll_tuning *tuning);
	/* Seconds it should take: the formula in the head of its file. */
	double (*cost)(const struct coll_call *call, const struct coll_tuning *tuning,
		       const struct coll_machine *machine);
	void (*emit)(struct coll_build *b, const struct coll_call *call,
		     const struct coll_tuning *tuning);
	/* What is the same for all ranks and long in the making, for call->shared; or NULL. */
	void (*share)(const struct coll_call *call, const struct coll_tuning *tuning,
		      void *memory);
};

/* --- list.c: generated by list.awk ---------------------------------------- */

/* All algorithms, by collective and name; the array ends with NULL. */
extern const struct coll_algo *const coll_algos[];

/* --- find.c -------------------------------------------------------------- */

extern const char *const coll_collective_names[COLL_COLLECTIVES];

/* The algorithm of this name, or NULL. */
const struct coll_algo *coll_algo_find(enum coll_collective collective, const char *name);

/* Why this algorithm cannot serve this call, circuits aside; NULL: it can. */
const char *coll_algo_refuses_plain(const struct coll_algo *algo, const struct coll_call *call,
				    const struct coll_tuning *tuning);

/* The same with the circuits that `tuning` or the call asks for. */
const char *coll_algo_refuses(const struct coll_algo *algo, const struct coll_call *call,
			      const struct coll_tuning *tuning);

/* --- choice.c ------------------------------------------------------------ */

/*
 * The algorithm for this call: the one with the least predicted cost among
 * those that fit; of several clusters, among those made for them, if any fits. The
 * same on every rank: it looks only at what all ranks of a call agree on. Zero
 * fields of `machine` are replaced by those of a usual one.
 */
const struct coll_algo *coll_algo_choose(const struct coll_call *call,
					 const struct coll_tuning *tuning,
					 const struct coll_machine *machine);

/*
 * n, the links that one call should use at once between two clusters: as many as
 * fill the WAN and no more, at most the ranks of the smallest cluster.
 */
u32 coll_lanes_choose(const struct coll_call *call, const struct coll_machine *machine);

/*
 * The segment of an algorithm made for clusters, where `tuning` leaves it open: a power
 * of two of parts, by the algorithm's own cost. Of less than 16 KB it stays open.
 */
void coll_segment_choose(const struct coll_algo *algo, const struct coll_call *call,
			 const struct coll_machine *machine, struct coll_tuning *tuning);

/*
 * T and relays of the butterflies with redundant exchanges, where `tuning` leaves
 * them open: those with the least time under the machine's noise. Where nothing is
 * known of noise they stay open.
 */
void coll_redundancy_choose(const struct coll_algo *algo, const struct coll_call *call,
			    const struct coll_machine *machine, struct coll_tuning *tuning);

/* --- emit.c -------------------------------------------------------------- */

/* As coll_algo_emit(), of a tuning in which `ports` is but a hint. */
int coll_algo_emit_plain(const struct coll_algo *algo, const struct coll_call *call,
			 const struct coll_tuning *tuning, void *memory, u64 bytes,
			 struct coll_schedule **schedule);

/*
 * Emits and finishes: checks `refuses`, states buffers and reduction, calls
 * emit, finishes. Returns 0, -EOPNOTSUPP (refused), or the builder's error
 * (-ENOSPC: more memory, please).
 */
int coll_algo_emit(const struct coll_algo *algo, const struct coll_call *call,
		   const struct coll_tuning *tuning, void *memory, u64 bytes,
		   struct coll_schedule **schedule);

#endif
