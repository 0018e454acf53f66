// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "command.h"
#include "launch.h"

enum { RANKS_MAX = 65536 };

/* Long options without a letter. */
enum {
	OPTION_GRACE = 256,
	OPTION_PREFIX,
	OPTION_NO_PREFIX,
	OPTION_BIND,
	OPTION_HOSTS,
};

static const char *const help[] = {
	"usage: coll run -n RANKS [OPTION ...] [--] PROGRAM [ARGUMENT ...]",
	"",
	"Starts RANKS copies of a program on this node as one job.",
	"",
	"  -n, --ranks N      how many ranks",
	"  -t, --timeout S    end the job after S seconds (exit code 124)",
	"  -k, --keep-going   let the other ranks go on when one fails",
	"      --grace S      seconds from SIGTERM to SIGKILL (default 5)",
	"      --prefix       \"[rank] \" before each line of output (default for N > 1)",
	"      --no-prefix    output goes straight through",
	"  -e, --env K=V      set a variable in every rank; may be repeated",
	"      --bind auto|none|core  bind rank r to the r-th core; auto: if the job needs most",
	"  -q, --quiet        do not tell how ranks ended",
	"",
	"Exit code: 0 if every rank's was, else that of the first rank that failed",
	"(128 + signal if it was killed); 126, 127 if the program cannot be run.",
};

static void usage(FILE *to)
{
	size_t i;

	for (i = 0; i < sizeof(help) / sizeof(*help); i++)
		fprintf(to, "%s\n", help[i]);
}

static int wrong(const char *option, const char *value, const char *valid)
{
	fprintf(stderr, "coll run: %s '%s' is not valid: %s is\n", option, value, valid);
	return COMMAND_USAGE;
}

static int read_ranks(const char *value, int *ranks)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || n < 1 || n > RANKS_MAX)
		return wrong("-n", value, "a number from 1 to 65536");
	*ranks = n;
	return 0;
}

static int read_seconds(const char *option, const char *value, uint64_t *ns)
{
	char *end;
	double seconds = strtod(value, &end);

	if (end == value || *end || !(seconds > 0 && seconds <= 1e9))
		return wrong(option, value, "a number of seconds above 0");
	*ns = seconds * COLL_SECOND;
	return 0;
}

static int read_bind(const char *value, enum launch_bind *bind)
{
	if (!strcmp(value, "auto"))
		*bind = LAUNCH_BIND_AUTO;
	else if (!strcmp(value, "none"))
		*bind = LAUNCH_BIND_NONE;
	else if (!strcmp(value, "core"))
		*bind = LAUNCH_BIND_CORE;
	else
		return wrong("--bind", value, "auto, none or core");
	return 0;
}

static int add_variable(struct launch *launch, int *variables, char *text)
{
	char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return wrong("--env", text, "NAME=VALUE");
	launch->environment[(*variables)++] = text;
	return 0;
}

/* Fills in *launch; *prefix: -1 unless an option said. */
static int read_options(int argc, char **argv, struct launch *launch, int *prefix)
{
	static const struct option options[] = {
		{ "ranks", required_argument, NULL, 'n' },
		{ "timeout", required_argument, NULL, 't' },
		{ "keep-going", no_argument, NULL, 'k' },
		{ "grace", required_argument, NULL, OPTION_GRACE },
		{ "prefix", no_argument, NULL, OPTION_PREFIX },
		{ "no-prefix", no_argument, NULL, OPTION_NO_PREFIX },
		{ "env", required_argument, NULL, 'e' },
		{ "bind", required_argument, NULL, OPTION_BIND },
		{ "hosts", required_argument, NULL, OPTION_HOSTS },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option, variables = 0, err = 0;

	argv[0] = (char *)"coll run";	/* getopt names it in its messages */
	while (!err && (option = getopt_long(argc, argv, "+n:t:ke:qh", options, NULL)) != -1) {
		switch (option) {
		case 'n':
			err = read_ranks(optarg, &launch->ranks);
			break;
		case 't':
			err = read_seconds("--timeout", optarg, &launch->timeout);
			break;
		case OPTION_GRACE:
			err = read_seconds("--grace", optarg, &launch->grace);
			break;
		case 'k':
			launch->keep_going = true;
			break;
		case OPTION_PREFIX:
		case OPTION_NO_PREFIX:
			*prefix = option == OPTION_PREFIX;
			break;
		case 'e':
			err = add_variable(launch, &variables, optarg);
			break;
		case OPTION_BIND:
			err = read_bind(optarg, &launch->bind);
			break;
		case OPTION_HOSTS:
			fprintf(stderr, "coll run: --hosts is not there yet: all ranks run on "
				"this node. On several nodes start the ranks with mpirun, srun "
				"or torchrun, or by hand with COLL_STORE (see coll-run(1)).\n");
			err = COMMAND_USAGE;
			break;
		case 'q':
			launch->quiet = true;
			break;
		case 'h':
			usage(stdout);
			exit(COMMAND_OK);
		default:
			fprintf(stderr, "coll run --help lists the options.\n");
			err = COMMAND_USAGE;
		}
	}
	return err;
}

static int check_complete(const struct launch *launch)
{
	if (!launch->ranks)
		fprintf(stderr, "coll run: -n RANKS is needed\n");
	else if (!launch->argv[0])
		fprintf(stderr, "coll run: the program to run is needed\n");
	else
		return 0;
	usage(stderr);
	return COMMAND_USAGE;
}

int cmd_run(int argc, char **argv)
{
	struct launch options = { .grace = 5 * COLL_SECOND };
	int prefix = -1, err;

	options.environment = calloc(argc + 1, sizeof(char *));
	if (!options.environment)
		return COMMAND_ERROR;
	err = read_options(argc, argv, &options, &prefix);
	if (!err) {
		options.argv = argv + optind;
		err = check_complete(&options);
	}
	if (!err) {
		options.prefix = prefix < 0 ? options.ranks > 1 : prefix;
		err = launch(&options);
	}
	free(options.environment);
	return err;
}
