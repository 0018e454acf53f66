// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/common/arguments.h"
#include "node/units.h"
#include "thread.h"
#include "watch.h"
#include "node/activity.h"

enum { ROOM = 1 << 20, GLANCE_MS = 100 };

struct noise_watch_options noise_watch_defaults(void)
{
	return (struct noise_watch_options){ .threshold = 200, .capacity = ROOM };
}

/* ---- one thread --------------------------------------------------------------------- */

static int allocate_gaps(struct noise_watcher *watcher, u64 capacity)
{
	struct noise_loop *loop = &watcher->loop;

	watcher->refused = "no memory for events";
	loop->gap = noise_thread_memory(capacity, sizeof(*loop->gap));
	if (!loop->gap)
		return -ENOMEM;
	loop->capacity = capacity;
	mlock(loop->gap, capacity * sizeof(*loop->gap)); /* without effect if it is refused */
	return 0;
}

static int settle_in(struct noise_watcher *watcher)
{
	const struct noise_watch_options *options = &watcher->watch->options;
	int status = noise_thread_bind(watcher->cpu, &watcher->refused);

	if (!status)
		status = allocate_gaps(watcher, options->capacity);
	return status ? status : noise_thread_schedule(&options->policy, &watcher->refused);
}

static void prepare_loop(struct noise_watcher *watcher)
{
	const struct noise_watch_options *options = &watcher->watch->options;
	const struct noise_clock *clock = &watcher->watch->clock;
	struct noise_loop *loop = &watcher->loop;

	watcher->iteration = noise_loop_iteration(clock->counter, &watcher->least);
	loop->counter = clock->counter;
	loop->threshold = noise_clock_ticks(clock, options->threshold) + watcher->iteration;
	loop->limit = noise_clock_ticks(clock, options->stop);
	loop->limit_total = noise_clock_ticks(clock, options->stop_total);
	loop->stop = &watcher->watch->stop;
}

static u64 involuntary_switches(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
}

static void sleep_ticks(const struct noise_clock *clock, u64 ticks)
{
	const u64 ns = noise_clock_ns(clock, ticks);
	const struct timespec time = { ns / NODE_S, ns % NODE_S };

	nanosleep(&time, NULL);
}

/* All the time, or the beginning of each period. */
static void watch_periods(struct noise_watcher *watcher)
{
	struct noise_watch *watch = watcher->watch;
	const u64 period = noise_clock_ticks(&watch->clock, watch->options.period);
	const u64 runtime = noise_clock_ticks(&watch->clock, watch->options.runtime);
	struct noise_loop *loop = &watcher->loop;
	u64 begin = watch->begin, now = begin;

	while (now < watch->end && !watch->stop) {
		const u64 end = period && begin + runtime < watch->end ? begin + runtime :
									 watch->end;

		noise_loop_run(loop, end);
		if (loop->passed) {
			watch->passed = true;
			__atomic_store_n(&watch->stop, true, __ATOMIC_RELAXED);
		}
		now = noise_ticks(loop->counter);
		while (period && begin + period <= now)
			begin += period;
		if (!period || __atomic_load_n(&watch->stop, __ATOMIC_RELAXED))
			break;
		begin += period;
		if (begin > now && begin < watch->end)
			sleep_ticks(&watch->clock, begin - now);
		now = begin;
	}
}

static void warm_up(struct noise_watcher *watcher)
{
	struct noise_loop *loop = &watcher->loop, before = *loop;
	const struct noise_watch *watch = watcher->watch;

	loop->limit = loop->limit_total = 0;
	noise_loop_run(loop, noise_ticks(loop->counter) +
			     noise_clock_ticks(&watch->clock, watch->options.warm_up));
	*loop = before;
}

static void *watch_cpu(void *argument)
{
	struct noise_watcher *watcher = argument;
	struct noise_watch *watch = watcher->watch;
	u64 involuntary, steal, stolen;

	watcher->error = settle_in(watcher);
	if (!watcher->error) {
		prepare_loop(watcher);
		warm_up(watcher);
	}
	pthread_barrier_wait(&watch->ready);	/* all threads have set their errors */
	pthread_barrier_wait(&watch->ready);	/* and the begin is set */
	if (watcher->error || watch->stop)
		return NULL;
	involuntary = involuntary_switches();
	steal = node_steal(watcher->cpu);
	watcher->first = noise_ticks(watcher->loop.counter);
	watch_periods(watcher);
	watcher->end = noise_ticks(watcher->loop.counter);
	watcher->involuntary = involuntary_switches() - involuntary;
	stolen = node_steal(watcher->cpu);
	watcher->steal = stolen > steal ? stolen - steal : 0;	/* a host's account may go back */
	return NULL;
}

/* ---- all threads -------------------------------------------------------------------- */

/* Moves the caller to CPUs that are not watched, if there are any. */
static void leave_watched_cpus(const struct noise_watch_options *options)
{
	struct node_cpus stay;

	if (node_cpus_count(&options->housekeeping)) {
		node_cpus_set_affinity(0, &options->housekeeping);
		return;
	}
	if (node_cpus_affinity(0, &stay))
		return;
	node_cpus_remove(&stay, &options->cpus);
	if (node_cpus_count(&stay))
		node_cpus_set_affinity(0, &stay);
}

static int start_threads(struct noise_watch *watch)
{
	u32 cpu = node_cpus_next(&watch->options.cpus, 0), started = 0;
	int status = 0;

	for (; cpu < NODE_CPUS_MAX; cpu = node_cpus_next(&watch->options.cpus, cpu + 1)) {
		struct noise_watcher *watcher = &watch->watcher[started];

		*watcher = (struct noise_watcher){ .watch = watch, .cpu = cpu };
		status = -pthread_create(&watcher->thread, NULL, watch_cpu, watcher);
		if (status)
			return status;	/* running threads wait forever: exit follows */
		started++;
	}
	return 0;
}

