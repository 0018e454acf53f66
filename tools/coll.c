// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll: one command, a table of subcommands. Exit codes: 0 ok, 1 error, 2 usage.
 */
#include <stdio.h>
#include <string.h>

#include "arguments.h"
#include "command.h"

const char argument_program[] = "coll";

static const struct command commands[] = {
	{ "bench", cmd_bench, "measure collectives, also under injected noise" },
	{ "circuit", cmd_circuit, "show and manage the circuits of an optical switch" },
	{ "lab", cmd_lab, "run a job on clusters and a WAN made of namespaces" },
	{ "run", cmd_run, "start the ranks of a job on this node" },
	{ "schedule", cmd_schedule, "print the schedules of a collective, or check one" },
	{ "sim", cmd_sim, "simulate a collective, with noise, at any scale" },
	{ "verify", cmd_verify, "verify every algorithm symbolically" },
	{ "wan", cmd_wan, "measure what links between clusters carry" },
	{ NULL, NULL, NULL },
};

static void usage(FILE *to)
{
	const struct command *command;

	fprintf(to, "usage: coll COMMAND [ARGUMENT ...]\n\n");
	for (command = commands; command->name; command++)
		fprintf(to, "  %-10s %s\n", command->name, command->about);
	fprintf(to, "\ncoll COMMAND --help tells more.\n");
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
	fprintf(stderr, "coll: no command '%s'\n", argv[1]);
	usage(stderr);
	return COMMAND_USAGE;
}
