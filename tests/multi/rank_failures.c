// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * rank_failures COLLECTIVE WAY VICTIM [ALGORITHM|"" [ELEMENTS]]: all ranks call a collective without pause
 * until the victim fails in the middle of it:
 *
 *	kill	the victim dies
 *	stop	the victim is stopped
 *	cut	all connections of the victim break
 *	link	one connection in use breaks: its two ends blame each other, and all other
 *		ranks name both
 *	absent	the victim never calls
 *
 * Each survivor checks its error, the time it took, the ranks that it names, and that it can
 * leave; then it prints "survived". Without errors all ranks end by themselves.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/loops.h"
#include "tests/lib/rank.h"

enum { FILES = 1024, COUNT = 3000 };
enum { IN_USE = 1024 };		/* bytes over a connection: more than its hello */

static const double deadline = 3, slack = 5, closing = 10, patience = 25;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* ---- hitting ------------------------------------------------------------ */

/* The handler's: what a signal interrupts knows nothing. */
static const char *hit_way;
static int store_port;

/* To another rank: the one to the store stays. */
static int is_connection(int fd)
{
	struct sockaddr_in6 peer;	/* its port is where IPv4's is */
	socklen_t bytes = sizeof(peer);

	return !getpeername(fd, (struct sockaddr *)&peer, &bytes) &&
	       (peer.sin6_family == AF_INET || peer.sin6_family == AF_INET6) &&
	       ntohs(peer.sin6_port) != store_port;
}

/* Bytes that went over it, either way. */
static uint64_t traffic(int fd)
{
	struct tcp_info info = { .tcpi_bytes_acked = 0 };
	socklen_t bytes = sizeof(info);

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes);
	return info.tcpi_bytes_acked + info.tcpi_bytes_received;
}

static int busiest_connection(void)
{
	int fd, busiest = -1;

	for (fd = 0; fd < FILES; fd++)
		if (is_connection(fd) &&
		    (busiest < 0 || traffic(fd) > traffic(busiest)))
			busiest = fd;
	return busiest;
}

static void cut_all(void)
{
	int fd;

	for (fd = 0; fd < FILES; fd++)
		if (is_connection(fd))
			shutdown(fd, SHUT_RDWR);
}

static void set_timer(int ms)
{
	struct itimerval timer = { .it_value = { .tv_usec = ms * 1000 } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

static void hit(int signal)
{
	int busiest = busiest_connection();

	(void)signal;
	if (!strcmp(hit_way, "kill"))
		raise(SIGKILL);
	else if (!strcmp(hit_way, "stop"))
		raise(SIGSTOP);
	else if (busiest < 0 || traffic(busiest) < IN_USE)
		set_timer(10);		/* slow to begin: nothing to cut yet */
	else if (!strcmp(hit_way, "cut"))
		cut_all();
	else
		shutdown(busiest, SHUT_RDWR);
}

static void hit_later(const char *way, int ms)
{
	hit_way = way;
	signal(SIGALRM, hit);
	set_timer(ms);
}

/* ---- the victim and the others ---------------------------------------------- */

/* Whether the first rank that the text names is this one. */
static int names_first(const char *text, int rank)
{
	const char *at = text;

	while ((at = strstr(at, "rank ")) && (at[5] < '0' || at[5] > '9'))
		at += 5;
	return at && atoi(at + 5) == rank;
}

static void check_error(struct coll_group *world, int error, double took, const char *way,
			int victim)
{
	const int expected = !strcmp(way, "stop") || !strcmp(way, "absent") ? -ETIMEDOUT :
									       -ECONNRESET;
	const int link = !strcmp(way, "link");
	int failed[1] = { -1 };
	char name[32];

	if (error != expected)
		rank_fail(world, "%s: the error is %d after %.2f s: %s", way, error, took,
			  coll_last_error(world));
	snprintf(name, sizeof(name), "rank %d", victim);
	if (link ? !strstr(coll_last_error(world), name) :
		   !names_first(coll_last_error(world), victim))
		rank_fail(world, "%s: rank %d is not named: %s", way, victim,
			  coll_last_error(world));
	if (took > deadline + slack)
		rank_fail(world, "%s: the error took %.2f s", way, took);
	if (coll_failed_ranks(world, failed, 1) != 1 || (failed[0] != victim && !link))
		rank_fail(world, "%s: the failed rank is %d", way, failed[0]);
	if (coll_error_rank(world) < 0 || (coll_error_rank(world) != victim && !link))
		rank_fail(world, "%s: the error's rank is %d", way, coll_error_rank(world));
	rank_assert(world, coll_barrier(world) == error);
}

static void leave(struct coll_context *context, int rank)
{
	double start = now();

	coll_close(context);
	if (now() - start > closing)
		printf("rank %d: closing took %.2f s\n", rank, now() - start);
	else
		printf("survived\n");
}

/* A stopped process ends when the others have noticed, left and ended: before, it has only died. */
static void end_stopped(const int *pids, int ranks, int self, int victim)
{
	const double until = now() + patience;
	int rank;

	for (rank = 0; rank < ranks; rank++)
		while (rank != self && rank != victim && !kill(pids[rank], 0) && now() < until)
			usleep(10000);
	kill(pids[victim], SIGKILL);
}

/* The victim of a cut sees all others go; what it says of that is its own. */
static int run_victim(struct coll_context *context, struct loop *loop, const char *way)
{
	int error;

	if (!strcmp(way, "absent")) {
		usleep((deadline + slack) * 1e6);
		_Exit(0);
	}
	hit_later(way, 40 + getpid() % 37);
	while (!(error = loop_call(loop)))
		;
	printf("rank %d, the victim: %s\n", coll_rank(loop->group), coll_last_error(loop->group));
	coll_close(context);
	return 0;
}

int main(int argc, char **argv)
{
	struct coll_context *context;
	struct coll_group *world;
	struct loop loop;
	double start = 0;
	int error = 0, victim, rank, ranks, pid, *pids;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 4)
		return 2;
	victim = atoi(argv[3]);
	context = rank_open("deadline=3s");
	world = coll_world(context);
	store_port = atoi(strrchr(getenv("COLL_STORE"), ':') + 1);
	if (argc > 4 && *argv[4])
		rank_must(world, coll_group_set(world, argv[1], argv[4]));
	loop = loop_make(world, argv[1], argc > 5 ? atoi(argv[5]) : COUNT);
	pids = calloc(coll_ranks(world), sizeof(*pids));
	pid = getpid();
	rank_must(world, coll_group_set(world, "deadline", "20s"));	/* no failure yet, but a busy host */
	rank_must(world, coll_allgather(&pid, pids, 1, COLL_INT32, world));
	rank_must(world, coll_group_set(world, "deadline", "3s"));
	/* Who has passed it knows that all have the pids. The failure may come from here on. */
	start = now();
	error = coll_barrier(world);
	while (!error) {
		start = now();
		error = loop_call(&loop);
		if (!error && coll_rank(world) == victim)
			return run_victim(context, &loop, argv[2]);
	}
	check_error(world, error, now() - start, argv[2], victim);
	rank = coll_rank(world);
	ranks = coll_ranks(world);
	leave(context, rank);
	if (!strcmp(argv[2], "stop") && rank == !victim)
		end_stopped(pids, ranks, rank, victim);
	free(pids);
	loop_free(&loop);
	return 0;
}
