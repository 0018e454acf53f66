// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The results as a picture, by gnuplot: over the sizes if there are several, else one group of
 * bars per percentile. The script stays beside it, data included.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/palette.h"
#include "bench.h"

static void write_data(const struct bench_report *report, FILE *to)
{
	const struct bench_options *options = report->options;
	int size, algo;
	char text[24];

	fprintf(to, "# size, then per algorithm: mean median p90 p99 p99.9 max\n$data << EOD\n");
	for (size = 0; size < options->sizes; size++) {
		fprintf(to, "%llu %s", (unsigned long long)options->size[size],
			bench_size(options->size[size], text));
		for (algo = 0; algo < options->algos; algo++) {
			const struct bench_figures *f = &report->result[size][algo].slowest;

			fprintf(to, " %.2f %.2f %.2f %.2f %.2f %.2f", f->mean, f->p50, f->p90,
				f->p99, f->p999, f->max);
		}
		fprintf(to, "\n");
	}
	fprintf(to, "EOD\n");
}

/* Over the sizes: medians as solid lines, p99 as dashed lines of the same colour. */
static void write_lines(const struct bench_report *report, FILE *to)
{
	const struct bench_options *options = report->options;
	int algo;

	fprintf(to, "set logscale xy\nset xtics ()\nset for [i=0:%d] xtics add "
		"(word($data[i + 1], 2) word($data[i + 1], 1) + 0)\nset xlabel 'bytes'\nplot",
		options->sizes - 1);
	for (algo = 0; algo < options->algos; algo++)
		fprintf(to, "%s \\\n $data using 1:%d with linespoints lc %d lw 2 pt 7 ps 0.6 "
			"title '%s', \\\n $data using 1:%d with lines lc %d lw 1 dt 2 notitle",
			algo ? "," : "", 4 + 6 * algo, algo + 1, options->algo[algo],
			6 + 6 * algo, algo + 1);
	fprintf(to, "\n");
}

/* One size: bars. */
static void write_bars(const struct bench_report *report, FILE *to)
{
	static const char *const names[] = { "mean", "median", "p90", "p99", "p99.9", "max" };
	const struct bench_options *options = report->options;
	int algo, i;

	fprintf(to, "$bars << EOD\n");
	for (i = 0; i < 6; i++) {
		fprintf(to, "%s", names[i]);
		for (algo = 0; algo < options->algos; algo++) {
			const struct bench_figures *f = &report->result[0][algo].slowest;
			const double value[] = { f->mean, f->p50, f->p90, f->p99, f->p999, f->max };

			fprintf(to, " %.2f", value[i]);
		}
		fprintf(to, "\n");
	}
	fprintf(to, "EOD\nset logscale y\nset style data histogram\nset style fill solid 0.85\n"
		"set style histogram clustered gap 1\nset boxwidth 0.9\nplot");
	for (algo = 0; algo < options->algos; algo++)
		fprintf(to, "%s \\\n $bars using %d:xtic(1) lc %d title '%s'", algo ? "," : "",
			algo + 2, algo + 1, options->algo[algo]);
	fprintf(to, "\n");
}

static void write_script(const struct bench_report *report, FILE *to)
{
	const struct bench_options *options = report->options;
	const bool lines = options->sizes > 1;

	fprintf(to, "%sset terminal svg size 900,560 font 'sans,13' background paper\n"
		"set output '%s'\nset key outside right noenhanced\nset grid ytics lc rgb rule\n"
		"set border 3\nset tics nomirror\nset ylabel 'us, slowest rank'\n"
		"set title \"%s, %d ranks, engine %s%s\\n{/*0.8 injected: %s}\" noenhanced\n",
		palette_gp, options->plot, coll_collective_names[options->collective], report->setting.ranks,
		report->setting.engine, lines ? " (line: median, dashed: p99)" : "",
		*report->setting.inject ? report->setting.inject : "nothing");
	write_data(report, to);
	if (lines)
		write_lines(report, to);
	else
		write_bars(report, to);
}

/* The script of FILE.svg is FILE.gp. */
static void script_path(const char *plot, char *path, size_t bytes)
{
	const char *dot = strrchr(plot, '.');

	snprintf(path, bytes, "%.*s.gp", dot ? (int)(dot - plot) : (int)strlen(plot), plot);
}

int bench_plot(const struct bench_report *report)
{
	char path[1024], command[] = "gnuplot -";
	FILE *script, *gnuplot;
	int status;

	script_path(report->options->plot, path, sizeof(path));
	script = fopen(path, "we");
	if (!script) {
		fprintf(stderr, "coll bench: cannot write %s: %s\n", path, strerror(errno));
		return -errno;
	}
	write_script(report, script);
	fclose(script);
	fflush(stdout);
	gnuplot = popen(command, "we");
	if (gnuplot)
		write_script(report, gnuplot);
	status = gnuplot ? pclose(gnuplot) : -1;
	if (status) {
		fprintf(stderr, "coll bench: gnuplot did not draw %s (its script is %s); is "
			"gnuplot installed?\n", report->options->plot, path);
		return -EIO;
	}
	return 0;
}
