/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Connect and release ops: requests to the circuit manager (uapi/coll_circuit.h), which
 * notifies when a circuit carries data. Without a manager, and between ranks of one node,
 * circuits are always up. A manager that is restarted gets all requests again.
 */
#ifndef COLL_LIBCOLL_CIRCUIT_H
#define COLL_LIBCOLL_CIRCUIT_H

#include "libcoll/exec/exec.h"
#include "libcoll/exec/fabric.h"

/*
 * Connects to the manager that the option `circuits` names, and publishes the name of this
 * node to the other ranks; after the boot, before its first fence. The reason of a failure
 * is in `why`.
 */
int coll_circuits_open(struct coll_context *context, char *why, size_t why_bytes);
/*
 * Blocks, before the connections are closed, until the other ends know of all circuits that
 * this rank has used. Takes one answer's time; at most five seconds, or the deadline, if the
 * manager was killed shortly before.
 */
void coll_circuits_leave(struct coll_context *context);
void coll_circuits_close(struct coll_context *context);

/* A connection of its own to the manager: an fd, or a negative errno. */
int coll_circuits_dial(const struct coll_context *context);
/* The name of a node, by its rank in the job; NULL: it has announced none by the deadline. */
const char *coll_circuits_node(struct coll_context *context, uint32_t world_rank,
			       uint64_t deadline);

/* ---- fabric.c: what circuits are planned for ------------------------------ */

/* Whether calls without the option `ports` are planned for the manager's ports. */
bool coll_circuits_are_planned(const struct coll_context *context);
/* Rank 0 asks the manager and broadcasts the fabric. Collective; by the owner. */
int coll_circuits_agree(struct coll_group *group);
/* The same for a group that has fabric, if it works; its argument is the group. */
void coll_circuits_agree_again(void *group);

/* ---- ops ------------------------------------------------------------------ */

/* Whether the link may be opened now; else it is opened when its circuit is up. */
bool coll_circuits_free(const struct coll_exec *exec, uint32_t peer);

/* Begins a connect op. True: it is done; else its end is reported later. */
bool coll_circuits_connect(struct coll_exec *exec, uint32_t op);
void coll_circuits_release(struct coll_exec *exec, uint32_t op);
/* Releases the circuits of the run, and requests those of its next start. */
void coll_circuits_run_completed(struct coll_exec *exec);

/*
 * A persistent run: requests the circuits that it needs first before it is started, on ports
 * that are idle. Releases those of an earlier plan.
 */
void coll_circuits_prefetch(struct coll_run *run);
/* It has started: its prefetched circuits are released where ports are used repeatedly. */
void coll_circuits_started(const struct coll_run *run);
/* Releases the prefetched circuits of the run; of all runs of the group. */
void coll_circuits_forget(const struct coll_run *run);
void coll_circuits_forget_group(const struct coll_group *group);

#endif
