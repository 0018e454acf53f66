// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>

#include "core/port.h"
#include "core/probe.h"
#include "exec.h"
#include "failure.h"
#include "live.h"
#include "libcoll/engine/engine.h"
#include "libcoll/link/arbiter.h"
#include "libcoll/link/explain.h"
#include "libcoll/transport/mux.h"
#include "offload.h"
#include "run.h"

enum {
	/* Longest time for the news to leave: this, or this fraction of the deadline. */
	FAILING_MAX_NS = 500000000,
	FAILINGS_PER_DEADLINE = 32,
	/* A lost link is blamed only after other ranks had this long to report a cause. */
	LOST_MAX_NS = 5000000,
};

static void group_describe(struct coll_group *group, const char *reason)
{
	const char *error = coll_strerror(group->error);

	if (group->reporter != COLL_NONE)
		coll_group_explain(group, "%s: rank %u (seen by rank %u): %s", error,
				   group->failed_rank, group->reporter, reason);
	else
		coll_group_explain(group, "%s: rank %u: %s", error, group->failed_rank, reason);
}

void coll_group_set_state(struct coll_group *group, enum coll_group_state state)
{
	coll_assert(state == group->state + 1);
	group->state = state;
}

struct coll_header coll_group_news(const struct coll_group *group)
{
	return (struct coll_header){
		.kind = COLL_MESSAGE_FAIL,
		.version = COLL_WIRE_VERSION,
		.run = group->reporter,
		.slot = group->failed_rank,
		.hash = -group->error,
	};
}

void coll_group_tell(struct coll_link *link)
{
	const struct coll_header news = coll_group_news(link->group);

	coll_link_control(link, news.kind, news.run, news.slot, news.hash);
}

static uint64_t failing_time(const struct coll_group *group)
{
	uint64_t ns = group->options.deadline_ns / FAILINGS_PER_DEADLINE;

	return ns < FAILING_MAX_NS ? ns : FAILING_MAX_NS;
}

/*
 * A message that has begun to go out is finished, since the news can only follow it; the
 * rest of the queue is dropped. The failed rank is told as well: it may live, with one
 * broken connection, and would blame the first rank that closes.
 */
void coll_group_fail(struct coll_group *group, int error, uint32_t failed_rank, uint32_t reporter,
		     const char *reason)
{
	struct coll_exec *exec;
	uint32_t rank;

	coll_debug_assert(coll_context_is_owned(group->context));
	if (group->state != GROUP_OK)
		return;
	coll_group_set_state(group, GROUP_FAILING);
	group->error = error;
	group->failed_rank = failed_rank;
	group->reporter = reporter;
	group_describe(group, reason);
	coll_live_fail(group);
	if ((error == -ECONNRESET || error == -ETIMEDOUT) && failed_rank < group->ranks)
		group->failed[failed_rank] = 1;
	for (exec = group->active; exec; exec = exec->next)
		coll_step_fail(&exec->step, error);
	coll_offload_fail(group);
	for (rank = 0; rank < group->ranks; rank++) {
		struct coll_link *link = group->links[rank];

		if (!link)
			continue;
		coll_link_drop_queue(link, true);
		if (link->state == LINK_LOST)
			coll_link_close(link);
		else if (link->state == LINK_UP && !link->offloaded)	/* else the kernel does */
			coll_group_tell(link);
		coll_link_touch(link);
	}
	group->failing_until = coll_now() + failing_time(group);
	coll_engine_check_at(&group->context->engine, 0);
	if (group->twin)
		coll_group_fail(group->twin, error, failed_rank, reporter, reason);
}

void coll_group_lacks_run(const struct coll_run *run, int error)
{
	struct coll_group *group = run->group;

	if (!run->local && !group->freed && error != -EOPNOTSUPP)
		coll_group_fail(group, error, group->rank, COLL_NONE,
				error == -ENOMEM ? "no memory for a run that was started" :
						   "a run that was started cannot begin");
}

void coll_group_watch(struct coll_group *group)
{
	uint32_t rank;

	if (group->watchful)
		return;
	group->watchful = true;
	group->context->attentive = true;
	coll_muxes_touch(group->context);
	for (rank = 0; rank < group->ranks; rank++)
		if (group->links[rank])
			coll_link_touch(group->links[rank]);
}

/*
 * The peer may have closed because of a failure, and the news of it may be on another link,
 * which is read after this one. That news goes first.
 */
void coll_group_link_lost(struct coll_link *link, int error, const char *reason)
{
	struct coll_group *group = link->group;
	const uint64_t grace = failing_time(group);

	COLL_PROBE3(libcoll, link_lost, group->id, link->rank, error);
	coll_link_set_state(link, LINK_LOST);
	coll_arbiter_update(link);
	if (group->lost)
		return;
	group->lost = link;
	group->lost_error = error;
	group->lost_reason = reason;
	group->lost_until = coll_now() + (grace < LOST_MAX_NS ? grace : LOST_MAX_NS);
	coll_group_watch(group);
	coll_engine_check_at(&group->context->engine, group->lost_until);
}

void coll_group_mismatch(struct coll_link *link)
{
	coll_group_fail(link->group, -EPROTO, link->rank, link->group->rank,
			"called with different arguments");
}

void coll_group_peer_gone(const struct coll_link *link)
{
	coll_group_fail(link->group, -ECONNRESET, link->rank, COLL_NONE, link->state == LINK_LEFT ?
			"it has left the group" : "its connection has ended");
}

/* Whether none of the ranks is there any more that it waits for: any of several may send. */
static bool all_are_gone(const struct coll_exec *exec)
{
	uint32_t peer;

	for (peer = 0; peer < exec->planned->schedule->peers; peer++)
		if (exec->posted[peer] && !coll_exec_link_is_gone(exec->planned->links[peer]))
			return false;
	return true;
}

/* Whether a run needs a message from this link. */
static bool needed_from(const struct coll_link *link)
{
	const struct coll_exec *exec;

	for (exec = link->group->active; exec; exec = exec->next) {
		const struct coll_plan *plan = &exec->planned->plan;
		uint32_t peer = coll_peer_find(plan->schedule, link->rank), i;

		if (exec->state != EXEC_RUNNING || peer == COLL_NONE || !exec->posted[peer])
			continue;
		if (link->group->peers) {
			if (all_are_gone(exec))
				return true;
			continue;
		}
		for (i = plan->first_recv[peer]; i < plan->first_recv[peer + 1]; i++)
			if (!exec->arrived[plan->recv[i]] &&
			    !(coll_ops(plan->schedule)[plan->recv[i]].flags & COLL_OPTIONAL))
				return true;
	}
	return false;
}

void coll_group_link_left(struct coll_link *link)
{
	if (link->state == LINK_UP)
		coll_link_set_state(link, LINK_LEFT);
	coll_link_touch(link);
	if (link->group->state == GROUP_OK && needed_from(link))
		coll_group_fail(link->group, -ECONNRESET, link->rank, COLL_NONE,
				"it has left the group");
}
