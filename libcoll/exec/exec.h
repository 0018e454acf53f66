/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Executing a planned schedule: ops that are ready become messages on links,
 * receives that links know of, or work done on the spot.
 */
#ifndef COLL_EXEC_H
#define COLL_EXEC_H

#include "libcoll/internal.h"

/*
 * A call by everything that shapes this rank's schedule, but for the group's fabric: the same
 * for the same call, and hardly ever for another. Any thread's.
 */
uint64_t coll_call_key(const struct coll_call *call, uint32_t user_op);
/*
 * The planned schedule for this call, from the group's cache or made now; the
 * caller holds a reference. `user_op`: which function a user reduction is.
 */
int coll_planned_get(struct coll_group *group, const struct coll_call *call, uint32_t user_op,
		     struct planned **planned);
void coll_planned_put(struct planned *planned);
/* A run whose circuits were planned for other ports than there are now is planned again. */
int coll_planned_renew(struct coll_run *run);
/* What its circuits should cost; NULL: it has none planned. */
const struct coll_circuits_cost *coll_planned_cost(struct planned *planned);
/* What circuits are planned for. */
struct coll_machine coll_planned_machine(const struct planned *planned);
/* Drops the group's cache. */
void coll_planned_forget(struct coll_group *group);

/*
 * Makes the links of a schedule, those that are ours to make: with `exec` those only that
 * wait for no circuit.
 */
void coll_exec_open_links(const struct planned *planned, const struct coll_exec *exec);
/* Starts a run, which may be over at once. */
int coll_exec_start(struct coll_run *run, uint64_t deadline);

/* A message for a started receive is complete: it is reported now or, injected, later. */
void coll_exec_deliver(struct coll_link *link, struct coll_exec *exec, uint32_t op);

/* A started receive has its bytes, or a connect op its circuit. */
void coll_exec_received(struct coll_exec *exec, uint32_t op);
/* The bytes of a receive are there, though it may be reported later. */
void coll_exec_arrived(struct coll_exec *exec, uint32_t op);
/* If the message for this started receive has come early, takes it. */
bool coll_exec_take_early(struct coll_exec *exec, uint32_t op);
/* A message of it has gone out (its memory is free again). */
void coll_exec_sent(struct coll_exec *exec, struct coll_message *message);

/* The op a link's next message is most likely for: oldest run, lowest slot. */
struct coll_exec *coll_exec_expecting(struct coll_link *link, uint32_t *op);
/* The active exec of this number, or NULL. */
struct coll_exec *coll_exec_find(const struct coll_group *group, uint32_t number);

/*
 * A run cannot end without what the link has still to bring or to take. Costs the
 * active runs' ops.
 */
bool coll_exec_needs_link(const struct coll_link *link);

/* All runs of a group end with this error; what is in flight comes home later. */
void coll_exec_fail_all(struct coll_group *group, int error);

/* If nobody holds it any more: back to its spare list. */
void coll_exec_maybe_home(struct coll_exec *exec);
void coll_exec_free(struct coll_exec *exec);

uint8_t *coll_exec_place(const struct coll_exec *exec, uint64_t place);

#endif
