/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Other tasks are given CPUs, without a wait for those that do not leave theirs. */
#ifndef COLL_NODE_MOVE_H
#define COLL_NODE_MOVE_H

#include "cpus.h"

/*
 * 0, or -errno of sched_setaffinity(). -EAGAIN: the task did not leave its CPU within a tenth of a second, and has the CPUs
 * that it had. Costs a thread, some 30 us.
 */
int node_move_task(int task, const struct node_cpus *cpus);

#endif
