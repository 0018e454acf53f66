// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The latencies that a run has counted: as a histogram and as estimates. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "result.h"

enum { LATENCY_MAX = 1 << 24 };

bool flit_count(struct flit_counts *c, u64 latency)
{
	u32 at = latency < LATENCY_MAX ? latency : LATENCY_MAX - 1;

	if (at >= c->size) {
		u32 size = c->size ? c->size : 4096;
		u32 *grown;

		while (size <= at)
			size *= 2;
		grown = reallocarray(c->count, size, sizeof(u32));
		if (!grown)
			return false;
		memset(grown + c->size, 0, (size - c->size) * sizeof(u32));
		c->count = grown;
		c->size = size;
	}
	c->count[at]++;
	if (at > c->most)
		c->most = at;
	c->messages++;
	c->sum += latency;
	c->squares += (double)latency * latency;
	return true;
}

void flit_latency(const struct flit_counts *c, struct flit_latency *latency)
{
	u64 seen = 0;
	u32 at;

	*latency = (struct flit_latency){ .messages = c->messages, .most = c->most };
	if (!c->messages)
		return;
	latency->mean = c->sum / c->messages;
	latency->deviation = sqrt(fmax(0, c->squares / c->messages -
				       latency->mean * latency->mean));
	for (at = 0; at <= c->most; at++) {
		if (!seen && c->count[at])
			latency->least = at;
		seen += c->count[at];
		if (!latency->p50 && seen * 100 >= c->messages * 50)
			latency->p50 = at;
		if (!latency->p95 && seen * 100 >= c->messages * 95)
			latency->p95 = at;
		if (!latency->p99 && seen * 100 >= c->messages * 99)
			latency->p99 = at;
	}
}

/* Student's t, 97.5 %, for 1, 2, ... degrees of freedom. */
static double result_student(u32 freedom)
{
	static const double t[] = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
				    2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101,
				    2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052,
				    2.048, 2.045, 2.042 };
	const u32 known = sizeof(t) / sizeof(*t);

	return freedom <= known ? t[freedom - 1] : 1.96 + 2.5 / freedom;
}

struct flit_estimate flit_estimate(const double *value, u32 count)
{
	struct flit_estimate e = { 0 };
	double squares = 0;
	u32 i;

	for (i = 0; i < count; i++)
		e.mean += value[i] / count;
	for (i = 0; i < count; i++)
		squares += (value[i] - e.mean) * (value[i] - e.mean);
	if (count > 1)
		e.half = result_student(count - 1) * sqrt(squares / (count - 1) / count);
	return e;
}
