/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Receive and reduce fused: a message that is received into scratch only to be reduced is reduced
 * as it arrives, piece by piece while in cache, from where its bytes are: a ring, a buffer of the
 * engine's, an unexpected message. So they are read once, and not written to scratch.
 *
 * The schedule does not say it. When a call is planned, each receive is marked whose bytes one
 * reduce reads and nothing else. When bytes arrive, that reduce has to lack nothing but this
 * message: its other operand is there, and its result may be written. Else they go to scratch, and
 * what is there is reduced first as soon as nothing else is missing, be it in the midst of the
 * message or at its end. The ops are done in the same order as without: first the receive, then
 * the reduce, for which nothing is left to do.
 *
 * Operands, their order and the result's bits are the same in all cases (core/reduce.h). A user's
 * function gets whole vectors, so its receives are not marked; nor are short ones, those that are
 * optional, or whose reduce waits for any of several ops.
 *
 * A message that breaks off leaves a part of the result, as any run that fails may. A peer that
 * changes its bytes meanwhile changes numbers of the result, as if it had sent others.
 */
#ifndef COLL_FUSED_H
#define COLL_FUSED_H

#include <stdbool.h>
#include <stdint.h>

struct coll_exec;
struct coll_link;
struct coll_planned;

/*
 * Marks the receives of a plan: planned->fused. Costs a sorting of its ops, at most; without memory
 * for that none is marked.
 */
void coll_fused_mark(struct coll_planned *planned);

/* Payload begins to arrive for this receive, from link->header.offset on. */
void coll_fused_begin(struct coll_link *link, struct coll_exec *exec, uint32_t op);
/* As reduce() of struct coll_link_events. */
void coll_fused_take(struct coll_link *link, const uint8_t *data, uint64_t bytes);
/*
 * All bytes of this receive's message are here. False: they are still to be copied to scratch. Of an exec in order
 * the reduce is one of those that are ahead then.
 */
bool coll_fused_take_whole(struct coll_exec *exec, uint32_t op, const uint8_t *data);
/* Whether this reduce was computed when its message arrived. */
bool coll_fused_is_computed(const struct coll_exec *exec, uint32_t reduce);

#endif
