// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * usage: point_to_point [CASE]
 *
 * One rank of a job that sends messages in every way: each message's content and size are
 * checked. Without a case all that leave the group usable.
 *
 * Length: one program, with a case for each way.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/rank.h"

enum { LONG = 300000, SMALL = 64, ROUNDS = 60, MANY = 1200, LIMIT_MS = 10000 };

static struct coll_context *context;
static struct coll_group *world;
static int rank, ranks, next, previous;

/* ---- data ------------------------------------------------------------------------- */

static uint8_t byte_of(int from, int tag, size_t i)
{
	return from * 31 + tag * 7 + i * 13 + i / 251;
}

static uint8_t *message_make(int from, int tag, size_t bytes)
{
	uint8_t *data = malloc(bytes + 1);
	size_t i;

	rank_assert(world, data);
	for (i = 0; i < bytes; i++)
		data[i] = byte_of(from, tag, i);
	return data;
}

static void message_check(const uint8_t *data, int from, int tag, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		if (data[i] != byte_of(from, tag, i))
			rank_fail(world, "message of rank %d, tag %d: byte %zu of %zu is wrong", from,
				  tag, i, bytes);
}

static void send_one(int to, int tag, size_t bytes)
{
	uint8_t *data = message_make(rank, tag, bytes);

	rank_must(world, coll_send(data, bytes, COLL_UINT8, to, tag, world));
	free(data);
}

static void recv_one(int from, int tag, size_t bytes)
{
	uint8_t *data = malloc(bytes + 1);
	struct coll_received got;

	rank_must(world, coll_recv(data, bytes, COLL_UINT8, from, tag, world, &got));
	rank_assert(world, got.count == bytes && got.tag == tag && got.source == from);
	message_check(data, from, tag, bytes);
	free(data);
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

/* ---- cases --------------------------------------------------------------------------- */

static const size_t sizes[] = { 0, 1, 200, 201, 4095, 4096, 4097, 65536, LONG };

/* A ring: every size blocking, a collective between each two. */
static void ring(void)
{
	int sum, one = 1;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct coll_run *run;
		uint8_t *data = message_make(rank, i, sizes[i]);

		rank_must(world, coll_isend(data, sizes[i], COLL_UINT8, next, i, world, &run));
		rank_must(world, coll_allreduce(&one, &sum, 1, COLL_INT32, COLL_SUM, world));
		rank_assert(world, sum == ranks);
		recv_one(previous, i, sizes[i]);
		rank_must(world, coll_run_wait(&run));
		free(data);
	}
}

/* A short message is sent before anybody knows of messages; collectives go on meanwhile. */
static void sent_before_collectives(void)
{
	int i;

	send_one(next, 1, 100);
	send_one(next, 2, 4000);
	for (i = 0; i < 3; i++)
		rank_must(world, coll_barrier(world));
	recv_one(previous, 2, 4000);
	recv_one(previous, 1, 100);
}

/* Receives in the reverse order of tags: all are unexpected, more than the credit has. */
static void unexpected(void)
{
	enum { COUNT = 60 };
	struct coll_run *run[COUNT];
	uint8_t *data[COUNT];
	int i;

	for (i = 0; i < COUNT; i++) {
		const size_t bytes = i % 3 ? 4096 - i : LONG / 10 + i;

		data[i] = message_make(rank, i, bytes);
		rank_must(world, coll_isend(data[i], bytes, COLL_UINT8, next, i, world, &run[i]));
	}
	rank_must(world, coll_barrier(world));
	for (i = COUNT - 1; i >= 0; i--)
		recv_one(previous, i, i % 3 ? 4096 - i : LONG / 10 + i);
	rank_must(world, coll_run_waitall(run, COUNT));
	for (i = 0; i < COUNT; i++)
		free(data[i]);
}

