// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/arguments.h"
#include "libcoll/base/clock.h"
#include "tools/command.h"
#include "launch.h"
#include "launch_hosts.h"

enum { RANKS_MAX = 65536 };

/* Long options without a letter. */
enum {
	OPTION_GRACE = 256,
	OPTION_PREFIX,
	OPTION_NO_PREFIX,
	OPTION_BIND,
	OPTION_HOSTS,
	OPTION_SSH,
	OPTION_COLL,
	OPTION_AGENT,
};

static const char *const help[] = {
	"usage: coll run -n RANKS [OPTION ...] [--] PROGRAM [ARGUMENT ...]",
	"       coll run --hosts NAME[:RANKS],... [OPTION ...] [--] PROGRAM [ARGUMENT ...]",
	"",
	"Starts RANKS copies of a program as one job, on this node or on several hosts.",
	"",
	"  -n, --ranks N      how many ranks (with --hosts: all that they have room for)",
	"      --hosts LIST   host:ranks with commas between, in the order of the ranks",
	"      --ssh COMMAND  the remote shell (default 'ssh -T -o BatchMode=yes')",
	"      --coll PATH    where coll is on the hosts (default: where it is here)",
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
	NULL,
};

static int run_wrong(const char *option, const char *value, const char *valid)
{
	fprintf(stderr, "coll run: %s '%s' is not valid: %s is\n", option, value, valid);
	return COMMAND_USAGE;
}

static int read_ranks(const char *value, int *ranks)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || n < 1 || n > RANKS_MAX)
		return run_wrong("-n", value, "a number from 1 to 65536");
	*ranks = n;
	return 0;
}

static int read_seconds(const char *option, const char *value, uint64_t *ns)
{
	char *end;
	double seconds = strtod(value, &end);

	if (end == value || *end || !(seconds > 0 && seconds <= 1e9))
		return run_wrong(option, value, "a number of seconds above 0");
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
		return run_wrong("--bind", value, "auto, none or core");
	return 0;
}

static int read_hosts(const char *value, struct launch *launch)
{
	if (hosts_parse(value, &launch->hosts, &launch->hosts_count, &launch->all))
		return run_wrong("--hosts", value, "name[:ranks] with commas between");
	return 0;
}

/* As many ranks as there is room for, or fewer. */
static int fit_hosts(struct launch *launch)
{
	static char self[4096];

	if (!launch->ranks)
		launch->ranks = launch->all;
	if (launch->ranks > launch->all) {
		fprintf(stderr, "coll run: -n %d is more than --hosts has room for, which is %d\n",
			launch->ranks, launch->all);
		return COMMAND_USAGE;
	}
	launch->hosts_count = hosts_limit(launch->hosts, launch->hosts_count, launch->ranks);
	if (!launch->ssh)
		launch->ssh = "ssh -T -o BatchMode=yes";
	if (!launch->coll && readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
		launch->coll = self;
	if (!launch->coll || strchr(launch->coll, '\''))
		return run_wrong("--coll", launch->coll ? launch->coll : "", "a path without '");
	return 0;
}

/* What --hosts starts on each of them. */
static int run_agent(struct launch *launch_options)
{
	if (!hosts_take_order(STDIN_FILENO, launch_options))
		return launch_job(launch_options);
	fprintf(stderr, "coll run: --agent is for coll run itself, which gives it its order\n");
	return COMMAND_USAGE;
}

static int add_variable(struct launch *launch, int *variables, char *text)
{
	char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return run_wrong("--env", text, "NAME=VALUE");
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
		{ "ssh", required_argument, NULL, OPTION_SSH },
		{ "coll", required_argument, NULL, OPTION_COLL },
		{ "agent", no_argument, NULL, OPTION_AGENT },
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
			err = read_hosts(optarg, launch);
			break;
		case OPTION_SSH:
			launch->ssh = optarg;
			break;
		case OPTION_COLL:
			launch->coll = optarg;
			break;
		case OPTION_AGENT:
			launch->agent = true;
			break;
		case 'q':
			launch->quiet = true;
			break;
		case 'h':
			argument_help(help, stdout);
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
	argument_help(help, stderr);
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
	if (!err && options.agent)
		return run_agent(&options);
	if (!err && options.hosts)
		err = fit_hosts(&options);
	if (!err) {
		options.argv = argv + optind;
		err = check_complete(&options);
	}
	if (!err) {
		options.prefix = prefix < 0 ? options.ranks > 1 : prefix;
		err = launch_job(&options);
	}
	free(options.environment);
	return err;
}
