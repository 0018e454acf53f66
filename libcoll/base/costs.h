/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What messages were found to cost, for each class of links. */
#ifndef COLL_COSTS_H
#define COLL_COSTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "algo/common/algo.h"

/*
 * All ranks choose alike only by the same classes, formulas of costs and cells of surveys (exec/samples.h). Who changes one raises this: a
 * rank that has another number refuses to join the job.
 */
enum { COLL_COST_MODEL = 5 };

/* A link's class: the smallest part of the machine that has both ranks. The nearest first; those inside of a node are its levels. */
enum coll_link_class {
	COLL_CLASS_DOMAIN = COLL_LEVEL_DOMAIN,
	COLL_CLASS_NODE = COLL_LEVEL_NODE,
	COLL_CLASS_SWITCH,		/* the first one between nodes: from here on messages go through NICs */
	COLL_CLASS_CLUSTER,
	COLL_CLASS_WAN,
	COLL_CLASSES,
};

/* The level whose overhead and gap its messages have: below a switch those of the NIC, as anywhere between nodes. */
static inline enum coll_level_kind coll_class_level(enum coll_link_class class)
{
	return class < COLL_CLASS_SWITCH ? (enum coll_level_kind)class : COLL_LEVEL_CLUSTER;
}

/* A number that is no longer that of the start: it is from the traffic before a call. */
struct coll_drift {
	uint32_t samples, call;		/* samples 0: it is that of the start */
	enum coll_link_class from;	/* whose traffic that was: of a number that was taken over, a nearer class's */
	uint32_t cut;			/* of a part: before this call its whole fell below it; 0: it did not */
};

/* Of one pair of ranks, or the medians of several; seconds, and 0 for what is not known. */
struct coll_class_cost {
	struct coll_level_cost cost;
	double byte_work;		/* seconds of cores for a byte between nodes */
	uint32_t together;		/* ranks that exchanged at once, which told this, or beta inside; 0: none did */
	struct coll_drift alpha_drift, beta_drift;	/* samples: exchanges */
	struct coll_drift overhead_drift, gap_drift;	/* ... ranks, of each its own sends */
	uint32_t rank[2];		/* of the job: of the first pair */
	uint32_t pairs, samples;	/* pairs 0: not measured */
	bool assumed;			/* usual numbers, which follow what a nearer class of links costs */
};

/* Sums over exchanges, of which older ones count less; seconds (topology/lateness.h). */
struct coll_late_sums {
	double exchanges, usual;	/* usual: of one message each, without a delay */
	double late, excess;		/* exchanges with a late message; all their delays */
	double looked;			/* exchanges, as long as stops are remembered: */
	double waited;			/* of their ranks for messages */
	double stops, stopped;		/* times that a rank had no core meanwhile; how long */
};

/* A rank of the group that others wait for; sums likewise. */
struct coll_late_rank {
	uint32_t rank;
	double late, behind;		/* times that its peer was there long before; for how long */
	double stops, stopped;		/* times that it had no core */
	double met, waited;		/* exchanges that it was seen in; seconds of these */
};

/* What others than the job took of its ranks' cores, by colld of the nodes; seconds. */
struct coll_late_colld {
	double ranks;			/* that it is of; 0: nobody tells */
	double seen, stolen, stops;	/* that it looked at these, in all; what was taken, how often */
	double age;			/* since it was told */
};

enum { COLL_LATE_RANKS = COLL_LATE_MAX };	/* so many of them can be leaves (algo/redundancy/leaf.h) */

/* Whether events have ended (topology/counted_noise.h). */
struct coll_late_quiet {
	double share;			/* of exchanges that had one, while they went on */
	double evidence;		/* that they have ended: the log of a likelihood ratio */
};

/* A rank with late messages; sums over its exchanges. */
struct coll_late_link {
	uint32_t rank, peer;		/* peer: the one with most late ones, by so many more than all others */
	double majority;
	double met, usual, late, excess;
	double met_peer, usual_peer;	/* of these those with `peer` */
	struct coll_late_quiet quiet;
	struct coll_noise_rate noise;	/* of its messages, once it counts */
};

