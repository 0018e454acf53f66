// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The option tables of the commands: values, ranges, units, and errors of wrong ones. */
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

#include "tools/common/arguments.h"
#include "tools/common/options.h"

struct settings {
	bool flag, check;
	u32 count, way;
	u64 size, most, time;
	double seconds, share;
	const char *name, *plot, *file, *words[8];
	int texts, format;
};

static const char *const ways[] = { "slow", "fast", NULL };

static bool read_words(const struct option_table *table, const struct option_entry *option,
		       void *to, const char *text)
{
	struct settings *s = to;

	if (!strcmp(text, "no"))
		return option_refuse(table, option, text, "anything else");
	s->words[s->texts++] = text;
	return true;
}

/* A default of another option. */
static bool read_machine(const struct option_table *table, const struct option_entry *option,
			 void *to, const char *text)
{
	(void)table;
	(void)option;
	((struct settings *)to)->count = strlen(text);
	return true;
}

static const struct option_entry first[] = {
	{ "flag", 'f', NULL, "a flag", OPTION_FLAG(struct settings, flag) },
	{ "no-check", 0, NULL, "no check", OPTION_CHOICE(struct settings, check, false) },
	{ "json", 0, NULL, "JSON", OPTION_CHOICE(struct settings, format, 2), .one_of = OPTION_OF_FORMATS },
	{ "csv", 0, NULL, "CSV", OPTION_FORMAT(struct settings, flag) },
	{ "count", 'n', "N", "things", OPTION_NUMBER(struct settings, count, 2, 64),
	  .preset = "8", .unit = "things" },
	{ NULL },
};

static const struct option_entry second[] = {
	{ "size", 0, "BYTES", "of each", OPTION_BYTES(struct settings, size, 1, 1ull << 34),
	  .preset = "64K", .group = "costs" },
	{ "most", 0, "BYTES", "of all", OPTION_BYTES(struct settings, most, 0, 1ull << 48) },
	{ "time", 't', "T", "how long", OPTION_TIME(struct settings, time, "s", 1000000,
						   3600000000000), .preset = "10s" },
	{ "seconds", 0, "T", "latency", OPTION_SECONDS(struct settings, seconds, 0, 100) },
	{ "share", 0, "X", "lost", OPTION_REAL(struct settings, share, 0, 1) },
	{ "way", 0, "WAY", "how", OPTION_WORD(struct settings, way, ways), .preset = "fast" },
	{ "name", 0, "NAME", "a name", OPTION_TEXT(struct settings, name),
	  .otherwise = "the host's" },
	{ "plot", 0, "FILE.svg", "a picture", OPTION_SVG(struct settings, plot) },
	{ "file", 'o', "FILE", "a file", OPTION_TEXT(struct settings, file), .optional = true },
	{ "word", 0, "TEXT", "again and again", .read = read_words },
	{ "machine", 0, "M", "early", .read = read_machine, .early = true },
	{ "hidden", 0, NULL, "for itself", OPTION_FLAG(struct settings, flag), .hidden = true },
	{ NULL },
};

static const char *const usage[] = { "usage: prog cmd [OPTION ...]", NULL };
static const char *const closing[] = { "Exit code: 0.", NULL };

static const struct option_table table = {
	.command = "cmd", .usage = usage, .closing = closing, .list = { first, second },
	.arguments = 2,
};

static const struct option_table of_program = {
	.command = "cmd", .usage = usage, .list = { first, second }, .arguments = OPTIONS_ANY,
	.program = true,
};

/* ---- one command line --------------------------------------------------------------- */

static char said[4000];		/* on stderr */
static int first_argument;

/* The words of `line`, parted by blanks. */
static bool parse(const struct option_table *of, struct settings *s, const char *line)
{
	static char copy[400];
	char *argv[32] = { (char *)"cmd" }, *save;
	int argc = 1, saved = dup(2), pipes[2];
	ssize_t length;
	bool fine;

	snprintf(copy, sizeof(copy), "%s", line);
	for (argv[argc] = strtok_r(copy, " ", &save); argv[argc];
	     argv[argc] = strtok_r(NULL, " ", &save))
		argc++;
	assert_int_equal(pipe(pipes), 0);
	dup2(pipes[1], 2);
	close(pipes[1]);
	memset(s, 0, sizeof(*s));
	fine = options_read(of, argc, argv, s);
	first_argument = optind;
	dup2(saved, 2);
	close(saved);
	length = read(pipes[0], said, sizeof(said) - 1);
	said[length > 0 ? length : 0] = 0;
	close(pipes[0]);
	return fine;
}

static void assert_refused(const char *line, const char *why)
{
	struct settings s;

	assert_false(parse(&table, &s, line));
	assert_string_equal(said, why);
}

