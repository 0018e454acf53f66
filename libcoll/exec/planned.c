// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A group's planned schedules. The latest are cached: equal calls cost one comparison each. */
#include <errno.h>

#include "exec.h"
#include "libcoll/link/explain.h"
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

/* The schedule says how many bytes of a buffer this rank needs. */
static int check_buffer(const struct coll_planned *planned, struct coll_group *group,
			const char *name, const void *buffer, uint64_t bytes)
{
	if (!bytes || (buffer && buffer != COLL_IN_PLACE))
		return 0;
	coll_group_explain(group, "%s: %s is %s; valid: a buffer of %llu bytes",
			   coll_collective_names[planned->call.collective], name,
			   buffer ? "COLL_IN_PLACE" : "NULL", (unsigned long long)bytes);
	return -EINVAL;
}

/* Blocks with displacements may lie between each other: they are not looked at. */
static int check_overlap(const struct coll_planned *planned, struct coll_group *group,
			 const char *in, const char *out)
{
	const struct coll_call *call = &planned->call;
	const __u64 *bytes = planned->schedule->buffer;

	if (!bytes[COLL_IN] || !bytes[COLL_OUT] || call->displs || call->send_displs ||
	    in >= out + bytes[COLL_OUT] || out >= in + bytes[COLL_IN])
		return 0;
	coll_group_explain(group, "%s: in (%p, %llu bytes) and out (%p, %llu bytes) overlap; "
			   "valid: two buffers, or COLL_IN_PLACE",
			   coll_collective_names[call->collective], (const void *)in,
			   (unsigned long long)bytes[COLL_IN], (const void *)out,
			   (unsigned long long)bytes[COLL_OUT]);
	return -EINVAL;
}

int coll_planned_check_buffers(const struct coll_planned *planned, struct coll_group *group,
			       const void *in, const void *out)
{
	const struct coll_schedule *s = planned->schedule;
	const struct coll_call *call = &planned->call;
	const bool one = call->collective == COLL_BCAST || coll_call_is_message(call);
	int error = check_buffer(planned, group, one ? "data" : "in", in, s->buffer[COLL_IN]);

	if (!error)
		error = check_buffer(planned, group, one ? "data" : "out", out, s->buffer[COLL_OUT]);
	return error ? error : check_overlap(planned, group, in, out);
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
