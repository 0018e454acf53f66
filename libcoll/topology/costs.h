/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Costs of messages, measured when a context is opened (option measure=start or always; between nodes
 * also auto): between a few pairs of ranks of each class of links, one pair after the other. All ranks get
 * the same numbers, so they choose the same algorithms.
 *
 * Message time is a line over bytes (fit.h): alpha and beta are of round trips, overhead and byte
 * gap of bursts. What the options or the file of costs say is not measured again.
 */
#ifndef COLL_TOPOLOGY_COSTS_H
#define COLL_TOPOLOGY_COSTS_H

#include "libcoll/base/costs.h"
#include "libcoll/link/link.h"

/* The machine's costs of a class; zero: not known. */
struct coll_level_cost coll_costs_of(const struct coll_machine *m, enum coll_link_class class);

/* Its latency; where it has none yet that between nodes, or the assumed one of a job of one node. */
static inline double coll_usual_alpha(const struct coll_machine *m, enum coll_link_class class)
{
	const double alpha = coll_costs_of(m, class).alpha;

	return alpha > 0 ? alpha : m->alpha;
}

/* With measure=auto between nodes alone, if there are several, and not circuits between them. */
bool coll_costs_are_measured(const struct coll_context *context, bool between_nodes);

/* The class of links inside all parts of the machine that are known. Needs the levels. */
void coll_costs_know_nearest(struct coll_context *context, bool one_node);

/*
 * Pairs take about the time of option `measure_time` altogether, more where a class needs longer for
 * four round trips and three of 64 KB. Where ranks share cores, up to three exchanges of all follow, which take
 * up to ten times measure_time each, and what it takes to connect and to end what has begun. Needs the world, its
 * levels and clusters, and the nearest class. Collective.
 */
int coll_costs_measure(struct coll_context *context);

#endif
