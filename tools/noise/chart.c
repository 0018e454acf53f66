// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "node/report/html.h"

/* All charts have this width, and their marks between these edges. */
enum { WIDTH = 960, LEFT = 72, RIGHT = 944, TOP = 10, TICKS = 8 };
enum { SPECTRUM_COLUMNS = RIGHT - LEFT, SPECTRUM_LABELS = 6 };

static const u8 cause_series[COLL_NOISE_CAUSES] = {
	[COLL_NOISE_UNKNOWN] = 8,  [COLL_NOISE_HARDWARE] = 2, [COLL_NOISE_STEAL] = 4,
	[COLL_NOISE_NMI] = 6,	   [COLL_NOISE_IRQ] = 1,      [COLL_NOISE_SOFTIRQ] = 5,
	[COLL_NOISE_THREAD] = 3,   [COLL_NOISE_INJECTED] = 7,
};

const char *chart_class(enum coll_noise_cause cause)
{
	static const char *const classes[] = { "s1", "s1", "s2", "s3", "s4", "s5", "s6", "s7",
					       "s8" };

	return classes[cause < COLL_NOISE_CAUSES ? cause_series[cause] : 8];
}

/* ---- axes ------------------------------------------------------------------------------------ */

/* Linear, or logarithmic with `low` and `high` as exponents of ten. */
struct axis {
	double low, high, from, to;	/* values, and their places */
	bool logarithmic;
};

static double axis_place(const struct axis *axis, double value)
{
	const double at = axis->logarithmic ? log10(value) : value;
	const double share = (at - axis->low) / (axis->high - axis->low);

	return axis->from + (axis->to - axis->from) * fmin(fmax(share, 0), 1);
}

static void chart_begin(const char *id, u32 height, const char *about, FILE *to)
{
	fprintf(to, "<svg id=\"%s\" class=\"chart\" viewBox=\"0 0 %d %u\" role=\"img\" "
		"aria-label=\"%s\">\n", id, WIDTH, height, about);
}

static void line_across(double y, FILE *to)
{
	fprintf(to, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, y, RIGHT);
}

static void label_left(double y, const char *text, FILE *to)
{
	fprintf(to, "<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
		LEFT - 7, y + 4, text);
}

static void label_below(double x, double y, const char *text, FILE *to)
{
	fprintf(to, "<path class=\"tick\" d=\"M%.1f %.1fv5\"/><text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
		"text-anchor=\"middle\">%s</text>\n", x, y, x, y + 18, text);
}

/* The axis' name: of the left one above its labels, of the lower one at its end. */
static void name_left(double y, const char *name, FILE *to)
{
	fprintf(to, "<text class=\"axis\" transform=\"translate(12 %.1f) rotate(-90)\" "
		"text-anchor=\"middle\">%s</text>\n", y, name);
}

static void name_below(double y, const char *name, FILE *to)
{
	fprintf(to, "<text class=\"axis\" x=\"%d\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
		(LEFT + RIGHT) / 2, y, name);
}

/* 1, 2 or 5 times a power of ten, so that there are about TICKS of them. */
static double nice_step(double span, u32 ticks)
{
	const double raw = span / ticks, unit = pow(10, floor(log10(raw)));

	return raw <= unit ? unit : raw <= 2 * unit ? 2 * unit : raw <= 5 * unit ? 5 * unit : 10 * unit;
}

static const char *decade_text(int decade, const char *const *units, char text[32])
{
	static const char *const times[] = { "1", "10", "100" };

	if (decade < 0)
		snprintf(text, 32, "%.*f%s", -decade, pow(10, decade), units[0]);
	else
		snprintf(text, 32, "%s%s", times[decade % 3], units[decade / 3]);
	return text;
}

static const char *const time_units[] = { " ns", " \u00b5s", " ms", " s", " ks", " Ms", " Gs" };
static const char *const plain_units[] = { "", "k", "M", "G", "T", "P", "E" };

static void decades_left(const struct axis *axis, const char *const *units, FILE *to)
{
	const int every = (axis->high - axis->low) / 7 + 1;
	char text[32];
	int decade;

	for (decade = axis->low; decade <= axis->high; decade += every) {
		const double y = axis_place(axis, pow(10, decade));

		line_across(y, to);
		label_left(y, decade_text(decade, units, text), to);
	}
}

