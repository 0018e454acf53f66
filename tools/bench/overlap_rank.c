// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * One rank of the overlap benchmark. An iteration measures all cases in turn, so they meet the
 * same machine; an untimed barrier precedes each. The product's rows are shared by the rank's
 * threads, in steps; between two steps the rank may call the library.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "libcoll/engine/inject.h"
#include "tools/common/arena.h"
#include "tools/common/command.h"
#include "overlap.h"

enum { WARMUP = 3, CALIBRATION = 9, NOISE_PRIORITY = 50, IDLE_CALLS = 100000, LATER_US = 20000 };

struct rank {
	const struct overlap_options *options;
	struct coll_context *context;
	struct coll_group *world, *group;
	struct bench_data data[OVERLAP_FLIGHT_MAX];
	struct coll_run *run[OVERLAP_FLIGHT_MAX];
	double *matrix, *vector, *product;
	uint64_t rows, wrong;
	double *sample[OVERLAP_CASES], *begin_of[OVERLAP_CASES];	/* us */
	double began, product_began;	/* us, start of the current sample */
	double started;			/* us that its starts took */
	double taken;			/* us in its product that other tasks had the CPU */
	double idle_call;		/* ns */
	int cpus;			/* CPUs that ranks compute on */

	/* The threads that share the rows of a step. */
	pthread_barrier_t begin, end;
	uint64_t first, last;		/* rows of the step; 0: the threads end */
};

/* ---- the product ---------------------------------------------------------------- */

static void overlap_rank_multiply(struct rank *rank, uint64_t first, uint64_t last)
{
	const uint64_t n = rank->options->matrix;
	uint64_t row, column;

	for (row = first; row < last; row++) {
		const double *a = rank->matrix + row % n * n;
		double sum = 0;

		for (column = 0; column < n; column++)
			sum += a[column] * rank->vector[column];
		rank->product[row % n] = sum;
	}
}

static void multiply_share(struct rank *rank, int thread)
{
	const uint64_t rows = rank->last - rank->first, threads = rank->options->threads;

	overlap_rank_multiply(rank, rank->first + rows * thread / threads,
			      rank->first + rows * (thread + 1) / threads);
}

struct worker {
	struct rank *rank;
	int thread;
	pthread_t id;
};

static void *overlap_rank_work(void *argument)
{
	struct worker *worker = argument;
	struct rank *rank = worker->rank;

	for (;;) {
		pthread_barrier_wait(&rank->begin);
		if (rank->first == rank->last)
			return NULL;
		multiply_share(rank, worker->thread);
		pthread_barrier_wait(&rank->end);
	}
}

static void overlap_rank_step(struct rank *rank, uint64_t first, uint64_t last)
{
	if (rank->options->threads == 1) {
		overlap_rank_multiply(rank, first, last);
		return;
	}
	rank->first = first;
	rank->last = last;
	pthread_barrier_wait(&rank->begin);
	multiply_share(rank, 0);
	pthread_barrier_wait(&rank->end);
}

static uint64_t own_cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return used.tv_sec * COLL_SECOND + used.tv_nsec;
}

/* Computes all rows; `calls`: the rank calls the library after each step. */
static int all_rows(struct rank *rank, bool calls)
{
	const uint64_t steps = rank->options->calls;
	uint64_t i;
	int error = 0;

	for (i = 0; i < steps && !error; i++) {
		uint64_t first = rank->rows * i / steps, last = rank->rows * (i + 1) / steps;

		if (first < last)
			overlap_rank_step(rank, first, last);
		if (calls)
			error = coll_progress(rank->context);
	}
	return error;
}

/* Microseconds, or a negative errno. Taken by others: the time in which the thread did not run. */
static double overlap_rank_product(struct rank *rank, bool calls)
{
	const uint64_t start = coll_now(), used = own_cpu_ns();
	int error = all_rows(rank, calls);
	uint64_t took;

	rank->product_began = start / 1e3;
	took = coll_now() - start;
	rank->taken = (took - (double)(own_cpu_ns() - used)) / 1e3;
	return error ? error : took / 1e3;
}

/* ---- the cases ------------------------------------------------------------------ */

static int start_all(struct rank *rank, int variant)
{
	const uint64_t start = coll_now();
	int i, error = 0;

	for (i = 0; i < rank->options->flight && !error; i++)
		error = bench_data_start(&rank->data[i], variant, rank->group, &rank->run[i]);
	rank->started = (coll_now() - start) / 1e3;
	return error;
}

