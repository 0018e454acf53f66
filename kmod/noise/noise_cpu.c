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
#include "kmod/common/sum.h"
#include "noise.h"
#include "kmod/watch/watch.h"

#define PAUSE		(5ull * NSEC_PER_USEC)		/* shorter ones are none */
#define COST		(1ull * NSEC_PER_USEC)		/* of an event, besides what we see of it */
#define BUDGET_TIME	(100ull * NSEC_PER_MSEC)	/* a share's worth of it may come at once */
#define OWN_TIME_MAX	(20ull * NSEC_PER_USEC)		/* a longer step was somebody else's */
#define SKIP_MAX	100				/* events passed one by one */
#define SKIP_MAX_AT_END	100000
#define JOIN_MAX	100
#define LATE_MAX	100				/* interrupts without one between them */

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

static bool noise_in_thread(const struct kcoll_noise_injector *injector)
{
	return injector->context == COLL_NOISE_FIFO || injector->context == COLL_NOISE_OTHER;
}

/* ---- rails ------------------------------------------------------------------- */

static u64 budget_most(const struct kcoll_noise_injector *injector)
{
	return max(div_u64(BUDGET_TIME * injector->share, 10000), injector->longest + COST);
}

static void budget_earn(struct kcoll_noise_cpu *ncpu, u64 now)
{
	const struct kcoll_noise_injector *injector = ncpu->injector;
	u64 passed = min_t(u64, now - ncpu->budget_at, 10 * NSEC_PER_SEC);

	ncpu->budget = min(ncpu->budget + div_u64(passed * injector->share, 10000),
			   budget_most(injector));
	ncpu->budget_at = now;
}

/* Whether an event may take that long now: of the CPU's time, and without a pause. */
static bool budget_allows(struct kcoll_noise_cpu *ncpu, u64 now, u64 duration)
{
	u64 busy = now - ncpu->busy_end < PAUSE ? ncpu->busy : 0;

	budget_earn(ncpu, now);
	if (ncpu->budget < duration + COST)
		return false;
	return !busy || busy + duration <= kcoll_noise_context_longest(ncpu->injector->context);
}

static void budget_charge(struct kcoll_noise_cpu *ncpu, u64 from, u64 to)
{
	u64 cost = to - from + COST;

	ncpu->busy = (from - ncpu->busy_end < PAUSE ? ncpu->busy : 0) + (to - from);
	ncpu->busy_end = to;
	ncpu->budget -= min(ncpu->budget, cost);
}

/* ---- an event ------------------------------------------------------------------ */

static void event_next(struct kcoll_noise_cpu *ncpu)
{
	ncpu->next = coll_noise_next(&ncpu->injector->plan, &ncpu->stream);
}

/* How many events lie between two places of a stream; of Poisson's, how many on average. */
static u64 stream_events_between(const struct coll_noise_plan *plan,
				 const struct coll_noise_stream *from,
				 const struct coll_noise_stream *to)
{
	u64 a_cell = plan->model->arrival == COLL_NOISE_REPLAY ? plan->spans : 1;

	return max_t(s64, 0, (to->cell - from->cell) * a_cell + to->index - from->index);
}

/* Passes the events before `oldest`, the first `most` of them one by one. */
static void stream_skip_missed(struct kcoll_noise_cpu *ncpu, u64 oldest, int most)
{
	const struct kcoll_noise_injector *injector = ncpu->injector;
	struct coll_noise_stream before;
	int i;

	for (i = 0; i < most && ncpu->next.start < oldest; i++) {
		kcoll_sum_add(&ncpu->missed, 1);
		event_next(ncpu);
	}
	if (ncpu->next.start >= oldest)
		return;
	before = ncpu->stream;
	coll_noise_seek(&injector->plan, &ncpu->stream, oldest);
	kcoll_sum_add(&ncpu->missed,
		      1 + stream_events_between(&injector->plan, &before, &ncpu->stream));
	event_next(ncpu);
}

/*
 * The next event, together with those that begin before it ends. A plan may have a million of
 * them: in an interrupt those beyond JOIN_MAX are skipped at once, and do not prolong it.
 */
static struct coll_noise_span event_next_joined(struct kcoll_noise_cpu *ncpu)
{
	struct coll_noise_span event = ncpu->next;
	u64 longest = kcoll_noise_context_longest(ncpu->injector->context), end;
	int i;

