// SPDX-License-Identifier: GPL-2.0
/*
 * Noise on one CPU. A pinned timer waits for each event's start, on the wall
 * clock: starts are absolute, so what one event is late the next one is not,
 * and the nodes of a cluster keep in phase as well as their clocks do. It
 * strikes itself, as a hard interrupt or a softirq, or wakes the thread that does.
 *
 * An event that is due while another lasts joins it. One that comes late is
 * carried out late, in full; one that comes a period too late is missed. One
 * that would take more than the injector's share is refused. Every event of the
 * plan from start to stop is counted as one of the three, or as injected.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "kmod/common/coll_events.h"
#include "kmod/common/compat.h"
#include "noise.h"
#include "kmod/watch/watch.h"

#define PAUSE		(5ull * NSEC_PER_USEC)		/* shorter ones are none */
#define COST		(1ull * NSEC_PER_USEC)		/* of an event, besides what we see of it */
#define BUDGET_TIME	(100ull * NSEC_PER_MSEC)	/* a share's worth of it may come at once */
#define OWN_TIME_MAX	(20ull * NSEC_PER_USEC)		/* a longer step was somebody else's */
#define SKIP_MAX	100				/* events passed one by one */
#define SKIP_MAX_AT_END	100000

u64 kcoll_noise_context_longest(u8 context)
{
	switch (context) {
	case COLL_NOISE_FIFO:
		return NSEC_PER_SEC;
	case COLL_NOISE_OTHER:
		return 4ull * NSEC_PER_SEC;
	default:
		return 10 * NSEC_PER_MSEC;
	}
}

static bool in_thread(const struct kcoll_noise_injector *injector)
{
	return injector->context == COLL_NOISE_FIFO || injector->context == COLL_NOISE_OTHER;
}

/* ---- rails ------------------------------------------------------------------- */

static u64 budget_most(const struct kcoll_noise_injector *injector)
{
	return max(div_u64(BUDGET_TIME * injector->share, 10000), injector->longest + COST);
}

static void earn(struct kcoll_noise_seat *seat, u64 now)
{
	const struct kcoll_noise_injector *injector = seat->injector;
	u64 passed = min_t(u64, now - seat->budget_at, 10 * NSEC_PER_SEC);

	seat->budget = min(seat->budget + div_u64(passed * injector->share, 10000),
			   budget_most(injector));
	seat->budget_at = now;
}

/* Whether an event may take that long now: of the CPU's time, and without a pause. */
static bool may_take(struct kcoll_noise_seat *seat, u64 now, u64 duration)
{
	u64 busy = now - seat->busy_end < PAUSE ? seat->busy : 0;

	earn(seat, now);
	if (seat->budget < duration + COST)
		return false;
	return !busy || busy + duration <= kcoll_noise_context_longest(seat->injector->context);
}

static void charge(struct kcoll_noise_seat *seat, u64 from, u64 to)
{
	u64 cost = to - from + COST;

	seat->busy = (from - seat->busy_end < PAUSE ? seat->busy : 0) + (to - from);
	seat->busy_end = to;
	seat->budget -= min(seat->budget, cost);
}

/* ---- an event ------------------------------------------------------------------ */

static void take(struct kcoll_noise_seat *seat)
{
	seat->next = coll_noise_next(&seat->injector->plan, &seat->stream);
}

/* The next event, together with those that begin before it ends. */
static struct coll_noise_span take_joined(struct kcoll_noise_seat *seat)
{
	struct coll_noise_span event = seat->next;
	u64 longest = kcoll_noise_context_longest(seat->injector->context), end;

	take(seat);
	while (seat->next.start <= event.start + event.duration) {
		end = seat->next.start + seat->next.duration;
		if (end - event.start > longest)
			break;
		event.duration = max(event.duration, end - event.start);
		seat->missed++;
		take(seat);
	}
	return event;
}

/* Nothing but time passes; an interrupt's or another thread's time is part of it. */
static u64 spin_until(const struct kcoll_noise_seat *seat, u64 end)
{
	u64 now = ktime_get_mono_fast_ns();

	while (now < end && READ_ONCE(seat->on)) {
		cpu_relax();
		now = ktime_get_mono_fast_ns();
	}
	return now;
}

