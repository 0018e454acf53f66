// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel thread of one open file. It sleeps until a socket wakes it, a
 * command leaves it work or a deadline is due, does a bounded amount under the
 * lock, and gives way. Idle it has no timer.
 */
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <uapi/linux/sched/types.h>

#include "device.h"

void kcoll_runner_kick(struct kcoll_device *device)
{
	if (device->thread)
		wake_up_process(device->thread);
}

void kcoll_runner_forget(struct kcoll_link *link)
{
	struct kcoll_device *device = link->group->device;
	struct kcoll_link *other, *next;

	llist_for_each_entry_safe(other, next, llist_del_all(&device->ready), ready)
		if (other != link)
			llist_add(&other->ready, &device->ready);
}

static void begin_fresh(struct kcoll_device *device)
{
	struct kcoll_running *run;

	while ((run = list_first_entry_or_null(&device->fresh, struct kcoll_running, fresh))) {
		list_del_init(&run->fresh);
		kcoll_run_step(run);
	}
}

/* One turn for each link that woke up; the lock is free for commands in between. */
static void turn_links(struct kcoll_device *device)
{
	struct llist_node *woken = llist_reverse_order(llist_del_all(&device->ready));
	struct kcoll_link *link, *next;

	llist_for_each_entry_safe(link, next, woken, ready) {
		clear_bit(0, &link->woken);
		smp_mb__after_atomic();		/* what wakes it from now on is looked at again */
		if (kcoll_link_turn(link))
			kcoll_link_wake(link);
	}
}

/* From half of its time on a run asks whom it waits for, eight times. */
static void ping_awaited(struct kcoll_running *run, u64 now)
{
	struct coll_header ping = {
		.kind = COLL_MESSAGE_PING,
		.version = COLL_WIRE_VERSION,
		.run = run->number,
		.slot = COLL_NONE,
		.hash = run->loaded->hash,
	};
	u32 rank = kcoll_run_awaits(run);
	struct kcoll_link *link = rank == COLL_NONE ? NULL :
						     xa_load(&run->loaded->group->links, rank);

	if (link && link->state == COLL_LINK_UP)
		kcoll_link_send_control(link, &ping);
	run->next_ping = now + (run->deadline - run->started) / 16;
}

static void group_deadlines(struct kcoll_group *group, u64 now)
{
	struct kcoll_device *device = group->device;
	struct kcoll_running *run;

	list_for_each_entry(run, &group->runs, node) {
		if (run->over)
			continue;
		if (run->deadline <= now) {
			kcoll_group_fail(group, -ETIMEDOUT, kcoll_group_suspect(group), COLL_NONE);
			break;
		}
		if (run->next_ping <= now)
			ping_awaited(run, now);
		device->deadline = min3(device->deadline, run->deadline, run->next_ping);
	}
	if (group->failing_until <= now)
		kcoll_group_give_up(group);
	device->deadline = min(device->deadline, group->failing_until);
}

static void check_deadlines(struct kcoll_device *device)
{
	u64 now = ktime_get_ns();
	struct kcoll_group *group;

	if (now < device->deadline)
		return;
	device->deadline = U64_MAX;
	list_for_each_entry(group, &device->groups, node)
		group_deadlines(group, now);
}

static bool has_work(struct kcoll_device *device)
{
	return !llist_empty(&device->ready) || !list_empty_careful(&device->fresh);
}

/* Looks a little longer before it sleeps: waking up costs more than that. */
static bool spin(struct kcoll_device *device)
{
	u64 until = ktime_get_ns() + device->spin;

	while (device->spin && ktime_get_ns() < until && !need_resched()) {
		if (has_work(device))
			return true;
		cpu_relax();
	}
	return false;
}

static void sleep_until_work(struct kcoll_device *device)
{
	ktime_t deadline = READ_ONCE(device->deadline);

	if (spin(device))
		return;
	set_current_state(TASK_IDLE);
	if (!has_work(device) && !kthread_should_stop()) {
		device->counters.sleeps++;
		if (deadline == (ktime_t)U64_MAX)
			schedule();
		else
			schedule_hrtimeout_range(&deadline, 1000, HRTIMER_MODE_ABS);
	}
	__set_current_state(TASK_RUNNING);
}

static int runner(void *argument)
{
	struct kcoll_device *device = argument;
	const struct cred *own = override_creds(device->cred);

	while (!kthread_should_stop()) {
		mutex_lock(&device->lock);
		device->counters.polls++;
		begin_fresh(device);
		turn_links(device);
		check_deadlines(device);
		device->counters.busy = current->se.sum_exec_runtime;
		mutex_unlock(&device->lock);
		cond_resched();
		if (!has_work(device))
			sleep_until_work(device);
	}
	revert_creds(own);
	return 0;
}

/* ---- start and stop -------------------------------------------------------------- */

static int check_setup(const struct coll_device_setup *asked)
{
	bool nice = asked->policy == COLL_DEVICE_NORMAL && asked->priority >= MIN_NICE &&
		    asked->priority <= MAX_NICE;
	bool fifo = asked->policy == COLL_DEVICE_FIFO && asked->priority >= 1 &&
		    asked->priority < MAX_RT_PRIO;

	if ((!nice && !fifo) || asked->spin > COLL_DEVICE_SPIN_MAX)
		return -EINVAL;
	if (asked->cpu != COLL_NONE && (asked->cpu >= nr_cpu_ids || !cpu_online(asked->cpu)))
		return -ENXIO;
	if ((fifo || asked->priority < task_nice(current)) && !capable(CAP_SYS_NICE))
		return -EPERM;
	if (asked->cpu != COLL_NONE && !cpumask_test_cpu(asked->cpu, current->cpus_ptr) &&
	    !capable(CAP_SYS_NICE))
		return -EPERM;
	return 0;
}

static int set_priority(struct task_struct *thread, const struct coll_device_setup *asked)
{
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = asked->policy == COLL_DEVICE_FIFO ? SCHED_FIFO : SCHED_NORMAL,
	};

	if (asked->policy == COLL_DEVICE_FIFO)
		attr.sched_priority = asked->priority;
	else
		attr.sched_nice = asked->priority;
	return sched_setattr_nocheck(thread, &attr);
}

int kcoll_runner_start(struct kcoll_device *device, const struct coll_device_setup *asked)
{
	struct task_struct *thread;
	cpumask_var_t cpus;
	int error = check_setup(asked);

	if (error)
		return error;
	thread = kthread_create(runner, device, "coll/%d", task_tgid_nr(current));
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	if (!alloc_cpumask_var(&cpus, GFP_KERNEL)) {
		error = -ENOMEM;
	} else {
		cpumask_copy(cpus, asked->cpu == COLL_NONE ? current->cpus_ptr :
							     cpumask_of(asked->cpu));
		error = set_cpus_allowed_ptr(thread, cpus) ?: set_priority(thread, asked);
		free_cpumask_var(cpus);
	}
	if (error) {
		kthread_stop(thread);
		return error;
	}
	get_task_struct(thread);
	device->spin = asked->spin;
	device->thread = thread;
	wake_up_process(thread);
	return 0;
}

void kcoll_runner_stop(struct kcoll_device *device)
{
	if (!device->thread)
		return;
	kthread_stop(device->thread);
	put_task_struct(device->thread);
}
