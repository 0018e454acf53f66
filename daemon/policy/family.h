/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A process that is held back, with what it has started. */
#ifndef COLL_DAEMON_FAMILY_H
#define COLL_DAEMON_FAMILY_H

#include "node/task.h"

enum { COLLD_FAMILY_MOST = 1000 };	/* threads: what has more is not held back */
extern const char colld_family_large[];		/* ... and this is said of it */

/*
 * Their threads, as they are now; to be freed. 0; -E2BIG: more than COLLD_FAMILY_MOST; -errno. Of what the
 * process has started it has all whose parents are there: unless some of these end meanwhile.
 */
int colld_family_look(struct node_tasks *family, u32 pid);
/* Whether one of them is not to be held back with the others: a rank, a user's, or in a container. */
bool colld_family_spares(const struct node_task *task, const u32 *rank, u32 ranks);

#endif
