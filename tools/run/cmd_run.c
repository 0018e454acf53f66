// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* coll run: its options, and the job that they describe. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/arguments.h"
#include "libcoll/base/clock.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "ending.h"
#include "tools/launch/launch.h"
#include "tools/launch/launch_hosts.h"

enum { RANKS_MAX = 65536 };

#define YEARS (1000000000ull * COLL_SECOND)	/* longer than any job */

struct run_settings {
	struct launch launch;
	int variables;		/* of the environment */
	u32 prefix;		/* enum prefix */
	const char *report;	/* a file, or NULL */
};

enum prefix { PREFIX_USUAL, PREFIX_OFF, PREFIX_ON };

static bool run_read_hosts(const struct option_table *table, const struct option_entry *option,
			   void *settings, const char *text)
{
	struct launch *launch = &((struct run_settings *)settings)->launch;

	return !hosts_parse(text, &launch->hosts, &launch->hosts_count, &launch->all) ||
	       option_refuse(table, option, text, "name[:ranks] with commas between");
}

static bool run_read_variable(const struct option_table *table, const struct option_entry *option,
			      void *settings, const char *text)
{
	struct run_settings *s = settings;
	const char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return option_refuse(table, option, text, "NAME=VALUE");
	s->launch.environment[s->variables++] = (char *)text;
	return true;
}

/* In the order of enum launch_bind. */
static const char *const binds[] = { "auto", "none", "core", NULL };

static const struct option_entry run_entries[] = {
	{ "ranks", 'n', "N", "number of ranks", OPTION_NUMBER(struct run_settings, launch.ranks, 1, RANKS_MAX),
	  .otherwise = "with --hosts: all slots of the hosts" },
	{ "hosts", 0, "LIST", "hosts as NAME[:RANKS],..., in the order of the ranks",
	  .read = run_read_hosts },
	{ "ssh", 0, "COMMAND", "remote shell", OPTION_TEXT(struct run_settings, launch.ssh),
	  .preset = "ssh -T -o BatchMode=yes" },
	{ "coll", 0, "PATH", "path of coll on the hosts", OPTION_TEXT(struct run_settings, launch.coll),
	  .otherwise = "its path here" },
	{ "timeout", 't', "T", "end the job after this time, with exit code 124",
	  OPTION_TIME(struct run_settings, launch.timeout, "s", 1, YEARS), .otherwise = "none" },
	{ "keep-going", 'k', NULL, "let the other ranks go on when one fails",
	  OPTION_FLAG(struct run_settings, launch.keep_going) },
	{ "grace", 0, "T", "time from SIGTERM to SIGKILL",
	  OPTION_TIME(struct run_settings, launch.grace, "s", 1, YEARS), .preset = "5s" },
	{ "prefix", 0, NULL, "print \"[rank] \" before each line of output (default for N > 1)",
	  OPTION_CHOICE(struct run_settings, prefix, PREFIX_ON) },
	{ "no-prefix", 0, NULL, "pass output on as it is",
	  OPTION_CHOICE(struct run_settings, prefix, PREFIX_OFF) },
	{ "env", 'e', "K=V", "set a variable in every rank; may be repeated",
	  .read = run_read_variable },
	{ "bind", 0, "HOW", "bind rank r to the r-th core; auto: if the job needs most cores",
	  OPTION_WORD(struct run_settings, launch.bind, binds), .preset = "auto" },
	{ "report", 0, "FILE", "when the job ends, write what its collectives cost to FILE",
	  OPTION_TEXT(struct run_settings, report) },
	{ "quiet", 'q', NULL, "do not report how ranks ended", OPTION_FLAG(struct run_settings, launch.quiet) },
	{ "agent", 0, NULL, "used by coll run itself", OPTION_FLAG(struct run_settings, launch.agent),
	  .hidden = true },
	{ NULL },
};

