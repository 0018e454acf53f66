// SPDX-License-Identifier: GPL-2.0
#include <linux/cgroup.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/rcupdate.h>

#include "thread.h"

/* Left out where it is in them: joining holds up all forks of the machine for some ms. */
static int thread_join_cgroups(struct task_struct *thread, struct task_struct *opener)
{
	if (!opener || rcu_access_pointer(opener->cgroups) == rcu_access_pointer(thread->cgroups))
		return 0;
	return cgroup_attach_task_all(opener, thread);
}

struct task_struct *kcoll_thread_make(int (*function)(void *argument), void *argument,
				      struct task_struct *opener, const struct cpumask *cpus,
				      const char *name)
{
	const unsigned int cpu = cpumask_any_and(cpus, cpu_online_mask);
	struct task_struct *thread;
	int error;

	if (cpu >= nr_cpu_ids)
		return ERR_PTR(-ENXIO);
	thread = kthread_create(function, argument, "%s", name);
	if (IS_ERR(thread))
		return thread;
	/* A cpuset takes no thread that is bound, and binds those that it takes. */
	error = thread_join_cgroups(thread, opener);
	if (!error) {
		kthread_bind(thread, cpu);
		error = set_cpus_allowed_ptr(thread, cpus);
	}
	if (!error)
		return thread;
	kthread_stop(thread);
	return ERR_PTR(error);
}
