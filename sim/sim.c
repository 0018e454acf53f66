// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A job: selects the path for it, and runs it many times on many cores. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "events.h"
#include "levels.h"
#include "memory.h"
#include "redundant.h"

enum { THREADS_MAX = 256 };

struct sim {
	struct sim_job job;		/* .algo NULL: existing schedules */
	struct sim_program_source source;
	pthread_mutex_t lock;		/* of the threads of sim_repeat() */
	struct sim_program *program;
	struct sim_levels *levels;		/* NULL: the program has none */
	struct redundant_memory spare;	/* of the last run, for the next */
};

static int open_program(struct sim *sim, char *why, size_t bytes)
{
	int error = sim->job.algo && program_regular(&sim->job) ?
			    program_new_regular(&sim->job, &sim->program, why, bytes) :
			    -EAGAIN;

	if (error == -EAGAIN)
		error = program_new(&sim->source, false, &sim->program, why, bytes);
	if (error)
		return error;
	error = levels_new(sim->program, &sim->levels);
	return error == -EOPNOTSUPP ? 0 : error;
}

static int open_source(const struct sim_job *job, const struct sim_program_source *source,
		       struct sim **sim, char *why, size_t bytes)
{
	struct sim *s = calloc(1, sizeof(*s));
	int error;

	if (!s)
		return -ENOMEM;
	s->source = *source;
	if (job) {
		s->job = *job;
		s->source.job = &s->job;
	}
	pthread_mutex_init(&s->lock, NULL);
	error = open_program(s, why, bytes);
	if (error)
		sim_close(s);
	else
		*sim = s;
	return error;
}

int sim_open(const struct sim_job *job, struct sim **sim, char *why, size_t bytes)
{
	const struct sim_program_source source = { .ranks = job->call.ranks };

	return open_source(job, &source, sim, why, bytes);
}

int sim_open_schedules(const struct coll_schedule *const *schedule, u32 ranks, struct sim **sim,
		       char *why, size_t bytes)
{
	const struct sim_program_source source = { .schedule = schedule, .ranks = ranks };

	return open_source(NULL, &source, sim, why, bytes);
}

void sim_close(struct sim *sim)
{
	if (!sim)
		return;
	redundant_free(&sim->spare);
	levels_free(sim->levels);
	program_free(sim->program);
	pthread_mutex_destroy(&sim->lock);
	free(sim);
}

void sim_size(const struct sim *sim, struct sim_size *size)
{
	*size = (struct sim_size){
		.ranks = sim->program->ranks,
		.shapes = sim->program->classes,
		.bytes = program_bytes(sim->program),
		.run_bytes = events_bytes(sim->program),
	};
}

/* The machine of a run. -EINVAL: no such model; -EOVERFLOW: an op is longer than they can be. */
static int machine_new(struct sim_machine *machine, const struct sim_program *p,
		       const struct sim_model *model, u64 seed)
{
	if (sim_model_refuses(model))
		return -EINVAL;
	machine_init(machine, model, seed);
	machine->longest = to_time(machine_longest(model, p->ranks, p->sent, p->worked) * SIM_SECOND);
	return machine->longest <= MACHINE_LONGEST ? 0 : -EOVERFLOW;
}

/* One thread's memory, allocated when needed. */
struct repeat_worker {
	struct sim *sim;
	struct sim_events *events;
	struct redundant_memory redundant;
};

static struct repeat_worker worker_new(struct sim *sim)
{
	struct repeat_worker worker = { .sim = sim };

	pthread_mutex_lock(&sim->lock);
	worker.redundant = sim->spare;
	sim->spare = (struct redundant_memory){ 0 };
	pthread_mutex_unlock(&sim->lock);
	return worker;
}

static void worker_free(struct repeat_worker *worker)
{
	struct redundant_memory *spare = &worker->sim->spare, more;

	events_free(worker->events);
	pthread_mutex_lock(&worker->sim->lock);
	more = *spare;
	*spare = worker->redundant;
	pthread_mutex_unlock(&worker->sim->lock);
	redundant_free(&more);
}

