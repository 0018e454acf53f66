// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Executing: does what is ready, and goes on with what is done. */
#include <errno.h>
#include <string.h>

#include "core/port.h"
#include "board.h"
#include "exec.h"
#include "failure.h"
#include "health.h"
#include "inject_engine.h"
#include "live.h"
#include "libcoll/base/clock.h"
#include "libcoll/base/core_wait.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/memory.h"
#include "libcoll/link/link.h"
#include "own_costs.h"
#include "published.h"
#include "run.h"
#include "survey.h"
#include "times.h"
#include "unexpected.h"

/* Peers of this node that sleep get what was sent to them, before this thread is busy for long. */
static void wake_peers(struct coll_exec *exec)
{
	coll_memory_wake_readers(&exec->group->context->engine);
}

/* ---- sends ---------------------------------------------------------------- */

/* Its payload is where the schedule says, until it is queued. */
static struct coll_message *exec_message(struct coll_exec *exec, uint32_t index,
					 const struct coll_op *op)
{
	struct coll_message *message = &exec->messages[exec->message_of[index]];

	message->header = coll_exec_header(exec, op);
	message->header.offset = message->published;
	message->payload = op->bytes ? coll_exec_address(exec, op->left) : NULL;
	message->run_age = exec->age;
	return message;
}

/* It was sent, or queued. */
static void exec_tell_send(const struct coll_exec *exec, const struct coll_link *link,
			   const struct coll_op *op)
{
	struct coll_counters *counters = &exec->group->context->counters;

	counters->sends++;
	counters->sent_bytes += op->bytes;
	if (coll_link_is_far(link)) {
		counters->far_sends++;
		counters->far_bytes += op->bytes;
	}
	coll_live_op(exec, COLL_FLIGHT_SEND, link, op->slot);
}

/* A send's peer has the message: it is counted, and told. */
static void exec_gone_at_once(const struct coll_exec *exec, uint32_t index)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];

	exec_tell_send(exec, exec->planned->links[op->peer], op);
	/* Of those that are queued with a copy nobody is told when they have gone. */
	if (op->bytes > MESSAGE_INLINE_MAX)
		coll_live_op(exec, COLL_FLIGHT_SENT, exec->planned->links[op->peer], op->slot);
}

bool coll_exec_send_now(struct coll_exec *exec, uint32_t index)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];
	struct coll_link *link = exec->planned->links[op->peer];

	if (op->bytes >= LONG_WORK_BYTES)
		wake_peers(exec);
	if (!coll_link_send_now(link, exec_message(exec, index, op)))
		return false;
	exec_gone_at_once(exec, index);
	return true;
}

/* Readers may have it before the write returns. */
static void exec_note_board_sends(const struct coll_exec *exec, uint32_t first)
{
	uint32_t op;

	for (op = first; op != COLL_NONE; op = exec->planned->publications[op].next)
		coll_times_sent(exec, coll_exec_op(exec, op));
}

bool coll_exec_send_by_board(struct coll_exec *exec, uint32_t first)
{
	uint64_t posted, left;

	if (exec->timed)
		exec_note_board_sends(exec, first);
	posted = coll_board_send(exec, first);
	exec->ahead |= posted;
	exec->group->context->counters.board_sends += __builtin_popcountll(posted);
	for (left = posted; left; left &= left - 1)
		exec_gone_at_once(exec, __builtin_ctzll(left));
	return posted >> first & 1;
}

/* What is short goes from a copy: the op is done at once. Whether it is. */
static bool exec_queue(struct coll_exec *exec, uint32_t index)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];
	struct coll_link *link = exec->planned->links[op->peer];
	struct coll_message *message = exec_message(exec, index, op);

	message->reported = op->bytes <= MESSAGE_INLINE_MAX;
	if (message->reported && op->bytes) {
		memcpy(message->small, message->payload, op->bytes);
		message->payload = NULL;
	}
	exec_tell_send(exec, link, op);
	coll_exec_get(exec);
	coll_link_queue(link, message);
	return op->bytes <= MESSAGE_INLINE_MAX;
}

