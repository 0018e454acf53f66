// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The ring of bytes between two processes: order, wrapping, what a hostile side stores, and two
 * threads that sleep and wake each other as engines do.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/engine/ring.h"

enum { SIZE = 4096, ALL = 8 << 20, PIECE_MAX = 3000 };

static struct coll_ring writer, reader;
/* The ring back, in which the bell of the writer is: what each of the two has of it. */
static struct coll_ring back_reader, back_writer;

static int begin(void **state)
{
	const size_t stride = (coll_ring_bytes(SIZE) + 127) & ~(size_t)127;
	uint8_t *place = aligned_alloc(128, 2 * stride);

	assert_non_null(place);
	memset(place, 0, 2 * stride);
	coll_ring_init(&writer, place, SIZE);
	coll_ring_init(&reader, place, SIZE);
	coll_ring_init(&back_writer, place + stride, SIZE);
	coll_ring_init(&back_reader, place + stride, SIZE);
	*state = place;
	return 0;
}

static int end(void **state)
{
	free(*state);
	return 0;
}

static ssize_t write_bytes(const void *data, size_t bytes)
{
	return coll_ring_write(&writer, &(struct iovec){ (void *)data, bytes }, 1);
}

/* As much as lies together and fits. */
static ssize_t read_bytes(void *to, size_t bytes)
{
	const uint8_t *there;
	ssize_t got = coll_ring_peek(&reader, &there);

	if (got <= 0 || !bytes)
		return got < 0 ? got : 0;
	got = (size_t)got < bytes ? got : (ssize_t)bytes;
	memcpy(to, there, got);
	coll_ring_consume(&reader, got);
	return got;
}

static void bytes_keep_their_order(void **state)
{
	uint8_t in[PIECE_MAX], out[PIECE_MAX];
	uint64_t sent = 0, got = 0, i, round;

	(void)state;
	for (round = 0; round < 3000; round++) {
		struct iovec iov[3] = { { in, round * 7 % 1000 }, { in + 1000, 0 },
					{ in + 1000, round * 13 % 2000 } };
		ssize_t bytes, part;

		for (i = 0; i < iov[0].iov_len; i++)
			in[i] = sent + i;
		for (i = 0; i < iov[2].iov_len; i++)
			in[1000 + i] = sent + iov[0].iov_len + i;
		bytes = coll_ring_write(&writer, iov, 3);
		assert_true(bytes >= 0);
		sent += bytes;
		part = read_bytes(out, round * 31 % PIECE_MAX);
		assert_true(part >= 0);
		for (i = 0; i < (uint64_t)part; i++)
			assert_int_equal(out[i], (uint8_t)(got + i));
		got += part;
		assert_int_equal(coll_ring_available(&reader) + got <= sent, 1);
	}
	assert_true(got > 100 * SIZE);
}

static void a_full_ring_takes_no_more(void **state)
{
	static const uint8_t data[2 * SIZE];
	const uint8_t *there;

	(void)state;
	assert_int_equal(write_bytes(data, sizeof(data)), SIZE);
	assert_int_equal(write_bytes(data, 1), 0);
	assert_int_equal(coll_ring_space(&writer), 0);
	assert_int_equal(coll_ring_peek(&reader, &there), SIZE);
	coll_ring_consume(&reader, SIZE / 4 - 1);
	assert_int_equal(write_bytes(data, SIZE), 0);	/* the writer does not know yet */
	coll_ring_consume(&reader, 1);
	assert_int_equal(write_bytes(data, SIZE), SIZE / 4);
}

static void who_sleeps_is_woken_once(void **state)
{
	const uint8_t *there;

	(void)state;
	assert_true(coll_ring_await_bytes(&reader, COLL_RING_AWAITS_BYTE));
	assert_int_equal(write_bytes("x", 1), 1);
	assert_int_equal(coll_ring_wakes_reader(&writer), COLL_RING_AWAITS_BYTE);
	assert_int_equal(coll_ring_wakes_reader(&writer), COLL_RING_AWAKE);
	assert_false(coll_ring_await_bytes(&reader, COLL_RING_AWAITS_BYTE));	/* there are bytes */
	coll_ring_reader_awake(&reader);
	assert_int_equal(write_bytes((uint8_t[SIZE]){ 0 }, SIZE), SIZE - 1);
	assert_true(coll_ring_await_space(&writer, COLL_RING_AWAITS_BELL));
	assert_int_equal(coll_ring_peek(&reader, &there), 1);	/* as far as it has looked */
	coll_ring_consume(&reader, 1);
	assert_int_equal(coll_ring_peek(&reader, &there), SIZE - 1);
	coll_ring_consume(&reader, SIZE / 8);
	assert_false(coll_ring_wakes_writer(&reader));	/* too little to be worth it */
	coll_ring_consume(&reader, SIZE / 4);
	assert_int_equal(coll_ring_wakes_writer(&reader), COLL_RING_AWAITS_BELL);
	assert_int_equal(coll_ring_wakes_writer(&reader), COLL_RING_AWAKE);
	reader.shared->reader.sleeps = UINT32_MAX;	/* a hostile reader */
	assert_int_equal(coll_ring_wakes_reader(&writer), COLL_RING_AWAITS_BYTE);
}

