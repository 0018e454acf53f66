// SPDX-License-Identifier: GPL-2.0
/*
 * Headers and payloads from the peer. The receive state is not stored: it follows
 * from the bytes that are missing. Short payloads go through the stage; longer ones
 * are received where they belong.
 */
#include <linux/bvec.h>
#include <linux/uio.h>

#include "kmod/common/sum.h"
#include "link.h"

enum { REDUCED_TIMES = 8 };	/* as long as a copy, a reduction may take */

void kcoll_link_receive_into(struct kcoll_link *link, struct kcoll_run *run, u32 op,
			     const struct kcoll_memory *buffer, u64 offset)
{
	lockdep_assert_held(link->set->lock);
	link->run = run;
	link->op = op;
	link->buffer = buffer;
	link->offset = offset;
	link->reduces = false;
}

/* False: there is no capacity for its payload, the link stalls. */
static bool receive_header(struct kcoll_link *link)
{
	const struct coll_header *header = &link->header;
	const struct kcoll_link_ops *ops = link->set->ops;

	link->payload_left = 0;
	if (!coll_header_valid(header)) {
		ops->failed(link, -EPROTO, link->rank, link->set->rank);
		kcoll_link_cut(link);
		return true;
	}
	if (header->kind == COLL_MESSAGE_OFFER && !kcoll_offer_begin(link))
		return true;	/* it comes whole, or is not wanted */
	if (header->kind != COLL_MESSAGE_DATA) {
		kcoll_link_collect(link);	/* what was taken before the peer said that */
		ops->control(link);
		return true;
	}
	link->payload_left = coll_chunk_bytes(header);
	link->unexpected = header->offset ? kcoll_unexpected_begun(link) : NULL;
	if (link->unexpected || ops->data(link))
		return true;
	if (link->from_pair)
		kcoll_offer_put_back(link);
	return false;
}

static bool receive_stalls(struct kcoll_link *link)
{
	kcoll_link_set_stalled(link, !receive_header(link));
	return kcoll_link_stalled(link);
}

/* The header and its payload are complete: a message, or a chunk of one. */
static void receive_chunk(struct kcoll_link *link)
{
	const struct kcoll_link_ops *ops = link->set->ops;
	struct kcoll_unexpected *message = link->unexpected;
	struct kcoll_run *run = link->run;
	const u64 got = link->header.offset + coll_chunk_bytes(&link->header);
	const bool whole = got == link->header.bytes;

	link->header_got = 0;
	link->run = NULL;
	link->unexpected = NULL;
	if (message) {
		message->got = got;
		message->complete = whole;
		if (whole)
			ops->unexpected(link, message);
	} else if (run) {
		ops->received(run, link->op, got, whole);
	}
}

/* Bytes of the message's payload that are received. */
static u64 payload_got(const struct kcoll_link *link)
{
	return link->header.offset + coll_chunk_bytes(&link->header) - link->payload_left;
}

/* Payload from the stage. */
static void receive_staged(struct kcoll_link *link, const u8 *from, u32 bytes)
{
	const u64 done = payload_got(link);

	if (link->unexpected)
		memcpy(link->unexpected->data + done, from, bytes);
	else if (link->run)
		kcoll_memory_write(link->buffer, link->offset + done, from, bytes);
	link->payload_left -= bytes;
}

void kcoll_link_consume(struct kcoll_link *link)
{
	lockdep_assert_held(link->set->lock);
	while (link->state != COLL_LINK_LOST && !kcoll_link_stalled(link) && !link->from_pair) {
		u32 have = link->stage_end - link->stage_at, part;
		const u8 *from = link->stage + link->stage_at;
		u32 missing = sizeof(link->header) - link->header_got;

		if (missing) {
			part = min(missing, have);
			memcpy((u8 *)&link->header + link->header_got, from, part);
			link->header_got += part;
			link->stage_at += part;
			if (part < missing)
				return;
			if (receive_stalls(link))
				return;
		} else if (link->payload_left) {
			part = min_t(u64, link->payload_left, have);
			if (!part)
				return;
			receive_staged(link, from, part);
			link->stage_at += part;
		}
		if (!link->payload_left)
			receive_chunk(link);
	}
}

static int receive_stage(struct kcoll_link *link)
{
	struct msghdr message = { .msg_flags = MSG_DONTWAIT };
	struct kvec piece = { link->stage, COLL_STAGE_BYTES };
	int got = kernel_recvmsg(link->socket, &message, &piece, 1, COLL_STAGE_BYTES,
				 MSG_DONTWAIT);

	if (got > 0) {
		link->stage_at = 0;
		link->stage_end = got;
	}
	return got;
}

