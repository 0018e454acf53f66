// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Exposed memory: it comes after the bytes of the ring, and whole; its writer has it back at once;
 * a reader that may not read, a process that is another's successor, what a hostile side stores. The same
 * of memory in a region, which the reader has mapped.
 *
 * Length: what is promised of exposed memory is asked of both ways to read it.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "libcoll/engine/shared_arena.h"
#include "libcoll/engine/exposed.h"

enum { SIZE = 4096, BYTES = 100000, PIECE = 30000 };

static struct coll_ring out, in;
static struct coll_exposed writer, reader;
static uint8_t data[BYTES], got[BYTES];

static int begin(void **state)
{
	void *place = aligned_alloc(128, (coll_ring_bytes(SIZE) + 127) & ~(size_t)127);
	int i;

	assert_non_null(place);
	memset(place, 0, coll_ring_bytes(SIZE));
	coll_ring_init(&out, place, SIZE);
	coll_ring_init(&in, place, SIZE);
	coll_exposed_init(&writer, &out);
	coll_exposed_attach(&reader, &in, getpid());
	for (i = 0; i < BYTES; i++)
		data[i] = i * 7 + i / 251;
	memset(got, 0, BYTES);
	*state = place;
	return 0;
}

static int end(void **state)
{
	free(*state);
	return 0;
}

static int64_t read_piece(uint64_t at, uint64_t max)
{
	struct iovec iov[2] = { { got + at, max / 3 }, { got + at + max / 3, max - max / 3 } };

	return coll_exposed_read(&reader, iov, 2, max);
}

static void it_comes_whole_after_the_ring(void **state)
{
	struct iovec some = { data, 10 };
	uint64_t at = 0;
	const uint8_t *there;
	bool refused;

	(void)state;
	assert_int_equal(coll_exposed_waits(&reader), 0);
	assert_int_equal(coll_ring_write(&out, &some, 1), 10);
	coll_exposed_begin(&writer, data, BYTES);
	assert_int_equal(coll_exposed_waits(&reader), 0);	/* the ring's bytes go first */
	assert_int_equal(coll_ring_peek(&in, &there), 10);
	coll_ring_consume(&in, 10);
	while (coll_exposed_waits(&reader)) {
		assert_int_equal(coll_exposed_waits(&reader), BYTES - at);
		assert_int_equal(coll_exposed_taken(&writer, &refused), at);
		at += read_piece(at, BYTES - at < PIECE ? BYTES - at : PIECE);
	}
	assert_int_equal(at, BYTES);
	assert_int_equal(coll_exposed_taken(&writer, &refused), BYTES);
	assert_false(refused);
	assert_memory_equal(got, data, BYTES);
	coll_exposed_begin(&writer, data + 5, 100);		/* and again */
	assert_int_equal(coll_exposed_waits(&reader), 100);
	assert_int_equal(read_piece(0, 1000), 100);
	assert_memory_equal(got, data + 5, 100);
}

static void its_writer_has_it_back(void **state)
{
	uint8_t *copy = malloc(BYTES);
	bool refused;
	int64_t taken;

	(void)state;
	coll_exposed_begin(&writer, data, BYTES);
	assert_int_equal(read_piece(0, PIECE), PIECE);
	taken = coll_exposed_taken(&writer, &refused);
	assert_int_equal(taken, PIECE);
	memcpy(copy, data + taken, BYTES - taken);
	coll_exposed_move(&writer, taken, copy);
	memset(data + taken, 0xee, BYTES - taken);		/* the owner goes on */
	assert_int_equal(coll_exposed_waits(&reader), BYTES - PIECE);
	assert_int_equal(read_piece(PIECE, BYTES - PIECE), BYTES - PIECE);
	assert_memory_equal(got + PIECE, copy, BYTES - PIECE);
	assert_int_equal(coll_exposed_taken(&writer, &refused), BYTES - PIECE);
	/* What was taken before the move is not given again. */
	out.shared->reader.taken = PIECE - 1;
	assert_int_equal(coll_exposed_taken(&writer, &refused), -EPROTO);
	out.shared->reader.taken = BYTES;
	free(copy);
	coll_exposed_begin(&writer, data, BYTES);
	coll_exposed_withdraw(&writer);
	assert_int_equal(coll_exposed_waits(&reader), 0);
	assert_int_equal(read_piece(0, PIECE), 0);
}