static void seconds_below(const struct axis *axis, double y, FILE *to)
{
	const double step = nice_step(axis->high - axis->low, TICKS);
	double at;
	char text[32];

	fprintf(to, "<g class=\"seconds\" data-y=\"%.1f\">", y);
	for (at = 0; at <= axis->high + step / 1e6; at += step) {
		snprintf(text, sizeof(text), "%.6g", at);
		label_below(axis_place(axis, at), y, text, to);
	}
	fprintf(to, "</g>\n");
}

static struct axis time_axis(const struct noise_points *points)
{
	return (struct axis){ 0, (points->end - points->begin) / 1e9, LEFT, RIGHT, false };
}

/* ---- timeline ----------------------------------------------------------------------------- */

enum { TIMELINE_BOTTOM = 290, TIMELINE_HEIGHT = 336 };

static struct axis length_axis(const struct noise_points *points)
{
	struct axis axis = { 2, 3, TIMELINE_BOTTOM, TOP, true };
	double least = 1e18, most = 1;
	u32 i;

	for (i = 0; i < points->points; i++) {
		least = fmin(least, points->point[i].duration);
		most = fmax(most, points->point[i].duration);
	}
	if (points->points) {
		axis.low = floor(log10(fmax(0.9 * least, 1)));
		axis.high = fmax(ceil(log10(1.1 * most)), axis.low + 1);
	}
	return axis;
}

void chart_timeline(const struct noise_points *points, bool attributed, FILE *to)
{
	const struct axis time = time_axis(points), length = length_axis(points);
	u32 cause, i;

	chart_begin("timeline", TIMELINE_HEIGHT, "Length of the events over time", to);
	decades_left(&length, time_units, to);
	name_left((TOP + TIMELINE_BOTTOM) / 2., "length of the event", to);
	seconds_below(&time, TIMELINE_BOTTOM, to);
	name_below(TIMELINE_HEIGHT - 6, "seconds from the begin", to);
	fprintf(to, "<clipPath id=\"inside\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>"
		"<g class=\"points\" clip-path=\"url(#inside)\">\n", LEFT - 3, TOP - 4,
		RIGHT - LEFT + 6, TIMELINE_BOTTOM - TOP + 8);
	for (cause = 0; cause < COLL_NOISE_CAUSES; cause++) {
		bool any = false;

		for (i = 0; i < points->points; i++) {
			const struct noise_point *p = &points->point[i];

			if (p->cause != cause)
				continue;
			if (!any)
				fprintf(to, "<path class=\"dots %s\" data-series=\"%u\" d=\"",
					attributed ? chart_class(cause) : "s1", cause);
			any = true;
			fprintf(to, "M%.1f %.1fh0", axis_place(&time, (p->start - points->begin) / 1e9),
				axis_place(&length, p->duration ? p->duration : 1));
		}
		fprintf(to, "%s", any ? "\"/>\n" : "");
	}
	if (!points->points)
		fprintf(to, "<text class=\"empty\" x=\"%d\" y=\"150\" text-anchor=\"middle\">"
			"no event</text>\n", (LEFT + RIGHT) / 2);
	fprintf(to, "</g></svg>\n");
}

/* ---- CPUs over time -------------------------------------------------------------------------- */

/* Class h0 is nothing; the others begin at these shares. */
static const double heat_from[] = { 0, 1e-9, 0.001, 0.01, 0.1, 0.5 };
enum { HEATS = sizeof(heat_from) / sizeof(*heat_from) };

static u32 heat_class(double share)
{
	u32 class = HEATS - 1;

	while (class && share < heat_from[class])
		class--;
	return class;
}

static double heat_row_height(const struct noise_heat *heat)
{
	const double height = heat->rows ? 400. / heat->rows : 1;

	return height > 22 ? 22 : height < 3.5 ? 3.5 : height;
}

