/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Between the files of the observer: a rank, and one look at it. */
#ifndef COLL_OBSERVE_TAKEN_H
#define COLL_OBSERVE_TAKEN_H

#include <stddef.h>

#include "node/activity.h"
#include "node/limit.h"
#include "observe.h"
#include "uapi/coll_flight.h"

enum { OBSERVED_TAKERS = 32, OBSERVED_RAN = 128 };

/* The accounts of one moment. */
struct observed_accounts {
	uint64_t time;			/* 0: it has not been looked at */
	uint64_t ran, waited, inside;
	uint32_t cpu;
	struct node_cpu_taken taken;	/* of that CPU */
	struct node_limit limit;
};

/* A source of noise on a CPU, since coll.ko's watch of it began. */
struct counted_source {
	uint32_t cpu, index, number;
	uint32_t reused;		/* so many others had its index before */
	uint8_t cause;			/* enum coll_noise_cause */
	char name[32];
	uint64_t born;			/* of a thread; 0: not known */
	uint64_t cgroup;		/* its number; 0: not known */
	uint64_t count, total;
};

/* Those of a rank's CPUs, in the order of CPU and index. */
struct counted_sources {
	struct counted_source *source;	/* NULL: none */
	uint32_t count, room;
	uint64_t total;			/* ns, of all of them */
	uint32_t cpus;			/* that are still watched for it */
	bool dear;			/* one of them counts no more: that took too much */
	uint64_t away;			/* times that one of its threads left them for others */
};

/* What coll.ko counts for a rank (counted.c). */
struct observed_counted {
	bool fits;			/* it is bound to CPUs that are counted for no other rank */
	bool watched;			/* these are, for two of its threads alone: the first one, and this */
	struct node_cpus cpus;
	uint32_t thread;
	struct counted_sources before, now;
	uint64_t began;			/* coll_now() */
	uint32_t dears;			/* times in a row that it took too much */
	uint64_t ran;			/* of the rank, at the latest look: it runs while that grows */
	bool whole;			/* all of the interval was, and `now` is of its end */
	uint64_t again;			/* when it is tried again */
};

struct observed_rank {
	uint32_t rank, pid;
	char job[sizeof(((struct coll_flight_page *)NULL)->job)];
	uint64_t gone;			/* coll_now() when it was not there any more; 0: it is */
	uint64_t opened;		/* with the pid that it has for itself it tells jobs of one name apart */
	uint32_t own_pid;
	uint64_t born;			/* of the process: its number may be given again; 0: not known yet */
	uint64_t runs;			/* that it had begun at the latest look */
	bool calls;			/* then a run was under way, or one had begun since the look before */
	uint32_t owner;			/* its progress thread, as it says; 0: the first one */
	int page;			/* a descriptor, or -1 */
	struct observed_accounts before, now;
	struct node_cpus cpus;		/* where it was seen since the latest whole look */
	struct node_ran ran[OBSERVED_RAN];	/* there, since then; others */
	uint32_t count;
	uint64_t softirqd;		/* ns: softirqs, there, since then, that the kernel has a thread for */
	struct {
		struct node_activity *came;	/* its CPU's interrupts by then, while they take much; or NULL */
		uint64_t time;
		uint32_t cpu;
	} counted;
	struct observed_counted counted_by;
	struct coll_flight_observed observed;
	double stops;			/* of that; an interval may have a part of one */
	struct coll_flight_taker taker[OBSERVED_TAKERS];
	uint32_t takers;
};

/* Where each task that is found to have had a core is told. */
struct observed_hearer {
	void (*taken)(const struct observer_taken *taken, void *argument);	/* or NULL */
	void *argument;
};

struct observer_counter;

/* What the rank does now, and where. */
void node_observed_doing(struct observed_rank *rank);
/* Who had the ranks' cores between two samples; `before` NULL: this is the first one. `counter` NULL: there is none. */
void node_observed_taken(struct observed_rank *rank, uint32_t ranks, const struct node_activity *before,
			 const struct node_activity *after, const struct observed_hearer *hearer,
			 const struct observer_counter *counter);
/* The largest so far, by what they took. */
void node_observed_takers(const struct observed_rank *rank,
		     struct coll_flight_taker taker[COLL_FLIGHT_TAKERS]);

#endif