static int run_levels(struct repeat_worker *worker, const struct sim_machine *machine,
		      struct sim_outcome *outcome, sim_time *finish)
{
	const struct sim *sim = worker->sim;

	if (sim->job.algo && redundant_fits(&sim->job, machine))
		return redundant_run(&sim->job, machine, &worker->redundant, outcome, finish);
	return sim->levels ? levels_run(sim->levels, machine, outcome, finish) : -EOPNOTSUPP;
}

static int worker_run(struct repeat_worker *worker, const struct sim_model *model, u64 seed,
		      enum sim_path path, struct sim_outcome *outcome, sim_time *finish)
{
	struct sim_machine machine;
	int error = machine_new(&machine, worker->sim->program, model, seed);

	if (error)
		return error;
	error = -EOPNOTSUPP;
	if (path != SIM_EVENTS && !model->circuits && model->messages == SIM_MESSAGE_NIC)
		error = run_levels(worker, &machine, outcome, finish);
	if (error != -EOPNOTSUPP || path == SIM_LEVELS)
		return error;
	if (!worker->events) {
		error = events_new(worker->sim->program, &worker->events);
		if (error)
			return error;
	}
	return events_run(worker->events, &machine, outcome,
			  &(struct sim_extras){ .finish = finish });
}

int sim_run(struct sim *sim, const struct sim_model *model, u64 seed, enum sim_path path,
	    struct sim_outcome *outcome, sim_time *finish)
{
	struct repeat_worker worker = worker_new(sim);
	int error = worker_run(&worker, model, seed, path, outcome, finish);

	worker_free(&worker);
	return error;
}

int sim_run_bytes(struct sim *sim, const struct sim_model *model, u64 seed,
		  const void *const *in, void *const *out, struct sim_outcome *outcome)
{
	struct sim_program *program = NULL;
	struct sim_events *events = NULL;
	struct sim_bytes *bytes = NULL;
	struct sim_machine machine;
	char why[8];
	int error = machine_new(&machine, sim->program, model, seed);

	if (!error)
		error = program_new(&sim->source, true, &program, why, sizeof(why));
	if (!error)
		error = bytes_new(program, in, out, &bytes);
	if (!error)
		error = events_new(program, &events);
	if (!error)
		error = events_run(events, &machine, outcome,
				   &(struct sim_extras){ .bytes = bytes });
	events_free(events);
	bytes_free(bytes);
	program_free(program);
	return error;
}

int sim_run_watched(struct sim *sim, const struct sim_model *model, u64 seed, const bool *watched,
		    struct sim_outcome *outcome, struct sim_log **log)
{
	struct sim_events *events = NULL;
	struct sim_machine machine;
	int error = machine_new(&machine, sim->program, model, seed);

	if (!error)
		error = log_new(sim->program, watched, log);
	if (error)
		return error;
	error = events_new(sim->program, &events);
	if (!error) {
		error = events_run(events, &machine, outcome, &(struct sim_extras){ .log = *log });
		(*log)->outcome = *outcome;
	}
	events_free(events);
	if (error)
		sim_log_free(*log);
	return error;
}

int sim_run_logged(struct sim *sim, const struct sim_model *model, u64 seed,
		   struct sim_outcome *outcome, struct sim_log **log)
{
	return sim_run_watched(sim, model, seed, NULL, outcome, log);
}

/* ---- many runs ---------------------------------------------------------------- */

struct repeat {
	struct sim *sim;
	const struct sim_model *model;
	u64 seed;
	u32 runs, until, next, done;	/* `until`: so many are given out */
	enum sim_path path;
	struct sim_outcome *outcome;
	bool (*progress)(void *argument, u32 done);
	void *argument;
	int error;
};

