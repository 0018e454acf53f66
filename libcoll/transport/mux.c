// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The connection of a mux: made, accepted, closed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "awaited.h"
#include "channel.h"
#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/memory.h"
#include "mux_parts.h"
#include "peer_process.h"
#include "seal.h"

enum {
	/* Of one rank: one for links, one a stream, and some that have broken and are not freed yet. */
	ACCEPTED_MAX = 1 + WAN_STREAMS_MAX + 8,
};

/* ---- the connection -------------------------------------------------------- */

/* The engine has closed the socket. */
static void mux_detached(struct coll_socket *socket)
{
	struct coll_mux *mux = coll_mux_of(socket);

	coll_socket_untouch(socket);
	mux->attached = false;
	mux->socket.fd = -1;
}

static const struct coll_socket_ops mux_socket_ops = {
	.wants_send = coll_mux_wants_send,
	.send_iov = coll_mux_send_iov,
	.sends_quietly = coll_mux_sends_quietly,
	.sent = coll_mux_sent,
	.wants_recv = coll_mux_wants_recv,
	.recv_iov = coll_mux_recv_iov,
	.received = coll_mux_received,
	.received_in = coll_mux_received_in,
	.received_none = coll_mux_received_none,
	.detached = mux_detached,
};

static struct coll_mux *mux_make(struct coll_context *context, uint32_t world, uint32_t number,
				 const struct coll_channel_ops *ops, bool mine)
{
	struct coll_mux *mux = calloc(1, sizeof(*mux));

	if (!mux)
		return NULL;
	mux->socket = (struct coll_socket){ .ops = &mux_socket_ops, .engine = &context->engine,
					    .fd = -1 };
	mux->ops = ops;
	mux->context = context;
	mux->world = world;
	mux->number = number;
	mux->mine = mine;
	mux->next_number = mine ? 1 : 2;
	mux->senders_end = &mux->senders;
	mux->next = context->muxes;
	context->muxes = mux;
	return mux;
}

static int mux_attach(struct coll_mux *mux, const struct coll_connected *connected)
{
	struct coll_context *context = mux->context;
	int error;

	coll_assert(mux->state == MUX_CONNECTING && !mux->attached);
	mux->local = coll_connection_is_local(connected->fd);
	coll_connection_tune_peer(context, connected->fd, mux->world);
	mux->socket.fd = connected->fd;
	mux->socket.memory = connected->memory;
	mux->socket.reader = coll_peer_reader(context, mux->world);
	coll_seal_attach(connected->seal, &mux->socket);
	error = coll_socket_attach(&mux->socket);
	if (error) {
		coll_seal_take_back(&mux->socket);
		mux->socket.memory = NULL;
		mux->socket.fd = -1;
		return error;
	}
	context->counters.memory_connections += !!connected->memory;
	mux->attached = true;
	mux->state = MUX_UP;
	context->counters.connections++;
	coll_socket_touch(&mux->socket);
	return 0;
}

static int mux_connected(struct coll_connect *attempt, const struct coll_connected *connected)
{
	struct coll_mux *mux = attempt->owner;
	int error = mux_attach(mux, connected);

	if (error)
		return error;
	mux->connect = NULL;
	free(attempt);
	coll_mux_touch_all(mux);
	coll_mux_serve_touched(mux);
	return 0;
}

/* Where the port is closed, the process that has published it has ended. */
static void mux_connect_failed(struct coll_connect *attempt, int error)
{
	const bool refused = attempt->error == -ECONNREFUSED && !attempt->may_be_elsewhere;
	struct coll_mux *mux = attempt->owner;

	coll_mux_lost(mux, error);
	if (error == -ECONNRESET || (error == -EHOSTUNREACH && refused))
		coll_awaited_ended(mux->context, mux->world, -ECONNRESET);
}

static int mux_connect(struct coll_mux *mux)
{
	struct coll_context *context = mux->context;

	mux->connect = calloc(1, sizeof(*mux->connect));
	if (!mux->connect)
		return -ENOMEM;
	*mux->connect = (struct coll_connect){
		.context = context,
		.world = mux->world,
		.spread = context->boot->rank + mux->world + mux->number,
		.hello = {
			.streams = mux->number,
			.stream = mux->number,
			.from = context->boot->rank,
			.to = mux->world,
		},
		.owner = mux,
		.connected = mux_connected,
		.failed = mux_connect_failed,
	};
	return coll_connect_begin(mux->connect);
}

