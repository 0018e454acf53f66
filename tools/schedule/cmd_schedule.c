// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll schedule: prints, draws or exports the schedules of an algorithm; checks schedules from a
 * file.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/tuning.h"
#include "core/names.h"
#include "core/reduce.h"
#include "core/text.h"
#include "tools/common/arena.h"
#include "tools/common/arguments.h"
#include "tools/common/command.h"
#include "tools/common/emit.h"
#include "tools/common/options.h"

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_DOT, FORMAT_GOAL };

enum {
	ALL_RANKS_MAX = 1 << 16,	/* without --rank */
	CLUSTERS_MAX = 64,
};

struct schedule_settings {
	struct coll_call call;
	const struct coll_algo *algo;
	struct coll_tuning tuning;
	u32 rank;			/* COLL_NONE: all */
	enum format format;
	double reduce_ns;		/* GOAL: a byte's reduction */
	const char *check;		/* a file to check instead */
	u32 *cluster;			/* per rank, or NULL */
	/* Options that depend on the arguments: kept as text until those are parsed. */
	const char *rank_text, *root_text, *clusters_text;
	char tuning_text[256];
};

/* ---- emitting ----------------------------------------------------------- */

/* The schedule of one rank; free() it. NULL: stderr has the reason. */
static struct coll_schedule *emit_rank(const struct schedule_settings *settings, u32 rank)
{
	struct coll_call call = settings->call;

	call.rank = rank;
	if (call.in_place && rank != call.root &&
	    (call.collective == COLL_REDUCE || call.collective == COLL_GATHER ||
	     call.collective == COLL_GATHERV || call.collective == COLL_SCATTER ||
	     call.collective == COLL_SCATTERV))
		call.in_place = false;
	return emit_schedule("schedule", settings->algo, &call, &settings->tuning);
}

/* ---- printing ----------------------------------------------------------- */

static void print_heading(const struct schedule_settings *settings)
{
	const struct coll_call *call = &settings->call;
	char tuning[80];

	coll_tuning_print(&settings->tuning, tuning, sizeof(tuning));
	printf("# %s %s%s%s, %u ranks, root %u, %llu x %s%s\n",
	       coll_collective_names[call->collective], settings->algo->name, *tuning ? ":" : "",
	       tuning, call->ranks, call->root, (unsigned long long)call->count,
	       coll_type_name(call->type), call->in_place ? ", in place" : "");
	printf("# %s\n", settings->algo->about);
}

static void print_text(const struct schedule_settings *settings,
		       const struct coll_schedule *const *s, u32 count)
{
	u32 i;

	print_heading(settings);
	for (i = 0; i < count; i++) {
		putchar('\n');
		coll_text_print(s[i], stdout);
	}
}

static void print_json(const struct coll_schedule *const *s, u32 count)
{
	u32 i;

	if (count > 1)
		puts("[");
	for (i = 0; i < count; i++) {
		if (i)
			puts(",");
		coll_json_print(s[i], stdout);
	}
	if (count > 1)
		puts("]");
}

static int print_goal(const struct schedule_settings *settings,
		      const struct coll_schedule *const *s, u32 count)
{
	struct coll_text_error error = { 0 };

	if (!coll_goal_print(s, count, settings->reduce_ns, stdout, &error))
		return COMMAND_OK;
	fprintf(stderr, "coll schedule: --goal: %s\n", error.reason);
	return COMMAND_ERROR;
}

static int print_all(const struct schedule_settings *settings, const struct coll_schedule *const *s,
		     u32 count)
{
	switch (settings->format) {
	case FORMAT_TEXT:
		print_text(settings, s, count);
		return COMMAND_OK;
	case FORMAT_JSON:
		print_json(s, count);
		return COMMAND_OK;
	case FORMAT_DOT:
		coll_dot_print(s, count, stdout);
		return COMMAND_OK;
	default:
		return print_goal(settings, s, count);
	}
}

static int show_schedules(struct schedule_settings *settings)
{
	const bool all = settings->rank == COLL_NONE;
	const u32 first = all ? 0 : settings->rank, count = all ? settings->call.ranks : 1;
	struct coll_schedule **s = memory_grow(NULL, count, sizeof(*s));
	u64 *blocks = emit_blocks(&settings->call);
	int status = COMMAND_ERROR;
	u32 made;

	for (made = 0; made < count; made++) {
		s[made] = emit_rank(settings, first + made);
		if (!s[made])
			break;
	}
	if (made == count)
		status = print_all(settings, (const struct coll_schedule *const *)s, count);
	while (made--)
		free(s[made]);
	free(s);
	free(blocks);
	return status;
}

/* ---- checking a file ---------------------------------------------------- */

