// SPDX-License-Identifier: GPL-2.0
/*
 * Whether the task that is watched waits for its CPU: from when one of its threads is woken there, comes from
 * elsewhere or is preempted, until it runs or goes elsewhere. Only then is what others have of the CPU taken from it.
 */
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "watch.h"

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

/* How much of it was taken from the task: it ran, or waited, or left or came meanwhile. */
u64 kcoll_wait_part(const struct watch_cpu *watch, u64 passed)
{
	const pid_t waiting = smp_load_acquire(&watch->waiting);	/* pairs with kcoll_wait_begin(): `came` is its */
	const u64 left = READ_ONCE(watch->left), from = max(READ_ONCE(watch->came), watch->last);

	if (task_runs(watch))
		return passed;
	if (waiting)
		return passed - min(from - watch->last, passed);
	return left > from ? min(left - from, passed) : 0;
}

/*
 * A thread that was woken before it had gone to sleep waits no more when it does; another one of the task may
 * wait, and goes on.
 */
void kcoll_wait_switch(struct watch_cpu *watch, const struct task_struct *prev, const struct task_struct *next,
		       bool runnable)
{
	if (runnable && kcoll_wait_is_for(watch, prev))
		WRITE_ONCE(watch->waiting, prev->pid);
	else if (watch->waiting == prev->pid)
		WRITE_ONCE(watch->waiting, 0);
	if (watch->waiting == next->pid)
		WRITE_ONCE(watch->waiting, 0);
}

/* Called on any CPU: a thread of the task waits on that one from now on. Of several at once the first counts. */
void kcoll_wait_begin(const struct task_struct *task, int cpu)
{
	struct watch_cpu *watch = READ_ONCE(per_cpu(kcoll_watched, cpu));

	if (!watch || !kcoll_wait_is_for(watch, task) || READ_ONCE(watch->waiting))
		return;
	WRITE_ONCE(watch->came, kcoll_watch_now());
	smp_store_release(&watch->waiting, task->pid);
}

/* Called on any CPU: a thread that waits on a watched one goes elsewhere. */
void kcoll_wait_elsewhere(const struct task_struct *task, int cpu)
{
	struct watch_cpu *watch;

	rcu_read_lock();
	watch = READ_ONCE(per_cpu(kcoll_watched, task_cpu(task)));
	if (watch && READ_ONCE(watch->waiting) == task->pid) {
		WRITE_ONCE(watch->left, kcoll_watch_now());
		if (cmpxchg(&watch->waiting, task->pid, 0) == task->pid)
			kcoll_wait_begin(task, cpu);
	}
	rcu_read_unlock();
}
