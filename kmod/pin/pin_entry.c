// SPDX-License-Identifier: GPL-2.0
/* Entries of pinned tasks: freed under the mutex, found and added under the lock as well. */
#include <linux/hashtable.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "pin_entry.h"
#include "pin_pool.h"

/* Held by all that change or free entries. */
DEFINE_MUTEX(kcoll_pin_mutex);
static DEFINE_RAW_SPINLOCK(pin_lock);
static DEFINE_HASHTABLE(table, 12);
static struct rb_root tasks = RB_ROOT;
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

static PIN_POOL(entries, 0);
static bool births_missed;		/* the pool was empty at a birth */

int kcoll_pin_entries_reserve(void)
{
	entries.bytes = sizeof(struct pin_task) + 2 * cpumask_size();
	return kcoll_pin_pool_fill(&entries);
}

void kcoll_pin_entries_end(void)
{
	kcoll_pin_pool_empty(&entries);
	births_missed = false;
}

static struct pin_task *entry_take(void)
{
	struct pin_task *pinned = kcoll_pin_pool_take(&entries);

	if (!pinned)
		return NULL;
	pinned->saved = (struct cpumask *)(pinned + 1);
	pinned->set = (struct cpumask *)((char *)pinned->saved + cpumask_size());
	return pinned;
}

/* The last of all: it has the highest number. */
static void entry_add_last(struct pin_task *pinned)
{
	struct rb_node *last = NULL, **link = &tasks.rb_node;

	while (*link) {
		last = *link;
		link = &last->rb_right;
	}
	rb_link_node(&pinned->order, last, link);
	rb_insert_color(&pinned->order, &tasks);
}

/* With the lock held. A task has one entry: walks free the entry of a task, and go on after it. */
static void entry_add(struct pin_task *pinned, struct task_struct *task)
{
	lockdep_assert_held(&pin_lock);
	pinned->task = get_task_struct(task);
	pinned->number = ++last_number;
	hash_add(table, &pinned->hash, (unsigned long)task);
	entry_add_last(pinned);
}

void kcoll_pin_entry_free(struct pin_task *pinned)
{
	unsigned long flags;

	lockdep_assert_held(&kcoll_pin_mutex);
	raw_spin_lock_irqsave(&pin_lock, flags);
	hash_del(&pinned->hash);
	rb_erase(&pinned->order, &tasks);
	raw_spin_unlock_irqrestore(&pin_lock, flags);
	put_task_struct(pinned->task);
	kcoll_pin_pool_free(&entries, pinned);
}

/* The first one with this number or a higher one. */
static struct pin_task *entry_from(u64 number)
{
	struct pin_task *found = NULL, *at;
	struct rb_node *node = tasks.rb_node;

	lockdep_assert_held(&pin_lock);
	while (node) {
		at = rb_entry(node, struct pin_task, order);
		if (at->number >= number)
			found = at;
		node = at->number >= number ? node->rb_left : node->rb_right;
	}
	return found;
}

struct pin_task *kcoll_pin_next(struct pin_task *pinned)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&pin_lock, flags);
	pinned = entry_from(pinned ? pinned->number + 1 : 0);
	raw_spin_unlock_irqrestore(&pin_lock, flags);
	return pinned;
}

bool kcoll_pin_show(u64 from, struct pin_shown *shown)
{
	const struct pin_task *pinned;
	unsigned long flags;

	raw_spin_lock_irqsave(&pin_lock, flags);
	pinned = entry_from(from);
	if (pinned) {
		shown->number = pinned->number;
		shown->pid = task_pid_nr(pinned->task);
		strscpy(shown->comm, pinned->task->comm, sizeof(shown->comm));
		shown->rule = READ_ONCE(pinned->rule);
		shown->state = READ_ONCE(pinned->task->flags) & PF_EXITING ? COLL_PIN_GONE : pinned->state;
		shown->error = pinned->error;
		cpumask_copy(shown->saved, pinned->saved);
	}
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

void kcoll_pin_set_where(struct pin_task *pinned, bool stranded)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&pin_lock, flags);
	cpumask_copy(pinned->set, &pinned->task->cpus_mask);
	pinned->stranded = stranded;
	raw_spin_unlock_irqrestore(&pin_lock, flags);
}

bool kcoll_pin_is_stranded(const struct pin_task *pinned)
{
	return pinned->stranded || !cpumask_intersects(pinned->set, cpu_active_mask);
}

bool kcoll_pin_in_place(const struct pin_task *pinned)
{
	return cpumask_equal(&pinned->task->cpus_mask, pinned->set);
}

