// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Persistent: an iteration whose ranks exchange the same data in each step. The algorithm is
 * chosen and its schedule made once. Each rank has a temperature and moves to the mean of
 * all, until the ranks differ by less than a limit.
 */
#include <stdio.h>
#include <coll.h>

struct state {
	double temperature;		/* this rank's */
	double range[2];		/* greatest, and greatest negative: both by MAX */
	double sum;
};

static int play(struct coll_group *world, struct state *state, int *steps)
{
	struct coll_run *run[2] = { NULL, NULL };
	int error;

	error = coll_allreduce_init(&state->temperature, &state->sum, 1, COLL_DOUBLE, COLL_SUM,
				    world, &run[0]);
	if (!error)
		error = coll_allreduce_init(COLL_IN_PLACE, state->range, 2, COLL_DOUBLE, COLL_MAX,
					    world, &run[1]);
	if (!error && coll_rank(world) == 0)
		printf("%s\n", coll_run_explain(run[0]));
	for (*steps = 0; !error; ++*steps) {
		state->range[0] = state->temperature;
		state->range[1] = -state->temperature;
		error = coll_run_start(run[0]);
		if (!error)
			error = coll_run_start(run[1]);
		if (!error)
			error = coll_run_waitall(run, 2);
		if (!error && state->range[0] + state->range[1] < 0.01)
			break;
		state->temperature += (state->sum / coll_ranks(world) - state->temperature) / 2;
	}
	coll_run_free(&run[0]);
	coll_run_free(&run[1]);
	return error;
}

int main(void)
{
	struct coll_context *context;
	struct coll_group *world;
	struct state state;
	int error, steps;

	if (coll_open("deadline=10s", &context)) {
		fprintf(stderr, "%s\n", coll_context_error(NULL));
		return 1;
	}
	world = coll_world(context);
	state.temperature = 10.0 * coll_rank(world);
	error = play(world, &state, &steps);
	if (error)
		fprintf(stderr, "%s: %s\n", coll_strerror(error), coll_last_error(world));
	else
		printf("rank %d: %.1f after %d steps\n", coll_rank(world), state.temperature, steps);
	coll_close(context);
	return error != 0;
}