/* ---- a sampled run's own sends and reductions (own_costs.h) -------------------------- */

static struct coll_own_time own_time(const struct coll_exec *exec)
{
	const struct coll_context *context = exec->group->context;

	return (struct coll_own_time){ coll_now(), context->engine.looks, context->counters.recvs,
				       context->grants_awaited, context->channels_blocked };
}

/* Instead of coll_exec_sent(), as long as messages that are timed are queued. */
static void exec_sent_timed(struct coll_message *message)
{
	struct coll_group *group = message->exec->group;

	if (message->exec->sampled && coll_own_gone(group->own, message->exec->number, own_time(message->exec)))
		group->events = NULL;
	coll_exec_sent(message);
}

static bool exec_queue_timed(struct coll_exec *exec, uint32_t index, enum coll_link_class class)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];
	struct coll_group *group = exec->group;

	if (coll_own_queued(group->own, exec->number, class, op->bytes, own_time(exec)) && !group->events) {
		group->own->events = *group->context->events;
		group->own->events.sent = exec_sent_timed;
		group->events = &group->own->events;
	}
	return exec_queue(exec, index);
}

static bool own_wants_send(const struct coll_exec *exec)
{
	const struct coll_own_costs *own = exec->group->own;

	return own->burst.left || coll_own_wants(own, exec->number, own->bursts);
}

bool coll_exec_send_now_sampled(struct coll_exec *exec, uint32_t index)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];
	uint64_t before;

	coll_times_sample_sent(exec, op);
	before = own_wants_send(exec) ? coll_now() : 0;
	if (!coll_exec_send_now(exec, index))
		return false;
	if (before)
		coll_own_sent(exec->group->own, exec->number, coll_link_class(exec->planned->links[op->peer]),
			      op->bytes, coll_now() - before);
	return true;
}

static void exec_send_sampled(struct coll_exec *exec, uint32_t index, const struct coll_op *op)
{
	const enum coll_link_class class = coll_link_class(exec->planned->links[op->peer]);

	coll_times_sent(exec, op);
	if (coll_exec_send_now_sampled(exec, index) ||
	    (own_wants_send(exec) ? exec_queue_timed(exec, index, class) : exec_queue(exec, index)))
		coll_step_done(&exec->step, index);
}

/* ---- ops that start -------------------------------------------------------------------- */

/* The first send of a publication starts: it is published to all readers, whose times are noted before. */
static void exec_publish(struct coll_exec *exec, uint32_t first)
{
	const struct coll_planned *planned = exec->planned;
	uint32_t i;

	if (!coll_published_begin(exec, first))
		return;
	for (i = first; i != COLL_NONE; i = planned->publications[i].next) {
		if (!exec->messages[exec->message_of[i]].publishes)
			continue;
		coll_times_sample_sent(exec, &coll_ops(planned->schedule)[i]);
		coll_times_sent(exec, &coll_ops(planned->schedule)[i]);
	}
	if (exec->group->own)
		coll_own_disturb(exec->group->own);
	coll_published_send(exec, first);
}

/* Whether the send is of a publication that its first has begun. */
static bool exec_publishes(struct coll_exec *exec, uint32_t index)
{
	const uint32_t first = coll_published_first(exec->planned, index);

	if (first == index)
		exec_publish(exec, first);
	return first != COLL_NONE && exec->messages[exec->message_of[index]].publishes;
}

/* What is sampled is what messages by rings take. */
static bool exec_sends_by_board(struct coll_exec *exec, uint32_t index)
{
	return exec->group->board && exec->planned->order && !exec->sampled &&
	       coll_board_first(exec->planned, index) == index && coll_exec_send_by_board(exec, index);
}

