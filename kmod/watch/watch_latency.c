// SPDX-License-Identifier: GPL-2.0
/*
 * The latency of a wake-up. A timer of the CPU wakes a thread of the CPU, once a period;
 * measured is how late the timer's interrupt is, and how late the thread. All times are
 * absolute: what one wake-up is late the next one is not. What had the time between is
 * the open case of the watch, which begins when the timer is due.
 *
 * With a threshold the timer comes a second time, when the thread should have run: if it
 * has not, this interrupt ends the measurement while the culprit is at work.
 */
#define pr_fmt(fmt) "coll: " fmt

#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <uapi/linux/sched/types.h>

#include "kmod/common/compat.h"
#include "watch.h"

/* ---- what was measured ------------------------------------------------------------ */

static void stage_add(struct watch_stage *stage, u64 latency)
{
	kcoll_sum_add(&stage->histogram[coll_bucket(latency)], 1);
	WRITE_ONCE(stage->min, stage->count ? min(stage->min, latency) : latency);
	WRITE_ONCE(stage->max, max(stage->max, latency));
	kcoll_sum_add(&stage->total, latency);
	kcoll_sum_add(&stage->count, 1);
}

/* Keeps the longest ones. */
static void worst_add(struct watch_latency *latency, const struct watch_case *closed)
{
	u32 least = 0, i;

	if (latency->worsts < WATCH_WORST) {
		latency->worst[latency->worsts++] = *closed;
		return;
	}
	for (i = 1; i < WATCH_WORST; i++)
		if (latency->worst[i].total < latency->worst[least].total)
			least = i;
	if (closed->total > latency->worst[least].total)
		latency->worst[least] = *closed;
}

/* ---- timer ------------------------------------------------------------------------ */

/* Sets it for the next period, or the first. */
static void latency_arm(struct watch_latency *latency)
{
	struct watch_cpu *watch = latency->watch;
	u64 due = watch->open.start ?: watch->last, passed;

	due += latency->period;
	if (due <= watch->last) {
		passed = div64_u64(watch->last - due, latency->period) + 1;
		kcoll_sum_add(&latency->missed, passed);
		due += passed * latency->period;
	}
	watch->open = (struct watch_case){ .start = due };
	hrtimer_start(&latency->timer, ns_to_ktime(due), HRTIMER_MODE_ABS_PINNED_HARD);
}

static void latency_due(struct watch_latency *latency)
{
	struct watch_cpu *watch = latency->watch;
	s64 late = ktime_get_mono_fast_ns() - watch->open.start;

	watch->open.timer = max_t(s64, late, 1);
	WRITE_ONCE(latency->woken, true);
	wake_up_process(latency->thread);
}

/* Of one that is being stopped, whose CPU has gone, or that a threshold has ended: nothing. */
static bool latency_goes_on(const struct watch_latency *latency)
{
	const struct watch_cpu *watch = latency->watch;

	return READ_ONCE(latency->on) && smp_processor_id() == watch->cpu &&
	       this_cpu_read(kcoll_watched) == watch && !kcoll_watch_over(watch);
}

static enum hrtimer_restart latency_timer(struct hrtimer *timer)
{
	struct watch_latency *latency = container_of(timer, struct watch_latency, timer);
	struct watch_cpu *watch = latency->watch;

	if (!latency_goes_on(latency))
		return HRTIMER_NORESTART;
	if (watch->open.timer) {	/* the second time */
		kcoll_watch_flush(watch);
		return HRTIMER_NORESTART;
	}
	latency_due(latency);
	if (!watch->limit)
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, ns_to_ktime(watch->open.start + watch->limit->threshold +
					       NSEC_PER_USEC));
	return HRTIMER_RESTART;
}

/* ---- thread ----------------------------------------------------------------------- */

/* In the thread, on its CPU unless that is going offline. */
static void latency_woken(struct watch_latency *latency)
{
	struct watch_cpu *watch = latency->watch;
	unsigned long flags;

	local_irq_save(flags);
	if (latency_goes_on(latency)) {
		kcoll_watch_flush(watch);
		if (watch->open.timer && !kcoll_watch_over(watch)) {
			stage_add(&latency->stage[COLL_WATCH_TIMER], watch->open.timer);
			stage_add(&latency->stage[COLL_WATCH_THREAD], watch->open.total);
			worst_add(latency, &watch->open);
		}
		if (!kcoll_watch_over(watch))
			latency_arm(latency);
	}
	local_irq_restore(flags);
}

static int latency_thread(void *data)
{
	struct watch_latency *latency = data;

	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		if (!xchg(&latency->woken, false)) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		latency_woken(latency);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static int latency_schedule(struct task_struct *thread, u32 priority)
{
	const struct sched_attr attributes = {
		.size = sizeof(attributes),
		.sched_policy = priority ? SCHED_FIFO : SCHED_NORMAL,
		.sched_priority = priority,
	};

	return sched_setattr_nocheck(thread, &attributes);
}

/* ---- start, stop ------------------------------------------------------------------ */

struct watch_latency *kcoll_latency_make(struct watch_cpu *watch, u64 period, u32 priority)
{
	struct watch_latency *latency = kvzalloc_node(sizeof(*latency), COLL_GFP,
						      cpu_to_node(watch->cpu));

	if (!latency)
		return NULL;
	latency->watch = watch;
	latency->period = period;
	latency->priority = priority;
	hrtimer_setup(&latency->timer, latency_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED_HARD);
	return latency;
}

int kcoll_latency_start(struct watch_latency *latency)
{
	struct task_struct *thread;
	int error;

	thread = kthread_create_on_cpu(latency_thread, latency, latency->watch->cpu,
				       "coll-wake/%u");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	error = latency_schedule(thread, latency->priority);
	if (error) {
		kthread_stop(thread);
		return error;
	}
	WRITE_ONCE(latency->thread, thread);
	latency->woken = true;		/* to set the timer the first time, on its CPU */
	WRITE_ONCE(latency->on, true);
	wake_up_process(thread);
	return 0;
}

/* The thread may set the timer again after the first cancel; what fires then does nothing. */
void kcoll_latency_stop(struct watch_latency *latency)
{
	if (!latency || !latency->thread)
		return;
	WRITE_ONCE(latency->on, false);
	hrtimer_cancel(&latency->timer);
	kthread_stop(latency->thread);
	hrtimer_cancel(&latency->timer);
	WRITE_ONCE(latency->thread, NULL);
}
