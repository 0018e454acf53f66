// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Progress by a thread of the library. The application's threads post runs to a ring queue
 * and wait for their ends; the owner takes them out and polls the engine. If the queue is
 * full, they wait. Other requests of the application go the same way, as tasks that it waits
 * for.
 *
 * Two modes: `thread` starts each run at once and progresses all together; `helper` starts
 * the next run when the one before has ended (Threaded Collective Communication), but messages
 * between two ranks at once. Both also answer connecting peers and pings.
 *
 * Length: the two sides of one queue, under one lock.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <poll.h>

#include "core/port.h"
#include "libcoll/base/open_error.h"
#include "libcoll/exec/failure.h"
#include "libcoll/exec/poll.h"
#include "libcoll/base/cpus.h"
#include "libcoll/engine/engine.h"
#include "libcoll/exec/offload.h"
#include "progress.h"
#include "thread.h"
#include "libcoll/exec/run.h"
#include "libcoll/exec/straight.h"
#include "libcoll/exec/survey.h"

enum {
	HANDLES = 64,
	RETRY_NS = 10000000,	/* when a watch failed for lack of memory */
};

/* A request of the application, which waits for it. */
struct thread_task {
	struct thread_task *next;	/* urgent ones */
	void (*function)(void *);
	void *argument;
	bool done;
};

/* One of the two is set. */
struct handle {
	struct coll_run *run;
	struct thread_task *task;
};

struct threaded {
	struct coll_context *context;
	pthread_t thread;		/* the thread, set by its creator */
	pthread_t self;			/* the same, set by itself */
	const struct coll_progress_ops *mode;

	/* Used by both threads, under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t space, done;
	struct handle ring[HANDLES];
	uint32_t head, count;
	struct thread_task *urgent;
	bool parked;			/* the application owns the context */
	pthread_cond_t unparked;
	bool opened;
	int open_error;
	char why[OPTIONS_WHY];
	atomic_int event_fd;		/* for coll_fd(); -1: not in use */

	/* Used by the owner. */
	int wake_fd;
	struct coll_watch wake;
	struct coll_run *runs;
	bool away;			/* it has given the context to the application */
	bool stopped;
};

static struct threaded *threaded_of(const struct coll_context *context)
{
	return context->progress_state;
}

/* Whether the calling thread is the library's and has the context. */
static bool is_owner(const struct threaded *t)
{
	return !t->away && pthread_equal(t->self, pthread_self());
}

/* ---- the owner: runs ------------------------------------------------------------ */

/* The run is the application's again from the unlocking on. */
static void run_ended(struct threaded *t, struct coll_run *run)
{
	const uint64_t one = 1;
	int fd;

	coll_run_ended(run);
	pthread_mutex_lock(&t->lock);
	run->posted = false;
	pthread_cond_broadcast(&t->done);
	pthread_mutex_unlock(&t->lock);
	fd = atomic_load(&t->event_fd);
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return;		/* it is readable already */
}

static void run_begin(struct threaded *t, struct coll_run *run)
{
	int error;

	coll_debug_assert(is_owner(t) && run->posted);
	error = coll_run_plan(run);
	if (!error)
		error = coll_run_begin(run);
	if (error) {
		coll_group_lacks_run(run, error);
		run->status = error;
		run_ended(t, run);
		return;
	}
	run->next = t->runs;
	t->runs = run;
}

/* Reports the runs that have ended. */
static void thread_collect(struct threaded *t)
{
	struct coll_run **slot = &t->runs, *run;

	coll_debug_assert(is_owner(t));
	while ((run = *slot)) {
		if (coll_run_executing(run)) {
			slot = &run->next;
			continue;
		}
		*slot = run->next;
		run_ended(t, run);
	}
}

static void fail_all(struct threaded *t, int error)
{
	struct coll_run *run, *next;

	for (run = t->runs; run; run = next) {
		next = run->next;
		if (run->exec || run->survey)
			coll_run_engine_failed(run, error);
	}
}

/* ---- the owner: its loop ------------------------------------------------------------ */

static void thread_woken(struct coll_watch *watch, int events)
{
	struct threaded *t = watch->owner;
	uint64_t count;

	(void)events;
	if (read(t->wake_fd, &count, sizeof(count)) < 0)
		count = 0;
	coll_engine_watch(&t->context->engine, watch, POLLIN);
}

/* Whether a helper first ends a run. Others may need messages to be sent and received meanwhile. */
static bool helper_is_busy(const struct threaded *t)
{
	const struct coll_run *run = t->mode == &coll_progress_helper ? t->runs : NULL;

	while (run && coll_call_is_message(&run->call))
		run = run->next;
	return run;
}

