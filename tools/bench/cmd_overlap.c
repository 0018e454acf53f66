// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll bench overlap: starts a job for each way of progress, several rounds of them
 * in turn, and puts together what their first ranks found.
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
#include "tools/common/arguments.h"
#include "tools/common/command.h"
#include "tools/launch/launch.h"
#include "overlap.h"

static const char command[] = "bench overlap";
/* Where a job's first rank leaves its result: says that this is such a job. */
static const char result_variable[] = "COLL_OVERLAP_RESULT";

const char *const overlap_modes[OVERLAP_MODES + 1] = {
	"call", "thread", "helper", "kernel", "auto", NULL,
};

const char *const overlap_places[OVERLAP_PLACES + 1] = { "shared", "own", "kernel", NULL };

enum {
	OPTION_COLLECTIVE = 256,
	OPTION_SIZE,
	OPTION_MODES,
	OPTION_FLIGHT,
	OPTION_THREADS,
	OPTION_MATRIX,
	OPTION_ROWS,
	OPTION_CALLS,
	OPTION_ITERATIONS,
	OPTION_ROUNDS,
	OPTION_PLACE,
	OPTION_PACE,
	OPTION_INJECT,
	OPTION_JSON,
	OPTION_PLOT,
	RANKS_MAX = 1024,
	GRACE_S = 2,
};

static const char *const help[] = {
	"usage: coll bench overlap [OPTION ...]",
	"",
	"Nonblocking collectives beside a matrix-vector product, by every way of progress: how "
	"much",
	"of them is hidden, with calls into the library between the rows and without.",
	"",
	"  -n, --ranks N         ranks to start on this node (default 2)",
	"      --collective C    which (default alltoall)",
	"  -a, --algo A          its algorithm (default: what the library chooses)",
	"      --size S          bytes of the vector, or of the block for each rank (default 256K)",
	"      --in-flight N     collectives at once, 1 to 64 (default 1)",
	"      --modes M,M,...   call, thread, helper, kernel, auto (default: all)",
	"      --place P         shared: progress runs on the rank's CPU (default);",
	"                        own: on one where nobody computes; kernel: there if it is the",
	"                        kernel's, else on the rank's",
	"      --pace BYTES      a second that a link carries, as a network would (default: no "
	"limit)",
	"      --threads N       that share a rank's product, 1 to 64 (default 1)",
	"      --matrix N        N x N doubles (default 500)",
	"      --rows N          of them a product has, again and again (default: so many that "
	"each",
	"                        rank's takes 1.5 times as long as the collectives)",
	"      --calls N         into the library, in the case that has some (default 50)",
	"      --iterations N    of each case and round (default 30)",
	"      --rounds N        of all modes in turn (default 3)",
	"      --inject SPEC     noise on the CPU that computes: "
	"os:periodic:period=10ms,duration=1ms",
	"      --json            for programs",
	"      --plot FILE.svg   also a picture",
	"",
	"Exit code: 0; 1 if a call failed or a result was wrong; 2 for wrong options.",
	NULL,
};

static const struct option options_known[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "collective", required_argument, NULL, OPTION_COLLECTIVE },
	{ "algo", required_argument, NULL, 'a' },
	{ "size", required_argument, NULL, OPTION_SIZE },
	{ "in-flight", required_argument, NULL, OPTION_FLIGHT },
	{ "modes", required_argument, NULL, OPTION_MODES },
	{ "place", required_argument, NULL, OPTION_PLACE },
	{ "threads", required_argument, NULL, OPTION_THREADS },
	{ "matrix", required_argument, NULL, OPTION_MATRIX },
	{ "rows", required_argument, NULL, OPTION_ROWS },
	{ "calls", required_argument, NULL, OPTION_CALLS },
	{ "iterations", required_argument, NULL, OPTION_ITERATIONS },
	{ "rounds", required_argument, NULL, OPTION_ROUNDS },
	{ "pace", required_argument, NULL, OPTION_PACE },
	{ "inject", required_argument, NULL, OPTION_INJECT },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "plot", required_argument, NULL, OPTION_PLOT },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* ---- values -------------------------------------------------------------------- */

