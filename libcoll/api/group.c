// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The public functions of a group: its ranks, errors, options; groups made from groups. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcoll/exec/exec.h"
#include "libcoll/exec/group.h"
#include "libcoll/exec/failure.h"
#include "libcoll/link/link.h"
#include "libcoll/exec/offload.h"
#include "libcoll/exec/survey.h"
#include "libcoll/progress/progress.h"

static void leave_here(void *argument)
{
	coll_group_leave(argument);
}

void coll_group_free(struct coll_group *group)
{
	const char *why;

	if (group && !coll_progress_check(group->context, &why))
		coll_progress_do(group->context, leave_here, group);
}

int coll_clusters(const struct coll_group *group, int *cluster)
{
	uint32_t i;

	for (i = 0; i < group->ranks && cluster; i++)
		cluster[i] = group->cluster ? group->cluster[i] : 0;
	return group->clusters > 1 ? group->clusters : 1;
}

int coll_rank(const struct coll_group *group)
{
	return group->rank;
}

int coll_ranks(const struct coll_group *group)
{
	return group->ranks;
}

static void show_here(void *argument)
{
	struct coll_group *group = argument;

	memcpy(group->shown, group->text, sizeof(group->shown));
}

const char *coll_last_error(const struct coll_group *group)
{
	coll_progress_do_now(group->context, show_here, (struct coll_group *)group);
	return group->shown;
}

struct error_rank {
	const struct coll_group *group;
	int rank;
};

static void error_rank_here(void *argument)
{
	struct error_rank *query = argument;

	if (query->group->state != GROUP_OK)
		query->rank = query->group->failed_rank;
}

int coll_error_rank(const struct coll_group *group)
{
	struct error_rank query = { .group = group, .rank = -1 };

	coll_progress_do_now(group->context, error_rank_here, &query);
	return query.rank;
}

struct setting {
	struct coll_group *group;
	const char *key, *value;
	int error;
};

/* An option that the group has taken: it has to hold also where what surveys found is undone. */
static void set_before_surveys(const struct coll_group *group, const char *key, const char *value)
{
	struct coll_machine *machine = coll_survey_machine(group);
	struct coll_options options = group->options;
	char why[200];

	if (!machine)
		return;
	options.machine = *machine;
	if (!coll_options_set(&options, key, value, why, sizeof(why)))
		*machine = options.machine;
}

static void set_here(void *argument)
{
	struct setting *setting = argument;
	struct coll_group *group = setting->group;
	const char *key = setting->key, *value = setting->value;
	char why[OPTIONS_WHY];

	setting->error = -EINVAL;
	if (!strcmp(key, "inject") && strcmp(value, "off") &&
	    strcmp(value, group->context->options.inject)) {
		coll_group_explain(group, "option inject of a group: valid are off and the "
				   "context's own");
		return;
	}
	if (coll_options_is_of_context(key)) {
		coll_group_explain(group, "option %s: a group has none of its own; valid: in "
				   "coll_open(), the environment or a file", key);
		return;
	}
	setting->error = coll_options_set(&group->options, key, value, why, sizeof(why));
	if (setting->error) {
		coll_group_explain(group, "%s", why);
		return;
	}
	set_before_surveys(group, key, value);
	coll_planned_forget(group);	/* chosen under the old options */
	if (group->twin)
		group->twin->options = group->options;
}

int coll_group_set(struct coll_group *group, const char *key, const char *value)
{
	struct setting setting = { .group = group, .key = key, .value = value };

	coll_progress_do(group->context, set_here, &setting);
	return setting.error;
}

/* ---- splitting ---------------------------------------------------------- */

struct colour_key {
	int32_t colour, key;
};

struct member {
	int32_t key;
	uint32_t rank;
};

static int by_key(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : 1;
}

