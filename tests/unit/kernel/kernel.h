/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * As much of the kernel as kmod/pin/pin_entry.c and pin_move.c need, for tests in user space: one thread, 64 CPUs. A test
 * has what set_cpus_allowed_ptr() does, and which CPUs are active.
 */
#ifndef COLL_TESTS_UNIT_KERNEL_H
#define COLL_TESTS_UNIT_KERNEL_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "core/port.h"

#define __rcu
#define U32_MAX			UINT32_MAX
#define HZ			100
#define READ_ONCE(x)		(x)
#define WRITE_ONCE(x, value)	((x) = (value))
#define lockdep_assert_held(lock)	do { } while (0)
#ifndef container_of
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#endif

typedef struct { int value; } kuid_t;
struct mutex { int none; };
#define DEFINE_MUTEX(name)	struct mutex name
typedef struct { int none; } raw_spinlock_t;
#define DEFINE_RAW_SPINLOCK(name)	raw_spinlock_t name
#define __RAW_SPIN_LOCK_UNLOCKED(name)	{ 0 }
#define raw_spin_lock_irqsave(lock, flags)	((void)(lock), (flags) = 0)
#define raw_spin_unlock_irqrestore(lock, flags)	((void)(lock), (void)(flags))
#define rcu_read_lock()		do { } while (0)
#define rcu_read_unlock()	do { } while (0)
#define rcu_dereference(p)	(p)

typedef struct { int64_t value; } atomic64_t;
static inline void atomic64_add(int64_t amount, atomic64_t *sum)
{
	sum->value += amount;
}

/* ---- CPUs ---------------------------------------------------------------------- */

struct cpumask { uint64_t bits; };
typedef struct cpumask cpumask_var_t[1];
extern struct cpumask kernel_active, kernel_possible;
#define cpu_active_mask		(&kernel_active)
#define cpu_possible_mask	(&kernel_possible)

static inline unsigned int cpumask_size(void)
{
	return sizeof(struct cpumask);
}

static inline void cpumask_copy(struct cpumask *to, const struct cpumask *from)
{
	*to = *from;
}

static inline bool cpumask_and(struct cpumask *to, const struct cpumask *a, const struct cpumask *b)
{
	to->bits = a->bits & b->bits;
	return to->bits;
}

static inline bool cpumask_intersects(const struct cpumask *a, const struct cpumask *b)
{
	return a->bits & b->bits;
}

static inline bool cpumask_subset(const struct cpumask *a, const struct cpumask *b)
{
	return !(a->bits & ~b->bits);
}

static inline bool cpumask_equal(const struct cpumask *a, const struct cpumask *b)
{
	return a->bits == b->bits;
}

static inline unsigned int cpumask_weight(const struct cpumask *cpus)
{
	return (unsigned int)__builtin_popcountll(cpus->bits);
}

static inline bool cpumask_test_cpu(unsigned int cpu, const struct cpumask *cpus)
{
	return cpus->bits >> cpu & 1;
}

#define cpumask_of(cpu)		(&(struct cpumask){ 1ull << (cpu) })

static inline void cpumask_set_cpu(unsigned int cpu, struct cpumask *cpus)
{
	cpus->bits |= 1ull << cpu;
}

/* ---- tasks ---------------------------------------------------------------------- */

enum { TASK_COMM_LEN = 16, PF_EXITING = 4, PF_KTHREAD = 0x200000, PF_NO_SETAFFINITY = 0x4000000, SCHED_DEADLINE = 6 };

struct task_struct {
	unsigned int flags;
	int policy, pid;
	char comm[TASK_COMM_LEN];
	struct cpumask cpus_mask, *user_cpus_ptr;
	unsigned short migration_disabled;
	unsigned int cpu;
	struct task_struct *real_parent, *group_leader;
};

static inline struct task_struct *get_task_struct(struct task_struct *task)
{
	return task;
}

static inline void put_task_struct(struct task_struct *task)
{
	(void)task;
}

static inline bool pid_alive(const struct task_struct *task)
{
	(void)task;
	return true;
}

static inline int task_pid_nr(const struct task_struct *task)
{
	return task->pid;
}

static inline unsigned int task_cpu(const struct task_struct *task)
{
	return task->cpu;
}

#define strscpy(to, from, size)	snprintf(to, size, "%s", from)

/* The test's. */
int set_cpus_allowed_ptr(struct task_struct *task, const struct cpumask *cpus);

/* ---- memory ------------------------------------------------------------------------ */

#define GFP_KERNEL		0
#define kmalloc(bytes, flags)	malloc(bytes)
#define kfree(memory)		free(memory)

/* ---- lists, trees: the test has its entries itself -------------------------------- */

struct hlist_node { int none; };
struct rb_node { struct rb_node *rb_left, *rb_right; };
struct rb_root { struct rb_node *rb_node; };
#define RB_ROOT			((struct rb_root){ NULL })
#define rb_entry(node, type, member)	container_of(node, type, member)
#define rb_link_node(node, parent, link)	((void)(node), (void)(parent), (void)(link))
#define rb_insert_color(node, root)	((void)(node), (void)(root))
#define rb_erase(node, root)	((void)(node), (void)(root))
#define DEFINE_HASHTABLE(name, bits)	struct hlist_node name[1]
#define hash_add(table, node, key)	((void)(table), (void)(node), (void)(key))
#define hash_del(node)		((void)(node))
#define hash_for_each_possible(table, at, member, key) \
	for ((at) = NULL, (void)(table), (void)(key); (at);)

/* ---- work ------------------------------------------------------------------------- */

struct work_struct { int none; };
struct delayed_work {
	void (*function)(struct work_struct *work);
	bool queued;
};
#define DECLARE_DELAYED_WORK(name, does)	struct delayed_work name = { .function = (does) }
/* The one that is queued, or NULL. */
extern struct delayed_work *kernel_queued;

static inline void mod_delayed_work(void *queue, struct delayed_work *work, unsigned long delay)
{
	(void)queue, (void)delay;
	kernel_queued = work;
}

static inline void cancel_delayed_work_sync(struct delayed_work *work)
{
	if (kernel_queued == work)
		kernel_queued = NULL;
}

#endif