static int first_error(const struct noise_watch *watch, const char *command)
{
	u32 i;

	for (i = 0; i < watch->watchers; i++) {
		const struct noise_watcher *watcher = &watch->watcher[i];

		if (!watcher->error)
			continue;
		return noise_thread_refuse(command, watcher->cpu, watcher->refused,
					   watcher->error);
	}
	return 0;
}

static void join_threads(struct noise_watch *watch)
{
	u32 i;

	for (i = 0; i < watch->watchers; i++)
		pthread_join(watch->watcher[i].thread, NULL);
}

int noise_watch_begin(struct noise_watch *watch, const struct noise_watch_options *options,
		      const char *command)
{
	int status;

	*watch = (struct noise_watch){ .options = *options };
	watch->watchers = node_cpus_count(&options->cpus);
	watch->watcher = calloc(watch->watchers, sizeof(*watch->watcher));
	if (!watch->watcher)
		return -ENOMEM;
	leave_watched_cpus(options);
	noise_clock_open(&watch->clock);
	pthread_barrier_init(&watch->ready, NULL, watch->watchers + 1);
	status = start_threads(watch);
	if (status) {
		fprintf(stderr, "%s %s: no threads: %s\n", argument_program, command,
			strerror(-status));
		exit(1);
	}
	pthread_barrier_wait(&watch->ready);
	status = first_error(watch, command);
	watch->stop = status != 0;
	if (!status && options->ready)
		options->ready(options->ready_argument);
	watch->begin = noise_ticks(watch->clock.counter);
	watch->end = watch->begin + noise_clock_ticks(&watch->clock, options->duration);
	pthread_barrier_wait(&watch->ready);
	if (status)
		join_threads(watch);
	return status;
}

static volatile sig_atomic_t interrupted;

static void watch_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

static void show_progress(const struct noise_watch *watch, u64 now, bool last)
{
	const u64 done = noise_clock_ns(&watch->clock, now - watch->begin);
	u64 events = 0;
	u32 i;

	if (watch->options.quiet || !isatty(STDERR_FILENO))
		return;
	for (i = 0; i < watch->watchers; i++)
		events += __atomic_load_n(&watch->watcher[i].loop.gaps, __ATOMIC_RELAXED);
	if (last)
		fprintf(stderr, "\r\033[K");
	else
		fprintf(stderr, "\r%.0f s of %.0f s, %llu events\033[K", done / 1e9,
			watch->options.duration / 1e9, (unsigned long long)events);
}

int noise_watch_wait(struct noise_watch *watch)
{
	struct sigaction action = { .sa_handler = watch_interrupt }, before[2];
	u64 now = noise_ticks(watch->clock.counter);

	sigaction(SIGINT, &action, &before[0]);
	sigaction(SIGTERM, &action, &before[1]);
	while (now < watch->end && !__atomic_load_n(&watch->stop, __ATOMIC_RELAXED)) {
		const u64 glance = noise_clock_ticks(&watch->clock, GLANCE_MS * NODE_MS);

		sleep_ticks(&watch->clock, watch->end - now < glance ? watch->end - now : glance);
		now = noise_ticks(watch->clock.counter);
		show_progress(watch, now, false);
		if (interrupted) {
			watch->interrupted = true;
			__atomic_store_n(&watch->stop, true, __ATOMIC_RELAXED);
		}
	}
	join_threads(watch);
	show_progress(watch, now, true);
	sigaction(SIGINT, &before[0], NULL);
	sigaction(SIGTERM, &before[1], NULL);
	noise_clock_settle(&watch->clock);
	return 0;
}

void noise_watch_free(struct noise_watch *watch)
{
	u32 i;

	for (i = 0; i < watch->watchers; i++)
		if (watch->watcher[i].loop.gap)
			munmap(watch->watcher[i].loop.gap,
			       watch->watcher[i].loop.capacity * sizeof(struct noise_gap));
	free(watch->watcher);
	pthread_barrier_destroy(&watch->ready);
}

/* ---- the capture --------------------------------------------------------------------- */

static int capture_cpu(const struct noise_watcher *watcher, u64 epoch,
		       struct node_capture *capture)
{
	const struct noise_clock *clock = &watcher->watch->clock;
	const struct noise_loop *loop = &watcher->loop;
	const struct coll_noise_cpu cpu = {
		.cpu = watcher->cpu,
		.loop = noise_clock_ns(clock, watcher->iteration * 1000),
		.first = noise_clock_wall(clock, watcher->first) - epoch,
		.watched = noise_clock_ns(clock, loop->watched),
		.lost = loop->lost,
	};
	u64 i;
	int status = node_capture_add_cpu(capture, &cpu);

	for (i = 0; !status && i < loop->gaps; i++) {
		const struct noise_gap *gap = &loop->gap[i];
		const u64 length =
			noise_clock_ns(clock, gap->end - gap->begin - watcher->iteration);

		status = node_capture_add_event(capture,
						noise_clock_wall(clock, gap->begin) - epoch,
						length, watcher->cpu, COLL_NOISE_UNKNOWN, 0);
	}
	return status;
}

int noise_watch_capture(const struct noise_watch *watch, struct node_capture *capture)
{
	int status = 0;
	u32 i;

	node_capture_init(capture);
	capture->head.epoch = noise_clock_wall(&watch->clock, watch->begin);
	capture->head.threshold = watch->options.threshold;
	for (i = 0; !status && i < watch->watchers; i++)
		status = capture_cpu(&watch->watcher[i], capture->head.epoch, capture);
	return status ? status : node_capture_finish(capture);
}
