// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Length: one protocol, in which each message that arrives may end a receive or go on with a
 * send.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chunk.h"
#include "core/match.h"
#include "core/port.h"
#include "exec.h"
#include "failure.h"
#include "group.h"
#include "health.h"
#include "libcoll/engine/memory.h"
#include "live.h"
#include "libcoll/link/explain.h"
#include "libcoll/link/groups.h"
#include "point_to_point.h"
#include "unexpected.h"

enum {
	EAGER_MAX = URGENT_MAX,		/* longer messages could be overtaken by shorter ones */
	EAGER_COST = 64,		/* what a message takes at the receiver beside its bytes */
	CREDIT = 65536,
	CREDIT_BACK = 16384,		/* so much is given back in one message */
};

/* Of each rank: what this rank may send to it and has received from it. */
struct coll_point_peer {
	uint64_t credit;		/* bytes that may go to it unasked */
	uint64_t held;			/* bytes of its credit that were not given back to it */
	uint64_t owed;			/* of these, what is to be given back */
	uint32_t sent, received;	/* messages, offers included */
};

static struct coll_point_peer *point_peer(const struct coll_link *link)
{
	return &link->group->peers[link->rank];
}

static bool point_is_self(const struct coll_link *link)
{
	return link->rank == link->group->rank;
}

static uint64_t point_cost(uint64_t bytes)
{
	return bytes + EAGER_COST;
}

/* What its buffer has, in bytes. */
static uint64_t point_capacity(const struct coll_exec *exec)
{
	return exec->planned->call.count * exec->planned->call.element;
}

/* ---- finding execs ---------------------------------------------------------- */

static bool point_matches(const struct coll_envelope *wanted, uint32_t rank, uint32_t tag)
{
	return (wanted->rank == COLL_NONE || wanted->rank == rank) &&
	       (wanted->tag == COLL_ANY_TAG || (uint32_t)wanted->tag == tag);
}

/* The oldest receive that a message from this rank is for, or NULL. */
static struct coll_exec *point_posted(const struct coll_group *group, uint32_t rank, uint32_t tag)
{
	struct coll_exec *exec;

	for (exec = group->active; exec; exec = exec->next)
		if (exec->state == EXEC_RUNNING && exec->envelope.state == POINT_POSTED &&
		    point_matches(&exec->envelope, rank, tag))
			break;
	return exec;
}

/* The exec in this state of the message of this number to or from the rank, or NULL. */
static struct coll_exec *point_find(const struct coll_group *group, enum coll_point_state state,
				    uint32_t rank, uint32_t number)
{
	struct coll_exec *exec;

	for (exec = group->active; exec; exec = exec->next)
		if (exec->state == EXEC_RUNNING && exec->envelope.state == state &&
		    exec->envelope.rank == rank && exec->envelope.number == number)
			break;
	return exec;
}

/* ---- waiting ------------------------------------------------------------------ */

/* The exec waits for this peer of its schedule, or no more: its link is read as long as any does. */
static void point_await(struct coll_exec *exec, uint32_t peer, bool await)
{
	struct coll_link *link = exec->planned->links[peer];

	if (!await == !exec->posted[peer])
		return;
	exec->posted[peer] = await;
	if (await) {
		coll_link_expect(link, 1);
		coll_link_await(link);
	} else {
		coll_assert(link->expected);
		coll_link_expect(link, -1);
	}
}

/* It waits for this rank and no other. */
static void point_await_only(struct coll_exec *exec, uint32_t rank)
{
	uint32_t peer;

	for (peer = 0; peer < exec->planned->schedule->peers; peer++)
		point_await(exec, peer, exec->planned->links[peer]->rank == rank);
}

