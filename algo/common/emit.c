// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* One rank's schedule of a call: buffers, reduction, the algorithm's ops. */
#include "clusters.h"

/* Bytes of the buffer that holds every rank's block: up to the furthest end. */
static u64 algo_extent(const struct coll_call *call, const u64 *counts, const u64 *displs)
{
	u64 end = 0, sum = 0;
	u32 i;

	if (!counts)
		return call->count * call->ranks * call->element;
	for (i = 0; i < call->ranks; i++) {
		u64 start = displs ? displs[i] : sum;

		sum += counts[i];
		if (counts[i] && start + counts[i] > end)
			end = start + counts[i];
	}
	return end * call->element;
}

void coll_call_buffers(const struct coll_call *call, u64 *in, u64 *out)
{
	const u64 one = call_bytes(call);
	const bool root = call->rank == call->root;

	*in = 0;
	*out = 0;
	if (coll_call_is_message(call)) {
		*(call->collective == COLL_CALL_SEND ? in : out) = one;
		return;
	}
	switch (call->collective) {
	case COLL_BARRIER:
		return;
	case COLL_BCAST:
		*out = one;
		return;
	case COLL_GATHER:
	case COLL_GATHERV:
		*in = one;
		*out = root ? algo_extent(call, call->counts, call->displs) : 0;
		break;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		*in = root ? algo_extent(call, call->counts, call->displs) : 0;
		*out = call->in_place ? 0 : one;
		return;
	case COLL_ALLGATHER:
	case COLL_ALLGATHERV:
		*in = one;
		*out = algo_extent(call, call->counts, call->displs);
		break;
	case COLL_ALLTOALL:
		*in = *out = one * call->ranks;
		break;
	case COLL_ALLTOALLV:
		*in = algo_extent(call, call->send_counts, call->send_displs);
		*out = algo_extent(call, call->recv_counts, call->recv_displs);
		break;
	case COLL_REDUCE:
		*in = one;
		*out = root ? one : 0;
		break;
	case COLL_EXSCAN:
		*in = one;
		*out = call->rank || call->in_place ? one : 0;
		break;
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE_SCATTER_BLOCK:
		*in = algo_extent(call, call->counts, NULL);
		*out = call->in_place ? *in : block_bytes(call, call->rank);
		break;
	default:
		*in = *out = one;
		break;
	}
	if (call->in_place)
		*in = 0;
}

int coll_algo_emit_plain(const struct coll_algo *algo, const struct coll_call *call,
			 const struct coll_tuning *tuning, void *memory, u64 bytes,
			 struct coll_schedule **schedule)
{
	/* A phase across a level has tables of its own. */
	const u64 tables = algo->levels	  ? (call->levels + 1) *
						    coll_clusters_table_bytes(call->ranks) :
			   algo->clusters ? coll_clusters_table_bytes(call->ranks) :
					    (u64)algo->table_bytes * call->ranks;
	struct coll_build b;
	u64 in, out;

	if (bytes < tables)
		return -ENOSPC;
	bytes = (bytes - tables) & ~(u64)7;	/* the tables lie behind the schedule */
	coll_build_init(&b, memory, bytes, call->rank, call->ranks);
	b.tables = (u8 *)memory + bytes;
	coll_call_buffers(call, &in, &out);
	coll_build_buffers(&b, in, out);
	coll_build_reduction(&b, call->type, call->reduction,
			     call->type == COLL_OPAQUE_TYPE ? call->element : 0);
	algo->emit(&b, call, tuning);
	return coll_build_finish(&b, schedule);
}
