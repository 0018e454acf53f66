// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * mismatched_calls WHAT ODD: all ranks call allreduce (or bcast), but rank ODD calls with
 * another count, type, op, root, collective or algorithm, or revokes the group, or cancels
 * its run. "told" says that this rank's error was the right one, came in time and named ranks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/rank.h"

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* The call of this rank; `odd` makes it the one that does not fit. */
static int call(struct coll_group *world, const char *what, int odd)
{
	static int64_t in[4096], out[4096];
	const size_t count = odd && !strcmp(what, "count") ? 1001 : 1000;
	const int type = odd && !strcmp(what, "type") ? COLL_UINT64 : COLL_INT64;
	const int op = odd && !strcmp(what, "op") ? COLL_MAX : COLL_SUM;

	if (!strcmp(what, "root"))
		return coll_bcast(out, count, type, odd ? 2 : 1, world);
	if (odd && !strcmp(what, "collective"))
		return coll_alltoall(in, out, 10, type, world);
	if (!strcmp(what, "algorithm"))
		rank_must(world, coll_group_set(world, "allreduce", odd ? "ring" : "butterfly"));
	return coll_allreduce(in, out, count, type, op, world);
}

/* A rank that only sends cannot notice it in the same call: a message reports it in a later one. */
static int call_and_meet(struct coll_group *world, const char *what, int odd)
{
	int error = call(world, what, odd), i;

	for (i = 0; i < 3 && !error; i++)
		error = coll_barrier(world);
	return error;
}

static int revoke_it(struct coll_group *world)
{
	usleep(200000);
	return coll_revoke(world) ? 0 : coll_barrier(world);
}

/* The others are not here yet, so the run cannot have ended: they wait for half a second. */
static int cancel_it(struct coll_group *world)
{
	struct coll_run *run;

	rank_must(world, coll_ibarrier(world, &run));
	rank_must(world, coll_run_cancel(run));
	return coll_run_wait(&run);
}

/* The odd rank may have sent its part of a barrier before it ended the group; not of two. */
static int fail_soon(struct coll_group *world)
{
	int error;

	usleep(500000);
	error = coll_barrier(world);
	return error ? error : coll_barrier(world);
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open("deadline=60s");
	struct coll_group *world = coll_world(context);
	const char *what = argc > 1 ? argv[1] : "", *text;
	const int odd = argc > 2 && coll_rank(world) == atoi(argv[2]);
	const int ended = !strcmp(what, "revoke") || !strcmp(what, "cancel");
	double start;
	int error;

	error = coll_barrier(world);
	start = now();
	if (error)
		;	/* the news has overtaken the last of this barrier's messages */
	else if (!ended)
		error = call_and_meet(world, what, odd);
	else if (odd)
		error = *what == 'r' ? revoke_it(world) : cancel_it(world);
	else
		error = fail_soon(world);
	text = coll_last_error(world);
	if (error != (ended ? -ECANCELED : -EPROTO))
		rank_fail(world, "%s: the error is %d: %s", what, error, text);
	if (!strpbrk(text, "0123456789"))
		rank_fail(world, "%s: no rank is named: %s", what, text);
	if (ended && !strstr(text, argv[2]))
		rank_fail(world, "%s: rank %s is not named: %s", what, argv[2], text);
	if (now() - start > 40)
		rank_fail(world, "%s: it took %.2f s", what, now() - start);
	start = now();
	coll_close(context);
	printf(now() - start < 40 ? "told\n" : "reported, but closing took long\n");
	return 0;
}
