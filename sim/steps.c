// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>

#include "machine.h"
#include "steps.h"

/* No step begins later: it ends in virtual time. */
#define LAST (MACHINE_LAST / 2)

struct steps_state {
	const struct sim_steps *steps;
	struct sim *sim;
	struct sim_model model;		/* of the collective; begins at ready[] */
	struct sim_machine machine;		/* the model in integers, for its noise */
	u64 seed;
	u32 ranks;
	sim_time grain, idle, quiet;	/* quiet: a step without noise */
	sim_time *ready;		/* each rank has computed */
	sim_time *done;			/* each has the collective */
	sim_time *clear;		/* no event before; to be renewed when it is past */
	sim_time last;			/* the last rank's `done` */
};

/* Time of the earliest event that ends after `now`. */
static sim_time next_strike(struct steps_state *s, sim_time now)
{
	sim_time first = SIM_NEVER;
	u32 r;

	for (r = 0; r < s->ranks; r++) {
		if (s->clear[r] <= now)
			s->clear[r] = noise_next(&s->machine.os, r, now).start;
		if (s->clear[r] < first)
			first = s->clear[r];
	}
	return first;
}

/* Number of steps after `last` without noise. */
static u64 calm_steps(struct steps_state *s)
{
	const sim_time begin = s->last + s->idle, strike = next_strike(s, begin);

	if (strike == SIM_NEVER || strike <= begin + s->quiet)
		return 0;
	return (strike - begin - s->quiet) / (s->quiet + s->idle);
}

static void skip_steps(struct steps_state *s, u64 steps)
{
	const sim_time time = steps * (s->quiet + s->idle);
	u32 r;

	for (r = 0; r < s->ranks; r++)
		s->done[r] += time;
	s->last += time;
}

/* One step; each rank begins when it was done, or all together. */
static int run_step(struct steps_state *s)
{
	struct sim_outcome outcome;
	u32 r;

	for (r = 0; r < s->ranks; r++) {
		const sim_time begin = s->idle ? s->last + s->idle : s->done[r];

		s->ready[r] = s->grain ? noise_end(&s->machine.os, r, begin, s->grain) : begin;
	}
	return sim_run(s->sim, &s->model, s->seed, SIM_ANY_PATH, &outcome, s->done);
}

static sim_time last_of(const struct steps_state *s)
{
	sim_time last = 0;
	u32 r;

	for (r = 0; r < s->ranks; r++)
		last = s->done[r] > last ? s->done[r] : last;
	return last;
}

static int run_steps(struct steps_state *s, struct sim_step *step, u32 *count)
{
	u64 runs = s->steps->runs, calm = 0;
	bool together = true;		/* all ranks begin at the same time */
	u32 struck = 0;
	int error = 0;

	while (runs-- && struck < s->steps->struck && s->last < LAST && !error) {
		const u64 skipped = together || s->idle ? calm_steps(s) : 0;
		sim_time before, took;

		skip_steps(s, skipped);
		if (s->last >= LAST) {
			calm += skipped;
			break;
		}
		before = s->last;
		error = run_step(s);
		s->last = last_of(s);
		took = s->last - before - s->idle;
		together = took == s->quiet;
		calm += skipped + together;
		if (!together)
			step[1 + struck++] = (struct sim_step){ sim_seconds(took), 1 };
	}
	step[0] = (struct sim_step){ sim_seconds(s->quiet), calm };
	*count = 1 + struck;
	return error;
}

/* Measures a step without noise, and checks that it can be run. */
static int measure_quiet(struct steps_state *s)
{
	struct sim_model model = s->model;
	struct sim_outcome outcome;
	int error;

	model.os[0].model.period = 0;
	model.start = NULL;
	error = sim_run(s->sim, &model, s->seed, SIM_ANY_PATH, &outcome, NULL);
	s->quiet = s->grain + outcome.finish;
	return error;
}

int sim_steps(struct sim *sim, const struct sim_model *model, u64 seed,
	      const struct sim_steps *steps, struct sim_step *step, u32 *count)
{
	struct sim_size size;
	struct steps_state s = {
		.steps = steps, .sim = sim, .model = *model, .seed = seed,
		.grain = to_time(steps->grain * SIM_SECOND),
		.idle = to_time(steps->idle * SIM_SECOND),
	};
	int error = -ENOMEM;

	if (sim_model_refuses(model))
		return -EINVAL;
	sim_size(sim, &size);
	s.ranks = size.ranks;
	machine_init(&s.machine, model, seed);
	s.ready = calloc(3 * (size_t)s.ranks, sizeof(*s.ready));
	if (s.ready) {
		s.done = s.ready + s.ranks;
		s.clear = s.done + s.ranks;
		error = measure_quiet(&s);
	}
	s.model.start = s.ready;
	if (steps->offloaded)
		s.model.os[0].model.period = 0;
	if (!error)
		error = run_steps(&s, step, count);
	free(s.ready);
	return error;
}
