// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What a mux receives: frames, whose bytes go to links, straight to their memory if awaited. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/inject.h"
#include "libcoll/engine/memory.h"
#include "mux_parts.h"

_Static_assert(sizeof(struct coll_channel_control) >= sizeof(struct coll_header),
	       "after a frame at least so much follows");

/* A rank that only sends looks this often for the news of a failure. */
enum { LOOK_NS = 5000000 };

/* A rank that only sends reads sometimes: the peer may tell of a failure. */
static bool mux_is_due(struct coll_mux *mux)
{
	const uint64_t now = coll_now();

	if (now - mux->last_read < LOOK_NS)
		return false;
	mux->last_read = now;
	return true;
}

/* Whether somebody waits for what may come. */
static bool mux_is_awaited(struct coll_mux *mux)
{
	return mux->broken || coll_mux_has_receiver(mux) || mux->blocked || !mux->channels ||
	       mux->context->awaited || mux->context->attentive;
}

bool coll_mux_wants_recv(const struct coll_socket *socket)
{
	struct coll_mux *mux = (struct coll_mux *)socket;

	if (socket->receiving || mux->socket.paused || mux->state != MUX_UP)
		return false;
	return mux_is_awaited(mux) || mux_is_due(mux);
}

/* In a frame: to where its link wants the bytes, if it does. */
static int direct_iov(struct coll_mux *mux, struct iovec *iov, bool *whole)
{
	struct coll_channel *channel = mux->current;
	int count;

	if (!channel || !mux->ops->wants_recv(channel))
		return 0;
	count = channel->link->socket.ops->recv_iov(&channel->link->socket, iov, whole);
	if (!count)
		return 0;
	channel->link->socket.receiving = true;
	mux->direct = channel;
	if (iov[0].iov_len < mux->left) {
		if (count == 2 && iov[1].iov_len > mux->left - iov[0].iov_len)
			iov[1].iov_len = mux->left - iov[0].iov_len;
		return count;
	}
	iov[0].iov_len = mux->left;
	if (count == 1 || !*whole) {
		*whole = true;
		return 1;
	}
	/*
	 * What is sure to follow comes in another frame: this one's chunk is not the last, or
	 * the peer gives it up by a control message, which is not shorter.
	 */
	iov[1] = (struct iovec){ mux->next_frame, sizeof(mux->next_frame) };
	return 2;
}

/*
 * Between frames: if one link wants to receive, the next is probably for it. What follows that
 * frame comes to the link's memory as well; so not where links share it to discard payload.
 */
static int speculative_iov(struct coll_mux *mux, struct iovec *iov, bool *whole)
{
	struct coll_channel *channel = mux->header_got ? NULL : coll_mux_only_receiver(mux);
	int count;

	if (!channel || coll_link_discards(channel->link))
		return 0;
	count = channel->link->socket.ops->recv_iov(&channel->link->socket, iov + 1, whole);
	if (!count)
		return 0;
	channel->link->socket.receiving = true;
	mux->direct = channel;
	mux->speculative = true;
	iov[0] = (struct iovec){ &mux->header, sizeof(mux->header) };
	coll_mux_iov_clip(iov + 1, &count, MUX_BUFFER_BYTES - sizeof(mux->header));
	*whole = false;
	return count + 1;
}

int coll_mux_recv_iov(struct coll_socket *socket, struct iovec *iov, bool *whole)
{
	struct coll_mux *mux = coll_mux_of(socket);
	bool cut;
	int count;

	coll_assert(!mux->direct);
	mux->speculative = false;
	*whole = false;
	count = mux->left ? direct_iov(mux, iov, whole) : speculative_iov(mux, iov, whole);
	if (!count)
		return 0;
	count = coll_short_io_clip(socket->engine->short_io, iov, count, &cut);
	memcpy(mux->direct_iov, iov, count * sizeof(*iov));
	return count;
}

/* The header of a frame is complete. */
static int frame_begin(struct coll_mux *mux)
{
	struct coll_frame *header = &mux->header;

	mux->published = header->bytes & COLL_FRAME_PUBLISHED;
	header->bytes &= ~COLL_FRAME_PUBLISHED;
	if (mux->published && (header->bytes != sizeof(mux->publication) || !header->channel ||
			       !mux->socket.memory))
		return -EPROTO;
	if (!header->bytes || header->bytes > COLL_TRANSFER_MAX)
		return -EPROTO;
	mux->left = header->bytes;
	mux->current = NULL;
	if (!header->channel)
		return header->bytes == sizeof(mux->control_in) ? 0 : -EPROTO;
	/* Bytes for a channel that this side has closed are discarded. */
	mux->current = coll_mux_find(mux, header->channel);
	if (!mux->current)
		return 0;
	if (header->bytes > mux->current->window || mux->current->peer_ended)
		return -EPROTO;
	mux->current->window -= header->bytes;
	/* What is sure to follow is waited for: the peer must be able to send it. */
	mux->ops->grant(mux->current);
	return 0;
}