static void exec_send(struct coll_exec *exec, uint32_t index, const struct coll_op *op)
{
	struct coll_link *link = exec->planned->links[op->peer];
	const bool publishes = exec_publishes(exec, index);

	if (exec_sends_by_board(exec, index)) {
		coll_step_done(&exec->step, index);
		return;
	}
	if (publishes && exec->messages[exec->message_of[index]].published == op->bytes) {
		exec_tell_send(exec, link, op);
		coll_live_op(exec, COLL_FLIGHT_SENT, link, op->slot);
		coll_step_done(&exec->step, index);
		return;
	}
	if (coll_exec_link_is_gone(link)) {
		if (!(op->flags & COLL_OPTIONAL))
			coll_group_peer_gone(link);
		return;
	}
	if (exec->sampled && !publishes) {
		exec_send_sampled(exec, index, op);
		return;
	}
	if (!publishes)
		coll_times_sent(exec, op);
	if (coll_exec_send_now(exec, index) || exec_queue(exec, index))
		coll_step_done(&exec->step, index);
}

void coll_exec_count_recv(struct coll_exec *exec, const struct coll_op *recv)
{
	struct coll_counters *counters = &exec->group->context->counters;

	counters->recvs++;
	counters->recv_bytes += recv->bytes;
	exec->group->received++;
}

void coll_exec_arrived(struct coll_exec *exec, uint32_t op)
{
	const struct coll_op *recv = &coll_ops(exec->planned->schedule)[op];

	exec->arrived[op] = 1;
	coll_live_op(exec, COLL_FLIGHT_GOT, exec->planned->links[recv->peer], recv->slot);
	if (recv->slot == exec->cursor[recv->peer])
		exec->cursor[recv->peer]++;
	if (exec->state == EXEC_RUNNING) {
		coll_assert(exec->posted[recv->peer] && exec->planned->links[recv->peer]->expected);
		exec->posted[recv->peer]--;
		coll_link_expect(exec->planned->links[recv->peer], -1);
	}
	coll_exec_count_recv(exec, recv);
}

void coll_exec_deliver(struct coll_link *link, struct coll_exec *exec, uint32_t op)
{
	uint64_t due;

	if (!exec->group->context->inject || !coll_inject_delays(link, exec, op, &due))
		coll_exec_received(exec, op);
	else	/* its run may end before */
		coll_times_due(exec, &coll_ops(exec->planned->schedule)[op], due);
}

bool coll_exec_take_unexpected(struct coll_exec *exec, uint32_t op)
{
	const struct coll_op *recv = &coll_ops(exec->planned->schedule)[op];
	struct coll_link *link = exec->planned->links[recv->peer];
	struct coll_unexpected *unexpected = coll_unexpected_find(link, exec->number, recv->slot);
	struct coll_group *group = exec->group;

	if (!unexpected)
		return false;
	if (unexpected->header.hash != exec->planned->hash) {
		coll_group_mismatch(link);
		return false;
	}
	if (unexpected->header.bytes != recv->bytes) {
		coll_group_fail(group, -EPROTO, link->rank, group->rank,
				"sent a message of another size");
		return false;
	}
	coll_exec_store(exec, op, unexpected->data);
	coll_unexpected_release(link, unexpected);
	coll_times_sample_kept(exec, recv);
	coll_exec_arrived(exec, op);
	coll_exec_deliver(link, exec, op);
	return true;
}

/*
 * What the engine would check when the message begins, and what is its alone: injected faults, which
 * strike in its turns, messages point to point, which are matched otherwise, and streams, which may have begun with it.
 */
static bool exec_may_look(const struct coll_exec *exec, const struct coll_op *recv)
{
	const struct coll_link *link = exec->planned->links[recv->peer];
	const struct coll_group *group = exec->group;

	return link->transport->look && recv->bytes <= STRAIGHT_MAX && !link->streams &&
	       group->state == GROUP_OK && !group->freed && !group->peers &&
	       !group->context->inject;
}

