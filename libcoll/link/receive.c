// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What a link receives: a header, then its payload. The floor above decides where the
 * payload goes (struct coll_link_events).
 */
#include <errno.h>
#include <string.h>

#include "core/match.h"
#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/inject.h"
#include "link.h"
#include "published.h"
#include "receive.h"

static void link_header_done(struct coll_link *link)
{
	const struct coll_header *header = &link->header;

	link->target = NULL;
	link->reduces = link->in_pieces = false;
	link->exec = NULL;
	link->unexpected = NULL;
	link->payload_left = 0;
	link->published = false;
	if (header->kind == COLL_MESSAGE_PUBLISHED)
		coll_link_published_begin(link);
	if (!coll_header_valid(header)) {
		coll_link_events(link->group)->failed(link->group, -EPROTO, link->rank,
						      link->group->rank,
						      "sent a malformed header");
		coll_link_close(link);
	} else if (header->kind == COLL_MESSAGE_DATA && !link->published) {
		link->payload_left = coll_chunk_bytes(header);
		coll_link_events(link->group)->begin(link);
	} else if (header->kind != COLL_MESSAGE_DATA &&
		   header->kind != COLL_MESSAGE_OFFER) {	/* which was for coll.ko */
		coll_link_events(link->group)->control(link, header);
	}
}

/* Whether another chunk of the message follows this one. */
static bool link_more_follows(const struct coll_link *link)
{
	return link->header.offset + coll_chunk_bytes(&link->header) < link->header.bytes;
}

/* Header and payload of a message or of a chunk have arrived. */
static void link_chunk_done(struct coll_link *link)
{
	coll_debug_assert(link->header_got == sizeof(link->header) && !link->payload_left);
	link->header_got = 0;
	coll_link_events(link->group)->end(link);
}

/* Payload of a chunk, in the engine's buffer. */
static void link_take(struct coll_link *link, const uint8_t *data, uint64_t bytes)
{
	if (!link->target)
		return;
	if (link->reduces) {
		coll_link_events(link->group)->reduce(link, data, bytes);
	} else {
		memcpy(link->target, data, bytes);
		link->group->context->counters.copied_bytes += bytes;
	}
	link->target += bytes;
}

/* Of the place of a published payload; when it is whole the payload is here. */
static void link_take_place(struct coll_link *link, const uint8_t *data, uint64_t bytes)
{
	const uint64_t got = sizeof(link->place) - link->payload_left;
	struct coll_socket *socket;
	const uint8_t *payload;

	memcpy((uint8_t *)&link->place + got, data, bytes);
	if (got + bytes < sizeof(link->place))
		return;
	payload = coll_link_published(link);
	if (!payload)
		return;
	socket = link->transport->memory(link);		/* also if begin() closes the link */
	coll_link_events(link->group)->begin(link);
	link_take(link, payload, coll_chunk_bytes(&link->header));
	coll_link_published_end(link, socket);
}

/* Takes bytes from the engine's buffer, at the cost of a copy. */
static void link_consume(struct coll_link *link, const uint8_t *data, uint64_t bytes)
{
	while (bytes && link->state != LINK_CLOSED) {
		uint64_t part;

		if (link->header_got < sizeof(link->header)) {
			part = sizeof(link->header) - link->header_got;
			part = part < bytes ? part : bytes;
			memcpy((uint8_t *)&link->header + link->header_got, data, part);
			link->header_got += part;
			if (link->header_got == sizeof(link->header))
				link_header_done(link);
		} else {
			part = link->payload_left < bytes ? link->payload_left : bytes;
			if (link->published)
				link_take_place(link, data, part);
			else
				link_take(link, data, part);
			link->payload_left -= part;
		}
		data += part;
		bytes -= part;
		if (link->state != LINK_CLOSED && link->header_got == sizeof(link->header) && !link->payload_left)
			link_chunk_done(link);
	}
}

/* Whether bytes may be received at all. */
static bool link_is_readable(const struct coll_link *link)
{
	if (link->socket.receiving || !link->attached || link->offloaded ||
	    link->state == LINK_CLOSED || link->state == LINK_LOST)
		return false;
	/* Its streams are read first. */
	return !link->goodbye || link->state == LINK_LEFT || link->broken;
}

bool coll_link_accepts(const struct coll_link *link)
{
	return link_is_readable(link) && !coll_group_is_full(link->group);
}

bool coll_link_wants_recv(const struct coll_link *link)
{
	const struct coll_group *group = link->group;

	if (!link_is_readable(link))
		return false;
	if (link->whole->expected || link->whole->leaving || link->broken ||
	    group->state != GROUP_OK)
		return true;
	/* Too many unexpected messages: others stay with their senders. */
	return group->watchful && !coll_group_is_full(group);
}

static void link_receive(struct coll_link *link)
{
	if (link->streams || !link->transport->receive)
		coll_link_touch(link);
	else
		link->transport->receive(link);
}

void coll_link_await(struct coll_link *link)
{
	if (link->streams || coll_link_wants_recv(link))
		link_receive(link);
	coll_link_await_peer(link);
}

/*
 * Whether the payload goes to the engine's buffer, from which it is reduced: what is read in the
 * peer's process then stays in cache. A socket brings as much as there is, to its place.
 */
static bool link_buffers_payload(const struct coll_link *link)
{
	return link->published ||
	       (link->in_pieces && !link->socket.engine->short_io && coll_link_through_memory(link));
}

