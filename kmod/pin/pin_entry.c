// SPDX-License-Identifier: GPL-2.0
/* Entries of pinned tasks: freed under the mutex, found and added under the lock as well. */
#include <linux/hashtable.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "pin_entry.h"

DEFINE_MUTEX(kcoll_pin_mutex);
static DEFINE_RAW_SPINLOCK(pin_lock);
static DEFINE_HASHTABLE(table, 12);
static LIST_HEAD(tasks);
static u64 last_number;

static struct pin_task *pin_find(const struct task_struct *task)
{
	struct pin_task *pinned;

	lockdep_assert_held(&pin_lock);
	hash_for_each_possible(table, pinned, hash, (unsigned long)task)
		if (pinned->task == task)
			return pinned;
	return NULL;
}

struct pin_task *kcoll_pin_find(const struct task_struct *task)
{
	struct pin_task *pinned;
	unsigned long flags;

	raw_spin_lock_irqsave(&pin_lock, flags);
	pinned = pin_find(task);
	raw_spin_unlock_irqrestore(&pin_lock, flags);
	return pinned;
}

bool kcoll_pin_is_tracked(const struct task_struct *task)
{
	unsigned long flags;
	bool tracked;

	raw_spin_lock_irqsave(&pin_lock, flags);
	tracked = pin_find(task);
	raw_spin_unlock_irqrestore(&pin_lock, flags);
	return tracked;
}

struct pin_task *kcoll_pin_entry_make(gfp_t gfp)
{
	struct pin_task *pinned = kzalloc(sizeof(*pinned) + 2 * cpumask_size(), gfp);

	if (!pinned)
		return NULL;
	pinned->saved = (struct cpumask *)(pinned + 1);
	pinned->set = (struct cpumask *)((char *)pinned->saved + cpumask_size());
	return pinned;
}

/* With the lock held. */
static void entry_add(struct pin_task *pinned, struct task_struct *task)
{
	lockdep_assert_held(&pin_lock);
	pinned->task = get_task_struct(task);
	pinned->number = ++last_number;
	hash_add(table, &pinned->hash, (unsigned long)task);
	list_add_tail(&pinned->list, &tasks);
}

void kcoll_pin_entry_free(struct pin_task *pinned)
{
	unsigned long flags;

	lockdep_assert_held(&kcoll_pin_mutex);
	raw_spin_lock_irqsave(&pin_lock, flags);
	hash_del(&pinned->hash);
	list_del(&pinned->list);
	raw_spin_unlock_irqrestore(&pin_lock, flags);
	put_task_struct(pinned->task);
	kfree(pinned);
}

struct pin_task *kcoll_pin_next(struct pin_task *pinned)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&pin_lock, flags);
	pinned = pinned ? list_next_entry(pinned, list) :
			  list_first_entry(&tasks, struct pin_task, list);
	if (list_entry_is_head(pinned, &tasks, list))
		pinned = NULL;
	raw_spin_unlock_irqrestore(&pin_lock, flags);
	return pinned;
}

void kcoll_pin_set_state(struct pin_task *pinned, u8 state, int error)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&pin_lock, flags);
	pinned->state = state;
	pinned->error = error;
	raw_spin_unlock_irqrestore(&pin_lock, flags);
}

void kcoll_pin_set_where(struct pin_task *pinned)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&pin_lock, flags);
	cpumask_copy(pinned->set, &pinned->task->cpus_mask);
	raw_spin_unlock_irqrestore(&pin_lock, flags);
}

bool kcoll_pin_in_place(const struct pin_task *pinned)
{
	return cpumask_equal(&pinned->task->cpus_mask, pinned->set);
}

/* Whether a child of this task has its CPUs. With the lock held. */
static bool pin_hands_on(const struct pin_task *of_parent, const struct task_struct *child)
{
	if (!of_parent)
		return false;
	return of_parent->state == COLL_PIN_MOVED ||
	       (of_parent->state == COLL_PIN_RESTORED &&
		cpumask_equal(&child->cpus_mask, of_parent->set));
}

/*
 * The child of a pinned task is pinned: it already has the parent's CPUs, and now gets the
 * CPUs that the parent had before. Kernel threads start with CPUs of their own.
 */
bool kcoll_pin_inherit(const struct task_struct *parent, struct task_struct *child)
{
	struct pin_task *pinned, *of_parent;
	unsigned long flags;
	bool handed_on;

	if (!kcoll_pin_is_tracked(parent) || child->flags & PF_KTHREAD)
		return false;
	pinned = kcoll_pin_entry_make(GFP_NOWAIT | __GFP_NOWARN);
	if (!pinned)
		return false;
	raw_spin_lock_irqsave(&pin_lock, flags);
	of_parent = pin_find(parent);
	handed_on = pin_hands_on(of_parent, child);
	if (handed_on) {
		cpumask_copy(pinned->saved, of_parent->saved);
		cpumask_copy(pinned->set, of_parent->set);
		pinned->rule = of_parent->rule;
		pinned->state = COLL_PIN_MOVED;
		pinned->inherited = true;
		entry_add(pinned, child);
	}
	raw_spin_unlock_irqrestore(&pin_lock, flags);
	if (!handed_on)
		kfree(pinned);
	return handed_on;
}

void kcoll_pin_entry_add(struct pin_task *pinned, struct task_struct *task)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&pin_lock, flags);
	entry_add(pinned, task);
	raw_spin_unlock_irqrestore(&pin_lock, flags);
}
