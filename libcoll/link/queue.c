// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What a link is to send: messages, in the arbiter's order, until they have gone. */
#include <errno.h>
#include <stdlib.h>

#include "arbiter.h"
#include "core/port.h"
#include "link.h"

/* ---- sending ------------------------------------------------------------ */

bool coll_link_sends_at_once(const struct coll_link *link)
{
	return link->transport->send_now && !link->queue && link->state == LINK_UP &&
	       link->attached && !link->offloaded && !link->broken;
}

bool coll_link_send_now(struct coll_link *link, struct coll_message *message)
{
	const struct coll_header *header = &message->header;
	/* Streams carry what is longer than urgent. */
	const uint64_t longest = link->streams ? URGENT_MAX : STRAIGHT_MAX;
	const struct iovec data[2] = {
		{ (void *)header, sizeof(*header) },
		{ message->payload ? (void *)message->payload : message->small, header->bytes },
	};

	return message->exec && header->bytes <= longest && coll_link_sends_at_once(link) &&
	       link->transport->send_now(link, data);
}

void coll_link_queue(struct coll_link *link, struct coll_message *message)
{
	coll_debug_assert(coll_context_is_owned(link->group->context));
	coll_arbiter_queue(link, message);
	coll_link_touch(link);
	coll_link_await_peer(link);
}

void coll_link_send(struct coll_link *link, struct coll_message *message)
{
	if (coll_link_send_now(link, message)) {
		coll_link_release(link, message);
		return;
	}
	coll_link_queue(link, message);
}

int coll_link_control(struct coll_link *link, enum coll_message_kind kind, uint32_t run,
		      uint32_t slot, uint32_t hash)
{
	struct coll_message *message;

	if (kind == COLL_MESSAGE_PONG && link->answering)
		return 0;
	message = calloc(1, sizeof(*message));
	if (!message)
		return -ENOMEM;
	link->answering |= kind == COLL_MESSAGE_PONG;
	message->header = (struct coll_header){
		.kind = kind,
		.version = COLL_WIRE_VERSION,
		.run = run,
		.slot = slot,
		.hash = hash,
	};
	coll_link_send(link, message);
	return 0;
}

struct coll_message *coll_link_chunk_gone(struct coll_link *stream)
{
	struct coll_message *message = stream->message;

	coll_assert(message && message->streaming);
	stream->message = NULL;
	if (--message->streaming || message->header.offset < message->header.bytes)
		return NULL;
	return message;
}

void coll_link_release(struct coll_link *link, struct coll_message *message)
{
	if (message == link->chunk) {
		message = coll_link_chunk_gone(link);
		if (!message)
			return;
	}
	if (message->header.kind == COLL_MESSAGE_PONG)
		link->answering = false;
	if (message->streaming)		/* the streams that have the rest release it */
		message->header.offset = message->header.bytes;
	else if (message->exec)
		coll_link_events(link->group)->sent(message);
	else
		free(message);
}

void coll_link_drop_queue(struct coll_link *link, bool keep_begun)
{
	struct coll_message **keep = &link->queue, *message;
	uint32_t begun = 0;

	if (keep_begun)
		begun = link->socket.sending ? link->in_iov : link->sent > 0;
	while (*keep && begun--)
		keep = &(*keep)->next;
	while ((message = *keep)) {
		*keep = message->next;
		coll_link_release(link, message);
	}
	link->queue_end = link->urgent_end = keep;
	if (!link->queue)
		link->sent = 0;
	coll_arbiter_update(link);
}