static int payload_iov(struct coll_link *link, struct iovec *iov, bool *whole)
{
	const uint64_t max = link->target ? COLL_TRANSFER_MAX : SPECULATIVE_MAX;
	const uint64_t bytes = link->payload_left < max ? link->payload_left : max;

	if (link_buffers_payload(link))
		return 0;
	iov[0].iov_base = link->target ? link->target : link->group->context->discard_buffer;
	iov[0].iov_len = bytes;
	*whole = true;
	if (bytes < link->payload_left || link->number || !link_more_follows(link))
		return 1;
	iov[1].iov_base = &link->next_header;
	iov[1].iov_len = sizeof(link->next_header);
	return 2;
}

static int recv_iov(struct coll_link *link, struct iovec *iov, bool *whole)
{
	struct coll_exec *exec = NULL;
	uint8_t *target = NULL;
	uint64_t left = 0;

	if (link->header_got == sizeof(link->header))
		return payload_iov(link, iov, whole);
	if (link->number) {		/* any chunk may be next */
		iov[0].iov_base = (uint8_t *)&link->header + link->header_got;
		iov[0].iov_len = sizeof(link->header) - link->header_got;
		*whole = false;
		return 1;
	}
	if (link->expected && !link->streams)
		exec = coll_link_events(link->group)->expect(link, &target, &left);
	if (!exec)
		return 0;

	/*
	 * The target belongs to a started receive that has no bytes there yet, so writing
	 * is safe even if another message comes.
	 */
	iov[0].iov_base = (uint8_t *)&link->header + link->header_got;
	iov[0].iov_len = sizeof(link->header) - link->header_got;
	coll_assert(!link->speculative_exec);
	link->speculative = target;
	link->speculative_exec = exec;
	iov[1].iov_base = link->speculative;
	iov[1].iov_len = left < SPECULATIVE_MAX ? left : SPECULATIVE_MAX;
	*whole = false;
	return 2;
}

/* With short reads injected, a header is received by itself and not into a buffer. */
int coll_link_recv_iov(struct coll_socket *socket, struct iovec *iov, bool *whole)
{
	struct coll_link *link = coll_link_of(socket);
	int count = recv_iov(link, iov, whole);
	bool cut;

	if (!socket->engine->short_io)
		return count;
	if (count)
		return coll_short_io_clip(socket->engine->short_io, iov, count, &cut);
	iov[0].iov_base = (uint8_t *)&link->header + link->header_got;
	iov[0].iov_len = sizeof(link->header) - link->header_got;
	*whole = false;
	coll_short_io_clip(socket->engine->short_io, iov, 1, &cut);
	return cut;
}

/* Payload of a chunk was received straight to its target. */
static void link_received_payload(struct coll_link *link, uint64_t bytes)
{
	if (link->reduces && bytes)
		coll_link_events(link->group)->reduce(link, link->target, bytes);
	if (link->target)
		link->target += bytes;
	link->payload_left -= bytes;
	if (!link->payload_left)
		link_chunk_done(link);
}

/* The rest of a chunk's payload, and part of the next header. */
static void link_received_rest(struct coll_link *link, uint64_t bytes)
{
	const uint64_t payload = bytes < link->payload_left ? bytes : link->payload_left;

	link_received_payload(link, payload);
	if (bytes > payload)
		link_consume(link, (uint8_t *)&link->next_header, bytes - payload);
}

/* The engine no longer writes there. */
static void link_end_speculation(struct coll_link *link)
{
	struct coll_exec *exec = link->speculative_exec;

	link->speculative = NULL;
	link->speculative_exec = NULL;
	if (exec)
		coll_link_events(link->group)->release(exec);
}

/*
 * A header has arrived, and perhaps payload, received speculatively. If the header
 * announces the expected message, its payload is in place; all other bytes go through the
 * bounce buffer.
 */
static void link_received_speculatively(struct coll_link *link, uint64_t bytes)
{
	uint64_t header = sizeof(link->header) - link->header_got, right = 0, rest;
	uint8_t *speculative = link->speculative, *bounce = link->group->context->bounce_buffer;

	if (bytes < header) {
		link->header_got += bytes;
		link_end_speculation(link);
		return;
	}
	link->header_got = sizeof(link->header);
	bytes -= header;
	link_header_done(link);
	if (speculative && link->target == speculative)
		right = bytes < link->payload_left ? bytes : link->payload_left;
	rest = bytes - right;
	if (rest)
		memcpy(bounce, speculative + right, rest);
	link_end_speculation(link);
	if (link->header_got == sizeof(link->header))
		link_received_payload(link, right);
	if (rest)
		link_consume(link, bounce, rest);
}

/* The engine's receive has ended without bytes. */
static void link_received_nothing(struct coll_link *link, ssize_t result)
{
	link_end_speculation(link);
	coll_link_lost(link, link->broken ? link->broken : result);
}

void coll_link_received_none(struct coll_socket *socket)
{
	struct coll_link *link = coll_link_of(socket);

	link->socket.receiving = false;
	link_end_speculation(link);
	if (coll_link_wants_recv(link))
		link_receive(link);
}

void coll_link_received(struct coll_socket *socket, ssize_t result)
{
	struct coll_link *link = coll_link_of(socket);

	link->socket.receiving = false;
	if (result > 0)
		coll_link_hear(link);
	if (result <= 0)
		link_received_nothing(link, result);
	else if (link->header_got == sizeof(link->header))
		link_received_rest(link, result);
	else
		link_received_speculatively(link, result);
	if (coll_link_wants_recv(link))
		link_receive(link);
}

void coll_link_received_in(struct coll_socket *socket, const uint8_t *data, ssize_t result)
{
	struct coll_link *link = coll_link_of(socket);

	link->socket.receiving = false;
	if (result > 0)
		coll_link_hear(link);
	if (result <= 0)
		link_received_nothing(link, result);
	else
		link_consume(link, data, result);
	if (coll_link_wants_recv(link))
		link_receive(link);
}
