/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The simulator: schedules as algo/ emits them, in virtual time. What a model
 * means, and how well it agrees with what: docs/guide/simulator.md.
 *
 *	struct sim_job job = { .algo = ..., .call = ..., .tuning = ... };
 *	struct sim_model model = { .costs = { .alpha = 1e-6, ... } };
 *
 *	sim_open(&job, &sim, &error);
 *	sim_run(sim, &model, seed, SIM_ANY_PATH, &outcome);	// as often as liked
 *	sim_close(sim);
 *
 * The same job, model and seed give the same times, to the last bit, by
 * whatever path and with any number of threads.
 */
#ifndef COLL_SIM_H
#define COLL_SIM_H

#include <stdio.h>

#include "algo/common/algo.h"
#include "uapi/coll_noise.h"

/* Virtual time: picoseconds since the first rank could have begun. */
typedef s64 sim_time;
#define SIM_SECOND 1000000000000LL
#define SIM_NEVER INT64_MAX

static inline double sim_seconds(sim_time time)
{
	return (double)time / SIM_SECOND;
}

/* ---- the model ----------------------------------------------------------- */

/*
 * What things cost, in seconds. A message of n bytes is under way for
 * alpha + n beta. A rank has one CPU, which serves ops in the order in which
 * they become ready; what costs it nothing does not wait for it.
 */
struct sim_costs {
	double alpha;		/* latency */
	double beta;		/* a byte's transport */
	double gamma;		/* CPU: a byte's reduction */
	double copy;		/* CPU: a byte's copy */
	/*
	 * CPU: a byte of a reduction of the application's own; 0: as gamma. Computing
	 * is one without data (sim/tape.h).
	 */
	double user;
	double send;		/* CPU: a message sent (LogGP's o) */
	double recv;		/* CPU: a message received */
	/*
	 * CPU: a redundant message sent, one that hands on a result which
	 * others may have as well (optional, after any of several ops).
	 */
	double redundant;
	/* NIC: how long a message keeps its sender's and its receiver's for itself. */
	double gap;		/* a message */
	double nic;		/* a byte of it */
	/* Longer messages wait for their receive to start: alpha there and alpha back. */
	u64 eager;
};
#define SIM_ALWAYS_EAGER (~(u64)0)

/* What noise means for an op. See docs/guide/simulator.md. */
enum sim_semantics {
	SIM_EVENT,	/* an event that starts inside the op makes it longer */
	SIM_OCCUPANCY,	/* during an event the rank does nothing */
	SIM_GOAL,	/* LogGOPSim's rule, for comparison with it */
	SIM_SEMANTICS,
};
extern const char *const sim_semantics_names[SIM_SEMANTICS];

/*
 * A model of uapi/coll_noise.h; a period of 0: no noise. Its seed counts
 * besides that of the run. Lengths without a `longest` are cut at 100 times
 * their mean.
 */
struct sim_noise {
	struct coll_noise_model model;
	const struct coll_noise_span *table;
	u32 spans;
};

/* In seconds; each rank at a phase of its own. */
static inline struct sim_noise sim_periodic(double period, double duration)
{
	return (struct sim_noise){ .model = {
					   .arrival = COLL_NOISE_PERIODIC,
					   .phase = COLL_NOISE_RANDOM,
					   .period = (u64)(period * 1e9 + 0.5),
					   .duration = (u64)(duration * 1e9 + 0.5),
				   } };
}

/* So many times a second. */
static inline struct sim_noise sim_poisson(double rate, double duration)
{
	struct sim_noise noise = sim_periodic(1 / rate, duration);

	noise.model.arrival = COLL_NOISE_POISSON;
	return noise;
}

enum { SIM_SOURCES_MAX = 4 };

/*
 * Links of several kinds: ranks lie in areas (nodes, racks, clusters), and from
 * area to area a link has costs of its own in place of sim_costs'. All messages
 * of a link share its trunk, if it says how long a byte takes there.
 */
struct sim_link {
	double alpha, beta;	/* seconds, seconds a byte */
	double trunk;		/* seconds a byte for all together; 0: there is enough */
	double loss;		/* share lost for each time as much as fits; see sim/trunk.h */
};

struct sim_network {
	u32 areas;
	const u32 *area;		/* of each rank */
	const struct sim_link *link;	/* link[from * areas + to] */
};

/*
 * Circuits: a message with data goes on one that its schedule has asked for, or not at
 * all. By events only. Two ends that both ask have it `setup` seconds later.
 */
struct sim_circuits {
	double setup;		/* delta: seconds, more than 0 */
	u32 ports;		/* k: 1 .. COLL_PORTS_MAX; in simplex as many each way */
	const u32 *of_rank;	/* k of each rank, at most `ports`, or NULL */
	u32 wavelengths;	/* W: more at once are an error; 0: there are enough */
	double failures;	/* the share of set-ups that fail and are tried again; below 1 */
};

/*
 * What paper 2 measured: with 1 Gbit/s at the ends of a trunk of 10 Gbit/s, 8
 * flows are better than 16. Any loss above 0.42 says so.
 */
#define SIM_TCP_LOSS 0.5