/* The handle at this position of the ring, which later ones move up to. */
static struct handle ring_take(struct threaded *t, uint32_t at)
{
	const struct handle taken = t->ring[(t->head + at) % HANDLES];

	for (; at; at--)
		t->ring[(t->head + at) % HANDLES] = t->ring[(t->head + at - 1) % HANDLES];
	t->head = (t->head + 1) % HANDLES;
	t->count--;
	pthread_cond_broadcast(&t->space);
	return taken;
}

/* Of the handle that comes next: the first one, or the first message if the owner is busy. */
static uint32_t ring_next(const struct threaded *t, bool busy)
{
	const struct handle *handle;
	uint32_t at;

	for (at = 0; busy && at < t->count; at++) {
		handle = &t->ring[(t->head + at) % HANDLES];
		if (handle->run && coll_call_is_message(&handle->run->call))
			break;
	}
	return at;
}

/* An urgent task, else the next handle. */
static bool next_handle(struct threaded *t, struct handle *handle)
{
	const bool busy = helper_is_busy(t);
	bool any = true;
	uint32_t at;

	pthread_mutex_lock(&t->lock);
	*handle = (struct handle){ .task = t->urgent };
	if (handle->task)
		t->urgent = handle->task->next;
	at = ring_next(t, busy);
	if (!handle->task && at < t->count)
		*handle = ring_take(t, at);
	else if (!handle->task)
		any = false;
	pthread_mutex_unlock(&t->lock);
	return any;
}

static void task_do(struct threaded *t, struct thread_task *task)
{
	task->function(task->argument);
	pthread_mutex_lock(&t->lock);
	task->done = true;
	pthread_cond_broadcast(&t->done);
	pthread_mutex_unlock(&t->lock);
}

static void owner_poll(struct threaded *t)
{
	const uint64_t until = t->wake.armed ? COLL_FOREVER : coll_now() + RETRY_NS;
	int error;

	coll_debug_assert(is_owner(t));
	error = coll_context_poll(t->context, until);
	if (!t->wake.armed)
		coll_engine_watch(&t->context->engine, &t->wake, POLLIN);
	if (error) {
		fail_all(t, error);
		sched_yield();
	}
	thread_collect(t);
}

/* Sets the thread's CPUs and priority. */
static int thread_settle(const struct coll_context *context)
{
	const char *cpus = context->options.progress_cpus;
	const char *priority = context->options.progress_priority;
	int error = *cpus ? coll_cpus_bind(cpus) : 0;

	if (error)
		return coll_open_fail(error, "option progress_cpus: '%s': %s", cpus,
				      strerror(-error));
	error = *priority ? coll_priority_take(priority) : 0;
	if (error)
		return coll_open_fail(
			error, "option progress_priority: '%s': %s%s", priority, strerror(-error),
			error == -EPERM || error == -EACCES
				? " (it needs CAP_SYS_NICE, or ulimit -r or -e)"
				: "");
	return 0;
}

static int owner_open(struct threaded *t)
{
	struct coll_context *context = t->context;
	int error = context->job->begin(context);

	if (error)
		return error;
	t->wake = (struct coll_watch){ .ready = thread_woken, .owner = t, .fd = t->wake_fd };
	error = coll_engine_watch(&context->engine, &t->wake, POLLIN);
	if (!error)
		error = thread_settle(context);
	if (error)
		context->job->end(context);
	return error;
}

/* ---- changing owners ---------------------------------------------------------------- */

static void sleep_parked(struct threaded *t)
{
	pthread_mutex_lock(&t->lock);
	while (t->parked)
		pthread_cond_wait(&t->unparked, &t->lock);
	pthread_mutex_unlock(&t->lock);
	t->away = false;
	coll_flight_own(&t->context->flight);
	coll_engine_take(&t->context->engine);
}

/* On the owner's thread: gives the context and its runs in flight to the application. */
static void thread_park(void *argument)
{
	struct threaded *t = argument;
	struct coll_run *run;

	thread_collect(t);
	coll_engine_let_go(&t->context->engine);
	thread_collect(t);
	while ((run = t->runs)) {
		t->runs = run->next;
		run->posted = false;
	}
	t->parked = true;
	t->away = true;
}

bool coll_thread_is_parked(const struct coll_context *context)
{
	return threaded_of(context)->parked;
}

