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
 */
#ifndef COLL_NOISE_RULES_H
#define COLL_NOISE_RULES_H

#include "core/text.h"
#include "cpus.h"
#include "task.h"

struct noise_rule {
	bool keep;
	bool kthread;
	char *comm, *cgroup, *irq;	/* globs; NULL: any, irq: a rule for tasks */
	s64 uid;			/* negative: any */
	u32 parent;			/* 0: any */
	struct noise_cpus *to;		/* NULL: housekeeping */
	u32 line;
};

/* The tasks of a cgroup run for `open` of each `period`, from `phase` on; ns. */
struct noise_window {
	char *cgroup;
	u64 period, open, phase;
};

/* Stopped while a job runs: one of the two. */
struct noise_stop {
	char *cgroup, *unit;
};

struct noise_rules {
	struct noise_cpus housekeeping, application;
	bool workqueues;
	struct noise_rule *rule;
	u32 rules;
	struct noise_window *window;
	u32 windows;
	struct noise_stop *stop;
	u32 stops;
};

/* -EINVAL with the line and the reason; -ENOMEM. Free it in any case. */
int noise_rules_parse(const char *text, struct noise_rules *rules, struct coll_text_error *error);
void noise_rules_free(struct noise_rules *rules);

/*
 * Fills in the defaults: housekeeping is the first CPU, application all other CPUs that
 * are online. -EINVAL: they overlap, or one of them is empty.
 */
int noise_rules_complete(struct noise_rules *rules, struct coll_text_error *error);

/* The rule that decides, or NULL. */
const struct noise_rule *noise_rules_task(const struct noise_rules *rules,
					  const struct noise_task *task,
					  const struct noise_tasks *tasks);
const struct noise_rule *noise_rules_irq(const struct noise_rules *rules, u32 number,
					 const char *name);

#endif