/* Cells of one class beside each other are one line. */
static void heat_cells(const struct noise_heat *heat, u32 class, double height, FILE *to)
{
	const double width = (double)(RIGHT - LEFT) / heat->columns;
	u32 row, from, column;

	fprintf(to, "<path class=\"h%u\" stroke-width=\"%.2f\" d=\"", class, height > 6 ? height - 1 : height);
	for (row = 0; row < heat->rows; row++)
		for (from = 0; from < heat->columns; from = column) {
			const double *share = &heat->share[(size_t)row * heat->columns];

			for (column = from; column < heat->columns &&
			     heat_class(share[column]) == class; column++)
				;
			if (column > from)
				fprintf(to, "M%.1f %.1fh%.1f", LEFT + from * width,
					TOP + (row + 0.5) * height, (column - from) * width);
			column += column == from;
		}
	fprintf(to, "\"/>\n");
}

static void heat_legend(double y, FILE *to)
{
	static const char *const names[HEATS] = { "nothing", "below 0.1 %", "below 1 %",
						  "below 10 %", "below 50 %", "more" };
	u32 class;
	double x = LEFT;

	for (class = 0; class < HEATS; class++) {
		fprintf(to, "<path class=\"h%u\" stroke-width=\"11\" d=\"M%.0f %.1fh16\"/>"
			"<text class=\"tick\" x=\"%.0f\" y=\"%.1f\">%s</text>\n", class, x, y - 4,
			x + 22, y, names[class]);
		x += 112;
	}
	fprintf(to, "<text class=\"axis\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">seconds from the begin</text>\n",
		RIGHT, y);
}

void chart_heat(const struct noise_view *view, const struct noise_points *points,
		const struct noise_heat *heat, FILE *to)
{
	const struct axis time = time_axis(points);
	const double height = heat_row_height(heat), bottom = TOP + heat->rows * height;
	const u32 every = 14 / height + 1;
	u32 row, class;
	char text[32];

	chart_begin("heat", bottom + 48, "Time taken from each CPU, over time", to);
	for (class = 0; class < HEATS; class++)
		heat_cells(heat, class, height, to);
	for (row = 0; row < heat->rows; row += every) {
		snprintf(text, sizeof(text), "CPU %u",
			 view->capture->cpu[row * heat->cpus_a_row].cpu);
		label_left(TOP + (row + 0.5) * height, text, to);
	}
	seconds_below(&time, bottom, to);
	heat_legend(bottom + 42, to);
	fprintf(to, "</svg>\n");
}

/* ---- lengths ------------------------------------------------------------------------------ */

enum { LENGTHS_MIDDLE = 165, LENGTHS_GAP = 24, LENGTHS_BOTTOM = 290, LENGTHS_HEIGHT = 336 };

static void length_bar(const struct noise_summary *s, u32 bucket, const struct axis *events,
		       const struct axis *share, double x, double width, FILE *to)
{
	const struct noise_bucket *b = &s->bucket[bucket];
	const double part = s->watched ? (double)b->total / s->watched : 0;
	const double y = axis_place(events, b->count), y2 = axis_place(share, 100 * part);
	char from[32], below[32], count[32], percent[32];

	if (!b->count)
		return;
	fprintf(to, "<g class=\"bar\" data-events=\"%llu\" data-ns=\"%llu\"><title>%s to %s: %s events, "
		"%s of the time</title><rect class=\"hit\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>"
		"<rect class=\"s1\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>"
		"<rect class=\"s2\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></g>\n",
		(unsigned long long)b->count, (unsigned long long)b->total,
		node_html_time_text(noise_bucket_edge(bucket), from),
		node_html_time_text(noise_bucket_edge(bucket + 1), below), node_html_count_text(b->count, count),
		node_html_share_text(part, percent), x, TOP, width, LENGTHS_BOTTOM - TOP, x + 1, y,
		width - 2, LENGTHS_MIDDLE - y, x + 1, y2, width - 2, LENGTHS_BOTTOM - y2);
}

static void percents_left(const struct axis *axis, FILE *to)
{
	const double step = nice_step(axis->high, 3);
	double at;
	char text[32];

	for (at = 0; at <= axis->high; at += step) {
		snprintf(text, sizeof(text), "%.4g %%", at);
		line_across(axis_place(axis, at), to);
		label_left(axis_place(axis, at), text, to);
	}
}