static int call_all(struct rank *rank, int variant)
{
	int i, error = 0;

	for (i = 0; i < rank->options->flight && !error; i++)
		error = bench_data_call(&rank->data[i], variant, rank->group);
	return error;
}

static int wait_all(struct rank *rank)
{
	return coll_run_waitall(rank->run, rank->options->flight);
}

static int overlap_rank_case(struct rank *rank, enum overlap_case what, int variant,
			     double *product_us)
{
	int error = 0;

	switch (what) {
	case OVERLAP_COMPUTE:
		break;
	case OVERLAP_BLOCKING:
		error = call_all(rank, variant);
		break;
	case OVERLAP_PURE:
	case OVERLAP_NONE:
		error = start_all(rank, variant);
		error = error ? error : wait_all(rank);
		break;
	default:
		error = start_all(rank, variant);
	}
	if (error || what == OVERLAP_PURE)
		return error;
	*product_us = overlap_rank_product(rank, what == OVERLAP_TEST);
	if (*product_us < 0)
		return *product_us;
	return what == OVERLAP_TEST || what == OVERLAP_NOTEST ? wait_all(rank) : 0;
}

static void overlap_rank_check(struct rank *rank, enum overlap_case what, int variant)
{
	int i;

	for (i = 0; what != OVERLAP_COMPUTE && i < rank->options->flight; i++)
		rank->wrong += bench_data_check(&rank->data[i], variant) >= 0;
}

/*
 * Microseconds, or a negative errno. The start is kept: where ranks share a CPU one starts when
 * the other ends, and the result is the time of both.
 */
static double overlap_rank_timed(struct rank *rank, enum overlap_case what, int variant,
				 double *product_us)
{
	uint64_t start;
	int i, error;

	for (i = 0; i < rank->options->flight; i++)
		bench_data_prepare(&rank->data[i], variant);
	error = coll_barrier(rank->world);
	start = coll_now();
	rank->began = start / 1e3;
	error = error ? error : overlap_rank_case(rank, what, variant, product_us);
	if (error)
		return error;
	overlap_rank_check(rank, what, variant);
	return (coll_now() - start) / 1e3;
}

/* ---- the loop ------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* From the first rank's start to the last one's end; all ranks are on one node. */
static int span_all(struct rank *rank, double *begin, double *time, uint64_t count)
{
	uint64_t i;
	int error;

	for (i = 0; i < count; i++)
		time[i] += begin[i];
	error = coll_allreduce(COLL_IN_PLACE, time, count, COLL_DOUBLE, COLL_MAX, rank->world);
	if (!error)
		error = coll_allreduce(COLL_IN_PLACE, begin, count, COLL_DOUBLE, COLL_MIN,
				       rank->world);
	for (i = 0; i < count; i++)
		time[i] -= begin[i];
	return error;
}

/* The median of some iterations, the same on all ranks. */
static double median_of_all(struct rank *rank, enum overlap_case what)
{
	double begin[CALIBRATION], time[CALIBRATION], unused;
	int i;

	for (i = 0; i < CALIBRATION; i++) {
		time[i] = overlap_rank_timed(rank, what, i % BENCH_VARIANTS, &unused);
		begin[i] = rank->began;
	}
	span_all(rank, begin, time, CALIBRATION);
	qsort(time, CALIBRATION, sizeof(*time), by_value);
	return time[CALIBRATION / 2];
}

/*
 * Sets the number of rows so that the product takes 1.5 times as long as the collectives alone:
 * all of these can be hidden. Ranks that share a CPU run in turn, and only the own part hides a
 * collective.
 */
static int overlap_rank_calibrate(struct rank *rank)
{
	const double turns = ceil((double)rank->options->ranks / rank->cpus);
	double rows, alone;
	int i, error = 0;

	if (rank->options->rows) {
		rank->rows = rank->options->rows;
		return 0;
	}
	rank->rows = rank->options->matrix;
	median_of_all(rank, OVERLAP_PURE);	/* opens the links */
	alone = median_of_all(rank, OVERLAP_PURE);
	for (i = 0; i < 2 && !error; i++) {	/* the second estimate starts near the result */
		rows = 1.5 * turns * rank->rows * alone / median_of_all(rank, OVERLAP_COMPUTE);
		rank->rows = rows > rank->options->calls ? rows : rank->options->calls;
		error = coll_bcast(&rank->rows, 1, COLL_UINT64, 0, rank->world);
	}
	return error;
}

