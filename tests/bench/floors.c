// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What this machine takes without any library, least and median over some rounds, in
 * microseconds: a line of memory from thread to thread and back, the same with a futex, a
 * copy and a sum of floats that this core has written, and a copy of what another one has: as a
 * receiver's is. No collective within a node can be faster than these.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 21, TURNS = 2000, SLEEPS = 200, BYTES_MAX = 16 << 20 };

static struct {
	_Alignas(128) uint32_t word;
} line[2];

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void tell(const char *what, double *us)
{
	qsort(us, ROUNDS, sizeof(*us), by_value);
	printf("floor: %-34s %10.2f us (least %.2f)\n", what, us[ROUNDS / 2], us[0]);
}

static void look_for(uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		;
}

static void sleep_for(uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value - 1, NULL, NULL, 0);
}

static void set(uint32_t *word, uint32_t value, int sleeps)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	if (sleeps)
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* A thread of its own answers; both have a core where there are two. */
static void *answer(void *sleeps)
{
	const int turns = sleeps ? SLEEPS : TURNS;
	int i;

	for (i = 1; i <= ROUNDS * turns; i++) {
		(sleeps ? sleep_for : look_for)(&line[0].word, i);
		set(&line[1].word, i, sleeps != NULL);
	}
	return NULL;
}

static void ping_pong(const char *what, int sleeps)
{
	const int turns = sleeps ? SLEEPS : TURNS;
	double us[ROUNDS];
	pthread_t thread;
	int round, i, turn = 0;

	memset(line, 0, sizeof(line));
	if (pthread_create(&thread, NULL, answer, sleeps ? line : NULL))
		exit(1);
	for (round = 0; round < ROUNDS; round++) {
		const double start = now_us();

		for (i = 0; i < turns; i++) {
			set(&line[0].word, ++turn, sleeps);
			(sleeps ? sleep_for : look_for)(&line[1].word, turn);
		}
		us[round] = (now_us() - start) / turns;
	}
	pthread_join(thread, NULL);
	tell(what, us);
}

static void copy_and_sum(size_t bytes)
{
	float *from = malloc(bytes), *to = malloc(bytes);
	double copy[ROUNDS], sum[ROUNDS], start;
	const size_t count = bytes / sizeof(float);
	char what[64];
	size_t i;
	int round;

	if (!from || !to)
		exit(1);
	memset(from, 0, bytes);
	memset(to, 0, bytes);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < count; i++)
			from[i] = round;
		start = now_us();
		memcpy(to, from, bytes);
		copy[round] = now_us() - start;
		start = now_us();
		for (i = 0; i < count; i++)
			to[i] += from[i];
		sum[round] = now_us() - start;
		if (to[count - 1] != 2 * round)
			exit(1);
	}
	snprintf(what, sizeof(what), "copy of %zu KB", bytes >> 10);
	tell(what, copy);
	snprintf(what, sizeof(what), "sum of %zu KB of floats", bytes >> 10);
	tell(what, sum);
	free(from);
	free(to);
}

/* ---- what another core has written -------------------------------------------- */

static struct {
	float *from;
	size_t count;
} written;

static void *writer(void *unused)
{
	int round;
	size_t i;

	for (round = 1; round <= ROUNDS; round++) {
		look_for(&line[0].word, round);
		for (i = 0; i < written.count; i++)
			written.from[i] = round;
		set(&line[1].word, round, 0);
	}
	return unused;
}

static void copy_from_other(size_t bytes)
{
	float *to = malloc(bytes);
	double copy[ROUNDS], start;
	pthread_t thread;
	char what[64];
	int round;

	written.from = malloc(bytes);
	written.count = bytes / sizeof(float);
	memset(line, 0, sizeof(line));
	if (!to || !written.from || pthread_create(&thread, NULL, writer, NULL))
		exit(1);
	memset(to, 0, bytes);
	for (round = 1; round <= ROUNDS; round++) {
		set(&line[0].word, round, 0);
		look_for(&line[1].word, round);
		start = now_us();
		memcpy(to, written.from, bytes);
		copy[round - 1] = now_us() - start;
		if (to[written.count - 1] != round)
			exit(1);
	}
	pthread_join(thread, NULL);
	snprintf(what, sizeof(what), "copy of %zu KB of another core's", bytes >> 10);
	tell(what, copy);
	free(written.from);
	free(to);
}

int main(void)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t bytes;

	if (cores > 1)
		ping_pong("a line, there and back", 0);
	else
		printf("floor: one core: no line from core to core\n");
	ping_pong("a futex, there and back", 1);
	for (bytes = 64 << 10; bytes <= BYTES_MAX; bytes *= 16) {
		copy_and_sum(bytes);
		if (cores > 1)
			copy_from_other(bytes);
	}
	return 0;
}
