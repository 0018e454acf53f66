// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/arguments.h"
#include "tools/common/palette.h"
#include "plot.h"
#include "node/units.h"

/*
 * Pictures have this many columns and rows of points; an event at an occupied point is not drawn.
 */
enum { COLUMNS = 560, ROWS_A_DECADE = 24, DECADES = 11, BARS = 14, SERIES_MAX = 16, LABELS = 8 };

/* In single quotes for gnuplot. */
static void put_quoted(const char *text, FILE *to)
{
	putc('\'', to);
	for (; *text; text++) {
		if (*text == '\'')
			putc('\'', to);
		putc((unsigned char)*text < ' ' ? ' ' : *text, to);
	}
	putc('\'', to);
}

/* ---- timeline ------------------------------------------------------------------------- */

static double span_seconds(const struct node_capture *capture)
{
	u64 end = 1;
	u32 c;

	for (c = 0; c < capture->head.cpus; c++) {
		const struct coll_noise_event *event = node_capture_events(capture, c);
		const u64 events = capture->cpu[c].events;
		const u64 last = events ? event[events - 1].start + event[events - 1].duration : 0;
		const u64 watched = capture->cpu[c].first + capture->cpu[c].watched;

		end = last > end ? last : end;
		end = watched > end ? watched : end;
	}
	return end / 1e9;
}

/* Series of points: one a cause where causes are known, else one a CPU. */
static bool by_cause(const struct noise_view *view)
{
	return view->blames > 1 || (view->blames && view->blame->cause != COLL_NOISE_UNKNOWN);
}

static void write_series(const struct noise_view *view, u32 series, bool causes, double span,
			 u8 *taken, FILE *to)
{
	const struct node_capture *capture = view->capture;
	u64 i;

	memset(taken, 0, COLUMNS * ROWS_A_DECADE * DECADES);
	fprintf(to, "$series%u << EOD\n", series);
	for (i = 0; i < capture->head.events; i++) {
		const struct coll_noise_event *e = &capture->event[i];
		const u32 column = e->start / 1e9 / span * (COLUMNS - 1);
		u32 row = e->duration ? log10(e->duration) * ROWS_A_DECADE : 0;
		u8 *place;

		if (causes ? e->cause != series : e->cpu != capture->cpu[series].cpu)
			continue;
		row = row < ROWS_A_DECADE * DECADES ? row : ROWS_A_DECADE * DECADES - 1;
		place = &taken[row * COLUMNS + (column < COLUMNS ? column : COLUMNS - 1)];
		if (!*place)
			fprintf(to, "%.6f %.3f\n", e->start / 1e9, e->duration / 1e3);
		*place = 1;
	}
	fprintf(to, "EOD\n");
}

static int write_timeline(const struct noise_view *view, FILE *to)
{
	const bool causes = by_cause(view);
	const u32 cpus = view->capture->head.cpus;
	const u32 series = causes ? COLL_NOISE_CAUSES : cpus < SERIES_MAX ? cpus : SERIES_MAX;
	const double span = span_seconds(view->capture);
	u8 *taken = malloc(COLUMNS * ROWS_A_DECADE * DECADES);
	u32 s, k, shown = 0;

	if (!taken)
		return -ENOMEM;
	for (s = 0; s < series; s++)
		write_series(view, s, causes, span, taken, to);
	free(taken);
	fprintf(to, "set title 'Events over time'\nset xlabel 's'\nset ylabel 'us'\n"
		"set logscale y\nset xrange [0:%.6f]\nset yrange [*:*]\nset key above\nplot", span);
	for (s = 0; s < series; s++) {
		bool any = !causes;

		for (k = 0; k < view->blames; k++)
			any |= view->blame[k].cause == s;
		if (!any)
			continue;
		fprintf(to, "%s \\\n $series%u using 1:2 with points pt 7 ps 0.25 lc %u title ",
			shown ? "," : "", s, shown + 1);
		if (causes)
			fprintf(to, "'%s'", node_cause_name(s));
		else
			fprintf(to, "'CPU %u'", view->capture->cpu[s].cpu);
		shown++;
	}
	fprintf(to, "%s\nunset logscale\nset xrange [*:*]\nset key off\n",
		shown ? "" : " NaN notitle");
	return 0;
}

