// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>

#include "core/match.h"
#include "libcoll/engine/published.h"
#include "published.h"

bool coll_link_publishes(struct coll_link *link, const void *data, uint64_t bytes)
{
	return coll_link_sends_at_once(link) && coll_link_through_memory(link) &&
	       coll_memory_publishes(link->transport->memory(link), data, bytes);
}

bool coll_link_publish(struct coll_link *link, const struct coll_header *header, const void *data,
		       struct coll_published_place place)
{
	struct coll_header published = *header;
	const struct iovec message[2] = {
		{ &published, sizeof(published) },
		{ &place, sizeof(place) },
	};

	published.kind = COLL_MESSAGE_PUBLISHED;
	if (!coll_link_publishes(link, data, header->bytes) || !link->transport->send_now(link, message))
		return false;
	coll_memory_lend_slot(link->transport->memory(link), place.slot);
	return true;
}

void coll_link_published_begin(struct coll_link *link)
{
	if (!link->header.bytes || !coll_link_through_memory(link))
		return;			/* it stays a kind that does not come here */
	link->header.kind = COLL_MESSAGE_DATA;
	link->published = true;
	link->payload_left = sizeof(link->place);
}

static void publication_fail(struct coll_link *link, const char *reason)
{
	coll_link_events(link->group)->failed(link->group, -EPROTO, link->rank, link->group->rank,
					      reason);
	coll_link_close(link);
}

const uint8_t *coll_link_published(struct coll_link *link)
{
	const uint64_t bytes = coll_chunk_bytes(&link->header);
	const struct coll_socket *socket = link->transport->memory(link);	/* NULL: it has ended since */
	const uint8_t *data = socket && !link->place.unused ?
				      coll_memory_published(socket, link->place.slot, link->place.offset, bytes) : NULL;

	link->published = false;
	if (!data)
		publication_fail(link, "published a message where there is none");
	return data;
}

void coll_link_published_end(struct coll_link *link, struct coll_socket *socket)
{
	const struct coll_published_place *place = &link->place;

	if (link->state == LINK_CLOSED)
		return;
	if (!coll_memory_is_still_published(socket, place->slot, place->generation))
		publication_fail(link, "changed a message that it had published before it was read");
	else if (!link->transport->read_published(link, place->slot))
		publication_fail(link, "published a message in another frame");
}
