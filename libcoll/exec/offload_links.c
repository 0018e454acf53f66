// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Links attached to /dev/coll and detached from it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/match.h"
#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "offload.h"
#include "offload_device.h"
#include "unexpected.h"

enum {
	/* The kernel's memory for unexpected messages counts as locked from the start. */
	UNEXPECTED_BYTES = 1 << 20,
	STREAM_BYTES = 65536,		/* what comes back with a link, by estimate */
};

/* ---- bytes of the stream that are not delivered yet -------------------- */

struct stream {
	uint8_t *data;
	uint64_t bytes, capacity;
};

static int stream_add(struct stream *stream, const void *from, uint64_t bytes)
{
	if (stream->bytes + bytes > stream->capacity) {
		uint64_t capacity = 2 * (stream->bytes + bytes);
		uint8_t *data = realloc(stream->data, capacity);

		if (!data)
			return -ENOMEM;
		stream->data = data;
		stream->capacity = capacity;
	}
	if (bytes)
		memcpy(stream->data + stream->bytes, from, bytes);
	stream->bytes += bytes;
	return 0;
}

/* Adds what was read of the incoming message. Of a discarded one only the rest counts. */
static int stream_add_begun(struct stream *stream, const struct coll_link *link)
{
	struct coll_header header = link->header;
	const uint64_t end = header.offset + coll_chunk_bytes(&header);
	int error;

	if (link->header_got == sizeof(header))
		header = link->unexpected ? coll_chunk_first(&header, end) :
				       coll_chunk_rest(&header, link->payload_left);
	error = stream_add(stream, &header, link->header_got);
	if (!error && link->unexpected)
		error = stream_add(stream, link->unexpected->data, end - link->payload_left);
	return error;
}

static int stream_take(struct stream *stream, const struct coll_link *link)
{
	const struct coll_unexpected *unexpected;
	struct coll_header header;
	int error = 0;

	for (unexpected = link->kept; unexpected && !error; unexpected = unexpected->next) {
		if (unexpected == link->unexpected)
			continue;
		header = coll_chunk_first(&unexpected->header, unexpected->got);
		error = stream_add(stream, &header, sizeof(header));
		if (!error)
			error = stream_add(stream, unexpected->data, unexpected->got);
	}
	return error ? error : stream_add_begun(stream, link);
}

/* The kernel has all of it now. */
static void stream_forget(struct coll_link *link)
{
	while (link->kept)
		coll_unexpected_release(link, link->kept);
	link->unexpected = NULL;
	link->target = NULL;
	link->header_got = 0;
	link->payload_left = 0;
}

/* ---- attaching and detaching ------------------------------------------- */

/* A rank that has left meanwhile has left for the kernel, too, after what it sent. */
static int stream_add_goodbye(struct stream *stream, const struct coll_link *link)
{
	const struct coll_header bye = {
		.kind = COLL_MESSAGE_BYE,
		.version = COLL_WIRE_VERSION,
	};

	return link->state == LINK_LEFT ? stream_add(stream, &bye, sizeof(bye)) : 0;
}

/* As its messages may be read in this process; but not those between clusters of one machine. */
static bool link_may_pair(const struct coll_link *link)
{
	return link->group->context->engine.exposes && !coll_link_is_far(link);
}

static int offload_attach(struct coll_link *link)
{
	struct coll_group *group = link->group;
	struct coll_device_link attach = {
		.group = group->offload.number,
		.rank = link->rank,
		.fd = link->socket.fd,
		.next_run = group->next_run,
		.flags = (link->heard ? COLL_DEVICE_HEARD : 0) |
			 (link_may_pair(link) ? COLL_DEVICE_PAIRS : 0),
	};
	struct stream stream = { 0 };
	int error = stream_take(&stream, link);

	if (!error)
		error = stream_add_goodbye(&stream, link);
	attach.address = (uintptr_t)stream.data;
	attach.bytes = stream.bytes;
	if (!error)
		error = coll_offload_command(coll_offload_of(group), COLL_DEVICE_ATTACH, &attach,
					     sizeof(attach));
	free(stream.data);
	if (!error)
		stream_forget(link);
	return error;
}

/* Whether its connection is: a rank that leaves may do so while the engine stops. */
static bool link_is_up(const struct coll_link *link)
{
	return link->state == LINK_UP || link->state == LINK_LEFT;
}

