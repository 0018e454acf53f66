// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll bench overlap: starts a job for each mode of progress, several rounds of all modes in turn,
 * and collects the results of their first ranks.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "libcoll/engine/inject.h"
#include "tools/common/arena.h"
#include "tools/common/options.h"
#include "tools/common/command.h"
#include "tools/common/whole.h"
#include "tools/launch/launch.h"
#include "overlap.h"

/* Environment variable of such a job: the file for rank 0's result. */
static const char result_variable[] = "COLL_OVERLAP_RESULT";

const char *const overlap_modes[OVERLAP_MODES + 1] = {
	"call", "thread", "helper", "kernel", "auto", NULL,
};

const char *const overlap_places[OVERLAP_PLACES + 1] = { "shared", "own", "kernel", NULL };

enum { RANKS_MAX = 1024, GRACE_S = 2 };

/* ---- values -------------------------------------------------------------------- */

static bool read_modes(const struct option_table *table, const struct option_entry *option,
		       void *settings, const char *text)
{
	struct overlap_options *options = settings;
	const struct option_entry one = { .name = option->name, .read = option_word,
					  .names = overlap_modes, .size = sizeof(u32) };
	char *copy = strdup(text), *save, *word;
	bool good = copy;
	u32 mode;

	memset(options->mode, 0, sizeof(options->mode));
	for (word = strtok_r(copy, ",", &save); good && word; word = strtok_r(NULL, ",", &save)) {
		good = option_word(table, &one, &mode, word);
		if (good)
			options->mode[mode] = true;
	}
	free(copy);
	return good && (memchr(options->mode, true, sizeof(options->mode)) ||
			option_refuse(table, option, text,
				      "a list of call, thread, helper, kernel, auto with commas between"));
}

static bool read_inject(const struct option_table *table, const struct option_entry *option,
			void *settings, const char *text)
{
	struct overlap_options *options = settings;
	struct coll_inject_config config;
	char why[400];
	bool good;

	if (coll_inject_parse(&config, text, why, sizeof(why))) {
		fprintf(stderr, "coll bench overlap: %s\n", why);
		return false;
	}
	good = config.count == 1 && config.spec[0].kind == INJECT_OS &&
	       strlen(text) < sizeof(options->inject);
	coll_inject_release(&config);
	if (!good)
		return option_refuse(table, option, text,
				     "one specification that begins with os:");
	strcpy(options->inject, text);
	return true;
}

/* ---- options --------------------------------------------------------------------- */

static const char *const usage[] = {
	"usage: coll bench overlap [OPTION ...]",
	"",
	"Measures nonblocking collectives beside a matrix-vector product, by every mode of "
	"progress:",
	"how much of them is hidden, with calls into the library between the rows and without.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0; 1 if a call failed or a result was wrong; 2 for wrong options.",
	NULL,
};

#define OVERLAP_NUMBER(field, least, most) OPTION_NUMBER(struct overlap_options, field, least, most)