/* Posted first, of each rank, and with one tag: they keep their order. */
static void posted_first(void)
{
	struct coll_run *run[2 * SMALL];
	int got[SMALL], mine[SMALL], i;

	for (i = 0; i < SMALL; i++)
		rank_must(world, coll_irecv(&got[i], 1, COLL_INT32, previous, 5, world, NULL,
					    &run[i]));
	for (i = 0; i < SMALL; i++) {
		mine[i] = 1000 * rank + i;
		rank_must(world, coll_isend(&mine[i], 1, COLL_INT32, next, 5, world,
					    &run[SMALL + i]));
	}
	rank_must(world, coll_run_waitall(run, 2 * SMALL));
	for (i = 0; i < SMALL; i++)
		rank_assert(world, got[i] == 1000 * previous + i);
}

/* Rank 0 takes from any, with any tag: small and long ones, in order of each sender. */
static void any_source(void)
{
	enum { EACH = 6 };
	uint8_t *data = malloc(LONG);
	int count[64] = { 0 }, i;

	for (i = 0; rank && i < EACH; i++)
		send_one(0, i, i % 2 ? LONG - i : 10);
	for (i = 0; !rank && i < EACH * (ranks - 1); i++) {
		struct coll_received got;

		rank_must(world, coll_recv(data, LONG, COLL_UINT8, COLL_ANY_SOURCE, COLL_ANY_TAG,
					   world, &got));
		rank_assert(world, got.source > 0 && got.source < ranks);
		rank_assert(world, got.tag == count[got.source % 64]++);
		rank_assert(world, got.count == (size_t)(got.tag % 2 ? LONG - got.tag : 10));
		message_check(data, got.source, got.tag, got.count);
	}
	free(data);
}

/* To this rank itself, before and after the receive, short and long, from any source too. */
static void to_itself(void)
{
	static const int from[] = { 0, COLL_ANY_SOURCE };
	size_t i, k;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (k = 0; k < 4; k++) {
			uint8_t *data = message_make(rank, i, sizes[i]), *to = malloc(sizes[i] + 1);
			struct coll_run *sent, *run;
			struct coll_received got;

			if (k / 2)
				rank_must(world, coll_isend(data, sizes[i], COLL_UINT8, rank, i,
							    world, &sent));
			rank_must(world, coll_irecv(to, LONG, COLL_UINT8,
						    k % 2 ? from[1] : rank, i, world, &got, &run));
			if (!(k / 2))
				rank_must(world, coll_isend(data, sizes[i], COLL_UINT8, rank, i,
							    world, &sent));
			rank_must(world, coll_run_wait(&run));
			rank_must(world, coll_run_wait(&sent));
			rank_assert(world, got.count == sizes[i] && got.source == rank);
			message_check(to, rank, i, sizes[i]);
			free(data);
			free(to);
		}
}

/* A message that is longer than its buffer: an error for the receive, and nothing else. */
static void truncated(void)
{
	static const size_t long_ones[] = { 8, 300, 5000, LONG };
	size_t i;

	for (i = 0; i < 4; i++) {
		uint8_t *data = message_make(rank, 3, long_ones[i]), buffer[4] = { 0 };
		struct coll_received got;
		struct coll_run *run;
		int error;

		rank_must(world, coll_isend(data, long_ones[i], COLL_UINT8, next, 3, world, &run));
		if (i % 2)
			rank_must(world, coll_barrier(world));
		error = coll_recv(buffer, 4, COLL_UINT8, previous, 3, world, &got);
		rank_assert(world, error == -EMSGSIZE);
		rank_assert(world, strstr(coll_last_error(world), "valid: whole elements of 1 bytes, "
							    "count (4) at most"));
		rank_assert(world, got.count == long_ones[i] && got.source == previous);
		rank_must(world, coll_run_wait(&run));
		free(data);
		send_one(next, 4, 4000);
		recv_one(previous, 4, 4000);
	}
	rank_must(world, coll_barrier(world));
	rank_assert(world, coll_error_rank(world) == -1);
}