static void frame_consumed(struct coll_mux *mux, uint32_t bytes)
{
	coll_assert(bytes <= mux->left);
	mux->left -= bytes;
	if (mux->left)
		return;
	mux->header_got = 0;
	mux->current = NULL;
}

/* Its slot is acknowledged when a link has read it; at once if none will. */
static void publication_came(struct coll_mux *mux, struct coll_channel *channel)
{
	const uint32_t slot = mux->publication.place.slot;

	if (!channel) {
		coll_mux_read_published(mux, slot);
	} else if (slot < COLL_SLOTS) {
		channel->unread[slot]++;
		channel->unread_all++;
	}
}

static int frame_receive(struct coll_mux *mux, const uint8_t *data, uint32_t bytes)
{
	struct coll_channel *channel = mux->current;
	const uint32_t got = sizeof(mux->control_in) - mux->left;

	if (!mux->header.channel) {
		memcpy((uint8_t *)&mux->control_in + got, data, bytes);
		frame_consumed(mux, bytes);
		return mux->left ? 0 : mux->ops->control(mux, &mux->control_in);
	}
	if (mux->published)
		memcpy((uint8_t *)&mux->publication + sizeof(mux->publication) - mux->left, data, bytes);
	frame_consumed(mux, bytes);
	if (mux->published && !mux->left) {
		if (mux->publication.header.kind != COLL_MESSAGE_PUBLISHED)
			return -EPROTO;
		publication_came(mux, channel);
	}
	return channel ? mux->ops->receive(channel, data, bytes) : 0;
}

static int mux_consume(struct coll_mux *mux, const uint8_t *data, uint64_t bytes)
{
	int error = 0;

	while (bytes && !error && mux->state == MUX_UP) {
		const uint64_t wanted = mux->header_got < sizeof(mux->header) ?
						sizeof(mux->header) - mux->header_got : mux->left;
		const uint64_t part = wanted < bytes ? wanted : bytes;

		if (mux->header_got < sizeof(mux->header)) {
			memcpy((uint8_t *)&mux->header + mux->header_got, data, part);
			mux->header_got += part;
			if (mux->header_got == sizeof(mux->header))
				error = frame_begin(mux);
		} else {
			error = frame_receive(mux, data, part);
		}
		data += part;
		bytes -= part;
	}
	return error;
}

/*
 * The context's buffer; another one while a caller further up uses it: what a link does with its
 * bytes may end the receive of another mux. NULL: no memory.
 */
static uint8_t *buffer_take(struct coll_context *context)
{
	uint8_t *buffer = context->mux_buffer;

	context->mux_buffer = NULL;
	return buffer ? buffer : malloc(MUX_BUFFER_BYTES);
}

static void buffer_give(struct coll_context *context, uint8_t *buffer)
{
	if (context->mux_buffer)
		free(buffer);
	else
		context->mux_buffer = buffer;
}

/* Copies what was received behind the first `skip` of all bytes; returns how much. */
static uint64_t direct_gather(const struct coll_mux *mux, uint8_t *to, uint64_t skip,
			      uint64_t bytes)
{
	const struct iovec *iov = mux->direct_iov;
	uint64_t copied = 0;

	for (; bytes; iov++) {
		const uint64_t part = iov->iov_len < bytes ? iov->iov_len : bytes;
		const uint64_t over = skip < part ? skip : part;

		memcpy(to + copied, (uint8_t *)iov->iov_base + over, part - over);
		copied += part - over;
		skip -= over;
		bytes -= part;
	}
	return copied;
}

/* The link's own receive has moved these bytes. */
static void direct_end(struct coll_channel *channel, uint64_t bytes)
{
	struct coll_socket *socket = channel->link ? &channel->link->socket : NULL;

	if (!socket)
		return;
	if (bytes && channel->link->state != LINK_CLOSED)
		socket->ops->received(socket, bytes);
	else
		socket->ops->received_none(socket);
	channel->mux->ops->grant(channel);
}

