/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The freezer of a cgroup (v1 or v2): its tasks stand still, and go on where they were. */
#ifndef COLL_NODE_FREEZER_H
#define COLL_NODE_FREEZER_H

#include "core/port.h"

struct node_freezer {
	char path[512];
	bool version1;		/* of cgroups */
};

/* -ENOENT: the cgroup has no writable freezer. */
int node_freezer_find(struct node_freezer *freezer, const char *cgroup);
/* Freezes or thaws its tasks. 0 or -errno. */
int node_freezer_set(const struct node_freezer *freezer, bool frozen);
/* Thaws those of a cgroup, by its path. 0, also if it is gone and nothing can go on; -errno. */
int node_freezer_thaw(const char *cgroup);
/* Whether it is, or is about to be. 0 or -errno; -ENOENT, -ENODEV: the cgroup is gone. */
int node_freezer_get(const struct node_freezer *freezer, bool *frozen);
/*
 * The processes of the cgroup; returns how many. -EBUSY: there are cgroups below it; -E2BIG: more than
 * `room`; -errno.
 */
int node_freezer_members(const struct node_freezer *freezer, u32 *pid, u32 room);

#endif
