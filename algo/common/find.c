// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Algorithms by name, and whether one can serve a call. The list itself, coll_algos[], is
 * generated from the algorithms' files by list.awk.
 */
#include "algo.h"

const char *const coll_collective_names[COLL_CALLS] = {
	[COLL_BARRIER] = "barrier",
	[COLL_BCAST] = "bcast",
	[COLL_GATHER] = "gather",
	[COLL_GATHERV] = "gatherv",
	[COLL_SCATTER] = "scatter",
	[COLL_SCATTERV] = "scatterv",
	[COLL_ALLGATHER] = "allgather",
	[COLL_ALLGATHERV] = "allgatherv",
	[COLL_ALLTOALL] = "alltoall",
	[COLL_ALLTOALLV] = "alltoallv",
	[COLL_REDUCE] = "reduce",
	[COLL_ALLREDUCE] = "allreduce",
	[COLL_REDUCE_SCATTER] = "reduce_scatter",
	[COLL_REDUCE_SCATTER_BLOCK] = "reduce_scatter_block",
	[COLL_SCAN] = "scan",
	[COLL_EXSCAN] = "exscan",
	[COLL_CALL_SEND] = "send",
	[COLL_CALL_RECV] = "recv",
};

static bool names_equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

const struct coll_algo *coll_algo_find(enum coll_collective collective, const char *name)
{
	const struct coll_algo *const *algo;

	for (algo = coll_algos; *algo; algo++)
		if ((*algo)->collective == collective && names_equal((*algo)->name, name))
			return *algo;
	return NULL;
}

const char *coll_algo_refuses_plain(const struct coll_algo *algo, const struct coll_call *call,
				    const struct coll_tuning *tuning)
{
	if (!algo->ordered && !call->commutative)
		return "it does not keep rank order, and the operation does not commute";
	if (algo->power_of_two && call->ranks & (call->ranks - 1))
		return "it needs a power of two of ranks";
	if (algo->needs_counts && !call->counts)
		return "it needs the counts of all ranks on every rank";
	return algo->refuses ? algo->refuses(call, tuning) : NULL;
}
