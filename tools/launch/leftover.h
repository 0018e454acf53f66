/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Finding processes of a job that left their process group. */
#ifndef COLL_LEFTOVER_H
#define COLL_LEFTOVER_H

#include <sys/types.h>

/*
 * Sends SIGKILL to all children except `spare`; returns their number. A subreaper's children
 * include orphans of its descendants.
 */
int leftover_kill_children(pid_t spare);

/*
 * Sends SIGKILL to every process that has this variable, "K=V", in its environment; returns their
 * number. Reads all of /proc.
 */
int leftover_kill_marked(const char *variable);

#endif
