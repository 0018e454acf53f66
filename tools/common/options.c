// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/noise/text.h"
#include "arguments.h"
#include "options.h"
#include "printed.h"
#include "values.h"

enum {
	KEY_FIRST = UCHAR_MAX + 1,	/* getopt's key of the first long option */
	HELP_COLUMN = 24,
	HELP_WIDTH = 90,
};

static const struct option_entry option_help = {
	.name = "help", .letter = 'h', .help = "print this help",
};

/* The index-th option of the table; after the last one --help; then NULL. */
static const struct option_entry *option_at(const struct option_table *table, int index)
{
	const struct option_entry *const *list = table->list;
	const struct option_entry *option;

	for (; *list; list++)
		for (option = *list; option->name; option++)
			if (!index--)
				return option;
	return index ? NULL : &option_help;
}

void options_each(const struct option_table *table,
		  void (*each)(const struct option_table *table, const struct option_entry *option,
			       void *argument), void *argument)
{
	const struct option_entry *option;
	int i;

	for (i = 0; (option = option_at(table, i)); i++)
		if (!option->hidden)
			each(table, option, argument);
}

/* ---- parsing -------------------------------------------------------------------- */

/* The arguments of getopt_long(), made from the table. */
struct option_forms {
	struct option form[OPTIONS_MAX + 1];
	char letters[3 * OPTIONS_MAX + 3];
};

static void forms_make(const struct option_table *table, struct option_forms *forms)
{
	const struct option_entry *option;
	char *letter = forms->letters;
	int i;

	if (table->program)
		*letter++ = '+';
	*letter++ = ':';
	for (i = 0; (option = option_at(table, i)); i++) {
		const int takes = !option->argument ? no_argument :
				  option->optional ? optional_argument : required_argument;

		coll_assert(i < OPTIONS_MAX);
		forms->form[i] = (struct option){ option->name, takes, NULL, KEY_FIRST + i };
		if (!option->letter)
			continue;
		*letter++ = option->letter;
		letter = stpcpy(letter, &"::"[2 - takes]);
	}
	forms->form[i] = (struct option){ NULL, 0, NULL, 0 };
	*letter = 0;
}

static const struct option_entry *option_of_key(const struct option_table *table, int key)
{
	const struct option_entry *option;
	int i;

	if (key >= KEY_FIRST)
		return option_at(table, key - KEY_FIRST);
	for (i = 0; (option = option_at(table, i)) && option->letter != key; i++)
		;
	return option;
}

static void list_options(const struct option_table *table, const struct option_entry *option,
			 void *prefix)
{
	const char *begin = prefix;

	(void)table;
	if (!strncmp(option->name, begin, strlen(begin)))
		fprintf(stderr, " --%s", option->name);
}

/* Reports what getopt_long() refused; always false. */
static bool refuse_option(const struct option_table *table, int key, const char *given)
{
	const struct option_entry *option = optopt ? option_of_key(table, optopt) : NULL;
	char letter[] = { '-', (char)optopt, 0 };
	const bool is_long = !strncmp(given, "--", 2);
	const bool ambiguous = is_long && !optopt && !strchr(given, '=') && given[2];

	fprintf(stderr, "%s %s: ", argument_program, table->command);
	if (key == ':' && option) {
		fprintf(stderr, "--%s needs a value; --help tells more\n", option->name);
	} else if (is_long && option && option != &option_help) {
		fprintf(stderr, "--%s takes no value; given: '%s'\n", option->name, given);
	} else {
		struct option_forms forms;
		int matches = 0, i;

		forms_make(table, &forms);
		for (i = 0; ambiguous && forms.form[i].name; i++)
			matches += !strncmp(forms.form[i].name, given + 2, strlen(given + 2));
		fprintf(stderr, "%s option '%s'; valid:", matches > 1 ? "ambiguous" : "no",
			is_long || !optopt ? given : letter);
		options_each(table, list_options, (void *)(matches > 1 ? given + 2 : ""));
		fprintf(stderr, "\n");
	}
	return false;
}

/* Whether this option may be given, after `before` of the same choice, or NULL. */
static bool choice_is_one(const struct option_table *table, const struct option_entry *before,
			  const struct option_entry *option)
{
	if (!option->one_of || !before || before == option)
		return true;
	fprintf(stderr, "%s %s: --%s and --%s: %s one of the two; valid: one of them\n", argument_program,
		table->command, before->name, option->name,
		option->one_of == OPTION_OF_FORMATS ? "stdout can have" : "it can do");
	return false;
}