static void assert_taken(struct settings *s, const char *line)
{
	if (!parse(&table, s, line))
		fail_msg("%s: %s", line, said);
	assert_string_equal(said, "");
}

static void defaults(void **state)
{
	struct settings s;

	(void)state;
	assert_taken(&s, "");
	assert_int_equal(s.count, 8);
	assert_int_equal(s.size, 64 << 10);
	assert_int_equal(s.time, 10000000000);
	assert_int_equal(s.way, 1);
	assert_false(s.flag);
	assert_null(s.name);
}

static void values(void **state)
{
	struct settings s;

	(void)state;
	assert_taken(&s, "-f --json -n 64 --size 3M -t 2.5ms --seconds 25us --share 0.5 --way slow "
			 "--name x --plot a.svg --word a --word b -ofile");
	assert_true(s.flag);
	assert_int_equal(s.format, 2);
	assert_int_equal(s.count, 64);
	assert_int_equal(s.size, 3 << 20);
	assert_int_equal(s.time, 2500000);
	assert_true(s.seconds > 24.9e-6 && s.seconds < 25.1e-6);
	assert_true(s.share == 0.5);
	assert_int_equal(s.way, 0);
	assert_string_equal(s.name, "x");
	assert_string_equal(s.plot, "a.svg");
	assert_string_equal(s.file, "file");
	assert_int_equal(s.texts, 2);
	assert_string_equal(s.words[1], "b");
}

static void units(void **state)
{
	struct settings s;

	(void)state;
	assert_taken(&s, "-t 2");
	assert_int_equal(s.time, 2000000000);
	assert_taken(&s, "--size=64k");
	assert_int_equal(s.size, 64 << 10);
	assert_taken(&s, "--time=1h --size=16G --seconds 1e-7");
	assert_int_equal(s.time, 3600000000000);
	assert_int_equal(s.size, 16ull << 30);
	assert_true(s.seconds > 0.9e-7 && s.seconds < 1.1e-7);
	assert_taken(&s, "--most=256T");
	assert_int_equal(s.most, 1ull << 48);
}

static void ranges(void **state)
{
	(void)state;
	assert_refused("-n 1", "prog cmd: --count '1'; valid: a whole number from 2 to 64\n");
	assert_refused("-n 65", "prog cmd: --count '65'; valid: a whole number from 2 to 64\n");
	assert_refused("--count -2", "prog cmd: --count '-2'; valid: a whole number from 2 to 64\n");
	assert_refused("--count 3x", "prog cmd: --count '3x'; valid: a whole number from 2 to 64\n");
	assert_refused("--count 99999999999999999999",
		       "prog cmd: --count '99999999999999999999'; valid: a whole number from 2 to "
		       "64\n");
	assert_refused("--size 0",
		       "prog cmd: --size '0'; valid: bytes, with K, M, G or T: 8, 64K, 1M; 1 to 16G\n");
	assert_refused("--size 17G", "prog cmd: --size '17G'; valid: bytes, with K, M, G or T: 8, "
				     "64K, 1M; 1 to 16G\n");
	assert_refused("--size 99999999999G", "prog cmd: --size '99999999999G'; valid: bytes, "
					      "with K, M, G or T: 8, 64K, 1M; 1 to 16G\n");
	assert_refused("--size 8T", "prog cmd: --size '8T'; valid: bytes, with K, M, G or T: 8, 64K, "
				    "1M; 1 to 16G\n");
	assert_refused("-t 1us", "prog cmd: --time '1us'; valid: a time from 1ms to 1h: 250ns, "
				 "5us, 2.5ms, 10s, 1m, 1h; s without a unit\n");
	assert_refused("--seconds 1y", "prog cmd: --seconds '1y'; valid: a time of 0 to 100 s: "
				       "25ns, 1us, 10ms; seconds without a unit\n");
	assert_refused("--share 1.5", "prog cmd: --share '1.5'; valid: a number from 0 to 1\n");
	assert_refused("--share nan", "prog cmd: --share 'nan'; valid: a number from 0 to 1\n");
	assert_refused("--way fas", "prog cmd: --way 'fas'; valid: slow, fast\n");
	assert_refused("--plot x.png",
		       "prog cmd: --plot 'x.png'; valid: a file name ending in .svg\n");
	assert_refused("--word no", "prog cmd: --word 'no'; valid: anything else\n");
}

