/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_EXEC_GROUP_H
#define COLL_EXEC_GROUP_H

#include "libcoll/link/link.h"

/*
 * A group of these ranks of the job, of which this process is `rank`; takes
 * over `world` (from malloc), also on failure. Known to the context from then on.
 */
int coll_group_make(struct coll_context *context, uint64_t id, uint32_t *world, uint32_t rank,
		    uint32_t ranks, struct coll_group **group);
/*
 * All ranks of `world` once more, with links of their own, to measure by: the world's
 * shall know when they are made what was found.
 */
int coll_group_to_measure(struct coll_group *world, uint64_t id, struct coll_group **made);

/* Its clusters, numbered from 0 on, from what is known of the job's ranks. -ENOMEM. */
int coll_group_find_clusters(struct coll_group *group);

/* Says goodbye on all links; the group goes when they have closed. */
void coll_group_leave(struct coll_group *group);

/* Frees groups that the caller has freed and whose links are closed. */
void coll_groups_reap(struct coll_context *context);

/*
 * Closes the links of freed groups whose peers have all that was said to them,
 * though they may not have read it yet. Whether there was one.
 */
bool coll_groups_close_delivered(struct coll_context *context);

/* Closes the links of a freed group without waiting for anybody. */
void coll_group_abandon(struct coll_group *group);

#endif
