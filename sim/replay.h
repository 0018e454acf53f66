/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Programs to replay: what the ranks of an MPI program did, coll-trace(5), as schedules.
 *
 *	replay_read	the lines of a file
 *	replay_match	which message each receive took
 *	replay		every rank's schedule
 *
 * Of a trace count the computing, the order of the events and the messages; how long
 * messages and collectives took is what the simulator is asked.
 */
#ifndef COLL_SIM_REPLAY_H
#define COLL_SIM_REPLAY_H

#include "algo/common/algo.h"

struct sim_replay;

enum { REPLAY_CLUSTERS_MAX = 64 };

int replay_new(struct sim_replay **replay);
void replay_free(struct sim_replay *replay);

/*
 * Adds a rank's trace; `name` is what errors call it. 0, -EINVAL: `why` says what is
 * wrong with which line; -ENOMEM.
 */
int replay_add(struct sim_replay *replay, const char *name, const char *text, size_t bytes,
	       char *why, size_t why_bytes);
/* One trace, of any rank, stands for all of them: it has collectives only. */
int replay_add_alike(struct sim_replay *replay, const char *name, const char *text, size_t bytes,
		     char *why, size_t why_bytes);

/* Of the program; 0: no trace yet. */
u32 replay_ranks(const struct sim_replay *replay);

/* How the program is run this time. */
struct replay_how {
	/* The algorithm of a call; it may set *tuning, which is unset. NULL: none fits. */
	const struct coll_algo *(*choose)(void *argument, const struct coll_call *call,
					  struct coll_tuning *tuning);
	void *argument;
	const u32 *cluster;	/* of each rank, below REPLAY_CLUSTERS_MAX; or NULL */
	bool circuits;		/* each message asks for one and gives it back */
};

/*
 * Every rank's schedule, *schedule an array of replay_ranks(), all to be freed. A
 * nanosecond of computing is one unit (struct sim_costs). Errors as replay_add();
 * -EOPNOTSUPP: an algorithm refuses a call.
 */
int replay_schedules(struct sim_replay *replay, const struct replay_how *how,
		     struct coll_schedule ***schedule, char *why, size_t why_bytes);

#endif
