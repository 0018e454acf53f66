// SPDX-License-Identifier: GPL-2.0
/* What runs wait for: which rank stalls them, which links they need. */
#include "run.h"

u32 kcoll_run_awaits(const struct kcoll_run *run)
{
	const struct coll_schedule *s = run->loaded->schedule;
	u32 op;

	for (op = 0; op < s->ops; op++) {
		const struct coll_op *o = &coll_ops(s)[op];

		if (o->kind == COLL_OP_RECV && run->step.state[op] == COLL_OP_STARTED &&
		    !run->arrived[op] && !(o->flags & COLL_OPTIONAL))
			return coll_op_rank(s, o);
	}
	for (op = 0; op < s->ops; op++)
		if (coll_ops(s)[op].kind == COLL_OP_SEND &&
		    run->step.state[op] == COLL_OP_STARTED)
			return coll_op_rank(s, &coll_ops(s)[op]);
	return COLL_NONE;
}

/* Whether a receive that has started, or is to come, needs this link. */
static bool run_needs(const struct kcoll_run *run, const struct kcoll_link *link)
{
	const struct coll_plan *plan = &run->loaded->plan;
	u32 peer = coll_peer_find(plan->schedule, link->rank), i;

	if (run->completed || peer == COLL_NONE)
		return false;
	for (i = plan->first_recv[peer]; i < plan->first_recv[peer + 1]; i++) {
		u32 op = plan->recv[i];

		if (!run->arrived[op] && run->step.state[op] != COLL_OP_SKIPPED &&
		    !(coll_ops(plan->schedule)[op].flags & COLL_OPTIONAL))
			return true;
	}
	return false;
}

u32 kcoll_group_suspect(struct kcoll_group *group)
{
	const struct kcoll_run *run;
	const struct kcoll_link *link;
	u32 rank = COLL_NONE;

	list_for_each_entry(run, &group->runs, node) {
		if (run->completed)
			continue;
		rank = kcoll_run_awaits(run);
		break;
	}
	link = rank == COLL_NONE ? NULL : xa_load(&group->links.by_rank, rank);
	/* The pong may be of an earlier run. A rank that never connected waits for none. */
	if (!link || link->answered < run->started || link->pong_suspect >= group->ranks ||
	    link->pong_suspect == group->rank)
		return rank;
	return link->pong_suspect;
}

bool kcoll_link_needed(const struct kcoll_link *link)
{
	const struct kcoll_run *run;

	lockdep_assert_held(link->set->lock);
	list_for_each_entry(run, &kcoll_link_group(link)->runs, node)
		if (!run->completed &&
		    coll_peer_find(run->loaded->plan.schedule, link->rank) != COLL_NONE)
			return true;
	return false;
}

bool kcoll_link_awaited(const struct kcoll_link *link)
{
	struct kcoll_run *run;

	lockdep_assert_held(link->set->lock);
	list_for_each_entry(run, &kcoll_link_group(link)->runs, node)
		if (run_needs(run, link))
			return true;
	return false;
}
