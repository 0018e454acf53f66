/* SPDX-License-Identifier: GPL-2.0 */
/* A loaded schedule: copied, checked and planned once, executed many times. */
#ifndef COLL_KMOD_LOAD_H
#define COLL_KMOD_LOAD_H

#include "group.h"

struct kcoll_loaded {
	struct list_head node;		/* in group->loaded */
	struct kcoll_group *group;
	u32 number;			/* COLL_NONE: unloaded, freed with its last run */
	u32 hash;
	u32 running;			/* runs that are not idle */
	u32 sends;
	u64 accounted;			/* pages */
	u32 touched;			/* bit b: buffer b is reduced, so mapped */
	struct coll_schedule *schedule;
	struct coll_plan plan;
	u32 *fused;			/* per op, as the program marked them (fused.h); or NULL */
	struct kcoll_link **links;	/* per peer */
	struct kcoll_run *spare;	/* one idle run, to be reused */
};

int kcoll_load(struct kcoll_group *group, const struct coll_device_load *asked);
void kcoll_loaded_unload(struct kcoll_loaded *loaded);
/* Frees it if it is unloaded and has no runs. */
void kcoll_loaded_maybe_free(struct kcoll_loaded *loaded);

#endif
