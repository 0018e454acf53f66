/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Connect and release ops: the circuit manager (uapi/coll_circuit.h) is asked, and
 * tells when the circuit carries data. Without a manager, and between ranks of one
 * node, circuits are always there. A manager that is restarted is asked again for
 * all that was wanted.
 */
#ifndef COLL_LIBCOLL_CIRCUIT_H
#define COLL_LIBCOLL_CIRCUIT_H

#include "libcoll/internal.h"

/* Until a set-up time is measured. Seconds. */
#define CIRCUIT_DELTA	10e-3

/*
 * Meets the manager that the option `circuits` names, and tells the other ranks which
 * node this is; after the boot, before its first fence. Why not is in `why`.
 */
int coll_circuits_open(struct coll_context *context, char *why, size_t why_bytes);
/*
 * Waits, before the connections are closed, until the other ends know of all circuits that
 * we have had. An answer's time; five seconds at most, or the deadline, if the manager was
 * killed shortly before.
 */
void coll_circuits_leave(struct coll_context *context);
void coll_circuits_close(struct coll_context *context);

/* A connection of its own to the manager: an fd, or a negative errno. */
int coll_circuits_dial(const struct coll_context *context);
/* The name of a node, by its rank in the job; NULL: it has told none by the deadline. */
const char *coll_circuits_node(struct coll_context *context, uint32_t world_rank,
			       uint64_t deadline);

/* ---- circuit_terms.c: what a group's circuits are planned for ---------------- */

struct circuit_terms {
	uint32_t version;	/* from 1 on */
	uint32_t limit;		/* circuits at once in all; 0: as many as the ports allow */
	double delta, alpha, beta;	/* seconds; alpha and beta 0: not measured */
	uint32_t ports[];	/* per rank: its share of its node's */
};

/* Whether calls that name no `ports` are planned with the manager's. */
bool coll_circuits_are_planned(const struct coll_context *context);
/* Rank 0 asks the manager and tells the others. Collective; the owner's. */
int coll_circuits_agree(struct coll_group *group);
/* The same for a group that has terms, if it works; its argument is the group. */
void coll_circuits_agree_again(void *group);

/* ---- ops ---------------------------------------------------------------------- */

/* Whether the link may be opened now; else it is when its circuit is lit. */
bool coll_circuits_free(const struct coll_exec *exec, uint32_t peer);

/* A connect op has begun: true if it is done already, else it is reported when it is. */
bool coll_circuits_connect(struct coll_exec *exec, uint32_t op);
void coll_circuits_release(struct coll_exec *exec, uint32_t op);
/* Gives back what the run wants or has; what the next start of it needs is asked for. */
void coll_circuits_run_over(struct coll_exec *exec);

/*
 * A persistent run: the circuits that it needs first are asked for before it is started,
 * with ports that nobody needs now. Those of an earlier plan are given back.
 */
void coll_circuits_prefetch(struct coll_run *run);
/* It has started: where ports are needed more than once, they are the run's alone now. */
void coll_circuits_started(const struct coll_run *run);
/* Lets go of them; of all that are for runs of the group. */
void coll_circuits_forget(const struct coll_run *run);
void coll_circuits_forget_group(const struct coll_group *group);

#endif
