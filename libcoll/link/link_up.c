// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A link opens, and gets what its transport has made. */
#include "arbiter.h"
#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "link.h"
#include "receive.h"
#include "send.h"

static bool link_wants_to_receive(const struct coll_socket *socket)
{
	return coll_link_wants_recv(coll_link_of(socket));
}

static void link_socket_detached(struct coll_socket *socket)
{
	coll_link_detached(coll_link_of(socket));
}

const struct coll_socket_ops coll_link_socket_ops = {
	.wants_send = coll_link_wants_send,
	.send_iov = coll_link_send_iov,
	.sends_quietly = coll_link_sends_quietly,
	.sent = coll_link_sent,
	.wants_recv = link_wants_to_receive,
	.recv_iov = coll_link_recv_iov,
	.received = coll_link_received,
	.received_in = coll_link_received_in,
	.received_none = coll_link_received_none,
	.detached = link_socket_detached,
};

void coll_link_open(struct coll_link *link)
{
	int error;

	if (link->state != LINK_IDLE || link->rank < link->group->rank)
		return;
	coll_link_set_state(link, LINK_CONNECTING);
	error = link->transport->open(link);
	if (error)
		coll_link_lost(link, error);
}

void coll_link_up(struct coll_link *link, bool local)
{
	struct coll_context *context = link->group->context;
	int error;

	link->local = local;
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

void coll_link_open_streams(struct coll_link *link)
{
	uint32_t i;

	for (i = 0; i < link->streams && link->state == LINK_UP; i++)
		coll_link_open(&link->stream[i]);
}
