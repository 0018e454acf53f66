// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * progress_auto_follows WHO [PHASES]: progress=auto follows the application. First the
 * application computes while runs are in flight, until WHO (thread, kernel) makes progress.
 * Then it waits in the library, until its own calls make progress. Then it computes again.
 * Results are checked throughout. The way back needs a machine that starts a run within
 * microseconds; an emulated machine does not.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/rank.h"

enum { BYTES = 65536, TRIES = 300, PHASES = 4 };

static void stay_away(void)
{
	const struct timespec time = { .tv_nsec = 20000000 };

	nanosleep(&time, NULL);
}

/* The thread that progressed it, by the library's explanation. */
static int run_one(struct coll_group *world, uint8_t *in, uint8_t *out, bool away, int variant,
		   const char *who)
{
	const int rank = coll_rank(world), ranks = coll_ranks(world);
	struct coll_run *run;
	char told[64];
	int chosen, i;

	for (i = 0; i < ranks; i++)
		memset(in + i * BYTES, variant + rank + 3 * i, BYTES);
	memset(out, 0xee, ranks * BYTES);
	rank_must(world, coll_ialltoall(in, out, BYTES, COLL_UINT8, world, &run));
	if (away)
		stay_away();
	snprintf(told, sizeof(told), "progress %s (auto", who);
	chosen = strstr(coll_run_explain(run), told) != NULL;
	rank_must(world, coll_run_wait(&run));
	for (i = 0; i < ranks; i++)
		rank_assert(world, out[i * BYTES] == (uint8_t)(variant + i + 3 * rank) &&
			    out[(i + 1) * BYTES - 1] == (uint8_t)(variant + i + 3 * rank));
	return chosen;
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open("progress=auto");
	struct coll_group *world = coll_world(context);
	const char *other = argc > 1 ? argv[1] : "thread";
	const int phases = argc > 2 ? atoi(argv[2]) : PHASES;
	uint8_t *in = malloc(coll_ranks(world) * BYTES), *out = malloc(coll_ranks(world) * BYTES);
	int phase, i, chosen;

	for (phase = 0; phase < phases; phase++) {
		const bool away = phase % 2 == 0;
		int all = 0;

		/* All ranks go on to the next phase together. */
		for (i = 0; i < TRIES && !all; i++) {
			chosen = run_one(world, in, out, away, i, away ? other : "call");
			rank_must(world,
				  coll_allreduce(&chosen, &all, 1, COLL_INT32, COLL_MIN, world));
		}
		rank_assert(world, all);
	}
	coll_close(context);
	free(in);
	free(out);
	return 0;
}
