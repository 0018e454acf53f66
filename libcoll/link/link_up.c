// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A link gets its connection, or its channel of a shared one. */
#include "arbiter.h"
#include "channel.h"
#include "connection.h"
#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "link.h"
#include "seal.h"
#include "stream.h"

static void link_up(struct coll_link *link)
{
	struct coll_context *context = link->group->context;
	int error;

	coll_link_set_state(link, LINK_UP);
	link->attached = true;
	coll_arbiter_update(link->whole);
	if (link->number) {
		context->counters.streams++;
		coll_link_touch(link);
		return;
	}
	context->counters.links++;
	error = coll_link_events(link->group)->up(link);
	if (error)		/* what it has goes with the link */
		coll_link_lost(link, error);
}

int coll_link_attach(struct coll_link *link, int fd, uint32_t streams, struct coll_seal *seal)
{
	struct coll_context *context = link->group->context;
	int error = link->number ? 0 : coll_streams_make(link, streams);

	coll_assert(!link->attached && link->socket.fd < 0);
	if (error)
		return error;
	link->local = coll_connection_is_local(fd);
	coll_connection_tune_peer(context, fd, link->group->world[link->rank]);
	link->socket.fd = fd;
	coll_seal_attach(seal, &link->socket);
	error = context->engine.ops->attach(&link->socket);
	if (error) {
		coll_seal_take_back(&link->socket);
		link->socket.fd = -1;
		return error;
	}
	context->counters.connections++;
	link_up(link);
	return 0;
}

int coll_link_attach_channel(struct coll_link *link, uint32_t streams)
{
	int error = link->number ? 0 : coll_streams_make(link, streams);

	coll_assert(!link->attached && link->channel);
	if (error)
		return error;
	link->local = link->channel->mux->local;
	link_up(link);
	return 0;
}
