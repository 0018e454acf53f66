/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A thread that works in the kernel for the program that makes it. From Linux 6.10 on it is a
 * thread of that program, as vhost's are: its cgroups with all their limits, RLIMIT_NPROC,
 * cpusets, the freezer, SIGSTOP and SIGKILL hold for it as for any other, and `cpu.max` from
 * 6.18 on throttles no other kind of thread that works in the kernel. Before that, and where
 * the kernel has no vhost, it is a kernel thread that joins the program's cgroups.
 */
#ifndef COLL_KMOD_WORKER_H
#define COLL_KMOD_WORKER_H

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/sched.h>
#include <linux/task_work.h>

struct sched_attr;
struct vhost_task;

struct kcoll_worker {
	/*
	 * Some work, and then sleep if there is no more: in kcoll_worker_state(), and if
	 * kcoll_worker_may_sleep() after that has been set. Called again and again.
	 */
	void (*turn)(void *argument);
	/* A signal has ended the thread: no other turn comes. Not while start or stop last. */
	void (*killed)(void *argument);
	void *argument;
	/* Filled in by kcoll_worker_start(). */
	struct task_struct *task;	/* valid until it is stopped, also when it was killed */
	bool stops;
	struct vhost_task *vhost;	/* NULL: a kernel thread */
	const struct cpumask *cpus;	/* these three until it has started, or failed to */
	const struct sched_attr *attr;
	struct completion started;
	int error;			/* what it failed with */
};

/*
 * Called by the program itself. `opener`: whose cgroups a kernel thread joins. -ENXIO: no CPU of
 * `cpus` is online; -EAGAIN: RLIMIT_NPROC or pids.max; -EPERM: an io_uring worker calls, whose
 * copy the thread would be. Where kcoll_worker_failed() is true after an error, the thread waits
 * to be stopped.
 */
int kcoll_worker_start(struct kcoll_worker *worker, const char *name, struct task_struct *opener,
		       const struct cpumask *cpus, const struct sched_attr *attr);
/* The thread has ended when this returns. Without any lock that turn() or killed() takes. */
void kcoll_worker_stop(struct kcoll_worker *worker);

static inline bool kcoll_worker_exists(const struct kcoll_worker *worker)
{
	return worker->vhost || worker->task;
}

static inline bool kcoll_worker_failed(const struct kcoll_worker *worker)
{
	return worker->vhost && worker->error;
}

/* Asked by the thread. What it has put off, the last file's end for one, comes before sleep. */
static inline bool kcoll_worker_may_sleep(const struct kcoll_worker *worker)
{
	return !READ_ONCE(worker->stops) && !(worker->vhost && task_work_pending(current));
}

/* For set_current_state(): signals wake a thread of the program, and end its turn. */
static inline unsigned int kcoll_worker_state(const struct kcoll_worker *worker)
{
	return worker->vhost ? TASK_INTERRUPTIBLE : TASK_IDLE;
}

#endif
