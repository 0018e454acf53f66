// SPDX-License-Identifier: GPL-2.0
/* Tasks moved to the CPUs of their rule, and given back the CPUs they had. */
#include <linux/cgroup.h>
#include <linux/rcupdate.h>
#include <linux/sched/task.h>

#include "pin_entry.h"

static struct cpumask target;	/* of the move in progress; under the mutex */

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

static void move_restore(const struct pin_task *pinned)
{
	/* All of them offline by now: anywhere, as the scheduler would. */
	if (set_cpus_allowed_ptr(pinned->task, pinned->saved) == -EINVAL)
		set_cpus_allowed_ptr(pinned->task, cpu_possible_mask);
}

/*
 * The entry is marked as moved, with the CPUs it had, before the task moves: a child born
 * meanwhile inherits that, whichever CPUs it started with. A task moved by an earlier
 * rule that cannot be moved by this one gets its original CPUs back.
 */
void kcoll_pin_move(struct pin_task *pinned, struct pin_rule *rule)
{
	const bool had_moved = pinned->state == COLL_PIN_MOVED;
	int error, state;

	lockdep_assert_held(&kcoll_pin_mutex);
	cpumask_copy(&target, rule->cpus);
	state = move_allowed(pinned->task, pinned->saved, &target, &error);
	if (state == COLL_PIN_MOVED) {
		kcoll_pin_set_state(pinned, COLL_PIN_MOVED, 0);
		error = -set_cpus_allowed_ptr(pinned->task, &target);
		if (error)
			state = COLL_PIN_REFUSED;
	}
	if (had_moved && state != COLL_PIN_MOVED)
		move_restore(pinned);
	kcoll_pin_set_state(pinned, state, error);
	kcoll_pin_set_where(pinned, error && !cpumask_intersects(rule->cpus, cpu_active_mask));
	atomic64_add(state == COLL_PIN_MOVED, &rule->moved);
	atomic64_add(state == COLL_PIN_REFUSED, &rule->refused);
}

void kcoll_pin_restore(struct pin_task *pinned)
{
	if (pinned->state == COLL_PIN_MOVED && (kcoll_pin_in_place(pinned) || kcoll_pin_is_stranded(pinned)))
		move_restore(pinned);
}
