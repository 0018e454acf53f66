/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_EXEC_GROUP_H
#define COLL_EXEC_GROUP_H

#include "libcoll/link/explain.h"
#include "libcoll/link/link.h"

/* A group that other ranks may have made is not made here: those that come for it are told. */
void coll_group_unmade(struct coll_context *context, uint64_t id, int error);

/*
 * Makes a group of these ranks of the job; this process is `rank`. Takes ownership of
 * `world` (from malloc), also on failure. The context knows the group from then on.
 */
int coll_group_make(struct coll_context *context, uint64_t id, uint32_t *world, uint32_t rank,
		    uint32_t ranks, struct coll_group **group);
/* The group is made from this one: it has its options and costs. */
void coll_group_inherit(struct coll_group *group, const struct coll_group *from);
/*
 * Makes a group of the same ranks and options for point to point, with these events of links and
 * this memory per rank, from malloc, of which it takes ownership.
 */
int coll_group_make_twin(struct coll_group *group, uint64_t id,
			 const struct coll_link_events *events, struct coll_point_peer *peers);
/*
 * Makes a group of all ranks of `world` with links of its own, for measurements: links of
 * `world` are made later and use the results.
 */
int coll_group_to_measure(struct coll_group *world, uint64_t id, struct coll_group **made);
/* Makes a group of all ranks of `world` for the library's own calls, over links as any group's. */
int coll_group_to_agree(struct coll_group *world, uint64_t id, struct coll_group **made);
/* Makes a group of two ranks of the job, this one among them, to measure such links. */
int coll_group_pair_to_measure(struct coll_group *world, uint64_t id, const uint32_t rank[2],
			       struct coll_group **made);

/* Sets the group's clusters, numbered from 0, from those of the job's ranks. -ENOMEM. */
int coll_group_find_clusters(struct coll_group *group);
/* ... and its levels, from the job's nodes and domains and the group's clusters. -ENOMEM. */
int coll_group_find_levels(struct coll_group *group);

/* Says goodbye on all links. The group is freed when they are closed. */
void coll_group_leave(struct coll_group *group);

/* Frees groups that the caller has freed and whose links are closed. */
void coll_groups_reap(struct coll_context *context);

/*
 * Closes links of freed groups when the peer's host has acknowledged all data, even if the
 * peer has not read it. Returns whether there was one.
 */
bool coll_groups_close_delivered(struct coll_context *context);

/* Closes the links of a freed group at once. */
void coll_group_abandon(struct coll_group *group);

#endif
