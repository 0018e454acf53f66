/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Joining and leaving a job: the top floor. It opens the floors below in their order,
 * measures what they are to know, and closes them in reverse.
 */
#ifndef COLL_JOB_H
#define COLL_JOB_H

#include "libcoll/link/context.h"

/*
 * As coll_open(), in the job that `boot` has joined; NULL: the one that the
 * environment describes. `boot` is taken over, also on failure; who brings it
 * polls the engine itself.
 */
int coll_context_open(const char *options, struct coll_boot *boot, struct coll_context **context);

#endif