void chart_lengths(const struct noise_view *view, FILE *to)
{
	const struct noise_summary *s = &view->all;
	struct axis events = { log10(0.5), 1, LENGTHS_MIDDLE, TOP, true };
	struct axis share = { 0, 0, LENGTHS_BOTTOM, LENGTHS_MIDDLE + LENGTHS_GAP, false };
	u32 first = 0, end = NOISE_BUCKETS, i;
	double most = 1, width;
	char text[32];

	while (end > first + 1 && !s->bucket[end - 1].count)
		end--;
	while (first + 1 < end && !s->bucket[first].count)
		first++;
	first -= first % 3;
	end = s->length.count ? end + (3 - end % 3) % 3 : 12;
	width = (double)(RIGHT - LEFT) / (end - first);
	for (i = first; i < end && i < NOISE_BUCKETS; i++) {
		most = fmax(most, s->bucket[i].count);
		share.high = fmax(share.high, s->watched ? 104. * s->bucket[i].total / s->watched : 0);
	}
	share.high = share.high > 0 ? share.high : 1;
	events.high = fmax(log10(most * 1.2), 1);
	chart_begin("lengths", LENGTHS_HEIGHT, "Events by length: how many, and their share of the time", to);
	for (i = 0; i <= events.high; i += (u32)events.high / 5 + 1) {
		line_across(axis_place(&events, pow(10, i)), to);
		label_left(axis_place(&events, pow(10, i)), decade_text(i, plain_units, text), to);
	}
	percents_left(&share, to);
	name_left((TOP + LENGTHS_MIDDLE) / 2., "events", to);
	name_left((LENGTHS_MIDDLE + LENGTHS_GAP + LENGTHS_BOTTOM) / 2., "of the time", to);
	for (i = first; i < end && i < NOISE_BUCKETS; i++)
		length_bar(s, i, &events, &share, LEFT + (i - first) * width, width, to);
	for (i = first; i <= end; i += 3)	/* from a power of ten on, but for the first */
		label_below(LEFT + (i - first) * width, LENGTHS_BOTTOM,
			    i ? decade_text(i / 3 + 1, time_units, text) : "0", to);
	name_below(LENGTHS_HEIGHT - 6, "length of the event", to);
	fprintf(to, "</svg>\n");
}

/* ---- spectrum ------------------------------------------------------------------------------ */

enum { SPECTRUM_BOTTOM = 230, SPECTRUM_HEIGHT = 276 };

/* Of the points in one column the highest. */
static void spectrum_line(const struct noise_spectrum *s, const struct axis *hz,
			  const struct axis *power, FILE *to)
{
	double best = 0;
	int column = -1;
	u32 k, drawn = 0;

	fprintf(to, "<path class=\"line s1\" d=\"");
	for (k = 1; k <= s->points; k++) {
		const int at = k < s->points ? axis_place(hz, k * s->step) : SPECTRUM_COLUMNS * 2;

		if (at != column) {
			if (column >= 0)
				fprintf(to, "%c%d %.1f", drawn++ ? 'L' : 'M', column,
					axis_place(power, best));
			column = at;
			best = 0;
		}
		best = k < s->points ? fmax(best, s->power[k]) : 0;
	}
	fprintf(to, "\"/>\n");
}

static void spectrum_peaks(const struct noise_spectrum *s, const struct axis *hz,
			   const struct axis *power, FILE *to)
{
	char every[32];
	u32 i;

	for (i = s->peaks; i-- > 0;) {
		const struct noise_peak *p = &s->peak[i];
		const double x = axis_place(hz, p->hz), y = axis_place(power, p->power);

		fprintf(to, "<g class=\"peak\"><title>%.5g Hz, every %s, power %.0f", p->hz,
			node_html_time_text(1e9 / p->hz, every), p->power);
		fputs(*p->name ? ": " : "", to);
		node_html_text(p->name, to);
		fprintf(to, "</title><circle class=\"s2\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>", x, y);
		if (i < SPECTRUM_LABELS)
			fprintf(to, "<text class=\"number\" x=\"%.1f\" y=\"%.1f\">%u</text>", x + 7,
				y + 4, i + 1);
		fprintf(to, "</g>\n");
	}
}

