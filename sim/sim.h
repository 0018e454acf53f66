/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The simulator: schedules as algo/ emits them, executed in virtual time. Its parameters are
 * those of LogGOPSim: alpha is L, `send` and `recv` are o, `gap` is g, `nic` is G, `eager`
 * is S. docs/guide/simulator.md explains the model and compares it with other simulators.
 *
 *	struct sim_job job = { .algo = ..., .call = ..., .tuning = ... };
 *	struct sim_model model = { .costs = { .alpha = 1e-6, ... } };
 *
 *	sim_open(&job, &sim, why, sizeof(why));
 *	sim_run(sim, &model, seed, SIM_ANY_PATH, &outcome, NULL);	// any number of times
 *	sim_close(sim);
 *
 * The same job, model and seed give the same times, to the last bit, by either path and with
 * any number of threads.
 */
#ifndef COLL_SIM_H
#define COLL_SIM_H

#include <stdio.h>

#include "algo/common/algo.h"
#include "uapi/coll_noise.h"

/* Virtual time in picoseconds; 0: the earliest start of a rank. It ends after 2^61, 26 days. */
typedef s64 sim_time;
#define SIM_SECOND 1000000000000LL
#define SIM_NEVER INT64_MAX

static inline double sim_seconds(sim_time time)
{
	return (double)time / SIM_SECOND;
}

/* ---- the model ----------------------------------------------------------- */

/*
 * Costs in seconds. A message of n bytes takes alpha + n beta from the end of its send to its
 * arrival. A rank has one CPU, which serves ops in the order in which they become ready. Ops
 * without CPU cost do not wait for it.
 */
struct sim_costs {
	double alpha;		/* latency */
	double beta;		/* per byte transported */
	double gamma;		/* CPU: per byte reduced */
	double copy;		/* CPU: per byte copied */
	/*
	 * CPU: per byte of a user-defined reduction; 0: as gamma. Compute time is such a
	 * reduction without data (sim/tape.h).
	 */
	double user;
	double send;		/* CPU: per message sent (LogGP's o) */
	double recv;		/* CPU: per message received */
	/*
	 * CPU: per redundant message sent: an optional send of a result that the peer may
	 * have already.
	 */
	double redundant;
	/* NIC: how long a message occupies the sender's and the receiver's NIC. */
	double gap;		/* per message (g) */
	double nic;		/* per byte (G) */
	double byte_overhead;	/* CPU: per byte sent, received (O); SIM_MESSAGE_GOAL only, else 0 */
	/* Bytes; longer messages use rendezvous: they wait for the receive, alpha each way. */
	u64 eager;
};
#define SIM_ALWAYS_EAGER (~(u64)0)

/* What messages cost that meet, and what a rendezvous does. See docs/guide/simulator.md. */
enum sim_message_semantics {
	/* Each passes the sender's NIC and the receiver's; a long one asks first. */
	SIM_MESSAGE_NIC,
	/*
	 * LogGOPSim's rules: the receiver's CPU takes all bytes, nic each, one message after the
	 * other; beta is not used. By events only, with one kind of link, without circuits.
	 */
	SIM_MESSAGE_GOAL,
	SIM_MESSAGE_SEMANTICS,
};
extern const char *const sim_message_semantics_names[SIM_MESSAGE_SEMANTICS];

/* How noise delays an op. See docs/guide/simulator.md. */
enum sim_semantics {
	SIM_EVENT,	/* an event that starts inside the op makes it longer */
	SIM_OCCUPANCY,	/* during an event the rank does nothing */
	SIM_GOAL,	/* LogGOPSim's rule, for comparisons */
	SIM_SEMANTICS,
};
extern const char *const sim_semantics_names[SIM_SEMANTICS];

/*
 * A model of uapi/coll_noise.h; period 0: no noise. Its seed is combined with that of the run.
 * Without `longest`, lengths are cut at 100 times their mean.
 */
struct sim_noise {
	struct coll_noise_model model;
	const struct coll_noise_span *table;
	u32 spans;
};

/* In seconds; each rank has a random phase. */
static inline struct sim_noise sim_periodic(double period, double duration)
{
	return (struct sim_noise){ .model = {
					   .arrival = COLL_NOISE_PERIODIC,
					   .phase = COLL_NOISE_RANDOM,
					   .period = (u64)(period * 1e9 + 0.5),
					   .duration = (u64)(duration * 1e9 + 0.5),
				   } };
}

