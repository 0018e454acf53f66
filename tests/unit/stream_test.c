// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Whole messages by a deadline, while signals interrupt all the time. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "libcoll/base/stream.h"

enum { PATIENCE_MS = 20000, BYTES = 4 << 20 };

struct pair {
	int end[2];
};

static void pair_open(struct pair *pair)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair->end), 0);
}

static void pair_close(struct pair *pair)
{
	close(pair->end[0]);
	close(pair->end[1]);
}

static uint64_t in_ms(int ms)
{
	return coll_now() + ms * 1000000ull;
}

static void ignore(int number)
{
	(void)number;
}

/* A signal every `us`; 0: no more. */
static void interrupt_every(int us)
{
	const struct itimerval timer = { { 0, us }, { 0, us } };

	signal(SIGALRM, ignore);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void *send_late(void *argument)
{
	const struct pair *pair = argument;
	char byte;

	for (byte = 'a'; byte < 'i'; byte++) {
		usleep(20000);
		if (coll_stream_send(pair->end[1], &byte, 1, in_ms(PATIENCE_MS)))
			break;
	}
	return NULL;
}

static void a_signal_does_not_end_a_receive(void **state)
{
	struct pair pair;
	pthread_t sender;
	char text[8];

	(void)state;
	pair_open(&pair);
	interrupt_every(3000);
	assert_int_equal(pthread_create(&sender, NULL, send_late, &pair), 0);
	assert_int_equal(coll_stream_receive(pair.end[0], text, 8, in_ms(PATIENCE_MS)), 0);
	interrupt_every(0);
	pthread_join(sender, NULL);
	assert_memory_equal(text, "abcdefgh", 8);
	pair_close(&pair);
}

static void signals_do_not_move_the_deadline(void **state)
{
	struct pair pair;
	uint64_t begin;
	char byte;

	(void)state;
	pair_open(&pair);
	interrupt_every(3000);
	begin = coll_now();
	assert_int_equal(coll_stream_receive(pair.end[0], &byte, 1, in_ms(100)), -ETIMEDOUT);
	interrupt_every(0);
	assert_true(coll_now() - begin >= 100 * 1000000ull);
	assert_true(coll_now() - begin < PATIENCE_MS * 1000000ull);
	pair_close(&pair);
}

static void *receive_all(void *argument)
{
	const struct pair *pair = argument;
	char *data = calloc(1, BYTES);
	const int error = coll_stream_receive(pair->end[0], data, BYTES, in_ms(PATIENCE_MS));
	const long wrong = error ? error : memcmp(data, data + 1, BYTES - 1) || *data != 7;

	free(data);
	return (void *)wrong;
}

static void what_fills_the_socket_goes_out_in_parts(void **state)
{
	struct pair pair;
	pthread_t receiver;
	char *data = malloc(BYTES);
	void *wrong;

	(void)state;
	memset(data, 7, BYTES);
	pair_open(&pair);
	assert_int_equal(coll_stream_send(pair.end[1], data, BYTES, in_ms(50)), -ETIMEDOUT);
	pair_close(&pair);

	pair_open(&pair);
	interrupt_every(3000);
	assert_int_equal(pthread_create(&receiver, NULL, receive_all, &pair), 0);
	assert_int_equal(coll_stream_send(pair.end[1], data, BYTES, in_ms(PATIENCE_MS)), 0);
	pthread_join(receiver, &wrong);
	interrupt_every(0);
	assert_null(wrong);
	pair_close(&pair);
	free(data);
}

static void a_closed_end_is_told(void **state)
{
	struct pair pair;
	char byte;

	(void)state;
	pair_open(&pair);
	shutdown(pair.end[1], SHUT_RDWR);
	assert_int_equal(coll_stream_receive(pair.end[0], &byte, 1, in_ms(PATIENCE_MS)),
			 -ECONNRESET);
	assert_int_equal(coll_stream_send(pair.end[0], "", 1, in_ms(PATIENCE_MS)), -ECONNRESET);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_does_not_end_a_receive),
		cmocka_unit_test(signals_do_not_move_the_deadline),
		cmocka_unit_test(what_fills_the_socket_goes_out_in_parts),
		cmocka_unit_test(a_closed_end_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
