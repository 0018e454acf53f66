/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What gives a task its part of a CPU beside its nice value: the policy, and the weight of its session,
 * where the kernel groups tasks by sessions (sched_autogroup_enabled).
 */
#ifndef COLL_NODE_PRIORITY_H
#define COLL_NODE_PRIORITY_H

#include "core/port.h"

enum { NODE_PRIORITY_TEXT = 16 };

extern const char node_policy_idle[], node_session_least[];	/* "idle", "19" */

/* other, batch, idle, fifo, rr, deadline, or another one's number. 0 or -errno. */
int node_policy_read(u32 tid, char text[NODE_PRIORITY_TEXT]);
/* To other, batch or idle alone. Nice value and what its children inherit stay. 0 or -errno. */
int node_policy_write(u32 tid, const char *text);
/* Whether a task of this policy can be held back by another one. */
bool node_policy_yields(const char *text);
/* Whether this process may give back any task's policy: without CAP_SYS_NICE idle may be set, and not left. */
bool node_policy_may_return(void);

/* The nice value of the process' session. -ENOENT: it has no weight of its own. */
int node_session_read(u32 pid, char text[NODE_PRIORITY_TEXT]);
/*
 * Whether it can be relied on: without CAP_SYS_ADMIN the kernel takes one in 0.1 s from all of the machine, and
 * any user can take all of these.
 */
bool node_session_may_write(void);
/* -EAGAIN: without that capability, and another session's was written less than 0.1 s ago. */
int node_session_write(u32 pid, const char *text);

#endif