/* `rate` events per second. */
static inline struct sim_noise sim_poisson(double rate, double duration)
{
	struct sim_noise noise = sim_periodic(1 / rate, duration);

	noise.model.arrival = COLL_NOISE_POISSON;
	return noise;
}

enum { SIM_SOURCES_MAX = 4 };

/*
 * Links of several kinds: ranks are in areas (nodes, racks, clusters), and the link from area to
 * area has its own costs instead of those of sim_costs. All messages of a link share its
 * trunk, if it has one.
 */
struct sim_link {
	double alpha, beta;	/* seconds, seconds per byte */
	double trunk;		/* seconds per byte of all messages together; 0: no limit */
	double loss;		/* loss by overload: see sim/trunk.h */
};

struct sim_network {
	u32 areas;
	const u32 *area;		/* of each rank */
	const struct sim_link *link;	/* link[from * areas + to] */
};

/*
 * Nodes: their ranks exchange messages through memory and share the node's NIC, which messages to
 * other nodes pass one after the other, out of one node and into the other, each for
 * gap + n * nic seconds.
 */
struct sim_nodes {
	u32 nodes;
	const u32 *node;	/* of each rank: 0 .. nodes - 1 */
	/* Of each rank: ranks of a node share a domain if theirs are equal. NULL: there are none. */
	const u32 *domain;
	/* Costs inside a domain, and inside a node: alpha without the CPU time `overhead` of each end. */
	struct coll_level_cost inside[COLL_LEVEL_CLUSTER];
};

/*
 * Circuits: a message with data needs a circuit that its schedule has requested, otherwise the
 * run fails. SIM_EVENTS only. A circuit is up `setup` seconds after both ends requested it.
 */
struct sim_circuits {
	double setup;		/* reconfiguration delay delta: seconds, more than 0 */
	u32 ports;		/* k: 1 .. COLL_PORTS_MAX; in simplex k for each direction */
	const u32 *of_rank;	/* k of each rank, at most `ports`, or NULL */
	u32 wavelengths;	/* W: more circuits at once are an error; 0: no limit */
	double failures;	/* probability that a set-up fails and is retried; below 1 */
};

/*
 * Fits the measurement of paper 2: with 1 Gbit/s at the ends of a trunk of 10 Gbit/s, 8 flows
 * are better than 16. Any loss above 0.42 gives this.
 */
#define SIM_TCP_LOSS 0.5

struct sim_model {
	struct sim_costs costs;
	enum sim_message_semantics messages;
	enum sim_semantics semantics;
	struct sim_noise os[SIM_SOURCES_MAX];	/* of a rank; an entry with period 0 ends the list */
	const bool *noisy;			/* per rank: only these have noise; NULL: all */
	struct sim_noise link;			/* of messages, independent of each other */
	const bool *bad_links;			/* per rank: only messages of and to these have it; NULL: all */
	const double *slowness;			/* a factor for each rank's CPU costs, or NULL */
	const struct sim_network *network;	/* links of several kinds, or NULL */
	const struct sim_nodes *nodes;		/* or NULL: each rank has a NIC of its own */
	const struct sim_circuits *circuits;	/* or NULL: connects cost nothing */
	const sim_time *start;			/* start of each rank; NULL: at 0 */
};

/* Costs of a machine without gaps, overheads or rendezvous (paper 1). */
#define SIM_COSTS(a, b, c) \
	((struct sim_costs){ .alpha = (a), .beta = (b), .gamma = (c), .eager = SIM_ALWAYS_EAGER })

/* Why the model is invalid, in words; NULL: it is valid. */
const char *sim_model_refuses(const struct sim_model *model);

/* ---- running ------------------------------------------------------------- */

struct sim_job {
	const struct coll_algo *algo;
	struct coll_call call;		/* .rank is not used */
	struct coll_tuning tuning;
};

enum sim_path {
	SIM_ANY_PATH,	/* levels if possible, else events */
	SIM_LEVELS,	/* one pass over all ranks for each round: fastest */
	SIM_EVENTS,	/* an event queue: general */
};