/* The number of a process that has ended. */
static int dead_pid(void)
{
	const int pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

static void assert_refused(int64_t taken)
{
	bool refused;

	assert_int_equal(read_piece(0, PIECE), 0);
	assert_int_equal(coll_exposed_waits(&reader), 0);
	assert_int_equal(coll_exposed_taken(&writer, &refused), taken);
	assert_true(refused && writer.refused);
}

static void who_cannot_read_says_so(void **state)
{
	(void)state;
	coll_exposed_begin(&writer, data, BYTES);
	assert_int_equal(read_piece(0, PIECE), PIECE);
	reader.pid = dead_pid();
	assert_refused(PIECE);
}

static void an_unknown_process_is_not_read(void **state)
{
	(void)state;
	reader.pid = 0;
	coll_exposed_begin(&writer, data, BYTES);
	assert_refused(0);
}

/* Another process has the number now: its memory is there, the nonce is not. */
static void a_successor_is_not_read(void **state)
{
	(void)state;
	coll_exposed_begin(&writer, data, BYTES);
	writer.nonce[3] ^= 1;
	assert_refused(0);
}

static void memory_that_is_not_there(void **state)
{
	(void)state;
	coll_exposed_begin(&writer, (void *)16, BYTES);
	assert_refused(0);
}

static void what_is_impossible(void **state)
{
	static const uint64_t counts[][2] = {	/* begin, end */
		{ 1, 2 }, { 0, 1ull << 49 }, { 0, UINT64_MAX },
	};
	bool refused;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		out.shared->writer.begin = counts[i][0];
		out.shared->writer.end = counts[i][1];
		assert_int_equal(coll_exposed_waits(&reader), -EPROTO);
		assert_int_equal(read_piece(0, PIECE), -EPROTO);
	}
	out.shared->writer.begin = out.shared->writer.end = 0;
	coll_exposed_begin(&writer, data, BYTES);
	out.shared->reader.taken = BYTES + 1;
	assert_int_equal(coll_exposed_taken(&writer, &refused), -EPROTO);
}

/* ---- in a region that the reader maps --------------------------------------------- */

static struct coll_shared_arena arena;
static struct coll_regions regions;
static uint8_t *block;
static uint64_t block_at;

static void region_begin(void)
{
	const uint8_t byte = COLL_REGION_IS_ANNOUNCED;
	const struct coll_shared_region *region;

	arena = (struct coll_shared_arena){ .shares = true };
	regions = (struct coll_regions){ .told = 0 };
	block = coll_shared_take(&arena, BYTES);
	assert_non_null(block);
	memcpy(block, data, BYTES);
	region = coll_shared_find(&arena, block, BYTES);
	assert_non_null(region);
	block_at = block - region->base;
	assert_false(coll_exposed_maps(&writer));
	coll_exposed_map_regions(&reader, &regions);
	assert_true(coll_exposed_maps(&writer));
	reader.pid = 0;			/* by the system call it could read nothing */
	assert_false(coll_exposed_awaits_region(&reader));
	coll_exposed_begin_there(&writer, block, BYTES, 1, block_at);
	assert_true(coll_exposed_awaits_region(&reader));
	coll_regions_hear(&regions, &byte, 1, dup(region->fd));
	assert_false(coll_exposed_awaits_region(&reader));
}

static void region_end(void)
{
	coll_regions_end(&regions);
	coll_shared_end(&arena);
}

