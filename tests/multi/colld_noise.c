// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * colld_noise SECONDS: allreduces of a job that measures (measure=always), until it has noise of ranks that colld told,
 * or for so long. Each rank prints what coll_costs() says of noise, or that there is none; rank 0 also why an
 * algorithm with T would be called so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/rank.h"

enum { LOOK_EVERY = 32 };

/* Its line, without the newline; "" where there is none. */
static const char *noise_line(struct coll_context *context, char text[4096])
{
	char *line;

	rank_assert(coll_world(context), coll_costs(context, text, 4096) >= 0);
	line = strstr(text, "# noise ");
	if (!line || !strstr(line, "by colld"))
		return "";
	line[strcspn(line, "\n")] = 0;
	return line;
}

/* Where calls follow each other at once, in less than 20 us, noise of ranks is not looked for. */
static void compute(void)
{
	const double end = rank_seconds() + 40e-6;

	while (rank_seconds() < end)
		;
}

static void print_why(struct coll_group *world)
{
	struct coll_run *run;
	double value = 0;

	rank_must(world, coll_group_set(world, "allreduce", "butterfly-redundant"));
	rank_must(world, coll_allreduce_init(COLL_IN_PLACE, &value, 1, COLL_DOUBLE, COLL_SUM, world, &run));
	if (!coll_rank(world))
		printf("why: %s\n", coll_run_explain(run));
	coll_run_free(&run);
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open(NULL);
	struct coll_group *world = coll_world(context);
	const double end = rank_seconds() + (argc > 1 ? atof(argv[1]) : 10);
	char text[4096];
	const char *line = "";
	int call, over = 0;

	for (call = 1; !over; call++) {
		int mine = rank_seconds() > end;

		if (call % LOOK_EVERY == 0)
			line = noise_line(context, text);
		mine |= *line != 0;
		compute();
		rank_must(world, coll_allreduce(&mine, &over, 1, COLL_INT32, COLL_MAX, world));
	}
	line = noise_line(context, text);
	printf("rank %d: %s\n", coll_rank(world), *line ? line : "no noise by colld");
	fflush(stdout);
	print_why(world);
	coll_close(context);
	return 0;
}
