// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>

#include "awaited.h"
#include "channel.h"
#include "connect.h"
#include "own_connection.h"
#include "peer_process.h"
#include "transport.h"

static bool must_be_alone(const struct coll_group *group)
{
	return group->own_connections || group->context->offload;
}

enum {
	PUBLISHED_LOOK_NS = 20000000,	/* before the store is asked once more */
	STORE_FAULT_NS = 1000000000,	/* it may answer again; and whoever has died is named first */
};

/* How long the store is asked, which has answered with this error. */
static uint64_t asking_time(const struct coll_group *group, int error)
{
	const uint64_t deadline = group->options.deadline_ns;

	if (error == -ETIMEDOUT)	/* the peer has not published itself yet */
		return deadline;
	return coll_is_our_lack(error) ? 0 : deadline < STORE_FAULT_NS ? deadline : STORE_FAULT_NS;
}

/*
 * What the peer publishes decides; the engine must not stand still until it has. So the link
 * waits, and is opened by coll_transport_check(). -ENOLINK: the store is at fault, not the peer.
 */
static int transport_open(struct coll_link *link)
{
	const struct coll_group *group = link->group;
	struct coll_context *context = group->context;
	const uint64_t now = coll_now();
	bool shares;
	int error;

	if (!link->looked)
		link->looked = now;
	error = coll_connect_shares(context, group->world[link->rank], &shares);

	if (error && now - link->looked < asking_time(group, error)) {
		context->unpublished = now + PUBLISHED_LOOK_NS;
		return 0;
	}
	if (error)
		return error == -ETIMEDOUT || coll_is_our_lack(error) ? error : -ENOLINK;
	link->transport = shares && !must_be_alone(group) ? &coll_channel_transport :
							    &coll_own_connection;
	return link->transport->open(link);
}

static void open_again(struct coll_link *link)
{
	int error = transport_open(link);

	if (error)
		coll_link_lost(link, error);
}

void coll_transport_check(struct coll_context *context, uint64_t now)
{
	struct coll_group *group;
	uint32_t rank;

	if (now < context->unpublished)
		return;
	context->unpublished = 0;	/* set again by a link that still waits */
	for (group = context->groups; group; group = group->next)
		for (rank = group->rank; rank < group->ranks; rank++) {
			struct coll_link *link = group->links[rank];

			if (link && link->state == LINK_CONNECTING &&
			    link->transport == &coll_transport_undecided)
				open_again(link);
		}
}

/* The first of them: its peer may open a channel on any mux. */
static void transport_await(struct coll_link *link)
{
	struct coll_context *context = link->group->context;

	if (context->awaited == 1)
		coll_muxes_touch(context);
	coll_awaited_begin(link);
}

/* It has no connection yet. */
static void transport_touch(struct coll_link *link)
{
	(void)link;
}

static int transport_fd(const struct coll_link *link)
{
	(void)link;
	return -1;
}

static bool transport_delivered(const struct coll_link *link)
{
	(void)link;
	return true;
}

const struct coll_transport coll_transport_undecided = {
	.open = transport_open,
	.await = transport_await,
	.touch = transport_touch,
	.fd = transport_fd,
	.delivered = transport_delivered,
	.stop_sending = transport_touch,
	.stop_reading = transport_touch,
	.close = coll_link_detached,
};

/*
 * What the process has sent before its end is read first: it is on this host already. Then
 * the link is lost like one whose peer has closed it.
 */
static void link_peer_ended(struct coll_link *link)
{
	uint32_t i;

	if (link->transport == &coll_channel_transport)	/* its mux knows */
		return;
	if (link->state == LINK_CONNECTING) {
		coll_link_lost(link, -ECONNRESET);
		return;
	}
	for (i = 0; i < link->streams; i++)
		link_peer_ended(&link->stream[i]);
	if (link->attached)
		coll_link_stop_reading(link);
}

static void transport_peer_ended(struct coll_context *context, uint32_t world)
{
	struct coll_group *group;
	uint32_t rank;

	for (group = context->groups; group; group = group->next)
		for (rank = 0; rank < group->ranks; rank++)
			if (group->world[rank] == world && group->links[rank])
				link_peer_ended(group->links[rank]);
	coll_muxes_peer_ended(context, world);
	coll_awaited_ended(context, world, -ECONNRESET);
}

void coll_transport_begin(struct coll_context *context)
{
	context->transport = &coll_transport_undecided;
	context->peer_ended = transport_peer_ended;
}