static void a_region_is_read_where_it_is_mapped(void **state)
{
	uint64_t at = 0;
	bool refused;

	(void)state;
	region_begin();
	while (at < BYTES) {
		assert_int_equal(coll_exposed_waits(&reader), BYTES - at);
		at += read_piece(at, BYTES - at < PIECE ? BYTES - at : PIECE);
		assert_int_equal(coll_exposed_taken(&writer, &refused), at);
	}
	assert_false(refused);
	assert_memory_equal(got, data, BYTES);
	region_end();
}

/* What is moved is in no region; a reader that may not read it there refuses that, and no region. */
static void a_region_that_is_left(void **state)
{
	bool refused;

	(void)state;
	region_begin();
	assert_int_equal(read_piece(0, PIECE), PIECE);
	coll_exposed_move(&writer, PIECE, data + PIECE);
	memset(block, 0xee, BYTES);
	assert_int_equal(read_piece(PIECE, PIECE), 0);
	assert_int_equal(coll_exposed_taken(&writer, &refused), 0);
	assert_true(refused);
	assert_int_equal(writer.refused, COLL_EXPOSED_MEMORY);
	coll_exposed_stop(&writer, 0);
	assert_int_equal(coll_exposed_waits(&reader), 0);
	coll_exposed_begin_there(&writer, block, BYTES, 1, block_at);
	assert_int_equal(coll_exposed_waits(&reader), BYTES);
	assert_int_equal(read_piece(0, BYTES), BYTES);
	assert_int_equal(got[BYTES - 1], 0xee);
	assert_int_equal(coll_exposed_taken(&writer, &refused), BYTES);
	assert_false(refused);
	region_end();
}

/* By the system call, if that is allowed; else it refuses regions, and other memory as before. */
static void a_region_that_is_not_mapped(void **state)
{
	bool refused;

	(void)state;
	region_begin();
	coll_regions_end(&regions);
	reader.pid = getpid();
	assert_int_equal(read_piece(0, PIECE), PIECE);
	assert_memory_equal(got, data, PIECE);
	reader.pid = 0;
	assert_int_equal(read_piece(0, PIECE), 0);
	assert_int_equal(coll_exposed_taken(&writer, &refused), PIECE);
	assert_true(refused);
	assert_false(coll_exposed_maps(&writer));
	coll_exposed_stop(&writer, PIECE);
	reader.pid = getpid();
	coll_exposed_begin(&writer, data + 5, 100);
	assert_int_equal(coll_exposed_waits(&reader), 100);
	assert_int_equal(read_piece(0, 1000), 100);
	assert_memory_equal(got, data + 5, 100);
	region_end();
}

static uint64_t owed_until;		/* of waits for a reader that holds */

static int64_t hold_piece(uint64_t max)
{
	const uint8_t *there;
	const int64_t bytes = coll_exposed_hold(&reader, max, &there);

	if (bytes > 0)
		memcpy(got + reader.taken, there, bytes);
	return bytes;
}

/* Where it is mapped, without a copy; but for the end, which completes a message. */
static void a_region_is_used_where_it_is_mapped(void **state)
{
	int64_t bytes;
	bool refused;

	(void)state;
	region_begin();
	while ((bytes = hold_piece(PIECE))) {
		assert_in_range(bytes, 1, PIECE);
		assert_int_equal(in.shared->reader.holds, 1);
		assert_true(coll_exposed_took(&reader, bytes));
		assert_int_equal(in.shared->reader.holds, 0);
	}
	assert_in_range(coll_exposed_waits(&reader), 1, 64);
	bytes = reader.taken;
	assert_int_equal(read_piece(bytes, PIECE), BYTES - bytes);
	assert_memory_equal(got, data, BYTES);
	assert_int_equal(coll_exposed_taken(&writer, &refused), BYTES);
	assert_true(coll_exposed_await_reader(&writer, &owed_until));
	coll_exposed_begin(&writer, data, BYTES);	/* in no region */
	assert_int_equal(hold_piece(PIECE), 0);
	assert_int_equal(in.shared->reader.holds, 0);
	coll_exposed_withdraw(&writer);
	assert_int_equal(hold_piece(PIECE), 0);
	region_end();
}