/* Both sides only test. A grant comes while nobody waits in the library. */
static void in_test_loops(void)
{
	int round;

	for (round = 0; round < ROUNDS; round++) {
		const size_t bytes = round % 4 ? 100 : 20000 + round;
		uint8_t *data = message_make(rank, round, bytes), *to = malloc(bytes);
		const uint64_t start = now_ms();
		struct coll_run *run[2];
		int done = 0;

		rank_must(world, coll_isend(data, bytes, COLL_UINT8, next, round, world, &run[0]));
		rank_must(world, coll_irecv(to, bytes, COLL_UINT8, previous, round, world, NULL,
					    &run[1]));
		while (!done) {
			rank_must(world, coll_run_testall(run, 2, &done));
			if (now_ms() - start > LIMIT_MS)
				rank_fail(world, "round %d: nothing came in %d ms", round, LIMIT_MS);
		}
		message_check(to, previous, round, bytes);
		free(data);
		free(to);
	}
}

/*
 * A sender that sleeps in coll_send() is woken by the grant, and a receiver by the message, well
 * before any timer of a deadline: those are 100 ms and more away, in each round.
 */
static void woken(void)
{
	enum { WOKEN = 50 };
	const uint64_t start = now_ms();
	int round;

	for (round = 0; round < WOKEN && ranks > 1 && rank < 2; round++) {
		const size_t bytes = 5000 + round;

		if ((round + rank) % 2 == 0)
			send_one(1 - rank, round, bytes);
		else
			recv_one(1 - rank, round, bytes);
	}
	if (now_ms() - start > LIMIT_MS)
		rank_fail(world, "%d messages took %d ms", WOKEN, (int)(now_ms() - start));
}

/* Many small ones to one rank that reads late: more than its credit. */
static void many(void)
{
	struct coll_run *run = NULL;
	int *values = malloc(MANY * sizeof(*values)), i, got;
	struct coll_run **runs = calloc(MANY, sizeof(*runs));

	for (i = 0; i < MANY; i++) {
		values[i] = i;
		rank_must(world, coll_isend(&values[i], 1, COLL_INT32, next, 9, world, &runs[i]));
	}
	rank_must(world, coll_ibarrier(world, &run));
	for (i = 0; i < MANY; i++) {
		rank_must(world, coll_recv(&got, 1, COLL_INT32, previous, 9, world, NULL));
		rank_assert(world, got == i);
	}
	rank_must(world, coll_run_waitall(runs, MANY));
	rank_must(world, coll_run_wait(&run));
	free(runs);
	free(values);
}

/* Other groups have other messages, even of the same rank and tag. */
static void of_groups(void)
{
	struct coll_group *copy;
	int mine = 1, other = 2, got;

	rank_must(world, coll_group_dup(world, &copy));
	rank_must(world, coll_send(&mine, 1, COLL_INT32, next, 1, world));
	rank_must(copy, coll_send(&other, 1, COLL_INT32, next, 1, copy));
	rank_must(copy, coll_recv(&got, 1, COLL_INT32, previous, 1, copy, NULL));
	rank_assert(world, got == 2);
	rank_must(world, coll_recv(&got, 1, COLL_INT32, previous, 1, world, NULL));
	rank_assert(world, got == 1);
	coll_group_free(copy);
}

/* ---- refusals and failures: one a job ----------------------------------------------------- */

