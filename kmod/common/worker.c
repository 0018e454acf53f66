// SPDX-License-Identifier: GPL-2.0
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "compat.h"
#include "thread.h"
#include "worker.h"

/* ---- a thread of the program ---------------------------------------------------- */

#if COLL_USER_WORKERS
/*
 * On the CPU that was asked for. A cpuset that changes gives a thread of the program all CPUs
 * that it has: back to the one, unless that is not among them.
 */
static void worker_stay(struct kcoll_worker *worker)
{
	const struct cpumask *asked = cpumask_of(worker->cpu);

	if (!cpumask_equal(current->cpus_ptr, asked) &&
	    cpumask_test_cpu(worker->cpu, current->cpus_ptr))
		set_cpus_allowed_ptr(current, asked);
}

/* Only the thread itself knows its task. */
static void worker_settle(struct kcoll_worker *worker)
{
	WRITE_ONCE(worker->task, get_task_struct(current));
	worker->begun(worker->argument);
	/* The CPU has gone offline since: wherever the program may be. */
	if (worker->cpu >= 0)
		set_cpus_allowed_ptr(current, cpumask_of(worker->cpu));
	sched_setattr_nocheck(current, &worker->attr);
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

	__set_current_state(TASK_RUNNING);
	if (need_resched())
		schedule();
	if (task_work_pending(current)) {
		set_thread_flag(TIF_NOTIFY_SIGNAL);
		return true;
	}
	if (!worker->task)
		worker_settle(worker);
	else if (worker->cpu >= 0)
		worker_stay(worker);
	worker->turn(worker->argument);
	return true;
}

static void worker_killed(void *data)
{
	struct kcoll_worker *worker = data;

	worker->killed(worker->argument);
}

static int worker_start_user(struct kcoll_worker *worker, const char *name)
{
	struct vhost_task *vhost;

	if (current->flags & (PF_KTHREAD | COLL_PF_WORKER))
		return -EPERM;
	vhost = vhost_task_create(worker_turn, worker_killed, worker, name);
	if (IS_ERR(vhost))
		return PTR_ERR(vhost);
	if (!vhost)	/* any error, before 6.14 */
		return signal_pending(current) ? -ERESTARTNOINTR : -EAGAIN;
	worker->vhost = vhost;
	vhost_task_start(vhost);
	return 0;
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

	worker->begun(worker->argument);
	while (!kthread_should_stop() && !READ_ONCE(worker->stops))
		worker->turn(worker->argument);
	return 0;
}

static struct task_struct *worker_make(struct kcoll_worker *worker, const char *name,
				       struct task_struct *opener)
{
	struct task_struct *task;
	cpumask_var_t cpus;

	if (!alloc_cpumask_var(&cpus, GFP_KERNEL))
		return ERR_PTR(-ENOMEM);
	cpumask_copy(cpus, worker->cpu < 0 ? current->cpus_ptr : cpumask_of(worker->cpu));
	task = kcoll_thread_make(worker_thread, worker, opener, cpus, name);
	free_cpumask_var(cpus);
	return task;
}

static int worker_start_kernel(struct kcoll_worker *worker, const char *name,
			       struct task_struct *opener)
{
	struct task_struct *task = worker_make(worker, name, opener);
	int error;

	if (IS_ERR(task))
		return PTR_ERR(task);
	error = sched_setattr_nocheck(task, &worker->attr);
	if (error) {
		kthread_stop(task);
		return error;
	}
	WRITE_ONCE(worker->task, get_task_struct(task));
	wake_up_process(task);
	return 0;
}

/* ---- both ----------------------------------------------------------------------- */

int kcoll_worker_start(struct kcoll_worker *worker, const char *name, struct task_struct *opener)
{
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
