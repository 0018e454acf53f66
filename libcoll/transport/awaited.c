// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>

#include "awaited.h"
#include "libcoll/engine/engine.h"
#include "peer_process.h"

bool coll_is_awaited(const struct coll_link *link)
{
	return link && link->awaited && link->state == LINK_IDLE;
}

void coll_awaited_set_ended(struct coll_link *link, int error)
{
	if (link->ended)
		return;
	link->ended = coll_now();
	link->end_error = error;
	coll_engine_check_at(&link->group->context->engine, link->ended + AWAITED_ARRIVING_NS);
}

void coll_awaited_ended(struct coll_context *context, uint32_t world, int error)
{
	struct coll_group *group;
	uint32_t rank;

	for (group = context->awaited ? context->groups : NULL; group; group = group->next)
		for (rank = 0; rank < group->rank; rank++)
			if (group->world[rank] == world && coll_is_awaited(group->links[rank]))
				coll_awaited_set_ended(group->links[rank], error);
}

void coll_awaited_begin(struct coll_link *link)
{
	const struct coll_group *group = link->group;

	if (coll_peer_has_ended(group->context, group->world[link->rank]))
		coll_awaited_set_ended(link, -ECONNRESET);
}
