// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/unit/sim_job.h"

struct sim_job job_make(struct job_setting *setting, const struct coll_algo *algo, u32 ranks,
			     u64 count)
{
	struct coll_call *call = &setting->job.call;
	u32 i;

	setting->job = (struct sim_job){ .algo = algo, .tuning = COLL_TUNING_UNSET };
	*call = (struct coll_call){
		.collective = algo->collective,
		.ranks = ranks,
		.root = ranks / 3,
		.type = COLL_DOUBLE,
		.reduction = COLL_SUM,
		.element = 8,
		.commutative = true,
		.count = count,
	};
	for (i = 0; i < ranks && i < 1024; i++) {
		setting->counts[i] = count;
		setting->displs[i] = i * count;
	}
	if (ranks <= 1024) {
		call->counts = call->send_counts = call->recv_counts = setting->counts;
		call->displs = call->send_displs = call->recv_displs = setting->displs;
		if (algo->collective == COLL_REDUCE_SCATTER ||
		    algo->collective == COLL_REDUCE_SCATTER_BLOCK)
			call->displs = NULL;
	}
	return setting->job;
}

struct sim *job_open(const struct sim_job *job)
{
	struct sim *sim = NULL;
	char why[200] = "";

	if (sim_open(job, &sim, why, sizeof(why)))
		fail_msg("%s, %u ranks: %s", job->algo->name, job->call.ranks, why);
	return sim;
}

struct sim_outcome job_run(const struct sim_job *job, const struct sim_model *model,
				  u64 seed, enum sim_path path, sim_time *finish)
{
	struct sim *sim = job_open(job);
	struct sim_outcome outcome;

	assert_int_equal(sim_run(sim, model, seed, path, &outcome, finish), 0);
	sim_close(sim);
	return outcome;
}

struct sim_job job_named(struct job_setting *setting, enum coll_collective collective,
			    const char *name, u32 ranks, u64 count)
{
	const struct coll_algo *algo = coll_algo_find(collective, name);

	assert_non_null(algo);
	return job_make(setting, algo, ranks, count);
}

struct sim_model noisy_model(enum sim_semantics semantics, u32 kind)
{
	struct sim_model model = { .costs = SIM_COSTS(1e-6, 1e-9, 1e-10), .semantics = semantics };

	model.os[0] = sim_periodic(9e-6, 2e-6);
	model.link = sim_poisson(1e5, 2e-6);
	model.costs.gamma = 1e-8;
	if (kind == 1) {
		model.os[0] = sim_poisson(3e4, 3e-6);
		model.os[0].model.length = COLL_NOISE_EXPONENTIAL;
		model.os[1] = sim_periodic(2e-5, 1e-6);
		model.link.model.length = COLL_NOISE_PARETO;
		model.link.model.shape = 2500;
	}
	if (kind == 2) {
		model.costs.send = 3e-7;
		model.costs.copy = 1e-9;
	}
	return model;
}

void schedules_free(struct coll_schedule **s, u32 ranks)
{
	u32 i;

	for (i = 0; i < ranks; i++)
		free(s[i]);
	free(s);
}

sim_time run_schedules(struct coll_schedule *const *s, u32 ranks, const struct sim_model *m,
		       sim_time *finish)
{
	struct sim_outcome outcome;
	struct sim *sim = NULL;
	char why[200] = "";

	if (sim_open_schedules((const struct coll_schedule *const *)s, ranks, &sim, why,
			       sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(sim_run(sim, m, 7, SIM_ANY_PATH, &outcome, finish), 0);
	sim_close(sim);
	return outcome.finish;
}

struct sim_model replay_model(void)
{
	struct sim_model m = { .costs = SIM_COSTS(1e-6, 1e-9, 1e-9), .semantics = SIM_OCCUPANCY };

	m.costs.user = 1e-9;
	return m;
}

struct sim_model noisy_replay_model(void)
{
	struct sim_model m = replay_model();

	m.costs.send = 200e-9;
	m.costs.recv = 300e-9;
	m.os[0] = sim_periodic(20e-6, 3e-6);
	m.link = sim_poisson(50000, 2e-6);
	return m;
}