/* The id of the new group: the same on all its ranks, different from all other groups. */
static uint64_t part_id(const struct coll_group *group, int colour)
{
	uint64_t id = group->id ^ 0x9e3779b97f4a7c15ull;

	id = (id ^ group->splits) * 0xff51afd7ed558ccdull;
	id = (id ^ id >> 32 ^ (uint32_t)colour) * 0xc4ceb9fe1a85ec53ull;
	return id ^ id >> 29;
}

static int make_part(struct coll_group *group, const struct colour_key *all, int colour,
		     struct coll_group **part)
{
	struct member *member = malloc(group->ranks * sizeof(*member));
	uint32_t *world = malloc(group->ranks * sizeof(*world));
	uint32_t count = 0, rank, mine = 0, i;
	int error;

	if (!member || !world) {
		free(member);
		free(world);
		return -ENOMEM;
	}
	for (rank = 0; rank < group->ranks; rank++)
		if (all[rank].colour == colour)
			member[count++] = (struct member){ all[rank].key, rank };
	qsort(member, count, sizeof(*member), by_key);
	for (i = 0; i < count; i++) {
		world[i] = group->world[member[i].rank];
		if (member[i].rank == group->rank)
			mine = i;
	}
	free(member);
	error = coll_group_make(group->context, part_id(group, colour), world, mine, count, part);
	if (!error)
		coll_group_inherit(*part, group);
	return error;
}

struct split {
	struct coll_group *group;
	int colour, key;
	uint32_t members;		/* ranks with this colour; 0: any number */
	struct coll_group *part;
	int error;
};

/* -EPROTO if the number of ranks with the colour differs. */
static int check_members(const struct split *split, const struct colour_key *all)
{
	struct coll_group *group = split->group;
	uint32_t count = 0, rank;

	for (rank = 0; rank < group->ranks; rank++)
		count += all[rank].colour == split->colour;
	if (!split->members || split->colour < 0 || count == split->members)
		return 0;
	coll_group_explain(group, "group_from_ranks: only %u of the %u listed ranks passed this "
			   "list; valid: the same list on all of them", count, split->members);
	return -EPROTO;
}

static void split_here(void *argument)
{
	struct split *split = argument;
	struct coll_group *group = split->group;
	const int colour = split->colour;
	struct colour_key mine = { .colour = colour < 0 ? -1 : colour, .key = split->key };
	struct colour_key *all = malloc(group->ranks * sizeof(*all));

	if (!all) {
		split->error = coll_group_no_memory(group, "group_split");
		return;
	}
	split->error = coll_allgather(&mine, all, sizeof(mine), COLL_UINT8, group);
	if (!split->error || group->state != GROUP_OK)
		group->splits++;
	if (!split->error) {
		split->error = check_members(split, all);
		if (!split->error && colour >= 0)
			split->error = make_part(group, all, colour, &split->part);
		if (!split->error && split->part && group->fabric && split->part->ranks > 1)
			split->error = group->context->job->agree(split->part);
	}
	if (split->error && colour >= 0 && !split->part)
		coll_group_unmade(group->context, part_id(group, colour),
				  group->state == GROUP_OK ? split->error : -ECANCELED);
	if (split->error == -ENOMEM)
		coll_group_no_memory(group, "group_split");
	free(all);
}

int coll_group_split(struct coll_group *group, int colour, int key, struct coll_group **part)
{
	struct split split = { .group = group, .colour = colour, .key = key };

	coll_progress_do(group->context, split_here, &split);
	*part = split.part;
	return split.error;
}

struct rank_list {
	struct coll_group *group;
	const int *ranks;
	int count;
	int position;			/* of this rank in it, or -1 */
	int error;
};

