// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* One rank's schedule of a call, with circuits or without. */
#include "algo/circuits/circuits.h"

const char *coll_algo_refuses(const struct coll_algo *algo, const struct coll_call *call,
			      const struct coll_tuning *tuning)
{
	const char *why = coll_algo_refuses_plain(algo, call, tuning);

	return why ? why : coll_circuits_refuse(algo, call, tuning);
}

int coll_algo_emit(const struct coll_algo *algo, const struct coll_call *call,
		   const struct coll_tuning *tuning, void *memory, u64 bytes,
		   struct coll_schedule **schedule)
{
	if (coll_algo_refuses(algo, call, tuning))
		return -EOPNOTSUPP;
	if (tuning->ports != COLL_UNSET || call->ports)
		return coll_circuits_emit(algo, call, tuning, memory, bytes, schedule);
	return coll_algo_emit_plain(algo, call, tuning, memory, bytes, schedule);
}