static char *read_text(const char *name, size_t *bytes)
{
	FILE *from = strcmp(name, "-") ? fopen(name, "r") : stdin;
	size_t capacity = 1 << 16, got;
	char *text;

	if (!from) {
		fprintf(stderr, "coll schedule: %s: %s\n", name, strerror(errno));
		return NULL;
	}
	text = memory_grow(NULL, 1, capacity);
	for (*bytes = 0; (got = fread(text + *bytes, 1, capacity - *bytes, from)); ) {
		*bytes += got;
		if (*bytes == capacity)
			text = memory_grow(text, 1, capacity *= 2);
	}
	if (ferror(from)) {
		fprintf(stderr, "coll schedule: %s: %s\n", name, strerror(errno));
		free(text);
		text = NULL;
	}
	if (from != stdin)
		fclose(from);
	return text;
}

/* Reports whether a parsed schedule is valid; `line`: the line where its text begins. */
static bool report_parsed(const char *name, int error, struct coll_schedule *s,
			  const struct coll_text_error *why, u32 line)
{
	if (!error) {
		printf("%s: rank %u of %u: %u ops, well formed\n", name, s->rank, s->ranks, s->ops);
		free(s);
		return true;
	}
	if (why->line)
		fprintf(stderr, "coll schedule: %s:%u: %s\n", name, line + why->line, why->reason);
	else
		fprintf(stderr, "coll schedule: %s: %s\n", name,
			error == -ENOMEM ? strerror(ENOMEM) : why->reason);
	return false;
}

static bool check_json(const char *name, const char *text, size_t bytes)
{
	struct coll_text_error why = { 0 };
	struct coll_schedule *s = NULL;
	json_error_t wrong;
	json_t *array, *item;
	bool fine = true;
	size_t i;
	int error;

	if (*text != '[') {
		error = coll_json_parse(text, bytes, &s, &why);
		return report_parsed(name, error, s, &why, 0);
	}
	array = json_loadb(text, bytes, 0, &wrong);
	if (!array) {
		fprintf(stderr, "coll schedule: %s:%d: %s\n", name, wrong.line, wrong.text);
		return false;
	}
	json_array_foreach(array, i, item) {
		char *one = json_dumps(item, JSON_COMPACT | JSON_ENCODE_ANY);

		memset(&why, 0, sizeof(why));
		error = one ? coll_json_parse(one, strlen(one), &s, &why) : -ENOMEM;
		why.line = 0;		/* of a line that is not the user's */
		fine &= report_parsed(name, error, s, &why, 0);
		free(one);
	}
	json_decref(array);
	return fine;
}

/* Empty lines and comments before a schedule. */
static size_t blank_length(const char *text, size_t bytes, u32 *line)
{
	size_t i;

	for (i = 0; i < bytes && strchr(" \t\n", text[i]) && text[i]; i++)
		*line += text[i] == '\n';
	return i;
}

/* Bytes until the next schedule begins, not counting the header at the start. */
static size_t text_length(const char *text, size_t bytes)
{
	const char *next = bytes ? memmem(text + 1, bytes - 1, "\nschedule ", 10) : NULL;

	return next ? (size_t)(next + 1 - text) : bytes;
}

/* Comment lines become empty lines: line numbers stay correct. */
static void blank_comments(char *text, size_t bytes)
{
	bool start = true, comment = false;
	size_t i;

	for (i = 0; i < bytes; i++) {
		if (start)
			comment = text[i] == '#';
		start = text[i] == '\n';
		if (comment && !start)
			text[i] = ' ';
	}
}

static bool check_text(const char *name, char *text, size_t bytes)
{
	u32 line = 0;
	bool fine = true;
	size_t skip;

	blank_comments(text, bytes);
	skip = blank_length(text, bytes, &line);
	do {
		struct coll_text_error why = { 0 };
		struct coll_schedule *s = NULL;
		size_t length, used, i;
		int error;

		text += skip;
		bytes -= skip;
		used = length = text_length(text, bytes);
		while (used > 1 && strchr(" \t\n", text[used - 2]))
			used--;
		error = coll_text_parse(text, used, &s, &why);
		fine &= report_parsed(name, error, s, &why, line);
		for (i = 0; i < length; i++)
			line += text[i] == '\n';
		skip = length;
	} while (skip < bytes);
	return fine;
}

static int check_file(const char *name)
{
	size_t bytes, skip = 0;
	char *text = read_text(name, &bytes);
	bool fine;

	if (!text)
		return COMMAND_ERROR;
	while (skip < bytes && strchr(" \t\n", text[skip]))
		skip++;
	if (skip < bytes && strchr("[{", text[skip]))
		fine = check_json(name, text + skip, bytes - skip);
	else
		fine = check_text(name, text, bytes);
	free(text);
	return fine ? COMMAND_OK : COMMAND_ERROR;
}

/* ---- options ------------------------------------------------------------ */

