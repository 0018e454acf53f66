/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What stands still by colld's doing, a line each in a file: written before it is stopped, and kept until it has
 * been resumed. So nothing is forgotten where resuming fails, where a policy is another one, or where colld and
 * its keeper die.
 */
#ifndef COLL_DAEMON_STOPPED_H
#define COLL_DAEMON_STOPPED_H

#include "core/port.h"

struct colld_stopped {
	const char *state;	/* the caller's */
	char path[512];
	char lock[512];		/* what is locked for it: nobody else may open that */
};

/* The file `name` in the folder `state`, which is made for the first line. 0 or -ENAMETOOLONG. */
int colld_stopped_open(struct colld_stopped *stopped, const char *state, const char *name);
/* Something may be recorded. */
bool colld_stopped_any(const struct colld_stopped *stopped);
/* Against the keeper of a colld that died, while it is stopped. It is waited for. -1: no lock. */
int colld_stopped_lock(const struct colld_stopped *stopped);
void colld_stopped_unlock(int lock);
/* Before it is stopped, under the lock. 0, also if it is written already; -errno: it must not be stopped. */
int colld_stopped_add(const struct colld_stopped *stopped, const char *what);
/*
 * resume() of each line, in their order, under the lock; those stay of which it is not 0. 0: nothing is left, or
 * there was nothing; else the latest of its errors, or -errno: the file stays as it was.
 */
int colld_stopped_resume(const struct colld_stopped *stopped, int (*resume)(const char *what, void *data),
			 void *data);

#endif
