// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll bench: reads what is to be measured, and either is one rank of a job that
 * somebody started, or starts itself as the ranks of one on this node.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/tuning.h"
#include "core/names.h"
#include "core/reduce.h"
#include "core/noise/text.h"
#include "libcoll/base/clock.h"
#include "libcoll/engine/inject.h"
#include "tools/common/arguments.h"
#include "bench.h"
#include "tools/common/command.h"
#include "tools/launch/launch.h"
#include "overlap.h"

static const char command[] = "bench";

enum {
	OPTION_SIZE = 256,
	OPTION_INJECT,
	OPTION_ENGINE,
	OPTION_ITERATIONS,
	OPTION_TIME,
	OPTION_WARMUP,
	OPTION_START,
	OPTION_PAUSE,
	OPTION_TYPE,
	OPTION_OP,
	OPTION_JSON,
	OPTION_CSV,
	OPTION_PLOT,
	OPTION_SAMPLES,
	OPTION_BASE,
	OPTION_COUNTERS,
	OPTION_SEED,
	OPTION_CHECK,
	OPTION_NO_CHECK,
	RANKS_MAX = 1024,
	GRACE_S = 2,
};

static const char *const help[] = {
	"usage: coll bench COLLECTIVE [OPTION ...]",
	"       coll bench overlap [OPTION ...]      collectives beside a computation",
	"",
	"Measures a collective: starts its own ranks on this node, or is a rank itself under",
	"coll run, mpirun, srun or torchrun. Several algorithms run in turn, in small batches.",
	"",
	"  -n, --ranks N         ranks to start (default: the cores, at least 2)",
	"  -a, --algo A,B:T=1    algorithms, the first is what the others are compared with",
	"                        (default: auto; coll verify --list names them)",
	"      --size S,S,...    bytes of the vector, or of the block for each rank (default 8;",
	"                        suffixes K, M, G)",
	"      --inject SPEC     faults and noise, see coll-bench(1): link:poisson:rate=100,",
	"                        duration=2ms",
	"      --seed N          of the injection: the same seed, the same plan",
	"      --engine E        auto, uring or epoll",
	"      --time SECONDS    to measure each size, all algorithms together (default 1)",
	"      --iterations N    instead, for each algorithm",
	"      --warmup N        iterations before (default 10)",
	"      --start HOW       barrier: each rank when it leaves one (default); clock: all at",
	"                        a moment agreed on, for ranks of one node",
	"      --pause T         before each call the ranks sleep so long (0): calls that come "
	"rarely",
	"      --type T --op O   of a reduction (default double sum; else uint8)",
	"      --no-check        do not check every result",
	"      --counters        also what the engine did, per run and rank",
	"      --json, --csv     for programs",
	"      --samples FILE    also each call's time in us, a line a call (one algorithm, one "
	"size)",
	"      --base FILE       with --inject: the same of calls without, in turn with the others",
	"      --plot FILE.svg   also a picture, and its gnuplot script beside it",
	"",
	"Exit code: 0; 1 if a call failed or a result was wrong; 2 for wrong options.",
	NULL,
};

static const struct option options_known[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "algo", required_argument, NULL, 'a' },
	{ "size", required_argument, NULL, OPTION_SIZE },
	{ "inject", required_argument, NULL, OPTION_INJECT },
	{ "engine", required_argument, NULL, OPTION_ENGINE },
	{ "iterations", required_argument, NULL, OPTION_ITERATIONS },
	{ "time", required_argument, NULL, OPTION_TIME },
	{ "warmup", required_argument, NULL, OPTION_WARMUP },
	{ "start", required_argument, NULL, OPTION_START },
	{ "pause", required_argument, NULL, OPTION_PAUSE },
	{ "type", required_argument, NULL, OPTION_TYPE },
	{ "op", required_argument, NULL, OPTION_OP },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "csv", no_argument, NULL, OPTION_CSV },
	{ "samples", required_argument, NULL, OPTION_SAMPLES },
	{ "base", required_argument, NULL, OPTION_BASE },
	{ "plot", required_argument, NULL, OPTION_PLOT },
	{ "counters", no_argument, NULL, OPTION_COUNTERS },
	{ "seed", required_argument, NULL, OPTION_SEED },
	{ "check", no_argument, NULL, OPTION_CHECK },
	{ "no-check", no_argument, NULL, OPTION_NO_CHECK },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* ---- values -------------------------------------------------------------------- */

