/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The engines that there are (libcoll/engine/engine.h). */
#ifndef COLL_JOB_ENGINES_H
#define COLL_JOB_ENGINES_H

#include "libcoll/link/context.h"

/* Opens the engine of the option, or the first that works here. */
int coll_job_open_engine(struct coll_context *context);

#endif
