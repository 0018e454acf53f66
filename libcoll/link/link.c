// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What a link is: its state, and what its transport does for it. */
#include <stdlib.h>

#include "core/port.h"
#include "link.h"

#define TO(state) (1u << (state))

static const uint8_t link_moves[] = {
	[LINK_IDLE] = TO(LINK_CONNECTING) | TO(LINK_UP) | TO(LINK_LOST) | TO(LINK_CLOSED),
	[LINK_CONNECTING] = TO(LINK_UP) | TO(LINK_LOST) | TO(LINK_CLOSED),
	[LINK_UP] = TO(LINK_LEFT) | TO(LINK_LOST) | TO(LINK_CLOSED),
	[LINK_LEFT] = TO(LINK_CLOSED),
	[LINK_LOST] = TO(LINK_CLOSED),
	[LINK_CLOSED] = 0,
};

void coll_link_set_state(struct coll_link *link, enum coll_link_state state)
{
	coll_assert(link_moves[link->state] & TO(state));
	link->state = state;
	coll_flight_event(&link->group->context->flight, link->socket.engine->now,
			  COLL_FLIGHT_LINK, 0, 0, link->group->world[link->rank], state);
	link->group->context->awaited -= link->awaited;
	link->awaited = false;
}

void coll_link_init(struct coll_link *link, struct coll_group *group, uint32_t rank)
{
	*link = (struct coll_link){ .group = group, .rank = rank, .whole = link,
				    .transport = group->context->transport,
				    .socket = { .engine = &group->context->engine, .fd = -1 },
				    .suspect = COLL_NONE };
	link->queue_end = link->urgent_end = &link->queue;
	link->kept_end = &link->kept;
	group->open_links++;
}

struct coll_link *coll_link_get(struct coll_group *group, uint32_t rank)
{
	struct coll_link *link = group->links[rank];

	if (link)
		return link;
	link = calloc(1, sizeof(*link));
	if (!link)
		return NULL;
	coll_link_init(link, group, rank);
	group->links[rank] = link;
	return link;
}

void coll_link_touch(struct coll_link *link)
{
	uint32_t i;

	for (i = 0; i < link->streams; i++)
		coll_link_touch(&link->stream[i]);
	link->transport->touch(link);
}

int coll_link_fd(const struct coll_link *link)
{
	return link->transport->fd(link);
}

void coll_link_await_peer(struct coll_link *link)
{
	struct coll_context *context = link->group->context;

	if (link->state != LINK_IDLE || link->rank > link->group->rank || link->awaited)
		return;
	link->awaited = true;
	context->awaited++;
	context->transport->await(link);
}

/*
 * A peer that needs nothing from this rank may end before it accepts the connection. Then
 * this rank must not need it either.
 */
bool coll_link_may_end(const struct coll_link *link)
{
	return link->state == LINK_LEFT || link->leaving || link->group->freed ||
	       (!link->heard && !coll_link_events(link->group)->needs(link));
}

bool coll_link_delivered(const struct coll_link *link)
{
	return !link->queue && !link->socket.sending && !link->offloaded &&
	       link->transport->delivered(link);
}

void coll_link_stop_reading(struct coll_link *link)
{
	link->transport->stop_reading(link);
}