struct sim_outcome {
	sim_time finish;	/* of the last rank */
	u32 last;		/* the rank that finishes last */
	sim_time others;	/* of the last rank without noise, where only some have noise: sim_repeat() */
	enum sim_path path;
	u64 messages;		/* sent */
	u64 events;		/* sends, receives, messages, reductions: LogGOPSim's count */
	u64 setups;		/* of circuits; and failed attempts */
	u64 setups_failed;
	u32 circuits;		/* maximum at once, from set-up to release */
	u64 nic_sent, nic_received;	/* of nodes: most bytes that leave one, that enter one */
};

struct sim;

/*
 * Prepares a job: its schedules, each shape once. -EOPNOTSUPP: the
 * algorithm refuses the call; -EINVAL: sends and receives do not match;
 * -ENOMEM. `why` says more.
 */
int sim_open(const struct sim_job *job, struct sim **sim, char *why, size_t bytes);
void sim_close(struct sim *sim);

/*
 * The same from existing schedules of all ranks, checked, in order of ranks. Their slots need
 * not follow the list, and an op's `unless` may come after it.
 */
int sim_open_schedules(const struct coll_schedule *const *schedule, u32 ranks, struct sim **sim,
		       char *why, size_t bytes);

/*
 * One run. `finish`, if not NULL, gets each rank's time. -EOPNOTSUPP: the path does not
 * support the job; -EDEADLK: ranks wait forever (outcome->last is one of them);
 * -ENOTCONN: a message has no circuit; -EBUSY: more circuits than ports or
 * wavelengths; -EOVERFLOW: it does not end in virtual time, or an op takes more than 2^58, 3 days.
 */
int sim_run(struct sim *sim, const struct sim_model *model, u64 seed, enum sim_path path,
	    struct sim_outcome *outcome, sim_time *finish);

/*
 * One run with real bytes: in[] and out[] are each rank's buffers, as large as
 * algo.h says. By events only; the job's schedules must still be there.
 * -EOPNOTSUPP: also for user-defined functions and types.
 */
int sim_run_bytes(struct sim *sim, const struct sim_model *model, u64 seed,
		  const void *const *in, void *const *out, struct sim_outcome *outcome);

/*
 * One run by events with a log of each op, 48 bytes per op. The log is invalid after
 * sim_close().
 */
struct sim_log;
int sim_run_logged(struct sim *sim, const struct sim_model *model, u64 seed,
		   struct sim_outcome *outcome, struct sim_log **log);

/*
 * The same with a log of some ranks' ops alone, watched[rank]: of 2^20 ranks that of all is
 * gigabytes. It has neither a timeline nor a path.
 */
int sim_run_watched(struct sim *sim, const struct sim_model *model, u64 seed, const bool *watched,
		    struct sim_outcome *outcome, struct sim_log **log);
void sim_log_free(struct sim_log *log);

/* A timeline of all ranks for chrome://tracing, Perfetto or speedscope. 0 or -EIO. */
int sim_log_trace(const struct sim_log *log, FILE *to);

/*
 * The critical path from the start to the end of the last rank. A stage is CPU time of an op of
 * `rank`, or (from != rank) a message in flight to receive `op`. free() it.
 */
struct sim_stage {
	u32 rank, op, from;
	sim_time begin, end;
	sim_time late;		/* part of it: noise, congestion */
};
int sim_log_path(const struct sim_log *log, struct sim_stage **path, u32 *count);

/*
 * The CPU time of a rank until it was done. In the rest of that time it waited, perhaps under
 * noise.
 */
struct sim_share {
	sim_time done;
	sim_time computing;	/* user-defined reductions, which stand for compute time */
	sim_time working;	/* other ops, without noise */
	sim_time late;		/* added by noise; not to sends */
};
struct sim_share sim_log_share(const struct sim_log *log, u32 rank);

/*
 * `runs` runs, the i-th with seed sim_seed(seed, i); outcome[i] is its outcome.
 * On up to `threads` cores. `progress`, if not NULL, is called with the number of completed
 * runs, by one thread at a time; if it returns false the call ends with -ECANCELED.
 */
int sim_repeat(struct sim *sim, const struct sim_model *model, u64 seed, u32 runs, u32 threads,
	       enum sim_path path, struct sim_outcome *outcome,
	       bool (*progress)(void *argument, u32 done), void *argument);

u64 sim_seed(u64 seed, u64 run);

/* The memory of a job. */
struct sim_size {
	u32 ranks, shapes;
	u64 bytes;		/* its schedules, all ranks together */
	u64 run_bytes;		/* of a run by events, without messages in flight */
};
void sim_size(const struct sim *sim, struct sim_size *size);

#endif
