/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * When messages of a run were sent, awaited and there: for the samples that costs are learned from
 * (samples.h), and for the report of timed runs (flight/timed.h). Runs of neither kind cost a look at a flag.
 */
#ifndef COLL_TIMES_H
#define COLL_TIMES_H

#include "exec.h"

/* Whether the op's message is one of the first to and from each peer, of a sampled run. */
bool coll_times_is_drawn(const struct coll_exec *exec, const struct coll_op *op);

void coll_times_sample_sent(const struct coll_exec *exec, const struct coll_op *op);
void coll_times_sample_posted(const struct coll_exec *exec, const struct coll_op *op);
/* It came before its receive: nothing was waited for. */
void coll_times_sample_kept(const struct coll_exec *exec, const struct coll_op *op);
void coll_times_sample_arrived(const struct coll_exec *exec, const struct coll_op *op);
/* Of a message that has arrived and was injected to be late: it is there when it is due. */
void coll_times_due(const struct coll_exec *exec, const struct coll_op *op, uint64_t due);

void coll_times_sent(const struct coll_exec *exec, const struct coll_op *op);
/* A receive starts; and those that start as the run begins, of one that looks at them in turn (in_order.h). */
void coll_times_posted(const struct coll_exec *exec, const struct coll_op *op);
void coll_times_posted_first(const struct coll_exec *exec);
/* It turns out to be here already: it was not waited for. */
void coll_times_found(const struct coll_exec *exec, const struct coll_op *op);
void coll_times_arrived(const struct coll_exec *exec, const struct coll_op *op);

#endif
