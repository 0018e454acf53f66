// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * death_delay FILE MS: one rank of a job. After a few calls the last rank kills itself, MS after the
 * others have begun to wait for it in an allreduce; each of them prints the microseconds from the signal until
 * its call returned the error. FILE is new: the time of the signal goes there.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { CALLS = 20 };

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

/* A word that all ranks have. */
static volatile long long *shared_word(const char *path)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *word;

	if (fd < 0 || ftruncate(fd, sizeof(long long)))
		return NULL;
	word = mmap(NULL, sizeof(long long), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return word == MAP_FAILED ? NULL : word;
}

static int allreduce(struct coll_group *world)
{
	double mine = 1, sum;

	return coll_allreduce(&mine, &sum, 1, COLL_DOUBLE, COLL_SUM, world);
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open(NULL);
	struct coll_group *world = coll_world(context);
	const int last = coll_ranks(world) - 1;
	volatile long long *signalled = argc == 3 ? shared_word(argv[1]) : NULL;
	char name[32];
	int i;

	if (!signalled)
		rank_fail(world, "usage: death_delay FILE MS");
	for (i = 0; i < CALLS; i++)
		rank_must(world, allreduce(world));
	if (coll_rank(world) == last) {
		usleep(1000 * atoi(argv[2]));
		*signalled = now();
		kill(getpid(), SIGKILL);
	}
	if (!allreduce(world))
		rank_fail(world, "the call without rank %d succeeded", last);
	printf("%.1f\n", (now() - *signalled) / 1e3);
	snprintf(name, sizeof(name), "rank %d", last);
	if (!strstr(coll_last_error(world), name))
		rank_fail(world, "another rank is blamed: %s", coll_last_error(world));
	coll_close(context);
	return 0;
}
