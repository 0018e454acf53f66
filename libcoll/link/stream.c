// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "core/port.h"
#include "arbiter.h"
#include "link.h"
#include "stream.h"

/* ---- all of a link ---------------------------------------------------------- */

uint32_t coll_streams_wanted(const struct coll_link *link)
{
	const uint32_t streams = link->group->context->streams;

	return !link->number && coll_link_is_far(link) && streams > 1 ? streams : 0;
}

int coll_streams_make(struct coll_link *link, uint32_t count)
{
	struct coll_message *chunks;
	uint32_t i;

	if (link->streams || !count)
		return 0;
	chunks = calloc(count, sizeof(*chunks));
	link->stream = calloc(count, sizeof(*link->stream));
	if (!chunks || !link->stream) {
		free(chunks);
		free(link->stream);
		link->stream = NULL;
		return -ENOMEM;
	}
	link->streams = count;
	for (i = 0; i < count; i++) {
		coll_link_init(&link->stream[i], link->group, link->rank);
		link->stream[i].whole = link;
		link->stream[i].number = i + 1;
		link->stream[i].chunk = &chunks[i];
	}
	return 0;
}

void coll_streams_free(struct coll_link *link)
{
	uint32_t i;

	for (i = 0; i < link->streams; i++)
		free(link->stream[i].inject);
	if (link->streams)
		free(link->stream[0].chunk);
	free(link->stream);
}

uint32_t coll_streams_attached(const struct coll_link *link)
{
	uint32_t bits = 0, i;

	for (i = 0; i < link->streams; i++)
		if (link->stream[i].attached)
			bits |= 1u << i;
	return bits;
}

bool coll_streams_delivered(const struct coll_link *link)
{
	uint32_t i;

	for (i = 0; i < link->streams; i++) {
		const struct coll_link *stream = &link->stream[i];

		if (stream->state == LINK_CONNECTING)
			return false;
		if (stream->attached && stream->state != LINK_CLOSED &&
		    (!stream->leaving || !coll_link_delivered(stream)))
			return false;
	}
	return true;
}

bool coll_streams_send_for(const struct coll_link *link, const struct coll_exec *exec)
{
	uint32_t i;

	for (i = 0; i < link->streams; i++)
		if (link->stream[i].message && link->stream[i].message->exec == exec)
			return true;
	return false;
}

/* ---- one of them ------------------------------------------------------------ */

static bool stream_says_goodbye(const struct coll_link *stream)
{
	return stream->whole->leaving && !stream->leaving && !coll_arbiter_has_bulk(stream->whole);
}

bool coll_stream_has_work(struct coll_link *stream)
{
	return coll_arbiter_offers(stream->whole) || stream_says_goodbye(stream);
}

void coll_stream_take(struct coll_link *stream)
{
	struct coll_message *chunk = stream->chunk;

	if (!stream->number)
		return;
	if (stream_says_goodbye(stream)) {
		stream->leaving = true;
		coll_link_control(stream, COLL_MESSAGE_BYE, 0, 0, 0);
		return;
	}
	coll_assert(!stream->message && !stream->queue);
	stream->message = coll_arbiter_deal(stream->whole, &chunk->header);
	stream->message->streaming++;
	chunk->exec = stream->message->exec;
	chunk->op = stream->message->op;
	chunk->payload = stream->message->payload;
	chunk->next = NULL;
	stream->queue = chunk;
	stream->queue_end = &chunk->next;
	stream->urgent_end = &stream->queue;
	if (stream->whole->leaving)	/* its goodbye may be the next */
		coll_link_touch(stream->whole);
}

bool coll_stream_may_end(const struct coll_link *stream)
{
	return stream->state == LINK_LEFT || coll_link_may_end(stream->whole);
}

void coll_stream_lost(struct coll_link *stream, int error)
{
	struct coll_link *link = stream->whole;

	coll_link_set_state(stream, LINK_LOST);
	if (!link->broken)
		link->broken = error ? error : -ECONNRESET;
	coll_link_stop_reading(link);
	coll_link_touch(link);
}
