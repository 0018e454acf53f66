// SPDX-License-Identifier: GPL-2.0
/*
 * The thread of one open file. It sleeps until a socket wakes it, a command
 * leaves it work, or a deadline passes; then it does a bounded amount of work under the
 * lock. Idle, it has no timer.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/types.h>
#include <uapi/linux/sched/types.h>

#include "kmod/common/sum.h"
#include "kmod/common/worker.h"
#include "run.h"
#include "runner.h"

static void runner_start_runs(struct kcoll_device *device)
{
	struct kcoll_run *run;

	while ((run = list_first_entry_or_null(&device->fresh, struct kcoll_run, fresh))) {
		list_del_init(&run->fresh);
		kcoll_run_step(run);
		if (kcoll_device_yields(device))
			return;
	}
}

/*
 * Polls once each link that woke up; commands may take the lock between two passes. Links
 * that are not reached before the device yields stay woken.
 */
static void runner_poll_links(struct kcoll_device *device)
{
	u32 left = READ_ONCE(device->ready.woken);
	struct kcoll_link *link;

	while (left-- && (link = kcoll_ready_take(&device->ready))) {
		if (kcoll_link_poll(link))
			kcoll_link_wake(link);
		if (kcoll_device_yields(device))
			return;
	}
}

static void runner_deadlines(struct kcoll_device *device)
{
	u64 now = ktime_get_ns();
	struct kcoll_group *group;

	if (now < device->deadline)
		return;
	WRITE_ONCE(device->deadline, U64_MAX);
	list_for_each_entry(group, &device->groups, node)
		kcoll_group_deadlines(group, now);
	device->ops->due(device, now);
}

static bool runner_has_work(struct kcoll_device *device)
{
	return READ_ONCE(device->ready.woken) || !list_empty_careful(&device->fresh);
}

/* Polls a little longer before it sleeps: a wake-up costs more than that. */
static bool runner_spin(struct kcoll_device *device)
{
	u64 until = ktime_get_ns() + device->spin;

	while (device->spin && ktime_get_ns() < until && !need_resched()) {
		if (runner_has_work(device))
			return true;
		cpu_relax();
	}
	return false;
}

static void runner_sleep(struct kcoll_device *device)
{
	ktime_t deadline;

	if (runner_spin(device))
		return;
	set_current_state(kcoll_worker_state(&device->worker));
	/* Read after the state is set: a command that shortens it from now on wakes the thread. */
	deadline = READ_ONCE(device->deadline);
	if (!runner_has_work(device) && kcoll_worker_may_sleep(&device->worker)) {
		kcoll_sum_add(&device->counters.sleeps, 1);
		if (deadline == (ktime_t)U64_MAX)
			schedule();
		else
			schedule_hrtimeout_range(&deadline, 1000, HRTIMER_MODE_ABS);
	}
	__set_current_state(TASK_RUNNING);
}

/* One tick for runs and one for links: neither keeps the other waiting. */
static void runner_poll(struct kcoll_device *device)
{
	device->hold_until = jiffies + 1;
	runner_start_runs(device);
	device->hold_until = jiffies + 1;
	runner_poll_links(device);
	runner_deadlines(device);
}

/* A tick at most: commands that follow each other do not stop the thread. */
static void runner_let_in(struct kcoll_device *device)
{
	if (atomic_read(&device->wanted))
		wait_event_idle_timeout(device->let_in, !atomic_read(&device->wanted), 1);
}

/*
 * What the thread takes is its opener's: memory by the memory cgroup, files' and sockets'
 * permissions by the credentials; CPU time by the thread's own cgroups.
 */
static void runner_turn(void *argument)
{
	struct kcoll_device *device = argument;
	const struct cred *own = override_creds(device->cred);
	struct mem_cgroup *memcg = set_active_memcg(device->memcg);

	runner_let_in(device);
	mutex_lock(&device->lock);
	device->counters.polls++;
	runner_poll(device);
	/* A tick adds to it. */
	WRITE_ONCE(device->counters.busy, READ_ONCE(current->se.sum_exec_runtime));
	mutex_unlock(&device->lock);
	cond_resched();
	if (!runner_has_work(device))
		runner_sleep(device);
	set_active_memcg(memcg);
	revert_creds(own);
}