uint64_t coll_thread_cpu_ns(const struct coll_context *context)
{
	struct timespec time = { 0 };
	clockid_t clock;

	if (!pthread_getcpuclockid(threaded_of(context)->thread, &clock))
		clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

bool coll_thread_is_this(const struct coll_context *context)
{
	return pthread_equal(threaded_of(context)->self, pthread_self());
}

void coll_thread_give(struct coll_context *context)
{
	coll_progress_thread.call(context, thread_park, threaded_of(context), false);
	context->owner = pthread_self();
	coll_flight_own(&context->flight);
	coll_engine_take(&context->engine);
}

/* Surveys end with the runs of the application, and are not among them. */
static void thread_post(struct threaded *t, struct coll_run *run)
{
	if (!run || run->posted || coll_survey_has(run->group, run) || !coll_run_executing(run))
		return;
	run->posted = true;
	run->next = t->runs;
	t->runs = run;
}

void coll_thread_take(struct coll_context *context)
{
	struct threaded *t = threaded_of(context);
	struct coll_group *group;
	struct coll_exec *exec;
	struct coll_run *run, *next;

	coll_assert(t->parked && t->away);
	coll_engine_let_go(&context->engine);
	for (group = context->groups; group; group = group->next) {
		for (exec = group->active; exec; exec = exec->next)
			thread_post(t, exec->run);
		for (run = group->offload.waiting; run; run = run->next_offloaded)
			thread_post(t, run);
	}
	for (run = coll_offload_runs(context); run; run = next) {
		next = run->next_offloaded;
		thread_post(t, run);
	}
	/* Those that wait for their survey alone. */
	pthread_mutex_lock(&context->handles_lock);
	for (run = context->handles; run; run = run->next_handle)
		thread_post(t, run);
	pthread_mutex_unlock(&context->handles_lock);
	context->owner = t->self;
	pthread_mutex_lock(&t->lock);
	t->parked = false;
	pthread_cond_broadcast(&t->unparked);
	pthread_mutex_unlock(&t->lock);
}

static void *owner_main(void *argument)
{
	struct threaded *t = argument;
	struct handle handle;
	int error;

	t->self = pthread_self();
	t->context->owner = t->self;
	error = owner_open(t);
	pthread_mutex_lock(&t->lock);
	t->opened = true;
	t->open_error = error;
	snprintf(t->why, sizeof(t->why), "%s", coll_open_error());
	pthread_cond_broadcast(&t->done);
	pthread_mutex_unlock(&t->lock);
	while (!error && !t->stopped) {
		if (t->away)
			sleep_parked(t);
		while (!t->stopped && !t->away && next_handle(t, &handle)) {
			if (handle.task)
				task_do(t, handle.task);
			else
				run_begin(t, handle.run);
			/* Applications that call without pause must not keep peers waiting. */
			if (!t->away && coll_straight_is_due(t->context))
				coll_context_poll(t->context, 0);
			if (!t->away)
				thread_collect(t);
		}
		if (!t->stopped && !t->away)
			owner_poll(t);
	}
	return NULL;
}

/* ---- the application's side ------------------------------------------------------------ */

static void thread_wake(struct threaded *t)
{
	const uint64_t one = 1;

	if (write(t->wake_fd, &one, sizeof(one)) < 0)
		return;		/* it is awake */
}

static void thread_push(struct threaded *t, struct handle handle)
{
	pthread_mutex_lock(&t->lock);
	while (t->count == HANDLES)
		pthread_cond_wait(&t->space, &t->lock);
	t->ring[(t->head + t->count++) % HANDLES] = handle;
	pthread_mutex_unlock(&t->lock);
	thread_wake(t);
}

static void threaded_call(struct coll_context *context, void (*function)(void *), void *argument,
			  bool urgent)
{
	struct threaded *t = threaded_of(context);
	struct thread_task task = { .function = function, .argument = argument };

	if (urgent) {
		pthread_mutex_lock(&t->lock);
		task.next = t->urgent;
		t->urgent = &task;
		pthread_mutex_unlock(&t->lock);
		thread_wake(t);
	} else {
		thread_push(t, (struct handle){ .task = &task });
	}
	pthread_mutex_lock(&t->lock);
	while (!task.done)
		pthread_cond_wait(&t->done, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

static int threaded_start(struct coll_run *run)
{
	struct threaded *t = threaded_of(run->group->context);
	int error = 0;

	/* The caller may free its counts on return. */
	if (!run->local && !run->planned)
		error = coll_run_keep_counts(run);
	if (error)
		return error;
	run->posted = true;
	thread_push(t, (struct handle){ .run = run });
	return 0;
}

static bool threaded_in_flight(struct coll_run *run)
{
	return run->posted;
}

/* Not where the owner needs the core, or would be given it late. */
static uint64_t polls_until(const struct coll_context *context)
{
	const bool at_once =
		context->engine.crowded || coll_neighbour_is_near(&context->engine.neighbour);

	return coll_now() + (at_once ? 0 : context->options.spin_ns);
}

/* Polls before it sleeps. */
static int threaded_wait(struct coll_run *run)
{
	struct threaded *t = threaded_of(run->group->context);
	const struct coll_context *context = t->context;
	const uint64_t until = polls_until(context);

	while (run->posted && coll_now() < until)
		sched_yield();
	pthread_mutex_lock(&t->lock);
	while (run->posted)
		pthread_cond_wait(&t->done, &t->lock);
	pthread_mutex_unlock(&t->lock);
	return run->status;
}

static void threaded_wait_any(struct coll_context *context, const struct coll_runs *runs)
{
	struct threaded *t = threaded_of(context);
	const uint64_t until = polls_until(context);

	while (coll_runs_find_ended(runs, threaded_in_flight) == runs->count && coll_now() < until)
		sched_yield();
	pthread_mutex_lock(&t->lock);
	while (coll_runs_find_ended(runs, threaded_in_flight) == runs->count)
		pthread_cond_wait(&t->done, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

/* Called before ended runs are looked for, so that none is missed. */
static int threaded_poll(struct coll_context *context)
{
	struct threaded *t = threaded_of(context);
	const int fd = atomic_load(&t->event_fd);
	uint64_t count;

	if (fd >= 0 && read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return -errno;
	return 0;
}

static int threaded_fd(struct coll_context *context)
{
	struct threaded *t = threaded_of(context);
	int fd = atomic_load(&t->event_fd);

	if (fd >= 0)
		return fd;
	fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);	/* a run may have ended already */
	if (fd < 0)
		return -errno;
	atomic_store(&t->event_fd, fd);
	return fd;
}

/* ---- opening and closing ---------------------------------------------------------------- */

static void threaded_free(struct threaded *t)
{
	if (t->wake_fd >= 0)
		close(t->wake_fd);
	if (t->event_fd >= 0)
		close(t->event_fd);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->space);
	pthread_cond_destroy(&t->done);
	pthread_cond_destroy(&t->unparked);
	t->context->progress_state = NULL;
	free(t);
}

/* The library's thread takes no signals: they are the application's. */
static int thread_start(struct threaded *t)
{
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&t->thread, NULL, owner_main, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -error;
}

static int threaded_open(struct coll_context *context)
{
	struct threaded *t = calloc(1, sizeof(*t));
	int error;

	if (!t)
		return coll_open_fail(-ENOMEM, "out of memory");
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->space, NULL);
	pthread_cond_init(&t->done, NULL);
	pthread_cond_init(&t->unparked, NULL);
	t->context = context;
	t->mode = context->progress;
	t->event_fd = -1;
	context->progress_state = t;
	t->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	error = t->wake_fd < 0 ? -errno : thread_start(t);
	if (error) {
		threaded_free(t);
		return coll_open_fail(error, "no progress thread: %s", strerror(-error));
	}
	pthread_mutex_lock(&t->lock);
	while (!t->opened)
		pthread_cond_wait(&t->done, &t->lock);
	pthread_mutex_unlock(&t->lock);
	error = t->open_error;
	if (!error)
		return 0;
	pthread_join(t->thread, NULL);
	coll_open_fail(error, "%s", t->why);
	threaded_free(t);
	return error;
}

static void owner_close(void *argument)
{
	struct threaded *t = argument;

	if (t->wake.armed)
		coll_engine_unwatch(&t->context->engine, &t->wake);
	t->context->job->end(t->context);
	while (t->runs) {	/* the handles outlive the runs */
		struct coll_run *run = t->runs;

		t->runs = run->next;
		if (run->exec)
			run->status = -ECANCELED;
		run->exec = NULL;
		run_ended(t, run);
	}
	t->stopped = true;
}

/* After all posted runs: they have started (helper: ended). */
static void threaded_close(struct coll_context *context)
{
	struct threaded *t = threaded_of(context);

	threaded_call(context, owner_close, t, false);
	pthread_join(t->thread, NULL);
	threaded_free(t);
}

/* What both modes do; next_handle() tells them apart. */
#define THREADED_OPS                                                                       \
	.open = threaded_open, .close = threaded_close, .call = threaded_call,             \
	.start = threaded_start, .in_flight = threaded_in_flight, .wait = threaded_wait,   \
	.wait_any = threaded_wait_any, .poll = threaded_poll, .fd = threaded_fd

const struct coll_progress_ops coll_progress_thread = { .name = "thread", THREADED_OPS };
const struct coll_progress_ops coll_progress_helper = { .name = "helper", THREADED_OPS };
