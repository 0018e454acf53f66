/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The cores of this node, which its ranks share. */
#ifndef COLL_JOB_CORES_H
#define COLL_JOB_CORES_H

#include "libcoll/link/context.h"

/*
 * How ranks of this node share its cores, for the choice of algorithms and for waiting: the engine is told before it is
 * opened, and other options that it has.
 */
void coll_job_know_cores(struct coll_context *context);

/*
 * Whether this rank looks at times, as the option `measure` says: once it is rank 0's. All do or none, for what one
 * does not note is missing in the sums of all.
 */
void coll_job_follow(struct coll_context *context);

#endif