static bool read_algo(struct bench_options *options, char *text)
{
	char why[256];
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	const struct coll_algo *algo = NULL, *const *each;
	size_t length = strcspn(text, ":"), used = 0;

	if (options->algos == BENCH_ALGOS_MAX)
		return argument_refuse(command, "--algo", text, "at most 16 algorithms");
	used = snprintf(why, sizeof(why), "auto");
	for (each = coll_algos; *each; each++)
		if ((*each)->collective == options->collective) {
			if (strlen((*each)->name) == length &&
			    !strncmp((*each)->name, text, length))
				algo = *each;
			if (used < sizeof(why))
				used += snprintf(why + used, sizeof(why) - used, ", %s",
						 (*each)->name);
		}
	if (!algo && (length != 4 || strncmp(text, "auto", 4)))
		return argument_refuse(command, "--algo", text, why);
	if (text[length] && coll_tuning_parse(algo, text + length + 1, &tuning, why, sizeof(why))) {
		fprintf(stderr, "coll bench: --algo '%s': %s\n", text, why);
		return false;
	}
	options->algo[options->algos++] = text;
	return true;
}

/* Whether ",segment=8K" follows here: an option of the algorithm before the comma. */
static bool option_follows(const char *comma)
{
	const size_t length = *comma ? strcspn(comma + 1, ",") : 0;

	return memchr(comma + 1, '=', length) && !memchr(comma + 1, ':', length);
}

/* "A,B:T=1,segment=8K,C" */
static bool read_algos(struct bench_options *options, char *text)
{
	while (*text) {
		char *end = strchrnul(text, ',');
		bool more;

		while (option_follows(end))
			end = strchrnul(end + 1, ',');
		more = *end;
		*end = 0;
		if (!read_algo(options, text))
			return false;
		text = end + more;
	}
	return options->algos > 0 ||
	       argument_refuse(command, "--algo", text, "names with commas between");
}

bool bench_read_size(const char *text, uint64_t *size)
{
	static const char units[] = "KMG", valid[] = "bytes, with K, M or G: 8,64K,1M";
	const char *unit;
	char *rest;
	uint64_t bytes;

	errno = 0;
	bytes = strtoull(text, &rest, 10);
	unit = *rest ? strchr(units, *rest) : NULL;
	if (*text < '0' || *text > '9' || errno || (*rest && (!unit || rest[1])) ||
	    bytes > (uint64_t)1 << 34)
		return argument_refuse(command, "--size", text, valid);
	if (unit)
		bytes <<= 10 * (unit - units + 1);
	if (bytes > (uint64_t)1 << 34)
		return argument_refuse(command, "--size", text, "at most 16G");
	*size = bytes;
	return true;
}

static bool read_size(struct bench_options *options, const char *text)
{
	if (options->sizes == BENCH_SIZES_MAX)
		return argument_refuse(command, "--size", text, "at most 32 sizes");
	return bench_read_size(text, &options->size[options->sizes++]);
}

static bool read_sizes(struct bench_options *options, char *text)
{
	char *save, *one;

	for (one = strtok_r(text, ",", &save); one; one = strtok_r(NULL, ",", &save))
		if (!read_size(options, one))
			return false;
	return options->sizes > 0 || argument_refuse(command, "--size", text,
						     "sizes with commas between: 8,8K,1M");
}

static bool read_seconds(const char *text, double *seconds)
{
	char *rest;

	*seconds = strtod(text, &rest);
	return (rest != text && !*rest && *seconds > 0 && *seconds <= 86400) ||
	       argument_refuse(command, "--time", text, "seconds above 0, at most 86400");
}

static bool read_pause(struct bench_options *options, const char *text)
{
	double seconds;

	if (!coll_text_seconds(text, &seconds) || seconds > 10)
		return argument_refuse(command, "--pause", text, "a time up to 10s: 3ms");
	options->pause = seconds * COLL_SECOND;
	return true;
}

static bool read_inject(struct bench_options *options, const char *text)
{
	struct coll_inject_config config;
	char why[400];

	if (strlen(text) >= sizeof(options->inject) - 32)
		return argument_refuse(command, "--inject", text, "at most 479 characters");
	if (coll_inject_parse(&config, text, why, sizeof(why))) {
		fprintf(stderr, "coll bench: %s\n", why);
		return false;
	}
	coll_inject_release(&config);
	strcpy(options->inject, text);
	return true;
}

