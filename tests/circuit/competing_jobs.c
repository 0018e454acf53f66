// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * competing_jobs SOCKET NODES JOBS ROUNDS HOLD_MS: jobs with a rank on each node n0, n1, ...
 * In each round a rank requests a circuit to one neighbour and then to the other, holds it,
 * and releases it, like a ring in even and odd phases. A rank that loses colld connects
 * again. Checks meanwhile that no node has more circuits than ports. Prints "DONE FEWEST":
 * the rounds of a job, and those that the slowest rank of the others had done at its end.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "uapi/coll_circuit.h"

enum { RANKS_MAX = 64, DEADLINE_S = 100 };

static const char *path;
static int nodes, jobs, rounds, hold_ms;
static struct rank { pthread_t thread; int job, node, round; } rank[RANKS_MAX];
static int fewest = -1;
static bool over, failed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what, const char *why)
{
	printf("# %s: %s\n", what, why);
	failed = true;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static int meet(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	const double end = seconds() + DEADLINE_S;

	strcpy(address.sun_path, path);
	while (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		if (seconds() > end)
			return -1;
		usleep(10000);
	}
	return fd;
}

static bool say(int fd, struct coll_circuit_message *m)
{
	m->magic = COLL_CIRCUIT_MAGIC;
	m->version = COLL_CIRCUIT_VERSION;
	return send(fd, m, sizeof(*m), MSG_NOSIGNAL) == sizeof(*m);
}

static bool hear(int fd, struct coll_circuit_message *m)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, DEADLINE_S * 1000) > 0 &&
	       recv(fd, m, sizeof(*m), MSG_WAITALL) == sizeof(*m);
}

static int hello(const struct rank *r)
{
	struct coll_circuit_message m = { .kind = COLL_CIRCUIT_MSG_HELLO };
	int fd = meet();

	snprintf(m.hello.holder, sizeof(m.hello.holder), "job%d", r->job);
	snprintf(m.hello.node, sizeof(m.hello.node), "n%d", r->node);
	if (fd >= 0 && say(fd, &m) && hear(fd, &m) && m.answer.error)
		fail("hello", m.answer.text);
	return fd;
}

/* False: the connection to colld is lost. */
static bool await_up(int fd, unsigned long cookie, int peer)
{
	struct coll_circuit_message m = { .kind = COLL_CIRCUIT_MSG_REQUEST, .cookie = cookie,
					  .request.timeout_ns = DEADLINE_S * 1000000000ull };

	snprintf(m.request.peer, sizeof(m.request.peer), "n%d", peer);
	if (!say(fd, &m))
		return false;
	while (hear(fd, &m)) {
		if (m.cookie != cookie)
			continue;
		if (m.kind == COLL_CIRCUIT_MSG_FAILED) {
			fail("request", m.lease.text);
			return true;
		}
		if (m.kind == COLL_CIRCUIT_MSG_ANSWER && m.answer.error) {
			fail("request", m.answer.text);
			return true;
		}
		if (m.kind == COLL_CIRCUIT_MSG_UP)
			return true;
	}
	return false;
}

static void *live(void *argument)
{
	struct rank *r = argument;
	int fd = hello(r), phase, other;
	unsigned long cookie = 1;

	for (r->round = 0; r->round < rounds && !failed; r->round++)
		for (phase = 0; phase < 2; phase++) {
			struct coll_circuit_message m = { .kind = COLL_CIRCUIT_MSG_RELEASE };

			other = (r->node + ((r->node ^ phase) & 1 ? nodes - 1 : 1)) % nodes;
			while (!await_up(fd, cookie, other) && !failed) {
				close(fd);
				fd = hello(r);
				if (fd < 0) {
					fail("colld", "gone");
					return NULL;
				}
			}
			usleep(hold_ms * 1000);
			m.cookie = cookie++;
			say(fd, &m);
		}
	close(fd);
	pthread_mutex_lock(&lock);
	if (fewest < 0) {
		fewest = rounds;
		for (other = 0; other < nodes * jobs; other++)
			if (rank[other].job != r->job && rank[other].round < fewest)
				fewest = rank[other].round;
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* No node has more circuits than ports. */
static void *look(void *argument)
{
	int fd = meet();

	(void)argument;
	while (!over && fd >= 0) {
		struct coll_circuit_message m = { .kind = COLL_CIRCUIT_MSG_SHOW };
		bool heard = say(fd, &m);

		while (heard && (heard = hear(fd, &m)) && m.kind != COLL_CIRCUIT_MSG_ANSWER)
			if (m.kind == COLL_CIRCUIT_MSG_NODE && m.node.taken > m.node.ports)
				fail(m.node.name, "more circuits than ports");
		if (!heard) {
			close(fd);
			fd = meet();
		}
		usleep(20000);
	}
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t looker;
	int i;

	if (argc != 6)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	path = argv[1];
	nodes = atoi(argv[2]);
	jobs = atoi(argv[3]);
	rounds = atoi(argv[4]);
	hold_ms = atoi(argv[5]);
	if (nodes * jobs > RANKS_MAX || nodes % 2)
		return 2;
	pthread_create(&looker, NULL, look, NULL);
	for (i = 0; i < nodes * jobs; i++) {
		rank[i].job = i / nodes;
		rank[i].node = i % nodes;
		pthread_create(&rank[i].thread, NULL, live, &rank[i]);
	}
	for (i = 0; i < nodes * jobs; i++)
		pthread_join(rank[i].thread, NULL);
	over = true;
	pthread_join(looker, NULL);
	printf("%d %d\n", rounds, fewest);
	return failed;
}
