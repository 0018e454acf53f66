// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What a link sends: messages of its queue, or chunks of them. */
#include "arbiter.h"
#include "core/match.h"
#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/inject.h"
#include "link.h"
#include "send.h"
#include "stream.h"

/* Bytes of the message's next chunk. */
static uint64_t chunk_bytes(const struct coll_message *message)
{
	return sizeof(message->header) + coll_chunk_bytes(&message->header);
}

bool coll_link_wants_send(struct coll_socket *socket)
{
	struct coll_link *link = coll_link_of(socket);

	if (link->socket.sending || !link->attached || link->offloaded || link->broken ||
	    link->state == LINK_CLOSED || link->state == LINK_LOST)
		return false;
	if (!link->queue)
		return link->number && coll_stream_has_work(link);
	return link->sent || coll_arbiter_allows(link, link->queue);
}

/*
 * Adds `bytes` at `base` without the first *skip, which are sent already. A message that is
 * larger than one transfer is cut: it is the last in its iov.
 */
static int add_iov(struct iovec *iov, const void *base, uint64_t bytes, uint64_t *skip)
{
	if (*skip >= bytes) {
		*skip -= bytes;
		return 0;
	}
	iov->iov_base = (uint8_t *)base + *skip;
	iov->iov_len = bytes - *skip < COLL_TRANSFER_MAX ? bytes - *skip : COLL_TRANSFER_MAX;
	*skip = 0;
	return 1;
}

static int send_iov(struct coll_link *link, struct iovec *iov, int max)
{
	struct coll_message *message, **slot;
	uint64_t skip = link->sent;
	int count = 0;

	if (!link->queue)
		coll_stream_take(link);
	link->in_iov = 0;
	for (slot = &link->queue; (message = *slot) && count + 2 <= max; slot = &message->next) {
		const struct coll_header *header = &message->header;

		if (!skip && !coll_arbiter_allows(link, message))
			break;
		coll_arbiter_begin(link, slot);
		if (header->kind == COLL_MESSAGE_BYE)
			message->header.slot = coll_streams_attached(link);
		link->in_iov++;
		if (message->payload) {
			count += add_iov(&iov[count], header, sizeof(*header), &skip);
			count += add_iov(&iov[count], message->payload + header->offset,
					 coll_chunk_bytes(header), &skip);
		} else {	/* the payload follows the header in the message */
			count += add_iov(&iov[count], header, chunk_bytes(message), &skip);
		}
		/*
		 * A failure cuts the queue behind what has begun, and urgent messages wait
		 * for it: keep that short. The policy decides what follows a chunk.
		 */
		if (header->chunk || coll_chunk_bytes(header) > SPECULATIVE_MAX)
			break;
	}
	return count;
}

int coll_link_send_iov(struct coll_socket *socket, struct iovec *iov, int max)
{
	struct coll_link *link = coll_link_of(socket);
	return coll_short_io_clip(socket->engine->short_io, iov, send_iov(link, iov, max),
				  &link->cut);
}

bool coll_link_sends_quietly(const struct coll_socket *socket)
{
	const struct coll_link *link = coll_link_of(socket);
	const struct coll_message *message = link->queue;
	uint32_t i;

	if (link->cut)	/* the rest must follow at once */
		return false;
	for (i = 0; i < link->in_iov; i++, message = message->next)
		if (message->exec && !message->reported)
			return false;
	return !message;	/* the rest of the queue waits until they have gone */
}

/*
 * A rank that fails a group sends the news and closes. A rank that only sends finds the
 * connection broken before it has read the news; so it reads to the end before it blames
 * the peer.
 */
static void link_send_broke(struct coll_link *link, int error)
{
	if (link->group->state != GROUP_OK || link->whole->leaving) {
		coll_link_lost(link, error);
		return;
	}
	link->broken = error;
	coll_link_touch(link);
}

/* The message has gone, or a chunk of it. In a failed group the rest is not needed. */
static void link_chunk_sent(struct coll_link *link, struct coll_message *message)
{
	struct coll_header *header = &message->header;
	const bool bulk = header->bytes > URGENT_MAX;
	bool whole;

	link->group->context->counters.chunks += header->chunk || header->offset;
	link->group->context->counters.streamed += link->number && bulk;
	if (message == link->chunk) {
		message = coll_link_chunk_gone(link);
		coll_arbiter_chunk_sent(link->whole, message);
		if (message)
			coll_link_release(link->whole, message);
		return;
	}
	header->offset += coll_chunk_bytes(header);
	whole = header->offset == header->bytes || link->group->state != GROUP_OK;
	if (!whole)
		coll_arbiter_requeue(link, message);
	if (bulk)
		coll_arbiter_chunk_sent(link, whole);
	if (whole)
		coll_link_release(link, message);
}

void coll_link_sent(struct coll_socket *socket, ssize_t result)
{
	struct coll_link *link = coll_link_of(socket);
	struct coll_group *group = link->group;

	link->socket.sending = false;
	if (result < 0) {
		link_send_broke(link, result);
		return;
	}
	link->sent += result;
	while (link->queue && link->sent >= chunk_bytes(link->queue)) {
		link->sent -= chunk_bytes(link->queue);
		link_chunk_sent(link, coll_arbiter_pop(link));
	}
	if (link->queue || (link->number && !link->leaving))
		coll_link_touch(link);
	else if (link->leaving)
		link->transport->stop_sending(link);
	if (group->state == GROUP_FAILING)
		coll_engine_check_at(&group->context->engine, coll_now());
}
