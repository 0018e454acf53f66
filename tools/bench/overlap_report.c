// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The results of coll bench overlap: table, JSON, picture. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/palette.h"
#include "overlap.h"

const char *const overlap_cases[OVERLAP_CASES] = {
	"compute", "pure", "blocking", "noovlp", "ovlp-test", "ovlp-notest", "start", "product",
	"taken", "taken-alone",
};

static struct bench_figures overlap_report_figures(const struct overlap_mode *mode,
						   enum overlap_case what)
{
	return bench_figures(mode->sample[what], mode->samples);
}

/*
 * Share of the collective that is hidden behind the product, per cent, as the OSU and Intel
 * benchmarks define it: 100 (1 - (total - compute) / pure).
 */
static double overlap_report_overlap(const struct overlap_mode *mode, enum overlap_case what)
{
	const double compute = overlap_report_figures(mode, OVERLAP_COMPUTE).p50;
	const double pure = overlap_report_figures(mode, OVERLAP_PURE).p50;
	const double share = 1 - (overlap_report_figures(mode, what).p50 - compute) / pure;

	return pure > 0 ? 100 * (share < 0 ? 0 : share > 1 ? 1 : share) : 0;
}

/* Increase of the product's time beside the collective, us. */
static double overlap_report_lost(const struct overlap_mode *mode)
{
	return overlap_report_figures(mode, OVERLAP_PRODUCT).p50 -
	       overlap_report_figures(mode, OVERLAP_COMPUTE).p50;
}

/* Increase of the time that other tasks had on its CPU, us. Interrupts are not counted. */
static double overlap_report_taken(const struct overlap_mode *mode)
{
	return overlap_report_figures(mode, OVERLAP_TAKEN).p50 -
	       overlap_report_figures(mode, OVERLAP_TAKEN_ALONE).p50;
}

/* The CPU of the progress, for a title. */
static const char *overlap_report_where(enum overlap_place place)
{
	static const char *const text[OVERLAP_PLACES] = {
		"the rank's CPU",
		"a CPU of its own",
		"the rank's CPU, the kernel's on one of its own",
	};

	return text[place];
}

/* The base of the speed-up: progress by the application, no overlap. */
static double overlap_report_base(const struct overlap_report *report)
{
	int i;

	for (i = 0; i < OVERLAP_MODES; i++)
		if (report->mode[i].samples)
			return overlap_report_figures(&report->mode[i], OVERLAP_NONE).p50;
	return 0;
}

/* ---- table ----------------------------------------------------------------------- */

static void print_mode(const struct overlap_mode *mode, double first)
{
	const double compute = overlap_report_figures(mode, OVERLAP_COMPUTE).p50;
	int what;

	printf("\n%-8s collective alone %.1f us, product alone %.1f us, start %.1f us, "
	       "idle coll_progress() %.0f ns%s\n",
	       mode->name, overlap_report_figures(mode, OVERLAP_PURE).p50, compute,
	       overlap_report_figures(mode, OVERLAP_START).p50, mode->idle_call,
	       mode->wrong ? "  WRONG RESULTS" : "");
	for (what = OVERLAP_BLOCKING; what <= OVERLAP_NOTEST; what++) {
		const struct bench_figures f = overlap_report_figures(mode, what);

		printf("  %-12s %10.1f %10.1f %10.1f %9.3f", overlap_cases[what], f.p50, f.p90,
		       f.min, f.p50 > 0 ? first / f.p50 : 0);
		if (what >= OVERLAP_TEST)
			printf(" %8.1f", overlap_report_overlap(mode, what));
		if (what == OVERLAP_NOTEST)
			printf(" %9.1f %9.1f", overlap_report_lost(mode),
			       overlap_report_taken(mode));
		printf("\n");
	}
	if (mode->explanation[0])
		printf("  %s\n", mode->explanation);
}

void overlap_print_table(struct overlap_report *report)
{
	const struct overlap_options *options = report->options;
	const double first = overlap_report_base(report);
	char text[24];
	int i;

	printf("overlap of %d x %s of %s bytes, %d ranks, with %llu rows of %llu, %d threads, "
	       "progress on %s\n", options->flight, coll_collective_names[options->collective],
	       bench_size(options->bytes, text), options->ranks, (unsigned long long)report->rows,
	       (unsigned long long)options->matrix, options->threads,
	       overlap_report_where(options->place));
	printf("injected: %s; a link carries ", options->inject[0] ? options->inject : "nothing");
	if (options->pace)
		printf("%s bytes a second\n", bench_size(options->pace, text));
	else
		printf("what it can\n");
	printf("times in us, of all ranks together; speed-up over %s's noovlp; overlap in %%; what "
	       "the product lost,\nand of it to others on its CPU, in us\n", "the first mode");
	printf("  %-12s %10s %10s %10s %9s %8s %9s %9s\n", "case", "median", "p90", "min",
	       "speed-up", "overlap", "lost", "taken");
	for (i = 0; i < OVERLAP_MODES; i++) {
		if (report->mode[i].samples)
			print_mode(&report->mode[i], first);
		else if (report->mode[i].name)
			printf("\n%-8s not measured: %s\n", report->mode[i].name,
			       report->mode[i].problem);
	}
}

/* ---- JSON -------------------------------------------------------------------------- */

static void set_real(json_t *object, const char *key, double value)
{
	json_object_set_new(object, key, json_real(value));
}