static void a_hostile_side_is_noticed(void **state)
{
	static const uint64_t lies[] = { SIZE + 1, 1ull << 40, 1ull << 63 };
	const uint8_t *there;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		writer.shared->writer.count = lies[i];
		reader.other = reader.count;
		assert_int_equal(coll_ring_available(&reader), -EPROTO);
		reader.other = reader.count;
		assert_int_equal(coll_ring_peek(&reader, &there), -EPROTO);
		writer.shared->writer.count = 0;
		writer.shared->reader.count = lies[i];
		writer.count = 0;
		writer.other = -SIZE;		/* full, as far as is known */
		assert_int_equal(coll_ring_space(&writer), -EPROTO);
	}
}

/* ---- two threads ------------------------------------------------------------ */

/* How they sleep: by a byte, which an eventfd stands for here, or by bells. */
static enum coll_ring_sleep sleep_by;
static int event[2];			/* of the reader, of the writer */

static void wake(int which, enum coll_ring_sleep sleep)
{
	if (sleep == COLL_RING_AWAITS_BELL)
		coll_ring_ring_bell(which ? &back_writer : &writer);
	else if (sleep)
		assert_int_equal(write(event[which], &(uint64_t){ 1 }, 8), 8);
}

static const uint32_t *bell_of(int which)
{
	return coll_ring_bell(which ? &back_reader : &reader);
}

/* The bell, read before the flag is set. */
static uint32_t bell_read(int which)
{
	return __atomic_load_n(bell_of(which), __ATOMIC_SEQ_CST);
}

static void sleep_until(int which, uint32_t bell)
{
	uint64_t rung;

	if (sleep_by == COLL_RING_AWAITS_BELL)
		syscall(SYS_futex, bell_of(which), FUTEX_WAIT, bell, NULL, NULL, 0);
	else
		assert_int_equal(read(event[which], &rung, 8), 8);
}

static void *read_all(void *unused)
{
	uint64_t got = 0;
	uint8_t out[PIECE_MAX];
	ssize_t part, i;
	uint32_t bell;

	(void)unused;
	while (got < ALL) {
		part = read_bytes(out, sizeof(out));
		for (i = 0; i < part; i++)
			if (out[i] != (uint8_t)((got + i) * 2654435761u >> 24))
				return "a wrong byte";
		got += part;
		if (part)
			wake(1, coll_ring_wakes_writer(&reader));
		bell = bell_read(0);
		if (!part && coll_ring_await_bytes(&reader, sleep_by))
			sleep_until(0, bell);
		coll_ring_reader_awake(&reader);
	}
	return NULL;
}

static void threads_wake_each_other(enum coll_ring_sleep sleep)
{
	pthread_t thread;
	uint64_t sent = 0, i;
	uint8_t in[PIECE_MAX];
	ssize_t part;
	uint32_t bell;
	void *wrong;

	sleep_by = sleep;
	event[0] = eventfd(0, EFD_CLOEXEC);
	event[1] = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(pthread_create(&thread, NULL, read_all, NULL), 0);
	while (sent < ALL) {
		const uint64_t bytes = ALL - sent < sizeof(in) ? ALL - sent : sizeof(in);

		for (i = 0; i < bytes; i++)
			in[i] = (uint8_t)((sent + i) * 2654435761u >> 24);
		part = write_bytes(in, bytes);
		assert_true(part >= 0);
		sent += part;
		if (part)
			wake(0, coll_ring_wakes_reader(&writer));
		bell = bell_read(1);
		if (!part && coll_ring_await_space(&writer, sleep_by))
			sleep_until(1, bell);
		coll_ring_writer_awake(&writer);
	}
	pthread_join(thread, &wrong);
	assert_ptr_equal(wrong, NULL);
	close(event[0]);
	close(event[1]);
}

static void threads_wake_each_other_by_bytes(void **state)
{
	(void)state;
	threads_wake_each_other(COLL_RING_AWAITS_BYTE);
}

static void threads_wake_each_other_by_bells(void **state)
{
	(void)state;
	threads_wake_each_other(COLL_RING_AWAITS_BELL);
	assert_true(*coll_ring_bell(&reader) || *coll_ring_bell(&back_reader));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bytes_keep_their_order, begin, end),
		cmocka_unit_test_setup_teardown(a_full_ring_takes_no_more, begin, end),
		cmocka_unit_test_setup_teardown(who_sleeps_is_woken_once, begin, end),
		cmocka_unit_test_setup_teardown(a_hostile_side_is_noticed, begin, end),
		cmocka_unit_test_setup_teardown(threads_wake_each_other_by_bytes, begin, end),
		cmocka_unit_test_setup_teardown(threads_wake_each_other_by_bells, begin, end),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
