// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * silent_connections: more connections that say nothing than rank 2 has file descriptors,
 * while the job makes links and groups. All results are right, and rank 2 goes on.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/descriptors.h"
#include "tests/lib/rank.h"

enum { FLOOD = 1400, FEW = 256, ROUNDS = 20, VICTIM = 2 };

static void limit_files(rlim_t files)
{
	const struct rlimit limit = { files, files };

	setrlimit(RLIMIT_NOFILE, &limit);
}

/* As a process of its own, which keeps them open until its standard input ends. */
static int flood(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int i;

	limit_files(FLOOD + 100);
	for (i = 0; i < FLOOD; i++) {
		const int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to))) {
			perror("flood");
			return 1;
		}
	}
	return getchar() == EOF ? 0 : 1;
}

static FILE *flood_start(const char *program, int port)
{
	char command[400];

	snprintf(command, sizeof(command), "exec '%s' %d", program, port);
	return popen(command, "w");
}

static void compute(struct coll_group *group)
{
	const int ranks = coll_ranks(group);
	int64_t in = coll_rank(group) + 1, out = 0;

	rank_must(group, coll_allreduce(&in, &out, 1, COLL_INT64, COLL_SUM, group));
	rank_assert(group, out == (int64_t)ranks * (ranks + 1) / 2);
}

static int disturbed(const char *program)
{
	struct coll_context *context = rank_open("deadline=20s");
	struct coll_group *world = coll_world(context), *copy;
	const int rank = coll_rank(world);
	int port = -1, round;
	struct coll_counters counters = { .size = sizeof(counters) };
	FILE *attacker = NULL;

	rank_assert(world, files_listener(&port) >= 0);
	if (rank == VICTIM)
		limit_files(FEW);
	rank_must(world, coll_bcast(&port, 1, COLL_INT32, VICTIM, world));
	if (!rank)
		attacker = flood_start(program, port);
	for (round = 0; round < ROUNDS; round++) {
		usleep(50000);
		rank_must(world, coll_group_dup(world, &copy));		/* with links of its own */
		compute(copy);
		coll_group_free(copy);
		compute(world);
	}
	rank_must(world, coll_counters(context, &counters));
	rank_assert(world, rank != VICTIM || counters.refused > FLOOD / 2);
	if (attacker)
		rank_assert(world, !pclose(attacker));
	coll_close(context);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return flood(atoi(argv[1]));
	return disturbed(argv[0]);
}
