/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef FLIT_RESULT_H
#define FLIT_RESULT_H

#include "depend.h"

enum { FLIT_BINS = 200, FLIT_POINTS = 512 };

/* Latencies of messages, from the request to the last flit's arrival. */
struct flit_latency {
	u64 messages;
	double mean, deviation;
	u32 least, p50, p95, p99, most;
};

/* Mean number of links without a flit in a cycle, by reason. */
struct flit_idle {
	double none, gap, blocked;	/* no packet; no flit available; next buffer full */
};

struct flit_point {
	float used;		/* share of the links, 0 to 1 */
	struct flit_idle idle;
};

/* Plain data: processes pass it on as it is. */
struct flit_result {
	int error;
	struct flit_latency all, local, between;	/* inside a module, between modules */
	double throughput;		/* flits that arrived per cycle */
	double accepted, offered;	/* flits per PE and cycle */
	double use, outer_use;		/* of the links between routers, between modules: 0..1 */
	struct flit_idle idle, outer_idle;
	u64 cycles;			/* simulated */
	u64 sent, arrived, inside;	/* flits: into routers, out of them, still inside */
	u64 hops;			/* flits through a router */
	u64 missing;			/* drain: messages born in the window that have not arrived */
	double seconds;			/* CPU time */
	/* Programs: when PEs finished. */
	double finish_mean;
	u64 finish_first, finish_last;
	u32 bin;			/* cycles of a bin of the distribution */
	u32 bins[FLIT_BINS];		/* the last one: all larger values */
	u32 points;
	struct flit_point point[FLIT_POINTS], outer_point[FLIT_POINTS];
	struct flit_cycle stuck;	/* -EDEADLK */
};

/* Latencies by the cycle. */
struct flit_counts {
	u32 *count;
	u32 size, most;
	u64 messages;
	double sum, squares;
};

bool flit_count(struct flit_counts *counts, u64 latency);
void flit_latency(const struct flit_counts *counts, struct flit_latency *latency);

/* Mean and half the width of its 95 % confidence interval. */
struct flit_estimate {
	double mean, half;
};

struct flit_estimate flit_estimate(const double *value, u32 count);

#endif
