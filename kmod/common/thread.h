/* SPDX-License-Identifier: GPL-2.0 */
/* Kernel threads of the module that may run on several CPUs. */
#ifndef COLL_KMOD_THREAD_H
#define COLL_KMOD_THREAD_H

#include <linux/cpumask.h>
#include <linux/sched.h>

/*
 * A thread in the cgroups of `opener` (NULL: in the root's), on `cpus`; an ERR_PTR if none of
 * them is online. wake_up_process() starts it, kthread_stop() ends it.
 *
 * Nobody else sets its CPUs: not its first wake-up (since 6.14 it gives a kernel thread the
 * CPUs of its node), and not a cpuset that changes elsewhere, which gives kernel threads all
 * CPUs that no partition has, isolated ones included. Its own cpuset, below the root, does;
 * and 6.1's do all the same.
 */
struct task_struct *kcoll_thread_make(int (*function)(void *argument), void *argument,
				      struct task_struct *opener, const struct cpumask *cpus,
				      const char *name);

#endif