bool bench_is_svg(const char *path)
{
	const size_t length = strlen(path);

	return length > 4 && !strcmp(path + length - 4, ".svg");
}

static bool read_type(const char *text, int *type)
{
	*type = coll_type_find(text, strlen(text));
	return (*type >= 0 && *type < COLL_TYPES) ||
	       argument_refuse(command, "--type", text,
			       "int8 ... int64, uint8 ... uint64, fp16, bf16, float, double, "
			       "complex_float, ... (see coll.h)");
}

static bool read_op(const char *text, int *op)
{
	*op = coll_reduction_find(text, strlen(text));
	return (*op >= 0 && *op < COLL_REDUCTIONS) ||
	       argument_refuse(command, "--op", text,
			       "sum, prod, min, max, land, lor, lxor, band, bor, bxor, minloc, "
			       "maxloc");
}

static bool read_engine(struct bench_options *options, const char *text)
{
	static const char *const engines[] = { "auto", "uring", "epoll" };
	u32 index;

	if (!argument_word(command, "engine", text, engines, 3, &index))
		return false;
	options->engine = engines[index];
	return true;
}

static bool read_start(struct bench_options *options, const char *text)
{
	static const char *const ways[] = { "barrier", "clock" };
	u32 index;

	if (!argument_word(command, "start", text, ways, 2, &index))
		return false;
	options->clock = index;
	return true;
}

/* ---- options --------------------------------------------------------------------- */

static bool read_count(const char *what, const char *text, u64 least, u64 most, uint64_t *count)
{
	u64 value;

	if (!argument_number(command, what, text, least, most, &value))
		return false;
	*count = value;
	return true;
}

static bool read_option(struct bench_options *options, int key, char *const *argv,
			uint64_t *seed)
{
	uint64_t ranks;

	switch (key) {
	case 'n':
		if (!read_count("-n", optarg, 1, RANKS_MAX, &ranks))
			return false;
		options->ranks = ranks;
		return true;
	case 'a':
		return read_algos(options, optarg);
	case OPTION_SIZE:
		return read_sizes(options, optarg);
	case OPTION_INJECT:
		return read_inject(options, optarg);
	case OPTION_ENGINE:
		return read_engine(options, optarg);
	case OPTION_ITERATIONS:
		return read_count("--iterations", optarg, 1, 10000000, &options->iterations);
	case OPTION_TIME:
		return read_seconds(optarg, &options->seconds);
	case OPTION_WARMUP:
		return read_count("--warmup", optarg, 0, 1000000, &options->warmup);
	case OPTION_START:
		return read_start(options, optarg);
	case OPTION_PAUSE:
		return read_pause(options, optarg);
	case OPTION_SAMPLES:
		options->samples = optarg;
		return true;
	case OPTION_BASE:
		options->base = optarg;
		return true;
	case OPTION_TYPE:
		return read_type(optarg, &options->type);
	case OPTION_OP:
		return read_op(optarg, &options->op);
	case OPTION_JSON:
		options->json = true;
		return true;
	case OPTION_CSV:
		options->csv = true;
		return true;
	case OPTION_PLOT:
		options->plot = optarg;
		return bench_is_svg(optarg) || argument_refuse(command, "--plot", optarg,
							       "a file name ending in .svg");
	case OPTION_COUNTERS:
		options->counters = true;
		return true;
	case OPTION_SEED:
		return read_count("--seed", optarg, 0, COLL_NONE - 1, seed);
	case OPTION_CHECK:
	case OPTION_NO_CHECK:
		options->check = key == OPTION_CHECK;
		return true;
	default:
		return argument_unknown(command, key, argv, options_known);
	}
}

static int bench_cores(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : CPU_COUNT(&cpus);
}

