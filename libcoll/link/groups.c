// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "context.h"
#include "groups.h"

enum { SLOTS_MIN = 16 };

/* Ids are hashes already: any of their bits will do. */
static struct coll_group **groups_slot(const struct coll_context *context, uint64_t id)
{
	return &context->group_slot[id & (context->group_slots - 1)];
}

static void groups_enter(struct coll_group *group)
{
	struct coll_group **slot = groups_slot(group->context, group->id);

	group->next_same = *slot;
	*slot = group;
}

/* The oldest first, so that the latest is found first. */
static void groups_enter_all(struct coll_context *context)
{
	struct coll_group *group = context->groups;

	while (group && group->next)
		group = group->next;
	for (; group; group = group->previous)
		groups_enter(group);
}

/* For one more. Without memory for a larger table the old one does, more slowly. */
static int groups_grow(struct coll_context *context)
{
	const uint32_t slots = context->group_slots ? 2 * context->group_slots : SLOTS_MIN;
	struct coll_group **more;

	if (context->group_count < context->group_slots)
		return 0;
	more = calloc(slots, sizeof(*more));
	if (!more)
		return context->group_slots ? 0 : -ENOMEM;
	free(context->group_slot);
	context->group_slot = more;
	context->group_slots = slots;
	groups_enter_all(context);
	return 0;
}

int coll_groups_add(struct coll_group *group)
{
	struct coll_context *context = group->context;

	if (groups_grow(context))
		return -ENOMEM;
	group->next = context->groups;
	group->previous = NULL;
	if (group->next)
		group->next->previous = group;
	context->groups = group;
	context->group_count++;
	groups_enter(group);
	return 0;
}

void coll_groups_remove(struct coll_group *group)
{
	struct coll_context *context = group->context;
	struct coll_group **slot = groups_slot(context, group->id);

	while (*slot != group)
		slot = &(*slot)->next_same;
	*slot = group->next_same;
	*(group->previous ? &group->previous->next : &context->groups) = group->next;
	if (group->next)
		group->next->previous = group->previous;
	if (--context->group_count)
		return;
	free(context->group_slot);
	context->group_slot = NULL;
	context->group_slots = 0;
}

struct coll_group *coll_groups_find(const struct coll_context *context, uint64_t id)
{
	struct coll_group *group = context->group_slots ? *groups_slot(context, id) : NULL;

	while (group && group->id != id)
		group = group->next_same;
	return group;
}
