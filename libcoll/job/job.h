/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Joining and leaving a job: the top floor. It opens the floors below in order, measures
 * the machine, and closes them in reverse.
 */
#ifndef COLL_JOB_H
#define COLL_JOB_H

#include "libcoll/link/context.h"

/*
 * As coll_open(), in the job that `boot` has joined; NULL: the job of the environment.
 * Takes ownership of `boot`, also on failure. `progress`: NULL for the one of the options.
 */
int coll_context_open(const char *options, struct coll_boot *boot,
		      const struct coll_progress_ops *progress, struct coll_context **context);

#endif
