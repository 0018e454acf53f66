/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Schedules for the commands that show, simulate or draw them. */
#ifndef COLL_TOOLS_EMIT_H
#define COLL_TOOLS_EMIT_H

#include "algo/common/algo.h"

/*
 * Sets equal, consecutive blocks of call->count if the collective takes counts. Returns the memory
 * that the call then points to, to be freed; NULL: it takes none.
 */
u64 *emit_blocks(struct coll_call *call);

/* The schedule of call->rank, to be freed. NULL: stderr has the reason. */
struct coll_schedule *emit_schedule(const char *command, const struct coll_algo *algo,
				    const struct coll_call *call,
				    const struct coll_tuning *tuning);

#endif