enum { READERS = 10 };

/* A reader that stands still for too long, and then finds that it has used what it should not. */
static void a_writer_does_not_wait_for_ever(void **state)
{
	const uint64_t start = coll_now();
	uint64_t waited;

	(void)state;
	region_begin();
	assert_int_equal(hold_piece(PIECE), PIECE);
	coll_exposed_move(&writer, 0, data);
	assert_false(coll_exposed_await_reader(&writer, &owed_until));
	waited = coll_now() - start;
	assert_in_range(waited, COLL_SECOND / 2, 60 * COLL_SECOND);
	assert_false(coll_exposed_took(&reader, PIECE));
	region_end();
}

/* Nor again for one that it has left, whatever that stores since; and the next ones have less of its time. */
static void many_readers_that_hold_take_little_more(void **state)
{
	const uint64_t start = coll_now();
	uint64_t first, all, again;
	int i;

	(void)state;
	region_begin();
	owed_until = 0;
	in.shared->reader.holds = 1;
	assert_false(coll_exposed_await_reader(&writer, &owed_until));
	first = coll_now() - start;
	out.shared->writer.leaves = 0;
	assert_false(coll_exposed_await_reader(&writer, &owed_until));
	again = coll_now() - start - first;
	assert_int_equal(out.shared->writer.leaves, 1);
	for (i = 0; i < READERS; i++) {		/* each has a writer of its own */
		writer.left = false;
		out.shared->writer.leaves = 0;
		assert_false(coll_exposed_await_reader(&writer, &owed_until));
	}
	all = coll_now() - start - first - again;
	assert_in_range(first, COLL_SECOND / 2, 60 * COLL_SECOND);
	assert_true(again < first / 2);
	assert_true(all < READERS / 2 * first);
	in.shared->reader.holds = 0;
	assert_true(coll_exposed_await_reader(&writer, &owed_until));
	region_end();
}

/* A writer that lies of where its bytes are: nothing beyond the region is touched. */
static void a_place_that_is_impossible(void **state)
{
	static const uint64_t places[][2] = {	/* region, offset */
		{ 1, UINT64_MAX }, { 1, UINT64_MAX - BYTES }, { 1, 4 << 20 }, { 1, (4 << 20) - PIECE + 1 },
		{ 2, 0 }, { UINT64_MAX, 0 }, { 1ull << 32 | 1, 0 },
	};
	int i;

	(void)state;
	region_begin();
	for (i = 0; i < 7; i++) {
		reader.refused = 0;
		out.shared->writer.region = places[i][0];
		out.shared->writer.offset = places[i][1];
		assert_int_equal(coll_exposed_waits(&reader), BYTES);
		assert_int_equal(read_piece(0, PIECE), 0);
		assert_int_equal(reader.refused, COLL_EXPOSED_REGION);
		assert_int_equal(coll_exposed_waits(&reader), 0);
	}
	region_end();
}

/* ---- two threads ----------------------------------------------------------- */

enum { ROUNDS = 300 };

/* Exposes, and has the memory back after a while, which it overwrites. */
static void *write_all(void *unused)
{
	static uint8_t copy[BYTES], mine[BYTES];
	bool refused;
	int round, i;

	(void)unused;
	for (round = 0; round < ROUNDS; round++) {
		int64_t taken;

		for (i = 0; i < BYTES; i++)
			mine[i] = round + i;
		coll_exposed_begin(&writer, mine, BYTES);
		for (i = 0; i < round % 50 * 100; i++)
			taken = coll_exposed_taken(&writer, &refused);
		taken = coll_exposed_taken(&writer, &refused);
		memcpy(copy + taken, mine + taken, BYTES - taken);
		coll_exposed_move(&writer, taken, copy + taken);
		memset(mine, 0xee, BYTES);
		while (coll_exposed_taken(&writer, &refused) != BYTES - taken)
			assert_false(refused);
	}
	return NULL;
}

