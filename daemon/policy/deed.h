/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What is done to a process for a time, and what undoes it: it is moved away with all its threads, or held
 * back. The former state is in a file below `state`/acts before anything is done.
 */
#ifndef COLL_DAEMON_DEED_H
#define COLL_DAEMON_DEED_H

#include "node/pinning.h"

enum act_form {
	ACT_FORM_MOVE,		/* to other CPUs */
	ACT_FORM_HOLD,		/* it gets what others leave: SCHED_IDLE, and the least weight for its session */
	ACT_FORM_FREEZE,	/* it stands still, with its cgroup */
};

struct act_deed {
	struct node_pinning pinning;
	u32 pid;
	u64 born;
	enum act_form form;
	char name[NODE_TASK_CGROUP];
	bool unsaved;		/* the file does not say all of it */
	bool large;		/* it has become too many threads: to be undone (family.h) */
};

struct act_wish {
	enum act_form form;
	const struct node_task *process;
	const char *name;
	const struct node_tasks *tasks;
	const struct node_cpus *to;	/* to be moved there */
	const char *cgroup;		/* to be frozen */
};

/*
 * 0; -ESRCH: it has ended; -EEXIST: something is done to it already, or not undone yet; -EALREADY: it is so
 * already; -errno: nothing is done. Threads of a real-time policy, and what has SCHED_IDLE, are not held.
 */
int act_deed_do(struct act_deed *deed, const struct act_wish *wish, const char *state);
/* A session's weight is written, too. */
bool act_deed_weighs(const struct act_deed *deed);
/*
 * Lets go what is held back, or holds it back again, with the threads and the processes that it has begun
 * while it was. What has been changed by itself or others stays so. Of what it has begun, ranks, users'
 * processes and containers are let go for good. false: to be called again.
 */
bool act_deed_set(struct act_deed *deed, const char *state, bool held, const u32 *rank, u32 ranks);
/* Nothing of it is left that could be held back: it has ended, or others have changed all of it. */
bool act_deed_is_empty(const struct act_deed *deed);
/*
 * All back, with the processes and threads that they have started since, by one look at all tasks; the
 * files of those go of which act_deed_is_undone(). Of the others the tasks cannot be read now, or the kernel
 * refuses: to be called again.
 */
void act_deeds_undo(struct act_deed *const *deed, u32 count, const char *state);
bool act_deed_is_undone(const struct act_deed *deed);
/* What became of it: "was put back". */
const char *act_deed_text(const struct act_deed *deed);
void act_deed_free(struct act_deed *deed);

/* A colld has acted with this state, now or before. */
bool act_deeds_exist(const char *state);
/*
 * Only who has this may recover: a colld for all its life, or the keeper of one that died. It is waited for,
 * at most for 10 s. -1: another one has it, or it cannot be made. It ends with the process.
 */
int act_deed_lock(const char *state);
/*
 * Undoes what a colld that died has left, or this one has not undone: all but those of which in_force() says
 * so. NULL: none is, and all of it is logged; else what is undone. false: something is left to be undone.
 */
bool act_deed_recover(const char *state, bool (*in_force)(const void *data, u32 pid), const void *data);
/* Each process that has a file, which is not read yet; ... reads it, to be freed. 0 or -errno. */
void act_deed_each(const char *state, void (*each)(struct act_deed *deed, void *argument), void *argument);
int act_deed_load(struct act_deed *deed, const char *state);
/* What is done now, on stdout: a line a thread, or JSON; says on stderr why it cannot. 0 or -errno. */
int act_deed_print(const char *state, bool json);

#endif