static const char *const usage[] = {
	"usage: coll run -n RANKS [OPTION ...] [--] PROGRAM [ARGUMENT ...]",
	"       coll run --hosts NAME[:RANKS],... [OPTION ...] [--] PROGRAM [ARGUMENT ...]",
	"",
	"Starts RANKS copies of a program as one job, on this node or on several hosts.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0 if all ranks exit with 0, else that of the first rank that failed",
	"(128 + signal if it was killed); 126 or 127 if the program cannot be run.",
	NULL,
};

const struct option_table cmd_run_options = {
	.command = "run",
	.usage = usage,
	.closing = closing,
	.list = { run_entries },
	.arguments = OPTIONS_ANY,
	.program = true,
};

/* Takes the ranks of --hosts as -n, or limits them to -n. */
static int fit_hosts(struct launch *launch)
{
	static char self[4096];

	if (!launch->ranks)
		launch->ranks = launch->all;
	if (launch->ranks > launch->all) {
		fprintf(stderr, "coll run: -n %d; valid with this --hosts: up to %d ranks\n",
			launch->ranks, launch->all);
		return COMMAND_USAGE;
	}
	launch->hosts_count = hosts_limit(launch->hosts, launch->hosts_count, launch->ranks);
	if (!launch->coll && readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
		launch->coll = self;
	if (launch->coll && !strchr(launch->coll, '\''))
		return COMMAND_OK;
	argument_refuse_option("run", "coll", launch->coll ? launch->coll : "", "a path without '");
	return COMMAND_USAGE;
}

/* The command that the remote shell runs on each host. */
static int run_agent(struct launch *launch)
{
	static const char report[] = "COLL_REPORT=";
	struct run_looking looking = { .observer = NULL };
	char **variable;
	int err;

	if (hosts_take_order(STDIN_FILENO, launch)) {
		fprintf(stderr, "coll run: --agent is used by coll run itself; its input is not an "
			"order\n");
		return COMMAND_USAGE;
	}
	for (variable = launch->environment; variable && *variable; variable++)
		if (!strncmp(*variable, report, sizeof(report) - 1))
			looking.file = *variable + sizeof(report) - 1;
	if (looking.file) {
		launch->looks = run_looking_on;
		launch->looks_argument = &looking;
	}
	err = launch_job(launch);
	run_looking_close(&looking);
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
	options_help(&cmd_run_options, stderr);
	return COMMAND_USAGE;
}

/* With the report that is wanted of it. */
static int run_job(struct run_settings *settings)
{
	struct run_ending ending = { .file = NULL };
	struct run_looking looking = { .observer = NULL };
	struct launch *launch = &settings->launch;
	char *variable;
	int err;

	if (!settings->report)
		return launch_job(launch);
	variable = run_ending_open(&ending, settings->report);
	err = variable ? COMMAND_OK : COMMAND_ERROR;
	if (!err) {
		launch->environment[settings->variables++] = variable;
		launch->ends = run_ending_told;
		launch->ends_argument = &ending;
		looking.file = ending.file;
		launch->looks = run_looking_on;
		launch->looks_argument = &looking;
		err = launch_job(launch);
	}
	run_looking_close(&looking);
	run_ending_close(&ending);
	free(variable);
	return err;
}

int cmd_run(int argc, char **argv)
{
	struct run_settings settings = { .variables = 0 };
	struct launch *launch = &settings.launch;
	int err;

	launch->environment = calloc(argc + 2, sizeof(char *));
	if (!launch->environment)
		return COMMAND_ERROR;
	err = options_read(&cmd_run_options, argc, argv, &settings) ? COMMAND_OK : COMMAND_USAGE;
	if (!err && launch->agent)
		return run_agent(launch);
	if (!err && launch->hosts)
		err = fit_hosts(launch);
	if (!err) {
		launch->argv = argv + optind;
		err = check_complete(launch);
	}
	if (!err) {
		launch->prefix = settings.prefix == PREFIX_USUAL ? launch->ranks > 1 :
								   settings.prefix == PREFIX_ON;
		err = run_job(&settings);
	}
	free(launch->environment);
	return err;
}
