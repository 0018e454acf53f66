// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Runs that are the engine's, and read boards until the thread sleeps (board.h). */
#include "board.h"
#include "exec.h"
#include "libcoll/engine/engine.h"

/* Its caller waits by calls of this library alone. What is sampled is what messages by rings take. */
static bool run_may_read(const struct coll_exec *exec)
{
	const struct coll_context *context = exec->group->context;

	return exec->planned->order && !exec->sampled && coll_context_is_plain(context) && !context->alarm &&
	       !context->engine.slept_elsewhere && !context->engine.neighbour.near;
}

void coll_board_begin(struct coll_exec *exec, bool sleeps)
{
	struct coll_group *group = exec->group;

	if (!group->board || !exec->planned->short_receives)
		return;
	coll_board_find_peers(exec, false);
	coll_board_read(exec);
	if (sleeps || !run_may_read(exec))
		coll_board_leave(group);
}

/* ---- looking ------------------------------------------------------------------------- */

/* A message that was posted for it. With one the exec may have ended. */
static bool run_look(struct coll_exec *exec)
{
	uint32_t peer, op;

	for (peer = 0; peer < exec->planned->schedule->peers; peer++)
		if (exec->posted[peer] && coll_exec_awaits(exec, peer, &op) && coll_exec_take_from_board(exec, op))
			return true;
	return false;
}

static bool group_look(struct coll_group *group)
{
	struct coll_exec *exec;

	for (exec = group->active; exec; exec = exec->next)
		if (exec->reads_boards && exec->state == EXEC_RUNNING && run_look(exec))
			return true;
	return false;
}

/* One message: a group may be gone after it. */
static bool context_look(struct coll_context *context)
{
	struct coll_group *group;

	for (group = context->groups; group; group = group->next)
		if (group->board && group_look(group))
			return true;
	return false;
}

/* ---- leaving ------------------------------------------------------------------------- */

/* Takes one message, or keeps all. With one the exec may have ended. */
static bool run_settle(struct coll_exec *exec)
{
	uint32_t peer;

	for (peer = 0; peer < exec->planned->schedule->peers; peer++) {
		const uint32_t op = coll_board_keep_posted(exec, peer);

		if (op != COLL_NONE && exec->step.state[op] == COLL_OP_STARTED && coll_exec_take_unexpected(exec, op))
			return true;
	}
	return false;
}

/* The oldest that began before this run. */
static struct coll_exec *reader_before(const struct coll_group *group, uint32_t run)
{
	struct coll_exec *exec = group->active;

	while (exec && !(exec->reads_boards && (int32_t)(exec->number - run) < 0))
		exec = exec->next;
	return exec;
}

void coll_board_leave(struct coll_group *group)
{
	const uint32_t from = group->next_run;
	struct coll_exec *exec = reader_before(group, from);

	if (!exec)
		return;
	coll_board_leave_run(group->board->shared, from);
	for (; exec; exec = reader_before(group, from)) {
		const bool lives = group->state == GROUP_OK && !group->freed;

		if (!lives || !run_settle(exec))
			coll_board_read_no_more(exec);
	}
	coll_board_tell_completed(group);
}

static struct coll_group *group_that_reads(const struct coll_context *context)
{
	struct coll_group *group = context->groups;

	while (group && !reader_before(group, group->next_run))
		group = group->next;
	return group;
}

bool coll_board_poll(struct coll_context *context, bool sleeps)
{
	const uint64_t before = context->counters.recvs;
	struct coll_group *group;

	while (context->board_readers && context_look(context))
		;
	if (!sleeps || context->counters.recvs != before)
		return context->counters.recvs != before;
	while (context->board_readers && (group = group_that_reads(context)))
		coll_board_leave(group);
	return context->counters.recvs != before;
}
