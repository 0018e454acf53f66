// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "machine.h"
#include "trunk.h"

void trunk_init(struct sim_trunk *trunk, double end, double byte, double loss)
{
	*trunk = (struct sim_trunk){
		.end_rate = 1 / (end * SIM_SECOND),
		.rate = 1 / (byte * SIM_SECOND),
		.loss = loss,
	};
}

void trunk_free(struct sim_trunk *trunk)
{
	free(trunk->active);
	free(trunk->coming);
}

/* ---- heaps --------------------------------------------------------------------- */

typedef bool flow_order(const struct sim_flow *a, const struct sim_flow *b);

static bool ends_before(const struct sim_flow *a, const struct sim_flow *b)
{
	return a->bytes != b->bytes ? a->bytes < b->bytes : a->name < b->name;
}

static bool starts_before(const struct sim_flow *a, const struct sim_flow *b)
{
	return a->start != b->start ? a->start < b->start : a->name < b->name;
}

static int trunk_reserve(struct sim_flow **heap, u32 *capacity, u32 count)
{
	u32 more = *capacity ? 2 * *capacity : 16;
	struct sim_flow *bigger;

	if (count <= *capacity)
		return 0;
	bigger = realloc(*heap, (more > count ? more : count) * sizeof(**heap));
	if (!bigger)
		return -ENOMEM;
	*heap = bigger;
	*capacity = more > count ? more : count;
	return 0;
}

static void trunk_push(struct sim_flow *heap, u32 *count, struct sim_flow new, flow_order *before)
{
	u32 i;

	for (i = (*count)++; i && before(&new, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = new;
}

static struct sim_flow trunk_pop(struct sim_flow *heap, u32 *count, flow_order *before)
{
	struct sim_flow first = heap[0], moved = heap[--*count];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < *count) {
		if (child + 1 < *count && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &moved))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = moved;
	return first;
}

/* ---- flowing ------------------------------------------------------------------- */

/* Bytes per picosecond of each flow, at this number of flows. */
static double rate_each(const struct sim_trunk *trunk)
{
	const double offered = trunk->actives * trunk->end_rate / trunk->rate;

	if (offered <= 1)
		return trunk->end_rate;
	return trunk->rate / (1 + trunk->loss * (offered - 1)) / trunk->actives;
}

static sim_time next_end(const struct sim_trunk *trunk)
{
	if (!trunk->actives)
		return SIM_NEVER;
	return trunk->now + to_time((trunk->active[0].bytes - trunk->flowed) / rate_each(trunk));
}

/* Reserves memory for the flow: before it starts, and while it is active. */
int trunk_add(struct sim_trunk *trunk, struct sim_flow flow)
{
	if (trunk_reserve(&trunk->coming, &trunk->coming_capacity, trunk->comings + 1) ||
	    trunk_reserve(&trunk->active, &trunk->active_capacity,
			  trunk->actives + trunk->comings + 1))
		return -ENOMEM;
	trunk_push(trunk->coming, &trunk->comings, flow, starts_before);
	return 0;
}

sim_time trunk_next(const struct sim_trunk *trunk)
{
	const sim_time end = next_end(trunk);

	return trunk->comings && trunk->coming[0].start < end ? trunk->coming[0].start : end;
}

static void flow_until(struct sim_trunk *trunk, sim_time time)
{
	trunk->flowed += (time - trunk->now) * (trunk->actives ? rate_each(trunk) : 0);
	trunk->now = time;
}

bool trunk_step(struct sim_trunk *trunk, u64 *name)
{
	const sim_time end = next_end(trunk);
	struct sim_flow flow;

	if (!trunk->comings || end <= trunk->coming[0].start) {
		flow_until(trunk, end);
		flow = trunk_pop(trunk->active, &trunk->actives, ends_before);
		trunk->flowed = trunk->actives ? flow.bytes : 0;
		*name = flow.name;
		return true;
	}
	flow_until(trunk, trunk->coming[0].start);
	flow = trunk_pop(trunk->coming, &trunk->comings, starts_before);
	flow.bytes += trunk->flowed;
	trunk_push(trunk->active, &trunk->actives, flow, ends_before);
	return false;
}
