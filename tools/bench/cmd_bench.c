// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll bench: parses options. Then it is one rank of a job in the environment, or starts itself as
 * all ranks of one on this node.
 */
#include <errno.h>
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
#include "tools/common/options.h"
#include "bench.h"
#include "tools/common/command.h"
#include "tools/common/whole.h"
#include "tools/launch/launch.h"
#include "overlap.h"

enum { RANKS_MAX = 1024 };

/* ---- values -------------------------------------------------------------------- */

bool bench_algo_is_valid(const char *command, enum coll_collective collective, const char *text)
{
	char why[256];
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	const struct coll_algo *algo = NULL, *const *each;
	size_t length = strcspn(text, ":"), used = 0;

	used = snprintf(why, sizeof(why), "auto");
	for (each = coll_algos; *each; each++)
		if ((*each)->collective == collective) {
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
		fprintf(stderr, "coll %s: --algo '%s': %s\n", command, text, why);
		return false;
	}
	return true;
}

static bool add_algo(struct bench_options *options, char *text)
{
	if (options->algos == BENCH_ALGOS_MAX)
		return argument_refuse("bench", "--algo", text, "at most 16 algorithms");
	if (!bench_algo_is_valid("bench", options->collective, text))
		return false;
	options->algo[options->algos++] = text;
	return true;
}

/* Whether ",segment=8K" follows: an option of the algorithm before the comma. */
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
		if (!add_algo(options, text))
			return false;
		text = end + more;
	}
	return options->algos > 0 ||
	       argument_refuse("bench", "--algo", text, "names with commas between");
}

/* "8,64K,1M" */
static bool read_sizes(const struct option_table *table, const struct option_entry *option,
		       void *settings, const char *text)
{
	struct bench_options *options = settings;
	struct option_entry one = { .name = option->name,
				    OPTION_BYTES(struct bench_options, size[0], 0, 1ull << 34) };
	char *copy = strdup(text), *save, *word;
	bool good = copy;

	for (word = strtok_r(copy, ",", &save); good && word; word = strtok_r(NULL, ",", &save)) {
		one.offset = offsetof(struct bench_options, size) +
			     options->sizes * sizeof(options->size[0]);
		good = options->sizes < BENCH_SIZES_MAX ?
			       option_bytes(table, &one, settings, word) :
			       option_refuse(table, option, word, "at most 32 sizes");
		options->sizes += good;
	}
	free(copy);
	return good && (options->sizes || option_refuse(table, option, text,
							 "sizes with commas between: 8,8K,1M"));
}

static bool read_inject(const struct option_table *table, const struct option_entry *option,
			void *settings, const char *text)
{
	struct bench_options *options = settings;
	struct coll_inject_config config;
	char why[400];

	if (strlen(text) >= sizeof(options->inject) - 32)
		return option_refuse(table, option, text, "at most 479 characters");
	if (coll_inject_parse(&config, text, why, sizeof(why))) {
		fprintf(stderr, "coll bench: %s\n", why);
		return false;
	}
	coll_inject_release(&config);
	strcpy(options->inject, text);
	return true;
}

/* Whether the ranks that the injection names are there. A rank of the job has been started by one who asked. */
static bool inject_fits(const struct bench_options *options)
{
	const uint64_t ranks = options->ranks;
	struct coll_inject_config config;
	uint64_t missing = INJECT_EVERY_RANK;
	char why[400];
	uint32_t i;

	if (!*options->inject || launch_is_rank())
		return true;
	if (coll_inject_parse(&config, options->inject, why, sizeof(why))) {
		fprintf(stderr, "coll bench: %s\n", why);
		return false;
	}
	for (i = 0; i < config.count; i++) {
		const struct coll_inject_spec *spec = &config.spec[i];

		if (spec->rank != INJECT_EVERY_RANK && spec->rank >= ranks)
			missing = spec->rank;
		if (spec->from != INJECT_EVERY_RANK && spec->from >= ranks)
			missing = spec->from;
	}
	coll_inject_release(&config);
	if (missing == INJECT_EVERY_RANK)
		return true;
	fprintf(stderr, "coll bench: --inject names rank %llu, but there are %llu ranks\n",
		(unsigned long long)missing, (unsigned long long)ranks);
	return false;
}

static bool read_type(const struct option_table *table, const struct option_entry *option,
		      void *settings, const char *text)
{
	int *type = option_field(option, settings);

	*type = coll_type_find(text, strlen(text));
	return (*type >= 0 && *type < COLL_TYPES) ||
	       option_refuse(table, option, text,
			     "int8 ... int64, uint8 ... uint64, fp16, bf16, float, double, "
			     "complex_float, ... (see coll.h)");
}

static bool read_op(const struct option_table *table, const struct option_entry *option,
		    void *settings, const char *text)
{
	int *op = option_field(option, settings);

	*op = coll_reduction_find(text, strlen(text));
	return (*op >= 0 && *op < COLL_REDUCTIONS) ||
	       option_refuse(table, option, text,
			     "sum, prod, min, max, land, lor, lxor, band, bor, bxor, minloc, "
			     "maxloc");
}

/* ---- options --------------------------------------------------------------------- */

static const char *const usage[] = {
	"usage: coll bench COLLECTIVE [OPTION ...]",
	"       coll bench overlap [OPTION ...]      collectives beside a computation",
	"",
	"Measures a collective: starts its own ranks on this node, or is a rank itself under",
	"coll run, mpirun, srun or torchrun. Several algorithms run in turn, in small batches.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0; 1 if a call failed or a result was wrong; 2 for wrong options.",
	NULL,
};

static const char *const engines[] = { "auto", "uring", "epoll", NULL };
static const char *const starts[] = { "barrier", "clock", NULL };
static const char *const buffers[] = { "plain", "alloc", NULL };

