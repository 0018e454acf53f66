/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_JOB_CONGESTION_H
#define COLL_JOB_CONGESTION_H

#include "libcoll/base/options.h"

/*
 * Whether this process may use the congestion controls that its options name. -EINVAL: coll_open_error() says why.
 * Later a socket that does not get one stays as it is.
 */
int coll_job_check_congestion(const struct coll_options *options);

#endif
