// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Decides where the payload of a message goes: to a started receive, to memory of its own
 * if it is unexpected, or nowhere if its run has completed. Then tells the run.
 */
#include <errno.h>

#include "board.h"
#include "chunk.h"
#include "core/match.h"
#include "core/port.h"
#include "exec.h"
#include "failure.h"
#include "fused.h"
#include "health.h"
#include "libcoll/link/link.h"
#include "offload.h"
#include "point_to_point.h"
#include "receive.h"
#include "unexpected.h"

/* ---- a message begins ----------------------------------------------------- */

static void receive_unexpected(struct coll_link *link)
{
	struct coll_unexpected *unexpected = coll_chunk_keep(link, &link->header);

	if (unexpected)
		coll_chunk_to_unexpected(link, unexpected);
}

/* A stale message of a run in which the peer made another call: no receive awaited it. */
static bool differs_late(const struct coll_group *group, const struct coll_header *header)
{
	const uint32_t age = group->next_run - header->run;

	return age && age <= RECENT_RUNS &&
	       group->recent[header->run % RECENT_RUNS] != header->hash;
}

/* As coll_match(), of a message of a run that is under way. What a board has brought before is stale. */
static int match_running(struct coll_link *link, const struct coll_exec *exec, uint32_t *op)
{
	const struct coll_header *header = &link->header;
	const bool goes_on = header->offset && !link->whole->streams;
	int match;

	if (coll_board_has_brought(exec, link->whole, header))
		return COLL_MATCH_STALE;
	match = coll_match(&exec->step, link->rank, header->slot, header->bytes, op);
	if (match < 0 || exec->arrived[*op] || (match == COLL_MATCH_UNEXPECTED && goes_on) ||
	    (match == COLL_MATCH_POSTED && exec->got[*op] != header->offset && !link->whole->streams))
		return -EPROTO;
	return match;
}

/* The header of a data message is complete: sets where its payload goes. */
static void receive_begin(struct coll_link *link)
{
	struct coll_group *group = link->group;
	const struct coll_header *header = &link->header;
	struct coll_exec *exec = coll_exec_find(group, header->run);
	const bool any_order = link->whole->streams, begun = header->offset || any_order;
	struct coll_unexpected *unexpected = begun ? coll_unexpected_begun(link) : NULL;
	uint32_t op;
	int match = COLL_MATCH_STALE;

	coll_assert(!link->exec && !link->unexpected);
	if (unexpected) {
		coll_chunk_to_unexpected(link, unexpected);
		return;
	}
	if (group->state != GROUP_OK || group->freed) {
		match = COLL_MATCH_STALE;
	} else if (exec && exec->state == EXEC_RUNNING) {
		if (header->hash != exec->planned->hash) {
			coll_group_mismatch(link);
			return;
		}
		match = match_running(link, exec, &op);
		if (match < 0) {
			coll_group_fail(group, -EPROTO, link->rank, group->rank,
					"sent a message that the schedule does not have");
			return;
		}
	} else if ((int32_t)(header->run - group->next_run) >= 0) {
		match = header->offset && !any_order ? COLL_MATCH_STALE : COLL_MATCH_UNEXPECTED;
	} else if (differs_late(group, header)) {
		coll_group_mismatch(link);
		return;
	}
	if (match == COLL_MATCH_POSTED) {
		coll_chunk_to_exec(link, exec, op);
	} else if (match == COLL_MATCH_UNEXPECTED) {
		receive_unexpected(link);
	} else {
		group->context->counters.stale++;
		coll_exec_stale(link->whole, header);
	}
}

/* ---- a message ends ------------------------------------------------------- */

/* An unexpected message is whole; its receive may have started meanwhile. */
static void unexpected_done(struct coll_link *link, struct coll_unexpected *unexpected)
{
	struct coll_exec *exec = coll_exec_find(link->group, unexpected->header.run);
	uint32_t op;

	unexpected->complete = true;
	if (coll_run_has_completed(link->group, unexpected->header.run))
		coll_unexpected_release(link, unexpected);
	else if (exec && unexpected->header.hash != exec->planned->hash)
		coll_group_mismatch(link);
	else if (exec && coll_match(&exec->step, link->rank, unexpected->header.slot,
				    unexpected->header.bytes, &op) == COLL_MATCH_POSTED)
		coll_exec_take_unexpected(exec, op);
}