/* Payload, without the stage. */
static int receive_payload(struct kcoll_link *link)
{
	struct msghdr message = { .msg_flags = MSG_DONTWAIT };
	const u64 done = payload_got(link);
	u64 bytes = min_t(u64, link->payload_left, COLL_POLL_BYTES);
	struct bio_vec bvec[COLL_BVECS];
	struct kvec piece;
	int n, got;

	if (link->run) {
		n = kcoll_memory_bvecs(link->buffer, link->offset + done, &bytes, bvec, COLL_BVECS);
		iov_iter_bvec(&message.msg_iter, ITER_DEST, bvec, n, bytes);
	} else {
		piece.iov_base = link->unexpected->data + done;
		piece.iov_len = bytes;
		iov_iter_kvec(&message.msg_iter, ITER_DEST, &piece, 1, bytes);
	}
	got = sock_recvmsg(link->socket, &message, MSG_DONTWAIT);
	if (got > 0) {
		link->payload_left -= got;
		if (!link->payload_left)
			receive_chunk(link);
	}
	return got;
}

void kcoll_link_forsake(struct kcoll_link *link)
{
	struct kcoll_unexpected *message = link->unexpected;
	struct kcoll_run *run = link->run;

	lockdep_assert_held(link->set->lock);
	link->from_pair = false;
	link->header_got = 0;
	link->payload_left = 0;
	link->unexpected = NULL;
	link->run = NULL;
	if (message)
		kcoll_unexpected_free(link->set, message);
	if (run)
		link->set->ops->abandoned(run);
}

/* Payload from the pair: how much of a poll it is. */
static u64 receive_taken(struct kcoll_link *link)
{
	const bool wanted = link->run || link->unexpected, reduces = link->run && link->reduces;
	const s64 got = kcoll_offer_take(link);

	if (got < 0) {
		kcoll_link_forsake(link);
		return 0;
	}
	if (wanted) {
		kcoll_sum_add(&link->set->counters->recv_bytes, got);
		kcoll_sum_add(&link->set->counters->taken_bytes, got);
		kcoll_sum_add(&link->set->counters->reduced_bytes, reduces ? got : 0);
	}
	if (!link->payload_left)
		receive_chunk(link);
	return reduces ? got * REDUCED_TIMES : got;
}

/*
 * The connection ended, with an errno or at its end. A peer that needs nothing from this rank
 * may free its group before it accepts the connection; then this rank must not need it either.
 */
static void receive_lost(struct kcoll_link *link, int error)
{
	bool left;

	kcoll_link_collect(link);	/* a run may need nothing from the peer after that */
	left = link->left || (!link->heard && !link->set->ops->needs(link));
	kcoll_link_set_state(link, COLL_LINK_LOST);
	if (!left)
		link->set->ops->failed(link, error == -ETIMEDOUT ? error : -ECONNRESET,
				       link->rank, COLL_NONE);
	kcoll_link_discard(link);
}

/* A piece from the socket: its bytes, or as recvmsg() says. */
static int receive_piece(struct kcoll_link *link)
{
	const bool direct = link->header_got == sizeof(link->header) &&
			    link->payload_left >= COLL_STAGE_BYTES &&
			    (link->run || link->unexpected);
	const int got = direct ? receive_payload(link) : receive_stage(link);

	if (got <= 0)
		return got;
	link->heard = true;
	kcoll_sum_add(&link->set->counters->recv_bytes, got);
	return got;
}

bool kcoll_link_poll_receive(struct kcoll_link *link)
{
	u64 done = 0;
	int got;

	if (kcoll_link_stalled(link)) {
		if (receive_stalls(link))
			return false;
		if (!link->payload_left)
			receive_chunk(link);
	}
	while (done < COLL_POLL_BYTES) {
		kcoll_link_consume(link);
		if (link->state == COLL_LINK_LOST || kcoll_link_stalled(link))
			return false;
		if (link->from_pair) {
			done += receive_taken(link);
			continue;
		}
		got = receive_piece(link);
		/* With a signal TCP says so also of data, at an urgent mark: once more, without it. */
		if (got == -EAGAIN && !link->broken)
			return signal_pending(current);
		if (got <= 0) {
			receive_lost(link, got);
			return false;
		}
		done += got;
	}
	return true;
}
