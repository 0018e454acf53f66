// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "algo/common/algo.h"
#include "arguments.h"
#include "completion.h"
#include "options.h"

static const char *const completion_usage[] = {
	"usage: coll completion bash | zsh",
	"       collnoise completion bash | zsh",
	"",
	"Prints the script that completes commands, options and their values in that shell. In this bash:",
	"",
	"    eval \"$(coll completion bash)\"",
	"    eval \"$(collnoise completion bash)\"",
	"",
	"make install installs the scripts for both shells.",
	NULL,
};

static const char *const completion_shells[] = { "bash", "zsh", NULL };

const struct option_table completion_options = {
	.command = "completion",
	.usage = completion_usage,
	.first = completion_shells,
	.arguments = 1,
};

/* Calls `each` for the tables of all commands, "bench" and "bench overlap" alike. */
static void tables_each(const struct command *commands,
			void (*each)(const struct option_table *table, FILE *to), FILE *to)
{
	const struct option_table *const *table;

	for (; commands->name; commands++)
		for (table = commands->options; table && *table; table++)
			each(*table, to);
	each(&completion_options, to);
}

static const char *second_word(const struct option_table *table)
{
	const char *blank = strchr(table->command, ' ');

	return blank ? blank + 1 : NULL;
}

/* The valid names of a value or argument, separated by blanks. */
static void print_names(const char *const *names, u32 count, FILE *to)
{
	u32 i;

	for (i = 0; (!count || i < count) && names[i]; i++)
		fprintf(to, "%s%s", i ? " " : "", names[i]);
}

static bool has_names(const struct option_entry *option)
{
	return option->names || option->read == option_collective;
}

static void print_values(const struct option_entry *option, FILE *to)
{
	if (option->names)
		print_names(option->names, option->count, to);
	else
		print_names(coll_collective_names, COLL_COLLECTIVES, to);
}

/* ---- bash ----------------------------------------------------------------------- */

static void bash_name(const struct option_table *table, const struct option_entry *option,
		      void *to)
{
	(void)table;
	fprintf(to, " --%s", option->name);
}

static void bash_value(const struct option_table *table, const struct option_entry *option,
		       void *to)
{
	if (!option->argument || option->optional)
		return;
	fprintf(to, "\t'%s --%s')", table->command, option->name);
	if (!has_names(option)) {		/* a file, or free text */
		fprintf(to, " return ;;\n");
		return;
	}
	fprintf(to, " words='");
	print_values(option, to);
	fprintf(to, "' ;;\n");
}

static void bash_values(const struct option_table *table, FILE *to)
{
	options_each(table, bash_value, to);
}

static void bash_options(const struct option_table *table, FILE *to)
{
	fprintf(to, "\t'%s') words='", table->command);
	options_each(table, bash_name, to);
	fprintf(to, "' ;;\n");
}

static void bash_second(const struct option_table *table, FILE *to)
{
	if (second_word(table))
		fprintf(to, "\t'%s') command=%c%s%c ;;\n", table->command, '\'', table->command,
			'\'');
}

static void bash_arguments(const struct option_table *table, FILE *to)
{
	if (!table->first)
		return;
	fprintf(to, "\t'%s') words='", table->command);
	print_names(table->first, table->firsts, to);
	fprintf(to, "' ;;\n");
}

/* "overlap" after "bench" */
static void bash_subcommand(const struct option_table *table, FILE *to)
{
	const char *second = second_word(table);

	if (second)
		fprintf(to, "\t\t[ \"$command\" != '%.*s' ] || words+=' %s'\n",
			(int)(second - 1 - table->command), table->command, second);
}

