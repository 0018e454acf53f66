// SPDX-License-Identifier: GPL-2.0
/* Tasks moved to the CPUs of their rule, and given back the CPUs they had. */
#include <linux/cgroup.h>
#include <linux/rcupdate.h>
#include <linux/sched/task.h>
#include <linux/workqueue.h>

#include "kmod/common/compat.h"
#include "pin_entry.h"

#define MOVE_WAIT	(HZ / 10)

static struct cpumask target, previous;	/* of the move in progress; under the mutex */

/*
 * Who changes a task's CPUs waits until it has left those that it lost. One with migration disabled
 * leaves when it enables it again: where a thread of higher priority keeps the CPU to itself, that
 * may be never. After MOVE_WAIT a worker gives the task the CPU that it is on, which is the end of
 * the wait, and then those that it had.
 */
static struct {
	struct task_struct *task;
	struct cpumask back;
	bool given_up;
} waiting;

static void move_give_up(struct work_struct *work)
{
	const unsigned int cpu = task_cpu(waiting.task);
	/*
	 * What is set is cut to what the task itself has asked for, from 6.2 on: without this CPU
	 * the worker would wait, too.
	 */
	const bool keeps = cpumask_test_cpu(cpu, &waiting.back) ||
			   !READ_ONCE(waiting.task->user_cpus_ptr);

	waiting.given_up = true;
	set_cpus_allowed_ptr(waiting.task, cpumask_of(cpu));
	cpumask_set_cpu(cpu, &waiting.back);
	if (keeps)
		set_cpus_allowed_ptr(waiting.task, &waiting.back);
}

static DECLARE_DELAYED_WORK(giving_up, move_give_up);

/*
 * -EAGAIN: it has not left its CPU in time, and has this one, with those of `back` if it may have
 * both.
 */
static int move_set_cpus(struct task_struct *task, const struct cpumask *to,
			 const struct cpumask *back)
{
	int error;

	lockdep_assert_held(&kcoll_pin_mutex);
	waiting.task = task;
	waiting.given_up = false;
	cpumask_copy(&waiting.back, back);
	mod_delayed_work(coll_unbound_wq, &giving_up, MOVE_WAIT);
	error = set_cpus_allowed_ptr(task, to);
	cancel_delayed_work_sync(&giving_up);
	return waiting.given_up ? -EAGAIN : error;
}

static bool move_in_own_cpuset(struct task_struct *task)
{
#ifdef CONFIG_CPUSETS
	bool own;

	rcu_read_lock();
	own = task_css(task, cpuset_cgrp_id)->parent;
	rcu_read_unlock();
	return own;
#else
	return false;
#endif
}

/* 0: it may be moved to `to`, which a cpuset makes smaller; else a state, and *error. */
static int move_allowed(struct task_struct *task, const struct cpumask *had, struct cpumask *to,
			int *error)
{
	bool kthread = READ_ONCE(task->flags) & PF_KTHREAD;

	*error = 0;
	if (kthread && cpumask_weight(had) == 1)
		return COLL_PIN_PER_CPU;
	if (READ_ONCE(task->flags) & PF_NO_SETAFFINITY)
		*error = EPERM;
	else if (task->policy == SCHED_DEADLINE)
		*error = EBUSY;
	else if (move_in_own_cpuset(task) && !cpumask_and(to, to, had))
		*error = EINVAL;
	return *error ? COLL_PIN_REFUSED : 0;
}

/* Who does not leave its CPU in time keeps it: a clearing and the module's end wait for nobody. */
static void move_restore(const struct pin_task *pinned)
{
	/* All of them offline by now: anywhere, as the scheduler would. */
	if (move_set_cpus(pinned->task, pinned->saved, pinned->saved) == -EINVAL)
		set_cpus_allowed_ptr(pinned->task, cpu_possible_mask);
}

/* It has the CPUs again that it had: those of an earlier rule, or its own. */
static void move_put_off(struct pin_task *pinned, bool had_moved)
{
	kcoll_pin_set_state(pinned, had_moved ? COLL_PIN_MOVED : COLL_PIN_REFUSED,
			    had_moved ? 0 : EAGAIN);
	kcoll_pin_set_where(pinned, pinned->stranded);
	pinned->put_off = true;
}

/*
 * The entry is marked as moved, with the CPUs it had, before the task moves: a child born
 * meanwhile inherits that, whichever CPUs it started with. A task moved by an earlier
 * rule that cannot be moved by this one gets its original CPUs back.
 */
bool kcoll_pin_move(struct pin_task *pinned, struct pin_rule *rule)
{
	const bool had_moved = pinned->state == COLL_PIN_MOVED;
	int error, state;

	lockdep_assert_held(&kcoll_pin_mutex);
	/* It did not leave its CPU in time before: no more time for it until it can. */
	if (pinned->put_off && READ_ONCE(pinned->task->migration_disabled))
		return false;
	cpumask_copy(&target, rule->cpus);
	state = move_allowed(pinned->task, pinned->saved, &target, &error);
	if (state == COLL_PIN_MOVED) {
		kcoll_pin_set_state(pinned, COLL_PIN_MOVED, 0);
		cpumask_copy(&previous, &pinned->task->cpus_mask);
		error = -move_set_cpus(pinned->task, &target, &previous);
		if (error == EAGAIN) {
			move_put_off(pinned, had_moved);
			return false;
		}
		if (error)
			state = COLL_PIN_REFUSED;
	}
	if (had_moved && state != COLL_PIN_MOVED)
		move_restore(pinned);
	pinned->put_off = false;
	kcoll_pin_set_state(pinned, state, error);
	kcoll_pin_set_where(pinned, error && !cpumask_intersects(rule->cpus, cpu_active_mask));
	atomic64_add(state == COLL_PIN_MOVED, &rule->moved);
	atomic64_add(state == COLL_PIN_REFUSED, &rule->refused);
	return true;
}

void kcoll_pin_restore(struct pin_task *pinned)
{
	if (pinned->state == COLL_PIN_MOVED && (kcoll_pin_in_place(pinned) || kcoll_pin_is_stranded(pinned)))
		move_restore(pinned);
}
