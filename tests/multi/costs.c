// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * All ranks have the same costs, to the last digit, and choose the same by them: in the world, in
 * parts of it, in a copy. Rank 0 prints the costs, and what was chosen for an allreduce of as many
 * doubles as the first argument says: of all ranks, or of the first ones, as many as the second argument says.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/rank.h"

enum { TEXT = 4096 };

static void same_costs(struct coll_context *context)
{
	struct coll_group *world = coll_world(context);
	char mine[TEXT] = "", *all = malloc((size_t)coll_ranks(world) * TEXT), cut[8];
	const int length = coll_costs(context, mine, TEXT);
	int rank;

	rank_assert(world, length >= 0 && (size_t)length == strlen(mine));
	rank_assert(world, coll_costs(context, NULL, 0) == length);
	rank_assert(world, coll_costs(context, cut, sizeof(cut)) == length);
	rank_assert(world, !strncmp(cut, mine, sizeof(cut) - 1));
	rank_must(world, coll_allgather(mine, all, TEXT, COLL_UINT8, world));
	for (rank = 0; rank < coll_ranks(world); rank++)
		rank_assert(world, !strcmp(mine, all + (size_t)rank * TEXT));
	free(all);
	if (!coll_rank(world))
		fputs(mine, stdout);
}

/* The call fails with -EPROTO where ranks choose differently. */
static void sum(struct coll_group *group, size_t count, bool print)
{
	double *values = calloc(count, sizeof(*values));
	struct coll_run *run;
	size_t i;

	for (i = 0; i < count; i++)
		values[i] = i + coll_rank(group);
	rank_must(group, coll_allreduce_init(COLL_IN_PLACE, values, count, COLL_DOUBLE, COLL_SUM,
					     group, &run));
	rank_must(group, coll_run_start(run));
	rank_must(group, coll_run_wait(&run));
	for (i = 0; i < count; i++)
		rank_assert(group, values[i] == (double)i * coll_ranks(group) +
				   coll_ranks(group) * (coll_ranks(group) - 1) / 2);
	if (print)
		puts(coll_run_explain(run));
	coll_run_free(&run);
	free(values);
}

int main(int argc, char **argv)
{
	const size_t count = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	struct coll_context *context = rank_open(NULL);
	struct coll_group *world = coll_world(context), *part, *copy;
	const int rank = coll_rank(world), first = argc > 2 ? atoi(argv[2]) : 0;

	same_costs(context);
	sum(world, count, !rank && !first);
	rank_must(world, coll_group_split(world, first ? rank < first : rank % 2, 0, &part));
	sum(part, count, !rank && first);
	rank_must(world, coll_group_dup(world, &copy));
	sum(copy, count, false);
	coll_group_free(part);
	coll_group_free(copy);
	coll_close(context);
	return 0;
}
