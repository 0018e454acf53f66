/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A number of each rank, such as that of its cluster, which rank 0 knows first. */
#ifndef COLL_TOPOLOGY_NUMBERS_H
#define COLL_TOPOLOGY_NUMBERS_H

#include "libcoll/link/link.h"

struct coll_numbers {
	const char *key;		/* of the store, at most 15 characters */
	uint32_t *of;			/* per rank of the job */
};

/*
 * Rank 0's numbers become those of all ranks. `error`: why this rank cannot go on, or 0; it enters
 * the fence all the same, and gets this error back. Collective; one fence.
 */
int coll_numbers_share(struct coll_context *context, const struct coll_numbers *numbers, int count,
		       int error, uint64_t deadline);

#endif
