// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A group: made, left, freed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/levels.h"
#include "board.h"
#include "core/port.h"
#include "exec.h"
#include "failure.h"
#include "group.h"
#include "libcoll/transport/arrival.h"
#include "libcoll/link/groups.h"
#include "libcoll/link/stream.h"
#include "machine.h"
#include "offload.h"
#include "survey.h"
#include "unexpected.h"

int coll_group_find_clusters(struct coll_group *group)
{
	const uint32_t *all = group->context->cluster, ranks = group->context->boot->ranks;
	uint32_t *number, i;

	if (!all)
		return 0;
	number = malloc(ranks * sizeof(*number));
	if (!group->cluster)
		group->cluster = malloc(group->ranks * sizeof(*group->cluster));
	if (!number || !group->cluster) {
		free(number);
		return -ENOMEM;
	}
	memset(number, 0xff, ranks * sizeof(*number));
	group->clusters = 0;
	for (i = 0; i < group->ranks; i++) {
		uint32_t *mine = &number[all[group->world[i]]];

		if (*mine == COLL_NONE)
			*mine = group->clusters++;
		group->cluster[i] = *mine;
	}
	free(number);
	return 0;
}

/* This kind's number of each of the group's ranks, or NULL. */
static uint32_t *levels_numbers(const struct coll_group *group, const uint32_t *all)
{
	uint32_t *of = malloc(group->ranks * sizeof(*of)), i;

	for (i = 0; i < group->ranks && of; i++)
		of[i] = all[group->world[i]];
	return of;
}

int coll_group_find_levels(struct coll_group *group)
{
	const struct coll_context *context = group->context;
	uint32_t *node, *domain;
	int error = -ENOMEM;

	if (!context->node_of)
		return 0;
	if (!group->levels)	/* and their tables behind it */
		group->levels = malloc(sizeof(*group->levels) + coll_levels_bytes(group->ranks));
	node = levels_numbers(group, context->node_of);
	domain = levels_numbers(group, context->domain_of);
	if (node && domain && group->levels) {
		const uint32_t *const of[COLL_LEVELS_MAX] = {
			[COLL_LEVEL_DOMAIN] = domain,
			[COLL_LEVEL_NODE] = node,
			[COLL_LEVEL_CLUSTER] = group->clusters > 1 ? group->cluster : NULL,
		};

		coll_levels_make(of, group->ranks, group->levels + 1, group->levels);
		error = 0;
	}
	free(node);
	free(domain);
	return error;
}

/* As coll_group_make(); links that peers have made for it are still to be adopted. */
static int group_make(struct coll_context *context, uint64_t id, uint32_t *world, uint32_t rank,
		      uint32_t ranks, struct coll_group **made)
{
	struct coll_group *group = calloc(1, sizeof(*group));

	if (!group)
		goto err_free_world;
	group->links = calloc(ranks, sizeof(*group->links));
	group->failed = calloc(ranks, 1);
	if (!group->links || !group->failed)
		goto err_free_group;
	group->context = context;
	group->id = id;
	group->rank = rank;
	group->ranks = ranks;
	group->world = world;
	group->active_end = &group->active;
	group->failed_rank = COLL_NONE;
	group->reporter = COLL_NONE;
	group->options = context->options;
	group->costs = context->costs;
	coll_late_ranks_forget(&group->options.machine, &group->costs.late);
	if (coll_group_find_clusters(group) || coll_group_find_levels(group) ||
	    coll_groups_add(group))
		goto err_free_group;
	coll_group_find_farthest(group);
	*made = group;
	return 0;

err_free_group:
	free(group->levels);
	free(group->cluster);
	free(group->links);
	free(group->failed);
	free(group);
err_free_world:
	free(world);
	return -ENOMEM;
}

int coll_group_make(struct coll_context *context, uint64_t id, uint32_t *world, uint32_t rank,
		    uint32_t ranks, struct coll_group **made)
{
	const int error = group_make(context, id, world, rank, ranks, made);

	if (error)
		return error;
	(*made)->surveyed = ranks > 1 && coll_options_follow(&context->options);
	(*made)->unsampled = coll_options_measure_first(&context->options) ? 0 : SURVEY_UNSEEN;
	coll_arrivals_adopt(*made);
	return 0;
}

void coll_group_inherit(struct coll_group *group, const struct coll_group *from)
{
	group->options = from->options;
	group->costs = from->costs;
	coll_late_ranks_forget(&group->options.machine, &group->costs.late);
}

static uint32_t *copy_world(const uint32_t *world, uint32_t ranks)
{
	uint32_t *copy = malloc(ranks * sizeof(*copy));

	if (copy)
		memcpy(copy, world, ranks * sizeof(*copy));
	return copy;
}

int coll_group_make_twin(struct coll_group *group, uint64_t id,
			 const struct coll_link_events *events, struct coll_point_peer *peers)
{
	uint32_t *world = copy_world(group->world, group->ranks);
	struct coll_group *twin;

	if (!world || group_make(group->context, id, world, group->rank, group->ranks, &twin)) {
		free(peers);
		return -ENOMEM;
	}
	twin->options = group->options;
	twin->own_connections = group->own_connections;
	twin->events = events;
	twin->peers = peers;
	twin->twin = group;
	group->twin = twin;
	coll_arrivals_adopt(twin);
	return 0;
}

