/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Jobs and models for the tests of the simulator. A failure in these fails the cmocka test. */
#ifndef TESTS_UNIT_SIM_JOB_H
#define TESTS_UNIT_SIM_JOB_H

#include "sim/sim.h"

enum { NS = 1000, US = 1000 * NS };	/* picoseconds */

/* Memory of a job's call. One job at a time may use it. */
struct job_setting {
	struct sim_job job;
	u64 counts[1024], displs[1024];
};

/* A call of `count` doubles for each rank or block; the v collectives likewise. */
struct sim_job job_make(struct job_setting *setting, const struct coll_algo *algo, u32 ranks,
			u64 count);
struct sim_job job_named(struct job_setting *setting, enum coll_collective collective,
			 const char *name, u32 ranks, u64 count);

struct sim *job_open(const struct sim_job *job);
/* Opens, runs once and closes; `finish` gets each rank's time and may be NULL. */
struct sim_outcome job_run(const struct sim_job *job, const struct sim_model *model, u64 seed,
			   enum sim_path path, sim_time *finish);

/* Noise so frequent that it delays every run; `kind` 0 to 2 are different models. */
struct sim_model noisy_model(enum sim_semantics semantics, u32 kind);

/* A model of a program that computes as well, without noise and with it. */
struct sim_model replay_model(void);
struct sim_model noisy_replay_model(void);

/* Runs a program, one schedule for each rank. */
sim_time run_schedules(struct coll_schedule *const *s, u32 ranks, const struct sim_model *m,
		       sim_time *finish);
void schedules_free(struct coll_schedule **s, u32 ranks);

#endif
