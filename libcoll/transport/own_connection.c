// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "connect.h"
#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/memory.h"
#include "libcoll/link/stream.h"
#include "own_connection.h"
#include "peer_process.h"
#include "seal.h"

int coll_own_connection_attach(struct coll_link *link, uint32_t streams,
			       const struct coll_connected *connected)
{
	struct coll_context *context = link->group->context;
	int error = link->number ? 0 : coll_streams_make(link, streams);

	coll_assert(!link->attached && link->socket.fd < 0);
	if (error)
		return error;
	coll_connection_tune_peer(context, connected->fd, link->group->world[link->rank]);
	link->transport = &coll_own_connection;
	link->socket.fd = connected->fd;
	link->socket.memory = connected->memory;
	link->socket.reader = coll_peer_reader(context, link->group->world[link->rank]);
	link->socket.ops = &coll_link_socket_ops;
	coll_seal_attach(connected->seal, &link->socket);
	error = coll_socket_attach(&link->socket);
	if (error) {
		coll_seal_take_back(&link->socket);
		link->socket.memory = NULL;
		link->socket.fd = -1;
		return error;
	}
	context->counters.connections++;
	coll_link_up(link, coll_connection_is_local(connected->fd));
	return 0;
}

/* ---- connecting ------------------------------------------------------------ */

static int own_connected(struct coll_connect *attempt, const struct coll_connected *connected)
{
	struct coll_link *link = attempt->owner;
	int error = coll_own_connection_attach(link, attempt->hello.streams, connected);

	if (error)
		return error;
	if (link->connect == attempt)	/* else it has been closed already */
		link->connect = NULL;
	free(attempt);
	coll_link_open_streams(link);
	return 0;
}

static void own_connect_failed(struct coll_connect *attempt, int error)
{
	coll_link_lost(attempt->owner, error);
}

static int own_open(struct coll_link *link)
{
	const struct coll_group *group = link->group;

	link->connect = calloc(1, sizeof(*link->connect));
	if (!link->connect)
		return -ENOMEM;
	*link->connect = (struct coll_connect){
		.context = group->context,
		.world = group->world[link->rank],
		.spread = group->rank + link->rank + link->number,
		.hello = {
			.streams = coll_streams_wanted(link->whole),
			.stream = link->number,
			.from = group->rank,
			.to = link->rank,
			.group = group->id,
		},
		.owner = link,
		.connected = own_connected,
		.failed = own_connect_failed,
	};
	return coll_connect_begin(link->connect);
}

static void own_abandon(struct coll_link *link)
{
	if (!link->connect)
		return;
	coll_connect_abandon(link->connect);
	free(link->connect);
	link->connect = NULL;
}

/* ---- the transport --------------------------------------------------------- */

static void own_touch(struct coll_link *link)
{
	if (link->attached)
		coll_socket_touch(&link->socket);
}

static int own_fd(const struct coll_link *link)
{
	return link->socket.fd;
}

static bool own_delivered(const struct coll_link *link)
{
	return !coll_seal_is_pending(&link->socket) && coll_socket_is_delivered(&link->socket);
}

static void own_stop_sending(struct coll_link *link)
{
	if (!coll_seal_is_pending(&link->socket))	/* else when that has gone */
		shutdown(link->socket.fd, SHUT_WR);
}

static void own_stop_reading(struct coll_link *link)
{
	if (link->socket.fd >= 0)
		shutdown(link->socket.fd, SHUT_RD);
}

/*
 * The socket is shut down, so transfers in flight end. The engine reports them; detach()
 * closes the socket after the last report.
 */
static void own_close(struct coll_link *link)
{
	if (link->attached) {
		shutdown(link->socket.fd, SHUT_RDWR);
		coll_socket_detach(&link->socket);
	} else {
		own_abandon(link);
		coll_link_detached(link);
	}
}

const struct coll_transport coll_own_connection = {
	.open = own_open,
	.touch = own_touch,
	.fd = own_fd,
	.delivered = own_delivered,
	.stop_sending = own_stop_sending,
	.stop_reading = own_stop_reading,
	.close = own_close,
};