	event_next(ncpu);
	for (i = 0; ncpu->next.start <= event.start + event.duration; i++) {
		end = ncpu->next.start + ncpu->next.duration;
		if (end - event.start > longest)
			break;
		if (i == JOIN_MAX) {
			stream_skip_missed(ncpu, event.start + event.duration + 1, 0);
			break;
		}
		event.duration = max(event.duration, end - event.start);
		kcoll_sum_add(&ncpu->missed, 1);
		event_next(ncpu);
	}
	return event;
}

/* Nothing but time passes; an interrupt's or another thread's time is part of it. */
static u64 spin_until(const struct kcoll_noise_cpu *ncpu, u64 end)
{
	u64 now = ktime_get_mono_fast_ns();

	while (now < end && READ_ONCE(ncpu->on)) {
		cpu_relax();
		now = ktime_get_mono_fast_ns();
	}
	return now;
}

/* Spends `duration` of CPU time, as a daemon does: what others take does not count. */
static u64 spin_own(const struct kcoll_noise_cpu *ncpu, u64 duration)
{
	u64 own = 0, last = ktime_get_mono_fast_ns(), now;

	while (own < duration && READ_ONCE(ncpu->on)) {
		cond_resched();
		now = ktime_get_mono_fast_ns();
		own += min_t(u64, now - last, OWN_TIME_MAX);
		last = now;
	}
	return own;
}

static void log_write(struct kcoll_noise_cpu *ncpu, const struct coll_noise_injected *entry)
{
	u32 size = ncpu->injector->log;

	if (!size)
		return;
	if (ncpu->logged - READ_ONCE(ncpu->read) == size) {
		kcoll_sum_add(&ncpu->lost, 1);
		return;
	}
	ncpu->log[ncpu->logged & (size - 1)] = *entry;
	/* The entry is whole before it counts: noise.c reads it then. */
	smp_store_release(&ncpu->logged, ncpu->logged + 1);
}

/* Carries the event out; `entered` is when this CPU came here. */
static void event_inject(struct kcoll_noise_cpu *ncpu, const struct coll_noise_span *event,
			 u64 entered)
{
	const struct kcoll_noise_injector *injector = ncpu->injector;
	u64 start = injector->epoch + event->start;
	s64 late = ktime_get_real() - start;
	u64 spin = event->duration - min_t(u64, event->duration, injector->cost);
	u64 from = ktime_get_mono_fast_ns(), taken, to;
	struct coll_noise_injected entry;

	if (!noise_in_thread(injector))
		kcoll_watch_injected_begin(injector->id);
	if (injector->context == COLL_NOISE_OTHER)
		taken = spin_own(ncpu, spin);
	else
		taken = spin_until(ncpu, from + spin) - from;
	if (!noise_in_thread(injector))
		kcoll_watch_injected_end(injector->id);

	kcoll_sum_add(&ncpu->injected, 1);
	kcoll_sum_add(&ncpu->taken, taken);
	entry = (struct coll_noise_injected){
		.asked_start = start,
		.late = late,
		.asked_duration = event->duration,
		.duration = min_t(u64, taken, U32_MAX),
	};
	log_write(ncpu, &entry);
	trace_coll_noise_injected(injector->id, injector->context, start, late, event->duration,
				  taken);
	to = ktime_get_mono_fast_ns();
	budget_charge(ncpu, injector->context == COLL_NOISE_OTHER ? to - taken : entered, to);
}

/* ---- the plan goes on ------------------------------------------------------------ */

/* Wall clock time on the plan's clock; before the epoch, 0. */
static u64 plan_now(const struct kcoll_noise_injector *injector)
{
	s64 now = ktime_get_real() - injector->epoch;

	return max_t(s64, now, 0);
}

/* One event, if it is still due and may be. Returns when the next one is, wall clock. */
static ktime_t event_inject_next(struct kcoll_noise_cpu *ncpu)
{
	const struct kcoll_noise_injector *injector = ncpu->injector;
	u64 patience = clamp_t(u64, injector->model.period, NSEC_PER_MSEC, 10 * NSEC_PER_MSEC);
	u64 entered = ktime_get_mono_fast_ns(), now = plan_now(injector);
	struct coll_noise_span event;

	stream_skip_missed(ncpu, now > patience ? now - patience : 0, SKIP_MAX);
	if (ncpu->next.start <= plan_now(injector)) {
		event = event_next_joined(ncpu);
		if (budget_allows(ncpu, entered, event.duration))
			event_inject(ncpu, &event, entered);
		else
			kcoll_sum_add(&ncpu->refused, 1);
	}
	return injector->epoch + ncpu->next.start;
}

