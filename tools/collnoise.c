// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * collnoise: what takes time from programs. One command, a table of subcommands.
 * Exit codes: 0 ok, 1 error, 2 usage or a threshold that was passed.
 */
#include <stdio.h>
#include <string.h>

#include "arguments.h"
#include "command.h"
#include "noise_commands.h"

const char argument_program[] = "collnoise";

static const struct command commands[] = {
	{ "calibrate", noise_calibrate, "how far measuring and injecting are to be trusted here" },
	{ "check", noise_check, "how well this machine keeps noise away from CPUs" },
	{ "export", noise_export, "a capture in another tool's format" },
	{ "import", noise_import_files, "another tool's files as a capture" },
	{ "inject", noise_inject, "make noise after a model" },
	{ "measure", noise_measure, "see noise from user space, and judge it" },
	{ "pin", noise_pin, "move daemons and interrupts away from CPUs, and back" },
	{ "predict", noise_predict, "what noise costs at N ranks, and what would help" },
	{ "record", noise_record, "measure, and keep every event in a file" },
	{ "report", noise_report, "draw a capture: one picture, or one page" },
	{ "replay", noise_replay, "make the noise of a capture again" },
	{ NULL, NULL, NULL },
};

static void usage(FILE *to)
{
	const struct command *command;

	fprintf(to, "usage: collnoise COMMAND [ARGUMENT ...]\n\n");
	for (command = commands; command->name; command++)
		fprintf(to, "  %-10s %s\n", command->name, command->about);
	fprintf(to, "\ncollnoise COMMAND --help tells more.\n");
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		usage(stderr);
		return COMMAND_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return COMMAND_OK;
	}
	for (command = commands; command->name; command++)
		if (!strcmp(argv[1], command->name))
			return command->main(argc - 1, argv + 1);
	fprintf(stderr, "collnoise: no command '%s'\n", argv[1]);
	usage(stderr);
	return COMMAND_USAGE;
}
