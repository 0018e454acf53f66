// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A group's planned schedules. The latest are cached: equal calls cost one comparison each. */
#include <errno.h>

#include "exec.h"
#include "planned.h"
#include "run.h"

int coll_run_keep_counts(struct coll_run *run)
{
	return coll_call_has_arrays(&run->call) ? coll_call_keep_arrays(&run->call, &run->counts) : 0;
}

/* By what it was chosen has not changed. */
static bool planned_holds(const struct coll_planned *planned, const struct coll_group *group)
{
	return planned->fabric == coll_planned_fabric(group) &&
	       planned->costs == group->costs_agreed;
}

static struct coll_planned *const *latest_slot(const struct coll_group *group,
					       struct coll_call_brief brief)
{
	return &group->planned[group->latest[coll_call_place(brief, LATEST_CALLS)]];
}

static bool is_like(const struct coll_call *call, struct coll_call_brief brief)
{
	return call->collective == brief.collective && call->count == brief.count &&
	       call->type == brief.type && call->root == brief.root &&
	       call->reduction == brief.reduction && call->in_place == brief.in_place;
}

struct coll_planned *coll_planned_before(const struct coll_group *group,
					 struct coll_call_brief brief)
{
	struct coll_planned *planned = *latest_slot(group, brief);

	return planned && is_like(&planned->call, brief) && planned->user_op != COLL_OWN_CALL &&
	       planned_holds(planned, group) ? planned : NULL;
}

/* Whether it is the schedule of this rank for the call. */
static bool slot_has(struct coll_planned *const *slot, const struct coll_group *group,
		     const struct coll_call *call, uint32_t user_op)
{
	const struct coll_planned *planned = *slot;

	return planned && planned->user_op == user_op && coll_call_is_same(&planned->call, call) &&
	       planned_holds(planned, group);
}

/* A loop of equal calls finds its plan without a key. */
struct coll_planned *coll_planned_latest(const struct coll_group *group, const struct coll_call *call,
					 uint32_t user_op)
{
	struct coll_planned *const *slot = latest_slot(group, coll_call_brief(call));

	return slot_has(slot, group, call, user_op) ? *slot : NULL;
}

int coll_planned_get(struct coll_group *group, const struct coll_call *call, uint32_t user_op,
		     struct coll_planned **result)
{
	struct coll_planned *planned = coll_planned_latest(group, call, user_op), **slot;
	uint64_t key;
	int error;

	coll_debug_assert(coll_context_is_owned(group->context));
	if (!planned) {
		key = coll_call_mix(coll_call_key(call, user_op), coll_planned_fabric(group));
		group->latest[coll_call_place(coll_call_brief(call), LATEST_CALLS)] =
			key % PLANNED_MAX;
		slot = &group->planned[key % PLANNED_MAX];
		if (!slot_has(slot, group, call, user_op)) {
			error = coll_planned_make(group, call, user_op, &planned);
			if (error)
				return error;
			if (*slot)
				coll_planned_put(*slot);
			*slot = planned;
		}
		planned = *slot;
	}
	planned->references++;
	*result = planned;
	return 0;
}

/* The schedule says how many bytes of each buffer this rank needs. */
bool coll_planned_has_buffers(const struct coll_planned *planned, const void *in, const void *out)
{
	const __u64 *bytes = planned->schedule->buffer;

	return !coll_call_lacks(in, bytes[COLL_IN]) && !coll_call_lacks(out, bytes[COLL_OUT]) &&
	       !coll_call_overlaps(&planned->call, in, bytes[COLL_IN], out, bytes[COLL_OUT]);
}

int coll_planned_renew(struct coll_run *run)
{
	struct coll_planned *old = run->planned, *renewed;
	struct coll_call call = old->call;
	int error;

	if (planned_holds(old, run->group))
		return 0;
	call.ports = NULL;
	error = coll_planned_get(run->group, &call, old->user_op, &renewed);
	if (error)
		return error;
	run->planned = renewed;
	run->group->context->job->circuits_prefetch(run);
	coll_planned_put(old);
	return 0;
}

void coll_planned_forget(struct coll_group *group)
{
	uint32_t i;

	for (i = 0; i < PLANNED_MAX; i++) {
		if (group->planned[i])
			coll_planned_put(group->planned[i]);
		group->planned[i] = NULL;
	}
}
