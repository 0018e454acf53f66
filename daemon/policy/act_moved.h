/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A process that is moved away for a time, with all its threads, and what undoes it. */
#ifndef COLL_DAEMON_ACT_MOVED_H
#define COLL_DAEMON_ACT_MOVED_H

#include "node/pinning.h"

struct act_moved {
	struct node_pinning pinning;
	u32 pid;
	char name[64];
};

/*
 * Moves its threads that may run elsewhere. Their former CPUs are in a file below `state`/acts before
 * that. 0; -ESRCH: it has ended; -EEXIST: it is moved already, or not put back yet; -errno: nothing is moved.
 */
int act_moved_apply(struct act_moved *moved, const char *name, u32 pid, const char *state,
		    const struct node_cpus *to, const struct node_tasks *tasks);
/*
 * Back, with the processes and threads that they have started since; the file goes. false: the tasks
 * cannot be read now, and the file stays: to be called again.
 */
bool act_moved_undo(struct act_moved *moved, const char *state);
/* What became of it: "was put back". */
const char *act_moved_text(const struct act_moved *moved);
void act_moved_free(struct act_moved *moved);

/* Puts back what a colld that died has left moved. */
void act_moved_recover(const char *state);
/* What is moved now, on stdout: a line a thread. */
void act_moved_print(const char *state);

#endif
