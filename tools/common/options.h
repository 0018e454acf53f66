/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Command-line options, declared once. A command has a table: each entry names an option,
 * its argument, unit, range and default, and the field that its value goes to. Parsing,
 * --help, completion and the check of the man pages (tests/unit/man.t) all read the table.
 *
 * A reader turns the text of a value into the field. A reader that refuses a text says on
 * stderr which option has which value and what is valid, and returns false.
 */
#ifndef COLL_OPTIONS_H
#define COLL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "uapi/coll_types.h"
#include "core/port.h"

enum {
	OPTIONS_LISTS_MAX = 8,
	OPTIONS_MAX = 80,
	OPTIONS_ANY = -1,	/* number of arguments: the command checks it */
};

struct option_entry;
struct option_table;

typedef bool option_reader(const struct option_table *table, const struct option_entry *option,
			   void *settings, const char *text);

enum option_choice {
	OPTION_NO_CHOICE,
	OPTION_OF_FORMATS,	/* what stdout has */
	OPTION_OF_WORKS,	/* what is done */
	OPTION_CHOICES,
};

struct option_entry {
	const char *name;	/* --name */
	char letter;		/* -x; 0: none */
	const char *argument;	/* as --help shows it; NULL: no argument */
	const char *help;
	option_reader *read;
	option_reader *as;	/* of a command's own reader: whose --help to use; or NULL */
	size_t offset, size;	/* the field in the settings */
	u64 least, most;	/* option_number, option_bytes; option_time: ns */
	double low, high;	/* option_real; option_seconds: s */
	const char *unit;	/* option_time: unit of a bare number; else only for --help */
	u64 value;		/* option_set: value that the field gets */
	const char *const *names;	/* option_word, option_name: valid names up to NULL, ... */
	u32 count;		/* ... or, if not 0, that many */
	const char *preset;	/* default, read before the command line */
	const char *otherwise;	/* default in words, for --help only */
	const char *group;	/* heading before this option */
	bool optional;		/* the argument is optional */
	bool hidden;		/* not in --help */
	bool early;		/* read before the other options: sets their defaults */
	enum option_choice one_of;	/* a command line has at most one option of the same choice */
};

struct option_table {
	const char *command;			/* "bench", "sim circuit" */
	const char *const *usage;		/* lines up to NULL, before the options */
	const char *const *closing;		/* and after them; or NULL */
	void (*more)(FILE *to);			/* prints further text after the options; or NULL */
	const struct option_entry *list[OPTIONS_LISTS_MAX];	/* each ends with no name */
	int arguments;				/* maximum; OPTIONS_ANY: any number */
	const char *const *first;	/* valid first arguments, up to NULL ... */
	u32 firsts;			/* ... or, if not 0, that many; for completion */
	bool program;				/* options end at the first argument */
	/* Called for each option of the command line that was read, not for presets; or NULL. */
	void (*given)(void *settings, const struct option_entry *option);
};

/* ---- readers ------------------------------------------------------------------- */

#define OPTION_FIELD(type, field) \
	.offset = offsetof(type, field), .size = sizeof(((type *)0)->field)

option_reader option_set, option_text, option_number, option_bytes, option_time, option_seconds,
	      option_real, option_word, option_name, option_collective, option_svg;

/* A flag: the field becomes true, or `becomes`. */
#define OPTION_FLAG(type, field) OPTION_CHOICE(type, field, true)
#define OPTION_CHOICE(type, field, becomes) \
	.read = option_set, .value = (becomes), OPTION_FIELD(type, field)
/* A flag that says what stdout has, as --json does; without any it has text for people. */
#define OPTION_FORMAT(type, field) OPTION_FLAG(type, field), .one_of = OPTION_OF_FORMATS
#define OPTION_TEXT(type, field) .read = option_text, OPTION_FIELD(type, field)
/* A file name ending in .svg. */
#define OPTION_SVG(type, field) .read = option_svg, OPTION_FIELD(type, field)
/* A whole number; the field has 1 (0 or 1), 4 or 8 bytes. */
#define OPTION_NUMBER(type, field, from, to) \
	.read = option_number, .least = (from), .most = (to), OPTION_FIELD(type, field)
/* u64 bytes, with K, M, G or T. */
#define OPTION_BYTES(type, field, from, to) \
	.read = option_bytes, .least = (from), .most = (to), OPTION_FIELD(type, field)
/* u64 ns; a bare number is in `bare`: "us" or "s". */
#define OPTION_TIME(type, field, bare, from, to) \
	.read = option_time, .unit = (bare), .least = (from), .most = (to), \
	OPTION_FIELD(type, field)
/* double s; a bare number is in seconds. */
#define OPTION_SECONDS(type, field, from, to) \
	.read = option_seconds, .low = (from), .high = (to), OPTION_FIELD(type, field)
#define OPTION_REAL(type, field, from, to) \
	.read = option_real, .low = (from), .high = (to), OPTION_FIELD(type, field)
/* One of names that end with NULL; the field gets its index. */
#define OPTION_WORD(type, field, words) \
	.read = option_word, .names = (words), OPTION_FIELD(type, field)

/* One of names that end with NULL; the field gets the name. */
#define OPTION_NAME(type, field, words) \
	.read = option_name, .names = (words), OPTION_FIELD(type, field)

/* The option's field in the settings. */
void *option_field(const struct option_entry *option, void *settings);
/* Reports "PROGRAM COMMAND: --NAME 'TEXT'; valid: VALID"; always false. */
bool option_refuse(const struct option_table *table, const struct option_entry *option,
		   const char *text, const char *valid);

/* ---- a command line --------------------------------------------------------------- */

/*
 * Reads defaults and the command line into `settings`; the arguments are argv[optind] and on.
 * --help prints the help and exits with 0. False: stderr has the invalid and the valid value.
 */
bool options_read(const struct option_table *table, int argc, char **argv, void *settings);
void options_help(const struct option_table *table, FILE *to);

/* Calls `each` for every option of the table that is not hidden. */
void options_each(const struct option_table *table,
		  void (*each)(const struct option_table *table, const struct option_entry *option,
			       void *argument), void *argument);

#endif