/* Spends `duration` of CPU time, as a daemon does: what others take does not count. */
static u64 spin_own(const struct kcoll_noise_seat *seat, u64 duration)
{
	u64 own = 0, last = ktime_get_mono_fast_ns(), now;

	while (own < duration && READ_ONCE(seat->on)) {
		cond_resched();
		now = ktime_get_mono_fast_ns();
		own += min_t(u64, now - last, OWN_TIME_MAX);
		last = now;
	}
	return own;
}

static void write_log(struct kcoll_noise_seat *seat, const struct coll_noise_injected *entry)
{
	u32 size = seat->injector->log;

	if (!size)
		return;
	if (seat->logged - READ_ONCE(seat->read) == size) {
		seat->lost++;
		return;
	}
	seat->log[seat->logged & (size - 1)] = *entry;
	/* The entry is whole before it counts: noise.c reads it then. */
	smp_store_release(&seat->logged, seat->logged + 1);
}

/* Carries the event out; `entered` is when this CPU came here. */
static void strike(struct kcoll_noise_seat *seat, const struct coll_noise_span *event, u64 entered)
{
	const struct kcoll_noise_injector *injector = seat->injector;
	u64 start = injector->epoch + event->start;
	s64 late = ktime_get_real() - start;
	u64 spin = event->duration - min_t(u64, event->duration, injector->cost);
	u64 from = ktime_get_mono_fast_ns(), taken, to;
	struct coll_noise_injected entry;

	if (!in_thread(injector))
		kcoll_watch_injected_begin(injector->id);
	if (injector->context == COLL_NOISE_OTHER)
		taken = spin_own(seat, spin);
	else
		taken = spin_until(seat, from + spin) - from;
	if (!in_thread(injector))
		kcoll_watch_injected_end(injector->id);

	seat->injected++;
	seat->taken += taken;
	entry = (struct coll_noise_injected){
		.asked_start = start,
		.late = late,
		.asked_duration = event->duration,
		.duration = min_t(u64, taken, U32_MAX),
	};
	write_log(seat, &entry);
	trace_coll_noise_injected(injector->id, injector->context, start, late, event->duration,
				  taken);
	to = ktime_get_mono_fast_ns();
	charge(seat, injector->context == COLL_NOISE_OTHER ? to - taken : entered, to);
}

/* ---- the plan goes on ------------------------------------------------------------ */

/* Wall clock time on the plan's clock; before the epoch, 0. */
static u64 plan_now(const struct kcoll_noise_injector *injector)
{
	s64 now = ktime_get_real() - injector->epoch;

	return max_t(s64, now, 0);
}

/* How many events lie between two places of a stream; of Poisson's, how many on average. */
static u64 events_between(const struct coll_noise_plan *plan, const struct coll_noise_stream *from,
			  const struct coll_noise_stream *to)
{
	u64 a_cell = plan->model->arrival == COLL_NOISE_REPLAY ? plan->spans : 1;

	return max_t(s64, 0, (to->cell - from->cell) * a_cell + to->index - from->index);
}

/* Passes the events before `oldest`, the first `most` of them one by one. */
static void skip_missed(struct kcoll_noise_seat *seat, u64 oldest, int most)
{
	const struct kcoll_noise_injector *injector = seat->injector;
	struct coll_noise_stream before;
	int i;

	for (i = 0; i < most && seat->next.start < oldest; i++) {
		seat->missed++;
		take(seat);
	}
	if (seat->next.start >= oldest)
		return;
	before = seat->stream;
	coll_noise_seek(&injector->plan, &seat->stream, oldest);
	seat->missed += 1 + events_between(&injector->plan, &before, &seat->stream);
	take(seat);
}

/* One event, if it is still due and may be. Returns when the next one is, wall clock. */
static ktime_t strike_next(struct kcoll_noise_seat *seat)
{
	const struct kcoll_noise_injector *injector = seat->injector;
	u64 patience = clamp_t(u64, injector->model.period, NSEC_PER_MSEC, 10 * NSEC_PER_MSEC);
	u64 entered = ktime_get_mono_fast_ns(), now = plan_now(injector);
	struct coll_noise_span event;

	skip_missed(seat, now > patience ? now - patience : 0, SKIP_MAX);
	if (seat->next.start <= plan_now(injector)) {
		event = take_joined(seat);
		if (may_take(seat, entered, event.duration))
			strike(seat, &event, entered);
		else
			seat->refused++;
	}
	return injector->epoch + seat->next.start;
}