static const struct option_entry bench_entries[] = {
	{ "ranks", 'n', "N", "ranks to start", OPTION_NUMBER(struct bench_options, ranks, 1,
							     RANKS_MAX),
	  .otherwise = "the cores, at least 2" },
	{ "algo", 'a', "A,B:T=1", "algorithms; the first is what the others are compared with "
	  "(coll verify --list names them)", OPTION_TEXT(struct bench_options, algorithms),
	  .otherwise = "auto" },
	{ "size", 0, "S,S,...", "bytes of the vector, or of the block for each rank; suffixes K, "
	  "M, G", .read = read_sizes, .otherwise = "8" },
	{ "inject", 0, "SPEC", "faults and noise, see coll-bench(1): "
	  "link:poisson:rate=100,duration=2ms", .read = read_inject },
	{ "seed", 0, "N", "seed of the injection: the same seed, the same plan",
	  OPTION_NUMBER(struct bench_options, seed, 0, COLL_NONE - 1) },
	{ "engine", 0, "E", "engine", OPTION_NAME(struct bench_options, engine, engines) },
	{ "time", 0, "SECONDS", "time to measure each size, all algorithms together",
	  OPTION_REAL(struct bench_options, seconds, 0.001, 86400), .unit = "s", .preset = "1" },
	{ "iterations", 0, "N", "iterations of each algorithm, instead of --time",
	  OPTION_NUMBER(struct bench_options, iterations, 1, 10000000) },
	{ "warmup", 0, "N", "iterations before",
	  OPTION_NUMBER(struct bench_options, warmup, 0, 1000000), .preset = "10" },
	{ "start", 0, "HOW", "barrier: each rank starts when it leaves one; clock: all start at an "
	  "agreed time, for ranks of one kernel", OPTION_WORD(struct bench_options, clock, starts),
	  .preset = "barrier" },
	{ "pause", 0, "T", "the ranks sleep for this time before each call: calls that are rare",
	  OPTION_TIME(struct bench_options, pause, "s", 0, 10 * COLL_SECOND), .preset = "0" },
	{ "buffers", 0, "WHICH", "plain memory, or alloc: that of coll_alloc(), which ranks of a node "
	  "map", OPTION_WORD(struct bench_options, allocated, buffers), .preset = "plain" },
	{ "type", 0, "T", "type of a reduction", .read = read_type,
	  OPTION_FIELD(struct bench_options, type), .otherwise = "double; else uint8" },
	{ "op", 0, "O", "op of a reduction", .read = read_op,
	  OPTION_FIELD(struct bench_options, op), .preset = "sum" },
	{ "check", 0, NULL, "check every result", OPTION_FLAG(struct bench_options, check),
	  .hidden = true },
	{ "no-check", 0, NULL, "do not check every result",
	  OPTION_CHOICE(struct bench_options, check, false) },
	{ "counters", 0, NULL, "also what the engine did, per run and rank",
	  OPTION_FLAG(struct bench_options, counters) },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct bench_options, json) },
	{ "csv", 0, NULL, "print CSV", OPTION_FORMAT(struct bench_options, csv) },
	{ "samples", 0, "FILE", "write each call's time in us, a line a call; for one algorithm and "
	  "one size", OPTION_TEXT(struct bench_options, samples) },
	{ "base", 0, "FILE", "with --inject: the same of calls without, in turn with the others",
	  OPTION_TEXT(struct bench_options, base) },
	{ "plot", 0, "FILE.svg", "draw a picture, with its gnuplot script beside it",
	  OPTION_SVG(struct bench_options, plot) },
	{ NULL },
};

const struct option_table cmd_bench_options = {
	.command = "bench",
	.usage = usage,
	.closing = closing,
	.list = { bench_entries },
	.arguments = OPTIONS_ANY,
	.first = coll_collective_names,
	.firsts = COLL_COLLECTIVES,
};

static bool bench_complete(struct bench_options *options)
{
	static char automatic[] = "auto";
	const bool reduces = bench_reduces(options->collective);
	char text[24];
	int i;

	if (!options->ranks)
		options->ranks = launch_usual_ranks();
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
	if (!inject_fits(options))
		return false;
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
	int collective;

	if (!options_read(&cmd_bench_options, argc, argv, options))
		return false;
	if (optind + 1 != argc) {
		fprintf(stderr, optind < argc ? "coll bench: one collective at a time\n" :
						"coll bench: the collective is needed\n");
		options_help(&cmd_bench_options, stderr);
		return false;
	}
	if (!argument_collective("bench", argv[optind], &collective))
		return false;
	options->collective = collective;
	if (options->algorithms && !read_algos(options, options->algorithms))
		return false;
	if (options->seed != COLL_UNSET && *options->inject && strcmp(options->inject, "off"))
		sprintf(options->inject + strlen(options->inject), ";seed=%llu",
			(unsigned long long)options->seed);
	return bench_complete(options);
}

/* ---- the job ------------------------------------------------------------------- */

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

/* Of a rank that another launcher started only the first one's node has the files. */
static int bench_start(const struct bench_options *options, int argc, char **argv)
{
	if (!whole_possible("bench", options->samples) || !whole_possible("bench", options->base) ||
	    !whole_possible("bench", options->plot))
		return COMMAND_ERROR;
	return launch_again("bench", options->ranks, argc, argv);
}

int cmd_bench(int argc, char **argv)
{
	struct bench_options options = { .engine = "", .seed = COLL_UNSET, .type = -1,
					 .check = true };
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
		status = launch_is_rank() ? bench_rank(&options) : bench_start(&options, argc, argv);
	free(given);
	free_arguments(copy);
	return status;
}