static const struct option_entry overlap_entries[] = {
	{ "ranks", 'n', "N", "ranks to start on this node", OVERLAP_NUMBER(ranks, 1, RANKS_MAX),
	  .preset = "2" },
	{ "collective", 0, "C", "the collective", .read = option_collective,
	  OPTION_FIELD(struct overlap_options, collective), .preset = "alltoall" },
	{ "algo", 'a', "A", "its algorithm", OPTION_TEXT(struct overlap_options, algo),
	  .otherwise = "what the library chooses" },
	{ "size", 0, "S", "bytes of the vector, or of the block for each rank; suffixes K, M, G",
	  OPTION_BYTES(struct overlap_options, bytes, 0, 1ull << 34), .preset = "256K" },
	{ "in-flight", 0, "N", "collectives at once", OVERLAP_NUMBER(flight, 1, OVERLAP_FLIGHT_MAX),
	  .preset = "1" },
	{ "modes", 0, "M,M,...", "modes of progress: call, thread, helper, kernel, auto",
	  .read = read_modes, .otherwise = "all" },
	{ "place", 0, "P", "shared: progress runs on the rank's CPU; own: on a CPU without "
	  "computation; kernel: there if it is the kernel's, else on the rank's",
	  OPTION_WORD(struct overlap_options, place, overlap_places), .preset = "shared" },
	{ "pace", 0, "BYTES", "bytes a second that a link carries, as a network would; suffixes K, "
	  "M, G", OPTION_BYTES(struct overlap_options, pace, 0, 1ull << 34),
	  .otherwise = "no limit" },
	{ "threads", 0, "N", "threads that share a rank's product", OVERLAP_NUMBER(threads, 1, 64),
	  .preset = "1" },
	{ "matrix", 0, "N", "N x N doubles", OVERLAP_NUMBER(matrix, 1, 30000), .preset = "500" },
	{ "rows", 0, "N", "rows of a product", OVERLAP_NUMBER(rows, 1, 1u << 30),
	  .otherwise = "so many that each rank's product takes 1.5 times as long as the "
	  "collectives" },
	{ "calls", 0, "N", "calls into the library, in the case that has some",
	  OVERLAP_NUMBER(calls, 1, 1000000), .preset = "50" },
	{ "iterations", 0, "N", "iterations of each case and round",
	  OVERLAP_NUMBER(iterations, 1, 100000), .preset = "30" },
	{ "rounds", 0, "N", "rounds of all modes in turn", OVERLAP_NUMBER(rounds, 1, 1000),
	  .preset = "3" },
	{ "inject", 0, "SPEC", "noise on the CPU that computes: "
	  "os:periodic:period=10ms,duration=1ms", .read = read_inject },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct overlap_options, json) },
	{ "plot", 0, "FILE.svg", "draw a picture", OPTION_SVG(struct overlap_options, plot) },
	{ NULL },
};

const struct option_table cmd_bench_overlap_options = {
	.command = "bench overlap",
	.usage = usage,
	.closing = closing,
	.list = { overlap_entries },
};

static bool read_options(int argc, char **argv, struct overlap_options *options)
{
	if (!options_read(&cmd_bench_overlap_options, argc, argv, options))
		return false;
	if (options->algo && !bench_algo_is_valid("bench overlap", options->collective, options->algo))
		return false;
	if (bench_reduces(options->collective) && options->bytes % sizeof(double)) {
		fprintf(stderr, "coll bench overlap: --size; valid: a multiple of the 8 bytes of "
			"double\n");
		return false;
	}
	return true;
}

/* ---- CPUs ---------------------------------------------------------------------- */

int overlap_cpus(enum overlap_place place, int n, int *compute, int *progress)
{
	const int spare = place != OVERLAP_SHARED;
	cpu_set_t cpus;
	int list[CPU_SETSIZE], count = 0, cpu;

	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		return 0;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			list[count++] = cpu;
	if (count <= spare)
		return 0;
	*compute = list[spare + n % (count - spare)];
	*progress = list[0];
	return count - spare;
}

/* Whether this mode's progress runs on the CPU without computation. */
static bool overlap_apart(enum overlap_place place, const char *mode)
{
	return place == OVERLAP_OWN ||
	       (place == OVERLAP_KERNEL && (!strcmp(mode, "kernel") || !strcmp(mode, "auto")));
}

/* ---- jobs ------------------------------------------------------------------------ */

static void take_samples(struct overlap_mode *mode, const json_t *cases)
{
	size_t count = 0, i;
	int what;

	for (what = 0; what < OVERLAP_CASES; what++) {
		const json_t *samples = json_object_get(cases, overlap_cases[what]);

		count = json_array_size(samples);
		mode->sample[what] = memory_grow(mode->sample[what], mode->samples + count,
						 sizeof(double));
		for (i = 0; i < count; i++)
			mode->sample[what][mode->samples + i] =
				json_real_value(json_array_get(samples, i));
	}
	mode->samples += count;
}

static void take_result(struct overlap_report *report, struct overlap_mode *mode, const char *path)
{
	json_t *all = json_load_file(path, 0, NULL);
	const char *problem = json_string_value(json_object_get(all, "problem"));

	if (!all || problem) {
		snprintf(mode->problem, sizeof(mode->problem), "%s",
			 problem ? problem : "its job failed");
	} else {
		take_samples(mode, json_object_get(all, "cases"));
		mode->idle_call = json_real_value(json_object_get(all, "idle_call"));
		mode->wrong += json_integer_value(json_object_get(all, "wrong"));
		snprintf(mode->explanation, sizeof(mode->explanation), "%s",
			 json_string_value(json_object_get(all, "explanation")));
		if (!report->rows)
			report->rows = json_integer_value(json_object_get(all, "rows"));
	}
	json_decref(all);
}

