// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* collnoise import, export and report: captures and what becomes of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/command.h"
#include "commands.h"
#include "compare.h"
#include "formats.h"
#include "options.h"
#include "plot.h"

enum {
	OPTION_FROM = 256,
	OPTION_TO,
	OPTION_SAMPLES,
	OPTION_QUANTUM,
	OPTION_JSON,
	OPTION_COMPARE,
};

static const char *const help_import[] = {
	"usage: collnoise import -o CAPTURE FILE [FILE ...] [OPTION ...]",
	"",
	"Makes a capture of the files of other tools. A file that names no CPUs is a CPU's: the",
	"first file CPU 0's, the second CPU 1's, ...",
	"",
	"  -o, --output CAPTURE  - is the standard output",
	"      --from FORMAT     netgauge (also LogGOPSim's), osnoise, ftq or capture (default: as",
	"                        the file looks)",
	"      --samples         of osnoise's trace take whole gaps (sample_threshold), not the",
	"                        parts of them that have a cause",
	NULL,
};

static const char *const help_export[] = {
	"usage: collnoise export --to FORMAT CAPTURE [OPTION ...]",
	"",
	"      --to FORMAT       netgauge (LogGOPSim reads it: --noise-trace), osnoise, ftq, csv "
	"or",
	"                        capture",
	"  -o, --output FILE     (default: the standard output)",
	"  -c, --cpus CPU        netgauge and ftq hold one CPU: this one; without it, of several",
	"                        CPUs FILE.N is CPU N's",
	"      --quantum T       of ftq (default 1ms; a bare number: microseconds)",
	NULL,
};

static const char *const help_report[] = {
	"usage: collnoise report CAPTURE [FILE.html | FILE.svg] [OPTION ...]",
	"",
	"Draws when noise came, how long it stayed, who it was and how regular: one picture, or a",
	"page that needs no other file. Without a FILE, tables.",
	"",
	"      --compare FILE    also what changed since that capture",
	"      --json            for programs",
	NULL,
};

struct files {
	const char *command;
	struct noise_import import;
	u32 format;		/* to */
	const char *output, *compare;
	struct noise_cpus cpus;
	u64 quantum;
	bool json;
};

