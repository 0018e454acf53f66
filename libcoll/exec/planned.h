/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A call's schedule: made once, checked, cached by its group. */
#ifndef COLL_PLANNED_H
#define COLL_PLANNED_H

#include "algo/common/algo.h"
#include "call.h"
#include "libcoll/link/link.h"
#include "core/step.h"

struct coll_publication;
struct coll_run;

enum coll_auto_choice { AUTO_CALL, AUTO_THREAD, AUTO_KERNEL };

struct coll_planned {
	struct coll_planned *next;
	uint32_t references;
	uint32_t hash;			/* travels in each header */
	uint8_t flight;			/* one more than its entry of the flight page, or 0 */
	struct coll_call call;		/* with its own copies of counts */
	u64 *counts;			/* the copies' memory */
	const struct coll_algo *algo;
	struct coll_tuning tuning;
	uint32_t user_op;		/* of a user reduction: which function */
	struct coll_schedule *schedule;
	struct coll_plan plan;
	struct coll_link **links;	/* per peer of the schedule */
	/*
	 * Per op, for a receive and a reduce that are fused (fused.h): the other of the two; else
	 * COLL_NONE. NULL: there are none.
	 */
	uint32_t *fused;
	struct coll_publication *publications;	/* per op (published.h); NULL: there are none */
	struct coll_exec *spare;	/* idle execs */
	uint8_t *order;			/* of its ops (order.h); NULL: there is none */
	uint8_t board_tries;		/* so many calls may still ask for boards (board.h) */
	bool short_receives;		/* it has some, which may be posted there */
	uint32_t sends;
	bool needs_all;			/* whoever ends a run of it knows that all ranks have begun it */
	bool surplus;			/* some receives are optional: their messages may never leave */
	uint32_t fabric;		/* version of the group's; 0: planned without */
	uint32_t costs;			/* by which of the group's costs it was chosen */
	uint32_t *ports;		/* per rank, from that fabric; or NULL */
	double delta, alpha, beta;	/* seconds, for the prediction; 0: not measured */
	struct coll_circuits_cost *cost;	/* predicted, if asked for; or NULL */
	double bound;			/* seconds: no schedule takes less */
	double connected;		/* seconds with all circuits up; 0: they do not fit */
	bool ran;			/* a run of it has ended: its links were up */
	uint64_t predicted_ns;		/* of a run, by the model; 0: not computed yet */
	uint64_t best_ns;		/* ... of the algorithm that the model would choose */
	bool explained;
	struct coll_group *group;
	uint32_t loaded;		/* one more than its number in /dev/coll, or 0 */
	struct coll_planned *next_loaded, **loaded_slot;
	const char *aside;		/* why the latest run was not in the kernel, or NULL */
	enum coll_auto_choice chosen;	/* for the latest run, if progress is chosen */
};

/* As user_op: the call is the library's own. Options do not name its algorithm. */
#define COLL_OWN_CALL COLL_NONE

/*
 * The planned schedule of this call, from the group's cache or new. The caller holds a
 * reference. `user_op`: the function of a user reduction.
 */
int coll_planned_get(struct coll_group *group, const struct coll_call *call, uint32_t user_op,
		     struct coll_planned **planned);
/* The plan of the group's latest call like this one, if it was the same; else NULL. */
struct coll_planned *coll_planned_latest(const struct coll_group *group, const struct coll_call *call,
					 uint32_t user_op);
/*
 * The plan of the group's latest call like this one, if the group would choose the same today and it
 * is no call of the library's own; else NULL.
 */
struct coll_planned *coll_planned_before(const struct coll_group *group,
					 struct coll_call_brief brief);
void coll_planned_put(struct coll_planned *planned);
/* A new one, which no cache has. The caller has its reference. */
int coll_planned_make(struct coll_group *group, const struct coll_call *call, uint32_t user_op,
		      struct coll_planned **made);
/* The version of the group's circuits for which it plans; 0: none. */
uint32_t coll_planned_fabric(const struct coll_group *group);
/* Whether no buffer is missing, and the two do not overlap: what requests are refused for (api/request.c). */
bool coll_planned_has_buffers(const struct coll_planned *planned, const void *in, const void *out);
/*
 * Plans a run again if the costs have changed by which it was chosen, or the ports for which its
 * circuits were planned.
 */
int coll_planned_renew(struct coll_run *run);
/* The predicted cost of its circuits. NULL: none are planned. */
const struct coll_circuits_cost *coll_planned_cost(struct coll_planned *planned);
/* Sets its predicted_ns and best_ns. Computed once; for messages there is no prediction. */
void coll_planned_predict(struct coll_planned *planned);
/* The machine that circuits are planned for. */
struct coll_machine coll_planned_machine(const struct coll_planned *planned);
/* Drops the group's cache. */
void coll_planned_forget(struct coll_group *group);

#endif
