/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A second process, which undoes when this one dies. */
#ifndef COLL_DAEMON_KEEPER_H
#define COLL_DAEMON_KEEPER_H

#include <sys/types.h>

/* A child process that waits for the end of this process, and then calls `undo`. */
struct keeper {
	int pipe;		/* closed when this process ends */
	pid_t pid;
};
#define KEEPER_NONE ((struct keeper){ -1, 0 })

/* `data` as it is now: the child has a copy of the memory. 0 or -errno. */
int keeper_start(struct keeper *keeper, void (*undo)(void *), void *data);
/* All is undone: it ends without. */
void keeper_end(struct keeper *keeper);
/* Something is left: it undoes at once, or when this process has ended. It is not waited for. */
void keeper_leave(struct keeper *keeper);

#endif