static bool noise_goes_on(const struct kcoll_noise_cpu *ncpu)
{
	return READ_ONCE(ncpu->on) &&
	       ktime_get_mono_fast_ns() < READ_ONCE(ncpu->injector->deadline);
}

/* ---- timer, thread ----------------------------------------------------------------- */

static enum hrtimer_restart noise_timer(struct hrtimer *timer)
{
	struct kcoll_noise_cpu *ncpu = container_of(timer, struct kcoll_noise_cpu, timer);
	ktime_t next, now;

	/* A CPU that goes offline leaves its timers to another: not there. */
	if (!noise_goes_on(ncpu) || smp_processor_id() != ncpu->number)
		return HRTIMER_NORESTART;
	if (ncpu->thread) {
		WRITE_ONCE(ncpu->due, true);
		wake_up_process(ncpu->thread);
		return HRTIMER_NORESTART;
	}
	next = event_inject_next(ncpu);
	now = ktime_get_real();
	ncpu->in_a_row = next > now ? 0 : ncpu->in_a_row + 1;
	if (ncpu->in_a_row > LATE_MAX) {	/* the CPU does something else now and then */
		ncpu->in_a_row = 0;
		next = now + COLL_NOISE_GAP_MIN;
	}
	hrtimer_set_expires(timer, next);
	return HRTIMER_RESTART;
}

static enum hrtimer_mode timer_mode(const struct kcoll_noise_injector *injector)
{
	return injector->context == COLL_NOISE_TASKLET ? HRTIMER_MODE_ABS_PINNED_SOFT :
							 HRTIMER_MODE_ABS_PINNED_HARD;
}

static int noise_thread(void *data)
{
	struct kcoll_noise_cpu *ncpu = data;
	ktime_t next;

	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		if (!xchg(&ncpu->due, false)) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		next = event_inject_next(ncpu);
		if (noise_goes_on(ncpu))
			hrtimer_start(&ncpu->timer, next, timer_mode(ncpu->injector));
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static int noise_make_thread(struct kcoll_noise_cpu *ncpu)
{
	struct task_struct *thread =
		kthread_create_on_cpu(noise_thread, ncpu, ncpu->number, COLL_INJECTOR_COMM "/%u");

	if (IS_ERR(thread))
		return PTR_ERR(thread);
	if (ncpu->injector->context == COLL_NOISE_FIFO)
		sched_set_fifo(thread);
	ncpu->thread = thread;
	wake_up_process(thread);
	return 0;
}

/* On the ncpu's CPU: a pinned timer runs where it was started. */
static void noise_start_timer(void *data)
{
	struct kcoll_noise_cpu *ncpu = data;

	hrtimer_start(&ncpu->timer, ncpu->injector->epoch + ncpu->next.start,
		      timer_mode(ncpu->injector));
}

int kcoll_noise_cpu_start(struct kcoll_noise_cpu *ncpu)
{
	struct kcoll_noise_injector *injector = ncpu->injector;
	int error;

	coll_noise_seek(&injector->plan, &ncpu->stream, plan_now(injector));
	event_next(ncpu);
	ncpu->budget = budget_most(injector);
	ncpu->budget_at = ktime_get_mono_fast_ns();
	ncpu->due = false;
	hrtimer_setup(&ncpu->timer, noise_timer, CLOCK_REALTIME, timer_mode(injector));
	if (noise_in_thread(injector)) {
		error = noise_make_thread(ncpu);
		if (error)
			return error;
	}
	WRITE_ONCE(ncpu->on, true);
	ncpu->state = COLL_NOISE_INJECTING;
	error = smp_call_function_single(ncpu->number, noise_start_timer, ncpu, 1);
	if (error)
		kcoll_noise_cpu_stop(ncpu);
	return error;
}

/*
 * The thread may start the timer again after the first cancel, but what then
 * fires sees that the ncpu is off, and touches no thread.
 */
void kcoll_noise_cpu_stop(struct kcoll_noise_cpu *ncpu)
{
	if (ncpu->state != COLL_NOISE_INJECTING)
		return;
	WRITE_ONCE(ncpu->on, false);
	hrtimer_cancel(&ncpu->timer);
	if (ncpu->thread) {
		kthread_stop(ncpu->thread);
		hrtimer_cancel(&ncpu->timer);
		ncpu->thread = NULL;
	}
	stream_skip_missed(ncpu, plan_now(ncpu->injector), SKIP_MAX_AT_END);
	ncpu->state = COLL_NOISE_ENDED;
}
