// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cost.h"
#include "node/units.h"

enum { COST_STEPS = 1 << 18 };

static int add_cpu(const struct node_capture *capture, u32 cpu, double work, double wait,
		   struct sim_stretch *stretch)
{
	const struct coll_noise_event *event = node_capture_events(capture, cpu);
	const struct coll_noise_cpu *c = &capture->cpu[cpu];
	struct coll_noise_span *span = malloc((c->events + 1) * sizeof(*span));
	u64 watched = c->watched, i;
	int status;

	if (!span)
		return -ENOMEM;
	for (i = 0; i < c->events; i++) {
		const u64 start = event[i].start > c->first ? event[i].start - c->first : 0;

		span[i] = (struct coll_noise_span){ start, event[i].duration };
		if (start + event[i].duration > watched)
			watched = start + event[i].duration;
	}
	status = stretch_add(stretch, span, c->events, watched, work, wait);
	free(span);
	return status;
}

int noise_stretch(const struct node_capture *capture, u32 captures, double work, double wait,
		  struct sim_stretch *stretch)
{
	const u32 wanted = stretch->wanted;
	int status = 0;
	u32 i, c;

	stretch_free(stretch);
	stretch->wanted = wanted;
	for (i = 0; i < captures; i++)
		for (c = 0; c < capture[i].head.cpus && !status; c++)
			if (capture[i].cpu[c].watched)
				status = add_cpu(&capture[i], c, work, wait, stretch);
	if (!status)
		stretch_finish(stretch);
	return status ? status : stretch->steps ? 0 : -EINVAL;
}

double noise_watched(const struct node_capture *capture)
{
	double watched = 0;
	u32 c;

	for (c = 0; c < capture->head.cpus; c++)
		watched += capture->cpu[c].watched;
	return watched;
}

/* ---- of a report ----------------------------------------------------------------------------- */

/* One rank alone waits for nobody, so it never begins inside an event. */
int noise_costs(const struct node_capture *capture, struct noise_cost cost[NOISE_COSTS])
{
	static const u64 grains[] = { 100 * NODE_US, NODE_MS, 10 * NODE_MS };
	static const u32 ranks[] = { 1, 1000, 1000000 };
	struct sim_stretch stretch = {
		.wanted = COST_STEPS / (capture->head.cpus ? capture->head.cpus : 1) + 1,
	};
	int status = 0;
	u32 i;

	for (i = 0; i < NOISE_COSTS && !status; i++) {
		const u64 grain = grains[i / 3];

		cost[i] = (struct noise_cost){ .grain = grain, .ranks = ranks[i % 3] };
		if (i % 3 < 2)	/* The next has the same distribution. */
			status = noise_stretch(capture, 1, grain, i % 3 ? INFINITY : 0, &stretch);
		if (!status)
			cost[i].slowdown = stretch_mean(&stretch, cost[i].ranks) / grain;
		cost[i].beyond = (double)cost[i].ranks * grain > noise_watched(capture);
	}
	stretch_free(&stretch);
	return status;
}
