// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The measuring loop. Each algorithm has its own group. Small batches of each, in turn, meet the
 * same machine, so ratios are stable where times are not. Before each call all ranks meet in a
 * barrier of another group, untimed and without injection. A sample is the time of the slowest
 * rank, from its own start or from a start time that all agreed on. The latter includes the delay
 * of a rank that leaves the barrier late because it waits for a core.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "core/reduce.h"
#include "libcoll/exec/run.h"
#include "tools/common/arena.h"
#include "bench.h"
#include "tools/common/command.h"

enum { BATCH = 4, WRONG_SHOWN = 3, AHEAD_NS = 300 * 1000, AHEAD_MOST_NS = 500 * 1000 * 1000 };

/*
 * One algorithm at one size. --base allows only one: the second cell is then that algorithm
 * without injection.
 */
struct cell {
	double *sample;			/* us of this rank, per iteration */
	uint64_t samples, capacity, wrong;
	struct bench_counts counts;	/* sums */
};

struct bench {
	const struct bench_options *options;
	struct coll_context *context;
	struct coll_group *sync;
	struct coll_group *group[BENCH_ALGOS_MAX];
	struct bench_data data;
	struct cell cell[BENCH_ALGOS_MAX];
	uint64_t ahead;		/* ns that barriers took of late */
	int rank, ranks;
	bool progress;
};

static int rank_cells(const struct bench_options *options)
{
	return options->algos + !!options->base;
}

static const char *cell_algo(const struct bench_options *options, int cell)
{
	return options->algo[cell < options->algos ? cell : 0];
}

static int rank_fail(const struct bench *bench, const struct coll_group *group, const char *what,
		     int error)
{
	const char *reason = coll_last_error(group);

	fprintf(stderr, "coll bench: rank %d: %s: %s\n", bench->rank, what,
		*reason ? reason : coll_strerror(error));
	return error;
}

/* ---- an iteration -------------------------------------------------------------- */

static void rank_count(struct bench_counts *sums, const struct coll_counters *before,
		       const struct coll_counters *after)
{
	sums->enters += after->enters - before->enters;
	sums->syscalls += after->syscalls - before->syscalls;
	sums->sends += after->sends - before->sends;
	sums->sent_bytes += after->sent_bytes - before->sent_bytes;
	sums->copied_bytes += after->copied_bytes - before->copied_bytes;
	sums->unexpected += after->unexpected - before->unexpected;
	sums->stale += after->stale - before->stale;
	sums->allocations += after->allocations - before->allocations;
	sums->far_sends += after->far_sends - before->far_sends;
	sums->far_bytes += after->far_bytes - before->far_bytes;
	sums->exposed_bytes += after->exposed_bytes - before->exposed_bytes;
	sums->mapped_bytes += after->mapped_bytes - before->mapped_bytes;
	sums->published_bytes += after->published_bytes - before->published_bytes;
	sums->board_sends += after->board_sends - before->board_sends;
	sums->streamed += after->streamed - before->streamed;
}

static void add_sample(struct cell *cell, double microseconds)
{
	if (cell->samples == cell->capacity) {
		cell->capacity = cell->capacity ? 2 * cell->capacity : 1024;
		cell->sample = memory_grow(cell->sample, cell->capacity, sizeof(*cell->sample));
	}
	cell->sample[cell->samples++] = microseconds;
}

static void rank_check(const struct bench *bench, struct cell *cell, int algo, int variant)
{
	ptrdiff_t at = bench->options->check ? bench_data_check(&bench->data, variant) : -1;

	if (at < 0)
		return;
	if (cell->wrong++ < WRONG_SHOWN)
		fprintf(stderr, "coll bench: rank %d: %s %s, %zu elements, iteration %llu: "
			"wrong result at byte %td\n", bench->rank,
			coll_collective_names[bench->data.collective],
			cell_algo(bench->options, algo), bench->data.count,
			(unsigned long long)cell->samples, at);
}

/*
 * Starts all ranks at an agreed time of the kernel's clock. Over slow links the time needs longer to reach
 * them: twice a barrier's, of ranks that come together, the longest of late. A waiting rank yields its core.
 */
