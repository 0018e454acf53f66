// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What a mux sends: control messages, and frames of what its links would send next. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/inject.h"
#include "libcoll/engine/memory.h"
#include "mux_parts.h"

enum {
	CONTROL_MIN = 1024,
	CONTROL_KEPT = 16 << 10,	/* a buffer that is not needed */
	/* Of a peer that reads nothing. It may still be connecting: each group opens a channel. */
	CONTROL_MAX = 16 << 20,
	ENTRIES = COLL_SEND_IOV_MAX,
};

/* Room for more bytes of control messages. -EPROTO: the peer has them sent and does not read. */
static int control_reserve(struct coll_mux *mux, uint32_t bytes)
{
	uint32_t capacity = mux->control_capacity ? mux->control_capacity : CONTROL_MIN;
	uint8_t *control;

	if (bytes > CONTROL_MAX - mux->control_bytes)
		return -EPROTO;
	while (capacity < mux->control_bytes + bytes)
		capacity *= 2;
	if (capacity == mux->control_capacity)
		return 0;
	control = realloc(mux->control, capacity);
	if (!control)
		return -ENOMEM;
	mux->control = control;
	mux->control_capacity = capacity;
	return 0;
}

void coll_mux_queue_frame(struct coll_mux *mux, uint32_t channel, const void *data, uint32_t bytes)
{
	const struct coll_frame header = { .channel = channel, .bytes = bytes };
	int error;

	if (mux->state == MUX_ENDED || mux->broken)
		return;
	error = control_reserve(mux, sizeof(header) + bytes);
	if (error) {
		coll_mux_lost(mux, error);
		return;
	}
	memcpy(mux->control + mux->control_bytes, &header, sizeof(header));
	memcpy(mux->control + mux->control_bytes + sizeof(header), data, bytes);
	mux->control_bytes += sizeof(header) + bytes;
	if (mux->attached)
		coll_socket_touch(&mux->socket);
}

bool coll_mux_wants_send(struct coll_socket *socket)
{
	struct coll_mux *mux = coll_mux_of(socket);

	coll_mux_serve_touched(mux);
	return !socket->sending && !mux->socket.paused && mux->state == MUX_UP && !mux->broken &&
	       (mux->iovs_sent < mux->iovs || mux->control_bytes || coll_mux_next_sender(mux));
}

/* The control messages that wait, as the first entry. */
static void transfer_add_control(struct coll_mux *mux)
{
	uint8_t *free_one = mux->control_sent;
	const uint32_t capacity = mux->control_sent_capacity;

	if (!mux->control_bytes)
		return;
	mux->iov[mux->iovs++] = (struct iovec){ mux->control, mux->control_bytes };
	mux->frame[mux->frames++] =
		(struct coll_mux_frame){ .entries = 1, .end = mux->control_bytes };
	mux->control_sent = mux->control;
	mux->control_sent_capacity = mux->control_capacity;
	mux->control = free_one;
	mux->control_capacity = capacity;
	mux->control_bytes = 0;
}

/* What it took to free thousands of groups at once is not kept for ever. */
static void control_shrink(struct coll_mux *mux)
{
	if (mux->control_sent_capacity <= CONTROL_KEPT || mux->iovs_sent < mux->iovs)
		return;
	free(mux->control_sent);
	mux->control_sent = NULL;
	mux->control_sent_capacity = 0;
}

/* A frame with what the link would send next. */
static uint64_t transfer_add_frame(struct coll_mux *mux, struct coll_channel *channel)
{
	struct coll_mux_frame *frame = &mux->frame[mux->frames];
	const uint64_t before = mux->frames ? mux->frame[mux->frames - 1].end : 0;
	const uint64_t max = channel->credit < COLL_TRANSFER_MAX ? channel->credit :
								   COLL_TRANSFER_MAX;
	struct coll_socket *socket = &channel->link->socket;
	struct iovec *iov = &mux->iov[mux->iovs];
	uint64_t bytes;
	int count;

	coll_mux_senders_remove(mux, channel);
	count = socket->ops->send_iov(socket, iov + 1, ENTRIES - mux->iovs - 1);
	socket->sending = true;
	bytes = coll_mux_iov_clip(iov + 1, &count, max);
	coll_assert(bytes);
	*frame = (struct coll_mux_frame){
		.channel = channel,
		.header = { .channel = channel->number, .bytes = bytes },
		.entry = mux->iovs,
		.entries = 1 + count,
		.end = before + sizeof(frame->header) + bytes,
	};
	iov[0] = (struct iovec){ &frame->header, sizeof(frame->header) };
	channel->credit -= bytes;
	mux->iovs += 1 + count;
	mux->frames++;
	return bytes;
}

