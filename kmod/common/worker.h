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

#include <linux/sched.h>
#include <linux/task_work.h>
#include <uapi/linux/sched/types.h>

struct vhost_task;

struct kcoll_worker {
	/* The first call in the thread. */
	void (*begun)(void *argument);
	/*
	 * Some work, and then sleep if there is no more: in kcoll_worker_state(), and if
	 * kcoll_worker_may_sleep() after that has been set. Called again and again.
	 */
	void (*turn)(void *argument);
	/* A signal has ended the thread, maybe before it began: no turn comes any more. */
	void (*killed)(void *argument);
	void *argument;
	int cpu;			/* -1: all that the program may use */
	struct sched_attr attr;
	/* Filled in by kcoll_worker_start(). */
	struct task_struct *task;	/* from begun() until it is stopped, also when killed */
	bool stops;
	struct vhost_task *vhost;	/* NULL: a kernel thread */
};

/*
 * Called by the program itself. It waits for nothing: signals may hold a thread of the program as
 * long as they like. `opener`: whose cgroups a kernel thread joins. -ENXIO: the CPU is not online;
 * -EAGAIN: RLIMIT_NPROC or pids.max; -ERESTARTNOINTR: a signal came; -EPERM: an io_uring worker
 * calls, whose copy the thread would be.
 */
int kcoll_worker_start(struct kcoll_worker *worker, const char *name, struct task_struct *opener);
/*
 * No call comes any more when this returns. Without any lock that these take. It waits for a
 * thread of the program that is stopped or frozen, as the end of such a program does.
 */
void kcoll_worker_stop(struct kcoll_worker *worker);

/*
 * A kernel thread ends after its turn, and nobody waits for it; the caller wakes it. To be called
 * once a thread of the program is gone. kcoll_worker_stop() is to come all the same.
 */
static inline void kcoll_worker_retire(struct kcoll_worker *worker)
{
	WRITE_ONCE(worker->stops, true);
}

static inline bool kcoll_worker_exists(const struct kcoll_worker *worker)
{
	return worker->vhost || worker->task;
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
