// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A thread that sleeps in the io_uring engine hears its bells (libcoll/engine/ring.h,
 * uring_bell.c). Where the kernel has no such op it says that it hears nothing.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/engine/engine.h"
#include "libcoll/engine/ring.h"

enum { SIZE = 4096, BELLS = 3, ROUNDS = 300 };

static struct coll_counters counters;
static struct coll_engine engine;
static struct coll_ring ring[BELLS];
static struct coll_bell bell[BELLS];
static uint8_t *map;

/* ---- an engine with bells ---------------------------------------------------------------- */

static size_t stride(void)
{
	return (coll_ring_bytes(SIZE) + 127) & ~(size_t)127;
}

static int begin(void **state)
{
	int i;

	(void)state;
	counters = (struct coll_counters){ 0 };
	engine = (struct coll_engine){ .ops = &coll_engine_uring, .counters = &counters,
				       .next_check = COLL_FOREVER };
	map = mmap(NULL, BELLS * stride(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(map != MAP_FAILED);
	for (i = 0; i < BELLS; i++) {
		coll_ring_init(&ring[i], map + i * stride(), SIZE);
		bell[i] = (struct coll_bell){ .word = coll_ring_bell(&ring[i]) };
	}
	if (engine.ops->open(&engine)) {
		engine.ops = NULL;
		skip();			/* io_uring is forbidden here */
	}
	return 0;
}

static int end(void **state)
{
	int i;

	(void)state;
	for (i = 0; engine.ops && i < BELLS; i++)
		engine.ops->unhear(&engine, &bell[i]);
	if (engine.ops)
		coll_engine_close(&engine);
	munmap(map, BELLS * stride());
	return 0;
}

static void hear_all_or_skip(void)
{
	int i;

	for (i = 0; i < BELLS; i++)
		if (!engine.ops->hear(&engine, &bell[i]))
			skip();		/* Linux before 6.7 */
}

/* Sleeps for good, unless it is woken. */
static void sleep_once(void)
{
	assert_int_equal(coll_engine_advance(&engine, COLL_FOREVER), 0);
}

/* ---- tests ------------------------------------------------------------------------------- */

/* Between hear() and the sleep: the kernel sees that the word has changed. */
static void one_that_rang_before_the_sleep_ends_it(void **state)
{
	(void)state;
	hear_all_or_skip();
	coll_ring_ring_bell(&ring[1]);
	sleep_once();
}

static void a_quiet_one_lets_it_sleep(void **state)
{
	(void)state;
	hear_all_or_skip();
	assert_int_equal(coll_engine_advance(&engine, coll_now() + 1000000), 0);
	assert_true(coll_now() >= engine.now);
	hear_all_or_skip();
	coll_ring_ring_bell(&ring[2]);
	sleep_once();
}

/* What waits in the kernel is left there: one enter a sleep, and none to hear again. */
static void to_hear_again_costs_nothing(void **state)
{
	uint64_t enters;
	int i;

	(void)state;
	hear_all_or_skip();
	coll_engine_advance(&engine, coll_now() + 1000000);
	enters = counters.enters;
	for (i = 0; i < 100; i++)
		hear_all_or_skip();
	assert_int_equal(counters.enters, enters);
	coll_ring_ring_bell(&ring[0]);
	sleep_once();
	assert_in_range(counters.enters, enters + 1, enters + 2);
}

/* Its memory may be gone while the kernel still waits. */
static void one_may_be_withdrawn_while_it_is_awaited(void **state)
{
	(void)state;
	hear_all_or_skip();
	coll_engine_advance(&engine, coll_now() + 1000000);
	engine.ops->unhear(&engine, &bell[0]);
	memset((void *)(uintptr_t)bell[0].word, 1, sizeof(*bell[0].word));
	coll_engine_advance(&engine, coll_now() + 1000000);
	coll_ring_ring_bell(&ring[1]);
	sleep_once();
	assert_true(engine.ops->hear(&engine, &bell[0]));
	coll_ring_ring_bell(&ring[0]);
	sleep_once();
}

/* Another thread takes the engine over: nothing is left in the kernel, and it hears as before. */
static void threads_may_change(void **state)
{
	(void)state;
	hear_all_or_skip();
	coll_engine_advance(&engine, coll_now() + 1000000);
	coll_engine_let_go(&engine);
	coll_engine_take(&engine);
	hear_all_or_skip();
	coll_ring_ring_bell(&ring[2]);
	sleep_once();
}

/* A peer: rings as often as it is told to, each time somewhere else, and only who sleeps. */
static void *peer(void *unused)
{
	int round;

	(void)unused;
	for (round = 1; round <= ROUNDS; round++) {
		struct coll_ring *to = &ring[round % BELLS];

		while (coll_ring_wakes_reader(to) != COLL_RING_AWAITS_BELL)
			usleep(10);
		__atomic_store_n(&to->shared->writer.count, round, __ATOMIC_SEQ_CST);
		coll_ring_ring_bell(to);
	}
	return NULL;
}

static uint64_t round_seen(void)
{
	uint64_t most = 0;
	int i;

	for (i = 0; i < BELLS; i++) {
		const uint64_t count =
			__atomic_load_n(&ring[i].shared->writer.count, __ATOMIC_SEQ_CST);

		most = count > most ? count : most;
	}
	return most;
}

/* Each round waits for the one before: one wake-up that is lost, and the test never ends. */
static void no_wake_up_is_lost(void **state)
{
	pthread_t thread;
	uint64_t round;

	(void)state;
	hear_all_or_skip();
	assert_int_equal(pthread_create(&thread, NULL, peer, NULL), 0);
	for (round = 1; round <= ROUNDS; round++)
		while (round_seen() < round) {
			hear_all_or_skip();
			__atomic_store_n(&ring[round % BELLS].shared->reader.sleeps,
					 COLL_RING_AWAITS_BELL, __ATOMIC_SEQ_CST);
			if (round_seen() < round)
				sleep_once();
		}
	pthread_join(thread, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(one_that_rang_before_the_sleep_ends_it),
		TEST(a_quiet_one_lets_it_sleep),
		TEST(to_hear_again_costs_nothing),
		TEST(one_may_be_withdrawn_while_it_is_awaited),
		TEST(threads_may_change),
		TEST(no_wake_up_is_lost),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