static void unknown(void **state)
{
	static const char all[] = " --flag --no-check --json --csv --count --size --most --time --seconds "
				  "--share --way --name --plot --file --word --machine --help\n";
	char why[400];

	(void)state;
	snprintf(why, sizeof(why), "prog cmd: no option '--frob'; valid:%s", all);
	assert_refused("--frob", why);
	snprintf(why, sizeof(why), "prog cmd: no option '-x'; valid:%s", all);
	assert_refused("-fx", why);
	assert_refused("--count", "prog cmd: --count needs a value; --help tells more\n");
	assert_refused("-n", "prog cmd: --count needs a value; --help tells more\n");
	assert_refused("--json=1", "prog cmd: --json takes no value; given: '--json=1'\n");
}

static void abbreviations(void **state)
{
	struct settings s;

	(void)state;
	assert_taken(&s, "--cou 9 --no");
	assert_int_equal(s.count, 9);
	assert_refused("--f", "prog cmd: ambiguous option '--f'; valid: --flag --file\n");
}

static void early(void **state)
{
	struct settings s;

	(void)state;
	assert_taken(&s, "a --machine abc b");
	assert_int_equal(s.count, 3);
	assert_taken(&s, "--count 9 --machine abc");
	assert_int_equal(s.count, 9);
	assert_refused("--machine abc --count 1",
		       "prog cmd: --count '1'; valid: a whole number from 2 to 64\n");
}

static void arguments(void **state)
{
	struct settings s;

	(void)state;
	assert_taken(&s, "a -f b");
	assert_int_equal(first_argument, 2);
	assert_true(s.flag);
	assert_taken(&s, "-- -f --json");
	assert_false(s.flag);
	assert_refused("a b c", "prog cmd: 'c' is one argument too many; --help tells more\n");
	assert_true(parse(&of_program, &s, "-n 3 program -f --json"));
	assert_int_equal(s.count, 3);
	assert_false(s.flag);
	assert_int_equal(first_argument, 3);
}

static void formats(void **state)
{
	struct settings s;

	(void)state;
	assert_taken(&s, "--json -n 3 --json");
	assert_int_equal(s.format, 2);
	assert_refused("--json -n 3 --csv",
		       "prog cmd: --json and --csv: stdout can have one of the two; valid: one of them\n");
	assert_refused("--csv --js",
		       "prog cmd: --csv and --json: stdout can have one of the two; valid: one of them\n");
}

static void help(void **state)
{
	static const char wanted[] =
"usage: prog cmd [OPTION ...]\n"
"\n"
"  -f, --flag            a flag\n"
"      --no-check        no check\n"
"      --json            JSON\n"
"      --csv             CSV\n"
"  -n, --count N         things (2 to 64 things; default 8)\n"
"\n"
"costs\n"
"      --size BYTES      of each (1 to 16G; default 64K)\n"
"      --most BYTES      of all (0 to 256T)\n"
"  -t, --time T          how long (1ms to 1h; a bare number: s; default 10s)\n"
"      --seconds T       latency (0 to 100 s)\n"
"      --share X         lost (0 to 1)\n"
"      --way WAY         how (slow, fast; default fast)\n"
"      --name NAME       a name (default the host's)\n"
"      --plot FILE.svg   a picture\n"
"  -o, --file[=FILE]     a file\n"
"      --word TEXT       again and again\n"
"      --machine M       early\n"
"  -h, --help            print this help\n"
"\n"
"Exit code: 0.\n";
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	(void)state;
	options_help(&table, to);
	fclose(to);
	assert_string_equal(text, wanted);
	free(text);
}

/* Any text as a value of any option: taken or refused, never worse. */
static void any_text(void **state)
{
	static const char letters[] = "0123456789.-+eKMGnsum,:=/x%";
	char line[100];
	struct settings s;
	int round, i;

	(void)state;
	srand(7);
	for (round = 0; round < 20000; round++) {
		const struct option_entry *option = &second[rand() % 6];
		const int length = rand() % 24;
		size_t used = snprintf(line, sizeof(line), "--%s=", option->name);

		for (i = 0; i < length; i++)
			line[used++] = letters[rand() % (sizeof(letters) - 1)];
		line[used] = 0;
		if (!parse(&table, &s, line)) {
			assert_non_null(strstr(said, "; valid: "));
			continue;
		}
		assert_in_range(s.size, 1, 1ull << 34);
		assert_in_range(s.time, 1000000, 3600000000000);
		assert_true(s.seconds >= 0 && s.seconds <= 100);
		assert_true(s.share >= 0 && s.share <= 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),  cmocka_unit_test(values),
		cmocka_unit_test(units),     cmocka_unit_test(ranges),
		cmocka_unit_test(unknown),   cmocka_unit_test(abbreviations),
		cmocka_unit_test(arguments), cmocka_unit_test(help),
		cmocka_unit_test(any_text),  cmocka_unit_test(early),
		cmocka_unit_test(formats),
	};

	argument_program = "prog";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
