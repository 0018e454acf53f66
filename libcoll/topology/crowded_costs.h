/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What a byte takes cores that ranks share. A pair that is measured alone tells little of it: its messages are in caches, and most
 * of TCP is done in interrupts, on cores that are idle then, and in no process's CPU time. So all ranks exchange at once, each
 * with one of its node (where that has domains, with one of another domain and one of its own), and each with one of another
 * node, and of a batch of rounds the slowest rank's time counts, of several batches the quickest one's.
 * An exchange that takes far longer than measure_time, or by the costs so far would, tells nothing.
 *
 * Inside a node all of a byte's time is work. Between nodes wires and cores are busy at once, so it is the cores'
 * time (or of whatever else all share, a switch or an emulated network) unless the wires are as slow.
 */
#ifndef COLL_TOPOLOGY_CROWDED_COSTS_H
#define COLL_TOPOLOGY_CROWDED_COSTS_H

#include "pairs.h"

/*
 * Measures both and sets them where ranks share cores, but for what an option has given. On all ranks of the group,
 * with equal costs; they have the same then.
 */
int coll_crowded_costs_measure(struct coll_group *all, const struct coll_places *places);

/* So many ranks exchange at once, `crowding` of them on each core; a byte takes `seconds`. */
struct coll_crowd {
	uint32_t ranks;
	double crowding, seconds;
};

/* A byte's time inside a node, by algo/common/blocks.h: crowded_cost(). */
double coll_crowded_beta(const struct coll_crowd *crowd);
/*
 * A byte's work between nodes, where wires are taken by the bytes of `node` ranks each; 0: the wires explain it. As
 * algo/common/wire.c has it: while one rank's bytes are on the wire, the cores work for the node's others.
 */
double coll_crowded_work(const struct coll_crowd *crowd, double beta, uint32_t node);

#endif
