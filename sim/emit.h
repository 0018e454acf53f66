/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* An algorithm's schedule, in memory that grows as needed. */
#ifndef COLL_SIM_EMIT_H
#define COLL_SIM_EMIT_H

#include "algo/common/algo.h"

/* Start with zeros; free(memory) at the end. */
struct sim_emit_memory {
	void *memory;
	u64 bytes;
};

/*
 * As coll_algo_emit(), but the buffer grows until it fits; -ENOMEM. The schedule begins
 * where buffer->memory does, until the next one is emitted into it.
 */
int emit_into(struct sim_emit_memory *buffer, const struct coll_algo *algo,
	      const struct coll_call *call, const struct coll_tuning *tuning,
	      struct coll_schedule **schedule);

#endif
