// SPDX-License-Identifier: GPL-2.0
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/types.h>
#include <uapi/linux/sched/types.h>

#include "compat.h"
#include "thread.h"
#include "worker.h"

/* ---- a thread of the program ---------------------------------------------------- */

#if COLL_USER_WORKERS
/* Only the thread itself knows its task. */
static void worker_settle(struct kcoll_worker *worker)
{
	worker->error = set_cpus_allowed_ptr(current, worker->cpus);
	if (!worker->error)
		worker->error = sched_setattr_nocheck(current, worker->attr);
	if (!worker->error)
		worker->task = get_task_struct(current);
	complete(&worker->started);
}

/*
 * The kernel's task work waits for the thread's way back to user space, which does not come:
 * the notice makes the caller execute it, outside of all locks of ours. It is how cpu.max
 * throttles a thread: it is off the run queue then, and must not go to sleep before it has
 * been scheduled out.
 */
static bool worker_turn(void *data)
{
	struct kcoll_worker *worker = data;

	if (worker->error)
		return false;		/* to sleep until it is stopped */
	__set_current_state(TASK_RUNNING);
	if (need_resched())
		schedule();
	if (task_work_pending(current))
		set_thread_flag(TIF_NOTIFY_SIGNAL);
	else if (!worker->task)
		worker_settle(worker);
	else
		worker->turn(worker->argument);
	return true;
}

/* Whoever starts it holds locks that killed() may take: a thread that never started tells it. */
static void worker_killed(void *data)
{
	struct kcoll_worker *worker = data;

	if (worker->task) {
		worker->killed(worker->argument);
	} else if (!worker->error) {
		worker->error = -EINTR;
		complete(&worker->started);
	}
}

static int worker_start_user(struct kcoll_worker *worker, const char *name)
{
	struct vhost_task *vhost;

	if (current->flags & (PF_KTHREAD | COLL_PF_WORKER))
		return -EPERM;
	if (!cpumask_intersects(worker->cpus, cpu_online_mask))
		return -ENXIO;
	init_completion(&worker->started);
	vhost = vhost_task_create(worker_turn, worker_killed, worker, name);
	if (IS_ERR_OR_NULL(vhost))	/* NULL: any error, before 6.14 */
		return vhost ? PTR_ERR(vhost) : -EAGAIN;
	worker->vhost = vhost;
	vhost_task_start(vhost);
	wait_for_completion(&worker->started);
	return worker->error;
}

static void worker_stop_user(struct kcoll_worker *worker)
{
	vhost_task_stop(worker->vhost);
}
#else
static int worker_start_user(struct kcoll_worker *worker, const char *name)
{
	return -EOPNOTSUPP;
}

static void worker_stop_user(struct kcoll_worker *worker)
{
}
#endif

/* ---- a kernel thread ------------------------------------------------------------ */

static int worker_thread(void *data)
{
	struct kcoll_worker *worker = data;

	while (!kthread_should_stop())
		worker->turn(worker->argument);
	return 0;
}

static int worker_start_kernel(struct kcoll_worker *worker, const char *name,
			       struct task_struct *opener)
{
	struct task_struct *task = kcoll_thread_make(worker_thread, worker, opener, worker->cpus,
						     name);
	int error;

	if (IS_ERR(task))
		return PTR_ERR(task);
	error = sched_setattr_nocheck(task, worker->attr);
	if (error) {
		kthread_stop(task);
		return error;
	}
	worker->task = get_task_struct(task);
	wake_up_process(task);
	return 0;
}

/* ---- both ----------------------------------------------------------------------- */

int kcoll_worker_start(struct kcoll_worker *worker, const char *name, struct task_struct *opener,
		       const struct cpumask *cpus, const struct sched_attr *attr)
{
	worker->error = 0;
	worker->stops = false;
	worker->cpus = cpus;
	worker->attr = attr;
	if (COLL_USER_WORKERS)
		return worker_start_user(worker, name);
	return worker_start_kernel(worker, name, opener);
}

void kcoll_worker_stop(struct kcoll_worker *worker)
{
	/* Read after it has set its state; then it is woken. */
	WRITE_ONCE(worker->stops, true);
	if (worker->vhost)
		worker_stop_user(worker);
	else
		kthread_stop(worker->task);
	if (worker->task)
		put_task_struct(worker->task);
	worker->task = NULL;
	worker->vhost = NULL;
}