enum coll_look coll_exec_take_next(struct coll_exec *exec, uint32_t index)
{
	const struct coll_op *recv = &coll_ops(exec->planned->schedule)[index];
	struct coll_link *link = exec->planned->links[recv->peer];
	const struct coll_header header = {
		.kind = COLL_MESSAGE_DATA,
		.version = COLL_WIRE_VERSION,
		.run = exec->number,
		.slot = recv->slot,
		.hash = exec->planned->hash,
		.bytes = recv->bytes,
	};
	enum coll_look found;
	const uint8_t *data;

	if (!exec_may_look(exec, recv))
		return COLL_LOOK_OTHER;
	found = link->transport->look(link, &header, &data);
	if (found != COLL_LOOK_MESSAGE)
		return found;
	coll_exec_store(exec, index, data);
	link->transport->took(link, &header);
	return found;
}

static void exec_took(struct coll_exec *exec, uint32_t index)
{
	wake_peers(exec);		/* more may follow: a backlog is taken in one step */
	coll_exec_arrived(exec, index);
	coll_exec_deliver(coll_exec_link(exec, index), exec, index);
}

bool coll_exec_take_from_board(struct coll_exec *exec, uint32_t index)
{
	if (!exec->reads_boards || !coll_board_take_awaited(exec, index))
		return false;
	exec_took(exec, index);
	return true;
}

enum coll_look coll_exec_look(struct coll_exec *exec, uint32_t index)
{
	enum coll_look found;

	if (coll_exec_take_from_board(exec, index))
		return COLL_LOOK_MESSAGE;
	found = exec->got[index] ? COLL_LOOK_OTHER : coll_exec_take_next(exec, index);
	if (found == COLL_LOOK_MESSAGE)
		exec_took(exec, index);
	return found;
}

/* A message that was here before its receive was not waited for, unless it was injected to be late. */
static void exec_tell_posted(const struct coll_exec *exec, const struct coll_op *op)
{
	struct coll_link *link = exec->planned->links[op->peer];

	if (link->kept && !exec->group->context->inject && coll_unexpected_find(link, exec->number, op->slot))
		coll_times_found(exec, op);
	else
		coll_times_posted(exec, op);
}

/* A receive has started. Whether its message was there: it has been taken. */
static bool exec_take_begun(struct coll_exec *exec, uint32_t index, const struct coll_op *op)
{
	if (exec->timed)
		exec_tell_posted(exec, op);
	if (!exec->planned->links[op->peer]->kept)
		return coll_exec_look(exec, index) == COLL_LOOK_MESSAGE;
	return coll_exec_take_unexpected(exec, index) || coll_exec_take_from_board(exec, index);
}

/* Else more is done with it; what is drawn has a look at the kernel's account in its time. */
static bool own_wants_take(const struct coll_exec *exec, const struct coll_op *op)
{
	const struct coll_group *group = exec->group;

	return op->bytes < LONG_WORK_BYTES && !exec->planned->links[op->peer]->kept &&
	       coll_own_wants(group->own, exec->number, group->own->takes) &&
	       !(group->survey->looks && coll_times_is_drawn(exec, op));
}

uint64_t coll_exec_post_sampled(struct coll_exec *exec, uint32_t index)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];
	const bool wanted = own_wants_take(exec, op);

	coll_times_sample_posted(exec, op);
	wake_peers(exec);	/* which is no part of it */
	return wanted ? coll_now() : 0;
}

void coll_exec_took_sampled(struct coll_exec *exec, uint32_t index, uint64_t before)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];

	if (before)
		coll_own_took(exec->group->own, exec->number, coll_link_class(exec->planned->links[op->peer]),
			      op->bytes, coll_now() - before);
}

static bool exec_recv_sampled(struct coll_exec *exec, uint32_t index, const struct coll_op *op)
{
	const uint64_t before = coll_exec_post_sampled(exec, index);

	if (!exec_take_begun(exec, index, op))
		return false;
	coll_exec_took_sampled(exec, index, before);
	return true;
}