static void overlap_rank_note(struct rank *rank, int what, int64_t i, double time, double own)
{
	rank->sample[what][i] = time;
	rank->begin_of[what][i] = rank->began;
	if (what == OVERLAP_COMPUTE)
		rank->sample[OVERLAP_TAKEN_ALONE][i] = rank->taken;
	if (what != OVERLAP_NOTEST)
		return;
	rank->sample[OVERLAP_START][i] = rank->started;
	rank->sample[OVERLAP_TAKEN][i] = rank->taken;
	rank->sample[OVERLAP_PRODUCT][i] = own;
	rank->begin_of[OVERLAP_PRODUCT][i] = rank->product_began;
}

/* Cases run in blocks, as a program does one thing for long: progress `auto` learns from that. */
static int overlap_rank_iterate(struct rank *rank, int what)
{
	const int64_t iterations = rank->options->iterations;
	int64_t i;

	for (i = iterations < WARMUP ? -iterations : -WARMUP; i < iterations; i++) {
		double own = 0, time = overlap_rank_timed(rank, what, i & 1, &own);

		if (time < 0)
			return time;
		if (i >= 0)
			overlap_rank_note(rank, what, i, time, own);
	}
	return 0;
}

static int overlap_rank_measure(struct rank *rank)
{
	int what, error = overlap_rank_calibrate(rank);

	for (what = 0; what < OVERLAP_START && !error; what++)
		error = overlap_rank_iterate(rank, what);
	for (what = 0; what < OVERLAP_CASES && !error; what++)
		error = span_all(rank, rank->begin_of[what], rank->sample[what],
				 rank->options->iterations);
	if (!error)
		error = coll_allreduce(COLL_IN_PLACE, &rank->wrong, 1, COLL_UINT64, COLL_SUM,
				       rank->world);
	return error;
}

/* CPU time of coll_progress() without a run in flight, ns. */
static double idle_call(struct rank *rank)
{
	const uint64_t start = own_cpu_ns();
	int i;

	for (i = 0; i < IDLE_CALLS; i++)
		coll_progress(rank->context);
	return (double)(own_cpu_ns() - start) / IDLE_CALLS;
}

/* ---- noise ---------------------------------------------------------------------- */

static void spin_until(uint64_t end)
{
	while (coll_now() < end)
		;
}

static atomic_bool noise_over;

/* Takes the CPU that this rank computes on, with a higher priority where that is allowed. */
static void *make_noise(void *argument)
{
	const struct sched_param priority = { .sched_priority = NOISE_PRIORITY };
	struct coll_inject_plan *plan = argument;

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
	while (!atomic_load(&noise_over)) {
		struct coll_noise_span span = coll_inject_plan_next(plan);
		struct timespec start = { span.start / COLL_SECOND, span.start % COLL_SECOND };

		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, NULL) == EINTR)
			;
		spin_until(span.start + span.duration);
	}
	return NULL;
}

static void start_noise(struct rank *rank)
{
	static struct coll_inject_config config;
	static struct coll_inject_plan plan;
	char why[400];
	pthread_t noise;

	if (!rank->options->inject[0] ||
	    coll_inject_parse(&config, rank->options->inject, why, sizeof(why)))
		return;
	coll_inject_plan_init(&plan, &config.spec[0], coll_rank(rank->world), coll_now());
	if (!pthread_create(&noise, NULL, make_noise, &plan))
		pthread_detach(noise);
}

/* ---- a rank ---------------------------------------------------------------------- */

static void make_work(struct rank *rank)
{
	const struct overlap_options *options = rank->options;
	const uint64_t n = options->matrix;
	uint64_t i;
	int what;

	rank->matrix = memory_grow(NULL, n * n, sizeof(double));
	rank->vector = memory_grow(NULL, n, sizeof(double));
	rank->product = memory_grow(NULL, n, sizeof(double));
	for (i = 0; i < n * n; i++)
		rank->matrix[i] = i % 7;
	for (i = 0; i < n; i++)
		rank->vector[i] = i % 5;
	for (what = 0; what < OVERLAP_CASES; what++) {
		rank->sample[what] = memory_grow(NULL, options->iterations, sizeof(double));
		rank->begin_of[what] = memory_grow(NULL, options->iterations, sizeof(double));
	}
	for (i = 0; i < (uint64_t)options->flight; i++) {
		const bool reduces = bench_reduces(options->collective);

		rank->data[i] = (struct bench_data){
			.collective = options->collective,
			.type = reduces ? COLL_DOUBLE : COLL_UINT8,
			.op = COLL_SUM,
			.rank = coll_rank(rank->world),
			.ranks = coll_ranks(rank->world),
			.count = reduces ? options->bytes / sizeof(double) : options->bytes,
		};
		bench_data_make(&rank->data[i]);
	}
}