void coll_group_unmade(struct coll_context *context, uint64_t id, int error)
{
	const struct coll_header news = { .kind = COLL_MESSAGE_FAIL, .version = COLL_WIRE_VERSION,
					  .run = COLL_NONE, .slot = COLL_NONE, .hash = -error };

	coll_arrivals_bury(context, id, &news);
}

/* Makes a group of these ranks of the job for the library's own calls; this is number `rank`. */
static int group_make_apart(const struct coll_group *world, uint64_t id, const uint32_t *ranks,
			    uint32_t rank, uint32_t count, struct coll_group **made)
{
	uint32_t *copy = copy_world(ranks, count);
	int error, i;

	if (!copy)
		return -ENOMEM;
	error = coll_group_make(world->context, id, copy, rank, count, made);
	if (error)
		return error;
	(*made)->surveyed = false;
	(*made)->options.explain = 0;
	for (i = 0; i < COLL_COLLECTIVES; i++) {
		(*made)->options.algo[i] = NULL;
		(*made)->options.tuning[i] = COLL_TUNING_UNSET;
	}
	return 0;
}

int coll_group_to_agree(struct coll_group *world, uint64_t id, struct coll_group **made)
{
	return group_make_apart(world, id, world->world, world->rank, world->ranks, made);
}

int coll_group_to_measure(struct coll_group *world, uint64_t id, struct coll_group **made)
{
	int error = coll_group_to_agree(world, id, made);

	if (error)
		return error;
	(*made)->own_connections = true;
	(*made)->options.algo[COLL_BCAST] = coll_algo_find(COLL_BCAST, "linear");
	(*made)->options.algo[COLL_GATHER] = coll_algo_find(COLL_GATHER, "linear");
	return 0;
}

int coll_group_pair_to_measure(struct coll_group *world, uint64_t id, const uint32_t rank[2],
			       struct coll_group **made)
{
	int error = group_make_apart(world, id, rank, world->rank == rank[1], 2, made);

	if (!error)
		(*made)->options.algo[COLL_BCAST] = coll_algo_find(COLL_BCAST, "linear");
	return error;
}

static void group_bury(const struct coll_group *group)
{
	const struct coll_header news = coll_group_news(group);

	if (group->state != GROUP_OK)
		coll_arrivals_bury(group->context, group->id, &news);
}

static void group_destroy(struct coll_group *group)
{
	uint32_t rank;

	coll_assert(group->freed && !group->open_links && !group->active);
	coll_groups_remove(group);
	group_bury(group);
	if (group->twin)
		group->twin->twin = NULL;
	group->context->job->circuits_forget_group(group);
	coll_offload_drop(group);
	coll_offload_let_go(group);	/* before runs and plans of the group's own are freed */
	coll_survey_close(group);
	coll_planned_forget(group);
	free(group->fabric);
	coll_unexpected_free_all(group);
	coll_board_free(group);
	for (rank = 0; rank < group->ranks; rank++) {
		if (group->links[rank]) {
			coll_streams_free(group->links[rank]);
			free(group->links[rank]->inject);
		}
		free(group->links[rank]);
	}
	free(group->links);
	free(group->failed);
	free(group->world);
	free(group->levels);
	free(group->cluster);
	free(group->peers);
	free(group);
}

static void links_leave(struct coll_group *group)
{
	uint32_t rank;

	for (rank = 0; rank < group->ranks; rank++)
		if (group->links[rank])
			coll_link_leave(group->links[rank]);
}

/* Links in the kernel's use say goodbye when it has finished: coll_groups_reap(). */
void coll_group_leave(struct coll_group *group)
{
	if (group->freed)
		return;
	group->freed = true;
	coll_board_rest(group);
	group->next_freed = group->context->groups_freed;
	group->context->groups_freed = group;
	if (group->twin)
		coll_group_leave(group->twin);
	if (!coll_offload_detach(group))
		links_leave(group);
}

bool coll_groups_close_delivered(struct coll_context *context)
{
	struct coll_group *group;
	bool any = false;
	uint32_t rank;

	for (group = context->groups_freed; group; group = group->next_freed)
		for (rank = 0; rank < group->ranks; rank++) {
			struct coll_link *link = group->links[rank];

			if (!link || !link->attached || link->state == LINK_CLOSED ||
			    !coll_link_delivered(link) || !coll_streams_delivered(link))
				continue;
			coll_link_close(link);
			any = true;
		}
	return any;
}

void coll_group_abandon(struct coll_group *group)
{
	uint32_t rank;

	for (rank = 0; rank < group->ranks; rank++)
		if (group->links[rank])
			coll_link_close(group->links[rank]);
}

void coll_groups_reap(struct coll_context *context)
{
	struct coll_group **slot = &context->groups_freed, *group;

	while ((group = *slot)) {
		if (group->offload.attached && !coll_offload_detach(group))
			links_leave(group);
		if (group->open_links || group->active) {
			slot = &group->next_freed;
			continue;
		}
		*slot = group->next_freed;
		group_destroy(group);
	}
}