static void point_complete(struct coll_exec *exec, int status)
{
	const struct coll_envelope *envelope = &exec->envelope;
	struct coll_received *received = exec->run ? exec->run->received : NULL;

	if (received)
		*received = (struct coll_received){
			.source = envelope->rank,
			.tag = envelope->tag,
			.count = envelope->bytes / exec->planned->call.element,
		};
	coll_exec_complete(exec, status);
	coll_exec_maybe_idle(exec);
}

/* ---- what ranks tell each other ------------------------------------------------- */

/* A message without a run, in memory of its own. */
static void point_tell(struct coll_link *link, enum coll_point_kind kind, uint32_t number,
		       uint32_t slot, const uint64_t *length)
{
	struct coll_message *message = calloc(1, sizeof(*message));

	if (!message) {
		coll_group_fail(link->group, -ENOMEM, link->group->rank, link->rank,
				"no memory for a message");
		return;
	}
	message->header = (struct coll_header){
		.kind = COLL_MESSAGE_DATA,
		.version = COLL_WIRE_VERSION,
		.run = number,
		.slot = slot,
		.hash = kind,
		.bytes = length ? sizeof(*length) : 0,
	};
	if (length)
		memcpy(message->small, length, sizeof(*length));
	coll_link_send(link, message);
}

/* A message that was sent unasked takes no room any more. */
static void point_pay_back(struct coll_link *link, uint64_t bytes)
{
	struct coll_point_peer *peer = point_peer(link);

	if (point_is_self(link)) {
		peer->credit += point_cost(bytes);
		return;
	}
	peer->owed += point_cost(bytes);
	if (peer->owed < CREDIT_BACK || coll_exec_link_is_gone(link))
		return;
	point_tell(link, COLL_POINT_CREDIT, 0, peer->owed, NULL);
	peer->held -= peer->owed;
	peer->owed = 0;
}

/* ---- a receive gets its message --------------------------------------------------- */

/* -EMSGSIZE: it does not fit; the application's group says why. */
static int point_check_size(const struct coll_exec *exec)
{
	const struct coll_envelope *envelope = &exec->envelope;
	const uint32_t element = exec->planned->call.element;
	const uint64_t bytes = envelope->bytes, capacity = point_capacity(exec);

	if (bytes <= capacity && !(bytes % element))
		return 0;
	coll_group_explain(exec->group->twin, "recv: the message of rank %u with tag %d has %llu "
			   "bytes; valid: whole elements of %u bytes, count (%llu) at most",
			   envelope->rank, envelope->tag, (unsigned long long)bytes, element,
			   (unsigned long long)exec->planned->call.count);
	return -EMSGSIZE;
}

/* Its payload is in place, or was discarded. */
static void point_received(struct coll_exec *exec)
{
	struct coll_context *context = exec->group->context;

	context->counters.recvs++;
	context->counters.recv_bytes += exec->envelope.bytes;
	point_complete(exec, point_check_size(exec));
}

static void point_meet(struct coll_exec *exec, enum coll_point_state state, uint32_t rank,
		       uint32_t tag, uint32_t number)
{
	exec->envelope.state = state;
	exec->envelope.rank = rank;
	exec->envelope.tag = tag;
	exec->envelope.number = number;
}

/* Of this rank to itself. A sender that still waits has the payload. */
static void point_take_own(struct coll_exec *exec, struct coll_exec *sender)
{
	exec->envelope.bytes = sender->envelope.bytes;
	if (exec->envelope.bytes && !point_check_size(exec))
		memcpy(exec->buffer[COLL_OUT], sender->buffer[COLL_IN], exec->envelope.bytes);
	point_complete(sender, 0);
	point_received(exec);
}