static bool parse_type(const struct option_table *table, const struct option_entry *option,
		       void *to, const char *name)
{
	struct coll_call *call = &((struct schedule_settings *)to)->call;
	const int type = coll_type_find(name, strlen(name));
	char valid[300];
	size_t used = 0;
	u32 i;

	if (type >= 0 && type != COLL_OPAQUE_TYPE) {
		call->type = type;
		call->element = coll_type_bytes(type);
		return true;
	}
	for (i = 0; i < COLL_TYPES && used < sizeof(valid); i++)
		used += snprintf(valid + used, sizeof(valid) - used, "%s%s", i ? ", " : "",
				 coll_type_name(i));
	return option_refuse(table, option, name, valid);
}

static bool parse_reduction(const struct option_table *table, const struct option_entry *option,
			    void *to, const char *name)
{
	struct coll_call *call = &((struct schedule_settings *)to)->call;
	const int reduction = coll_reduction_find(name, strlen(name));
	char valid[200];
	size_t used = 0;
	u32 i;

	if (reduction >= 0) {
		call->reduction = reduction;
		call->commutative = reduction != COLL_USER_REDUCTION;
		return true;
	}
	for (i = 0; i < COLL_REDUCTIONS && used < sizeof(valid) - 8; i++)
		used += snprintf(valid + used, sizeof(valid) - used, "%s, ",
				 coll_reduction_name(i));
	strcpy(valid + used, "user");
	return option_refuse(table, option, name, valid);
}

static bool parse_tuning(const char *text, struct schedule_settings *settings)
{
	char why[160];

	if (!coll_tuning_parse(settings->algo, text, &settings->tuning, why, sizeof(why)))
		return true;
	fprintf(stderr, "coll schedule: %s\n", why);
	return false;
}

static bool parse_algorithm(const char *text, struct schedule_settings *settings)
{
	const enum coll_collective collective = settings->call.collective;
	const size_t length = strcspn(text, ":");
	const struct coll_algo *const *algo;
	const char *separator = "";

	for (algo = coll_algos; *algo; algo++)
		if ((*algo)->collective == collective && strlen((*algo)->name) == length &&
		    !memcmp((*algo)->name, text, length)) {
			settings->algo = *algo;
			return !text[length] || parse_tuning(text + length + 1, settings);
		}
	fprintf(stderr, "coll schedule: %s has no algorithm '%s'; valid: ",
		coll_collective_names[collective], text);
	for (algo = coll_algos; *algo; algo++)
		if ((*algo)->collective == collective) {
			fprintf(stderr, "%s%s", separator, (*algo)->name);
			separator = ", ";
		}
	fprintf(stderr, "\n");
	return false;
}

static bool keep_tuning(const struct option_table *table, const struct option_entry *option,
			void *to, const char *text)
{
	char *all = ((struct schedule_settings *)to)->tuning_text;
	const size_t used = strlen(all),
		     bytes = sizeof(((struct schedule_settings *)to)->tuning_text);

	if (used + strlen(text) + 2 > bytes)
		return option_refuse(table, option, text, "at most 255 characters in all");
	sprintf(all + used, "%s%s", used ? "," : "", text);
	return true;
}

static const struct option_entry schedule_entries[] = {
	{ "rank", 0, "R", "only the schedule of this rank",
	  OPTION_TEXT(struct schedule_settings, rank_text), .otherwise = "all" },
	{ "root", 0, "R", "root of the collective",
	  OPTION_TEXT(struct schedule_settings, root_text), .otherwise = "0" },
	{ "clusters", 0, "A+B", "the first A ranks are one cluster, the next B another, ...",
	  OPTION_TEXT(struct schedule_settings, clusters_text) },
	{ "count", 0, "N", "elements of the vector, or of each rank's block",
	  OPTION_NUMBER(struct schedule_settings, call.count, 0, 1ULL << 40), .preset = "1" },
	{ "type", 0, "T", "type of the elements", .read = parse_type, .preset = "double" },
	{ "op", 0, "O", "reduction", .read = parse_reduction, .preset = "sum" },
	{ "in-place", 0, NULL, "the input is in OUT",
	  OPTION_FLAG(struct schedule_settings, call.in_place) },
	{ "option", 0, "K=V,...", "options of the algorithm; ALGORITHM:K=V,... does the same",
	  .read = keep_tuning },
	{ "json", 0, NULL, "print JSON",
	  OPTION_CHOICE(struct schedule_settings, format, FORMAT_JSON), .one_of = OPTION_OF_FORMATS },
	{ "dot", 0, NULL, "print a drawing: pipe it to dot -Tsvg",
	  OPTION_CHOICE(struct schedule_settings, format, FORMAT_DOT), .one_of = OPTION_OF_FORMATS },
	{ "goal", 0, NULL, "print a GOAL program for LogGOPSim",
	  OPTION_CHOICE(struct schedule_settings, format, FORMAT_GOAL), .one_of = OPTION_OF_FORMATS },
	{ "reduce-ns", 0, "X", "GOAL: time to reduce a byte",
	  OPTION_REAL(struct schedule_settings, reduce_ns, 0, 1e9), .unit = "ns", .preset = "0.1" },
	{ "check", 0, "FILE", "read schedules as text or JSON (- is stdin) and check them",
	  OPTION_TEXT(struct schedule_settings, check) },
	{ NULL },
};

