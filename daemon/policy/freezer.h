/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The freezer of a cgroup (v1 or v2), and a second process that undoes when this one dies. */
#ifndef COLLD_FREEZER_H
#define COLLD_FREEZER_H

#include <stdbool.h>
#include <sys/types.h>

struct freezer {
	char path[512];
	bool version1;		/* of cgroups */
};

/* -ENOENT: the cgroup has no writable freezer. */
int freezer_find(struct freezer *freezer, const char *cgroup);
/* Freezes or thaws its tasks. 0 or -errno. */
int freezer_set(const struct freezer *freezer, bool frozen);

/* A child process that waits for the end of this process, and then calls `undo`. */
struct keeper {
	int pipe;		/* closed when this process ends */
	pid_t pid;
};
#define KEEPER_NONE ((struct keeper){ -1, 0 })

/* `data` as it is now: the child has a copy of the memory. 0 or -errno. */
int keeper_start(struct keeper *keeper, void (*undo)(void *), void *data);
void keeper_end(struct keeper *keeper);

#endif