/* Whether one rank's links are bad (topology/late_links.h). */
struct coll_late_links {
	struct coll_late_link of[COLL_LATE_RANKS];	/* those met most often, in no order */
	double exchanges, late;		/* of all ranks */
	uint32_t bad;			/* the entry that counts, ... */
	bool counts;			/* ... if one does */
	bool one_link;			/* ... for its link to `peer` alone */
	bool ended;			/* by the latest survey */
	double age, unseen;		/* seconds since it began to count; without an exchange */
};

/* Calls that late messages held up (topology/late_calls.h); sums, of which older ones count less. */
struct coll_late_calls {
	double seen;			/* such calls that were looked at */
	double calls, held;		/* by these, of all; seconds by which they were held up */
	double exchanges, seconds;	/* of all calls: half of their messages; their time */
	double rate;			/* such calls a second, when they took a part of the time */
	double expected;		/* by that, since there have been hardly any */
	bool go_on;			/* there were, or messages as late, by the latest survey */
	bool count;			/* the noise that counts is by them */
};

struct coll_lateness {
	struct coll_late_sums of[COLL_CLASSES];
	struct coll_late_rank rank_of[COLL_LATE_RANKS];	/* those met most often, in no order */
	struct coll_late_quiet late_quiet, stop_quiet;	/* of late messages; of stops */
	/* Noise that was found and counts, as the machine has it; rate 0: none. */
	struct coll_noise_rate link, rank;
	struct coll_late_calls calls;
	bool by_calls;			/* noise of links is by those */
	struct coll_late_colld colld;
	bool by_colld;			/* ... of ranks it is by that, as their messages do not tell */
	struct coll_late_links links;
	struct coll_late leaves;	/* late ranks that count; `ranks` 0: none */
	double link_age, rank_age, leaves_age;	/* seconds since it began to count */
	uint32_t link_call, rank_call, leaves_call;	/* the call of the group since which it is what it is */
};

/* Late ranks go by a group's numbers: what the costs of another group say of them is not for this one. */
static inline void coll_late_ranks_forget(struct coll_machine *machine, struct coll_lateness *late)
{
	machine->late = late->leaves = (struct coll_late){ .ranks = 0 };
	late->leaves_age = 0;
	memset(late->rank_of, 0, sizeof(late->rank_of));
	late->links = (struct coll_late_links){ .counts = false };
}

struct coll_costs {
	struct coll_class_cost of[COLL_CLASSES];
	double gamma;			/* the median of the ranks; 0: not measured */
	struct coll_drift gamma_drift;	/* samples: ranks */
	struct coll_lateness late;
};

/* Whether a cost is the measured one: then no option has given it. */
static inline bool coll_cost_is_found(double value, double found)
{
	return found > 0 && !(found > value) && !(found < value);
}

/* Whether an option or a file has given it. */
static inline bool coll_cost_is_given(double value, double found)
{
	return value > 0 && !coll_cost_is_found(value, found);
}

/* Whether the machine's noise is the measured one: then no option has given it. */
static inline bool coll_noise_is_found(const struct coll_machine *machine,
				       const struct coll_lateness *late)
{
	return coll_cost_is_found(machine->link_noise.rate, late->link.rate) ||
	       coll_cost_is_found(machine->noise[0].rate, late->rank.rate);
}

/* ... since this call; of both kinds, the later one. */
static inline uint32_t coll_noise_call(const struct coll_machine *machine, const struct coll_lateness *late)
{
	const bool link = coll_cost_is_found(machine->link_noise.rate, late->link.rate);
	const bool rank = coll_cost_is_found(machine->noise[0].rate, late->rank.rate);

	return link && !(rank && late->rank_call > late->link_call) ? late->link_call : late->rank_call;
}

/* ... and that of ranks was told by colld of the nodes. */
static inline bool coll_noise_is_by_colld(const struct coll_machine *machine, const struct coll_lateness *late)
{
	return late->by_colld && coll_cost_is_found(machine->noise[0].rate, late->rank.rate);
}

#endif
