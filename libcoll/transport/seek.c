// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>

#include "awaited.h"
#include "channel.h"
#include "connect.h"
#include "libcoll/engine/engine.h"
#include "pending.h"
#include "seek.h"

enum { AGAIN_NS = 250000000 };		/* before it is asked once more */

/* Connects, if need be: on another node that is how the peer's end is noticed. */
static void seek_ask(const struct coll_link *link)
{
	const struct coll_group *group = link->group;
	struct coll_context *context = group->context;
	bool shares = false;

	if (context->offload || group->own_connections)
		return;
	if (!coll_connect_shares(context, group->world[link->rank], &shares) && shares)
		coll_channels_ask(link);
}

static void seek_look(struct coll_link *link, uint64_t now)
{
	const struct coll_group *group = link->group;
	const int error = coll_connect_look(group->context, group->world[link->rank]);

	link->looked = now;
	coll_engine_check_at(&group->context->engine, now + AGAIN_NS);
	if (error == -ECONNRESET)
		coll_awaited_set_ended(link, error);
	else if (!error || error == -ENOTSUP)
		seek_ask(link);		/* else it has not published itself yet */
}

/* A connection is read to its end, which is then told again. */
static bool is_connected(const struct coll_link *link)
{
	const struct coll_group *group = link->group;
	const struct coll_mux *mux = group->context->muxes;

	while (mux && (mux->world != group->world[link->rank] || mux->state != MUX_UP))
		mux = mux->next;
	return mux;
}

void coll_seek(struct coll_link *link, uint64_t now, bool look)
{
	struct coll_context *context = link->group->context;

	if (!coll_is_awaited(link))
		return;
	if (look && !link->ended && now - link->looked >= AGAIN_NS)
		seek_look(link, now);
	if (link->ended && is_connected(link))
		link->ended = 0;
	if (!link->ended)
		return;
	if (now - link->ended < AWAITED_ARRIVING_NS || coll_pending_expects(link))
		coll_engine_check_at(&context->engine, now + AWAITED_ARRIVING_NS);
	else	/* a rank that cannot accept is to blame itself */
		coll_link_lost(link, context->listen_error ? context->listen_error :
							      link->end_error);
}