/* The offer of a message is accepted: it comes next. One that does not fit is never sent. */
static void point_accept(struct coll_exec *exec, struct coll_link *link, uint64_t bytes)
{
	const uint32_t number = exec->envelope.number;
	int error;

	exec->envelope.bytes = bytes;
	if (point_is_self(link)) {
		point_take_own(exec, point_find(link->group, POINT_OFFERED, link->rank, number));
		return;
	}
	if (coll_exec_link_is_gone(link)) {
		coll_group_peer_gone(link);
		return;
	}
	error = point_check_size(exec);
	point_tell(link, COLL_POINT_GRANT, number, error != 0, NULL);
	if (error) {
		point_complete(exec, error);
		return;
	}
	exec->envelope.state = POINT_GRANTED;
	exec->got[0] = 0;
	point_await_only(exec, link->rank);
}

/* The receive gets a message or an offer that came before it. */
static void point_take(struct coll_exec *exec, struct coll_link *link,
		       struct coll_unexpected *kept)
{
	const struct coll_header header = kept->header;
	uint64_t bytes = header.bytes;

	point_meet(exec, POINT_ARRIVING, link->rank, header.slot, header.run);
	if (!kept->complete) {
		kept->claimed = true;
		point_await_only(exec, link->rank);
		return;
	}
	if (header.hash == COLL_POINT_OFFER) {
		memcpy(&bytes, kept->data, sizeof(bytes));
		coll_unexpected_release(link, kept);
		point_accept(exec, link, bytes);
		return;
	}
	exec->envelope.bytes = bytes;
	if (bytes && !point_check_size(exec)) {
		memcpy(exec->buffer[COLL_OUT], kept->data, bytes);
		link->group->context->counters.copied_bytes += bytes;
	}
	coll_unexpected_release(link, kept);
	point_pay_back(link, bytes);
	point_received(exec);
}

/* ---- receiving ---------------------------------------------------------------------- */

/* The oldest kept message of this link that the receive is for, or NULL. */
static struct coll_unexpected *point_kept(const struct coll_link *link,
					  const struct coll_envelope *wanted)
{
	struct coll_unexpected *kept = link ? link->kept : NULL;

	while (kept && (kept->claimed || !point_matches(wanted, link->rank, kept->header.slot)))
		kept = kept->next;
	return kept;
}

/* From any source: the ranks take turns to be looked at first. */
static struct coll_link *point_link_with(struct coll_group *group,
					 const struct coll_envelope *wanted)
{
	const uint32_t first = wanted->rank == COLL_NONE ? group->next_source : wanted->rank;
	const uint32_t count = wanted->rank == COLL_NONE ? group->ranks : 1;
	uint32_t i, rank;

	for (i = 0; i < count; i++) {
		rank = (first + i) % group->ranks;
		if (!point_kept(group->links[rank], wanted))
			continue;
		group->next_source = (rank + 1) % group->ranks;
		return group->links[rank];
	}
	return NULL;
}

/* Waits for all that may send it. Without one that is left, the last of them is to blame. */
static void point_post(struct coll_exec *exec)
{
	struct coll_planned *planned = exec->planned;
	const uint32_t peers = planned->schedule->peers;
	uint32_t peer, gone = 0;

	coll_exec_open_links(planned, NULL);
	for (peer = 0; peer < peers; peer++) {
		if (coll_exec_link_is_gone(planned->links[peer]))
			gone++;
		else
			point_await(exec, peer, true);
	}
	if (gone && gone == peers)
		coll_group_peer_gone(planned->links[peers - 1]);
}

static void point_recv(struct coll_exec *exec)
{
	struct coll_link *link = point_link_with(exec->group, &exec->envelope);

	if (link)
		point_take(exec, link, point_kept(link, &exec->envelope));
	else
		point_post(exec);
}

/* ---- sending --------------------------------------------------------------------------- */

