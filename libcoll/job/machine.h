/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The machine's parameters, by which algorithms are chosen: on all ranks the same. */
#ifndef COLL_JOB_MACHINE_H
#define COLL_JOB_MACHINE_H

#include "libcoll/link/context.h"

/*
 * Takes those of rank 0, and what else that one decides for all; *one_node: all ranks are on it. Waits for all ranks at
 * most for the deadline; coll_open_fail() has the reason of a failure.
 */
int coll_job_share_machine(struct coll_context *context, bool *one_node);

/*
 * Costs for a machine with all ranks on one node, where no option sets them: measured ones, or
 * usual ones. TCP over loopback has less latency than a network, and no wire that a byte
 * occupies: sender and receiver each copy it.
 */
void coll_job_assume_loopback(struct coll_context *context);

#endif