static void refused(void)
{
	struct coll_run *run;
	int value = 0;

	rank_assert(world, coll_send(&value, 1, COLL_INT32, ranks, 0, world) == -EINVAL);
	rank_assert(world, strstr(coll_last_error(world), "send: rank ("));
	rank_assert(world, coll_send(&value, 1, COLL_INT32, COLL_ANY_SOURCE, 0, world) == -EINVAL);
	rank_assert(world, coll_recv(&value, 1, COLL_INT32, -2, 0, world, NULL) == -EINVAL);
	rank_assert(world, strstr(coll_last_error(world), "or COLL_ANY_SOURCE"));
	rank_assert(world, coll_isend(&value, 1, COLL_INT32, 0, -1, world, &run) == -EINVAL && !run);
	rank_assert(world, strstr(coll_last_error(world), "send: tag (-1) is negative"));
	rank_assert(world, coll_recv(&value, 1, COLL_INT32, 0, -5, world, NULL) == -EINVAL);
	rank_assert(world, coll_send(NULL, 1, COLL_INT32, 0, 0, world) == -EINVAL);
	rank_assert(world, strstr(coll_last_error(world), "send: data is NULL"));
}

/* What a call gives when the last rank is to blame, in this time. */
static void blames_last(int error, int wanted, uint64_t start, uint64_t limit_ms)
{
	if (error != wanted || coll_error_rank(world) != ranks - 1 || now_ms() - start > limit_ms)
		rank_fail(world, "%s (rank %d) after %d ms: %s", coll_strerror(error),
			  coll_error_rank(world), (int)(now_ms() - start), coll_last_error(world));
}

/* The last rank dies: while others wait for it, send to it, and are in a collective. */
static void killed(void)
{
	uint8_t *data = malloc(LONG);
	uint64_t start;
	int error;

	rank_must(world, coll_barrier(world));
	if (rank == ranks - 1) {
		usleep(200000);		/* until all have left the barrier: who is still in it would be told there */
		_exit(0);
	}
	start = now_ms();
	if (rank % 3 == 0)
		error = coll_recv(data, LONG, COLL_UINT8, ranks - 1, 0, world, NULL);
	else if (rank % 3 == 1)
		error = coll_send(data, LONG, COLL_UINT8, ranks - 1, 0, world);
	else
		error = coll_barrier(world);
	blames_last(error, -ECONNRESET, start, 5000);
	error = coll_barrier(world);
	blames_last(error, -ECONNRESET, start, 6000);
	error = coll_recv(data, 1, COLL_UINT8, COLL_ANY_SOURCE, 0, world, NULL);
	blames_last(error, -ECONNRESET, start, 6000);
	free(data);
}

/* The last rank does not send: deadlines are those of collectives. */
static void silent(void)
{
	uint64_t start = now_ms();
	struct coll_run *run;
	uint8_t byte;
	int error;

	rank_must(world, coll_group_set(world, "deadline", "1s"));
	rank_must(world, coll_barrier(world));
	if (rank == ranks - 1) {
		usleep(3000000);
		return;
	}
	error = coll_irecv(&byte, 1, COLL_UINT8, ranks - 1, 0, world, NULL, &run);
	if (!error)
		error = coll_run_wait(&run);
	blames_last(error, -ETIMEDOUT, start, 2500);
}

/*
 * The last rank takes its messages when half of their deadline has gone. The report of that looks
 * at all processes of the node: once a rank, not once a message, for it answers nobody meanwhile.
 */
static void late(void)
{
	enum { LATE = 2000, HALF_MS = 6000, CALL_MS = 1200 };
	struct coll_run **runs = calloc(LATE, sizeof(*runs));
	uint8_t *data = message_make(rank, 0, 5000);
	const uint64_t start = now_ms();
	uint64_t longest = 0, before;
	int i, k, done = 0;

	rank_must(world, coll_group_set(world, "deadline", "12s"));
	usleep(300000 * rank);		/* rank 0 is the one that reports */
	for (i = 0; i < LATE && rank != ranks - 1; i++)
		rank_must(world, coll_isend(data, 5000, COLL_UINT8, ranks - 1, 0, world, &runs[i]));
	while (now_ms() - start < HALF_MS + 1000) {
		before = now_ms();
		rank_must(world, coll_run_testall(runs, LATE, &done));
		longest = now_ms() - before > longest ? now_ms() - before : longest;
		usleep(1000);
	}
	for (i = 0; i < LATE && runs[i]; i++)
		rank_must(world, coll_run_deadline(runs[i], 60000000000));
	rank_must(world, coll_group_set(world, "deadline", "60s"));
	for (k = 0; k < ranks - 1 && rank == ranks - 1; k++)
		for (i = 0; i < LATE; i++)
			rank_must(world, coll_recv(data, 5000, COLL_UINT8, k, 0, world, NULL));
	rank_must(world, coll_run_waitall(runs, LATE));
	if (longest > CALL_MS)
		rank_fail(world, "a call that only tests took %d ms", (int)longest);
	free(runs);
	free(data);
}