/* The same in a region, which it waits for. */
static void *write_all_there(void *unused)
{
	static uint8_t copy[BYTES];
	bool refused;
	int round, i;

	(void)unused;
	for (round = 0; round < ROUNDS; round++) {
		int64_t taken;

		for (i = 0; i < BYTES; i++)
			block[i] = round + i;
		coll_exposed_begin_there(&writer, block, BYTES, 1, block_at);
		for (i = 0; i < round % 50 * 100; i++)
			taken = coll_exposed_taken(&writer, &refused);
		do {			/* sometimes not before the reader has held a piece, however late it is */
			taken = coll_exposed_taken(&writer, &refused);
		} while (!taken && round % 50 == 49);
		memcpy(copy + taken, block + taken, BYTES - taken);
		coll_exposed_move(&writer, taken, copy + taken);
		assert_true(coll_exposed_await_reader(&writer, &owed_until));
		memset(block, 0xee, BYTES);
		while (coll_exposed_taken(&writer, &refused) != BYTES - taken)
			assert_false(refused);
	}
	return NULL;
}

static uint64_t wrong_bytes(const uint8_t *there, uint64_t at, uint64_t bytes, int round)
{
	uint64_t wrong = 0, i;

	for (i = 0; i < bytes; i++)
		wrong += there[i] != (uint8_t)(round + at + i);
	return wrong;
}

/* What is held is looked at in place: it stays until then. */
static void no_held_byte_is_of_another_time(void **state)
{
	uint64_t held = 0, first;
	pthread_t thread;
	int round;

	(void)state;
	region_begin();
	reader.pid = getpid();
	coll_exposed_stop(&writer, 0);
	first = reader.taken;
	assert_int_equal(pthread_create(&thread, NULL, write_all_there, NULL), 0);
	for (round = 0; round < ROUNDS; round++) {
		while (reader.taken - first < (uint64_t)BYTES * (round + 1)) {
			const uint64_t at = reader.taken - first - (uint64_t)BYTES * round;
			const uint8_t *there;
			int64_t bytes;

			if (!coll_exposed_waits(&reader))
				continue;
			bytes = coll_exposed_hold(&reader, 5000, &there);
			if (bytes) {
				assert_int_equal(wrong_bytes(there, at, bytes, round), 0);
				assert_true(coll_exposed_took(&reader, bytes));
				held += bytes;
				continue;
			}
			bytes = read_piece(at, BYTES - at < 5000 ? BYTES - at : 5000);
			assert_int_equal(wrong_bytes(got + at, at, bytes, round), 0);
		}
	}
	pthread_join(thread, NULL);
	assert_true(held > 0);
	region_end();
}

static void no_byte_is_of_another_time(void **state)
{
	pthread_t thread;
	int round, i;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, write_all, NULL), 0);
	for (round = 0; round < ROUNDS; round++) {
		uint64_t at = 0;

		while (at < BYTES)
			if (coll_exposed_waits(&reader))
				at += read_piece(at, BYTES - at < 5000 ? BYTES - at : 5000);
		for (i = 0; i < BYTES; i++)
			assert_int_equal(got[i], (uint8_t)(round + i));
	}
	pthread_join(thread, NULL);
}

/* ---- a writer that is killed ------------------------------------------------ */

enum { KILLS = 200, STREAM = 64 << 20 };

static uint8_t stream_byte(uint64_t at)
{
	return at * 31 + (at >> 9);
}

static void fill(uint8_t *to, uint64_t at, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		to[i] = stream_byte(at + i);
}

