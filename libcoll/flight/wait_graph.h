/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Who waits for whom among the ranks of a job: questions about that graph. */
#ifndef COLL_FLIGHT_WAIT_GRAPH_H
#define COLL_FLIGHT_WAIT_GRAPH_H

#include "cause.h"

/* What the rank that is waited for knows of the run in which another waits. */
enum wait_graph_run {
	RUN_NOT_BEGUN,
	RUN_SAME,		/* it is in it too */
	RUN_DIFFERS,		/* ... with another call */
	RUN_ENDED,		/* it is through */
};

/*
 * Calls for each wait of this rank, also for those of runs in the kernel: of these a page has no
 * list, so each rank of the group is waited for that has not ended the run.
 */
void coll_wait_graph_edges(const struct coll_flight_job *job, const struct coll_flight_seen *seen,
			   void (*each)(const struct coll_flight_edge *edge, void *argument),
			   void *argument);
/* The peer's run of the edge, or NULL; *has (may be NULL) says more. */
const struct coll_flight_run *coll_wait_graph_run(const struct coll_flight_seen *peer,
					     const struct coll_flight_edge *edge,
					     enum wait_graph_run *has);
/* The ranks that are in the edge's run with this hash. */
uint32_t coll_wait_graph_hash_count(const struct coll_flight_job *job,
			       const struct coll_flight_edge *edge, uint32_t hash);
/* Whether a link says that the rank is on this node. */
bool coll_wait_graph_is_local(const struct coll_flight_job *job, uint32_t rank);
/*
 * A circle of waits in which a rank has not begun the run that it is waited for in, and none has
 * left it: such a one does not end. Returns its length; 0: there is none, or it is longer than `most`.
 */
uint32_t coll_wait_graph_cycle(const struct coll_flight_job *job, struct coll_flight_edge *cycle,
			  uint32_t most);
/* The ranks from the lowest one that waits for `rank`, also by way of others, to it. */
uint32_t coll_wait_graph_chain(const struct coll_flight_job *job, uint32_t rank, uint32_t *chain,
			  uint32_t most);

#endif