static void start_workers(struct rank *rank, struct worker *worker)
{
	int i;

	pthread_barrier_init(&rank->begin, NULL, rank->options->threads);
	pthread_barrier_init(&rank->end, NULL, rank->options->threads);
	for (i = 1; i < rank->options->threads; i++) {
		worker[i] = (struct worker){ .rank = rank, .thread = i };
		pthread_create(&worker[i].id, NULL, overlap_rank_work, &worker[i]);
	}
}

static void stop_workers(struct rank *rank, struct worker *worker)
{
	int i;

	if (rank->options->threads == 1)
		return;
	rank->first = rank->last = 0;
	pthread_barrier_wait(&rank->begin);
	for (i = 1; i < rank->options->threads; i++)
		pthread_join(worker[i].id, NULL);
}

static json_t *result_json(const struct rank *rank, const char *explanation)
{
	json_t *all = json_object(), *cases = json_object();
	uint64_t i;
	int what;

	for (what = 0; what < OVERLAP_CASES; what++) {
		json_t *samples = json_array();

		for (i = 0; i < rank->options->iterations; i++)
			json_array_append_new(samples, json_real(rank->sample[what][i]));
		json_object_set_new(cases, overlap_cases[what], samples);
	}
	json_object_set_new(all, "rows", json_integer(rank->rows));
	json_object_set_new(all, "wrong", json_integer(rank->wrong));
	json_object_set_new(all, "explanation", json_string(explanation));
	json_object_set_new(all, "idle_call", json_real(rank->idle_call));
	json_object_set_new(all, "cases", cases);
	return all;
}

static int write_result(const char *path, json_t *all)
{
	int error = json_dump_file(all, path, JSON_REAL_PRECISION(9));

	if (error)
		fprintf(stderr, "coll bench: cannot write %s\n", path);
	json_decref(all);
	return error;
}

/*
 * The run's explanation after the measurement: the final choice. The other ranks free the run
 * later, so it still exists.
 */
static int overlap_rank_explain(struct rank *rank, char *text, size_t bytes)
{
	int error;

	if (coll_rank(rank->world))
		usleep(LATER_US);
	error = bench_data_start(&rank->data[0], 0, rank->group, &rank->run[0]);
	if (error)
		return error;
	snprintf(text, bytes, "%s", coll_run_explain(rank->run[0]));
	return coll_run_wait(&rank->run[0]);
}

/* Number of CPUs to compute on. All of them if they are too few, or if a rank has threads. */
static int bind_here(const struct overlap_options *options)
{
	const char *rank = getenv("COLL_RANK");
	int cpu, progress, count = 0;
	cpu_set_t cpus;

	if (rank && options->threads == 1)
		count = overlap_cpus(options->place, atoi(rank), &cpu, &progress);
	if (!count)
		return options->ranks;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	return count;
}

/* A mode of progress that is not available here is a result too. */
static int write_problem(const char *result)
{
	const char *rank = getenv("COLL_RANK");
	json_t *all = json_object();

	json_object_set_new(all, "problem", json_string(coll_context_error(NULL)));
	if (!rank || !atoi(rank))
		write_result(result, all);
	else
		json_decref(all);
	return COMMAND_ERROR;
}

int overlap_rank(const struct overlap_options *options, const char *result)
{
	struct rank rank = { .options = options };
	struct worker *worker = memory_grow(NULL, options->threads, sizeof(*worker));
	char explanation[700] = "";
	int error;

	rank.cpus = bind_here(options);
	if (coll_open(NULL, &rank.context))
		return write_problem(result);
	rank.world = coll_world(rank.context);
	error = coll_group_dup(rank.world, &rank.group);
	if (!error && options->algo)
		error = coll_group_set(rank.group, coll_collective_names[options->collective],
				       options->algo);
	make_work(&rank);
	start_workers(&rank, worker);
	start_noise(&rank);
	error = error ? error : overlap_rank_measure(&rank);
	rank.idle_call = error ? 0 : idle_call(&rank);
	atomic_store(&noise_over, true);
	error = error ? error : overlap_rank_explain(&rank, explanation, sizeof(explanation));
	if (error)
		fprintf(stderr, "coll bench: rank %d: %s\n", coll_rank(rank.world),
			*coll_last_error(rank.group) ? coll_last_error(rank.group) :
						       coll_strerror(error));
	if (!error && !coll_rank(rank.world))
		error = write_result(result, result_json(&rank, explanation));
	stop_workers(&rank, worker);
	coll_group_free(rank.group);
	coll_close(rank.context);
	return error || rank.wrong ? COMMAND_ERROR : COMMAND_OK;
}
