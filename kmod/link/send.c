// SPDX-License-Identifier: GPL-2.0
/*
 * The queue of messages to the peer. What is sent is copied into the socket, so a
 * message that is sent holds no page of the application; one that is offered does, until the
 * peer has taken it.
 */
#include <linux/bvec.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "core/port.h"
#include "kmod/common/subsystem.h"
#include "kmod/common/sum.h"
#include "link.h"

static void sending_queue_at(struct kcoll_link *link, struct kcoll_sending **at,
			     struct kcoll_sending *sending)
{
	if (at == link->queue_end)
		link->queue_end = &sending->next;
	sending->next = *at;
	sending->queued = true;
	*at = sending;
	if (link->socket && link->state != COLL_LINK_LOST)
		kcoll_link_wake(link);
}

static void sending_queue(struct kcoll_link *link, struct kcoll_sending *sending)
{
	sending_queue_at(link, link->queue_end, sending);
}

/* It was offered, in vain: before all others, but for one that is partly sent. */
static void sending_queue_whole(struct kcoll_link *link, struct kcoll_sending *sending)
{
	sending->header.kind = COLL_MESSAGE_DATA;
	sending->offered = COLL_OFFERED_NOT;
	sending_queue_at(link, link->sent ? &link->queue->next : &link->queue, sending);
}

void kcoll_link_send(struct kcoll_link *link, struct kcoll_sending *sending)
{
	lockdep_assert_held(link->set->lock);
	sending->offered = kcoll_offer(link, sending) ? COLL_OFFERED : COLL_OFFERED_NOT;
	sending_queue(link, sending);
}

int kcoll_link_send_control(struct kcoll_link *link, const struct coll_header *header)
{
	const u32 most = COLL_LINK_CONTROLS + (header->kind == COLL_MESSAGE_FAIL);
	struct kcoll_sending *sending;

	lockdep_assert_held(link->set->lock);
	if (link->controls >= most)
		return -ENOBUFS;
	sending = kzalloc(sizeof(*sending), COLL_GFP);
	if (!sending)
		return -ENOMEM;
	link->controls++;
	sending->header = *header;
	sending_queue(link, sending);
	return 0;
}

/* Through the socket. */
static u64 sending_bytes(const struct kcoll_sending *sending)
{
	const u64 payload = sending->header.kind == COLL_MESSAGE_OFFER ? 0 : sending->header.bytes;

	return sizeof(sending->header) + payload;
}

static void sending_release(struct kcoll_link *link, struct kcoll_sending *sending)
{
	sending->queued = false;
	if (sending->run) {
		link->set->ops->sent(sending);
		return;
	}
	link->controls--;
	kfree(sending);
}

/*
 * Releases messages that are off the queue. This may start ops, queue messages, and fail
 * the group, which drops messages of this link: queue and `sent` are to be right before.
 */
static void sending_release_all(struct kcoll_link *link, struct kcoll_sending *list)
{
	struct kcoll_sending *next;

	for (; list; list = next) {
		next = list->next;	/* a released message may be queued again */
		sending_release(link, list);
	}
}

/* Of offers that have ended, those to be released: the others are in the queue still. */
static struct kcoll_sending *offers_end(const struct list_head *offers)
{
	struct kcoll_sending *ended = NULL, *sending;

	list_for_each_entry(sending, offers, offer) {
		sending->offered = COLL_OFFERED_NOT;
		if (sending->queued)
			continue;
		sending->next = ended;
		ended = sending;
	}
	return ended;
}

static struct kcoll_sending *withdraw_offers(struct kcoll_link *link)
{
	LIST_HEAD(taken);
	LIST_HEAD(withdrawn);

	kcoll_offers_collect(link, COLL_COLLECT_ALL, &taken, &withdrawn);
	list_splice(&taken, &withdrawn);
	return offers_end(&withdrawn);
}

void kcoll_link_drop(struct kcoll_link *link, bool all)
{
	struct kcoll_sending *withdrawn = withdraw_offers(link);
	struct kcoll_sending **keep = &link->queue, *sending;
	struct kcoll_sending *dropped = NULL, **dropped_end = &dropped;
	const struct kcoll_sending *begun = link->sent ? link->queue : NULL;
	struct kcoll_run *run = link->run;

	lockdep_assert_held(link->set->lock);
	while ((sending = *keep)) {
		if (!sending->run || (sending == begun && !all)) {
			sending->offered = COLL_OFFERED_NOT;
			keep = &sending->next;
			continue;
		}
		if (sending == begun) {	/* what follows would be taken for the rest of it */
			link->broken = true;
			link->sent = 0;
		}
		*keep = sending->next;
		*dropped_end = sending;
		dropped_end = &sending->next;
	}
	*dropped_end = withdrawn;
	link->queue_end = keep;
	if (run) {
		link->run = NULL;
		link->set->ops->abandoned(run);
	}
	sending_release_all(link, dropped);
}

void kcoll_link_discard(struct kcoll_link *link)
{
	struct kcoll_sending *rest;

	kcoll_link_drop(link, true);
	rest = link->queue;
	link->queue = NULL;
	link->queue_end = &link->queue;
	link->sent = 0;
	sending_release_all(link, rest);
	kcoll_pair_leave(link);
}