static bool read_modes(struct overlap_options *options, char *text)
{
	char *save, *one;
	u32 mode;

	memset(options->mode, 0, sizeof(options->mode));
	for (one = strtok_r(text, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		if (!argument_word(command, "mode", one, overlap_modes, OVERLAP_MODES, &mode))
			return false;
		options->mode[mode] = true;
	}
	return true;
}

static bool read_inject(struct overlap_options *options, const char *text)
{
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
		return argument_refuse(command, "--inject", text,
				       "one specification that begins with os:");
	strcpy(options->inject, text);
	return true;
}

static bool read_place(struct overlap_options *options, const char *text)
{
	u32 index;

	if (!argument_word(command, "place", text, overlap_places, OVERLAP_PLACES, &index))
		return false;
	options->place = index;
	return true;
}

static bool read_number(const char *what, u64 least, u64 most, uint64_t *number)
{
	u64 value;

	if (!argument_number(command, what, optarg, least, most, &value))
		return false;
	*number = value;
	return true;
}

static bool read_int(const char *what, u64 least, u64 most, int *number)
{
	uint64_t value;

	if (!read_number(what, least, most, &value))
		return false;
	*number = value;
	return true;
}

static bool read_option(struct overlap_options *options, int key, char *const *argv)
{
	int collective;

	switch (key) {
	case 'n':
		return read_int("-n", 1, RANKS_MAX, &options->ranks);
	case 'a':
		options->algo = optarg;
		return true;
	case OPTION_COLLECTIVE:
		if (!argument_collective(command, optarg, &collective))
			return false;
		options->collective = collective;
		return true;
	case OPTION_SIZE:
		return bench_read_size(optarg, &options->bytes);
	case OPTION_FLIGHT:
		return read_int("--in-flight", 1, OVERLAP_FLIGHT_MAX, &options->flight);
	case OPTION_MODES:
		return read_modes(options, optarg);
	case OPTION_PLACE:
		return read_place(options, optarg);
	case OPTION_THREADS:
		return read_int("--threads", 1, 64, &options->threads);
	case OPTION_MATRIX:
		return read_number("--matrix", 1, 30000, &options->matrix);
	case OPTION_ROWS:
		return read_number("--rows", 1, 1u << 30, &options->rows);
	case OPTION_CALLS:
		return read_number("--calls", 1, 1000000, &options->calls);
	case OPTION_ITERATIONS:
		return read_number("--iterations", 1, 100000, &options->iterations);
	case OPTION_ROUNDS:
		return read_number("--rounds", 1, 1000, &options->rounds);
	case OPTION_PACE:
		return bench_read_size(optarg, &options->pace);
	case OPTION_INJECT:
		return read_inject(options, optarg);
	case OPTION_JSON:
		options->json = true;
		return true;
	case OPTION_PLOT:
		options->plot = optarg;
		return bench_is_svg(optarg) || argument_refuse(command, "--plot", optarg,
							       "a file name ending in .svg");
	default:
		return argument_unknown(command, key, argv, options_known);
	}
}

static bool read_options(int argc, char **argv, struct overlap_options *options)
{
	int key;

	opterr = 0;
	optind = 0;
	while ((key = getopt_long(argc, argv, ":n:a:h", options_known, NULL)) != -1) {
		if (key == 'h') {
			argument_help(help, stdout);
			exit(COMMAND_OK);
		}
		if (!read_option(options, key, argv))
			return false;
	}
	if (optind < argc)
		return argument_refuse(command, "argument", argv[optind], "options only");
	if (bench_reduces(options->collective) && options->bytes % sizeof(double))
		return argument_refuse(command, "--size", "",
				       "a multiple of the 8 bytes of double");
	return true;
}

/* ---- places -------------------------------------------------------------------- */

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

/* Whether this mode's progress has the CPU where nobody computes. */
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

/* Later jobs have as many rows as the first found. */
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

static int overlap_tell(struct overlap_report *report)
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
	struct overlap_options options = {
		.collective = COLL_ALLTOALL, .ranks = 2, .threads = 1, .flight = 1,
		.bytes = 256 << 10, .matrix = 500, .calls = 50, .iterations = 30, .rounds = 3,
		.mode = { true, true, true, true, true },
	};
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
	return run_jobs(&report, argc, argv) ? COMMAND_ERROR : overlap_tell(&report);
}