/* Each rank is a cluster of its own, so that all links are paced. */
static void pace_links(const struct overlap_options *options, char *clusters, char *pace,
		       size_t bytes)
{
	int i;

	strcpy(clusters, "COLL_CLUSTERS=1");
	for (i = 1; i < options->ranks; i++)
		strcat(clusters, "+1");
	snprintf(pace, bytes, "COLL_WAN_PACING=%llu", (unsigned long long)options->pace);
}

/* Later jobs use the number of rows that the first one found. */
static int run_job(struct overlap_report *report, struct overlap_mode *mode, int argc, char **argv)
{
	const struct overlap_options *options = report->options;
	char path[] = "/tmp/coll.overlap.XXXXXX", self[] = "/proc/self/exe", bench[] = "bench";
	char mode_text[64], result[64], cpus[64], rows[32], clusters[2 * RANKS_MAX + 32];
	char pace[64], *environment[] = { mode_text, result, NULL, NULL, NULL, NULL };
	char **again = memory_grow(NULL, argc + 4, sizeof(*again));
	struct launch job = {
		.ranks = options->ranks,
		.grace = GRACE_S * COLL_SECOND,
		.bind = LAUNCH_BIND_NONE,
		.environment = environment,
		.argv = again,
		.quiet = true,
	};
	int fd = mkstemp(path), compute, progress, status, i, last = 0, variables = 2;

	if (fd < 0)
		return -errno;
	close(fd);
	snprintf(mode_text, sizeof(mode_text), "COLL_PROGRESS=%s", mode->name);
	snprintf(result, sizeof(result), "%s=%s", result_variable, path);
	if (overlap_apart(options->place, mode->name) &&
	    overlap_cpus(options->place, 0, &compute, &progress)) {
		snprintf(cpus, sizeof(cpus), "COLL_PROGRESS_CPUS=%d", progress);
		environment[variables++] = cpus;
	}
	if (options->pace) {
		pace_links(options, clusters, pace, sizeof(pace));
		environment[variables++] = clusters;
		environment[variables++] = pace;
	}
	again[last++] = self;
	again[last++] = bench;
	for (i = 0; i < argc; i++)
		again[last++] = argv[i];
	snprintf(rows, sizeof(rows), "--rows=%llu", (unsigned long long)report->rows);
	if (report->rows)
		again[last++] = rows;
	again[last] = NULL;
	status = launch_job(&job);
	take_result(report, mode, path);
	unlink(path);
	free(again);
	return status && !mode->problem[0] ? -EIO : 0;
}

static int run_jobs(struct overlap_report *report, int argc, char **argv)
{
	const struct overlap_options *options = report->options;
	uint64_t round;
	int i, error = 0;

	for (i = 0; i < OVERLAP_MODES; i++)
		report->mode[i].name = options->mode[i] ? overlap_modes[i] : NULL;
	for (round = 0; round < options->rounds && !error; round++)
		for (i = 0; i < OVERLAP_MODES && !error; i++)
			if (options->mode[i] && !report->mode[i].problem[0])
				error = run_job(report, &report->mode[i], argc, argv);
	return error;
}

static int overlap_print(struct overlap_report *report)
{
	int i, status = COMMAND_OK, measured = 0;

	if (report->options->json)
		overlap_print_json(report);
	else
		overlap_print_table(report);
	for (i = 0; i < OVERLAP_MODES; i++) {
		measured += report->mode[i].samples > 0;
		if (report->mode[i].wrong)
			status = COMMAND_ERROR;
	}
	if (measured && report->options->plot && overlap_plot(report))
		status = COMMAND_ERROR;
	return measured ? status : COMMAND_ERROR;
}

int cmd_bench_overlap(int argc, char **argv)
{
	struct overlap_options options = { .mode = { true, true, true, true, true } };
	struct overlap_report report = { .options = &options };
	const char *result = getenv(result_variable);
	char **copy = bench_copy_arguments(argc, argv);
	int status = COMMAND_USAGE;

	if (!copy)
		return COMMAND_ERROR;
	if (!read_options(argc, copy, &options))
		return status;
	if (result)
		return overlap_rank(&options, result);
	if (!whole_possible("bench overlap", options.plot))
		return COMMAND_ERROR;
	return run_jobs(&report, argc, argv) ? COMMAND_ERROR : overlap_print(&report);
}
