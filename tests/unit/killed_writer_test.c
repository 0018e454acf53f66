// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A process that sends through memory (libcoll/engine/memory.h) is killed at each of its stores that the
 * reader looks at, one instruction before, and between: by a parent that lets it do one instruction
 * at a time. Its reader has the message whole or in order up to some byte, then the end, and waits
 * for nothing; of a message that is published by one store it has all or nothing. It looks once
 * after the writer is dead, and once already when that has stopped.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "fake_engine.h"
#include "libcoll/engine/memory.h"
#include "libcoll/engine/memory_parts.h"
#include "libcoll/engine/ring.h"
#include "traced.h"

enum {
	SIZE = 64 << 10, HEADER = 40, LONGEST = 2 * SIZE, STOPS_MAX = 400,
	EACH = 1999,			/* of instructions without such a store: also there */
	ROUNDS_MAX = 1000, SLEEP_MS = 10000,
};

/* What one process sends, and how. */
struct way {
	void (*begins)(void), (*goes_on)(void);	/* before the first step; step by step */
	uint64_t bytes;			/* of payload */
	uint64_t at;			/* in the ring */
	bool exposes;
	bool whole;			/* one store publishes it */
	uint64_t taken;			/* of what is exposed before the first step */
};

static const struct way *way;
static uint8_t *map;
static int fds[2];			/* the reader's, the writer's */
static struct coll_counters counters;
static struct coll_engine engine;
static struct coll_socket owner;

static uint8_t byte_at(uint64_t at)
{
	return at * 31 + (at >> 9);
}

static uint64_t all(void)
{
	return HEADER + way->bytes;
}

/* ---- the ends of it --------------------------------------------------------------------- */

static void owner_detached(struct coll_socket *socket)
{
	(void)socket;
}

static void attach(const struct coll_socket_ops *ops, int fd, bool first)
{
	engine = (struct coll_engine){ .ops = &fake_engine_ops, .counters = &counters,
				       .exposes = way->exposes, .waits = true, .spin_ns = 1000 };
	owner = (struct coll_socket){ .ops = ops, .engine = &engine, .fd = fd,
				      .memory = coll_memory_make(map, SIZE, first) };
	assert_non_null(owner.memory);
	assert_int_equal(coll_socket_attach(&owner), 0);
}

/* ---- the writer, which is traced ---------------------------------------------------------- */

static uint8_t message[HEADER + LONGEST];
static uint64_t sent;

static bool writer_wants_send(struct coll_socket *socket)
{
	return !socket->sending && sent < all();
}

static int writer_send_iov(struct coll_socket *socket, struct iovec *iov, int max)
{
	int count = 0;

	(void)socket;
	(void)max;
	if (sent < HEADER)
		iov[count++] = (struct iovec){ message + sent, HEADER - sent };
	iov[count] = (struct iovec){ message + (sent < HEADER ? HEADER : sent), 0 };
	iov[count].iov_len = message + all() - (uint8_t *)iov[count].iov_base;
	return count + 1;
}

static void writer_sent(struct coll_socket *socket, ssize_t result)
{
	(void)socket;
	sent += result > 0 ? result : 0;
}

static bool writer_wants_recv(const struct coll_socket *socket)
{
	(void)socket;
	return false;
}

static const struct coll_socket_ops writer_ops = {
	.wants_send = writer_wants_send, .send_iov = writer_send_iov, .sent = writer_sent,
	.wants_recv = writer_wants_recv, .detached = owner_detached,
};

static void nothing(void)
{
}

static void works(void)
{
	coll_memory_work(&owner);
}

static void sends_now(void)
{
	const struct iovec iov[2] = { { message, HEADER }, { message + HEADER, way->bytes } };

	if (!coll_memory_send_now(&owner, iov, 2))
		_exit(1);
	coll_memory_wake_readers(&engine);
}