static enum kcoll_pin_assign pin_assign(struct pin_task *pinned, int rule,
					const struct cpumask *cpus, bool known)
{
	const struct cpumask *has = &pinned->task->cpus_mask;

	lockdep_assert_held(&pin_lock);
	if (pinned->state == COLL_PIN_CHANGED)
		return COLL_PIN_ASSIGN_NONE;
	if (pinned->state == COLL_PIN_MOVED && !pinned->inherited) {
		if (!kcoll_pin_in_place(pinned) && !kcoll_pin_is_stranded(pinned))
			return COLL_PIN_ASSIGN_CHANGED;
		/* Also one that sleeps: it is given others when it wakes up. */
		pinned->stranded = kcoll_pin_is_stranded(pinned);
	}
	pinned->rule = rule;
	pinned->inherited = false;
	if (pinned->stranded && !cpumask_intersects(cpus, cpu_active_mask))
		return COLL_PIN_ASSIGN_STAY;
	if (cpumask_subset(has, cpus)) {
		pinned->stranded = false;
		pinned->put_off = false;
		if (pinned->state != COLL_PIN_MOVED)
			pinned->state = COLL_PIN_KEPT;
		pinned->error = 0;
		cpumask_copy(pinned->set, has);
		return COLL_PIN_ASSIGN_IN_PLACE;
	}
	if (known && pinned->state != COLL_PIN_KEPT && !pinned->stranded)
		return COLL_PIN_ASSIGN_STAY;
	if (pinned->state != COLL_PIN_MOVED && !pinned->put_off)	/* else it may have a CPU more, or one alone */
		cpumask_copy(pinned->saved, has);
	return COLL_PIN_ASSIGN_MOVE;
}

enum kcoll_pin_assign kcoll_pin_assign(struct pin_task *pinned, int rule,
				       const struct cpumask *cpus, bool *known)
{
	enum kcoll_pin_assign assigned;
	unsigned long flags;

	lockdep_assert_held(&kcoll_pin_mutex);
	raw_spin_lock_irqsave(&pin_lock, flags);
	*known = pinned->rule == rule && !pinned->inherited && !pinned->put_off;
	assigned = pin_assign(pinned, rule, cpus, *known);
	raw_spin_unlock_irqrestore(&pin_lock, flags);
	return assigned;
}

/* Whether a child of this task has its CPUs. With the lock held. */
static bool pin_hands_on(const struct pin_task *of_parent, const struct task_struct *child,
			 bool late)
{
	if (!of_parent)
		return false;
	if (of_parent->state == COLL_PIN_MOVED && !late)
		return true;
	return (of_parent->state == COLL_PIN_MOVED || of_parent->state == COLL_PIN_RESTORED) &&
	       cpumask_equal(&child->cpus_mask, of_parent->set);
}

/*
 * The child of a pinned task is pinned: it already has the parent's CPUs, and now gets the
 * CPUs that the parent had before. Kernel threads start with CPUs of their own. A child is
 * among all tasks before its birth is told: the thread may have tracked it, with the CPUs of
 * the parent for its own.
 */
static bool entry_inherit(const struct task_struct *parent, struct task_struct *child, bool late)
{
	struct pin_task *pinned, *of_parent, *tracked;
	unsigned long flags;
	bool handed_on;

	if (!kcoll_pin_is_tracked(parent) || READ_ONCE(child->flags) & PF_KTHREAD)
		return false;
	pinned = entry_take();
	if (!pinned) {
		WRITE_ONCE(births_missed, true);
		return false;
	}
	raw_spin_lock_irqsave(&pin_lock, flags);
	of_parent = pin_find(parent);
	tracked = pin_find(child);
	handed_on = pin_hands_on(of_parent, child, late);
	if (handed_on && tracked && tracked->state != COLL_PIN_CHANGED) {
		cpumask_copy(tracked->saved, of_parent->saved);
		cpumask_copy(tracked->set, of_parent->set);
		tracked->state = COLL_PIN_MOVED;	/* by its parent: it is given back, and handed on */
		tracked->inherited = true;
	} else if (handed_on && !tracked) {
		cpumask_copy(pinned->saved, of_parent->saved);
		cpumask_copy(pinned->set, of_parent->set);
		pinned->rule = of_parent->rule;
		pinned->state = COLL_PIN_MOVED;
		pinned->inherited = true;
		entry_add(pinned, child);
	}
	raw_spin_unlock_irqrestore(&pin_lock, flags);
	if (!handed_on || tracked)
		kcoll_pin_pool_give(&entries, pinned);
	return handed_on;
}

bool kcoll_pin_inherit(const struct task_struct *parent, struct task_struct *child)
{
	return entry_inherit(parent, child, false);
}

/* No entry may have been left when it was born: it has its parent's CPUs. */
static bool entry_inherit_late(struct task_struct *task)
{
	bool inherited;

	if (!READ_ONCE(births_missed))
		return false;
	rcu_read_lock();
	inherited = pid_alive(task) &&
		    (entry_inherit(rcu_dereference(task->real_parent), task, true) ||
		     entry_inherit(READ_ONCE(task->group_leader), task, true));
	rcu_read_unlock();
	return inherited;
}

struct pin_task *kcoll_pin_track(struct task_struct *task)
{
	struct pin_task *pinned, *born;
	unsigned long flags;

	lockdep_assert_held(&kcoll_pin_mutex);
	if (kcoll_pin_entries_reserve())
		return NULL;
	if (entry_inherit_late(task))
		return kcoll_pin_find(task);
	pinned = entry_take();
	if (!pinned)
		return NULL;
	cpumask_copy(pinned->saved, &task->cpus_mask);
	cpumask_copy(pinned->set, &task->cpus_mask);
	pinned->state = COLL_PIN_KEPT;
	pinned->rule = -1;
	raw_spin_lock_irqsave(&pin_lock, flags);
	born = pin_find(task);		/* its birth was told since the caller looked */
	if (!born)
		entry_add(pinned, task);
	raw_spin_unlock_irqrestore(&pin_lock, flags);
	if (born)
		kcoll_pin_pool_give(&entries, pinned);
	return born ? born : pinned;
}