static bool read_presets(const struct option_table *table, void *settings)
{
	const struct option_entry *option;
	int i;

	for (i = 0; (option = option_at(table, i)); i++)
		if (option->preset && !option->read(table, option, settings, option->preset))
			return false;
	return true;
}

/* One pass over the command line: early options only, or all others. */
static bool read_line(const struct option_table *table, int argc, char **argv, void *settings,
		      bool early)
{
	const struct option_entry *chosen[OPTION_CHOICES] = { NULL };
	struct option_forms forms;
	int key;

	forms_make(table, &forms);
	opterr = 0;
	optind = 0;		/* 0, not 1: resets glibc's getopt, also after it reordered argv */
	while ((key = getopt_long(argc, argv, forms.letters, forms.form, NULL)) != -1) {
		const struct option_entry *option = option_of_key(table, key);
		const bool refused = key == '?' || key == ':' || !option;

		if (early && (refused || !option->early))
			continue;
		if (refused)
			return refuse_option(table, key, argv[optind - 1]);
		if (option == &option_help) {
			options_help(table, stdout);
			exit(printed_status(table->command, 0));
		}
		if (option->early != early)
			continue;
		if (!choice_is_one(table, chosen[option->one_of], option))
			return false;
		chosen[option->one_of] = option;
		if (!option->read(table, option, settings, optarg))
			return false;
		if (table->given)
			table->given(settings, option);
	}
	return true;
}

/* On a copy: getopt_long() would move arguments behind an option without its value. */
static bool read_early(const struct option_table *table, int argc, char **argv, void *settings)
{
	char **copy = calloc(argc + 1, sizeof(*copy));
	bool good;

	if (!copy)
		return false;
	memcpy(copy, argv, argc * sizeof(*copy));
	good = read_line(table, argc, copy, settings, true);
	free(copy);
	return good;
}

bool options_read(const struct option_table *table, int argc, char **argv, void *settings)
{
	if (!read_presets(table, settings) || !read_early(table, argc, argv, settings) ||
	    !read_line(table, argc, argv, settings, false))
		return false;
	if (table->arguments == OPTIONS_ANY || argc - optind <= table->arguments)
		return true;
	fprintf(stderr, "%s %s: '%s' is one argument too many; --help tells more\n",
		argument_program, table->command, argv[optind + table->arguments]);
	return false;
}

/* ---- help ----------------------------------------------------------------------- */

/* Prints words from `*column` on, wrapped at HELP_COLUMN. */
static void help_words(FILE *to, int *column, const char *text)
{
	while (*text) {
		const int length = strcspn(text, " ");

		if (*column > HELP_COLUMN && *column + 1 + length > HELP_WIDTH) {
			fprintf(to, "\n%*s", HELP_COLUMN, "");
			*column = HELP_COLUMN;
		} else if (*column > HELP_COLUMN) {
			fprintf(to, " ");
			++*column;
		}
		fprintf(to, "%.*s", length, text);
		*column += length;
		text += length + strspn(text + length, " ");
	}
}

static void help_option(const struct option_table *table, const struct option_entry *option,
			void *argument)
{
	char head[120], range[512];
	const char *left = "", *right = "";
	FILE *to = argument;
	int column;

	(void)table;
	if (option->argument) {
		left = option->optional ? "[=" : " ";
		right = option->optional ? "]" : "";
	}
	if (option->group)
		fprintf(to, "\n%s\n", option->group);
	column = snprintf(head, sizeof(head), "  %c%c%c --%s%s%s%s", option->letter ? '-' : ' ',
			  option->letter ? option->letter : ' ', option->letter ? ',' : ' ',
			  option->name, left, option->argument ? option->argument : "", right);
	fprintf(to, "%s", head);
	if (column < HELP_COLUMN - 1)
		fprintf(to, "%*s", HELP_COLUMN - column, "");
	else
		fprintf(to, "\n%*s", HELP_COLUMN, "");
	column = HELP_COLUMN;
	help_words(to, &column, option->help);
	help_words(to, &column, option_range(option, range, sizeof(range)));
	fprintf(to, "\n");
}

void options_help(const struct option_table *table, FILE *to)
{
	argument_help(table->usage, to);
	fprintf(to, "\n");
	options_each(table, help_option, to);
	if (table->more)
		table->more(to);
	if (table->closing) {
		fprintf(to, "\n");
		argument_help(table->closing, to);
	}
}
