// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Progress that is chosen for each run, from measurements of earlier runs:
 *
 *	the kernel	the application stays away for long, and /dev/coll is there
 *	a thread	it stays away for long and the data is large; or it stays away for
 *			short times, calls in vain, and a core is idle
 *	the caller	it calls often, waits at once, or sleeps on nothing else
 *
 * "Long" is relative to the run's own time, predicted or measured. The context still has
 * one owner at a time: ownership goes from the thread to the application and back, with all
 * that is in flight.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "libcoll/base/open_error.h"
#include "libcoll/exec/call.h"
#include "libcoll/exec/poll.h"
#include "libcoll/base/cpus.h"
#include "libcoll/engine/engine.h"
#include "libcoll/exec/exec.h"
#include "progress.h"
#include "thread.h"
#include "libcoll/exec/run.h"
#include "autopilot.h"

enum {
	OFTEN = 4,			/* calls at intervals below a 4th of a run are frequent */
	SHORT_NS = 50000,		/* an absence that never matters */
	WORTH_NS = 20000,		/* total absence that is worth a thread with a core */
	LARGE_BYTES = 524288,		/* worth a thread that shares a core */
	STEADY = 4,			/* runs of a small call in a row before it is worth one */
	AGREED = 16,			/* runs that prefer the caller until it is the owner */
	IDLE_LOOK_NS = 50000000,
};

static struct coll_autopilot *pilot_of(const struct coll_context *context)
{
	return context->autopilot;
}

static bool is_ours(const struct coll_context *context)
{
	return coll_thread_is_parked(context);
}

/* The functions of the current owner, for the application. */
static const struct coll_progress_ops *now_by(struct coll_context *context)
{
	if (!is_ours(context))
		return &coll_progress_thread;
	context->owner = pthread_self();
	return &coll_progress_call;
}

/* ---- what is seen ----------------------------------------------------------------- */

/* The application calls. Its absence counts while a run is in flight. Returns it, ns. */
static uint64_t called_in(struct coll_context *context)
{
	struct coll_autopilot *pilot = pilot_of(context);
	const uint64_t now = coll_now(), absence = now - pilot->called;

	if (pilot->in_flight) {
		if (absence > pilot->absence)
			pilot->absence = absence;
		pilot->outside += absence;
	}
	pilot->called = now;
	return absence;
}

/* A moving average: half of it is the latest. */
static uint64_t auto_blend(uint64_t known, uint64_t latest, bool seen)
{
	return seen ? (known + latest) / 2 : latest;
}

/* The application leaves: time in the library is no absence. */
static void auto_leaves(struct coll_context *context)
{
	pilot_of(context)->called = coll_now();
}

/*
 * At the end of a run. `since`: time from its end, which is not known exactly, to this
 * call; it is not part of the run.
 */
static void auto_learn(struct coll_run *run, uint64_t since)
{
	struct coll_autopilot *pilot = pilot_of(run->group->context);
	struct coll_auto_call *evidence = run->evidence;

	if (!evidence)
		return;
	run->evidence = NULL;
	evidence->absence = auto_blend(evidence->absence, pilot->absence, evidence->seen);
	evidence->outside = auto_blend(evidence->outside, pilot->outside, evidence->seen);
	evidence->lasted = auto_blend(evidence->lasted, coll_now() - run->began - since,
				      evidence->seen);
	evidence->seen = true;
	if (!--pilot->in_flight)
		pilot->absence = pilot->outside = 0;
}

/*
 * CPUs that others leave idle, of those that progress may use; measured now and then. The
 * library's own thread counts as idle.
 */
static double idle_cores(struct coll_context *context)
{
	struct coll_autopilot *pilot = pilot_of(context);
	const uint64_t now = coll_now();
	uint64_t idle;

	if (now - pilot->looked < IDLE_LOOK_NS)
		return pilot->idle;
	idle = coll_cpus_idle_ns(context->options.progress_cpus) + coll_thread_cpu_ns(context);
	if (pilot->looked)
		pilot->idle = (double)(idle - pilot->idle_ns) / (now - pilot->looked);
	pilot->looked = now;
	pilot->idle_ns = idle;
	return pilot->idle;
}

