// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Progress that is chosen run by run, from what was seen of the runs before:
 *
 *	the kernel	the application stays away for long, and /dev/coll is there
 *	a thread	it stays away for long, and a core is idle or the data is large
 *	the caller	it calls in often, waits at once, or sleeps on nothing else
 *
 * "Long" is compared with what the run would take by itself, as predicted. What
 * hangs on the context has one owner still; it goes from the thread to the
 * application and back, with all that is in flight.
 */
#include <stdio.h>

#include "context.h"
#include "cpus.h"
#include "engine.h"
#include "exec.h"
#include "progress.h"
#include "progress_thread.h"
#include "run.h"

enum {
	OFTEN = 4,			/* calls in such a part of a run's time are often */
	SHORT_NS = 50000,		/* an absence that never matters */
	LARGE_BYTES = 32768,		/* worth a thread that shares a core */
	STEADY = 4,			/* runs of a small call in a row, before it is worth one */
	AGREED = 16,			/* runs that want the caller before it gets all back */
	IDLE_LOOK_NS = 200000000,
};

static struct autopilot *pilot_of(const struct coll_context *context)
{
	return (struct autopilot *)&context->autopilot;
}

static bool is_ours(const struct coll_context *context)
{
	return thread_is_parked(context);
}

/* The owner's functions, as the application uses them. */
static const struct coll_progress_ops *now_by(struct coll_context *context)
{
	if (!is_ours(context))
		return &coll_progress_thread;
	context->owner = pthread_self();
	return &coll_progress_call;
}

/* ---- what is seen ----------------------------------------------------------------- */

/* The application calls in. While something is in flight its longest absence counts. */
static void called_in(struct coll_context *context)
{
	struct autopilot *pilot = pilot_of(context);
	const uint64_t now = coll_now();

	if (pilot->flying && now - pilot->called > pilot->absence)
		pilot->absence = now - pilot->called;
	pilot->called = now;
}

/* Half of what is known is the latest. */
static void learn(struct coll_run *run)
{
	struct autopilot *pilot = pilot_of(run->group->context);

	struct auto_call *evidence = run->evidence;

	if (!evidence)
		return;
	run->evidence = NULL;
	evidence->absence = evidence->seen ? (evidence->absence + pilot->absence) / 2 :
					     pilot->absence;
	evidence->seen = true;
	pilot->absence = --pilot->flying ? pilot->absence : 0;
}

/* CPUs that nobody used, of those that progress may use; looked at now and then. */
static double idle_cores(struct coll_context *context)
{
	struct autopilot *pilot = pilot_of(context);
	const uint64_t now = coll_now();
	uint64_t idle;

	if (now - pilot->looked < IDLE_LOOK_NS)
		return pilot->idle;
	idle = cpus_idle_ns(context->options.progress_cpus);
	if (pilot->looked)
		pilot->idle = (double)(idle - pilot->idle_ns) / (now - pilot->looked);
	pilot->looked = now;
	pilot->idle_ns = idle;
	return pilot->idle;
}

/* ---- choosing ---------------------------------------------------------------------- */

static uint64_t predicted_ns(const struct coll_run *run)
{
	const struct planned *planned = run->planned;
	const double seconds = planned->algo->cost(&planned->call, &planned->tuning,
						   &run->group->options.machine);

	return seconds > 0 ? seconds * 1e9 : 0;
}

static uint64_t data_bytes(const struct coll_run *run)
{
	const struct coll_schedule *s = run->planned->schedule;

	return s->buffer[COLL_IN] > s->buffer[COLL_OUT] ? s->buffer[COLL_IN] :
							   s->buffer[COLL_OUT];
}

/* The caller of a persistent run may have taken its counts away since. */
static uint64_t key_of(const struct coll_run *run)
{
	return run->group->id ^
	       call_key(run->planned ? &run->planned->call : &run->call, run->user_op);
}

/*
 * A small one loses little if it is not carried on, and a change of the owner costs more.
 * What the thread does itself is no reason to take it away.
 */
static bool worth_a_thread(const struct coll_context *context, struct auto_call *known,
			   double idle)
{
	known->away++;
	return known->bytes >= LARGE_BYTES ||
	       (known->away >= STEADY && (idle >= 0.5 || !is_ours(context)));
}

static enum auto_choice choose(struct coll_run *run, struct auto_call *known)
{
	struct coll_context *context = run->group->context;
	const uint64_t absence = known->absence;
	const double idle = idle_cores(context);
	const size_t bytes = sizeof(run->choice);
	char *why = run->choice;

