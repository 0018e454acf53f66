// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/emit.h"
#include "arena.h"
#include "emit.h"

u64 *emit_blocks(struct coll_call *call)
{
	u64 *counts, *displs;
	u32 i;

	switch (call->collective) {
	case COLL_GATHERV:
	case COLL_SCATTERV:
	case COLL_ALLGATHERV:
	case COLL_ALLTOALLV:
	case COLL_REDUCE_SCATTER:
		break;
	default:
		return NULL;
	}
	counts = memory_grow(NULL, 2 * (size_t)call->ranks, sizeof(u64));
	displs = counts + call->ranks;
	for (i = 0; i < call->ranks; i++) {
		counts[i] = call->count;
		displs[i] = i * call->count;
	}
	if (call->collective == COLL_ALLTOALLV) {
		call->send_counts = call->recv_counts = counts;
		call->send_displs = call->recv_displs = displs;
	} else {
		call->counts = counts;
		call->displs = call->collective == COLL_REDUCE_SCATTER ? NULL : displs;
	}
	return counts;
}

struct coll_schedule *emit_schedule(const char *command, const struct coll_algo *algo,
				    const struct coll_call *call, const struct coll_tuning *tuning)
{
	const char *why = coll_algo_refuses(algo, call, tuning);
	struct sim_emit_memory capacity = { 0 };
	struct coll_schedule *s;
	int error;

	if (why) {
		fprintf(stderr, "coll %s: %s refuses: %s\n", command, algo->name, why);
		return NULL;
	}
	error = emit_into(&capacity, algo, call, tuning, &s);
	if (!error)
		return s;
	fprintf(stderr, "coll %s: rank %u: %s\n", command, call->rank,
		error == -E2BIG ? "a limit of schedules is exceeded" : strerror(-error));
	free(capacity.memory);
	return NULL;
}