static const char *const usage[] = {
	"usage: coll schedule COLLECTIVE ALGORITHM RANKS [OPTION ...]",
	"       coll schedule --check FILE",
	"",
	"Prints each rank's schedule: its ops, and the ops that each one waits for.",
	NULL,
};

static const char *const closing[] = {
	"coll verify --list names collectives, algorithms and their options.",
	"Exit code: 0 ok, 1 the schedule cannot be built or is refused, 2 wrong usage.",
	NULL,
};

const struct option_table cmd_schedule_options = {
	.command = "schedule",
	.usage = usage,
	.closing = closing,
	.list = { schedule_entries },
	.arguments = OPTIONS_ANY,
	.first = coll_collective_names,
	.firsts = COLL_COLLECTIVES,
};

/* The cluster of each rank. */
static bool parse_clusters(const char *text, struct schedule_settings *settings)
{
	struct coll_call *call = &settings->call;
	u32 size[CLUSTERS_MAX], rank = 0, i;

	if (!argument_sizes("schedule", "--clusters", text, CLUSTERS_MAX, call->ranks, size,
			    &call->clusters))
		return false;
	settings->cluster = memory_grow(NULL, call->ranks, sizeof(u32));
	for (i = 0; i < call->clusters; i++)
		while (size[i]--)
			settings->cluster[rank++] = i;
	call->cluster = settings->cluster;
	if (rank == call->ranks)
		return true;
	fprintf(stderr, "coll schedule: --clusters '%s' has %u ranks; "
			"valid: sizes that add up to %u\n", text, rank,
		call->ranks);
	return false;
}

/* COLLECTIVE ALGORITHM RANKS, and the options that depend on them. */
static bool parse_arguments(char **arguments, struct schedule_settings *settings)
{
	struct coll_call *call = &settings->call;
	u64 ranks, value = 0;
	int collective;

	if (!argument_collective("schedule", arguments[0], &collective))
		return false;
	call->collective = collective;
	if (!parse_algorithm(arguments[1], settings) ||
	    !parse_tuning(settings->tuning_text, settings))
		return false;
	if (!argument_number("schedule", "RANKS", arguments[2], 1,
			     settings->rank_text ? COLL_RANKS_MAX : ALL_RANKS_MAX, &ranks))
		return false;
	call->ranks = ranks;
	if (settings->clusters_text && !parse_clusters(settings->clusters_text, settings))
		return false;
	if (settings->root_text &&
	    !argument_number("schedule", "--root", settings->root_text, 0, ranks - 1, &value))
		return false;
	call->root = value;
	if (settings->rank_text) {
		if (!argument_number("schedule", "--rank", settings->rank_text, 0, ranks - 1,
				     &value))
			return false;
		settings->rank = value;
	}
	return true;
}

static bool settings_fit(const struct schedule_settings *settings)
{
	const struct coll_call *call = &settings->call;

	if (settings->rank != COLL_NONE && settings->format == FORMAT_GOAL && call->ranks > 1) {
		fprintf(stderr, "coll schedule: --goal needs all ranks, so no --rank\n");
		return false;
	}
	if (call->collective >= COLL_REDUCE && !coll_reduction_fits(call->type, call->reduction)) {
		fprintf(stderr, "coll schedule: --op %s is not defined for --type %s\n",
			coll_reduction_name(call->reduction), coll_type_name(call->type));
		return false;
	}
	return true;
}

int cmd_schedule(int argc, char **argv)
{
	struct schedule_settings settings = { .tuning = COLL_TUNING_UNSET, .rank = COLL_NONE };
	int arguments, status = COMMAND_USAGE;

	if (!options_read(&cmd_schedule_options, argc, argv, &settings))
		return COMMAND_USAGE;
	arguments = argc - optind;
	if (settings.check && !arguments)
		return check_file(settings.check);
	if (settings.check || arguments != 3) {
		fputs("coll schedule: valid: COLLECTIVE ALGORITHM RANKS, or --check FILE alone; "
		      "--help tells more\n", stderr);
		return COMMAND_USAGE;
	}
	if (parse_arguments(argv + optind, &settings) && settings_fit(&settings))
		status = show_schedules(&settings);
	free(settings.cluster);
	return status;
}