static void transfer_make(struct coll_mux *mux)
{
	struct coll_channel *channel;
	uint64_t bytes = 0;

	mux->frames = mux->frames_reported = mux->iovs = mux->iovs_sent = 0;
	mux->sent = 0;
	transfer_add_control(mux);
	/* A link needs two entries for a message; more follow a large one in its own transfer. */
	while (bytes <= SPECULATIVE_MAX && mux->frames <= MUX_FRAMES && mux->iovs + 3 <= ENTRIES &&
	       (channel = coll_mux_next_sender(mux)))
		bytes += transfer_add_frame(mux, channel);
}

int coll_mux_send_iov(struct coll_socket *socket, struct iovec *iov, int max)
{
	struct coll_mux *mux = coll_mux_of(socket);
	int count;

	if (mux->iovs_sent == mux->iovs)
		transfer_make(mux);
	count = mux->iovs - mux->iovs_sent;
	coll_assert(count && count <= max);
	memcpy(iov, &mux->iov[mux->iovs_sent], count * sizeof(*iov));
	return coll_short_io_clip(socket->engine->short_io, iov, count, &mux->cut);
}

/*
 * Control messages go first: one may open the channel. What is under way must end before another
 * frame may begin. What other channels have waits for its turn, as behind all small messages.
 */
bool coll_mux_send_now(struct coll_mux *mux, struct coll_channel *channel,
		       const struct iovec message[2])
{
	const uint32_t bytes = message[0].iov_len + message[1].iov_len;
	const struct coll_header *first = message[0].iov_base;
	const bool published = first->kind == COLL_MESSAGE_PUBLISHED;
	const struct coll_frame header = {
		.channel = channel->number,
		.bytes = bytes | (published ? COLL_FRAME_PUBLISHED : 0),
	};
	const struct iovec iov[3] = { { (void *)&header, sizeof(header) }, message[0], message[1] };

	if (!mux->socket.memory || !mux->attached || mux->state != MUX_UP || mux->control_bytes ||
	    mux->iovs_sent < mux->iovs || channel->credit < bytes ||
	    !coll_memory_send_now(&mux->socket, iov, 3))
		return false;
	channel->credit -= bytes;
	return true;
}

bool coll_mux_sends_quietly(const struct coll_socket *socket)
{
	const struct coll_mux *mux = (const struct coll_mux *)socket;
	int i;

	if (mux->cut || mux->control_bytes || mux->senders)	/* more is to follow at once */
		return false;
	for (i = mux->frames_reported; i < mux->frames; i++) {
		const struct coll_channel *channel = mux->frame[i].channel;

		if (channel && channel->link &&
		    !channel->link->socket.ops->sends_quietly(&channel->link->socket))
			return false;
	}
	return true;
}

/* Entries up to here have gone. */
static void transfer_advance(struct coll_mux *mux, uint64_t bytes)
{
	mux->sent += bytes;
	while (bytes) {
		struct iovec *iov = &mux->iov[mux->iovs_sent];
		const uint64_t part = bytes < iov->iov_len ? bytes : iov->iov_len;

		iov->iov_base = (uint8_t *)iov->iov_base + part;
		iov->iov_len -= part;
		bytes -= part;
		if (iov->iov_len)
			return;
		free(mux->copy[mux->iovs_sent]);
		mux->copy[mux->iovs_sent++] = NULL;
	}
}

/*
 * A peer that has closed may have told why before, on any channel, and a rank that only sends has
 * not read it yet: the connection is read to its end first, as a link is. Other errors say
 * nothing of the peer.
 */
static void mux_send_broke(struct coll_mux *mux, int error)
{
	if (mux->state == MUX_UP && (error == -EPIPE || error == -ECONNRESET)) {
		mux->broken = error;
		mux->control_bytes = 0;
		coll_socket_touch(&mux->socket);
	} else {
		coll_mux_lost(mux, error);
	}
	coll_mux_fail_frames(mux);
}

/* Reports to a link when all of its frame has gone: nothing may come between. */
void coll_mux_sent(struct coll_socket *socket, ssize_t result)
{
	struct coll_mux *mux = coll_mux_of(socket);

	socket->sending = false;
	coll_mux_enter(mux);
	if (result < 0 || mux->state == MUX_ENDED)
		mux_send_broke(mux, result < 0 ? result : mux->error);
	else
		transfer_advance(mux, result);
	while (mux->frames_reported < mux->frames &&
	       mux->frame[mux->frames_reported].end <= mux->sent) {
		const struct coll_mux_frame *frame = &mux->frame[mux->frames_reported++];
		struct coll_channel *channel = frame->channel;

		if (channel && channel->link)
			channel->link->socket.ops->sent(&channel->link->socket,
							frame->header.bytes);
	}
	control_shrink(mux);
	if (mux->attached && (mux->iovs_sent < mux->iovs || mux->control_bytes || mux->senders))
		coll_socket_touch(socket);
	coll_mux_leave(mux);
}

