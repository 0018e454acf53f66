// SPDX-License-Identifier: GPL-2.0
/*
 * Messages from peers: matched with receives, kept until their receive comes, or
 * discarded. Control messages are answered here or queued for the program.
 */
#include <linux/ktime.h>

#include "control.h"
#include "fused.h"
#include "receive.h"
#include "run.h"

static void receive_protocol_error(struct kcoll_link *link)
{
	kcoll_run_fail(kcoll_link_group(link), -EPROTO, link->rank, link->set->rank);
}

/* Keeps the message for later. False: no capacity, the link is not read for a while. */
static bool receive_unexpected(struct kcoll_link *link)
{
	/* What follows in the stream may be what an older run waits for. */
	if (!kcoll_unexpected_fits(link) && !link->handed && !kcoll_link_awaited(link))
		return false;
	if (fatal_signal_pending(current))
		return false;	/* there is no memory for who dies: not the peer's affair */
	if (kcoll_unexpected_make(link))
		kcoll_run_fail(kcoll_link_group(link), -ENOBUFS, link->set->rank, link->rank);
	return true;
}

/* A chunk that continues nothing, or a message that is kept already. */
static bool receive_again(const struct kcoll_link *link)
{
	const struct coll_header *header = &link->header;

	return header->offset ||
	       kcoll_unexpected_find(link->set, link->rank, header->run, header->slot);
}

/* Which receive the message matches: enum coll_match, or a negative errno. */
static int receive_match(struct kcoll_link *link, struct kcoll_run *run, u32 *op)
{
	const struct kcoll_group *group = kcoll_link_group(link);
	const struct coll_header *header = &link->header;
	int match;

	if (group->error)
		return COLL_MATCH_STALE;
	if (run && !run->completed) {
		if (header->hash != run->loaded->hash)
			return -EPROTO;
		match = coll_match(&run->step, link->rank, header->slot, header->bytes, op);
		if (match < 0 || run->arrived[*op] ||
		    (match == COLL_MATCH_UNEXPECTED && receive_again(link)) ||
		    (match == COLL_MATCH_POSTED && run->got[*op] != header->offset))
			return -EPROTO;
		return match;
	}
	if ((s32)(header->run - group->next_run) < 0)
		return COLL_MATCH_STALE;
	return receive_again(link) ? -EPROTO : COLL_MATCH_UNEXPECTED;
}

static bool receive_data(struct kcoll_link *link)
{
	struct kcoll_group *group = kcoll_link_group(link);
	struct kcoll_run *run = kcoll_run_find(group, link->header.run);
	const struct kcoll_memory *target;
	u64 offset;
	u32 op;
	const int match = receive_match(link, run, &op);

	if (match < 0) {
		receive_protocol_error(link);
		return true;
	}
	if (match == COLL_MATCH_UNEXPECTED)
		return receive_unexpected(link);
	if (match == COLL_MATCH_POSTED) {
		target = kcoll_op_target(run, op, &offset);
		kcoll_link_receive_into(link, run, op, target, offset);
		link->reduces = link->from_pair && kcoll_fused_begins(link, run, op);
		run->in_flight++;
	} else {
		group->device->counters.stale++;
	}
	return true;
}

/* Found once a tick at most: it takes a pass over the ops, and peers may flood pings. */
static u32 receive_suspect(struct kcoll_group *group)
{
	if (!group->suspected || time_after(jiffies, group->suspected_at)) {
		group->suspect = kcoll_group_suspect(group);
		group->suspected_at = jiffies;
		group->suspected = true;
	}
	return group->suspect;
}

static void receive_control(struct kcoll_link *link)
{
	struct kcoll_group *group = kcoll_link_group(link);
	const struct coll_header *header = &link->header;
	struct coll_header pong = {
		.kind = COLL_MESSAGE_PONG,
		.version = COLL_WIRE_VERSION,
		.run = group->next_run - 1,
	};

	switch (header->kind) {
	/* Answered whatever the process computes. Lost if the peer does not read pongs. */
	case COLL_MESSAGE_PING:
		pong.slot = receive_suspect(group);
		kcoll_link_send_control(link, &pong);
		return;
	case COLL_MESSAGE_PONG:
		link->answered = ktime_get_ns();
		link->pong_suspect = header->slot;
		break;
	case COLL_MESSAGE_FAIL:
		kcoll_run_fail(group, coll_header_error(header), header->slot, header->run);
		return;
	case COLL_MESSAGE_BYE:
		kcoll_link_set_state(link, COLL_LINK_LEFT);
		if (kcoll_link_awaited(link))
			kcoll_run_fail(group, -ECONNRESET, link->rank, COLL_NONE);
		break;
	}
	kcoll_control_add(group, link->rank, header);
}

static void receive_unexpected_done(struct kcoll_link *link, struct kcoll_unexpected *message)
{
	const struct coll_header *header = &message->header;
	struct kcoll_group *group = kcoll_link_group(link);
	struct kcoll_run *run = kcoll_run_find(group, header->run);
	u32 op;
	int match;

	if (group->error ||
	    (run ? run->completed : (s32)(header->run - group->next_run) < 0)) {
		kcoll_unexpected_free(link->set, message);
		return;
	}
	if (!run)
		return;
	match = coll_match(&run->step, link->rank, header->slot, header->bytes, &op);
	if (match != COLL_MATCH_POSTED && match != COLL_MATCH_UNEXPECTED)
		return;
	run->arrived[op] = 1;
	if (match == COLL_MATCH_POSTED)
		kcoll_run_take_unexpected(run, op);
}

static void receive_done(struct kcoll_run *run, u32 op, u64 got, bool whole)
{
	run->in_flight--;
	run->got[op] = got;
	if (!whole) {
		kcoll_run_maybe_idle(run);
		return;
	}
	run->arrived[op] = 1;
	run->loaded->group->device->counters.recvs++;
	kcoll_run_op_done(run, op);
}

static void receive_abandoned(struct kcoll_run *run)
{
	run->in_flight--;
	kcoll_run_maybe_idle(run);
}

static void send_done(struct kcoll_sending *sending)
{
	sending->run->in_flight--;
	kcoll_run_op_done(sending->run, sending->op);
}

static void link_failed(struct kcoll_link *link, int error, u32 failed_rank, u32 reporter)
{
	kcoll_run_fail(kcoll_link_group(link), error, failed_rank, reporter);
}

const struct kcoll_link_ops kcoll_receive_ops = {
	.data = receive_data,
	.control = receive_control,
	.reduce = kcoll_fused_reduce,
	.received = receive_done,
	.unexpected = receive_unexpected_done,
	.abandoned = receive_abandoned,
	.sent = send_done,
	.needs = kcoll_link_needed,
	.failed = link_failed,
};