/* Until the end of the run is told, which frees it; how it ended. */
static int test_until_done(struct coll_run **run)
{
	const uint64_t start = now_ms();
	int error, done = 0;

	do {
		error = coll_run_test(run, &done);
		if (!done && (error || now_ms() - start > LIMIT_MS))
			rank_fail(world, "a test of a run that has not ended: %s", coll_strerror(error));
	} while (!done);
	rank_assert(world, !*run);
	return error;
}

/* The engine of rank 0 fails: runs that are only tested end with its error, and the group fails. */
static void engine_fails(void)
{
	struct coll_run *runs[2];
	uint8_t bytes[2];
	int fd, i;

	rank_must(world, coll_barrier(world));		/* they are connected */
	if (rank) {
		rank_assert(world, coll_recv(bytes, 1, COLL_UINT8, 0, 0, world, NULL) == -EINVAL);
		return;
	}
	for (i = 0; i < 2; i++)
		rank_must(world, coll_irecv(bytes + i, 1, COLL_UINT8, 1, i, world, NULL, &runs[i]));
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	rank_assert(world, fd >= 0 && dup2(fd, coll_fd(context)) >= 0);
	for (i = 0; i < 2; i++)
		rank_assert(world, test_until_done(&runs[i]) == -EINVAL);
	rank_assert(world, coll_error_rank(world) == 0);
}

/* A rank leaves with a message under way that nobody takes, and one that is taken later. */
static void leaves(void)
{
	if (rank != ranks - 1) {
		send_one(ranks - 1, 1, 100);
		send_one(ranks - 1, 2, 4000);
		return;
	}
	for (int from = 0; from < ranks - 1; from++)
		recv_one(from, 2, 4000);
}

/*
 * A short message wakes its receiver, which has slept for longer than it looks by itself, although
 * the sender computes for long afterwards: of a call that blocks, of one that does not, and of a
 * collective that this rank has completed at once.
 */
static void short_one(void)
{
	const struct timespec before = { 0, 300000000 }, after = { 6, 0 };
	struct coll_run *runs[2];
	uint64_t start, mine = 7;

	if (rank > 1)
		return;
	if (rank) {
		recv_one(0, 0, 8);	/* now they are connected */
		send_one(0, 0, 8);
		rank_must(world, coll_bcast(&mine, 1, COLL_UINT64, 0, world));
		start = now_ms();
		recv_one(0, 1, 8);
		recv_one(0, 2, 8);
		rank_must(world, coll_bcast(&mine, 1, COLL_UINT64, 0, world));
		if (now_ms() - start > 5000)
			rank_fail(world, "three messages of 8 bytes took %d ms", (int)(now_ms() - start));
	} else {
		uint8_t *data = message_make(rank, 2, 8);

		send_one(1, 0, 8);
		recv_one(1, 0, 8);
		rank_must(world, coll_bcast(&mine, 1, COLL_UINT64, 0, world));
		nanosleep(&before, NULL);
		send_one(1, 1, 8);
		nanosleep(&before, NULL);
		rank_must(world, coll_isend(data, 8, COLL_UINT8, 1, 2, world, &runs[0]));
		nanosleep(&before, NULL);
		rank_must(world, coll_ibcast(&mine, 1, COLL_UINT64, 0, world, &runs[1]));
		nanosleep(&after, NULL);
		rank_must(world, coll_run_waitall(runs, 2));
		free(data);
	}
}

