/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The machine as a group sees it, by which its algorithms are chosen. */
#ifndef COLL_EXEC_MACHINE_H
#define COLL_EXEC_MACHINE_H

#include "libcoll/link/group.h"

/*
 * The costs that its options have, and what was measured. Where all ranks are in one node of several, in one domain or
 * below one switch, the costs of its farthest links are in place of those between switches or nodes.
 */
struct coll_machine coll_group_machine(const struct coll_group *group);

/*
 * Finds the farthest class of its links, when the group is made and when what the nearest ones are has become known.
 * Looks at each rank.
 */
void coll_group_find_farthest(struct coll_group *group);

#endif