/* ---- choosing ---------------------------------------------------------------------- */

static uint64_t predicted_ns(const struct coll_run *run)
{
	const struct coll_planned *planned = run->planned;
	const double seconds = planned->algo ?
				       planned->algo->cost(&planned->call, &planned->tuning,
							   &run->group->options.machine) : 0;

	return seconds > 0 ? seconds * 1e9 : 0;
}

static uint64_t data_bytes(const struct coll_run *run)
{
	const struct coll_schedule *s = run->planned->schedule;

	return s->buffer[COLL_IN] > s->buffer[COLL_OUT] ? s->buffer[COLL_IN] :
							   s->buffer[COLL_OUT];
}

/* A persistent run's counts may have been freed by the caller. */
static uint64_t key_of(const struct coll_run *run)
{
	return run->group->id ^
	       coll_call_key(run->planned ? &run->planned->call : &run->call, run->user_op);
}

/*
 * Whether a core has capacity for a thread that mostly waits. The thread stays until others
 * need more.
 */
static bool has_a_core(const struct coll_context *context, double idle)
{
	return idle >= (is_ours(context) ? 0.25 : 0.1);
}

/* A small run gains little from a thread, and a change of the owner costs more. */
static bool worth_a_thread(struct coll_auto_call *known, bool core)
{
	known->away++;
	return known->bytes >= LARGE_BYTES || (known->away >= STEADY && core);
}

static enum coll_auto_choice auto_choose(struct coll_run *run, struct coll_auto_call *known)
{
	struct coll_context *context = run->group->context;
	const uint64_t absence = known->absence;
	const double idle = idle_cores(context);
	const uint64_t alone = known->alone > known->lasted ? known->alone : known->lasted;
	const bool away = absence > SHORT_NS && absence > alone / OFTEN;
	const bool core = has_a_core(context, idle);
	const size_t bytes = sizeof(run->choice);
	char *why = run->choice;

	if (run->local) {
		snprintf(why, bytes, "the caller waits for it");
		return AUTO_CALL;
	}
	if (!away && (known->outside <= WORTH_NS || !core || context->offload)) {
		known->away = 0;
		snprintf(why, bytes, "the program stays away for %.0f us at most", absence / 1e3);
		return AUTO_CALL;
	}
	if (context->offload) {
		snprintf(why, bytes, "the program stays away for %.0f us", absence / 1e3);
		return AUTO_KERNEL;
	}
	snprintf(why, bytes, "the program stays away for %.0f us, %.0f in all, %.1f cores are idle",
		 absence / 1e3, known->outside / 1e3, idle);
	return worth_a_thread(known, core) ? AUTO_THREAD : AUTO_CALL;
}

/*
 * A change of the owner costs two thread switches, and milliseconds if another rank has the
 * core. So the thread becomes owner at once if that gives overlap, and the caller only when
 * most of many runs prefer it; blocking calls and barriers in between are progressed by
 * either.
 */
static void auto_settle(struct coll_context *context, enum coll_auto_choice choice)
{
	struct coll_autopilot *pilot = pilot_of(context);

	pilot->agreed = choice == AUTO_THREAD ? pilot->agreed / 2 : pilot->agreed + 1;
	if (context->polled)	/* a thread has to wake the sleeper */
		choice = AUTO_THREAD;
	if (choice == AUTO_THREAD && is_ours(context))
		coll_thread_take(context);
	else if (choice != AUTO_THREAD && !is_ours(context) && pilot->agreed >= AGREED)
		coll_thread_give(context);
	context->to_kernel = choice == AUTO_KERNEL;
}

static void plan_here(void *argument)
{
	struct coll_run *run = argument;

	run->status = coll_run_plan(run);
}

/*
 * What is known of this call. The owner makes plans; asking the thread for one costs two
 * switches, so that is done for a call's first run only.
 */