static void print_bash(const struct command *commands, FILE *to)
{
	const struct command *command;

	fprintf(to, "# Completion for %s in bash, by `%s completion bash`.\n_%s() {\n",
		argument_program, argument_program, argument_program);
	fprintf(to, "\tlocal current=${COMP_WORDS[COMP_CWORD]} "
		"previous=${COMP_WORDS[COMP_CWORD-1]}\n"
		"\tlocal command=${COMP_WORDS[1]} words=\n\tCOMPREPLY=()\n"
		"\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W '");
	for (command = commands; command->name; command++)
		fprintf(to, "%s ", command->name);
	fprintf(to, "completion help' -- \"$current\"))\n\t\treturn\n\tfi\n"
		"\tcase \"$command ${COMP_WORDS[2]}\" in\n");
	tables_each(commands, bash_second, to);
	fprintf(to, "\tesac\n\tcase \"$command $previous\" in\n");
	tables_each(commands, bash_values, to);
	fprintf(to, "\tesac\n\tif [ -z \"$words\" ] && [[ $current == -* ]]; then\n"
		"\tcase $command in\n");
	tables_each(commands, bash_options, to);
	fprintf(to, "\tesac\n\telif [ -z \"$words\" ]; then\n\tcase $command in\n");
	tables_each(commands, bash_arguments, to);
	fprintf(to, "\tesac\n"
		"\tif [ \"$COMP_CWORD\" -eq 2 ]; then\n");
	tables_each(commands, bash_subcommand, to);
	fprintf(to, "\t\t:\n\tfi\n\tfi\n"
		"\t[ -z \"$words\" ] || COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\n"
		"complete -o default -F _%s %s\n", argument_program, argument_program);
}

/* ---- zsh ------------------------------------------------------------------------ */

/* Text inside [...] and '...' of a specification of _arguments. */
static void zsh_text(const char *text, FILE *to)
{
	for (; *text; text++)
		if (*text == '\'')
			fprintf(to, "'\\''");
		else if (strchr("[]:", *text))
			fprintf(to, "\\%c", *text);
		else
			fputc(*text, to);
}

static void zsh_form(const struct option_entry *option, const char *form, const char *equals,
		     FILE *to)
{
	fprintf(to, " \\\n\t\t'*%s%s[", form, option->argument ? equals : "");
	zsh_text(option->help, to);
	fprintf(to, "]");
	if (option->argument) {
		fprintf(to, "%s", option->optional ? "::" : ":");
		zsh_text(option->argument, to);
		fprintf(to, ":");
		if (has_names(option)) {
			fprintf(to, "(");
			print_values(option, to);
			fprintf(to, ")");
		} else {
			fprintf(to, "_files");
		}
	}
	fprintf(to, "'");
}

static void zsh_option(const struct option_table *table, const struct option_entry *option,
		       void *to)
{
	char form[80];

	(void)table;
	snprintf(form, sizeof(form), "--%s", option->name);
	zsh_form(option, form, option->optional ? "=-" : "=", to);
	if (!option->letter)
		return;
	snprintf(form, sizeof(form), "-%c", option->letter);
	zsh_form(option, form, option->optional ? "-" : "+", to);
}

static void zsh_table(const struct option_table *table, FILE *to)
{
	fprintf(to, "\t('%s') _arguments", table->command);
	options_each(table, zsh_option, to);
	if (table->first) {
		fprintf(to, " \\\n\t\t'1:argument:(");
		print_names(table->first, table->firsts, to);
		fprintf(to, ")'");
	}
	fprintf(to, " \\\n\t\t'*:argument:_files' ;;\n");
}

static void zsh_second(const struct option_table *table, FILE *to)
{
	if (second_word(table))
		fprintf(to, "\t('%s') command='%s'; shift words; (( CURRENT-- )) ;;\n",
			table->command, table->command);
}

static void print_zsh(const struct command *commands, FILE *to)
{
	const struct command *command;

	fprintf(to, "#compdef %s\n# Completion for %s in zsh, by `%s completion zsh`.\n"
		"local command=$words[2]\nlocal -a commands\nif (( CURRENT == 2 )); then\n"
		"\tcommands=(\n", argument_program, argument_program, argument_program);
	for (command = commands; command->name; command++) {
		fprintf(to, "\t\t'%s:", command->name);
		zsh_text(command->about, to);
		fprintf(to, "'\n");
	}
	fprintf(to, "\t)\n\t_describe command commands\n\treturn\nfi\n"
		"shift words\n(( CURRENT-- ))\ncase \"$command $words[2]\" in\n");
	tables_each(commands, zsh_second, to);
	fprintf(to, "esac\ncase $command in\n");
	tables_each(commands, zsh_table, to);
	fprintf(to, "esac\n");
}

bool completion_print(const char *shell, const struct command *commands, FILE *to)
{
	if (!strcmp(shell, "bash"))
		print_bash(commands, to);
	else if (!strcmp(shell, "zsh"))
		print_zsh(commands, to);
	else
		return false;
	return true;
}