void kcoll_link_cut(struct kcoll_link *link)
{
	kcoll_link_set_state(link, COLL_LINK_LOST);
	if (link->socket)
		kernel_sock_shutdown(link->socket, SHUT_RDWR);
	kcoll_link_discard(link);
}

static void send_header_bvec(struct kcoll_sending *sending, u64 skip, struct bio_vec *bvec)
{
	void *address = &sending->header;

	bvec->bv_page = is_vmalloc_addr(address) ? vmalloc_to_page(address) :
						   virt_to_page(address);
	bvec->bv_offset = offset_in_page(address) + skip;
	bvec->bv_len = sizeof(sending->header) - skip;
}

/* The pieces of the queue, from byte link->sent on. Returns their number. */
static int send_bvecs(struct kcoll_link *link, struct bio_vec *bvec, u64 *bytes)
{
	struct kcoll_sending *sending;
	u64 skip = link->sent;
	int n = 0;

	*bytes = 0;
	for (sending = link->queue; sending && n < COLL_BVECS; sending = sending->next) {
		u64 header = sizeof(sending->header), left, got;

		if (skip < header) {
			send_header_bvec(sending, skip, &bvec[n++]);
			*bytes += header - skip;
			skip = header;
		}
		left = sending_bytes(sending) - skip;
		if (left) {
			got = left;
			n += kcoll_memory_bvecs(sending->buffer, sending->offset + skip - header,
						&got, bvec + n, COLL_BVECS - n);
			*bytes += got;
			if (got < left)
				break;
		}
		skip = 0;
	}
	return n;
}

/* Off the queue. What is offered ends when it is taken. */
static void sending_sent(struct kcoll_link *link, struct kcoll_sending *sending)
{
	sending->queued = false;
	if (sending->offered == COLL_OFFERED_RETURNED && !link->set->failed)
		sending_queue_whole(link, sending);
	else if (sending->offered != COLL_OFFERED)
		sending_release(link, sending);
}

static void send_done(struct kcoll_link *link, u64 bytes)
{
	struct kcoll_sending *done = link->queue, **done_end = &done, *next;

	kcoll_sum_add(&link->set->counters->sent_bytes, bytes);
	link->sent += bytes;
	while (*done_end && link->sent >= sending_bytes(*done_end)) {
		link->sent -= sending_bytes(*done_end);
		done_end = &(*done_end)->next;
	}
	link->queue = *done_end;
	*done_end = NULL;
	if (!link->queue) {
		coll_assert(!link->sent);
		link->queue_end = &link->queue;
	}
	for (; done; done = next) {
		next = done->next;	/* see sending_release_all() */
		sending_sent(link, done);
	}
}

/* It goes whole through the socket: at its place, unless its header has gone there. */
static void sending_return(struct kcoll_link *link, struct kcoll_sending *sending)
{
	if (!sending->queued) {
		sending_queue_whole(link, sending);
	} else if (link->sent && sending == link->queue) {
		sending->offered = COLL_OFFERED_RETURNED;
	} else {
		sending->header.kind = COLL_MESSAGE_DATA;
		sending->offered = COLL_OFFERED_NOT;
	}
}

/* False: some offers are open still. */
static bool collect_offers(struct kcoll_link *link, enum kcoll_collect which)
{
	struct kcoll_sending *sending;
	LIST_HEAD(taken);
	LIST_HEAD(returned);
	const bool closed = kcoll_offers_collect(link, which, &taken, &returned);

	list_for_each_entry_reverse(sending, &returned, offer)
		sending_return(link, sending);
	list_for_each_entry(sending, &taken, offer)
		kcoll_sum_add(&link->set->counters->sent_bytes, sending->header.bytes);
	sending_release_all(link, offers_end(&taken));
	return closed;
}

void kcoll_link_collect(struct kcoll_link *link)
{
	lockdep_assert_held(link->set->lock);
	collect_offers(link, COLL_COLLECT_ENDED);
}

bool kcoll_link_withdraw(struct kcoll_link *link)
{
	lockdep_assert_held(link->set->lock);
	return collect_offers(link, COLL_COLLECT_OPEN);
}

bool kcoll_link_poll_send(struct kcoll_link *link)
{
	struct bio_vec bvec[COLL_BVECS];
	u64 bytes, done = 0;

	kcoll_link_collect(link);
	while (link->queue && link->state != COLL_LINK_LOST && !link->broken) {
		struct msghdr message = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
		int n = send_bvecs(link, bvec, &bytes), sent;

		iov_iter_bvec(&message.msg_iter, ITER_SOURCE, bvec, n, bytes);
		sent = sock_sendmsg(link->socket, &message);
		if (sent == -EAGAIN)
			return false;
		if (sent < 0) {
			/* The peer may have sent the reason before it closed: read that first. */
			link->broken = true;
			return true;
		}
		send_done(link, sent);
		done += sent;
		if (sent < bytes)
			return false;	/* the socket is full and wakes the link when it is not */
		if (done >= COLL_POLL_BYTES)
			return true;
	}
	return false;
}
