/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Cgroups by their numbers, as coll.ko tells them. */
#ifndef COLL_NODE_CGROUP_H
#define COLL_NODE_CGROUP_H

#include <linux/types.h>

/* The path of the cgroup with this number; NULL: it is gone, or CAP_DAC_READ_SEARCH is missing. free() it. */
char *node_cgroup_path(__u64 id);

#endif
