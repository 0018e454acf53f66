/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Circuits for any algorithm. Three steps, the same on each rank:
 *
 *  rounds	All ranks' schedules are executed in lockstep, which gives each message its
 *		round.
 *  sessions	Rounds are grouped into *epochs*, as many as fit the ports of every node; a
 *		round that does not fit is split (edges are coloured first fit, as many
 *		colours in an epoch as fit). A session is one circuit from the first to the
 *		last of the consecutive epochs that use it.
 *  ports	Sessions get ports as values get registers: in order of epochs each takes, at
 *		both its ends, the port that is free first. The wavelengths of the network
 *		are ports of one more node.
 *
 * A session's connect waits for the release of the session before it on its port, its sends wait
 * for the connect, its release for all its messages. So a node of k ports never requests more
 * than k circuits. No deadlock: an op needs only ops of its own epoch and of earlier ones, and
 * all circuits of an epoch fit at once when those of earlier epochs are released.
 *
 * Cost: time and memory of all ranks' schedules, on each rank, once for a schedule.
 * docs/guide/circuits.md has the results.
 */
#ifndef COLL_CIRCUITS_H
#define COLL_CIRCUITS_H

#include "algo/common/algo.h"

/* Memory that is handed out and never given back. */
struct coll_arena {
	u8 *at;
	u64 left;
};

/* NULL: not enough; ask the caller for more memory (-ENOSPC). */
void *coll_arena_get(struct coll_arena *arena, u64 count, u64 size);
/* The same, all zero. */
void *coll_arena_get_zero(struct coll_arena *arena, u64 count, u64 size);

/* ---- rounds -------------------------------------------------------------- */

struct coll_round_message {
	u32 from, to;
	u32 send, recv;		/* the ops at its two ends */
	u64 bytes;
	u32 round, epoch;
	u32 session;		/* COLL_NONE: without bytes it needs no circuit */
	u32 started;		/* ends that are ready */
};

/* An event of the lockstep execution, in order: a local op, or (rank COLL_NONE) a message. */
struct coll_round_event {
	u32 rank, op;
};

struct coll_rounds {
	u32 ranks, rounds, messages, happenings;
	struct coll_schedule **schedule;	/* per rank */
	struct coll_plan *plan;			/* per rank */
	u32 **message_of;			/* per rank and op; COLL_NONE: a local op */
	struct coll_round_message *message;
	u32 *order;				/* messages by round, then by their ranks */
	u32 *first;				/* per round, and one past the last: in order[] */
	struct coll_round_event *happened;
};

/* All ranks' schedules, to be executed many times. 0, -ENOSPC, or the error of emitting. */
int coll_rounds_emit(const struct coll_algo *algo, const struct coll_call *call,
		     const struct coll_tuning *tuning, struct coll_arena *arena,
		     struct coll_rounds *rounds);
/*
 * `in_turn`: a rank sends one message a round, in the order of its list; else all that
 * are ready. 0, -ENOSPC; -EINVAL: the schedules never come to an end.
 */
int coll_rounds_play(struct coll_rounds *rounds, struct coll_arena *arena, bool in_turn);

/* ---- sessions and ports ---------------------------------------------------- */

struct coll_session {
	u32 end[2];		/* simplex: from, to; else the lower rank first */
	u32 first, last;	/* epochs */
	u32 before[2];		/* the session before it on its port, at either end */
	u32 before_in_all;	/* ... and on its wavelength; COLL_NONE: none */
	u32 before_same;	/* ... of the same circuit */
};

struct coll_circuits {
	struct coll_rounds rounds;
	struct coll_session *session;	/* in order of their first epochs */
	u32 sessions, epochs;
	u32 *epoch_of;			/* per round: its first */
	u32 ahead;			/* enum coll_ahead */
	bool simplex;
};

int coll_circuits_plan(const struct coll_algo *algo, const struct coll_call *call,
		       const struct coll_tuning *tuning, struct coll_arena *arena,
		       struct coll_circuits *circuits);

/* As coll_algo_emit(), with circuits. */
int coll_circuits_emit(const struct coll_algo *algo, const struct coll_call *call,
		       const struct coll_tuning *tuning, void *memory, u64 bytes,
		       struct coll_schedule **schedule);

/* Why circuits cannot be planned for this; NULL: they can. */
const char *coll_circuits_refuse(const struct coll_algo *algo, const struct coll_call *call,
				 const struct coll_tuning *tuning);

/* ---- costs ------------------------------------------------------------------ */

struct coll_circuits_cost {
	double seconds;		/* from a network without circuits to the end of the last rank */
	u32 setups;		/* in all */
	u32 most_setups;	/* of one node */
	bool fits;		/* all at once: if they are kept, the next call has no set-up */
};

/*
 * The cost of the schedule with its circuits: a message takes alpha + n beta, the next on the
 * same circuit follows n beta later, others of its rank an overhead later. The arithmetic is
 * the simulator's.
 */
int coll_circuits_cost(const struct coll_algo *algo, const struct coll_call *call,
		       const struct coll_tuning *tuning, const struct coll_machine *machine,
		       void *memory, u64 bytes, struct coll_circuits_cost *cost);

/*
 * A lower bound for any schedule: one set-up, the latencies of k-ary growth, and the bytes
 * through one node's ports (docs/guide/circuits.md).
 */
double coll_circuits_bound(const struct coll_call *call, const struct coll_tuning *tuning,
			   const struct coll_machine *machine);

struct coll_circuits_choice {
	const struct coll_algo *algo;
	struct coll_tuning tuning;
	struct coll_circuits_cost cost;
	double bound;
};

/*
 * The cheapest algorithm, and radix, for the ports in `tuning`. -EOPNOTSUPP: none
 * fits; -ENOSPC: retry with more memory.
 */
int coll_circuits_choose(const struct coll_call *call, const struct coll_tuning *tuning,
			 const struct coll_machine *machine, void *memory, u64 bytes,
			 struct coll_circuits_choice *choice);

/* --- emit.c ----------------------------------------------------------------- */

#endif