static bool bench_complete(struct bench_options *options)
{
	static char automatic[] = "auto";
	const bool reduces = bench_reduces(options->collective);
	char text[24];
	int i;

	if (!options->ranks)
		options->ranks = bench_cores() > 2 ? bench_cores() : 2;
	if (!options->algos)
		options->algo[options->algos++] = automatic;
	if (!options->sizes)
		options->size[options->sizes++] = 8;
	if (options->collective == COLL_BARRIER) {
		options->sizes = 1;
		options->size[0] = 0;
	}
	if (options->type < 0)
		options->type = reduces ? COLL_DOUBLE : COLL_UINT8;
	if (reduces && !coll_reduction_fits(options->type, options->op)) {
		fprintf(stderr, "coll bench: --op %s is not defined for --type %s\n",
			coll_reduction_name(options->op), coll_type_name(options->type));
		return false;
	}
	if ((options->samples || options->base) && (options->algos > 1 || options->sizes > 1)) {
		fprintf(stderr, "coll bench: --%s is for one algorithm and one size\n",
			options->samples ? "samples" : "base");
		return false;
	}
	if (options->base && !*options->inject) {
		fprintf(stderr, "coll bench: --base is for what --inject leaves out\n");
		return false;
	}
	for (i = 0; i < options->sizes; i++)
		if (options->size[i] % coll_type_bytes(options->type)) {
			fprintf(stderr, "coll bench: --size '%s'; valid: a multiple of the %u "
				"bytes of %s\n", bench_size(options->size[i], text),
				coll_type_bytes(options->type), coll_type_name(options->type));
			return false;
		}
	return true;
}

static bool read_options(int argc, char **argv, struct bench_options *options)
{
	uint64_t seed = COLL_UNSET;
	int key, collective;

	opterr = 0;
	while ((key = getopt_long(argc, argv, ":n:a:h", options_known, NULL)) != -1) {
		if (key == 'h') {
			argument_help(help, stdout);
			exit(COMMAND_OK);
		}
		/* Algorithms belong to a collective: read them when that is known. */
		if (key != 'a' && !read_option(options, key, argv, &seed))
			return false;
	}
	if (optind + 1 != argc) {
		fprintf(stderr, optind < argc ? "coll bench: one collective at a time\n" :
						"coll bench: the collective is needed\n");
		argument_help(help, stderr);
		return false;
	}
	if (!argument_collective(command, argv[optind], &collective))
		return false;
	options->collective = collective;
	optind = 0;
	while ((key = getopt_long(argc, argv, ":n:a:h", options_known, NULL)) != -1)
		if (key == 'a' && !read_option(options, key, argv, &seed))
			return false;
	if (seed != COLL_UNSET && *options->inject && strcmp(options->inject, "off"))
		sprintf(options->inject + strlen(options->inject), ";seed=%llu",
			(unsigned long long)seed);
	return bench_complete(options);
}

/* ---- the job ------------------------------------------------------------------- */

static bool inside_job(void)
{
	static const char *const signs[] = { "COLL_RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
					     "PMI_RANK", "PMIX_RANK", "SLURM_STEP_ID" };
	size_t i;

	for (i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		const char *value = getenv(signs[i]);

		if (value && *value)
			return true;
	}
	return false;
}

/* Starts this program again as each of the ranks, with the same arguments. */
static int start_ranks(const struct bench_options *options, int argc, char **argv)
{
	char **again = calloc(argc + 2, sizeof(*again)), self[] = "/proc/self/exe";
	struct launch job = { .ranks = options->ranks, .grace = GRACE_S * COLL_SECOND };
	int i, status;

	if (!again)
		return COMMAND_ERROR;
	again[0] = self;
	again[1] = (char *)command;
	for (i = 1; i < argc; i++)
		again[i + 1] = argv[i];
	job.argv = again;
	status = launch_job(&job);
	free(again);
	return status;
}

char **bench_copy_arguments(int argc, char **argv)
{
	char **copy = calloc(argc + 1, sizeof(*copy));
	int i;

	for (i = 0; copy && i < argc; i++)
		copy[i] = strdup(argv[i]);
	return copy;
}

static void free_arguments(char **arguments)
{
	int i;

	for (i = 0; arguments && arguments[i]; i++)
		free(arguments[i]);
	free(arguments);
}

int cmd_bench(int argc, char **argv)
{
	struct bench_options options = { .engine = "", .seconds = 1, .warmup = 10, .type = -1,
					 .op = COLL_SUM, .check = true };
	char **copy, **given;
	int status = COMMAND_USAGE;

	if (argc > 1 && !strcmp(argv[1], "overlap"))
		return cmd_bench_overlap(argc - 1, argv + 1);
	copy = bench_copy_arguments(argc, argv);
	given = calloc(argc + 1, sizeof(*given));
	if (!copy || !given)
		return COMMAND_ERROR;
	memcpy(given, copy, argc * sizeof(*given));	/* the copies, in any order */
	if (read_options(argc, given, &options))
		status = inside_job() ? bench_rank(&options) : start_ranks(&options, argc, argv);
	free(given);
	free_arguments(copy);
	return status;
}