static void point_queue(struct coll_exec *exec, struct coll_link *link, enum coll_point_kind kind,
			const uint8_t *payload)
{
	struct coll_message *message = exec->messages;
	const uint64_t bytes = exec->envelope.bytes;

	message->header = (struct coll_header){
		.kind = COLL_MESSAGE_DATA,
		.version = COLL_WIRE_VERSION,
		.run = exec->envelope.number,
		.slot = exec->envelope.tag,
		.hash = kind,
		.bytes = bytes,
	};
	message->reported = kind == COLL_POINT_EAGER;
	message->payload = bytes <= MESSAGE_INLINE_MAX ? NULL : payload;
	if (bytes && !message->payload)
		memcpy(message->small, payload, bytes);
	message->run_age = exec->age;
	coll_exec_get(exec);
	coll_link_send(link, message);
	coll_memory_wake_readers(&link->group->context->engine);
}

/* The application may use its buffer at once: what does not go at once goes from a copy. */
static void point_send_eager(struct coll_exec *exec, struct coll_link *link)
{
	uint8_t *payload = exec->buffer[COLL_IN];

	point_peer(link)->credit -= point_cost(exec->envelope.bytes);
	if (exec->envelope.bytes > MESSAGE_INLINE_MAX)
		payload = memcpy(exec->buffer[COLL_SCRATCH], payload, exec->envelope.bytes);
	point_queue(exec, link, COLL_POINT_EAGER, payload);
	point_complete(exec, 0);
}

/* The link is read until the peer grants it: that may be while this rank does nothing else. */
static void point_offer(struct coll_exec *exec, struct coll_link *link)
{
	exec->envelope.state = POINT_OFFERED;
	point_tell(link, COLL_POINT_OFFER, exec->envelope.number, exec->envelope.tag,
		   &exec->envelope.bytes);
	point_await(exec, 0, true);
}

/* To this rank itself: kept as if it had arrived. */
static void point_send_own(struct coll_exec *exec, struct coll_link *link, bool eager)
{
	const struct coll_envelope *sent = &exec->envelope;
	struct coll_exec *receiver = point_posted(link->group, link->rank, sent->tag);
	struct coll_unexpected *kept;

	if (receiver) {
		point_meet(receiver, POINT_ARRIVING, link->rank, sent->tag, sent->number);
		point_take_own(receiver, exec);
		return;
	}
	link->header = (struct coll_header){
		.run = sent->number,
		.slot = sent->tag,
		.hash = eager ? COLL_POINT_EAGER : COLL_POINT_OFFER,
		.bytes = eager ? sent->bytes : sizeof(sent->bytes),
	};
	kept = coll_chunk_keep(link, &link->header);
	if (!kept)
		return;
	kept->complete = true;
	if (!eager) {
		memcpy(kept->data, &sent->bytes, sizeof(sent->bytes));
		exec->envelope.state = POINT_OFFERED;
		return;
	}
	if (sent->bytes)
		memcpy(kept->data, exec->buffer[COLL_IN], sent->bytes);
	point_peer(link)->credit -= point_cost(sent->bytes);
	point_complete(exec, 0);
}

static void point_send(struct coll_exec *exec)
{
	struct coll_group *group = exec->group;
	struct coll_link *link = group->links[exec->envelope.rank];
	const uint64_t bytes = exec->envelope.bytes;
	const bool eager = bytes <= EAGER_MAX && point_peer(link)->credit >= point_cost(bytes);

	coll_exec_open_links(exec->planned, NULL);
	if (coll_exec_link_is_gone(link)) {
		coll_group_peer_gone(link);
		return;
	}
	exec->envelope.number = point_peer(link)->sent++;
	group->context->counters.sends++;
	group->context->counters.sent_bytes += bytes;
	if (coll_link_is_far(link)) {
		group->context->counters.far_sends++;
		group->context->counters.far_bytes += bytes;
	}
	if (point_is_self(link)) {
		point_send_own(exec, link, eager);
		return;
	}
	coll_live_op(exec, COLL_FLIGHT_SEND, link, exec->envelope.number);
	if (eager)
		point_send_eager(exec, link);
	else
		point_offer(exec, link);
}

