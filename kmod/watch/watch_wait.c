// SPDX-License-Identifier: GPL-2.0
/*
 * Whether the task that is watched waits for its CPU: from when one of its threads is woken there, is
 * preempted, or comes from elsewhere and is ready, until it runs or goes elsewhere. Only then is what others
 * have of the CPU taken from it. It comes from any CPU; when it goes to one that is not watched for it nothing
 * tells of it there, and that is counted. Who was preempted elsewhere on its way to sleep, and comes, is taken for one that
 * sleeps: from 6.12 on one that does sleep may be on a run queue, too.
 *
 * Each thread that waits has a slot with its number, which is set once, however often it is woken. CPUs that wake a
 * thread, or take it elsewhere, hold other locks than this one: they change a slot from what they saw only.
 */
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "watch.h"

enum {
	LOOK_MOST = 256,	/* threads of a process that are looked at when its watch begins */
	/* task->on_rq, as kernel/sched/sched.h has it */
	ON_RQ_QUEUED = 1,
	ON_RQ_MIGRATING = 2,
};

/* It is what noise delays. */
bool kcoll_wait_is_for(const struct watch_cpu *watch, const struct task_struct *task)
{
	if (!watch->thread[0])
		return watch->task && task->tgid == watch->task;
	return task->pid == watch->thread[0] || task->pid == watch->thread[1];
}

static bool task_runs(const struct watch_cpu *watch)
{
	return !watch->task || watch->frames[0].nobody == &watch->ran;
}

/* It would run if it had a CPU. */
static bool is_ready(const struct task_struct *task, int on_rq)
{
	return READ_ONCE(task->on_rq) == on_rq && task_is_running(task);
}

/* ---- slots ---------------------------------------------------------------------- */

/* Of two threads two: they all have one. Of more that wait at once the others are not known to. */
static int wait_slots(const struct watch_cpu *watch)
{
	return watch->thread[0] ? ARRAY_SIZE(watch->thread) : WATCH_WAITERS;
}

static bool wait_has(const struct watch_cpu *watch, pid_t pid)
{
	const int slots = wait_slots(watch);
	int i;

	for (i = 0; i < slots; i++)
		if (READ_ONCE(watch->waiting[i]) == pid)
			return true;
	return false;
}

bool kcoll_wait_any(const struct watch_cpu *watch)
{
	const int slots = wait_slots(watch);
	int i;

	for (i = 0; i < slots; i++)
		if (smp_load_acquire(&watch->waiting[i]))	/* pairs with wait_add(): `came` is not later */
			return true;
	return false;
}

bool kcoll_wait_wants(const struct watch_cpu *watch)
{
	return task_runs(watch) || kcoll_wait_any(watch);
}

/* From `time` on, if none waited before: of several at once the first counts. */
static void wait_add(struct watch_cpu *watch, pid_t pid, u64 time)
{
	const int slots = wait_slots(watch);
	int i;

	if (wait_has(watch, pid))
		return;
	if (!kcoll_wait_any(watch))
		WRITE_ONCE(watch->came, time);
	for (i = 0; i < slots; i++)
		if (!cmpxchg(&watch->waiting[i], 0, pid))
			return;
}

/* Returns whether it waited. */
static bool wait_remove(struct watch_cpu *watch, pid_t pid)
{
	const int slots = wait_slots(watch);
	bool waited = false;
	int i;

	for (i = 0; i < slots; i++)
		if (READ_ONCE(watch->waiting[i]) == pid)
			waited |= cmpxchg(&watch->waiting[i], pid, 0) == pid;
	return waited;
}

/* ---- what happens ----------------------------------------------------------------- */

/* How much of it was taken from the task: it ran, or waited, or left or came meanwhile. */
u64 kcoll_wait_part(const struct watch_cpu *watch, u64 passed)
{
	bool waits;
	u64 left, from;

	if (task_runs(watch))
		return passed;
	waits = kcoll_wait_any(watch);
	left = READ_ONCE(watch->left);
	from = max(READ_ONCE(watch->came), watch->last);
	if (waits)
		return passed - min(from - watch->last, passed);
	return left > from ? min(left - from, passed) : 0;
}