/* ---- histogram ------------------------------------------------------------------------ */

static void write_histogram(const struct noise_view *view, FILE *to)
{
	const struct noise_summary *s = &view->all;
	char text[24];
	u32 i, first = 0, end = NOISE_BUCKETS;

	while (end > first + 1 && !s->bucket[end - 1].count)
		end--;
	while (first + 1 < end && !s->bucket[first].count)
		first++;
	fprintf(to, "$lengths << EOD\n");
	for (i = first; i < end; i++)
		fprintf(to, "\"%s\" %llu %.9f\n", node_time_text(noise_bucket_edge(i), text),
			(unsigned long long)s->bucket[i].count,
			s->watched ? 100. * s->bucket[i].total / s->watched : 0);
	fprintf(to, "EOD\nset title 'Length: events (bars), share of the time (line)'\n"
		"set xlabel 'from'\nset ylabel 'events'\nset y2label '%% of the time'\nset y2tics\n"
		"set logscale y\nset yrange [0.5:*]\nset y2range [0:*]\nset xtics rotate by -45\n"
		"set boxwidth 0.85\nset style fill solid 0.6\n"
		"plot $lengths using 0:2:xtic(1) with boxes lc 1, "
		"$lengths using 0:3 axes x1y2 with linespoints lc 2 lw 2 pt 7 ps 0.4\n"
		"unset logscale\nunset y2tics\nunset y2label\nset xtics norotate autofreq\n"
		"set yrange [*:*]\n");
}

/* ---- causes ------------------------------------------------------------------------------- */

struct bar {
	char name[80];
	double value;
};

static int largest_first(const void *a, const void *b)
{
	const struct bar *x = a, *y = b;

	return (x->value < y->value) - (x->value > y->value);
}

/* By time if causes are known; else by the kernel's counts. */
static u32 collect_bars(const struct noise_view *view, struct bar **bars)
{
	const struct node_capture *capture = view->capture;
	const bool causes = by_cause(view);
	u32 count = 0, i;

	*bars = calloc(view->blames + capture->head.sources + 1, sizeof(**bars));
	if (!*bars)
		return 0;
	for (i = 0; causes && i < view->blames; i++) {
		noise_blame_text(&view->blame[i], (*bars)[count].name);
		(*bars)[count++].value = 100. * view->blame[i].total /
					 (view->all.watched ? view->all.watched : 1);
	}
	for (i = 0; !causes && i < capture->head.sources; i++) {
		const struct noise_blame blame = { .source = &capture->source[i],
						   .cause = capture->source[i].cause };

		noise_blame_text(&blame, (*bars)[count].name);
		(*bars)[count].value = capture->source[i].times * 1e9 * capture->head.cpus /
				       (view->all.watched ? view->all.watched : 1);
		count += (*bars)[count].value > 0;
	}
	qsort(*bars, count, sizeof(**bars), largest_first);
	return count < BARS ? count : BARS;
}

static void write_causes(const struct noise_view *view, FILE *to)
{
	struct bar *bars;
	const u32 count = collect_bars(view, &bars);
	u32 i;

	fprintf(to, "$who << EOD\n");
	for (i = 0; i < count; i++)
		fprintf(to, "%u %.9g\n", count - 1 - i, bars[i].value);
	fprintf(to,
		"%sEOD\nset title '%s'\nset xlabel '%s'\nset ylabel ''\n"
		"set logscale x\nset xrange [%.9g:%.9g]\nset yrange [-0.6:%.1f]\nset ytics (",
		count ? "" : "0 NaN\n",
		by_cause(view) ? "Causes" : "Active meanwhile (not joined to events)",
		by_cause(view) ? "% of the time" : "times a second, all CPUs",
		count ? bars[count - 1].value / 10 : 1, count ? bars[0].value * 2 : 10,
		(count ? count : 1) - 0.4);
	for (i = 0; i < count; i++) {
		fprintf(to, "%s", i ? ", " : "");
		put_quoted(bars[i].name, to);
		fprintf(to, " %u", count - 1 - i);
	}
	fprintf(to, "%s) noenhanced font ',10'\nset lmargin 34\n"
		"plot $who using 2:1:(1e-12):2:($1-0.35):($1+0.35) with boxxyerror lc 3 "
		"fill solid 0.6\nunset logscale\nset ytics autofreq font ',12'\nunset lmargin\n"
		"set yrange [*:*]\nset ytics enhanced\n", count ? "" : "'nothing' 0");
	free(bars);
}