int coll_point_start(struct coll_run *run, uint64_t deadline)
{
	const struct coll_call *call = &run->planned->call;
	struct coll_exec *exec;
	const int error = coll_exec_begin(run, deadline, &exec);

	if (error)
		return error;
	while (coll_step_next(&exec->step) != COLL_NONE)
		;	/* what it waits for is shown as started */
	exec->envelope = (struct coll_envelope){
		.state = call->collective == COLL_CALL_RECV ? POINT_POSTED : POINT_SENT,
		.rank = call->root,
		.tag = run->tag,
		.bytes = point_capacity(exec),
	};
	if (call->collective == COLL_CALL_RECV)
		point_recv(exec);
	else
		point_send(exec);
	return 0;
}

/* ---- a message arrives ------------------------------------------------------------------- */

static void point_refuse(struct coll_link *link)
{
	coll_group_fail(link->group, -EPROTO, link->rank, link->group->rank,
			"sent a message that nobody asked for");
}

/* The next message of the peer: an offer, or one that its credit has room for. */
static bool point_may_begin(const struct coll_link *link)
{
	const struct coll_header *header = &link->header;
	const struct coll_point_peer *peer = point_peer(link);

	if (header->run != peer->received)
		return false;
	if (header->hash == COLL_POINT_OFFER)
		return header->bytes == sizeof(uint64_t);
	return header->bytes <= EAGER_MAX && point_cost(header->bytes) <= CREDIT - peer->held;
}

/* A message that was sent unasked, or the offer of one. */
static void point_begin_new(struct coll_link *link)
{
	const struct coll_header *header = &link->header;
	struct coll_point_peer *peer = point_peer(link);
	struct coll_exec *exec = NULL;

	if (!point_may_begin(link)) {
		point_refuse(link);
		return;
	}
	peer->received++;
	if (header->hash == COLL_POINT_EAGER) {
		peer->held += point_cost(header->bytes);
		exec = point_posted(link->group, link->rank, header->slot);
	}
	if (exec) {
		point_meet(exec, POINT_ARRIVING, link->rank, header->slot, header->run);
		exec->envelope.bytes = header->bytes;
		point_await_only(exec, link->rank);
		coll_chunk_to_exec(link, exec, 0);
		if (header->bytes > point_capacity(exec))
			link->target = NULL;
		return;
	}
	link->unexpected = coll_chunk_keep(link, &link->header);
	if (link->unexpected)
		link->target = link->unexpected->data;
}

static void point_begin_granted(struct coll_link *link)
{
	const struct coll_header *header = &link->header;
	struct coll_exec *exec = point_find(link->group, POINT_GRANTED, link->rank, header->run);

	/* Without streams chunks come in order. */
	if (exec && header->bytes == exec->envelope.bytes &&
	    (link->whole->streams || header->offset == exec->got[0]))
		coll_chunk_to_exec(link, exec, 0);
	else
		point_refuse(link);
}

static void point_begin(struct coll_link *link)
{
	struct coll_group *group = link->group;
	const struct coll_header *header = &link->header;

	coll_assert(!link->exec && !link->unexpected);
	if (group->state != GROUP_OK || group->freed)
		group->context->counters.stale++;
	else if (header->hash == COLL_POINT_LONG)
		point_begin_granted(link);
	else if (header->offset || header->chunk || link->number)
		point_refuse(link);
	else if (header->hash == COLL_POINT_EAGER || header->hash == COLL_POINT_OFFER)
		point_begin_new(link);
	else if (header->bytes ||
		 (header->hash != COLL_POINT_GRANT && header->hash != COLL_POINT_CREDIT))
		point_refuse(link);
}

/* An unexpected message is whole; its receive may have started meanwhile, or await its offer. */
static void point_kept_whole(struct coll_link *link, struct coll_unexpected *kept)
{
	struct coll_exec *exec;

	kept->complete = true;
	exec = kept->claimed ? point_find(link->group, POINT_ARRIVING, link->rank,
					  kept->header.run) :
			       point_posted(link->group, link->rank, kept->header.slot);
	if (exec)
		point_take(exec, link, kept);
}

