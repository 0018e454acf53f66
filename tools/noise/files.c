// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* collnoise import, export and report. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/command.h"
#include "commands.h"
#include "compare.h"
#include "formats.h"
#include "options.h"
#include "page.h"
#include "plot.h"

struct files {
	const char *command;
	struct noise_import import;
	u32 format;		/* to */
	const char *output, *compare;
	struct node_cpus cpus;
	u64 quantum;
	bool json;
};

static const struct option_entry files_output[] = {
	{ "output", 'o', "FILE", "write there; - is the standard output",
	  OPTION_TEXT(struct files, output) },
	{ NULL },
};

/* ---- import: options ---------------------------------------------------------------------- */

static const char *const import_usage[] = {
	"usage: collnoise import -o CAPTURE FILE [FILE ...] [OPTION ...]",
	"",
	"Makes a capture of the files of other tools. A file that names no CPU belongs to one CPU:",
	"the first file to CPU 0, the second to CPU 1, ...",
	NULL,
};

static const struct option_entry import_entries[] = {
	{ "from", 0, "FORMAT", "format of the files; netgauge is also LogGOPSim's",
	  OPTION_WORD(struct files, import.format, noise_format_names), .count = NOISE_CSV,
	  .otherwise = "recognised" },
	{ "samples", 0, NULL, "osnoise: take whole gaps (sample_threshold), not the parts of them "
	  "that have a cause", OPTION_FLAG(struct files, import.samples) },
	{ NULL },
};

const struct option_table noise_import_options = {
	.command = "import",
	.usage = import_usage,
	.list = { files_output, import_entries },
	.arguments = OPTIONS_ANY,
};

/* ---- export: options ---------------------------------------------------------------------- */

static const char *const export_usage[] = {
	"usage: collnoise export --to FORMAT CAPTURE [OPTION ...]",
	"",
	"Writes a capture in the format of another tool.",
	NULL,
};

static const struct option_entry export_entries[] = {
	{ "to", 0, "FORMAT", "format; LogGOPSim reads netgauge (--noise-trace)",
	  OPTION_WORD(struct files, format, noise_format_names), .count = NOISE_FORMATS },
	{ "cpus", 'c', "CPU", "netgauge and ftq hold one CPU: this one",
	  NOISE_OPTION_CPUS(struct files, cpus),
	  .otherwise = "of several CPUs FILE.N for CPU N" },
	{ "quantum", 0, "T", "ftq: quantum",
	  OPTION_TIME(struct files, quantum, "us", NODE_US, 3600 * NODE_S), .preset = "1ms" },
	{ NULL },
};

const struct option_table noise_export_options = {
	.command = "export",
	.usage = export_usage,
	.list = { files_output, export_entries },
	.arguments = 1,
};

/* ---- report: options ---------------------------------------------------------------------- */

static const char *const report_usage[] = {
	"usage: collnoise report CAPTURE [FILE.html | FILE.svg] [OPTION ...]",
	"",
	"Says how good a node is, what its noise costs, who causes it and what to do, with the",
	"evidence: a page that needs no other file. As SVG, one picture of the evidence. Without",
	"a FILE, prints tables.",
	NULL,
};

static const struct option_entry report_entries[] = {
	{ "compare", 0, "FILE", "also what has changed since that capture",
	  OPTION_TEXT(struct files, compare) },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct files, json) },
	{ NULL },
};

const struct option_table noise_report_options = {
	.command = "report",
	.usage = report_usage,
	.list = { report_entries },
	.arguments = 2,
};

/* Checks the number of arguments: getopt has put them last. */
static bool files_read(const struct option_table *table, int argc, char **argv, struct files *f)
{
	*f = (struct files){ .command = table->command, .format = NOISE_FORMATS,
			     .import.format = NOISE_GUESS };
	if (!options_read(table, argc, argv, f))
		return false;
	if (optind < argc)
		return true;
	fprintf(stderr, "collnoise %s: a file is needed; --help tells more\n", f->command);
	return false;
}

static int cannot_write(const struct files *f, const char *path, int error)
{
	fprintf(stderr, "collnoise %s: cannot write %s: %s\n", f->command, path, strerror(-error));
	return COMMAND_ERROR;
}

/* ---- import --------------------------------------------------------------------------- */

static int add_capture(struct node_capture *to, const struct node_capture *from)
{
	u64 i;
	u32 k;
	int status = 0;

	for (k = 0; !status && k < from->head.cpus; k++)
		status = node_capture_add_cpu(to, &from->cpu[k]);
	for (i = 0; !status && i < from->head.events; i++) {
		const struct coll_noise_event *e = &from->event[i];
		const struct coll_noise_source *source = e->source ?
			&from->source[e->source - 1] : NULL;
		u32 index = 0;

		if (source)
			status = node_capture_source(to, source->cause, source->number,
						     source->name, &index);
		if (!status)
			status = node_capture_add_event(to, e->start, e->duration, e->cpu,
							e->cause, index);
	}
	if (from->head.threshold > to->head.threshold)
		to->head.threshold = from->head.threshold;
	return status;
}

static bool share_a_cpu(const struct node_capture *a, const struct node_capture *b)
{
	u32 i, k;

	for (i = 0; i < a->head.cpus; i++)
		for (k = 0; k < b->head.cpus; k++)
			if (a->cpu[i].cpu == b->cpu[k].cpu)
				return true;
	return false;
}

