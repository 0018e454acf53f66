// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * unauthenticated_peers: connections that do not belong to the job reach every rank while it
 * works: silent ones, short ones, garbage, and a hello for another process. The results
 * stay right, and each rank has refused some.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "uapi/coll_wire.h"
#include "tests/lib/descriptors.h"
#include "tests/lib/rank.h"

enum { ROUNDS = 60, KINDS = 5, FILES = 1024 };

static int connect_to(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Its answer, which need not be read. */
static void say(int fd, int kind, int ranks)
{
	struct coll_hello hello = { .magic = COLL_WIRE_MAGIC, .version = COLL_WIRE_VERSION,
				    .from = 0, .to = ranks - 1, .group = 1 };
	static char garbage[100000];
	ssize_t sent = 0;

	memset(garbage, 'x', sizeof(garbage));
	memset(hello.process, 7, sizeof(hello.process));
	switch (kind) {
	case 1:
		sent = send(fd, garbage, 10, MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	case 2:
		sent = send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	case 3:
		sent = send(fd, &hello, sizeof(hello), MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	}
	if (sent < 0 && errno != EAGAIN && errno != ECONNRESET && errno != EPIPE)
		perror("send");
}

/* One of each kind to each rank. Some stay open, some go at once. */
static int disturb(const struct coll_group *world, const int *ports, int *open, int count)
{
	int rank, kind, fd;

	for (rank = 0; rank < coll_ranks(world); rank++)
		for (kind = 0; kind < KINDS; kind++) {
			fd = connect_to(ports[rank]);
			rank_assert(world, fd >= 0);
			say(fd, kind, coll_ranks(world));
			if (kind < 4 && count < FILES / 4)
				open[count++] = fd;
			else
				close(fd);
		}
	return count;
}

int main(void)
{
	struct coll_context *context = rank_open("deadline=10s");
	struct coll_group *world = coll_world(context);
	const int rank = coll_rank(world), ranks = coll_ranks(world);
	int ports[ranks], port = -1, open[FILES / 4], count = 0, round;
	struct coll_counters counters = { .size = sizeof(counters) };
	int64_t in, out;

	rank_assert(world, files_listener(&port) >= 0);
	rank_must(world, coll_allgather(&port, ports, 1, COLL_INT32, world));
	for (round = 0; round < ROUNDS; round++) {
		if (rank == round % ranks)
			count = disturb(world, ports, open, count);
		in = rank + round;
		rank_must(world, coll_allreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world));
		rank_assert(world, out == (int64_t)ranks * round + ranks * (ranks - 1) / 2);
		/* links that are new come between strays */
		if (round == 20)
			rank_must(world, coll_group_set(world, "allreduce", "ring"));
	}
	coll_counters(context, &counters);
	rank_assert(world, counters.refused >= (uint64_t)ROUNDS / ranks);
	while (count--)
		close(open[count]);
	coll_close(context);
	return 0;
}