/* From now on it is woken: for what came before, it looks before it sleeps. */
static void runner_begun(void *argument)
{
	struct kcoll_device *device = argument;

	mutex_lock(&device->lock);
	if (!device->ended)
		WRITE_ONCE(device->ready.thread, current);
	mutex_unlock(&device->lock);
}

/* No link is left to wake it. */
static void runner_killed(void *argument)
{
	struct kcoll_device *device = argument;

	device->ops->killed(device);
	kcoll_device_lock(device);
	WRITE_ONCE(device->ready.thread, NULL);
	kcoll_device_unlock(device);
}

/* ---- start and stop ------------------------------------------------------------ */

/*
 * Whether the thread would come before the caller. SCHED_IDLE comes after every nice value, which
 * such a caller has all the same.
 */
static bool runner_outranks_caller(const struct coll_device_setup *asked)
{
	return asked->policy == COLL_DEVICE_FIFO || current->policy == SCHED_IDLE ||
	       asked->priority < task_nice(current);
}

/* A thread of another process with the same files would be held by that one's signals. */
static int runner_check_setup(const struct kcoll_device *device,
			      const struct coll_device_setup *asked)
{
	bool nice = asked->policy == COLL_DEVICE_NORMAL && asked->priority >= MIN_NICE &&
		    asked->priority <= MAX_NICE;
	bool fifo = asked->policy == COLL_DEVICE_FIFO && asked->priority >= 1 &&
		    asked->priority < MAX_RT_PRIO;

	if (!same_thread_group(current, device->account.task))
		return -EPERM;
	if ((!nice && !fifo) || asked->spin > COLL_DEVICE_SPIN_MAX)
		return -EINVAL;
	if (asked->cpu != COLL_NONE && (asked->cpu >= nr_cpu_ids || !cpu_online(asked->cpu)))
		return -ENXIO;
	if (runner_outranks_caller(asked) && !capable(CAP_SYS_NICE))
		return -EPERM;
	if (asked->cpu != COLL_NONE && !cpumask_test_cpu(asked->cpu, current->cpus_ptr) &&
	    !capable(CAP_SYS_NICE))
		return -EPERM;
	return 0;
}

static struct sched_attr runner_priority(const struct coll_device_setup *asked)
{
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = asked->policy == COLL_DEVICE_FIFO ? SCHED_FIFO : SCHED_NORMAL,
	};

	if (asked->policy == COLL_DEVICE_FIFO)
		attr.sched_priority = asked->priority;
	else
		attr.sched_nice = asked->priority;
	return attr;
}

int kcoll_runner_start(struct kcoll_device *device, const struct coll_device_setup *asked)
{
	char name[TASK_COMM_LEN];
	int error = runner_check_setup(device, asked);

	if (error)
		return error;
	snprintf(name, sizeof(name), "coll/%d", task_tgid_nr(current));
	device->spin = asked->spin;
	device->worker.begun = runner_begun;
	device->worker.turn = runner_turn;
	device->worker.killed = runner_killed;
	device->worker.argument = device;
	device->worker.cpu = asked->cpu == COLL_NONE ? -1 : (int)asked->cpu;
	device->worker.attr = runner_priority(asked);
	return kcoll_worker_start(&device->worker, name, device->account.task);
}

/* Under the lock the thread that is woken is still there: it is forgotten before it is stopped. */
void kcoll_runner_retire(struct kcoll_device *device)
{
	kcoll_device_lock(device);
	kcoll_worker_retire(&device->worker);
	kcoll_ready_kick(&device->ready);
	kcoll_device_unlock(device);
}

void kcoll_runner_stop(struct kcoll_device *device)
{
	mutex_lock(&device->stopping);
	kcoll_device_lock(device);
	WRITE_ONCE(device->ready.thread, NULL);		/* no link is left to wake it */
	kcoll_device_unlock(device);
	if (kcoll_worker_exists(&device->worker))
		kcoll_worker_stop(&device->worker);
	mutex_unlock(&device->stopping);
}
