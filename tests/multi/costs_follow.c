// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Costs follow the traffic (option measure=always), the same on all ranks after the same call. The
 * links are slow while the job begins (option inject) and fast afterwards. A call would end with
 * -EPROTO if ranks had switched apart. Rank 0 prints the costs at first ("start: ..."), the first choice and the last,
 * the costs at last, and how often they have changed.
 *
 *	costs_follow CALLS FORM
 *
 * FORM of the calls: blocking; mixed: rank 1 starts them and waits, so no rank may switch; persistent:
 * now and then a run that was prepared at first; copy: in a copy of the world, made before; lost: rank 1
 * dies after 600 calls; accounts: all ranks have opened as many accounts of lost cores, which rank 0 prints.
 */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/rank.h"

/* A look is a call of the world, which is to have hardly any where a copy of it is measured. */
enum { TEXT = 4096, COUNT = 1024, LOOK_EVERY = 16, LOOK_RARELY = 1024 };

static double values[COUNT];

static void set_values(const struct coll_group *group)
{
	size_t i;

	for (i = 0; i < COUNT; i++)
		values[i] = i + coll_rank(group);
}

static void check_values(struct coll_group *group, size_t count)
{
	const int ranks = coll_ranks(group);
	size_t i;

	for (i = 0; i < count; i++)
		rank_assert(group, values[i] == (double)i * ranks + ranks * (ranks - 1) / 2);
}

/* Returns whether they differ from `before`, which they become. */
static bool same_costs(struct coll_context *context, bool starts, char *before)
{
	struct coll_group *world = coll_world(context);
	const int ranks = coll_ranks(world);
	char mine[TEXT] = "", *all = malloc((size_t)ranks * TEXT);
	struct coll_run *run;
	bool changed;
	int rank;

	rank_assert(world, coll_costs(context, mine, TEXT) >= 0);
	if (starts) {
		rank_must(world, coll_iallgather(mine, all, TEXT, COLL_UINT8, world, &run));
		rank_must(world, coll_run_wait(&run));
	} else {
		rank_must(world, coll_allgather(mine, all, TEXT, COLL_UINT8, world));
	}
	for (rank = 0; rank < ranks; rank++)
		rank_assert(world, !strcmp(mine, all + (size_t)rank * TEXT));
	free(all);
	changed = *before && strcmp(before, mine);
	strcpy(before, mine);
	return changed;
}

static void print_start(struct coll_context *context)
{
	char text[TEXT] = "", *line, *rest = text;

	rank_assert(coll_world(context), coll_costs(context, text, TEXT) >= 0);
	while (!coll_rank(coll_world(context)) && (line = strsep(&rest, "\n")) && *line)
		printf("start: %s\n", line);
}

static void call(struct coll_group *group, size_t count, struct coll_run *prepared, bool starts)
{
	struct coll_run *run = prepared;

	set_values(group);
	if (!run && starts)
		rank_must(group, coll_iallreduce(COLL_IN_PLACE, values, count, COLL_DOUBLE, COLL_SUM,
						 group, &run));
	else if (run)
		rank_must(group, coll_run_start(run));
	else
		rank_must(group, coll_allreduce(COLL_IN_PLACE, values, count, COLL_DOUBLE, COLL_SUM,
						group));
	if (run)
		rank_must(group, coll_run_wait(&run));
	check_values(group, count);
}

/* What would be chosen now. */
static void explain(struct coll_group *group, const char *when)
{
	struct coll_run *run;

	rank_must(group, coll_allreduce_init(COLL_IN_PLACE, values, COUNT, COLL_DOUBLE, COLL_SUM,
					     group, &run));
	if (!coll_rank(group))
		printf("%s: %s\n", when, coll_run_explain(run));
	coll_run_free(&run);
}

static uint64_t accounts_open(void)
{
	char path[PATH_MAX], target[PATH_MAX];
	DIR *folder = opendir("/proc/self/fd");
	uint64_t accounts = 0;
	struct dirent *one;
	ssize_t length;

	while (folder && (one = readdir(folder))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%.20s", one->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = 0;
		accounts += strstr(target, "/schedstat") != NULL;
	}
	if (folder)
		closedir(folder);
	return accounts;
}

/* Whether a rank looks at times is for rank 0 to say, whatever its own environment says. */
static void check_accounts(struct coll_group *world)
{
	const uint64_t mine = accounts_open();
	uint64_t first = mine;

	rank_must(world, coll_bcast(&first, 1, COLL_UINT64, 0, world));
	rank_assert(world, first == mine);
	if (!coll_rank(world))
		printf("accounts %d\n", (int)first);
}

int main(int argc, char **argv)
{
	const int calls = argc > 1 ? atoi(argv[1]) : 2000;
	const char *form = argc > 2 ? argv[2] : "blocking";
	struct coll_context *context = rank_open(NULL);
	struct coll_group *world = coll_world(context), *group = world;
	const bool prepare = !strcmp(form, "persistent");
	const bool starts = !strcmp(form, "mixed") && coll_rank(world) == 1;
	const bool lost = !strcmp(form, "lost") && coll_rank(world) == 1;
	struct coll_run *prepared = NULL;
	char before[TEXT] = "";
	int changes = 0, i;

	rank_must(world, coll_group_set(world, "inject", "off"));
	if (!strcmp(form, "copy"))
		rank_must(world, coll_group_dup(world, &group));
	if (!strcmp(form, "accounts"))
		check_accounts(world);
	print_start(context);
	explain(group, "first");
	if (prepare)
		rank_must(group, coll_allreduce_init(COLL_IN_PLACE, values, COUNT, COLL_DOUBLE,
						     COLL_SUM, group, &prepared));
	for (i = 0; i < calls; i++) {
		if (i == 600 && lost)
			raise(SIGKILL);
		if (prepared && i % 8 == 7)
			call(group, COUNT, prepared, false);
		else
			call(group, i % 2 ? COUNT : 1, NULL, starts);
		if (i % (group == world ? LOOK_EVERY : LOOK_RARELY) == 0)
			changes += same_costs(context, starts, before);
	}
	explain(group, "last");
	if (!coll_rank(world))
		printf("%schanges %d\n", before, changes);
	if (prepare)
		coll_run_free(&prepared);
	if (group != world)
		coll_group_free(group);
	coll_close(context);
	return 0;
}