static struct coll_auto_call *look_up(struct coll_run *run)
{
	struct coll_context *context = run->group->context;
	const uint64_t key = key_of(run);
	struct coll_auto_call *known = &pilot_of(context)->of[key % AUTO_CALLS];

	run->status = 0;
	if (!run->planned && (known->key != key || is_ours(context)))
		now_by(context)->call(context, plan_here, run, false);
	if (known->key != key)
		*known = (struct coll_auto_call){ .key = key };
	if (run->planned && !run->status) {
		known->alone = predicted_ns(run);
		known->bytes = data_bytes(run);
	}
	return known;
}

/* From here on the application is away. A run that did not start does not count. */
static int auto_started(struct coll_run *run, int error)
{
	struct coll_autopilot *pilot = pilot_of(run->group->context);

	if (error && run->evidence) {
		run->evidence = NULL;
		pilot->in_flight--;
	}
	auto_leaves(run->group->context);
	return error;
}

static int auto_start(struct coll_run *run)
{
	struct coll_context *context = run->group->context;
	struct coll_autopilot *pilot = pilot_of(context);
	struct coll_auto_call *known;

	called_in(context);
	known = look_up(run);
	if (run->status) {
		known->key = 0;
		coll_run_ended(run);
		return run->status;
	}
	run->chosen = auto_choose(run, known);
	auto_settle(context, run->chosen);
	if (!is_ours(context))
		run->chosen = AUTO_THREAD;
	if (!run->local) {
		run->evidence = known;
		run->began = pilot->called;
		pilot->in_flight++;
	}
	return auto_started(run, now_by(context)->start(run));
}

/* ---- the application's functions --------------------------------------------------- */

static void auto_call(struct coll_context *context, void (*function)(void *), void *argument,
		      bool urgent)
{
	called_in(context);
	now_by(context)->call(context, function, argument, urgent);
	auto_leaves(context);
}

static bool auto_in_flight(struct coll_run *run)
{
	return now_by(run->group->context)->in_flight(run);
}

static void end_here(void *run)
{
	coll_run_ended(run);
}

/* A run that had completed when the thread became owner is ended here. */
static int auto_wait(struct coll_run *run)
{
	struct coll_context *context = run->group->context;
	const uint64_t absence = called_in(context);
	const bool over = !auto_in_flight(run);
	int status;

	status = now_by(context)->wait(run);
	auto_learn(run, over ? absence : 0);
	auto_leaves(context);
	if (run->planned && !run->persistent)
		now_by(context)->call(context, end_here, run, false);
	return status;
}

static void auto_wait_any(struct coll_context *context, const struct coll_runs *runs)
{
	called_in(context);
	now_by(context)->wait_any(context, runs);
	auto_leaves(context);
}

static int auto_poll(struct coll_context *context)
{
	struct coll_autopilot *pilot = pilot_of(context);
	int error;

	called_in(context);
	error = now_by(context)->poll(context);
	if (pilot->in_flight)
		auto_leaves(context);
	return error;
}

static int auto_fd(struct coll_context *context)
{
	if (is_ours(context))
		coll_thread_take(context);
	return coll_progress_thread.fd(context);
}

static void auto_close(struct coll_context *context)
{
	if (is_ours(context))
		coll_thread_take(context);
	coll_progress_thread.close(context);
	free(context->autopilot);
}

static int auto_open(struct coll_context *context)
{
	int error;

	context->autopilot = calloc(1, sizeof(*context->autopilot));
	if (!context->autopilot)
		return coll_open_fail(-ENOMEM, "out of memory");
	error = coll_progress_thread.open(context);
	if (error)
		free(context->autopilot);
	else
		coll_thread_give(context);
	return error;
}

const struct coll_progress_ops coll_progress_auto = {
	.name = "auto",
	.open = auto_open,
	.close = auto_close,
	.call = auto_call,
	.start = auto_start,
	.in_flight = auto_in_flight,
	.wait = auto_wait,
	.wait_any = auto_wait_any,
	.poll = auto_poll,
	.fd = auto_fd,
};