static void exec_recv(struct coll_exec *exec, uint32_t index, const struct coll_op *op)
{
	struct coll_link *link = exec->planned->links[op->peer];

	exec->posted[op->peer]++;
	coll_live_op(exec, COLL_FLIGHT_RECV, link, op->slot);
	coll_link_expect(link, 1);
	if (exec->posted_at)
		exec->posted_at[index] = coll_now();
	if (exec->sampled ? exec_recv_sampled(exec, index, op) : exec_take_begun(exec, index, op))
		return;
	if (coll_exec_link_is_gone(link) && !(op->flags & COLL_OPTIONAL))
		coll_group_peer_gone(link);
	else
		coll_link_await(link);
}

static void exec_op(struct coll_exec *exec, uint32_t index)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];

	switch (op->kind) {
	case COLL_OP_SEND:
		exec_send(exec, index, op);
		return;
	case COLL_OP_RECV:
		exec_recv(exec, index, op);
		return;
	case COLL_OP_REDUCE:
	case COLL_OP_COPY:
		coll_exec_compute(exec, index);
		break;
	case COLL_OP_CONNECT:
		coll_live_op(exec, COLL_FLIGHT_CONNECT, exec->planned->links[op->peer], index);
		if (!exec->group->context->job->circuit_connect(exec, index))
			return;
		break;
	case COLL_OP_RELEASE:
		exec->group->context->job->circuit_release(exec, index);
		break;
	}
	coll_step_done(&exec->step, index);
}

/* What was executed in order before (in_order.h). */
static bool exec_was_ahead(struct coll_exec *exec, uint32_t index)
{
	if (!coll_exec_is_ahead(exec, index))
		return false;
	exec->arrived[index] = coll_ops(exec->planned->schedule)[index].kind == COLL_OP_RECV;
	coll_step_done(&exec->step, index);
	return true;
}

/* Starts the ops that are ready, until none is or the exec has completed. */
void coll_exec_step(struct coll_exec *exec)
{
	uint32_t op;

	if (exec->state != EXEC_RUNNING || exec->stepping)
		return;
	exec->stepping = true;
	while ((op = coll_step_next(&exec->step)) != COLL_NONE)
		if (!exec_was_ahead(exec, op))
			exec_op(exec, op);
	wake_peers(exec);
	exec->stepping = false;
	if (coll_step_finished(&exec->step) && !exec->step.error && exec->state == EXEC_RUNNING)
		coll_exec_complete(exec, 0);
	coll_exec_maybe_idle(exec);
}

void coll_exec_received(struct coll_exec *exec, uint32_t op)
{
	coll_assert(exec->state != EXEC_IDLE);
	if (exec->state == EXEC_COMPLETED) {
		coll_exec_maybe_idle(exec);
		return;
	}
	coll_times_sample_arrived(exec, &coll_ops(exec->planned->schedule)[op]);
	coll_times_arrived(exec, &coll_ops(exec->planned->schedule)[op]);
	coll_step_done(&exec->step, op);
	coll_exec_step(exec);
}

static void exec_tell_sent(const struct coll_message *message)
{
	const struct coll_planned *planned = message->exec->planned;
	const struct coll_op *op = &coll_ops(planned->schedule)[message->op];

	coll_live_op(message->exec, COLL_FLIGHT_SENT, planned->links[op->peer], op->slot);
}

void coll_exec_sent(struct coll_message *message)
{
	struct coll_exec *exec = message->exec;

	coll_exec_put(exec);
	if (!message->reported)
		exec_tell_sent(message);
	if (exec->state == EXEC_COMPLETED) {
		coll_exec_maybe_idle(exec);
		return;
	}
	if (!message->reported) {
		coll_step_done(&exec->step, message->op);
		coll_exec_step(exec);
	}
}
