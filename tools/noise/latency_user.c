// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tools/common/arguments.h"
#include "clock.h"
#include "latency.h"
#include "node/units.h"
#include "thread.h"

enum { STACK_BYTES = 256 * 1024 };

struct sleeper {
	pthread_t thread;
	const struct noise_latency_options *options;
	struct noise_latency *latency;
	struct noise_latency_cpu *cpu;
	struct sleepers *all;
	const char *refused;		/* what failed with `error` */
	int error;
};

struct sleepers {
	pthread_barrier_t ready;
	u64 end;			/* CLOCK_MONOTONIC */
	bool stop;
	struct sleeper *sleeper;
};

static void sleep_until(u64 time)
{
	const struct timespec until = { time / NODE_S, time % NODE_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/* The first one to pass the threshold stops all. */
static void sleeper_passed(struct sleeper *sleeper, u64 due, u64 late)
{
	struct noise_passed *passed = &sleeper->latency->passed;

	if (__atomic_exchange_n(&sleeper->all->stop, true, __ATOMIC_RELAXED))
		return;
	passed->any = true;
	passed->threshold = sleeper->options->stop;
	passed->one = (struct noise_case){ .cpu = sleeper->cpu->cpu, .start = due, .total = late };
}

static void sleeper_run(struct sleeper *sleeper)
{
	const u64 period = sleeper->options->period, stop = sleeper->options->stop;
	struct noise_stage *stage = &sleeper->cpu->stage[COLL_WATCH_THREAD];
	u64 due = noise_clock_read(CLOCK_MONOTONIC) + period, now, passed;

	while (due < sleeper->all->end && !noise_latency_interrupted &&
	       !__atomic_load_n(&sleeper->all->stop, __ATOMIC_RELAXED)) {
		sleep_until(due);
		now = noise_clock_read(CLOCK_MONOTONIC);
		noise_stage_add(stage, now - due);
		if (stop && now - due > stop)
			sleeper_passed(sleeper, due, now - due);
		passed = (now - due) / period;
		sleeper->cpu->missed += passed;
		due += (1 + passed) * period;
	}
}

/* Its counters are written before, so that no page is missing later. */
static int sleeper_settle(struct sleeper *sleeper)
{
	int status = noise_thread_bind(sleeper->cpu->cpu, &sleeper->refused);

	return status ? status : noise_thread_schedule(&sleeper->options->policy, &sleeper->refused);
}

static void *sleeper_thread(void *argument)
{
	struct sleeper *sleeper = argument;

	sleeper->error = sleeper_settle(sleeper);
	pthread_barrier_wait(&sleeper->all->ready);	/* all have set their errors */
	pthread_barrier_wait(&sleeper->all->ready);	/* and the end is set */
	if (!sleeper->all->stop)
		sleeper_run(sleeper);
	return NULL;
}

static int first_error(const struct sleepers *all, u32 count)
{
	const struct sleeper *sleeper;

	for (sleeper = all->sleeper; sleeper < all->sleeper + count; sleeper++)
		if (sleeper->error)
			return noise_thread_refuse(sleeper->options->command, sleeper->cpu->cpu,
						   sleeper->refused, sleeper->error);
	return 0;
}

static int start_sleepers(struct sleepers *all, const struct noise_latency_options *options,
			  struct noise_latency *latency)
{
	pthread_attr_t attributes;
	int error = 0;
	u32 i;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (i = 0; i < latency->cpus && !error; i++) {
		all->sleeper[i] = (struct sleeper){ .options = options, .latency = latency,
						    .cpu = &latency->cpu[i], .all = all };
		error = pthread_create(&all->sleeper[i].thread, &attributes, sleeper_thread,
				       &all->sleeper[i]);
	}
	pthread_attr_destroy(&attributes);
	return -error;
}

int noise_latency_user(const struct noise_latency_options *options, struct noise_latency *latency)
{
	struct sleepers all = { .sleeper = calloc(latency->cpus, sizeof(*all.sleeper)) };
	u64 begin;
	int error;
	u32 i;

	if (!all.sleeper)
		return -ENOMEM;
	latency->policy = options->policy;
	mlockall(MCL_CURRENT | MCL_FUTURE);	/* without effect if it is refused */
	pthread_barrier_init(&all.ready, NULL, latency->cpus + 1);
	error = start_sleepers(&all, options, latency);
	if (error) {
		fprintf(stderr, "%s %s: no threads: %s\n", argument_program, options->command,
			strerror(-error));
		exit(1);	/* those that run wait for the others */
	}
	pthread_barrier_wait(&all.ready);
	error = first_error(&all, latency->cpus);
	all.stop = error != 0;
	begin = noise_clock_read(CLOCK_MONOTONIC);
	all.end = begin + options->duration;
	pthread_barrier_wait(&all.ready);
	for (i = 0; i < latency->cpus; i++)
		pthread_join(all.sleeper[i].thread, NULL);
	latency->took = noise_clock_read(CLOCK_MONOTONIC) - begin;
	latency->interrupted = noise_latency_interrupted;
	pthread_barrier_destroy(&all.ready);
	free(all.sleeper);
	return error;
}