/* A thread that was woken before it had gone to sleep waits no more when it does. */
void kcoll_wait_switch(struct watch_cpu *watch, const struct task_struct *prev, const struct task_struct *next,
		       bool runnable)
{
	if (runnable && kcoll_wait_is_for(watch, prev))
		wait_add(watch, prev->pid, watch->last);
	else
		wait_remove(watch, prev->pid);
	wait_remove(watch, next->pid);
}

/* Called on any CPU: a thread of the task waits on that one from now on. */
void kcoll_wait_begin(const struct task_struct *task, int cpu)
{
	struct watch_cpu *watch = READ_ONCE(per_cpu(kcoll_watched, cpu));

	if (watch && kcoll_wait_is_for(watch, task))
		wait_add(watch, task->pid, kcoll_watch_now());
}

static bool is_watched_on(const struct watch_cpu *watch, const struct task_struct *task)
{
	return watch && kcoll_wait_is_for(watch, task);
}

/* Returns whether it waited there. */
static bool wait_leave(struct watch_cpu *watch, const struct task_struct *task)
{
	if (!wait_has(watch, task->pid))
		return false;
	WRITE_ONCE(watch->left, kcoll_watch_now());
	return wait_remove(watch, task->pid);
}

/* Called on any CPU: a thread goes from where it is to this one. What is woken on its way there is told of later. */
void kcoll_wait_elsewhere(const struct task_struct *task, int cpu)
{
	struct watch_cpu *watch;
	bool waited;

	rcu_read_lock();
	watch = READ_ONCE(per_cpu(kcoll_watched, task_cpu(task)));
	smp_mb();		/* pairs with wait_look_at(): the task is not ready there, or its slot is seen */
	waited = watch && wait_leave(watch, task);
	if (waited || is_ready(task, ON_RQ_MIGRATING))
		kcoll_wait_begin(task, cpu);
	if (is_watched_on(watch, task) && !is_watched_on(READ_ONCE(per_cpu(kcoll_watched, cpu)), task))
		atomic64_inc(&watch->away);
	rcu_read_unlock();
}

/* ---- the begin ------------------------------------------------------------------- */

static bool is_ready_here(const struct watch_cpu *watch, const struct task_struct *task)
{
	return task_cpu(task) == watch->cpu && is_ready(task, ON_RQ_QUEUED);
}

/*
 * What is woken meanwhile sets its slot itself. What goes elsewhere meanwhile may not have seen the slot: it left the
 * run queue before it looked for that.
 */
static void wait_look_at(struct watch_cpu *watch, const struct task_struct *task)
{
	if (!task || task == current || !is_ready_here(watch, task))
		return;
	wait_add(watch, task->pid, watch->last);
	smp_mb();		/* pairs with kcoll_wait_elsewhere() */
	if (!is_ready_here(watch, task))
		wait_remove(watch, task->pid);
}

static struct task_struct *wait_thread(pid_t number)
{
	return pid_task(find_pid_ns(number, &init_pid_ns), PIDTYPE_PID);
}

static void wait_look_at_process(struct watch_cpu *watch)
{
	struct task_struct *process = wait_thread(watch->task), *thread;
	int count = 0;

	if (!process)
		return;
	for_each_thread(process, thread) {
		if (++count > LOOK_MOST)
			return;
		wait_look_at(watch, thread);
	}
}

void kcoll_wait_find(struct watch_cpu *watch)
{
	rcu_read_lock();
	if (watch->thread[0]) {
		wait_look_at(watch, wait_thread(watch->thread[0]));
		wait_look_at(watch, wait_thread(watch->thread[1]));
	} else if (watch->task) {
		wait_look_at_process(watch);
	}
	rcu_read_unlock();
}
