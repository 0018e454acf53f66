/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A process that answers one question, at a low priority, and ends by a deadline. */
#ifndef COLL_DAEMON_CHILD_H
#define COLL_DAEMON_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/port.h"

/* A child that takes longer is killed. */
#define REPORT_CHILD_NS 30000000000ull

struct report_child {
	pid_t pid;		/* 0: there is none */
	int ended;		/* a descriptor: readable when it has ended */
	u64 until;		/* colld_now() */
};

/*
 * `run` gets the descriptor, the only one that the child has open but for /dev/null in place of the first three,
 * and data as it is now. The child ends when this process does. 0 or -errno.
 */
int report_child_start(struct report_child *child, int fd, void (*run)(int fd, const void *data),
		       const void *data);
/*
 * True: it has ended, and is forgotten. *cost: ns of CPU time that it took. Ends it, for the next time, if
 * its time is over.
 */
bool report_child_ended(struct report_child *child, u64 *cost);
/* Kills it and does not wait for it: at the end of this process. */
void report_child_kill(struct report_child *child);

#endif