/* Stops the engine at the link, then attaches it. */
int coll_offload_attach(struct coll_link *link)
{
	const struct coll_engine_ops *engine = link->socket.engine->ops;
	int error;

	coll_assert(link->attached && !link->number && !link->offloaded);
	link->offloaded = true;
	error = engine->pause(&link->socket);
	if (!error && link_is_up(link))
		error = offload_attach(link);
	if (error || !link_is_up(link)) {
		link->offloaded = false;
		engine->resume(&link->socket);
		coll_link_touch(link);
	}
	return error;
}

static int offload_detach(struct coll_link *link)
{
	struct coll_group *group = link->group;
	struct coll_device_link back = {
		.group = group->offload.number,
		.rank = link->rank,
		.fd = -1,
		.bytes = STREAM_BYTES,
	};
	uint8_t *stream = NULL;
	long bytes;

	do {
		free(stream);
		stream = malloc(back.bytes);
		if (!stream)
			return -ENOMEM;
		back.address = (uintptr_t)stream;
		bytes = coll_offload_command(coll_offload_of(group), COLL_DEVICE_DETACH, &back,
					     sizeof(back));
		if (bytes > (long)back.bytes) {
			back.bytes = bytes;
			bytes = -EAGAIN;
		}
	} while (bytes == -EAGAIN);
	if (bytes >= 0) {
		link->offloaded = false;
		link->socket.engine->ops->resume(&link->socket);
		if (bytes)
			link->socket.ops->received_in(&link->socket, stream, bytes);
		coll_link_touch(link);
	}
	free(stream);
	return bytes < 0 ? bytes : 0;
}

int coll_offload_detach(struct coll_group *group)
{
	uint32_t rank;
	int error;

	if (!group->offload.attached)
		return 0;
	for (rank = 0; rank < group->ranks; rank++) {
		struct coll_link *link = group->links[rank];

		error = link && link->offloaded ? offload_detach(link) : 0;
		if (error)
			return error;
	}
	group->offload.attached = group->offload.partly = false;
	return 0;
}

void coll_offload_drop(struct coll_group *group)
{
	struct coll_device_number number = { .number = group->offload.number };
	uint32_t rank;

	if (!group->offload.made)
		return;
	coll_offload_command(coll_offload_of(group), COLL_DEVICE_GROUP_FREE, &number,
			     sizeof(number));
	group->offload.made = false;
	coll_offload_forget_all(group);
	group->offload.gone = true;
	group->offload.attached = false;
	for (rank = 0; rank < group->ranks; rank++) {
		struct coll_link *link = group->links[rank];

		if (!link || !link->offloaded)
			continue;
		link->offloaded = false;
		link->socket.engine->ops->resume(&link->socket);
	}
}

/* Messages of a rank that has left stay here with its link: the kernel would wait for them. */
static const char *not_quiet(const struct coll_group *group)
{
	uint32_t rank;

	if (group->active)
		return "an earlier run is under way in user space";
	for (rank = 0; rank < group->ranks; rank++) {
		const struct coll_link *link = group->links[rank];

		if (link && (link->queue || link->socket.sending))
			return "a message is still being sent in user space";
		if (link && (link->state == LINK_LEFT || link->state == LINK_CLOSED))
			return "a rank has left the group";
	}
	return NULL;
}

static int make_group(struct coll_group *group)
{
	struct coll_device_group asked = {
		.rank = group->rank,
		.ranks = group->ranks,
		.next_run = group->next_run,
		.unexpected_bytes = UNEXPECTED_BYTES,
	};
	long number = coll_offload_command(coll_offload_of(group), COLL_DEVICE_GROUP, &asked,
					   sizeof(asked));

	if (number < 0)
		return number;
	group->offload.number = number;
	group->offload.made = true;
	return 0;
}

/* NULL, or why not all links could be attached. */
const char *coll_offload_attach_all(struct coll_group *group)
{
	const char *reason = not_quiet(group);
	uint32_t rank;
	int error = 0;

	if (reason)
		return reason;
	if (!group->offload.made)
		error = make_group(group);
	group->offload.attached = !error;
	for (rank = 0; rank < group->ranks && !error; rank++) {
		struct coll_link *link = group->links[rank];

		/* A link that comes up while the engine stops at another attaches itself. */
		if (link && link->state == LINK_UP && !link->offloaded)
			error = coll_offload_attach(link);
	}
	if (!error)
		return NULL;
	group->offload.partly = true;
	coll_offload_detach(group);
	return strerror(-error);
}
