/* SPDX-License-Identifier: GPL-2.0 */
/* A group: ranks that act together, their links, schedules and runs. */
#ifndef COLL_KMOD_GROUP_H
#define COLL_KMOD_GROUP_H

#include "device.h"

struct kcoll_group {
	struct list_head node;		/* in device->groups */
	struct kcoll_device *device;
	u32 number;
	u32 rank, ranks;
	u32 next_run;
	struct kcoll_links links;
	u64 unexpected_bytes;		/* capacity for unexpected messages, accounted */
	struct list_head loaded;
	struct list_head runs;		/* in order of start, until idle */
	struct list_head control;	/* struct kcoll_control */
	u32 controls;
	int error;			/* why it failed, or 0 */
	u32 failed_rank, reporter;
	bool suspected;
	u32 suspect;			/* the rank in pongs, */
	unsigned long suspected_at;	/* found at these jiffies */
	u64 failing_until;		/* then messages that are still queued are discarded */
};

static inline struct kcoll_group *kcoll_link_group(const struct kcoll_link *link)
{
	return container_of(link->set, struct kcoll_group, links);
}

int kcoll_group_make(struct kcoll_device *device, const struct coll_device_group *asked);
void kcoll_group_free(struct kcoll_group *group);
/* Its connections end at once; the group is to be freed. */
void kcoll_group_shut(struct kcoll_group *group);
/* As COLL_DEVICE_ATTACH. */
int kcoll_group_attach(struct kcoll_group *group, const struct coll_device_link *asked);
/* As COLL_DEVICE_DETACH. */
long kcoll_group_detach(struct kcoll_group *group, const struct coll_device_link *asked);
/* Polls for runs whose deadline has passed and for the end of a failure. */
void kcoll_group_deadlines(struct kcoll_group *group, u64 now);

#endif
