// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"

const char *argument_program = "coll";

bool argument_refuse(const char *command, const char *what, const char *text, const char *valid)
{
	fprintf(stderr, "%s %s: %s '%s'; valid: %s\n", argument_program, command, what, text,
		valid);
	return false;
}

bool argument_refuse_option(const char *command, const char *option, const char *text,
			    const char *valid)
{
	char what[64];

	snprintf(what, sizeof(what), "--%s", option);
	return argument_refuse(command, what, text, valid);
}

void argument_help(const char *const *lines, FILE *to)
{
	for (; *lines; lines++)
		fprintf(to, "%s\n", *lines);
}

/* Reads a number at *text and moves past it. */
static bool read_number(const char **text, u64 least, u64 most, u64 *value)
{
	char *rest;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*value = strtoull(*text, &rest, 10);
	*text = rest;
	return !errno && *value >= least && *value <= most;
}

bool argument_number(const char *command, const char *what, const char *text, u64 least, u64 most,
		     u64 *value)
{
	const char *rest = text;

	if (read_number(&rest, least, most, value) && !*rest)
		return true;
	fprintf(stderr, "%s %s: %s '%s'; valid: a whole number from %llu to %llu\n",
		argument_program, command, what, text, (unsigned long long)least,
		(unsigned long long)most);
	return false;
}

static bool read_sizes(const char *text, u32 most, u32 all, u32 *size, u32 *count)
{
	u64 value;

	for (*count = 0; *count < most; text++) {
		if (!read_number(&text, 1, all, &value))
			return false;
		size[(*count)++] = value;
		all -= value;
		if (*text != '+')
			return !*text;
	}
	return false;
}

bool argument_sizes(const char *command, const char *what, const char *text, u32 most, u32 all,
		    u32 *size, u32 *count)
{
	if (read_sizes(text, most, all, size, count))
		return true;
	fprintf(stderr, "%s %s: %s '%s'; valid: up to %u sizes like 8+8, of %u together\n",
		argument_program, command, what, text, most, all);
	return false;
}

static bool read_range(const char *text, u32 most, u32 *first, u32 *last)
{
	u64 a, b;

	if (!read_number(&text, 1, most, &a))
		return false;
	b = a;
	if (*text == '-') {
		text++;
		if (!read_number(&text, a, most, &b))
			return false;
	}
	*first = a;
	*last = b;
	return !*text;
}

bool argument_range(const char *command, const char *what, const char *text, u32 most, u32 *first,
		    u32 *last)
{
	if (read_range(text, most, first, last))
		return true;
	fprintf(stderr, "%s %s: %s '%s'; valid: N or A-B, 1 to %u\n", argument_program,
		command, what, text, most);
	return false;
}

bool argument_word(const char *command, const char *what, const char *text,
		   const char *const *names, u32 count, u32 *index)
{
	u32 i;

	for (i = 0; i < count && names[i]; i++)
		if (!strcmp(text, names[i])) {
			*index = i;
			return true;
		}
	fprintf(stderr, "%s %s: no %s '%s'; valid: ", argument_program, command, what, text);
	for (i = 0; i < count && names[i]; i++)
		fprintf(stderr, "%s%s", i ? ", " : "", names[i]);
	fprintf(stderr, "\n");
	return false;
}

bool argument_collective(const char *command, const char *text, int *collective)
{
	u32 index;

	if (!argument_word(command, "collective", text, coll_collective_names, COLL_COLLECTIVES,
			   &index))
		return false;
	*collective = index;
	return true;
}

bool argument_unknown(const char *command, int key, char *const *argv,
		      const struct option *options)
{
	const struct option *option;

	if (key == ':') {
		fprintf(stderr, "%s %s: %s needs a value; --help tells more\n", argument_program,
			command, argv[optind - 1]);
		return false;
	}
	fprintf(stderr, "%s %s: no option '%s'; valid:", argument_program, command,
		argv[optind - 1]);
	for (option = options; option->name; option++)
		fprintf(stderr, " --%s", option->name);
	fprintf(stderr, "\n");
	return false;
}