/* Adds the chunk that has arrived. Returns whether the message is complete. */
static bool receive_got(const struct coll_link *link, uint64_t *got)
{
	*got += coll_chunk_bytes(&link->header);
	coll_assert(*got <= link->header.bytes);
	return *got == link->header.bytes;
}

/* Header and payload of a message or of a chunk have arrived. */
static void receive_end(struct coll_link *link)
{
	struct coll_exec *exec = link->exec;
	struct coll_unexpected *unexpected = link->unexpected;

	coll_assert(!exec || !unexpected);
	link->exec = NULL;
	link->unexpected = NULL;
	link->target = NULL;
	if (unexpected) {
		if (receive_got(link, &unexpected->got))
			unexpected_done(link->whole, unexpected);
	} else if (exec) {
		coll_exec_put(exec);
		if (!receive_got(link, &exec->got[link->op])) {
			coll_exec_maybe_idle(exec);
			return;
		}
		coll_exec_arrived(exec, link->op);
		coll_exec_deliver(link->whole, exec, link->op);
	}
}

/* ---- for speculation ------------------------------------------------------ */

static struct coll_exec *receive_expect(struct coll_link *link, uint8_t **target, uint64_t *bytes)
{
	const struct coll_op *op;
	struct coll_exec *exec;
	uint32_t index;

	exec = coll_exec_expecting(link, &index);
	if (!exec)
		return NULL;
	op = &coll_ops(exec->planned->schedule)[index];
	*bytes = op->bytes - exec->got[index];
	if (*bytes < DIRECT_MIN)
		return NULL;
	*target = coll_exec_address(exec, op->result) + exec->got[index];
	coll_exec_get(exec);
	return exec;
}

static void receive_release(struct coll_exec *exec)
{
	coll_exec_put(exec);
	coll_exec_maybe_idle(exec);
}

/* ---- a link's state --------------------------------------------------------- */

/*
 * The group may have failed while the link connected; or its other links are attached to
 * the kernel.
 */
static int receive_up(struct coll_link *link)
{
	struct coll_group *group = link->group;

	if (group->state == GROUP_FAILING)
		coll_group_tell(link);
	else if (group->offload.attached)
		return link->streams ? -EOPNOTSUPP : coll_offload_attach(link);
	coll_board_tell(link);
	coll_link_touch(link);
	return 0;
}

/* Who has left a group receives nothing more for it: a run that needs this link never ends. What is queued goes out. */
static void receive_closing(struct coll_link *link)
{
	coll_board_keep(link);
	if (link->offloaded)
		coll_offload_drop(link->group);
	if (link->group->freed && link->group->state == GROUP_OK && coll_exec_needs_link(link))
		coll_exec_fail_all(link->group, -ECONNRESET);
}

/* What the peer has posted was there before it said goodbye: nothing is missing for that. */
static void receive_control(struct coll_link *link, const struct coll_header *header)
{
	if (header->kind == COLL_MESSAGE_BYE)
		coll_board_leave(link->group);
	coll_health_message(link, header);
}

static bool receive_needs(const struct coll_link *link)
{
	return coll_exec_needs_link(link) || coll_offload_needs_link(link);
}

const struct coll_link_events coll_exec_link_events = {
	.begin = receive_begin,
	.reduce = coll_fused_take,
	.end = receive_end,
	.expect = receive_expect,
	.release = receive_release,
	.sent = coll_exec_sent,
	.control = receive_control,
	.up = receive_up,
	.closing = receive_closing,
	.needs = receive_needs,
	.lost = coll_group_link_lost,
	.failed = coll_group_fail,
	.news = coll_health_news,
	.called_for = coll_point_called_for,
};