static const struct option options_import[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "from", required_argument, NULL, OPTION_FROM },
	{ "samples", no_argument, NULL, OPTION_SAMPLES },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const struct option options_export[] = {
	{ "to", required_argument, NULL, OPTION_TO },
	{ "output", required_argument, NULL, 'o' },
	{ "cpus", required_argument, NULL, 'c' },
	{ "quantum", required_argument, NULL, OPTION_QUANTUM },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const struct option options_report[] = {
	{ "compare", required_argument, NULL, OPTION_COMPARE },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static bool read_option(struct files *f, int key, char **argv, const struct option *known)
{
	u32 format;

	switch (key) {
	case 'o':
		f->output = optarg;
		return true;
	case 'c':
		return noise_option_cpus(f->command, "-c", optarg, &f->cpus);
	case OPTION_FROM:
		if (!argument_word(f->command, "format", optarg, noise_format_names, NOISE_CSV,
				   &format))
			return false;
		f->import.format = format;
		return true;
	case OPTION_TO:
		return argument_word(f->command, "format", optarg, noise_format_names,
				     NOISE_FORMATS, &f->format);
	case OPTION_SAMPLES:
		return f->import.samples = true;
	case OPTION_QUANTUM:
		return noise_option_time(f->command, "--quantum", optarg, NOISE_US, NOISE_US,
				   3600 * NOISE_S, &f->quantum);
	case OPTION_COMPARE:
		f->compare = optarg;
		return true;
	case OPTION_JSON:
		return f->json = true;
	default:
		return argument_unknown(f->command, key, argv, known);
	}
}

/* As many arguments as these; getopt has put them last. */
static bool read_options(int argc, char **argv, struct files *f, const struct option *known,
			 const char *letters, const char *const *help, int least, int most)
{
	int key;

	opterr = 0;
	f->format = NOISE_FORMATS;
	f->import.format = NOISE_GUESS;
	f->quantum = NOISE_MS;
	while ((key = getopt_long(argc, argv, letters, known, NULL)) != -1) {
		if (key == 'h') {
			argument_help(help, stdout);
			exit(COMMAND_OK);
		}
		if (!read_option(f, key, argv, known))
			return false;
	}
	if (argc - optind >= least && (!most || argc - optind <= most))
		return true;
	fprintf(stderr, "collnoise %s: %s; --help tells more\n", f->command,
		argc - optind < least ? "a file is needed" : "too many arguments");
	return false;
}

static int cannot_write(const struct files *f, const char *path, int error)
{
	fprintf(stderr, "collnoise %s: cannot write %s: %s\n", f->command, path, strerror(-error));
	return COMMAND_ERROR;
}

/* ---- import --------------------------------------------------------------------------- */

static int add_capture(struct noise_capture *to, const struct noise_capture *from)
{
	u64 i;
	u32 k;
	int status = 0;

	for (k = 0; !status && k < from->head.cpus; k++)
		status = noise_capture_add_cpu(to, &from->cpu[k]);
	for (i = 0; !status && i < from->head.events; i++) {
		const struct coll_noise_event *e = &from->event[i];
		const struct coll_noise_source *source = e->source ?
			&from->source[e->source - 1] : NULL;
		u32 index = 0;

		if (source)
			status = noise_capture_source(to, source->cause, source->number,
						      source->name, &index);
		if (!status)
			status = noise_capture_add_event(to, e->start, e->duration, e->cpu,
							 e->cause, index);
	}
	if (from->head.threshold > to->head.threshold)
		to->head.threshold = from->head.threshold;
	return status;
}

static bool share_a_cpu(const struct noise_capture *a, const struct noise_capture *b)
{
	u32 i, k;

	for (i = 0; i < a->head.cpus; i++)
		for (k = 0; k < b->head.cpus; k++)
			if (a->cpu[i].cpu == b->cpu[k].cpu)
				return true;
	return false;
}

static int load_files(struct files *f, char **file, int count, struct noise_capture *all)
{
	struct noise_capture one;
	int i, status = 0;

	if (count == 1)
		return noise_load(f->command, *file, &f->import, all);
	*all = (struct noise_capture){ 0 };
	noise_capture_init(all);
	*all->head.host = *all->head.kernel = 0;
	for (i = 0; !status && i < count; i++) {
		f->import.cpu = i;
		status = noise_load(f->command, file[i], &f->import, &one);
		if (status)
			break;
		if (share_a_cpu(all, &one)) {
			fprintf(stderr, "collnoise import: %s: its CPUs are another file's too\n",
				file[i]);
			status = -EINVAL;
		} else {
			status = add_capture(all, &one);
		}
		noise_capture_free(&one);
	}
	return status ? status : noise_capture_finish(all);
}

/* To a file, or the standard output. */
static int print_to(const struct files *f, const char *path, const struct noise_capture *capture,
		    enum noise_format format, u32 cpu)
{
	FILE *to = path && strcmp(path, "-") ? fopen(path, "we") : stdout;
	int status = to ? noise_format_print(capture, format, cpu, f->quantum, to) : -errno;

	if (to && to != stdout && fclose(to) && !status)
		status = -errno;
	return status ? cannot_write(f, path ? path : "standard output", status) : COMMAND_OK;
}

int noise_import_files(int argc, char **argv)
{
	struct files f = { .command = "import" };
	struct noise_capture capture;
	int status;

	if (!read_options(argc, argv, &f, options_import, ":o:h", help_import, 1, 0))
		return COMMAND_USAGE;
	if (!f.output) {
		fprintf(stderr, "collnoise import: -o CAPTURE is needed; - is the standard "
			"output\n");
		return COMMAND_USAGE;
	}
	if (load_files(&f, argv + optind, argc - optind, &capture))
		return COMMAND_ERROR;
	status = print_to(&f, f.output, &capture, NOISE_CAPTURE, 0);
	noise_capture_free(&capture);
	return status;
}

/* ---- export --------------------------------------------------------------------------- */

static int export_all(const struct files *f, const struct noise_capture *capture)
{
	char path[4096];
	int status = COMMAND_OK;
	u32 i;

	if (!noise_format_is_single(f->format))
		return print_to(f, f->output, capture, f->format, 0);
	if (noise_cpus_count(&f->cpus) || capture->head.cpus == 1) {
		for (i = 0; i < capture->head.cpus; i++)
			if (capture->head.cpus == 1 ||
			    noise_cpus_has(&f->cpus, capture->cpu[i].cpu))
				return print_to(f, f->output, capture, f->format, i);
		fprintf(stderr, "collnoise export: the capture has not that CPU\n");
		return COMMAND_ERROR;
	}
	if (!f->output || !strcmp(f->output, "-")) {
		fprintf(stderr,
			"collnoise export: %s holds one CPU, the capture has %u: -c CPU, or "
			"-o FILE for FILE.N\n",
			noise_format_names[f->format], capture->head.cpus);
		return COMMAND_USAGE;
	}
	for (i = 0; status == COMMAND_OK && i < capture->head.cpus; i++) {
		snprintf(path, sizeof(path), "%s.%u", f->output, capture->cpu[i].cpu);
		status = print_to(f, path, capture, f->format, i);
	}
	return status;
}

int noise_export(int argc, char **argv)
{
	struct files f = { .command = "export" };
	struct noise_capture capture;
	int status;

	if (!read_options(argc, argv, &f, options_export, ":o:c:h", help_export, 1, 1))
		return COMMAND_USAGE;
	if (f.format == NOISE_FORMATS) {
		fprintf(stderr, "collnoise export: --to FORMAT is needed; --help tells more\n");
		return COMMAND_USAGE;
	}
	if (noise_load(f.command, argv[optind], &f.import, &capture))
		return COMMAND_ERROR;
	status = export_all(&f, &capture);
	noise_capture_free(&capture);
	return status;
}

/* ---- report ----------------------------------------------------------------------------- */

static bool ends_in(const char *path, const char *end)
{
	const size_t length = strlen(path), tail = strlen(end);

	return length > tail && !strcmp(path + length - tail, end);
}

static int files_tell(const struct files *f, const struct noise_view *view,
		      const struct noise_view *before, const char *path)
{
	json_t *all;

	if (f->json) {
		all = noise_view_json(view);
		if (before)
			json_object_set_new(all, "compare", noise_compare_json(before, view));
		noise_json_print(all, stdout);
	} else if (!path || before) {
		noise_view_print(view, stdout);
		if (before)
			noise_compare_print(before, view, stdout);
	}
	if (!path)
		return COMMAND_OK;
	return (ends_in(path, ".svg") ? noise_plot_svg : noise_plot_html)(f->command, view, path) ?
		       COMMAND_ERROR : COMMAND_OK;
}

static int load_view(const struct files *f, const char *path, struct noise_capture *capture,
		     struct noise_view *view)
{
	*view = (struct noise_view){ 0 };
	return noise_load(f->command, path, &f->import, capture) || noise_view_init(view, capture);
}

int noise_report(int argc, char **argv)
{
	struct files f = { .command = "report" };
	struct noise_capture capture = { 0 }, earlier = { 0 };
	struct noise_view view = { 0 }, before = { 0 };
	const char *path;
	int status = COMMAND_ERROR;

	if (!read_options(argc, argv, &f, options_report, ":h", help_report, 1, 2))
		return COMMAND_USAGE;
	path = argc - optind > 1 ? argv[optind + 1] : NULL;
	if (path && !ends_in(path, ".svg") && !ends_in(path, ".html")) {
		fprintf(stderr, "collnoise report: '%s'; valid: a file name ending in .html or "
			".svg\n", path);
		return COMMAND_USAGE;
	}
	if (!load_view(&f, argv[optind], &capture, &view) &&
	    (!f.compare || !load_view(&f, f.compare, &earlier, &before)))
		status = files_tell(&f, &view, f.compare ? &before : NULL, path);
	noise_view_free(&view);
	noise_view_free(&before);
	noise_capture_free(&capture);
	noise_capture_free(&earlier);
	return status;
}
