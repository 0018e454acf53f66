// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* How a mux ends, and how a channel leaves it. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "awaited.h"
#include "channel.h"
#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/memory.h"
#include "mux_parts.h"

/* A link learns it after the bytes that came before. */
void coll_mux_lost(struct coll_mux *mux, int error)
{
	const bool was_up = mux->state == MUX_UP;
	struct coll_channel *channel;

	if (mux->state == MUX_ENDED)
		return;
	coll_mux_enter(mux);
	mux->state = MUX_ENDED;
	mux->error = error;
	mux->context->muxes_ended++;
	if (mux->connect)
		coll_connect_abandon(mux->connect);
	if (mux->attached)
		shutdown(mux->socket.fd, SHUT_RDWR);
	if (!mux->socket.sending)
		coll_mux_fail_frames(mux);
	mux->control_bytes = 0;
	for (channel = mux->all; channel; channel = channel->next)
		channel->peer_ended = channel->peer_reset = true;
	coll_mux_touch_all(mux);
	coll_mux_serve_touched(mux);
	coll_mux_leave(mux);
	if (was_up && error != -ECANCELED)
		coll_awaited_ended(mux->context, mux->world, error);
}

/* Ends the transfers under way, with the bytes that have moved. */
static void mux_pause(struct coll_mux *mux)
{
	mux->socket.paused = true;
	if (coll_socket_pause(&mux->socket)) {
		coll_mux_lost(mux, -EIO);
		while (mux->socket.sending || mux->socket.receiving)
			coll_socket_pause(&mux->socket);	/* the socket is shut down: they end */
	}
	coll_socket_resume(&mux->socket);
	mux->socket.paused = false;
	coll_socket_touch(&mux->socket);
}

bool coll_mux_is_drained(struct coll_mux *mux)
{
	if (mux->state != MUX_UP)
		return true;
	if (mux->socket.receiving)
		mux_pause(mux);
	return mux->state != MUX_UP || !coll_socket_has_unread(&mux->socket);
}

void coll_mux_read_published(struct coll_mux *mux, uint32_t slot)
{
	if (mux->socket.memory && slot < COLL_SLOTS)
		coll_memory_took_published(&mux->socket, slot);
}

/* Nobody will: the peer has its slots back. */
static void publications_discard(struct coll_mux *mux, struct coll_channel *channel)
{
	uint32_t slot;

	for (slot = 0; slot < COLL_SLOTS && channel->unread_all; slot++)
		for (; channel->unread[slot]; channel->unread[slot]--, channel->unread_all--)
			coll_mux_read_published(mux, slot);
}

void coll_mux_remove(struct coll_mux *mux, struct coll_channel *channel)
{
	struct coll_mux_frame *frame;

	coll_mux_enter(mux);
	if (mux->direct == channel || (mux->socket.sending && coll_mux_frame_of(mux, channel)))
		mux_pause(mux);
	frame = coll_mux_frame_of(mux, channel);
	if (frame && coll_mux_frame_copy(mux, frame))
		coll_mux_lost(mux, -ENOMEM);
	publications_discard(mux, channel);
	channel->link = NULL;
	if (mux->current == channel)
		mux->current = NULL;	/* the rest of its frame is discarded */
	coll_mux_unlink(mux, channel);
	coll_mux_leave(mux);
}