/* The next run to do; false: there is none. */
static bool next_run(struct repeat *repeat, u32 *run)
{
	bool more;

	pthread_mutex_lock(&repeat->sim->lock);
	more = !repeat->error && repeat->next < repeat->until;
	*run = repeat->next;
	repeat->next += more;
	pthread_mutex_unlock(&repeat->sim->lock);
	return more;
}

static void run_done(struct repeat *repeat, int error)
{
	pthread_mutex_lock(&repeat->sim->lock);
	repeat->done++;
	if (!repeat->error)
		repeat->error = error;
	if (!repeat->error && repeat->progress &&
	    !repeat->progress(repeat->argument, repeat->done))
		repeat->error = -ECANCELED;
	pthread_mutex_unlock(&repeat->sim->lock);
}

static bool has_noise(const struct sim_model *model, u32 rank)
{
	return (model->noisy && model->noisy[rank]) || (model->bad_links && model->bad_links[rank]);
}

static bool others_are_asked(const struct sim_model *model)
{
	return model->noisy || model->bad_links;
}

static sim_time last_without_noise(const struct repeat *repeat, const sim_time *finish)
{
	sim_time last = 0;
	u32 rank;

	for (rank = 0; rank < repeat->sim->program->ranks; rank++)
		if (!has_noise(repeat->model, rank) && finish[rank] > last)
			last = finish[rank];
	return last;
}

static int repeat_run(struct repeat *repeat, struct repeat_worker *worker, u32 run, sim_time *finish)
{
	struct sim_outcome *outcome = &repeat->outcome[run];
	const int error = worker_run(worker, repeat->model, sim_seed(repeat->seed, run),
				     repeat->path, outcome, finish);

	if (!error)
		outcome->others = finish ? last_without_noise(repeat, finish) : outcome->finish;
	return error;
}

static void *repeat_thread(void *argument)
{
	struct repeat *repeat = argument;
	struct repeat_worker worker = worker_new(repeat->sim);
	sim_time *finish = others_are_asked(repeat->model) ?
				   malloc(repeat->sim->program->ranks * sizeof(*finish)) : NULL;
	u32 run;

	while (next_run(repeat, &run))
		run_done(repeat, others_are_asked(repeat->model) && !finish ? -ENOMEM :
				 repeat_run(repeat, &worker, run, finish));
	free(finish);
	worker_free(&worker);
	return NULL;
}

/*
 * Threads that memory holds, each with a run by events. If that is less than are wanted, the first
 * run tells whether they are needed: by levels a run takes little.
 */
static u32 threads_that_fit(struct repeat *repeat, u32 wanted)
{
	const u64 fit = memory_usable() / (events_bytes(repeat->sim->program) + 1);

	if (wanted <= fit || repeat->path == SIM_LEVELS)
		return wanted;
	repeat->until = 1;
	repeat_thread(repeat);
	repeat->until = repeat->runs;
	return repeat->error || repeat->outcome->path == SIM_LEVELS ? wanted : fit;
}

int sim_repeat(struct sim *sim, const struct sim_model *model, u64 seed, u32 runs, u32 threads,
	       enum sim_path path, struct sim_outcome *outcome,
	       bool (*progress)(void *argument, u32 done), void *argument)
{
	struct repeat repeat = {
		.sim = sim,
		.model = model,
		.seed = seed,
		.runs = runs,
		.until = runs,
		.path = path,
		.outcome = outcome,
		.progress = progress,
		.argument = argument,
	};
	pthread_t thread[THREADS_MAX];
	u32 count = 0, wanted = threads_that_fit(&repeat, threads < runs ? threads : runs);

	while (count + 1 < wanted && count < THREADS_MAX &&
	       !pthread_create(&thread[count], NULL, repeat_thread, &repeat))
		count++;
	repeat_thread(&repeat);
	while (count)
		pthread_join(thread[--count], NULL);
	return repeat.error;
}
