// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Messages on trunks: links between areas that many ranks share. */
#include <errno.h>
#include <stdlib.h>

#include "events_state.h"

static u32 crossing_new(struct sim_events *e)
{
	u32 index = e->free, capacity = e->crossing_capacity ? 2 * e->crossing_capacity : 64;
	struct sim_crossing *more;

	if (index) {
		e->free = e->crossing[index - 1].free;
		return index - 1;
	}
	if (e->crossings == e->crossing_capacity) {
		more = realloc(e->crossing, capacity * sizeof(*more));
		if (!more) {
			e->error = -ENOMEM;
			return COLL_NONE;
		}
		e->crossing = more;
		e->crossing_capacity = capacity;
	}
	return e->crossings++;
}

void events_cross(struct sim_events *e, struct sim_trunk *trunk, u64 bytes, sim_time time,
		  struct sim_crossing crossing)
{
	const u32 name = crossing_new(e);

	if (name == COLL_NONE)
		return;
	e->crossing[name] = crossing;
	if (!trunk_flows(trunk))
		e->busy[e->busies++] = trunk;
	if (trunk_add(trunk, (struct sim_flow){ bytes, time, name }))
		e->error = -ENOMEM;
}

int events_trunks_init(struct sim_events *e)
{
	const struct sim_network *n = e->machine->network;
	u32 i;

	e->trunk = n ? calloc(n->areas * n->areas, sizeof(*e->trunk)) : NULL;
	e->busy = n ? malloc(n->areas * n->areas * sizeof(*e->busy)) : NULL;
	e->crossings = e->free = e->busies = 0;
	if (n && (!e->trunk || !e->busy))
		return -ENOMEM;
	for (i = 0; n && i < n->areas * n->areas; i++)
		if (n->link[i].trunk > 0)
			trunk_init(&e->trunk[i], n->link[i].beta, n->link[i].trunk,
				   n->link[i].loss);
	return 0;
}

void events_trunks_free(struct sim_events *e)
{
	const struct sim_network *n = e->machine->network;
	u32 i;

	for (i = 0; e->trunk && i < n->areas * n->areas; i++)
		trunk_free(&e->trunk[i]);
	free(e->trunk);
	free(e->busy);
	e->trunk = NULL;
	e->busy = NULL;
}

/*
 * A flow has ended at `now`: its last byte has left, and is there after the latency. Its send is done then, too: at
 * `now` its rank may be in a window that was served before anybody knew.
 */
static void crossing_end(struct sim_events *e, u64 name, sim_time now)
{
	struct sim_crossing *crossing = &e->crossing[name];

	events_land(e, crossing->to, now + crossing->more, crossing->op);
	if (crossing->sent != COLL_NONE)
		events_at(e, crossing->from, now + crossing->more, crossing->sent, WHAT_DONE);
	crossing->free = e->free;
	e->free = name + 1;
}

bool events_trunks_step(struct sim_events *e, sim_time limit)
{
	struct sim_trunk *first = NULL;
	u32 at = 0, i;
	u64 name;

	for (i = 0; i < e->busies; i++) {
		const sim_time time = trunk_next(e->busy[i]);

		if (time < limit) {
			limit = time;
			first = e->busy[at = i];
		}
	}
	if (!first)
		return false;
	if (trunk_step(first, &name))
		crossing_end(e, name, first->now);
	if (!trunk_flows(first))
		e->busy[at] = e->busy[--e->busies];
	return true;
}
