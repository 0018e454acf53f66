/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A blocking call of short messages within a node that repeats the group's latest of its collective,
 * executed in order: its ops one after the other, as in the list of its plan (order.h). So a call needs
 * neither a step nor a place among the active runs: half of all that it executed and touched.
 *
 * It is an order in which the engine might have done them, so the results have the same bits.
 * Whenever something is for the engine (a link that is not up, a message of another run, memory that
 * is full, a peer that is late), the engine goes on, knowing what is done. So all that waits for long
 * is the engine's, with its deadlines, pings and failures, and `coll show` sees it.
 */
#ifndef COLL_IN_ORDER_H
#define COLL_IN_ORDER_H

#include "exec.h"

/*
 * A call of this plan begins, by the context's owner. NULL: it is not to be executed so; nothing was
 * done.
 */
struct coll_exec *coll_in_order_begin(struct coll_planned *planned, void *in, void *out);
/*
 * Its ops. They wait as long as a poll looks before it sleeps, and at most 50 us. True: the call is
 * done. False: a run is to adopt it (coll_exec_adopt()).
 */
bool coll_in_order_execute(struct coll_exec *exec);

#endif
