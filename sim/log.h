/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A log of each op of a run, with times. Written by the general path, read for timelines and
 * for the critical path.
 */
#ifndef COLL_SIM_LOG_H
#define COLL_SIM_LOG_H

#include "program.h"

/* Times are SIM_NEVER if it did not happen. */
struct sim_span {
	sim_time begin, end;	/* of its CPU time; of a receive: after the arrival */
	sim_time work;		/* its CPU time without noise */
	sim_time left, there;	/* of a receive: its message left the sender, arrived */
	sim_time way;		/* its latency without noise and congestion */
};

struct sim_log {
	const struct sim_program *program;
	u64 *first;		/* per rank */
	struct sim_span *span;	/* per rank and op; the first ones are of all ranks that are not watched */
	struct sim_outcome outcome;
};

/* `watched`: per rank, whether its ops are logged; NULL: all are. */
int log_new(const struct sim_program *program, const bool *watched, struct sim_log **log);

static inline struct sim_span *log_span(const struct sim_log *log, u32 rank, u32 op)
{
	return &log->span[log->first[rank] + op];
}

#endif
