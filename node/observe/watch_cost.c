// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "libcoll/base/clock.h"
#include "watch_cost.h"

static const uint64_t WINDOW_NS = 5 * COLL_SECOND, LEAST_NS = 2 * COLL_SECOND;

static void cost_forget_first(struct watch_cost *of)
{
	memmove(of->look, of->look + 1, --of->looks * sizeof(*of->look));
}

/* Where looks are very near each other the window is shorter: it has room for so many. */
static void cost_add(struct watch_cost *of, uint64_t time, uint64_t cost)
{
	if (!of->looks)
		of->looks = 1;	/* at the begin it was nothing */
	if (of->looks == WATCH_COST_LOOKS)
		cost_forget_first(of);
	of->look[of->looks].time = time;
	of->look[of->looks++].cost = cost;
	while (of->looks > 2 && time - of->look[1].time >= WINDOW_NS)
		cost_forget_first(of);
}

double node_watch_cost(struct watch_cost *of, uint64_t time, uint64_t cost)
{
	uint64_t span;

	cost_add(of, time, cost);
	span = time - of->look->time;
	return (double)(cost - of->look->cost) / (span < LEAST_NS ? LEAST_NS : span);
}
