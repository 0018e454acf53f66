/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What is added to a rank's takers in an interval, however it was found out. */
#ifndef COLL_OBSERVE_TAKERS_H
#define COLL_OBSERVE_TAKERS_H

#include "taken.h"

/* Of what a thread ran in an interval, what no rank was told of yet. */
struct ran_left {
	uint32_t tid;
	uint64_t ns;
};

struct observed_all {
	struct observed_rank *rank;
	uint32_t ranks;
	const struct observed_hearer *hearer;
	struct ran_left *left;		/* in the order of tid */
	uint32_t lefts, room;
	uint32_t storms;		/* ranks whose interrupts were looked at by name */
};

void node_takers_add(struct observed_rank *rank, const struct coll_flight_taker *taker);
void node_takers_add_kind(struct observed_rank *rank, enum coll_flight_taker_kind kind, uint64_t ns);
/* `name`: of those that came most; "": not known. */
void node_takers_add_interrupts(struct observed_rank *rank, enum coll_flight_taker_kind kind, uint64_t ns,
				const char *name);
void node_takers_add_stolen(struct observed_rank *rank, double times, uint64_t ns);
/* A thread had its core; it is told of, too, if it is none of the job. Returns that. */
bool node_takers_add_task(struct observed_rank *rank, const struct node_ran *ran, uint64_t ns,
			  const struct observed_all *all);
/* A thread ran so long in the interval: in the order of tid. No rank is told more of it. */
void node_takers_ran(struct observed_all *all, uint32_t tid, uint64_t ns);

void node_takers_cgroup(struct coll_flight_taker *taker, const char *cgroup);
bool node_takers_is_softirqd(const struct node_ran *ran);

#endif