/* The chunk of link->header is there: the link may be a stream. */
static void point_payload(const struct coll_link *link, struct coll_exec *exec)
{
	struct coll_envelope *envelope = &exec->envelope;

	coll_exec_put(exec);
	if (exec->state != EXEC_RUNNING) {
		coll_exec_maybe_idle(exec);
		return;
	}
	if (envelope->state == POINT_GRANTED) {
		exec->got[0] += coll_chunk_bytes(&link->header);
		coll_assert(exec->got[0] <= envelope->bytes);
		if (exec->got[0] != envelope->bytes)
			return;
	} else {
		point_pay_back(link->whole, envelope->bytes);
	}
	coll_live_op(exec, COLL_FLIGHT_GOT, link->whole, envelope->number);
	point_received(exec);
}

/* The peer receives what it was offered; if it does not fit there, it is not to be sent. */
static void point_granted(struct coll_link *link)
{
	struct coll_exec *exec = point_find(link->group, POINT_OFFERED, link->rank,
					    link->header.run);

	if (!exec) {
		point_refuse(link);
		return;
	}
	point_await(exec, 0, false);
	if (link->header.slot) {
		point_complete(exec, 0);
		return;
	}
	exec->envelope.state = POINT_SENDING;
	point_queue(exec, link, COLL_POINT_LONG, exec->buffer[COLL_IN]);
}

static void point_credited(struct coll_link *link)
{
	struct coll_point_peer *peer = point_peer(link);

	if (link->header.slot > CREDIT - peer->credit)
		point_refuse(link);
	else
		peer->credit += link->header.slot;
}

static void point_end(struct coll_link *link)
{
	struct coll_unexpected *kept = link->unexpected;
	struct coll_exec *exec = link->exec;

	link->exec = NULL;
	link->unexpected = NULL;
	link->target = NULL;
	if (exec)
		point_payload(link, exec);
	else if (link->group->state != GROUP_OK || link->group->freed)
		return;
	else if (kept)
		point_kept_whole(link->whole, kept);
	else if (link->header.hash == COLL_POINT_GRANT)
		point_granted(link->whole);
	else if (link->header.hash == COLL_POINT_CREDIT)
		point_credited(link->whole);
}

/* ---- other events of links ------------------------------------------------------------------ */

/* A granted message of this link that is long enough to be worth it. */
static struct coll_exec *point_expect(struct coll_link *link, uint8_t **target, uint64_t *bytes)
{
	struct coll_exec *exec;

	for (exec = link->group->active; exec; exec = exec->next) {
		if (exec->state != EXEC_RUNNING || exec->envelope.state != POINT_GRANTED ||
		    exec->envelope.rank != link->rank)
			continue;
		*bytes = exec->envelope.bytes - exec->got[0];
		if (*bytes < DIRECT_MIN)
			return NULL;
		*target = exec->buffer[COLL_OUT] + exec->got[0];
		coll_exec_get(exec);
		return exec;
	}
	return NULL;
}

static void point_release(struct coll_exec *exec)
{
	coll_exec_put(exec);
	coll_exec_maybe_idle(exec);
}

/* The message has gone, or is given up with its link: then a send that is not done has failed. */
static void point_sent(struct coll_message *message)
{
	struct coll_exec *exec = message->exec;
	const struct coll_link *link = exec->group->links[exec->envelope.rank];

	coll_exec_put(exec);
	if (exec->state == EXEC_COMPLETED)
		coll_exec_maybe_idle(exec);
	else if (exec->envelope.state != POINT_SENDING || exec->group->state != GROUP_OK)
		return;
	else if (link->state == LINK_CLOSED)
		coll_group_peer_gone(link);
	else
		point_complete(exec, 0);
}

static int point_up(struct coll_link *link)
{
	if (link->group->state == GROUP_FAILING)
		coll_group_tell(link);
	coll_link_touch(link);
	return 0;
}

