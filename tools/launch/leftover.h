/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Finding processes of a job that fled from their process group. */
#ifndef COLL_LEFTOVER_H
#define COLL_LEFTOVER_H

#include <sys/types.h>

/*
 * Sends SIGKILL to our children, but not to `spare`; returns how many there were.
 * A subreaper's children are also those whose parents have ended.
 */
int leftover_kill_children(pid_t spare);

/*
 * Sends SIGKILL to every process that was started with this variable, "K=V", in
 * its environment; returns how many there were. Reads all of /proc.
 */
int leftover_kill_marked(const char *variable);

#endif