/* Bytes of a stream, some through the ring, some exposed, some moved while they are exposed. */
static void write_until_killed(void *place)
{
	static uint8_t mine[BYTES], copy[BYTES];
	uint64_t at = 0;
	bool refused;
	int turn;

	coll_ring_init(&out, place, SIZE);
	coll_exposed_init(&writer, &out);
	for (turn = 0; at < STREAM; turn++) {
		const size_t bytes = turn % 3 ? 1 + turn * 37 % SIZE : BYTES - turn % 1000;
		int64_t taken = 0;

		fill(mine, at, bytes);
		if (turn % 3) {
			const struct iovec iov = { mine, bytes };

			at += coll_ring_write(&out, &iov, 1);
			continue;
		}
		coll_exposed_begin(&writer, mine, bytes);
		if (turn % 2) {
			taken = coll_exposed_taken(&writer, &refused);
			memcpy(copy + taken, mine + taken, bytes - taken);
			coll_exposed_move(&writer, taken, copy + taken);
			memset(mine, 0xee, bytes);
		}
		while (coll_exposed_taken(&writer, &refused) != (int64_t)bytes - taken)
			;
		at += bytes;
	}
	_exit(0);
}

/* Reads what there is. Returns bytes; what they are is checked. */
static uint64_t read_some(uint64_t at)
{
	const uint8_t *there = got;
	int64_t bytes = coll_ring_peek(&in, &there), i;
	const bool from_ring = bytes > 0;

	if (!bytes && coll_exposed_waits(&reader))
		bytes = read_piece(0, PIECE), there = got;
	assert_true(bytes >= 0);
	for (i = 0; i < bytes; i++)
		if (there[i] != stream_byte(at + i))
			fail_msg("byte %llu of the stream is another", (unsigned long long)(at + i));
	if (from_ring)
		coll_ring_consume(&in, bytes);
	return bytes;
}

/* At any store: what its reader finds then is the beginning of the stream, and an end. */
static void a_killed_writer_leaves_nothing_wrong(void **state)
{
	const size_t bytes = (coll_ring_bytes(SIZE) + 127) & ~(size_t)127;
	uint64_t all = 0;
	int i;

	(void)state;
	for (i = 0; i < KILLS; i++) {
		void *place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		uint64_t at = 0, some, stop = i * 5003;
		int pid;

		assert_true(place != MAP_FAILED);
		pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			write_until_killed(place);
		coll_ring_init(&in, place, SIZE);
		coll_exposed_attach(&reader, &in, pid);
		while (at < stop)
			at += read_some(at);
		kill(pid, SIGKILL);
		if (i % 2)
			waitpid(pid, NULL, 0);
		while ((some = read_some(at)))
			at += some;
		if (!(i % 2))
			waitpid(pid, NULL, 0);
		while ((some = read_some(at)))
			at += some;
		assert_int_equal(coll_exposed_waits(&reader) > 0 ? read_some(at) : 0, 0);
		all += at;
		munmap(place, bytes);
	}
	assert_true(all > KILLS);
}

#define exposed_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		exposed_test(it_comes_whole_after_the_ring),
		exposed_test(its_writer_has_it_back),
		exposed_test(who_cannot_read_says_so),
		exposed_test(an_unknown_process_is_not_read),
		exposed_test(a_successor_is_not_read),
		exposed_test(memory_that_is_not_there),
		exposed_test(what_is_impossible),
		exposed_test(a_region_is_read_where_it_is_mapped),
		exposed_test(a_region_that_is_left),
		exposed_test(a_region_that_is_not_mapped),
		exposed_test(a_region_is_used_where_it_is_mapped),
		exposed_test(a_writer_does_not_wait_for_ever),
		exposed_test(many_readers_that_hold_take_little_more),
		exposed_test(a_place_that_is_impossible),
		exposed_test(no_held_byte_is_of_another_time),
		exposed_test(no_byte_is_of_another_time),
		exposed_test(a_killed_writer_leaves_nothing_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