static int load_files(struct files *f, char **file, int count, struct node_capture *all)
{
	struct node_capture one;
	int i, status = 0;

	if (count == 1)
		return noise_load(f->command, *file, &f->import, all);
	*all = (struct node_capture){ 0 };
	node_capture_init(all);
	*all->head.host = *all->head.kernel = 0;
	for (i = 0; !status && i < count; i++) {
		f->import.cpu = i;
		status = noise_load(f->command, file[i], &f->import, &one);
		if (status)
			break;
		if (share_a_cpu(all, &one)) {
			fprintf(stderr, "collnoise import: %s: another file has the same CPUs\n",
				file[i]);
			status = -EINVAL;
		} else {
			status = add_capture(all, &one);
		}
		node_capture_free(&one);
	}
	return status ? status : node_capture_finish(all);
}

/* To a file, or the standard output. */
static int print_to(const struct files *f, const char *path, const struct node_capture *capture,
		    enum noise_format format, u32 cpu)
{
	FILE *to = path && strcmp(path, "-") ? fopen(path, "we") : stdout;
	int status = to ? noise_format_print(capture, format, cpu, f->quantum, to) : -errno;

	if (to && to != stdout && fclose(to) && !status)
		status = -errno;
	if (to == stdout)
		return status ? COMMAND_ERROR : COMMAND_OK;	/* command_run() says it */
	return status ? cannot_write(f, path, status) : COMMAND_OK;
}

int noise_import_files(int argc, char **argv)
{
	struct files f;
	struct node_capture capture;
	int status;

	if (!files_read(&noise_import_options, argc, argv, &f))
		return COMMAND_USAGE;
	if (!f.output) {
		fprintf(stderr, "collnoise import: -o CAPTURE is needed; - is the standard "
			"output\n");
		return COMMAND_USAGE;
	}
	if (load_files(&f, argv + optind, argc - optind, &capture))
		return COMMAND_ERROR;
	status = print_to(&f, f.output, &capture, NOISE_CAPTURE, 0);
	node_capture_free(&capture);
	return status;
}

/* ---- export --------------------------------------------------------------------------- */

static int export_all(const struct files *f, const struct node_capture *capture)
{
	char path[4096];
	int status = COMMAND_OK;
	u32 i;

	if (!noise_format_is_single(f->format))
		return print_to(f, f->output, capture, f->format, 0);
	if (node_cpus_count(&f->cpus) || capture->head.cpus == 1) {
		for (i = 0; i < capture->head.cpus; i++)
			if (capture->head.cpus == 1 ||
			    node_cpus_has(&f->cpus, capture->cpu[i].cpu))
				return print_to(f, f->output, capture, f->format, i);
		fprintf(stderr, "collnoise export: -c: the capture does not contain that CPU\n");
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
	struct files f;
	struct node_capture capture;
	int status;

	if (!files_read(&noise_export_options, argc, argv, &f))
		return COMMAND_USAGE;
	if (f.format == NOISE_FORMATS) {
		fprintf(stderr, "collnoise export: --to FORMAT is needed; --help tells more\n");
		return COMMAND_USAGE;
	}
	if (noise_load(f.command, argv[optind], &f.import, &capture))
		return COMMAND_ERROR;
	status = export_all(&f, &capture);
	node_capture_free(&capture);
	return status;
}

/* ---- report ----------------------------------------------------------------------------- */

static bool ends_in(const char *path, const char *end)
{
	const size_t length = strlen(path), tail = strlen(end);

	return length > tail && !strcmp(path + length - tail, end);
}

static int files_report(const struct files *f, const struct noise_view *view,
			const struct noise_view *before, const char *path)
{
	struct noise_assessment assessment;
	const bool page = path && ends_in(path, ".html");
	json_t *all;

	if ((page || f->json) && noise_assess(view, &assessment)) {
		fprintf(stderr, "collnoise report: no memory\n");
		return COMMAND_ERROR;
	}

	if (f->json) {
		all = noise_view_json(view);
		noise_assessment_json(&assessment, all);
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
	return (page ? noise_page(f->command, &assessment, path) :
		       noise_plot_svg(f->command, view, path)) ? COMMAND_ERROR : COMMAND_OK;
}

static int load_view(const struct files *f, const char *path, struct node_capture *capture,
		     struct noise_view *view)
{
	*view = (struct noise_view){ 0 };
	return noise_load(f->command, path, &f->import, capture) || noise_view_init(view, capture);
}

int noise_report(int argc, char **argv)
{
	struct files f;
	struct node_capture capture = { 0 }, earlier = { 0 };
	struct noise_view view = { 0 }, before = { 0 };
	const char *path;
	int status = COMMAND_ERROR;

	if (!files_read(&noise_report_options, argc, argv, &f))
		return COMMAND_USAGE;
	path = argc - optind > 1 ? argv[optind + 1] : NULL;
	if (path && !ends_in(path, ".svg") && !ends_in(path, ".html")) {
		fprintf(stderr, "collnoise report: '%s'; valid: a file name ending in .html or "
			".svg\n", path);
		return COMMAND_USAGE;
	}
	if (!load_view(&f, argv[optind], &capture, &view) &&
	    (!f.compare || !load_view(&f, f.compare, &earlier, &before)))
		status = files_report(&f, &view, f.compare ? &before : NULL, path);
	noise_view_free(&view);
	noise_view_free(&before);
	node_capture_free(&capture);
	node_capture_free(&earlier);
	return status;
}