/* Refuses a rank that is listed twice: `seen` has an entry for each rank of the group. */
static void check_list(struct rank_list *list, bool *seen)
{
	struct coll_group *group = list->group;
	int i;

	for (i = 0; i < list->count; i++) {
		const int rank = list->ranks[i];
		const bool known = rank >= 0 && (uint32_t)rank < group->ranks;

		if (!known || seen[rank]) {
			coll_group_explain(group, "group_from_ranks: ranks[%d] (%d) is %s; valid: "
					   "0 to %u, each once", i, rank, known ? "listed before" :
					   "no rank of the group", group->ranks - 1);
			list->error = -EINVAL;
			return;
		}
		seen[rank] = true;
		if ((uint32_t)rank == group->rank)
			list->position = i;
	}
}

static void check_list_here(void *argument)
{
	struct rank_list *list = argument;
	struct coll_group *group = list->group;
	bool *seen;

	if (list->count < 0) {
		coll_group_explain(group, "group_from_ranks: count (%d) is negative; valid: 0 to "
				   "%u", list->count, group->ranks);
		list->error = -EINVAL;
		return;
	}
	seen = calloc(group->ranks, sizeof(*seen));
	if (seen)
		check_list(list, seen);
	else
		list->error = coll_group_no_memory(group, "group_from_ranks");
	free(seen);
}

/* The colour of a list: ranks that pass the same list get the same one. */
static int list_colour(const int *ranks, int count)
{
	uint64_t hash = 0x9e3779b97f4a7c15ull + count;
	int i;

	for (i = 0; i < count; i++) {
		hash = (hash ^ (uint32_t)ranks[i]) * 0xff51afd7ed558ccdull;
		hash ^= hash >> 32;
	}
	return hash & INT32_MAX;
}

int coll_group_from_ranks(struct coll_group *group, const int *ranks, int count,
			  struct coll_group **part)
{
	struct rank_list list = { .group = group, .ranks = ranks, .count = count,
				  .position = -1 };
	struct split split = { .group = group, .colour = -1 };

	*part = NULL;
	coll_progress_do_now(group->context, check_list_here, &list);
	if (list.error)
		return list.error;
	if (list.position >= 0) {
		split.colour = list_colour(ranks, count);
		split.key = list.position;
		split.members = count;
	}
	coll_progress_do(group->context, split_here, &split);
	*part = split.part;
	return split.error;
}

int coll_group_dup(struct coll_group *group, struct coll_group **copy)
{
	return coll_group_split(group, 0, group->rank, copy);
}

/* ---- failed groups ------------------------------------------------------ */

/*
 * Higher ranks wait for this one to connect, so without a link they would not hear of it; lower
 * ones connect and are told. A rank that no memory is left for learns it at its deadline.
 */
static void reach_higher_ranks(struct coll_group *group)
{
	struct coll_link *link;
	uint32_t rank;

	for (rank = group->rank + 1; rank < group->ranks; rank++) {
		link = group->failed[rank] ? NULL : coll_link_get(group, rank);
		if (link)
			coll_link_open(link);
	}
}

static void revoke_here(void *argument)
{
	struct coll_group *group = argument;

	if (group->state == GROUP_OK)
		reach_higher_ranks(group);
	coll_group_fail(group, -ECANCELED, group->rank, COLL_NONE, "revoked the group");
}

int coll_revoke(struct coll_group *group)
{
	const char *why;
	int error = coll_progress_check(group->context, &why);

	if (error)
		return error;
	coll_progress_do_now(group->context, revoke_here, group);
	return coll_progress(group->context);
}

struct failed_list {
	const struct coll_group *group;
	int *ranks, max, count;
};

static void list_failed(void *argument)
{
	struct failed_list *list = argument;
	uint32_t rank;

	for (rank = 0; rank < list->group->ranks; rank++) {
		if (!list->group->failed[rank])
			continue;
		if (list->count < list->max)
			list->ranks[list->count] = rank;
		list->count++;
	}
}

int coll_failed_ranks(struct coll_group *group, int *ranks, int max)
{
	struct failed_list list = { .group = group, .ranks = ranks, .max = max };

	coll_progress_do_now(group->context, list_failed, &list);
	return list.count;
}
