/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * All groups of a context: a list, the latest first, and a hash table by id, since each hello and
 * each opened channel names a group. A process may have ten thousands of them.
 */
#ifndef COLL_LINK_GROUPS_H
#define COLL_LINK_GROUPS_H

#include "group.h"

/* -ENOMEM: it is not among them. */
int coll_groups_add(struct coll_group *group);
void coll_groups_remove(struct coll_group *group);
/* The latest one with this id, or NULL. */
struct coll_group *coll_groups_find(const struct coll_context *context, uint64_t id);

#endif
