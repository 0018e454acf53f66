// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>

#include "unexpected.h"
#include "exec.h"
#include "health.h"

enum { ROOM_MIN = 1024 };

/* From those that wait to be used again, or made. */
static struct coll_early *early_make(struct coll_group *group, uint64_t bytes)
{
	struct coll_early **slot, *early;

	for (slot = &group->early_free; (early = *slot); slot = &early->next)
		if (early->room >= bytes) {
			*slot = early->next;
			return early;
		}
	bytes = bytes < ROOM_MIN ? ROOM_MIN : bytes;
	early = malloc(sizeof(*early) + bytes);
	if (!early)
		return NULL;
	group->context->counters.allocations++;
	group->early_bytes += bytes;
	early->room = bytes;
	return early;
}

struct coll_early *coll_early_keep(struct coll_link *link)
{
	struct coll_early *early = early_make(link->group, link->header.bytes);

	if (!early)
		return NULL;
	early->header = link->header;
	early->got = 0;
	early->complete = false;
	early->next = NULL;
	*link->whole->kept_end = early;
	link->whole->kept_end = &early->next;
	link->group->context->counters.unexpected++;
	return early;
}

struct coll_early *coll_early_begun(const struct coll_link *link)
{
	const struct coll_header *header = &link->header;
	struct coll_early *early;

	for (early = link->whole->kept; early; early = early->next)
		if (!early->complete && early->header.run == header->run &&
		    early->header.slot == header->slot && early->header.bytes == header->bytes &&
		    (link->whole->streams || early->got == header->offset))
			return early;
	return NULL;
}

struct coll_early *coll_early_find(const struct coll_link *link, uint32_t run, uint32_t slot)
{
	struct coll_early *early;

	for (early = link->kept; early; early = early->next)
		if (early->complete && early->header.run == run && early->header.slot == slot)
			return early;
	return NULL;
}

/* Its memory serves the next, unless early messages have become too many. */
static void early_give(struct coll_group *group, struct coll_early *early)
{
	if (!coll_group_is_full(group)) {
		early->next = group->early_free;
		group->early_free = early;
		return;
	}
	group->early_bytes -= early->room;
	free(early);
	if (!coll_group_is_full(group)) {
		group->watchful = false;	/* links are read again from now on */
		coll_engine_check_at(&group->context->engine, 0);
	}
}

void coll_early_release(struct coll_link *link, struct coll_early *early)
{
	struct coll_early **slot = &link->kept;

	while (*slot != early)
		slot = &(*slot)->next;
	*slot = early->next;
	if (!early->next)
		link->kept_end = slot;
	early_give(link->group, early);
}

static bool run_over(const struct coll_group *group, uint32_t run)
{
	const struct coll_exec *exec = coll_exec_find(group, run);

	return exec ? exec->over : (int32_t)(run - group->next_run) < 0;
}

/* Behind one that may still be asked for they stay until that has gone. */
void coll_early_drop_over(struct coll_link *link)
{
	while (link->kept && link->kept->complete && run_over(link->group, link->kept->header.run))
		coll_early_release(link, link->kept);
}

static void list_free(struct coll_early *early)
{
	while (early) {
		struct coll_early *next = early->next;

		free(early);
		early = next;
	}
}

void coll_early_free_all(struct coll_group *group)
{
	uint32_t rank;

	for (rank = 0; rank < group->ranks; rank++)
		if (group->links[rank])
			list_free(group->links[rank]->kept);
	list_free(group->early_free);
}
