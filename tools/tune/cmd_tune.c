// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll tune: starts itself as the ranks of a job, or is a rank of one. The library measures the
 * costs of messages when the job begins; rank 0 writes them down.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/noise/text.h"
#include "libcoll/coll.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "tools/common/whole.h"
#include "tools/launch/launch.h"

enum { RANKS_MAX = 1024, COSTS_BYTES = 8192 };

struct tune_settings {
	int ranks;
	double seconds;
	const char *output;
	bool json;
};

static const char *const usage[] = {
	"usage: coll tune [OPTION ...]",
	"       coll run --hosts HOST:N,... -- coll tune [OPTION ...]",
	"",
	"Measures what messages cost, for each class of links that there is: within an L3 cache, a",
	"node, a cluster, and between clusters; and what reductions cost. Writes a line for each",
	"cost, with its reason: a file for the library's option costs ($COLL_COSTS).",
	"Starts its own ranks on this node, or is a rank itself under coll run, mpirun, srun or",
	"torchrun; a cluster is measured by ranks on all of its nodes.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0; 1 if a call failed; 2 for wrong options.",
	NULL,
};

static const struct option_entry tune_entries[] = {
	{ "ranks", 'n', "N", "ranks to start", OPTION_NUMBER(struct tune_settings, ranks, 2,
							     RANKS_MAX),
	  .otherwise = "the cores, at least 2" },
	{ "time", 0, "SECONDS", "time to measure, all classes together",
	  OPTION_REAL(struct tune_settings, seconds, 0.01, 3600), .unit = "s", .preset = "2" },
	{ "output", 'o', "FILE", "write FILE, not stdout; it is replaced whole",
	  OPTION_TEXT(struct tune_settings, output) },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct tune_settings, json) },
	{ NULL },
};

const struct option_table cmd_tune_options = {
	.command = "tune",
	.usage = usage,
	.closing = closing,
	.list = { tune_entries },
};

/* "key = value # reason" lines as an array. */
static void print_json(FILE *to, char *lines)
{
	char *line, *save;
	bool first = true;

	fprintf(to, "{\"costs\": [");
	for (line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char key[40], value[40];
		double number;

		if (sscanf(line, "%39s = %39s", key, value) != 2)
			continue;
		if (!coll_text_seconds(value, &number))
			number = atof(value);
		fprintf(to, "%s\n  {\"name\": \"%s\", \"value\": %g, \"reason\": \"%s\"}",
			first ? "" : ",", key, number, strstr(line, "# ") + 2);
		first = false;
	}
	fprintf(to, "\n]}\n");
}

static void print_file(FILE *to, const char *lines, int ranks, double seconds)
{
	char host[65] = "", date[32] = "";
	const time_t now = time(NULL);
	struct tm tm;

	gethostname(host, sizeof(host) - 1);
	if (localtime_r(&now, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &tm);
	fprintf(to, "# coll tune: %d ranks, rank 0 on %s, %s, %g s. For the option costs: COLL_COSTS.\n"
		"%s", ranks, host, date, seconds, lines);
}

static void tune_print(const struct tune_settings *settings, char *lines, int ranks, FILE *to)
{
	if (settings->json)
		print_json(to, lines);
	else
		print_file(to, lines, ranks, settings->seconds);
}

static int tune_write(const struct tune_settings *settings, char *lines, int ranks)
{
	struct whole_file file;
	int error;

	if (!settings->output) {
		tune_print(settings, lines, ranks, stdout);
		return COMMAND_OK;
	}
	error = whole_open(&file, settings->output);
	if (!error) {
		tune_print(settings, lines, ranks, file.to);
		error = whole_close(&file);
	}
	if (!error)
		return COMMAND_OK;
	fprintf(stderr, "coll tune: --output: cannot write %s: %s\n", settings->output,
		strerror(-error));
	return COMMAND_ERROR;
}

/* Rank 0 alone: all ranks have the same costs, and the same error. */
static int tune_report(const struct tune_settings *settings, struct coll_context *context)
{
	char lines[COSTS_BYTES];
	const int length = coll_costs(context, lines, sizeof(lines));

	if (length >= 0 && (size_t)length < sizeof(lines))
		return tune_write(settings, lines, coll_ranks(coll_world(context)));
	fprintf(stderr, "coll tune: %s\n", coll_strerror(length < 0 ? length : -ENOSPC));
	return COMMAND_ERROR;
}

static int tune_rank(const struct tune_settings *settings)
{
	struct coll_context *context;
	int status = COMMAND_OK;
	char options[80];

	snprintf(options, sizeof(options), "measure=start measure_time=%gs", settings->seconds);
	if (coll_open(options, &context)) {	/* any rank's own reason; the launcher ends the others */
		fprintf(stderr, "coll tune: %s\n", coll_context_error(NULL));
		return COMMAND_ERROR;
	}
	if (!coll_rank(coll_world(context)))
		status = tune_report(settings, context);
	coll_close(context);
	return status;
}

int cmd_tune(int argc, char **argv)
{
	struct tune_settings settings = { .ranks = 0 };
	char **given = calloc(argc + 1, sizeof(*given));
	int status = COMMAND_USAGE;

	if (!given)
		return COMMAND_ERROR;
	memcpy(given, argv, argc * sizeof(*given));	/* in any order, after reading */
	if (options_read(&cmd_tune_options, argc, given, &settings)) {
		if (!settings.ranks)
			settings.ranks = launch_usual_ranks();
		status = launch_is_rank() ? tune_rank(&settings) :
					    launch_again("tune", settings.ranks, argc, argv);
	}
	free(given);
	return status;
}
