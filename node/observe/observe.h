/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Looks at the ranks of a job on this node while they run, from outside: what they do, and who had
 * their cores when they were ready to run (struct coll_flight_observed). It reads /proc and a few
 * bytes of each rank's page; the ranks do nothing for it.
 *
 * Each 100 ms, or less often, it looks what each rank does; each 500 ms, or less often, at all
 * threads of the node. It pauses for so long that the looks take at most 0.3 % of one core, but
 * for 0.2 s at the begin.
 */
#ifndef COLL_OBSERVE_H
#define COLL_OBSERVE_H

#include "libcoll/flight/find.h"
#include "node/activity.h"
#include "node/watched.h"

struct observer;

/* NULL: no memory. Nothing has been looked at yet. */
struct observer *node_observer_open(const char *job);
/*
 * Of all jobs of another user, for who may look into that user's processes. Ranks are searched again
 * and again, at most each 4 s: a later job is seen, too. At most OBSERVER_RANKS: the user makes them.
 */
struct observer *node_observer_open_user(uid_t uid);
enum { OBSERVER_RANKS = 512 };

/* A task, no other rank and none of its own, had a rank's core between two whole looks. */
struct observer_taken {
	const char *job;
	uint32_t rank, rank_pid;
	const struct node_ran *ran;	/* who, and on which CPU */
	uint64_t ns;			/* that it took from the rank, at most; from all: that it ran */
};
/* Tells it from now on. */
void node_observer_hear(struct observer *observer,
		   void (*taken)(const struct observer_taken *taken, void *argument), void *argument);
/*
 * Who counts what takes the time of a rank on its CPUs: coll.ko, by colld; or a fake. Where it does, that takes the
 * place of what follows from /proc, and is of the same threads: the first one, and that which makes progress. For ranks that are bound
 * to few CPUs, where no other rank is bound to as few or fewer.
 */
struct observer_counter {
	/* Counts from now on, for this process' first thread and this one. 0, or -errno: it does not, and is asked again after 5 s. */
	int (*begin)(void *argument, const struct node_cpus *cpus, uint32_t pid, uint32_t thread);
	/* Of all that end: one call, before any begins. */
	void (*end)(void *argument, const struct node_cpus *cpus);
	/* All that is counted now. Less than 0: nothing is counted any more. */
	int (*read)(void *argument, node_watch_each each, void *data);
	/* Of a rank it is not counted any more: who wants the CPU has got it; or, dear, that took more of a CPU than it may. */
	void (*lost)(void *argument, const char *job, uint32_t rank, bool dear);
	/* Ranks run on these CPUs, and are bound to them. Tells on which ones others' do, by the latest that they said. */
	void (*claim)(void *argument, const struct node_cpus *cpus, struct node_cpus *others);
	void *argument;
};
/* From now on. The table stays where it is. */
void node_observer_count(struct observer *observer, const struct observer_counter *counter);

struct observer_counts {
	uint32_t ranks, cpus;		/* that are counted now */
	uint32_t fit;			/* ranks that could be: bound, and not too dear of late */
};
struct observer_counts node_observer_counts(const struct observer *observer);

/* When all threads were looked at last, coll_now(); 0: they have not been. */
uint64_t node_observer_looked(const struct observer *observer);
/* The processes of ranks that are there; returns how many, at most `room`. */
uint32_t node_observer_pids(const struct observer *observer, uint32_t *pid, uint32_t room);

/*
 * Whether a rank is in a collective, by the latest look at what the ranks do: one is under way, or has
 * begun less than half a second before.
 */
bool node_observer_calls(const struct observer *observer);

/* These flags (enum coll_flight_taker_flags) are of this process, where it took a rank's core. */
void node_observer_mark(struct observer *observer, uint32_t pid, uint32_t flags);

/* Looks, if it is time; returns when it is again (coll_now()). */
uint64_t node_observer_look(struct observer *observer);
/* Looks at all once more: what is given then is of all the time. */
void node_observer_end(struct observer *observer);
/* Puts what was observed into the records of these ranks. */
void node_observer_give(const struct observer *observer, struct coll_flight_set *set);
/*
 * Writes it into a report's folder, for who makes the report; of a user into the folder where that one
 * finds it. -errno.
 */
int node_observer_write(struct observer *observer, const char *folder);
void node_observer_close(struct observer *observer);

#endif