struct coll_mux *coll_mux_get(struct coll_context *context, uint32_t world, uint32_t number,
			      const struct coll_channel_ops *ops, int *error)
{
	struct coll_mux *mux = context->muxes;

	while (mux && (mux->world != world || mux->number != number ||
		       mux->state == MUX_ENDED || mux->broken))
		mux = mux->next;
	*error = -ENOMEM;
	if (!mux) {
		mux = mux_make(context, world, number, ops, true);
		*error = mux ? mux_connect(mux) : -ENOMEM;
		if (mux && *error) {
			coll_mux_lost(mux, *error);
			mux = NULL;
		}
	}
	return mux;
}

/* One that has ended counts: it has its descriptor until the last channel has left it. */
bool coll_muxes_may_accept(const struct coll_context *context, uint32_t world)
{
	const struct coll_mux *mux;
	uint32_t accepted = 0;

	for (mux = context->muxes; mux; mux = mux->next)
		accepted += mux->world == world && !mux->mine;
	return accepted < ACCEPTED_MAX;
}

int coll_mux_accept(struct coll_context *context, uint32_t world, uint32_t number,
		    const struct coll_channel_ops *ops,
		    const struct coll_connected *connected)
{
	struct coll_mux *mux = mux_make(context, world, number, ops, false);
	int error = mux ? mux_attach(mux, connected) : -ENOMEM;

	if (mux && error)
		coll_mux_lost(mux, error);
	return error;
}

static void mux_free(struct coll_mux *mux)
{
	struct coll_mux **slot = &mux->context->muxes;
	int i;

	coll_assert(!mux->channels && !mux->users);
	while (*slot != mux)
		slot = &(*slot)->next;
	*slot = mux->next;
	mux->context->muxes_ended--;
	for (i = 0; i < COLL_SEND_IOV_MAX; i++)
		free(mux->copy[i]);
	free(mux->connect);
	free(mux->bucket);
	free(mux->control);
	free(mux->control_sent);
	free(mux);
}

void coll_muxes_reap(struct coll_context *context)
{
	struct coll_mux *mux, *next;

	for (mux = context->muxes_ended ? context->muxes : NULL; mux; mux = next) {
		next = mux->next;
		if (mux->state != MUX_ENDED || mux->channels)
			continue;
		if (mux->attached && !mux->detaching) {
			mux->detaching = true;
			coll_socket_detach(&mux->socket);
		}
		if (!mux->attached)
			mux_free(mux);
	}
}

void coll_muxes_touch(struct coll_context *context)
{
	struct coll_mux *mux;

	for (mux = context->muxes; mux; mux = mux->next)
		if (mux->attached)
			coll_socket_touch(&mux->socket);
}

void coll_muxes_peer_ended(struct coll_context *context, uint32_t world)
{
	struct coll_mux *mux;

	for (mux = context->muxes; mux; mux = mux->next) {
		if (mux->world != world)
			continue;
		if (mux->state == MUX_CONNECTING)
			coll_mux_lost(mux, -ECONNRESET);
		else if (mux->state == MUX_UP)
			shutdown(mux->socket.fd, SHUT_RD);
	}
}

bool coll_muxes_delivered(const struct coll_context *context)
{
	const struct coll_mux *mux;

	for (mux = context->muxes; mux; mux = mux->next) {
		if (mux->state != MUX_UP)
			continue;
		if (mux->control_bytes || mux->iovs_sent < mux->iovs || mux->socket.sending ||
		    coll_seal_is_pending(&mux->socket) ||
		    !coll_socket_is_delivered(&mux->socket))
			return false;
	}
	return true;
}

void coll_muxes_close(struct coll_context *context)
{
	struct coll_mux *mux;

	for (mux = context->muxes; mux; mux = mux->next) {
		coll_mux_lost(mux, -ECANCELED);
		while (mux->all)
			mux->ops->close(mux->all);
	}
	coll_muxes_reap(context);
}
