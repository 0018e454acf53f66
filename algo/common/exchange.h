/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Exchanging blocks with one rank after another, as alltoall(v) does. In place, a received block
 * waits in scratch until the block in its place has been sent.
 */
#ifndef COLL_EXCHANGE_H
#define COLL_EXCHANGE_H

#include "clusters.h"

struct coll_exchange {
	struct coll_clusters c;	/* displs[], op[]: the exchange's own */
	const struct coll_call *call;
};

/* Receives the block of `rank`: to its place, or in place to scratch, at displs[rank]. */
u32 coll_emit_exchange_recv(struct coll_build *b, const struct coll_exchange *x, u32 rank);
/* Sends `rank` its block, after an op. COLL_NONE: it is empty. */
u32 coll_emit_exchange_send(struct coll_build *b, const struct coll_exchange *x, u32 rank,
			    u32 after);
/* In place: what was taken goes to its place, once the block there was given. */
void coll_emit_exchange_store(struct coll_build *b, const struct coll_exchange *x, u32 rank,
			      u32 given, u32 taken);

/*
 * My cluster's ranks exchange all their blocks, with one partner at a time, as pairwise
 * does; my own block too. Returns the op that ends it.
 */
u32 coll_emit_exchange_inside(struct coll_build *b, const struct coll_exchange *x);

#endif
