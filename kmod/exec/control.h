/* SPDX-License-Identifier: GPL-2.0 */
/* Messages without payload that are queued for COLL_DEVICE_CONTROL_GET. */
#ifndef COLL_KMOD_CONTROL_H
#define COLL_KMOD_CONTROL_H

#include "group.h"

enum { COLL_CONTROL_MAX = 1024 };	/* queued messages of a group; more are discarded */

struct kcoll_control {
	struct list_head node;
	u32 rank;
	struct coll_header header;
};

void kcoll_control_add(struct kcoll_group *group, u32 rank, const struct coll_header *header);
/* Takes the oldest message; false: there is none. */
bool kcoll_control_take(struct kcoll_group *group, u32 *rank, struct coll_header *header);
void kcoll_control_drop(struct kcoll_group *group);

#endif
