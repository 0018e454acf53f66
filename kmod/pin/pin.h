/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pinning.
 *
 *	pin.c		netlink commands
 *	pin_rules.c	which rule a task matches
 *	pin_probe.c	tasks that probes see
 *	pin_tasks.c	the thread: tasks are moved, and given back what they had
 *	pin_entry.c	entries of pinned tasks
 *	pin_move.c	one task's CPUs
 *	pin_pool.c	memory for probes
 */
#ifndef COLL_KMOD_PIN_H
#define COLL_KMOD_PIN_H

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/uidgid.h>

#include "kmod/common/subsystem.h"

enum { PIN_RULES_MAX = 1024, PIN_LINGER_MAX = 600000, PIN_GLOB_MAX = 63 };
#define PIN_LINGER_ON U32_MAX		/* until somebody clears */

/* ---- rules ------------------------------------------------------------------- */

struct pin_rule {
	char comm[PIN_GLOB_MAX + 1];	/* "": any */
	struct cgroup *cgroup;		/* NULL: any */
	struct pid *parent;		/* NULL: any */
	kuid_t uid;			/* INVALID_UID: any */
	bool kthread, keep;
	cpumask_var_t cpus;		/* where its tasks go */
	atomic64_t matched, moved, refused, changed;	/* read without the tasks' mutex */
	u16 next;			/* of its chain: one above the index, 0: it is the last */
};

/*
 * A task is compared with those rules alone that could match by their name: rules of one name
 * stand in the chain of its hash, those with a pattern or without a name in `any`. Chains are in
 * the rules' order, and begin with one above the first one's index, or 0.
 */
enum { PIN_CHAINS = 256 };

struct pin_rules {
	cpumask_var_t housekeeping;
	u16 any, named[PIN_CHAINS];
	bool by_cgroup;			/* some rule has a cgroup */
	u32 linger;
	u32 count;
	struct pin_rule rule[];
};

/*
 * The index of the first rule that the task matches; -1: none. It goes by
 * `comm`, for in a probe the task may have its old name still. `was` is the rule
 * that it is pinned by, or -1: a descendant of a task stays one when those between
 * have died. Under RCU.
 */
int kcoll_pin_rules_match(const struct pin_rules *rules, struct task_struct *task, const char *comm,
			  int was);
/* Before the first task is compared, and when all rules are read. */
void kcoll_pin_rules_chain(struct pin_rules *rules);
void kcoll_pin_rules_free(struct pin_rules *rules);

/* ---- tasks ------------------------------------------------------------------- */

/* A task that a rule found. What others than the mutex's holder may read, under the lock. */
struct pin_task {
	struct rb_node order;		/* by ascending number */
	struct hlist_node hash;
	u64 number;
	struct task_struct *task;	/* holds a reference */
	int rule;
	u8 state;			/* enum coll_pin_state */
	int error;
	bool inherited;			/* born pinned: to be looked at */
	bool stranded;		/* none of its rule's CPUs was online: the scheduler places it */
	bool put_off;		/* it did not leave its CPU in time: to be moved later */
	struct cpumask *saved, *set;
};

/*
 * These three are serialised by the caller. The rules go over to the tasks;
 * those set before are freed. On failure the old ones hold.
 */
int kcoll_pin_tasks_set(struct pin_rules *rules);
/* Gives every task back what it had. */
void kcoll_pin_tasks_clear(void);
bool kcoll_pin_tasks_active(void);
/* Before the module goes, when all are cleared: no task has a call into it left. */
void kcoll_pin_tasks_end(void);

/*
 * For dumps, which any user may ask for: no mutex is held in that user's time. A rule at a time, in
 * order, as long as `each` returns 0: under RCU. Counts are read as they are.
 */
int kcoll_pin_tasks_each_rule(u32 from,
			      int (*each)(const struct pin_rule *rule, u32 index, void *data),
			      void *data);

/* A copy of a task's entry. */
struct pin_shown {
	u64 number;
	u32 pid;
	char comm[TASK_COMM_LEN];
	int rule;
	u8 state;			/* none of enum coll_pin_state: it is not to be shown */
	int error;
	cpumask_var_t saved;		/* the caller's */
};

/* Of the first task with this number or a higher one. false: there is none. */
bool kcoll_pin_show(u64 from, struct pin_shown *shown);

#endif
