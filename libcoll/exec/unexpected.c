// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>

#include "core/port.h"
#include "unexpected.h"
#include "exec.h"
#include "health.h"

enum { CAPACITY_MIN = 1024, RESERVED_MESSAGES = 8, RESERVED_BYTES = 65536 };

static struct coll_unexpected *unexpected_new(struct coll_group *group, uint64_t bytes)
{
	const uint64_t capacity = bytes < CAPACITY_MIN ? CAPACITY_MIN : bytes;
	struct coll_unexpected *unexpected = malloc(sizeof(*unexpected) + capacity);

	if (!unexpected)
		return NULL;
	group->unexpected_bytes += capacity;
	unexpected->capacity = capacity;
	return unexpected;
}

/* From the free list, or new. */
static struct coll_unexpected *unexpected_make(struct coll_group *group, uint64_t bytes)
{
	struct coll_unexpected **slot, *unexpected;

	for (slot = &group->unexpected_free; (unexpected = *slot); slot = &unexpected->next)
		if (unexpected->capacity >= bytes) {
			*slot = unexpected->next;
			return unexpected;
		}
	unexpected = unexpected_new(group, bytes);
	if (unexpected)
		group->context->counters.allocations++;
	return unexpected;
}

void coll_unexpected_reserve(struct coll_group *group, const struct coll_schedule *schedule)
{
	const uint64_t limit = group->options.unexpected_bytes / 2;
	struct coll_unexpected *unexpected;
	uint64_t largest = CAPACITY_MIN;
	uint32_t i, wanted = 0;

	for (i = 0; i < schedule->ops; i++) {
		const struct coll_op *op = &coll_ops(schedule)[i];

		if (op->kind != COLL_OP_RECV)
			continue;
		wanted += wanted < RESERVED_MESSAGES;
		largest = op->bytes > largest ? op->bytes : largest;
	}
	for (unexpected = group->unexpected_free; wanted && unexpected; unexpected = unexpected->next)
		wanted -= unexpected->capacity >= largest;
	for (; wanted; wanted--) {
		const uint64_t all = group->unexpected_bytes + largest;

		unexpected = all <= RESERVED_BYTES && all <= limit ?
				     unexpected_new(group, largest) : NULL;
		if (!unexpected)
			return;
		unexpected->next = group->unexpected_free;
		group->unexpected_free = unexpected;
	}
}

struct coll_unexpected *coll_unexpected_keep(struct coll_link *link, const struct coll_header *header)
{
	struct coll_unexpected *unexpected = unexpected_make(link->group, header->bytes);

	if (!unexpected)
		return NULL;
	unexpected->header = *header;
	unexpected->got = 0;
	unexpected->complete = unexpected->claimed = false;
	unexpected->next = NULL;
	*link->whole->kept_end = unexpected;
	link->whole->kept_end = &unexpected->next;
	link->group->context->counters.unexpected++;
	return unexpected;
}

struct coll_unexpected *coll_unexpected_begun(const struct coll_link *link)
{
	const struct coll_header *header = &link->header;
	struct coll_unexpected *unexpected;

	for (unexpected = link->whole->kept; unexpected; unexpected = unexpected->next)
		if (!unexpected->complete && unexpected->header.run == header->run &&
		    unexpected->header.slot == header->slot &&
		    unexpected->header.bytes == header->bytes &&
		    (link->whole->streams || unexpected->got == header->offset))
			return unexpected;
	return NULL;
}

struct coll_unexpected *coll_unexpected_find(const struct coll_link *link, uint32_t run,
					     uint32_t slot)
{
	struct coll_unexpected *unexpected;

	for (unexpected = link->kept; unexpected; unexpected = unexpected->next)
		if (unexpected->complete && unexpected->header.run == run &&
		    unexpected->header.slot == slot)
			return unexpected;
	return NULL;
}

/* Recycles its memory, unless unexpected messages have become too many. */
static void unexpected_recycle(struct coll_group *group, struct coll_unexpected *unexpected)
{
	if (!coll_group_is_full(group)) {
		unexpected->next = group->unexpected_free;
		group->unexpected_free = unexpected;
		return;
	}
	coll_assert(group->unexpected_bytes >= unexpected->capacity);
	group->unexpected_bytes -= unexpected->capacity;
	free(unexpected);
	if (!coll_group_is_full(group)) {
		group->watchful = false;	/* links are read again from now on */
		coll_engine_check_at(&group->context->engine, 0);
	}
}

void coll_unexpected_release(struct coll_link *link, struct coll_unexpected *unexpected)
{
	struct coll_unexpected **slot = &link->kept;

	while (*slot != unexpected)
		slot = &(*slot)->next;
	*slot = unexpected->next;
	if (!unexpected->next)
		link->kept_end = slot;
	unexpected_recycle(link->group, unexpected);
}

void coll_unexpected_drop_completed(struct coll_link *link)
{
	while (link->kept && link->kept->complete &&
	       coll_run_has_completed(link->group, link->kept->header.run))
		coll_unexpected_release(link, link->kept);
}

static void list_free(struct coll_unexpected *unexpected)
{
	while (unexpected) {
		struct coll_unexpected *next = unexpected->next;

		free(unexpected);
		unexpected = next;
	}
}

void coll_unexpected_free_all(struct coll_group *group)
{
	uint32_t rank;

	for (rank = 0; rank < group->ranks; rank++)
		if (group->links[rank])
			list_free(group->links[rank]->kept);
	list_free(group->unexpected_free);
}