static void hertz_below(const struct axis *axis, FILE *to)
{
	int decade;
	char text[32];

	for (decade = ceil(axis->low); decade <= axis->high; decade++)
		label_below(axis_place(axis, pow(10, decade)), SPECTRUM_BOTTOM,
			    decade_text(decade, plain_units, text), to);
}

void chart_spectrum(const struct noise_view *view, FILE *to)
{
	const struct noise_spectrum *s = &view->spectrum;
	struct axis hz = { log10(s->step), log10(s->step * (s->points - 1)), LEFT, RIGHT, true };
	struct axis power = { -1, 1, SPECTRUM_BOTTOM, TOP, true };
	double most = fmax(s->least, 10);
	u32 k;

	for (k = 1; k < s->points; k++)
		most = fmax(most, s->power[k]);
	power.high = ceil(log10(most));
	chart_begin("spectrum", SPECTRUM_HEIGHT, "Power of the events over frequency", to);
	decades_left(&power, plain_units, to);
	name_left((TOP + SPECTRUM_BOTTOM) / 2., "power (1: random)", to);
	hertz_below(&hz, to);
	name_below(SPECTRUM_HEIGHT - 6, "Hz", to);
	spectrum_line(s, &hz, &power, to);
	if (s->least > 0)
		fprintf(to, "<path class=\"limit\" d=\"M%d %.1fH%d\"/><text class=\"tick above\" x=\"%d\" y=\"%.1f\" "
			"text-anchor=\"end\">below this: perhaps chance</text>\n", LEFT,
			axis_place(&power, s->least), RIGHT, RIGHT, axis_place(&power, s->least) - 5);
	spectrum_peaks(s, &hz, &power, to);
	fprintf(to, "</svg>\n");
}

/* ---- for the script --------------------------------------------------------------------------- */

static void series_data(const struct noise_points *points, u32 cause, FILE *to)
{
	const char *comma = "";
	u32 i;

	fprintf(to, "\"%u\":[", cause);
	for (i = 0; i < points->points; i++) {
		const struct noise_point *p = &points->point[i];

		if (p->cause != cause)
			continue;
		fprintf(to, "%s%llu,%llu,%u", comma,
			(unsigned long long)(p->start - points->begin) / 1000,
			(unsigned long long)p->duration, p->cpu);
		if (points->merged)
			fprintf(to, ",%u,%llu", p->events, (unsigned long long)p->total);
		comma = ",";
	}
	fprintf(to, "]");
}

void chart_data(const struct noise_points *points, const struct noise_heat *heat,
		const struct noise_view *view, FILE *to)
{
	const struct axis length = length_axis(points);
	u32 i;

	fprintf(to, "{\"left\":%d,\"right\":%d,\"top\":%d,\"bottom\":%d,\"low\":%g,\"high\":%g,"
		"\"seconds\":%.9g,\"cpus\":%u,\"merged\":%s,\n\"names\":[", LEFT, RIGHT, TOP,
		TIMELINE_BOTTOM, length.low, length.high, (points->end - points->begin) / 1e9,
		view->capture->head.cpus, points->merged ? "true" : "false");
	for (i = 0; i < COLL_NOISE_CAUSES; i++)
		fprintf(to, "%s\"%s\"", i ? "," : "", node_cause_name(i));
	fprintf(to, "],\n\"points\":{");
	for (i = 0; i < COLL_NOISE_CAUSES; i++) {
		fprintf(to, "%s", i ? ",\n" : "");
		series_data(points, i, to);
	}
	fprintf(to, "},\n\"heat\":{\"columns\":%u,\"height\":%.3f,\"every\":%u,\"cpu\":[",
		heat->columns, heat_row_height(heat), heat->cpus_a_row);
	for (i = 0; i < heat->rows; i++)
		fprintf(to, "%s%u", i ? "," : "", view->capture->cpu[i * heat->cpus_a_row].cpu);
	fprintf(to, "],\"ppm\":[");
	for (i = 0; i < heat->rows * heat->columns; i++)
		fprintf(to, "%s%.0f", i ? "," : "", heat->share[i] * 1e6);
	fprintf(to, "]}}");
}