static json_t *case_json(const struct overlap_mode *mode, enum overlap_case what, double first)
{
	const struct bench_figures f = overlap_report_figures(mode, what);
	json_t *object = json_object();

	json_object_set_new(object, "case", json_string(overlap_cases[what]));
	set_real(object, "mean_us", f.mean);
	set_real(object, "p50_us", f.p50);
	set_real(object, "p90_us", f.p90);
	set_real(object, "min_us", f.min);
	if (what >= OVERLAP_BLOCKING && what <= OVERLAP_NOTEST)
		set_real(object, "speedup", f.p50 > 0 ? first / f.p50 : 0);
	if (what == OVERLAP_TEST || what == OVERLAP_NOTEST)
		set_real(object, "overlap", overlap_report_overlap(mode, what));
	return object;
}

static json_t *mode_json(const struct overlap_mode *mode, double first)
{
	json_t *object = json_object(), *cases = json_array();
	int what;

	json_object_set_new(object, "mode", json_string(mode->name));
	json_object_set_new(object, "available", json_boolean(mode->samples > 0));
	if (!mode->samples) {
		json_object_set_new(object, "reason", json_string(mode->problem));
		json_decref(cases);
		return object;
	}
	for (what = 0; what < OVERLAP_CASES; what++)
		json_array_append_new(cases, case_json(mode, what, first));
	json_object_set_new(object, "iterations", json_integer(mode->samples));
	json_object_set_new(object, "wrong", json_integer(mode->wrong));
	set_real(object, "pure_us", overlap_report_figures(mode, OVERLAP_PURE).p50);
	set_real(object, "compute_us", overlap_report_figures(mode, OVERLAP_COMPUTE).p50);
	set_real(object, "total_us", overlap_report_figures(mode, OVERLAP_NOTEST).p50);
	set_real(object, "overlap", overlap_report_overlap(mode, OVERLAP_NOTEST));
	set_real(object, "start_us", overlap_report_figures(mode, OVERLAP_START).p50);
	set_real(object, "lost_us", overlap_report_lost(mode));
	set_real(object, "taken_us", overlap_report_taken(mode));
	set_real(object, "idle_call_ns", mode->idle_call);
	json_object_set_new(object, "explanation", json_string(mode->explanation));
	json_object_set_new(object, "cases", cases);
	return object;
}

void overlap_print_json(struct overlap_report *report)
{
	const struct overlap_options *options = report->options;
	json_t *all = json_object(), *modes = json_array();
	const double first = overlap_report_base(report);
	int i;

	json_object_set_new(all, "benchmark", json_string("overlap"));
	json_object_set_new(all, "collective",
			    json_string(coll_collective_names[options->collective]));
	json_object_set_new(all, "ranks", json_integer(options->ranks));
	json_object_set_new(all, "size", json_integer(options->bytes));
	json_object_set_new(all, "in_flight", json_integer(options->flight));
	json_object_set_new(all, "threads", json_integer(options->threads));
	json_object_set_new(all, "matrix", json_integer(options->matrix));
	json_object_set_new(all, "rows", json_integer(report->rows));
	json_object_set_new(all, "calls", json_integer(options->calls));
	json_object_set_new(all, "place", json_string(overlap_places[options->place]));
	json_object_set_new(all, "pace", json_integer(options->pace));
	json_object_set_new(all, "inject", json_string(options->inject));
	for (i = 0; i < OVERLAP_MODES; i++)
		if (report->mode[i].name)
			json_array_append_new(modes, mode_json(&report->mode[i], first));
	json_object_set_new(all, "modes", modes);
	json_dumpf(all, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(all);
}

/* ---- the picture -------------------------------------------------------------------- */

static void write_script(const struct overlap_report *report, FILE *to)
{
	const struct overlap_options *options = report->options;
	const double first = overlap_report_base(report);
	char text[24];
	int i, what;

	fprintf(to, "%sset terminal svg size 900,480 font 'sans,13' background paper\n"
		"set output '%s'\nset key outside right noenhanced\nset grid ytics lc rgb rule\n"
		"set border 3\nset tics nomirror\nset ylabel 'speed-up over no overlap'\n"
		"set title \"%d x %s of %s bytes, %d ranks%s, progress on %s\\n"
		"{/*0.8 injected: %s}\" noenhanced\n$modes << EOD\n",
		palette_gp, options->plot, options->flight, coll_collective_names[options->collective],
		bench_size(options->bytes, text), options->ranks,
		options->pace ? ", paced links" : "", overlap_report_where(options->place),
		options->inject[0] ? options->inject : "nothing");
	for (i = 0; i < OVERLAP_MODES; i++) {
		if (!report->mode[i].samples)
			continue;
		fprintf(to, "%s", report->mode[i].name);
		for (what = OVERLAP_BLOCKING; what <= OVERLAP_NOTEST; what++)
			fprintf(to, " %.4f",
				first / overlap_report_figures(&report->mode[i], what).p50);
		fprintf(to, "\n");
	}
	fprintf(to, "EOD\nset yrange [0:*]\nset style data histogram\nset style fill solid 0.85\n"
		"set style histogram clustered gap 1\nset boxwidth 0.9\nplot");
	for (what = OVERLAP_BLOCKING; what <= OVERLAP_NOTEST; what++)
		fprintf(to, "%s \\\n $modes using %d:xtic(1) lc %d title '%s'",
			what > OVERLAP_BLOCKING ? "," : "", what, what - 1, overlap_cases[what]);
	fprintf(to, "\n");
}

int overlap_plot(struct overlap_report *report)
{
	FILE *gnuplot = popen("gnuplot -", "we");
	int status = -1;

	if (gnuplot) {
		write_script(report, gnuplot);
		status = pclose(gnuplot);
	}
	if (status)
		fprintf(stderr, "coll bench: gnuplot did not draw %s; is gnuplot installed?\n",
			report->options->plot);
	return status ? -EIO : 0;
}
