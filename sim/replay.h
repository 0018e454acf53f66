/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Replay of MPI programs: traces of all ranks, coll-trace(5), as schedules.
 *
 *	replay_read	the lines of a file
 *	replay_match	which message each receive matches
 *	replay		each rank's schedule
 *
 * Of a trace the simulator uses the compute times, the order of events and the messages. The
 * times of messages and collectives are its results.
 */
#ifndef COLL_SIM_REPLAY_H
#define COLL_SIM_REPLAY_H

#include "algo/common/algo.h"

struct sim_replay;

enum { REPLAY_CLUSTERS_MAX = 64 };

int replay_new(struct sim_replay **replay);
void replay_free(struct sim_replay *replay);

/*
 * Adds a rank's trace; errors name it `name`. 0, -EINVAL: `why` has the line and the reason;
 * -ENOMEM.
 */
int replay_add(struct sim_replay *replay, const char *name, const char *text, size_t bytes,
	       char *why, size_t why_bytes);
/* One trace stands for all ranks: it must have collectives only. */
int replay_add_alike(struct sim_replay *replay, const char *name, const char *text, size_t bytes,
		     char *why, size_t why_bytes);

/* Of the program; 0: no trace yet. */
u32 replay_ranks(const struct sim_replay *replay);

/* Parameters of one replay. */
struct replay_how {
	/* The algorithm of a call; it may set *tuning, which is unset. NULL: none fits. */
	const struct coll_algo *(*choose)(void *argument, const struct coll_call *call,
					  struct coll_tuning *tuning);
	void *argument;
	const u32 *cluster;	/* of each rank, below REPLAY_CLUSTERS_MAX; or NULL */
	bool circuits;		/* each message requests a circuit and releases it */
};

/*
 * Each rank's schedule: *schedule is an array of replay_ranks() schedules; free them and the
 * array. A nanosecond of compute time is one unit (struct sim_costs). Errors as replay_add();
 * -EOPNOTSUPP: an algorithm refuses a call.
 */
int replay_schedules(struct sim_replay *replay, const struct replay_how *how,
		     struct coll_schedule ***schedule, char *why, size_t why_bytes);

#endif
