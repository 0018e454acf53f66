/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The flight record of this rank (libcoll/flight/flight.h): how it begins, and what it leaves behind. */
#ifndef COLL_JOB_FLIGHT_H
#define COLL_JOB_FLIGHT_H

#include "libcoll/link/context.h"

/* What others see of this rank. Without it all else works. */
int coll_job_open_flight(struct coll_context *context);
/* The report that an option asks for. Files only: it waits for no other rank. */
void coll_job_leave_report(struct coll_context *context, bool failed);

#endif