/* Its owner has the memory back, and uses it. */
static void takes_back(void)
{
	coll_socket_pause(&owner);
	memset(message, 0xee, all());
}

static void leaves(void)
{
	coll_socket_detach(&owner);
	memset(message, 0xee, all());
}

static void write_step_by_step(void)
{
	uint64_t i;

	close(fds[0]);
	for (i = 0; i < all(); i++)
		message[i] = byte_at(i);
	attach(&writer_ops, fds[1], true);
	owner.memory->out.count = owner.memory->out.other = way->at;
	owner.memory->out.shared->writer.count = owner.memory->out.shared->reader.count = way->at;
	way->begins();
	traced_do(way->goes_on);
}

/* ---- the reader ---------------------------------------------------------------------------- */

static uint64_t received;
static bool ended;

static void reader_received_in(struct coll_socket *socket, const uint8_t *data, ssize_t result)
{
	ssize_t i;

	(void)socket;
	ended |= result <= 0;
	for (i = 0; i < result; i++)
		if (data[i] != byte_at(received + i))
			fail_msg("byte %llu is another", (unsigned long long)(received + i));
	received += result > 0 ? result : 0;
}

static bool reader_wants_recv(const struct coll_socket *socket)
{
	(void)socket;
	return !ended;
}

static bool reader_wants_send(struct coll_socket *socket)
{
	(void)socket;
	return false;
}

static int reader_recv_iov(struct coll_socket *socket, struct iovec *iov, bool *whole)
{
	(void)socket;
	(void)iov;
	*whole = false;
	return 0;
}

static const struct coll_socket_ops reader_ops = {
	.wants_send = reader_wants_send, .wants_recv = reader_wants_recv,
	.recv_iov = reader_recv_iov, .received_in = reader_received_in, .detached = owner_detached,
};

/* The header, which the ring has, and some of what is exposed. */
static void reader_takes_part(void)
{
	static uint8_t part[COLL_COPY_LEAST];
	const struct iovec iov = { part, way->taken };
	const uint8_t *header;

	assert_int_equal(coll_ring_peek(&owner.memory->in, &header), HEADER);
	reader_received_in(&owner, header, HEADER);
	coll_ring_consume(&owner.memory->in, HEADER);
	assert_int_equal(coll_exposed_read(&owner.memory->exposed_in, &iov, 1, way->taken), way->taken);
	reader_received_in(&owner, part, way->taken);
}

/* Asleep, as it waits for the message, if that has not begun. */
static void reader_attach(int writer)
{
	received = ended = 0;
	attach(&reader_ops, fds[0], false);
	owner.memory->in.count = owner.memory->in.other = owner.memory->in.told = way->at;
	owner.memory->exposed_in.pid = writer;	/* the socket names its maker */
	assert_int_equal(coll_memory_sleep(&engine), way->begins == nothing);
	if (way->taken)
		reader_takes_part();
}

/* What an engine does when its socket says something. False: it says nothing for so long. */
static bool hear(int milliseconds)
{
	struct pollfd poll_for = { .fd = fds[0], .events = POLLIN };

	if (poll(&poll_for, 1, milliseconds) <= 0)
		return false;
	assert_true(owner.memory->watch.armed);
	owner.memory->watch.armed = false;
	owner.memory->watch.ready(&owner.memory->watch, POLLIN);
	return true;
}

/* All there is, of a writer that has stopped: it does not sleep, since nobody would wake it. */
static void reader_looks(void)
{
	int rounds = 0;

	coll_memory_wake(&engine);
	hear(0);
	while (coll_memory_serve(&engine))
		assert_true(rounds++ < ROUNDS_MAX);
}

