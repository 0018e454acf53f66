// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The simulator has a fast path, level by level, and a general one, event by event. They
 * agree to the last bit under noise, for every algorithm. A regular algorithm is predicted
 * from the schedules of a few ranks: exactly as from those of all.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/ranks.h"
#include "tests/lib/schedules.h"
#include "tests/unit/sim_job.h"

struct tally {
	u32 both, events;
};

static void compare_paths(const struct sim_job *job, const struct sim_model *model, u64 seed,
			  struct tally *tally)
{
	const u32 ranks = job->call.ranks;
	sim_time levels[ranks], events[ranks];
	struct sim *sim = job_open(job);
	struct sim_outcome one, other;
	int error = sim_run(sim, model, seed, SIM_LEVELS, &one, levels);

	assert_int_equal(sim_run(sim, model, seed, SIM_EVENTS, &other, events), 0);
	if (error)
		assert_int_equal(error, -EOPNOTSUPP);
	else if (memcmp(levels, events, sizeof(levels)) || one.finish != other.finish ||
		 one.last != other.last || one.messages != other.messages)
		fail_msg("%s %s, %u ranks, seed %llu: levels end at %lld, events at %lld; %llu and "
			 "%llu messages, T %llu",
			 coll_collective_names[job->call.collective], job->algo->name, ranks,
			 (unsigned long long)seed, one.finish, other.finish,
			 (unsigned long long)one.messages, (unsigned long long)other.messages,
			 (unsigned long long)job->tuning.redundancy);
	if (error)
		tally->events++;
	else
		tally->both++;
	sim_close(sim);
}

static void level_and_event_paths_agree_exactly(void **state)
{
	static const u32 some[] = { 1, 2, 3, 4, 5, 7, 8, 13, 16, 24, 32 };
	static struct job_setting setting;
	struct tally tally = { 0 };
	const struct coll_algo *const *algo;
	u32 i, kind;

	(void)state;
	for (algo = coll_algos; *algo; algo++)
		for (i = 0; i < sizeof(some) / sizeof(*some); i++)
			for (kind = 0; kind < 6; kind++) {
				struct sim_job job = job_make(&setting, *algo, some[i], 12);
				struct sim_model model = noisy_model(kind % 2, kind / 2);

				if (coll_algo_refuses(*algo, &job.call, &job.tuning))
					job.tuning.bound = 12;
				if (!coll_algo_refuses(*algo, &job.call, &job.tuning))
					compare_paths(&job, &model, i + kind, &tally);
			}
	assert_true(tally.both > 2000);
	assert_true(tally.both > 2 * tally.events);
}

static void paths_agree_for_every_redundancy(void **state)
{
	static struct job_setting setting;
	struct tally tally = { 0 };
	u32 ranks, t, seed;

	(void)state;
	for (ranks = 2; ranks <= 256; ranks *= 2)
		for (t = 0; t <= log2_floor(ranks); t++)
			for (seed = 0; seed < 8; seed++) {
				struct sim_model model = noisy_model(seed % 2, seed / 2 % 2);
				struct sim_job job = job_named(&setting, COLL_ALLREDUCE,
							   "butterfly-redundant", ranks, 2);

				job.tuning.redundancy = t;
				compare_paths(&job, &model, seed, &tally);
			}
	assert_int_equal(tally.events, 0);
}

/* ---- regular algorithms ----------------------------------------------------------- */

/*
 * From all ranks' schedules, as from those few that regular algorithms are known by. Ranks do not
 * divide every segment: then all are read.
 */
static void regular_algorithms_are_predicted_from_few_schedules(void **state)
{
	static const struct {
		enum coll_collective collective;
		const char *name;
		u64 segment;
	} some[] = {
		{ COLL_BARRIER, "dissemination", 0 },  { COLL_BARRIER, "butterfly", 0 },
		{ COLL_ALLREDUCE, "butterfly", 0 },    { COLL_ALLREDUCE, "butterfly-redundant", 0 },
		{ COLL_ALLREDUCE, "ring", 0 },	       { COLL_ALLREDUCE, "rabenseifner", 0 },
		{ COLL_ALLGATHER, "ring", 0 },	       { COLL_ALLREDUCE, "ring", 64 },
		{ COLL_ALLREDUCE, "rabenseifner", 64 },
	};
	const struct sim_model model = noisy_model(SIM_OCCUPANCY, 0);
	static struct job_setting setting;
	struct coll_schedule *s[64];
	sim_time few[64], all[64];
	struct sim_outcome outcome;
	char why[100] = "";
	struct sim *sim;
	u32 i, p, r;

	(void)state;
	for (i = 0; i < sizeof(some) / sizeof(*some); i++)
		for (p = 2; p <= 64; p += p < 34 ? 1 : 30) {
			struct sim_job job = job_named(&setting, some[i].collective, some[i].name, p,
						   2 * p);

			if (some[i].segment)
				job.tuning.segment = some[i].segment;
			job_run(&job, &model, p, SIM_EVENTS, few);
			for (r = 0; r < p; r++) {
				job.call.rank = r;
				s[r] = emit_schedule(job.algo, &job.call, &job.tuning);
			}
			if (sim_open_schedules((const struct coll_schedule *const *)s, p, &sim, why,
					       sizeof(why)))
				fail_msg("%s", why);
			assert_int_equal(sim_run(sim, &model, p, SIM_EVENTS, &outcome, all), 0);
			assert_memory_equal(few, all, p * sizeof(*few));
			sim_close(sim);
			while (r--)
				free(s[r]);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(level_and_event_paths_agree_exactly),
		cmocka_unit_test(paths_agree_for_every_redundancy),
		cmocka_unit_test(regular_algorithms_are_predicted_from_few_schedules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