static int begin_by_clock(struct bench *bench, uint64_t *start)
{
	const uint64_t before = coll_now();
	int error = coll_barrier(bench->sync);

	*start = coll_now();
	bench->ahead -= bench->ahead / 8;
	if (*start - before > bench->ahead)
		bench->ahead = *start - before < AHEAD_MOST_NS ? *start - before : AHEAD_MOST_NS;
	*start += AHEAD_NS + 2 * bench->ahead;
	if (!error)
		error = coll_bcast(start, 1, COLL_UINT64, 0, bench->sync);
	while (!error && coll_now() < *start)
		sched_yield();
	return error;
}

static void sleep_for(uint64_t ns)
{
	const struct timespec time = { ns / COLL_SECOND, ns % COLL_SECOND };

	if (ns)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static int rank_iterate(struct bench *bench, int algo, bool warmup)
{
	struct coll_counters before = { .size = sizeof(before) }, after = before;
	struct cell *cell = &bench->cell[algo];
	int variant = cell->samples % BENCH_VARIANTS, error;
	uint64_t start, end;

	if (bench->options->check)
		bench_data_prepare(&bench->data, variant);
	sleep_for(bench->options->pause);
	error = coll_barrier(bench->sync);
	if (!error && bench->options->clock)
		error = begin_by_clock(bench, &start);
	if (error)
		return rank_fail(bench, bench->sync, "barrier between iterations", error);
	coll_counters(bench->context, &before);
	if (!bench->options->clock)
		start = coll_now();
	error = bench_data_call(&bench->data, variant, bench->group[algo]);
	end = coll_now();
	coll_counters(bench->context, &after);
	if (error)
		return rank_fail(bench, bench->group[algo], cell_algo(bench->options, algo), error);
	rank_check(bench, cell, algo, variant);
	if (warmup)
		return 0;
	rank_count(&cell->counts, &before, &after);
	add_sample(cell, (end - start) / 1e3);
	return 0;
}

/* ---- a size -------------------------------------------------------------------- */

static int warm_up(struct bench *bench)
{
	uint64_t i;
	int algo, error = 0;

	for (algo = 0; algo < rank_cells(bench->options); algo++)
		for (i = 0; i < bench->options->warmup && !error; i++)
			error = rank_iterate(bench, algo, true);
	return error;
}

static void show_progress(const struct bench *bench, int size, uint64_t start)
{
	char text[24];

	if (bench->progress)
		fprintf(stderr, "\r\033[K%s %s: size %d of %d, %llu iterations, %.1f s",
			coll_collective_names[bench->options->collective],
			bench_size(bench->options->size[size], text), size + 1,
			bench->options->sizes, (unsigned long long)bench->cell[0].samples,
			(coll_now() - start) / 1e9);
}

/* Iterations of the next batch, decided by rank 0; 0: no more. */
static int next_batch(struct bench *bench, uint64_t start, uint64_t *batch)
{
	const struct bench_options *options = bench->options;
	uint64_t done = bench->cell[0].samples;
	int error;

	*batch = BATCH;
	if (options->iterations && options->iterations - done < BATCH)
		*batch = options->iterations - done;
	if (!options->iterations && done && (coll_now() - start) / 1e9 >= options->seconds)
		*batch = 0;
	error = coll_bcast(batch, 1, COLL_UINT64, 0, bench->sync);
	return error ? rank_fail(bench, bench->sync, "between batches", error) : 0;
}

static int rank_measure(struct bench *bench, int size)
{
	uint64_t start = coll_now(), shown = start, batch, i;
	int algo, error = next_batch(bench, start, &batch);

	while (!error && batch) {
		for (algo = 0; algo < rank_cells(bench->options); algo++)
			for (i = 0; i < batch && !error; i++)
				error = rank_iterate(bench, algo, false);
		if (!error)
			error = next_batch(bench, start, &batch);
		if (coll_now() - shown > COLL_SECOND / 5) {
			shown = coll_now();
			show_progress(bench, size, start);
		}
	}
	return error;
}

/* In the order of the calls. */
static int write_samples(const char *option, const char *path, const double *sample,
			 uint64_t samples)
{
	FILE *to = fopen(path, "we");
	uint64_t i;
	int error = 0;

	for (i = 0; to && i < samples; i++)
		fprintf(to, "%.3f\n", sample[i]);
	if (!to || ferror(to))
		error = -errno;
	if (to && fclose(to) && !error)
		error = -errno;
	if (error)
		fprintf(stderr, "coll bench: --%s %s: %s\n", option, path,
			strerror(-error));
	return error;
}

static int write_cell(const struct bench *bench, const struct cell *cell, const double *slowest)
{
	const struct bench_options *options = bench->options;

	if (cell == &bench->cell[options->algos])
		return write_samples("base", options->base, slowest, cell->samples);
	return options->samples ?
		       write_samples("samples", options->samples, slowest, cell->samples) : 0;
}

/* Gathers the samples and counts of one cell on rank 0. */
static int rank_collect(struct bench *bench, struct cell *cell, struct bench_result *result)
{
	const uint64_t n = cell->samples;
	double *slowest = memory_grow(NULL, n + 1, sizeof(double));
	double *sum = memory_grow(NULL, n + 1, sizeof(double));
	struct bench_counts counts = { 0 };
	uint64_t wrong = 0, i;
	int error;

	error = coll_reduce(cell->sample, slowest, n, COLL_DOUBLE, COLL_MAX, 0, bench->sync);
	if (!error)
		error = coll_reduce(cell->sample, sum, n, COLL_DOUBLE, COLL_SUM, 0, bench->sync);
	if (!error)
		error = coll_reduce(&cell->counts, &counts, BENCH_COUNTS, COLL_DOUBLE, COLL_SUM, 0,
				    bench->sync);
	if (!error)
		error = coll_allreduce(&cell->wrong, &wrong, 1, COLL_UINT64, COLL_SUM,
				       bench->sync);
	for (i = 0; i < n; i++)
		sum[i] /= bench->ranks;
	for (i = 0; i < BENCH_COUNTS; i++)
		((double *)&counts)[i] /= (double)bench->ranks * (n ? n : 1);
	*result = (struct bench_result){
		.iterations = n,
		.wrong = wrong,
		.counts = counts,
	};
	if (!bench->rank && !error)
		error = write_cell(bench, cell, slowest);
	if (!bench->rank && !error) {
		result->slowest = bench_figures(slowest, n);
		result->ranks = bench_figures(sum, n);
	}
	memory_free(slowest);
	memory_free(sum);
	return error ? rank_fail(bench, bench->sync, "bringing the samples together", error) : 0;
}

static int measure_size(struct bench *bench, int size, struct bench_result *result)
{
	const struct bench_options *options = bench->options;
	int algo, error;

	bench->data = (struct bench_data){
		.collective = options->collective,
		.type = options->type,
		.op = options->op,
		.rank = bench->rank,
		.ranks = bench->ranks,
		.count = options->size[size] / coll_type_bytes(options->type),
		.context = options->allocated ? bench->context : NULL,
	};
	bench_data_make(&bench->data);
	bench_data_prepare(&bench->data, 0);
	error = warm_up(bench);
	if (!error)
		error = rank_measure(bench, size);
	for (algo = 0; algo < rank_cells(options); algo++) {
		struct cell *cell = &bench->cell[algo];

		if (!error)
			error = rank_collect(bench, cell, &result[algo]);
		memory_free(cell->sample);
		*cell = (struct cell){ 0 };
	}
	bench_data_free(&bench->data);
	return error;
}

/* ---- the job ---------------------------------------------------------------------- */

static void rank_describe(const struct bench *bench, struct bench_setting *setting)
{
	const struct coll_context *context = bench->context;
	struct utsname name;

	setting->ranks = bench->ranks;
	setting->cores = context->cores;
	snprintf(setting->engine, sizeof(setting->engine), "%s", context->engine.ops->name);
	snprintf(setting->congestion, sizeof(setting->congestion), "%s", context->congestion);
	snprintf(setting->inject, sizeof(setting->inject), "%s", context->options.inject);
	uname(&name);
	snprintf(setting->kernel, sizeof(setting->kernel), "%s %s", name.sysname, name.release);
	snprintf(setting->wait, sizeof(setting->wait), "look for %g us, then sleep%s",
		 context->options.spin_ns / 1e3,
		 context->engine.crowded ? " (more ranks than cores)" : "");
}

/* Whether all ranks are of one kernel, whatever else their nodes have: of one boot and one time namespace. */
static int have_one_clock(const struct bench *bench, int *one)
{
	struct coll_group *world = coll_world(bench->context);
	struct stat namespace = { 0 };
	char own[64] = "", first[64];
	int error;

	stat("/proc/self/ns/time", &namespace);
	snprintf(own, sizeof(own), "%lu %.*s", (unsigned long)namespace.st_ino,
		 (int)strcspn(bench->context->node, ":"), bench->context->node);
	memcpy(first, own, sizeof(first));
	error = coll_bcast(first, sizeof(first), COLL_UINT8, 0, world);
	*one = !memcmp(first, own, sizeof(own)) && !strstr(own, " unknown");
	return error ? error : coll_allreduce(COLL_IN_PLACE, one, 1, COLL_INT32, COLL_MIN, world);
}

static int refuse_clocks(const struct bench *bench)
{
	const struct coll_boot *boot = bench->context->boot;
	int one = 1, error;

	if (!bench->options->clock || boot->local_ranks == boot->ranks)
		return 0;
	error = have_one_clock(bench, &one);
	if (error)
		return rank_fail(bench, coll_world(bench->context), "asking whose clock it is", error);
	if (one)
		return 0;
	if (!bench->rank)
		fprintf(stderr, "coll bench: --start clock: the ranks are not all of one kernel, and the "
			"clocks of several differ; valid here: barrier\n");
	return -EINVAL;
}

static int make_groups(struct bench *bench)
{
	struct coll_group *world = coll_world(bench->context);
	const struct bench_options *options = bench->options;
	const char *inject = bench->context->options.inject;
	int error = coll_group_dup(world, &bench->sync), algo;

	if (!error)
		error = coll_group_set(bench->sync, "inject", "off");
	if (error)
		return rank_fail(bench, world, "making groups", error);
	for (algo = 0; algo < rank_cells(options); algo++) {
		/* Created through the group without injection. */
		error = coll_group_dup(bench->sync, &bench->group[algo]);
		if (error)
			return rank_fail(bench, bench->sync, "making groups", error);
		error = coll_group_set(bench->group[algo], "inject",
				       *inject && algo < options->algos ? inject : "off");
		if (!error)
			error = coll_group_set(bench->group[algo],
					       coll_collective_names[options->collective],
					       cell_algo(options, algo));
		if (error)
			return rank_fail(bench, bench->group[algo], cell_algo(options, algo),
					 error);
	}
	return 0;
}

static int rank_report(const struct bench *bench, struct bench_report *all)
{
	const struct bench_options *options = bench->options;

	if (bench->progress)
		fprintf(stderr, "\r\033[K");
	rank_describe(bench, &all->setting);
	if (options->json)
		bench_print_json(all);
	else if (options->csv)
		bench_print_csv(all);
	else
		bench_print_table(all);
	return options->plot ? bench_plot(all) : 0;
}

static bool all_right(const struct bench_report *all)
{
	int size, algo;

	for (size = 0; size < all->options->sizes; size++)
		for (algo = 0; algo < rank_cells(all->options); algo++)
			if (all->result[size][algo].wrong)
				return false;
	return true;
}

static int rank_run(struct bench *bench)
{
	const struct bench_options *options = bench->options;
	struct bench_report all = { .options = options };
	int size, error;

	all.result = memory_grow(NULL, options->sizes, sizeof(*all.result));
	error = refuse_clocks(bench);
	if (!error)
		error = make_groups(bench);
	for (size = 0; size < options->sizes && !error; size++)
		error = measure_size(bench, size, all.result[size]);
	if (!error && !bench->rank)
		error = rank_report(bench, &all);
	if (!error && !all_right(&all))
		error = -EPROTO;
	memory_free(all.result);
	return error;
}

int bench_rank(const struct bench_options *options)
{
	struct bench bench = { .options = options };
	char text[700];
	int error, algo;

	/* Options that the command line does not set come from the environment. */
	snprintf(text, sizeof(text), "%s%s%s%s", *options->engine ? "engine=" : "",
		 options->engine, *options->inject ? " inject=" : "", options->inject);
	error = coll_open(text, &bench.context);
	if (error) {
		fprintf(stderr, "coll bench: %s\n", coll_context_error(NULL));
		return COMMAND_ERROR;
	}
	bench.rank = coll_rank(coll_world(bench.context));
	bench.ranks = coll_ranks(coll_world(bench.context));
	bench.progress = !bench.rank && isatty(STDERR_FILENO);
	error = rank_run(&bench);
	for (algo = 0; algo < options->algos; algo++)
		coll_group_free(bench.group[algo]);
	coll_group_free(bench.sync);
	coll_close(bench.context);
	return error ? COMMAND_ERROR : COMMAND_OK;
}