/* A frame's header, and then bytes that are in place if the frame is the expected one. */
static int received_speculatively(struct coll_mux *mux, struct coll_channel *channel,
				  uint64_t bytes)
{
	const uint32_t header = sizeof(mux->header);
	uint64_t right = 0, rest;
	uint8_t *buffer;
	int error;

	mux->header_got = bytes < header ? bytes : header;
	if (bytes < header) {
		direct_end(channel, 0);
		return 0;
	}
	error = frame_begin(mux);
	if (!error && mux->current == channel)
		right = bytes - header < mux->left ? bytes - header : mux->left;
	buffer = buffer_take(mux->context);
	if (!buffer)
		error = -ENOMEM;
	rest = error ? 0 : direct_gather(mux, buffer, header + right, bytes);
	if (right)
		frame_consumed(mux, right);
	direct_end(channel, right);
	if (!error)
		error = mux_consume(mux, buffer, rest);
	buffer_give(mux->context, buffer);
	return error;
}

/* The frame's bytes, and perhaps the first of the next. */
static int received_directly(struct coll_mux *mux, struct coll_channel *channel, uint64_t bytes)
{
	const uint64_t part = bytes < mux->left ? bytes : mux->left;

	frame_consumed(mux, part);
	direct_end(channel, part);
	return bytes == part ? 0 : mux_consume(mux, mux->next_frame, bytes - part);
}

/* What this rank lacks, or finds wrong with the bytes, says more than that the peer is gone. */
static void received_end(struct coll_mux *mux, bool lost, int error)
{
	if (lost && mux->broken && (!error || error == -ECONNRESET))
		error = mux->broken;
	if (lost)
		coll_mux_lost(mux, error);
	if (mux->stopping)
		coll_mux_touch_all(mux);
	/* Memory is looked at in any case, and who receives stays on the list until then. */
	if (mux->attached && !mux->socket.memory && mux_is_awaited(mux))
		coll_socket_touch(&mux->socket);
	coll_mux_leave(mux);
}

void coll_mux_received(struct coll_socket *socket, ssize_t result)
{
	struct coll_mux *mux = coll_mux_of(socket);
	struct coll_channel *channel = mux->direct;
	int error = result;

	socket->receiving = false;
	mux->direct = NULL;
	coll_mux_enter(mux);
	if (result <= 0 || mux->state != MUX_UP)
		direct_end(channel, 0);
	else if (mux->speculative)
		error = received_speculatively(mux, channel, result);
	else
		error = received_directly(mux, channel, result);
	received_end(mux, result <= 0 || error < 0, error);
}

void coll_mux_received_in(struct coll_socket *socket, const uint8_t *data, ssize_t result)
{
	struct coll_mux *mux = coll_mux_of(socket);
	int error = result;

	socket->receiving = false;
	coll_mux_enter(mux);
	if (result > 0)
		error = mux_consume(mux, data, result);
	received_end(mux, result <= 0 || error < 0, error);
}

void coll_mux_received_none(struct coll_socket *socket)
{
	struct coll_mux *mux = coll_mux_of(socket);
	struct coll_channel *channel = mux->direct;

	socket->receiving = false;
	mux->direct = NULL;
	coll_mux_enter(mux);
	if (channel)
		direct_end(channel, 0);
	if (mux->attached && mux_is_awaited(mux))
		coll_socket_touch(socket);
	coll_mux_leave(mux);
}

/* ---- without a turn of the engine ---------------------------------------------- */

struct whole_frame {
	struct coll_frame frame;
	struct coll_header header;
};

/*
 * While a caller uses the mux, it may be amid bytes that the ring still has. The headers are
 * checked in a copy: the peer may change them meanwhile.
 */
enum coll_look coll_mux_look(struct coll_mux *mux, const struct coll_channel *channel,
			     const struct coll_header *header, const uint8_t **payload)
{
	struct whole_frame next;
	const uint8_t *data;
	ssize_t bytes;

	if (mux->users || mux->header_got || mux->state != MUX_UP || !mux->attached ||
	    mux->socket.paused)
		return COLL_LOOK_OTHER;
	bytes = coll_memory_look(&mux->socket, &data);
	if (!bytes)
		return COLL_LOOK_NOTHING;
	if (bytes < (ssize_t)(sizeof(next) + header->bytes))
		return COLL_LOOK_OTHER;
	memcpy(&next, data, sizeof(next));
	*payload = data + sizeof(next);
	return next.frame.channel == channel->number &&
	       next.frame.bytes == sizeof(*header) + header->bytes &&
	       next.frame.bytes <= channel->window && !channel->peer_ended &&
	       !memcmp(&next.header, header, sizeof(*header)) ? COLL_LOOK_MESSAGE : COLL_LOOK_OTHER;
}

void coll_mux_took(struct coll_mux *mux, struct coll_channel *channel,
		   const struct coll_header *header)
{
	channel->window -= sizeof(*header) + header->bytes;
	coll_memory_took(&mux->socket, sizeof(struct whole_frame) + header->bytes);
	mux->ops->grant(channel);
}