struct sim_model {
	struct sim_costs costs;
	enum sim_semantics semantics;
	struct sim_noise os[SIM_SOURCES_MAX];	/* of a rank; the first without period ends it */
	struct sim_noise link;			/* of a message, each on its own */
	const double *slowness;			/* a factor for each rank's CPU costs, or NULL */
	const struct sim_network *network;	/* links of several kinds, or NULL */
	const struct sim_circuits *circuits;	/* or NULL: connects cost nothing */
	const sim_time *start;			/* when each rank begins, or NULL: at 0 */
};

/* Costs of a machine without gaps, overheads or rendezvous (paper 1). */
#define SIM_COSTS(a, b, c) \
	((struct sim_costs){ .alpha = (a), .beta = (b), .gamma = (c), .eager = SIM_ALWAYS_EAGER })

/* Why this model is none, in words; NULL: it is one. */
const char *sim_model_refuses(const struct sim_model *model);

/* ---- running ------------------------------------------------------------- */

struct sim_job {
	const struct coll_algo *algo;
	struct coll_call call;		/* .rank is of no meaning */
	struct coll_tuning tuning;
};

enum sim_path {
	SIM_ANY_PATH,	/* levels if they can, else events */
	SIM_LEVELS,	/* one pass over all ranks a round: fastest */
	SIM_EVENTS,	/* an event queue: everything */
};

struct sim_outcome {
	sim_time finish;	/* of the last rank */
	u32 last;		/* which that is */
	enum sim_path path;
	u64 messages;		/* sent */
	u64 events;		/* sends, receives, messages, reductions: LogGOPSim's count */
	u64 setups;		/* of circuits; and tries that failed */
	u64 setups_failed;
	u32 circuits;		/* at once, at most, from being set up to being given back */
};

struct sim;

/*
 * Prepares a job: its schedules, each shape of them once. -EOPNOTSUPP: the
 * algorithm refuses the call; -EINVAL: sends and receives do not match;
 * -ENOMEM. `why` says more.
 */
int sim_open(const struct sim_job *job, struct sim **sim, char *why, size_t bytes);
void sim_close(struct sim *sim);

/*
 * The same of schedules that are there: every rank's, checked, in order of ranks. But
 * slots need not follow the list, and an op's `unless` may come after it.
 */
int sim_open_schedules(const struct coll_schedule *const *schedule, u32 ranks, struct sim **sim,
		       char *why, size_t bytes);

/*
 * One run. `finish`, if not NULL, gets every rank's time. -EOPNOTSUPP: that path
 * cannot do it; -EDEADLK: ranks wait for ever (outcome->last is one of them);
 * -ENOTCONN: a message has no circuit; -EBUSY: more circuits than ports or
 * wavelengths.
 */
int sim_run(struct sim *sim, const struct sim_model *model, u64 seed, enum sim_path path,
	    struct sim_outcome *outcome, sim_time *finish);

/*
 * One run with real bytes: in[] and out[] are each rank's buffers, as large as
 * algo.h says. By events only; the job's schedules must still be there.
 * -EOPNOTSUPP: also for functions and types of the application's own.
 */
int sim_run_bytes(struct sim *sim, const struct sim_model *model, u64 seed,
		  const void *const *in, void *const *out, struct sim_outcome *outcome);

/*
 * One run by events, of which every op is written down: 48 bytes an op. The log
 * is of no use after sim_close().
 */
struct sim_log;
int sim_run_logged(struct sim *sim, const struct sim_model *model, u64 seed,
		   struct sim_outcome *outcome, struct sim_log **log);
void sim_log_free(struct sim_log *log);

/* A timeline of all ranks for chrome://tracing, Perfetto or speedscope. 0 or -EIO. */
int sim_log_trace(const struct sim_log *log, FILE *to);

/*
 * The critical path: what the last rank waited for, what that waited for, and
 * so on, from the beginning. A stage is CPU time of an op of `rank`, or (from
 * != rank) a message on its way to receive `op`. free() it.
 */
struct sim_stage {
	u32 rank, op, from;
	sim_time begin, end;
	sim_time late;		/* of that: noise, congestion */
};
int sim_log_path(const struct sim_log *log, struct sim_stage **path, u32 *count);

/*
 * What a rank's CPU did until it was done. The rest of that time it waited, or slept
 * through noise while it had nothing to do.
 */
struct sim_share {
	sim_time done;
	sim_time computing;	/* reductions of the application's own */
	sim_time working;	/* of other ops, without noise */
	sim_time late;		/* what noise added; not to sends */
};
struct sim_share sim_log_share(const struct sim_log *log, u32 rank);

/*
 * `runs` runs, the i-th with seed sim_seed(seed, i); outcome[i] is its outcome.
 * On up to `threads` cores. `progress`, if not NULL, is told how many are done,
 * by one thread at a time; false ends it: -ECANCELED.
 */
int sim_repeat(struct sim *sim, const struct sim_model *model, u64 seed, u32 runs, u32 threads,
	       enum sim_path path, struct sim_outcome *outcome,
	       bool (*progress)(void *argument, u32 done), void *argument);

u64 sim_seed(u64 seed, u64 run);

/* What a job is in memory. */
struct sim_size {
	u32 ranks, shapes;
	u64 bytes;		/* its schedules, all ranks together */
	u64 run_bytes;		/* a run through events, without messages under way */
};
void sim_size(const struct sim *sim, struct sim_size *size);

#endif