/* ---- spectrum -------------------------------------------------------------------------------- */

static void write_spectrum(const struct noise_view *view, FILE *to)
{
	const struct noise_spectrum *s = &view->spectrum;
	u32 k = 1, i;

	fprintf(to, "$spectrum << EOD\n%s", s->points ? "" : "1 1\n");
	while (k < s->points) {	/* Of points in one column of pixels the highest. */
		const u32 end = k + 1 + k / 150;
		double most = 0, at = k;

		for (; k < end && k < s->points; k++)
			if (s->power[k] > most) {
				most = s->power[k];
				at = k;
			}
		fprintf(to, "%.6g %.6g\n", at * s->step, most > 1e-3 ? most : 1e-3);
	}
	fprintf(to, "EOD\nset title 'Spectrum: power over frequency (1: random)'\n"
		    "set xlabel 'Hz'\nset ylabel ''\nset logscale xy\nset xrange [*:*]\nset yrange "
		    "[0.1:*]\n");
	for (i = 0; i < s->peaks && i < LABELS; i++) {
		char text[NOISE_PEAK_NAME + 32];

		snprintf(text, sizeof(text), "%.5g Hz  %.48s", s->peak[i].hz, s->peak[i].name);
		fprintf(to, "set label %u ", i + 1);
		put_quoted(text, to);
		fprintf(to, " at graph 0.03,%.3f font ',10' noenhanced\n", 0.95 - 0.045 * i);
	}
	fprintf(to, "plot $spectrum using 1:2 with lines lc 4, %.6g with lines lc 2 dt 2\n"
		"unset logscale\n", s->least > 0 ? s->least : 1);
	for (i = 0; i < s->peaks && i < LABELS; i++)
		fprintf(to, "unset label %u\n", i + 1);
}

/* ---- the picture -------------------------------------------------------------------------- */

static int write_script(const void *data, FILE *to)
{
	const struct noise_view *view = data;
	const struct node_capture *capture = view->capture;
	char title[256];
	int status;

	snprintf(title, sizeof(title), "%s%s%s: %u CPU%s, %.4g s, %.4f %% of the time taken",
		 *capture->head.host ? capture->head.host : "noise",
		 *capture->head.kernel ? ", Linux " : "", capture->head.kernel, capture->head.cpus,
		 capture->head.cpus == 1 ? "" : "s",
		 capture->head.cpus ? capture->cpu[0].watched / 1e9 : 0, 100 * view->all.share);
	fprintf(to, "set multiplot layout 2,2 title ");
	put_quoted(title, to);
	fprintf(to, " noenhanced\nset grid lc rgb rule\nset border 3\nset tics nomirror\n");
	status = write_timeline(view, to);
	write_histogram(view, to);
	write_causes(view, to);
	write_spectrum(view, to);
	fprintf(to, "unset multiplot\n");
	return status;
}

int noise_plot_draw(const char *command, noise_plot_writer *writer, const void *data,
		    const char *path)
{
	FILE *gnuplot;
	int status;

	fflush(stdout);
	gnuplot = popen("gnuplot -", "we");
	status = gnuplot ? 0 : -errno;
	if (gnuplot) {
		fprintf(gnuplot, "%sset encoding utf8\nset terminal svg size 1280,900 font 'sans,12' "
			"background paper\nset output ", palette_gp);
		put_quoted(path, gnuplot);
		putc('\n', gnuplot);
		status = writer(data, gnuplot);
	}
	if (gnuplot && pclose(gnuplot) && !status)
		status = -EIO;
	if (status)
		fprintf(stderr, "%s %s: gnuplot did not draw %s; is it installed, and the file's "
			"folder writable?\n", argument_program, command, path);
	return status;
}

int noise_plot_svg(const char *command, const struct noise_view *view, const char *path)
{
	return noise_plot_draw(command, write_script, view, path);
}
