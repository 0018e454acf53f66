// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Which thread of a process in another namespace of pids makes progress: of the first thousand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "libcoll/flight/find.h"

enum { THREADS = 1100, EARLY = 10 };

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint tid[THREADS];

static void *wait_for_end(void *which)
{
	tid[(uintptr_t)which] = gettid();
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
	return NULL;
}

/* Returns how many there are. */
static uint32_t begin_threads(pthread_t thread[THREADS])
{
	pthread_attr_t small;
	uint32_t count = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	while (count < THREADS && !pthread_create(&thread[count], &small, wait_for_end, (void *)(uintptr_t)count)) {
		while (!tid[count])
			sched_yield();
		count++;
	}
	pthread_attr_destroy(&small);
	return count;
}

static void not_more_threads_are_asked_than_it_takes(void **state)
{
	static struct coll_flight_seen seen;
	static pthread_t thread[THREADS];
	uint32_t count, early, late = 0, i;

	(void)state;
	pthread_mutex_lock(&held);
	count = begin_threads(thread);
	seen.pid = getpid();
	seen.page.pid = getpid() + 1;		/* as of another namespace; its threads are numbered as here */
	seen.page.owner = tid[EARLY];
	early = coll_flight_owner(&seen);
	if (count == THREADS) {
		seen.page.owner = tid[THREADS - 1];
		late = coll_flight_owner(&seen);
	}
	pthread_mutex_unlock(&held);
	for (i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
	if (count < THREADS)
		skip();		/* a limit of this machine */
	assert_int_equal(early, tid[EARLY]);
	assert_int_equal(late, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_more_threads_are_asked_than_it_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
