// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "held.h"

enum {
	HELD_MIN = 4096,
	FED_TOGETHER = 4096,		/* of bytes before a publication */
};

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int coll_channel_hold(struct coll_channel *channel, const uint8_t *data, uint32_t bytes)
{
	uint64_t capacity = channel->held_capacity ? channel->held_capacity : HELD_MIN;
	uint8_t *held = channel->held;

	if (channel->held_begin > channel->held_bytes) {	/* so that a byte is moved once on average */
		memmove(held, held + channel->held_begin, channel->held_bytes);
		channel->held_begin = 0;
	}
	while (capacity < channel->held_begin + channel->held_bytes + bytes)
		capacity *= 2;
	if (capacity != channel->held_capacity) {
		held = realloc(held, capacity);
		if (!held)
			return -ENOMEM;
		channel->held = held;
		channel->held_capacity = capacity;
	}
	memcpy(held + channel->held_begin + channel->held_bytes, data, bytes);
	if (channel->mux->published && !channel->held_published_end)
		channel->held_published = channel->held_bytes;
	channel->held_bytes += bytes;
	if (channel->mux->published)
		channel->held_published_end = channel->held_bytes;
	return 0;
}

static void feed_bytes(struct coll_channel *channel, const uint8_t *data, uint64_t bytes)
{
	channel->feeding = true;
	channel->link->socket.ops->received_in(&channel->link->socket, data, bytes);
	channel->feeding = false;
}

/* Of publications one at most: the link may have to keep it, which is many times its bytes. */
static void feed_some(struct coll_channel *channel)
{
	uint8_t some[FED_TOGETHER];
	const uint64_t bytes = channel->held_published ?
				       least_of(channel->held_published, sizeof(some)) :
				       least_of(channel->held_bytes, sizeof(struct coll_publication_frame));

	memcpy(some, channel->held + channel->held_begin, bytes);
	channel->held_begin += bytes;
	channel->held_bytes -= bytes;
	channel->held_published -= least_of(channel->held_published, bytes);
	channel->held_published_end -= least_of(channel->held_published_end, bytes);
	feed_bytes(channel, some, bytes);
	if (channel->held_bytes)
		return;
	free(channel->held);
	channel->held = NULL;
	channel->held_capacity = channel->held_begin = 0;
	channel->held_published = channel->held_published_end = 0;
}

void coll_channel_feed(struct coll_channel *channel)
{
	uint8_t *held = channel->held;
	const uint64_t begin = channel->held_begin, bytes = channel->held_bytes;

	if (channel->held_published_end) {
		feed_some(channel);
		return;
	}
	channel->held = NULL;
	channel->held_bytes = channel->held_capacity = channel->held_begin = 0;
	feed_bytes(channel, held + begin, bytes);
	free(held);
}

bool coll_channel_read_published(struct coll_link *link, uint32_t slot)
{
	struct coll_channel *channel = link->channel;

	if (!channel->unread[slot])
		return false;
	channel->unread[slot]--;
	channel->unread_all--;
	coll_mux_read_published(channel->mux, slot);
	return true;
}