static bool goes_on(const struct kcoll_noise_seat *seat)
{
	return READ_ONCE(seat->on) &&
	       ktime_get_mono_fast_ns() < READ_ONCE(seat->injector->deadline);
}

/* ---- timer, thread ----------------------------------------------------------------- */

static enum hrtimer_restart timer_fires(struct hrtimer *timer)
{
	struct kcoll_noise_seat *seat = container_of(timer, struct kcoll_noise_seat, timer);

	/* A CPU that goes offline leaves its timers to another: not there. */
	if (!goes_on(seat) || smp_processor_id() != seat->cpu)
		return HRTIMER_NORESTART;
	if (seat->thread) {
		WRITE_ONCE(seat->due, true);
		wake_up_process(seat->thread);
		return HRTIMER_NORESTART;
	}
	hrtimer_set_expires(timer, strike_next(seat));
	return HRTIMER_RESTART;
}

static enum hrtimer_mode timer_mode(const struct kcoll_noise_injector *injector)
{
	return injector->context == COLL_NOISE_TASKLET ? HRTIMER_MODE_ABS_PINNED_SOFT :
							 HRTIMER_MODE_ABS_PINNED_HARD;
}

static int thread_strikes(void *data)
{
	struct kcoll_noise_seat *seat = data;
	ktime_t next;

	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		if (!xchg(&seat->due, false)) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		next = strike_next(seat);
		if (goes_on(seat))
			hrtimer_start(&seat->timer, next, timer_mode(seat->injector));
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static int make_thread(struct kcoll_noise_seat *seat)
{
	struct task_struct *thread =
		kthread_create_on_cpu(thread_strikes, seat, seat->cpu, COLL_INJECTOR_COMM "/%u");

	if (IS_ERR(thread))
		return PTR_ERR(thread);
	if (seat->injector->context == COLL_NOISE_FIFO)
		sched_set_fifo(thread);
	seat->thread = thread;
	wake_up_process(thread);
	return 0;
}

/* On the seat's CPU: a pinned timer runs where it was started. */
static void start_timer(void *data)
{
	struct kcoll_noise_seat *seat = data;

	hrtimer_start(&seat->timer, seat->injector->epoch + seat->next.start,
		      timer_mode(seat->injector));
}

int kcoll_noise_seat_start(struct kcoll_noise_seat *seat)
{
	struct kcoll_noise_injector *injector = seat->injector;
	int error;

	coll_noise_seek(&injector->plan, &seat->stream, plan_now(injector));
	take(seat);
	seat->budget = budget_most(injector);
	seat->budget_at = ktime_get_mono_fast_ns();
	seat->due = false;
	hrtimer_setup(&seat->timer, timer_fires, CLOCK_REALTIME, timer_mode(injector));
	if (in_thread(injector)) {
		error = make_thread(seat);
		if (error)
			return error;
	}
	WRITE_ONCE(seat->on, true);
	seat->state = COLL_NOISE_INJECTING;
	error = smp_call_function_single(seat->cpu, start_timer, seat, 1);
	if (error)
		kcoll_noise_seat_stop(seat);
	return error;
}

/*
 * The thread may start the timer again after the first cancel, but what then
 * fires sees that the seat is off, and touches no thread.
 */
void kcoll_noise_seat_stop(struct kcoll_noise_seat *seat)
{
	if (seat->state != COLL_NOISE_INJECTING)
		return;
	WRITE_ONCE(seat->on, false);
	hrtimer_cancel(&seat->timer);
	if (seat->thread) {
		kthread_stop(seat->thread);
		hrtimer_cancel(&seat->timer);
		seat->thread = NULL;
	}
	skip_missed(seat, plan_now(seat->injector), SKIP_MAX_AT_END);
	seat->state = COLL_NOISE_OVER;
}
