/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The policy of a node, a text file: on which CPUs tasks and interrupts may run. A rule a
 * line; # begins a comment. The first rule that matches decides.
 *
 *	housekeeping 0-1		where what matches goes
 *	application 2-31		what is kept clear; default: all the others
 *	keep comm=ptp4l			stays where it is
 *	pin cgroup=/system.slice	with everything below
 *	pin comm=kswapd* kthread	several words: all must match; kernel threads,
 *					for without kthread a rule means none of them
 *	pin uid=33 to=1			elsewhere
 *	keep parent=1234		that process and its descendants
 *	pin irq=eth0-*			by name or number
 *	workqueues			the kernel's unbound work too
 *	window cgroup=/backup period=1s open=50ms phase=0s
 *					its tasks run only in the first 50 ms of each
 *					second since 1970, on all nodes at once; of no
 *					meaning to collnoise pin, no more than
 *	stop cgroup=/backup		stands still while a job runs (coll-job)
 *	stop unit=cron.service		is stopped by systemctl meanwhile
 *	act advise share=5% for=30m most=16 leave=10%
 *					what is found to take a job's cores: it is only
 *					logged (advise), or moved, too, and held back where
 *					that cannot be (act), or held back (hold); by colld
 *	hold cgroup=/backup		... by the freezer of its cgroup
 */
#ifndef COLL_NODE_RULES_H
#define COLL_NODE_RULES_H

#include "core/text.h"
#include "cpus.h"
#include "task.h"

struct node_rule {
	bool keep;
	bool kthread;
	char *comm, *cgroup, *irq;	/* globs; NULL: any, irq: a rule for tasks */
	u32 comm_plain;			/* characters of comm before the first that is special */
	s64 uid;			/* negative: any */
	u32 parent;			/* 0: any */
	struct node_cpus *to;		/* NULL: housekeeping */
	u32 line;
};

/* The tasks of a cgroup run for `open` of each `period`, from `phase` on; ns. */
struct node_window {
	char *cgroup;
	u64 period, open, phase;
};

/* Stopped while a job runs: one of the two. */
struct node_stop {
	char *cgroup, *unit;
};

/* What colld does about a task that takes the core of a job's rank. */
enum node_act_mode {
	NODE_ACT_OFF,
	NODE_ACT_ADVISE,	/* says what it would do */
	NODE_ACT_ACT,		/* moves it away; what cannot be moved is held back */
	NODE_ACT_HOLD,		/* holds it back, while collectives run */
};
struct node_act {
	enum node_act_mode mode;
	double share;		/* of a core: what takes less is left alone */
	u64 longest;		/* ns that it stays moved, or is held back time and again */
	u32 most;		/* processes at once, of a user's jobs */
	double leave;		/* of each second: what is held back is let go for so long */
	bool given;		/* by a line */
};

/* What is held back may be frozen: the tasks of this cgroup. */
struct node_hold {
	char *cgroup;
};

struct node_rules {
	struct node_cpus housekeeping, application;
	bool workqueues;
	struct node_rule *rule;
	u32 rules;
	struct node_window *window;
	u32 windows;
	struct node_stop *stop;
	u32 stops;
	struct node_act act;
	struct node_hold *hold;
	u32 holds;
};

/* -EINVAL with the line and the reason; -ENOMEM. Free it in any case. */
int node_rules_parse(const char *text, struct node_rules *rules, struct coll_text_error *error);
void node_rules_free(struct node_rules *rules);

/* off, advise, act or hold. */
bool node_act_mode_read(const char *text, enum node_act_mode *mode);

/* Whether a line allows the tasks of this cgroup to be frozen. */
bool node_rules_may_freeze(const struct node_rules *rules, const char *cgroup);

/* A glob of a rule for this name: what a rule or a shell would read otherwise becomes ?. */
char *node_rules_glob(const char *name, char *glob, size_t bytes);

/*
 * Fills in the defaults: housekeeping is the first CPU, application all other CPUs that
 * are online. -EINVAL: they overlap, or one of them is empty.
 */
int node_rules_complete(struct node_rules *rules, struct coll_text_error *error);

/* The rule that decides, or NULL. */
const struct node_rule *node_rules_task(const struct node_rules *rules,
					const struct node_task *task,
					const struct node_tasks *tasks);
/* Whether any rule is for tasks. */
bool node_rules_any_task(const struct node_rules *rules);
/* Whether any asks for a task's ancestors. */
bool node_rules_any_parent(const struct node_rules *rules);
const struct node_rule *node_rules_irq(const struct node_rules *rules, u32 number,
				       const char *name);

#endif