	if (run->local) {
		snprintf(why, bytes, "the caller waits for it");
		return AUTO_CALL;
	}
	if (absence <= SHORT_NS || absence <= known->alone / OFTEN) {
		known->away = 0;
		snprintf(why, bytes, "the program stays away for %.0f us at most", absence / 1e3);
		return AUTO_CALL;
	}
	if (context->offload) {
		snprintf(why, bytes, "the program stays away for %.0f us", absence / 1e3);
		return AUTO_KERNEL;
	}
	snprintf(why, bytes, "the program stays away for %.0f us, %.1f cores are idle",
		 absence / 1e3, idle);
	return worth_a_thread(context, known, idle) ? AUTO_THREAD : AUTO_CALL;
}

/*
 * Moving costs two switches between threads, and milliseconds where another rank has the
 * core meanwhile: at once where it is for overlap, back only when most of many runs want it,
 * for blocking calls and barriers between those that overlap are carried on by either.
 */
static void settle(struct coll_context *context, enum auto_choice choice)
{
	struct autopilot *pilot = pilot_of(context);

	pilot->agreed = choice == AUTO_THREAD ? pilot->agreed / 2 : pilot->agreed + 1;
	if (context->polled)	/* a thread is what wakes up who sleeps there */
		choice = AUTO_THREAD;
	if (choice == AUTO_THREAD && is_ours(context))
		thread_take(context);
	else if (choice != AUTO_THREAD && !is_ours(context) && pilot->agreed >= AGREED)
		thread_give(context);
	context->to_kernel = choice == AUTO_KERNEL;
}

static void plan_here(void *argument)
{
	struct coll_run *run = argument;

	run->status = run_plan(run);
}

/*
 * What is known of this call. A plan is made by the owner; to ask the thread for one and
 * wait costs two switches, so it is done for a call's first run only.
 */
static struct auto_call *look_up(struct coll_run *run)
{
	struct coll_context *context = run->group->context;
	const uint64_t key = key_of(run);
	struct auto_call *known = &pilot_of(context)->of[key % AUTO_CALLS];

	run->status = 0;
	if (!run->planned && (known->key != key || is_ours(context)))
		now_by(context)->call(context, plan_here, run, false);
	if (known->key != key)
		*known = (struct auto_call){ .key = key };
	if (run->planned && !run->status) {
		known->alone = predicted_ns(run);
		known->bytes = data_bytes(run);
	}
	return known;
}

/* From here on the application is away. A run that did not start does not count. */
static int started(struct coll_run *run, int error)
{
	struct autopilot *pilot = pilot_of(run->group->context);

	if (error && run->evidence) {
		run->evidence = NULL;
		pilot->flying--;
	}
	pilot->called = coll_now();
	return error;
}

static int auto_start(struct coll_run *run)
{
	struct coll_context *context = run->group->context;
	struct autopilot *pilot = pilot_of(context);
	struct auto_call *known;

	called_in(context);
	known = look_up(run);
	if (run->status) {
		known->key = 0;
		run_ended(run);
		return run->status;
	}
	run->chosen = choose(run, known);
	settle(context, run->chosen);
	if (!is_ours(context))
		run->chosen = AUTO_THREAD;
	if (!run->local) {
		run->evidence = known;
		pilot->flying++;
	}
	return started(run, now_by(context)->start(run));
}

/* ---- the application's functions --------------------------------------------------- */

static void auto_call(struct coll_context *context, void (*function)(void *), void *argument,
		      bool urgent)
{
	now_by(context)->call(context, function, argument, urgent);
}

static bool auto_in_flight(struct coll_run *run)
{
	return now_by(run->group->context)->in_flight(run);
}

static void end_here(void *run)
{
	run_ended(run);
}

/* A run that was over when the thread took the context has nobody else to end it. */
static int auto_wait(struct coll_run *run)
{
	struct coll_context *context = run->group->context;
	int status;

	called_in(context);
	learn(run);
	status = now_by(context)->wait(run);
	if (run->planned && !run->persistent)
		now_by(context)->call(context, end_here, run, false);
	return status;
}

static int auto_turn(struct coll_context *context)
{
	called_in(context);
	return now_by(context)->turn(context);
}

static int auto_fd(struct coll_context *context)
{
	if (is_ours(context))
		thread_take(context);
	return coll_progress_thread.fd(context);
}

static void auto_close(struct coll_context *context)
{
	if (is_ours(context))
		thread_take(context);
	coll_progress_thread.close(context);
}

static int auto_open(struct coll_context *context)
{
	int error = coll_progress_thread.open(context);

	if (!error)
		thread_give(context);
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
	.turn = auto_turn,
	.fd = auto_fd,
};