enum { TRIES = 5, SENDS = 300 };	/* fewer than the credit has */

/* Of several tries the shortest: how long messages take that complete at once, until they are received; ns. */
static uint64_t sends_take(void)
{
	uint64_t start, took, least = UINT64_MAX;
	struct coll_run *run;
	uint8_t byte = 1;
	int try, i;

	for (try = 0; try < TRIES; try++) {
		start = now_ns();
		for (i = 0; i < SENDS; i++) {
			rank_must(world, coll_isend(&byte, 1, COLL_UINT8, 1, 8, world, &run));
			rank_must(world, coll_run_wait(&run));
		}
		recv_one(1, 9, 1);
		took = now_ns() - start;
		least = took < least ? took : least;
	}
	return least;
}

/* Receives that wait cost those that send nothing. */
static void posted(void)
{
	enum { POSTED = 8192, TIMES = 20 };	/* also on a machine with noise */
	struct coll_run **runs = calloc(POSTED, sizeof(*runs));
	uint8_t *data = calloc(POSTED, 1), byte;
	uint64_t alone, beside;
	int i;

	if (!rank) {
		alone = sends_take();
		for (i = 0; i < POSTED; i++)
			rank_must(world, coll_irecv(data + i, 1, COLL_UINT8, 1, 7, world, NULL, &runs[i]));
		beside = sends_take();
		send_one(1, 9, 1);
		rank_must(world, coll_run_waitall(runs, POSTED));
		if (beside > TIMES * alone)
			rank_fail(world, "%d messages took %.1f us, without receives %.1f", SENDS, beside / 1e3,
				  alone / 1e3);
	} else if (rank == 1) {
		for (i = 1; i <= 2 * TRIES * SENDS; i++) {
			rank_must(world, coll_recv(&byte, 1, COLL_UINT8, 0, 8, world, NULL));
			if (!(i % SENDS))
				send_one(0, 9, 1);
		}
		recv_one(0, 9, 1);
		for (i = 0; i < POSTED; i++)
			rank_must(world, coll_send(&byte, 1, COLL_UINT8, 0, 7, world));
	}
	free(runs);
	free(data);
}

static const struct {
	const char *name;
	void (*run)(void);
	int alone;			/* not with others */
} cases[] = {
	{ "sent-before-collectives", sent_before_collectives, 0 },
	{ "ring", ring, 0 },
	{ "unexpected", unexpected, 0 },
	{ "posted-first", posted_first, 0 },
	{ "any-source", any_source, 0 },
	{ "to-itself", to_itself, 0 },
	{ "truncated", truncated, 0 },
	{ "in-test-loops", in_test_loops, 0 },
	{ "woken", woken, 0 },
	{ "many", many, 0 },
	{ "of-groups", of_groups, 0 },
	{ "refused", refused, 0 },
	{ "killed", killed, 1 },
	{ "silent", silent, 1 },
	{ "leaves", leaves, 1 },
	{ "late", late, 1 },
	{ "short", short_one, 1 },
	{ "posted", posted, 1 },
	{ "engine-fails", engine_fails, 1 },
};

int main(int argc, char **argv)
{
	size_t i, count = 0;

	context = rank_open(NULL);
	world = coll_world(context);
	rank = coll_rank(world);
	ranks = coll_ranks(world);
	next = (rank + 1) % ranks;
	previous = (rank + ranks - 1) % ranks;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (argc > 1 ? strcmp(argv[1], cases[i].name) : cases[i].alone)
			continue;
		count++;
		if (getenv("VERBOSE") && !rank)
			fprintf(stderr, "%s\n", cases[i].name);
		cases[i].run();
		if (!cases[i].alone)	/* a message of the next is none of this one's */
			rank_must(world, coll_barrier(world));
	}
	if (!count)
		rank_fail(world, "no such case: %s", argv[1]);
	coll_close(context);
	return 0;
}
