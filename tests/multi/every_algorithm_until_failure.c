// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * every_algorithm_until_failure kill|stop VICTIM, or tell FILE: every algorithm of every
 * collective runs again and again, all at once, each in a group of its own. A barrier follows
 * each call, since ranks that only send would run ahead. Once all algorithms are under way the
 * victim dies or stops; or, when that is so on all ranks, rank 0 makes the file, for whoever
 * breaks the network then. Each rank prints for each algorithm how long its last call took, and
 * the error:
 *
 *	rank 0: bcast chain: 2.9 s: ...
 *
 * or "too early" if some algorithm had not completed once by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "algo/common/algo.h"
#include "tests/lib/loops.h"
#include "tests/lib/rank.h"

enum { COUNT = 1500, MANY = 256 };

struct flight {
	struct loop loop;
	struct coll_run *run;
	char algorithm[64];
	double start;
	int calls, over;		/* calls: barriers too */
};

static struct flight flights[MANY];
static int count, left, begun;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void say(struct flight *f, const char *words)
{
	printf("rank %d: %s %s: %.1f s: %s\n", coll_rank(f->loop.group), f->loop.collective,
	       f->algorithm, now() - f->start, words);
	f->over = 1;
	left--;
}

static void start(struct flight *f)
{
	int error;

	f->start = now();
	error = f->calls & 1 ? coll_ibarrier(f->loop.group, &f->run) :
			       loop_start(&f->loop, &f->run);
	if (error && (f->calls || error != -EOPNOTSUPP))
		say(f, coll_last_error(f->loop.group));
	else if (error) {		/* it does not serve what is asked here */
		f->over = 1;
		left--;
		begun++;
	}
}

static void make_all(struct coll_group *world)
{
	const struct coll_algo *const *algo;

	for (algo = coll_algos; *algo && count < MANY; algo++) {
		const char *collective = coll_collective_names[(*algo)->collective];
		struct flight *f = &flights[count++];
		struct coll_group *group;

		rank_must(world, coll_group_dup(world, &group));
		snprintf(f->algorithm, sizeof(f->algorithm), "%s", (*algo)->name);
		rank_must(world, coll_group_set(group, collective, (*algo)->name));
		f->loop = loop_make(group, collective, COUNT);
	}
	left = count;
}

/* Whether something has moved. */
static int turn(struct flight *f)
{
	int done = 0, error = coll_run_test(&f->run, &done);

	if (error) {
		say(f, coll_last_error(f->loop.group));
	} else if (done) {
		begun += ++f->calls == 2;
		start(f);
	}
	return error || done;
}

static void hit(const char *way)
{
	raise(!strcmp(way, "kill") ? SIGKILL : SIGSTOP);
}

/* Makes the file when all ranks have come here; a rank may hear of it only after the cut. */
static void tell(struct coll_group *world, const char *path)
{
	static struct coll_run *met;
	static int told;
	int error = 0, fd;

	if (told)
		return;
	if (!met)
		error = coll_ibarrier(world, &met);
	if (!error)
		error = coll_run_test(&met, &told);
	if (!told && !error)
		return;
	told = 1;
	fd = error || coll_rank(world) ? -1 : open(path, O_CREAT | O_WRONLY, 0600);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open(NULL);
	struct coll_group *world = coll_world(context);
	const char *way = argc > 2 ? argv[1] : "";
	const int victim = strcmp(way, "tell") ? argc > 2 ? atoi(argv[2]) : -1 : -1, mine = getpid();
	const double patience = now() + 40;
	int *pids = calloc(coll_ranks(world), sizeof(*pids)), early = 0, i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	rank_must(world, coll_allgather(&mine, pids, 1, COLL_INT32, world));
	make_all(world);
	rank_must(world, coll_barrier(world));
	for (i = 0; i < count; i++)
		start(&flights[i]);
	while (left && now() < patience) {
		struct pollfd fd = { .fd = coll_fd(context), .events = POLLIN };
		int moved = 0, was = left;

		for (i = 0; i < count; i++)
			if (!flights[i].over)
				moved |= turn(&flights[i]);
		early |= left < was && begun < count;
		if (begun == count && coll_rank(world) == victim)
			hit(way);
		if (begun == count && !strcmp(way, "tell"))
			tell(world, argv[2]);
		if (!moved)
			poll(&fd, 1, 20);
	}
	if (early)
		printf("too early\n");
	for (i = 0; i < count; i++)
		if (!flights[i].over)
			say(&flights[i], "nothing failed");
	coll_close(context);
	if (!strcmp(way, "stop") && mine == pids[!victim]) {
		usleep(700000);		/* the others have their time to notice */
		kill(pids[victim], SIGKILL);
	}
	return 0;
}
