// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A command with subcommands: finds the one that is meant, or prints all. */
#include <stdio.h>
#include <string.h>

#include "libcoll/coll.h"
#include "arguments.h"
#include "command.h"
#include "completion.h"
#include "options.h"
#include "printed.h"

static void command_usage(const struct command *commands, FILE *to)
{
	const struct command *command;

	fprintf(to, "usage: %s COMMAND [ARGUMENT ...]\n\n", argument_program);
	for (command = commands; command->name; command++)
		fprintf(to, "  %-10s %s\n", command->name, command->about);
	fprintf(to, "  %-10s %s\n", "completion", "print the completion script of bash or zsh");
	fprintf(to, "\n%s COMMAND --help tells more; %s --version.\n", argument_program, argument_program);
}

static int command_completion(const struct command *commands, int argc, char **argv)
{
	const char *shell;

	if (!options_read(&completion_options, argc, argv, NULL))
		return COMMAND_USAGE;
	shell = argc > optind ? argv[optind] : "";
	if (completion_print(shell, commands, stdout))
		return COMMAND_OK;
	fprintf(stderr, "%s completion: '%s'; valid: bash, zsh\n", argument_program, shell);
	return COMMAND_USAGE;
}

static int command_named(const struct command *commands, int argc, char **argv);

/* "help COMMAND ..." is "COMMAND ... --help". */
static int command_help(const struct command *commands, int argc, char **argv)
{
	char help[] = "--help", *again[] = { argv[0], argv[2], argc > 3 ? argv[3] : help, help, NULL };

	if (argc > 2)
		return command_named(commands, argc > 3 ? 4 : 3, again);
	command_usage(commands, stdout);
	return COMMAND_OK;
}

static int command_named(const struct command *commands, int argc, char **argv)
{
	const struct command *command;

	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return command_help(commands, 2, argv);
	if (!strcmp(argv[1], "help"))
		return command_help(commands, argc, argv);
	if (!strcmp(argv[1], "--version")) {
		printf("%s %d.%d\n", argument_program, COLL_VERSION_MAJOR, COLL_VERSION_MINOR);
		return COMMAND_OK;
	}
	if (!strcmp(argv[1], "completion"))
		return command_completion(commands, argc - 1, argv + 1);
	for (command = commands; command->name; command++)
		if (!strcmp(argv[1], command->name))
			return command->main(argc - 1, argv + 1);
	fprintf(stderr, "%s: no command '%s'\n", argument_program, argv[1]);
	command_usage(commands, stderr);
	return COMMAND_USAGE;
}

int command_run(const char *program, const struct command *commands, int argc, char **argv)
{
	argument_program = program;
	if (argc < 2) {
		command_usage(commands, stderr);
		return COMMAND_USAGE;
	}
	return printed_status(argv[1], command_named(commands, argc, argv));
}
