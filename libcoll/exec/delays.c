// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "delays.h"
#include "samples.h"

enum { DRAWN_RARELY = 1 << 16 };

/* No noise is longer. */
static const uint64_t waited_ns_most = 1000 * 1000000000ull;

/* The same on all ranks, and no lottery of samples. */
static uint64_t run_name(uint32_t run)
{
	return coll_samples_mix(~(uint64_t)run);
}

static uint32_t cell_of(uint64_t name)
{
	return (name >> 32) % DELAY_CELLS;
}

static bool is_drawn(const struct coll_delays *delays, uint64_t name)
{
	return !(name & (delays->every - 1));
}

void coll_delays_init(struct coll_delays *delays)
{
	memset(delays, 0, sizeof(*delays));
	delays->every = 1;
}

static uint64_t part_of(uint64_t ns)
{
	return ns < waited_ns_most ? ns : waited_ns_most;
}

void coll_delays_note(struct coll_delays *delays, uint32_t run, uint64_t waited, uint64_t late)
{
	const uint64_t name = run_name(run);
	const uint32_t index = cell_of(name);
	struct coll_delay_cell *cell = &delays->cell[index];

	delays->notes++;
	if (!is_drawn(delays, name))
		return;
	if (!cell->ranks || delays->run[index] != run) {
		delays->run[index] = run;
		*cell = (struct coll_delay_cell){ .tag = name, .runs = run, .ranks = 1 };
	}
	cell->late = part_of(cell->late + part_of(late));
	if (waited && !cell->waited) {
		cell->ranks += 1ull << DELAY_WAITED;
		cell->waited = part_of(waited);
	}
}

void coll_delays_take(struct coll_delays *delays, struct coll_delay_cell cell[DELAY_CELLS])
{
	memcpy(cell, delays->cell, sizeof(delays->cell));
	memset(delays->cell, 0, sizeof(delays->cell));
	delays->notes = delays->unmissed = 0;
}

/* Whether all notes are of one run, as far as honest ranks go. */
static bool is_of_one_run(const struct coll_delay_cell *sum, uint32_t index)
{
	const uint64_t ranks = (uint32_t)sum->ranks, run = ranks ? sum->runs / ranks : 0;
	const uint64_t name = run_name(run);

	return ranks && run <= UINT32_MAX && run * ranks == sum->runs && name * ranks == sum->tag &&
	       cell_of(name) == index;
}

/* The mean of those that waited, without what late ranks explain; 0: no message was late, as far as is known. */
static double held_up(const struct coll_delay_cell *sum)
{
	const uint64_t ranks = sum->ranks >> DELAY_WAITED, waited = ranks ? sum->waited / ranks : 0;

	if (waited > waited_ns_most || waited < DELAY_WAITED_NS || sum->late > waited - DELAY_WAITED_NS)
		return 0;
	return (waited - sum->late) * 1e-9;
}

static uint32_t draw_for(uint64_t notes)
{
	uint32_t every = 1;

	while (every < DRAWN_RARELY && (uint64_t)every * DELAY_CELLS < notes)
		every *= 2;
	return every;
}

struct coll_delays_found coll_delays_collect(struct coll_delays *delays, const struct coll_delay_cell *sum,
					     uint64_t notes)
{
	struct coll_delays_found found = { 0, 0, 0 };
	uint32_t noted = 0, one = 0, every, i;
	uint64_t ranks = 0;

	for (i = 0; i < DELAY_CELLS; i++) {
		double seconds;

		noted += !!sum[i].ranks;
		if (!is_of_one_run(&sum[i], i))
			continue;
		one++;
		ranks += (uint32_t)sum[i].ranks;
		seconds = held_up(&sum[i]);
		found.seen += seconds > 0;
		found.seconds += seconds;
	}
	if (one) {			/* those in cells where several met are like the others */
		const double part = (double)one / noted / delays->every;

		found.runs = found.seen / part;
		found.seconds /= part;
	}
	/* Of a run many ranks note something. A quarter of the cells, so that few runs meet in one. */
	every = draw_for(4 * (one ? notes * one / ranks : notes));
	if (every != delays->every) {
		delays->every = every;
		memset(delays->cell, 0, sizeof(delays->cell));
	}
	return found;
}