/* Until the end, as an engine: what comes wakes it from its sleep. */
static void reader_reads_to_the_end(bool slept)
{
	int rounds;

	for (rounds = 0; !ended; rounds++) {
		assert_true(rounds < ROUNDS_MAX);
		if (!slept && coll_memory_serve(&engine))
			continue;
		if (slept || coll_memory_sleep(&engine))
			assert_true(hear(SLEEP_MS));	/* else it sleeps for ever */
		slept = false;
		coll_memory_wake(&engine);
	}
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A writer before its first step, and its reader. Returns the process. */
static pid_t start(void)
{
	const size_t bytes = coll_memory_bytes(SIZE);
	pid_t child;

	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	child = fork();
	if (!child)
		write_step_by_step();
	close(fds[1]);
	traced_begins(child);
	reader_attach(child);
	return child;
}

static void finish(pid_t child, bool slept)
{
	traced_kill(child);
	reader_reads_to_the_end(slept);
	assert_true(received <= all());
	if (way->whole)
		assert_true(received == 0 || received == all());
	coll_socket_detach(&owner);
}

/* The instructions after which the reader may see something else, and some more. */
static int stops_find(int *stops, int *steps)
{
	static struct coll_ring_shared before;
	const struct coll_ring_shared *now;
	const pid_t child = start();
	int count = 0;

	now = owner.memory->in.shared;
	before = *now;
	for (*steps = 1; traced_step(child); ++*steps) {
		const bool differs = memcmp(&before, now, sizeof(before));

		if ((differs || *steps % EACH == 0) && count < STOPS_MAX)
			stops[count++] = *steps;
		before = *now;
	}
	reader_looks();
	assert_int_equal(received, way->goes_on == leaves ? HEADER : all());
	finish(child, false);
	return count;
}

static void kill_after(int steps, bool looks)
{
	const pid_t child = start();

	while (steps-- && traced_step(child))
		;
	if (looks)
		reader_looks();
	finish(child, !looks && way->begins == nothing);
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void killed_on_its_way(const struct way *chosen)
{
	int stops[STOPS_MAX], count, steps, i;

#ifndef __x86_64__
	skip();		/* an exclusive load and its store, a step each, never come to an end */
#endif
	way = chosen;
	count = stops_find(stops, &steps);
	assert_in_range(count, 1, STOPS_MAX - 1);
	for (i = 0; i < count; i++) {
		kill_after(stops[i] - 1, false);
		kill_after(stops[i] - 1, true);
		kill_after(stops[i], false);
		kill_after(stops[i], true);
	}
	print_message("# %d instructions, killed at %d of them\n", steps, count);
}

static void a_short_message(void **state)
{
	static const struct way put = { nothing, sends_now, 200, 0, false, true, 0 };

	(void)state;
	killed_on_its_way(&put);
}

static void one_around_the_end_of_the_ring(void **state)
{
	static const struct way put = { nothing, sends_now, 200, SIZE - 100, false, true, 0 };

	(void)state;
	killed_on_its_way(&put);
}

static void a_long_one_through_the_ring(void **state)
{
	static const struct way write = { nothing, works, SIZE - SIZE / 4, SIZE / 2, false, false, 0 };

	(void)state;
	killed_on_its_way(&write);
}

static void an_exposed_one(void **state)
{
	static const struct way expose = { nothing, works, LONGEST, 0, true, false, 0 };

	(void)state;
	killed_on_its_way(&expose);
}

static void one_that_is_moved(void **state)
{
	static const struct way move = { works, takes_back, COLL_COPY_LEAST, 0, true, false, 5000 };

	(void)state;
	killed_on_its_way(&move);
}

static void one_that_is_withdrawn(void **state)
{
	static const struct way withdraw = { works, leaves, COLL_COPY_LEAST, 0, true, false, 0 };

	(void)state;
	killed_on_its_way(&withdraw);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_short_message),
		cmocka_unit_test(one_around_the_end_of_the_ring),
		cmocka_unit_test(a_long_one_through_the_ring),
		cmocka_unit_test(an_exposed_one),
		cmocka_unit_test(one_that_is_moved),
		cmocka_unit_test(one_that_is_withdrawn),
	};

	(void)argc;
	traced_copies_by_registers(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