static void point_closing(struct coll_link *link)
{
	(void)link;
}

/* Sends that are done need no link: their messages may find no receiver any more. */
static bool point_needs(const struct coll_link *link)
{
	const struct coll_exec *exec;

	for (exec = link->group->active; exec; exec = exec->next) {
		const uint32_t peer = coll_peer_find(exec->planned->schedule, link->rank);

		if (exec->state == EXEC_RUNNING && peer != COLL_NONE &&
		    (exec->posted[peer] || exec->envelope.state == POINT_SENDING))
			return true;
	}
	return false;
}

static const struct coll_link_events point_link_events = {
	.begin = point_begin,
	.end = point_end,
	.expect = point_expect,
	.release = point_release,
	.sent = point_sent,
	.control = coll_health_message,
	.up = point_up,
	.closing = point_closing,
	.needs = point_needs,
	.lost = coll_group_link_lost,
	.failed = coll_group_fail,
	.news = coll_health_news,
	.called_for = coll_point_called_for,
};

/* ---- the twin ----------------------------------------------------------------------------------- */

#define POINT_BITS	0xa0761d6478bd642full
#define POINT_FACTOR	0xe7037ed1a0b428dbull
#define POINT_FACTOR_2	0x8ebc6af09c88c6e3ull

/* The same on all ranks, and different from the ids of groups that are split or survive. */
static uint64_t point_group_id(uint64_t id)
{
	id = (id ^ POINT_BITS) * POINT_FACTOR;
	id = (id ^ id >> 32) * POINT_FACTOR_2;
	return id ^ id >> 29;
}

/* Of an odd factor, modulo 2^64: each step doubles the number of right bits, from 3. */
static uint64_t point_inverse(uint64_t factor)
{
	uint64_t inverse = factor;
	int step;

	for (step = 0; step < 5; step++)
		inverse *= 2 - factor * inverse;
	return inverse;
}

/* The group's, by the twin's: each step of the above backwards, from the last. */
static uint64_t point_group_id_back(uint64_t id)
{
	id = (id ^ id >> 29 ^ id >> 58) * point_inverse(POINT_FACTOR_2);
	return ((id ^ id >> 32) * point_inverse(POINT_FACTOR)) ^ POINT_BITS;
}

int coll_point_group(struct coll_group *group, struct coll_group **twin)
{
	struct coll_point_peer *peers;
	uint32_t rank;
	int error;

	if (!group->twin && group->state != GROUP_OK)
		return group->error;
	if (!group->twin) {
		peers = calloc(group->ranks, sizeof(*peers));
		if (!peers)
			return -ENOMEM;
		for (rank = 0; rank < group->ranks; rank++)
			peers[rank].credit = CREDIT;
		error = coll_group_make_twin(group, point_group_id(group->id), &point_link_events,
					     peers);
		if (error)
			return error;
	}
	*twin = group->twin;
	return 0;
}

/* The group whose twin has this id, or NULL. */
static struct coll_group *point_group_find(const struct coll_context *context, uint64_t id)
{
	struct coll_group *group = coll_groups_find(context, point_group_id_back(id));

	return group && !group->peers ? group : NULL;
}

/*
 * So a rank that only does other things still answers pings, and says whom it waits for; and one
 * that is to connect does so for the peer that has something for it.
 */
void coll_point_called_for(struct coll_context *context, uint64_t id, uint32_t world)
{
	struct coll_group *group = point_group_find(context, id), *twin;
	struct coll_link *link;
	uint32_t rank;

	if (!group || group->freed || coll_point_group(group, &twin))
		return;
	for (rank = 0; world != COLL_NONE && rank < twin->ranks; rank++) {
		if (twin->world[rank] != world)
			continue;
		link = coll_link_get(twin, rank);
		if (link)
			coll_link_open(link);
	}
}
