/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A call's schedule: made once, checked, cached by its group. */
#ifndef COLL_PLANNED_H
#define COLL_PLANNED_H

#include "algo/common/algo.h"
#include "libcoll/link/link.h"
#include "core/step.h"

struct coll_run;

enum coll_auto_choice { AUTO_CALL, AUTO_THREAD, AUTO_KERNEL };

struct coll_planned {
	struct coll_planned *next;
	uint32_t references;
	uint32_t hash;			/* travels in each header */
	struct coll_call call;		/* with its own copies of counts */
	u64 *counts;			/* the copies' memory */
	const struct coll_algo *algo;
	struct coll_tuning tuning;
	uint32_t user_op;		/* for a user reduction: which */
	struct coll_schedule *schedule;
	struct coll_plan plan;
	struct coll_link **links;	/* per peer of the schedule */
	struct coll_exec *spare;	/* idle execs */
	uint32_t sends;
	uint32_t fabric;		/* version of the group's; 0: it was planned without */
	uint32_t *ports;		/* per rank, from these; or NULL */
	double delta, alpha, beta;	/* seconds, for the prediction; 0: not measured */
	struct coll_circuits_cost *cost;	/* predicted, if asked for; or NULL */
	double bound;			/* seconds: no schedule takes less */
	double connected;		/* seconds with all circuits up; 0: they do not fit */
	bool explained;
	struct coll_group *group;
	uint32_t loaded;		/* one more than its number in /dev/coll, or 0 */
	const char *aside;		/* why the latest run was not the kernel's, or NULL */
	enum coll_auto_choice chosen;	/* for the latest run, if that is chosen */
};

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
		     struct coll_planned **planned);
void coll_planned_put(struct coll_planned *planned);
/* A run whose circuits were planned for other ports than there are now is planned again. */
int coll_planned_renew(struct coll_run *run);
/* What its circuits should cost; NULL: it has none planned. */
const struct coll_circuits_cost *coll_planned_cost(struct coll_planned *planned);
/* What circuits are planned for. */
struct coll_machine coll_planned_machine(const struct coll_planned *planned);
/* Drops the group's cache. */
void coll_planned_forget(struct coll_group *group);

#endif
