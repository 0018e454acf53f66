/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The freezer of a cgroup, of either version; and a second process that undoes. */
#ifndef COLLD_FREEZER_H
#define COLLD_FREEZER_H

#include <stdbool.h>
#include <sys/types.h>

struct freezer {
	char path[512];
	bool version1;		/* of cgroups */
};

/* -ENOENT: no such cgroup has a freezer that may be written to. */
int freezer_find(struct freezer *freezer, const char *cgroup);
/* Its tasks stand still, or go on. 0 or -errno. */
int freezer_set(const struct freezer *freezer, bool frozen);

/* A child that waits for the end of this process, however that comes, and then undoes. */
struct keeper {
	int pipe;		/* closed when this process is no more */
	pid_t pid;
};
#define KEEPER_NONE ((struct keeper){ -1, 0 })

/* The child has the memory as it is now. 0 or -errno. */
int keeper_start(struct keeper *keeper, void (*undo)(void *), void *data);
void keeper_end(struct keeper *keeper);

#endif
