/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Stepping a schedule: which op may start now, and which ops a finished op makes ready.
 *
 *	while ((op = coll_step_next(step)) != COLL_NONE)
 *		start it;			the engine's part
 *	...
 *	coll_step_done(step, op);		when it has finished
 *
 * until coll_step_finished(). Ops become ready in list order where one event
 * frees several. A plan is read-only once made and serves any number of runs
 * of its schedule at once; a step belongs to one run and is not locked: one
 * thread at a time.
 *
 * Cost: starting a run copies 5 bytes an op; an op costs its dependents. No
 * allocation anywhere: the caller brings memory, 8-byte aligned.
 */
#ifndef COLL_STEP_H
#define COLL_STEP_H

#include "schedule.h"

/* Tables for stepping and matching, derived from a schedule. */
struct coll_plan {
	const struct coll_schedule *schedule;
	const u32 *pending;		/* per op: waits open at start */
	const u32 *first_dependent;	/* per op, and one past the last */
	const u32 *dependent;
	const u32 *first_recv;		/* per peer, and one past the last */
	const u32 *recv;		/* receives by peer and slot */
	u32 mandatory;			/* ops that are not optional */
	u32 recvs;
};

/* Bytes of memory for the plan of a schedule with this header. */
u64 coll_plan_bytes(const struct coll_schedule *s);
/* The schedule must have passed coll_check() and outlive the plan. */
void coll_plan_init(struct coll_plan *plan, const struct coll_schedule *s, void *memory);

enum coll_op_state {
	COLL_OP_WAITING,
	COLL_OP_READY,
	COLL_OP_STARTED,
	COLL_OP_DONE,
	COLL_OP_SKIPPED,
};

struct coll_step {
	const struct coll_plan *plan;
	/* Per op: waits still open; once it may start, the next such op. */
	u32 *pending;
	u8 *state;		/* per op: enum coll_op_state */
	u32 head, tail;		/* ops that may start, each enters once; head COLL_NONE: none */
	u32 left;		/* mandatory ops not done */
	u32 skipped;		/* ops that turned out not to be needed */
	int error;		/* 0, or the first error of coll_step_fail() */
};

u64 coll_step_bytes(const struct coll_plan *plan);
void coll_step_init(struct coll_step *step, const struct coll_plan *plan, void *memory);
/* Back to the beginning: the next run of the same schedule. */
void coll_step_reset(struct coll_step *step);

/* An op that may start now, marked started; COLL_NONE: none for the moment. */
u32 coll_step_next(struct coll_step *step);

/*
 * A started op has finished. Allowed after the run has completed: optional ops may
 * finish later.
 */
void coll_step_done(struct coll_step *step, u32 op);

/*
 * A started op is to be started again, before all others: what it has done so far is for
 * the engine to remember.
 */
void coll_step_again(struct coll_step *step, u32 op);

/* Nothing may start for the moment. */
static inline bool coll_step_idle(const struct coll_step *step)
{
	return step->head == COLL_NONE;
}

/* Ends the run with this negative errno; the first one holds. */
void coll_step_fail(struct coll_step *step, int error);

/* All mandatory ops are done, or the run has failed. */
static inline bool coll_step_finished(const struct coll_step *step)
{
	return !step->left || step->error;
}

#endif
