// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Results of coll sim as a picture, by gnuplot: means over the ranks, or for one number of ranks
 * the distribution of the runs.
 */
#include <stdio.h>
#include <string.h>

#include "algo/tuning.h"
#include "tools/common/palette.h"
#include "sim.h"

static u32 lines_of(const struct sim_options *options)
{
	return options->choices ? options->choices : 1;
}

/* "butterfly-redundant:T=best" */
static const char *line_name(const struct sim_options *options, const struct sim_row *row,
			     char *text, size_t bytes)
{
	char tuning[80] = "T=best";

	if (!options->choices)
		return "as chosen";
	if (!row->choice->best)
		coll_tuning_print(&row->choice->tuning, tuning, sizeof(tuning));
	snprintf(text, bytes, "%s%s%s", row->choice->algo->name, *tuning ? ":" : "", tuning);
	return text;
}

/* Ranks, mean, p99 and ideal in us. */
static void write_means(const struct sim_options *options, const struct sim_row *row, FILE *to)
{
	u32 i;

	for (i = 0; i < options->rank_counts; i++, row += lines_of(options))
		fprintf(to, "%u %g %g %g\n", row->ranks, row->mean * 1e6,
			sim_row_percentile(row, 99) * 1e6, row->ideal * 1e6);
}

/* A run's time in us, and the share of runs that took at most that. */
static void write_shares(const struct sim_options *options, const struct sim_row *row, FILE *to)
{
	u32 i;

	(void)options;
	for (i = 0; i < row->runs; i++)
		fprintf(to, "%g %g\n", row->time[i] * 1e6, (i + 1.0) / row->runs);
}

static const struct kind {
	void (*write)(const struct sim_options *options, const struct sim_row *row, FILE *to);
	const char *about, *axes, *drawn;
	bool ideal;		/* column 4 as a dotted line too */
} means = {
	write_means, " (dotted: without noise)",
	"set logscale xy\nset xlabel 'ranks'\nset ylabel 'us'\nset key left top",
	"with linespoints pt 7 ps 0.5", true,
}, shares = {
	write_shares, "",
	"set xlabel 'us'\nset ylabel 'share of the runs'\nset yrange [0:1]\nset key right bottom",
	"with steps lw 2", false,
};

static void write_lines(const struct kind *kind, const struct sim_options *options,
			const struct sim_row *row, FILE *to)
{
	const u32 lines = lines_of(options);
	char name[120];
	u32 k;

	for (k = 0; k < lines; k++) {
		fprintf(to, "$line%u << EOD\n", k);
		kind->write(options, &row[k], to);
		fprintf(to, "EOD\n");
	}
	fprintf(to, "%s\nplot", kind->axes);
	for (k = 0; k < lines; k++) {
		fprintf(to, "%s $line%u using 1:2 %s lc %u title '%s'", k ? "," : "", k,
			kind->drawn, k + 1, line_name(options, &row[k], name, sizeof(name)));
		if (kind->ideal)
			fprintf(to, ", '' using 1:4 with lines lc %u dt 3 notitle", k + 1);
	}
	fprintf(to, "\n");
}

bool sim_plot(const struct sim_options *options, const struct sim_row *row)
{
	const struct kind *kind = options->rank_counts > 1 ? &means : &shares;
	FILE *to;

	fflush(stdout);
	to = popen("gnuplot -", "we");
	if (to) {
		fprintf(to, "%sset encoding utf8\nset terminal svg size 800,500 font 'sans,12' "
			"background paper\nset output '%s'\nset grid lc rgb rule\nset border 3\n"
			"set tics nomirror\nset key noenhanced\nset title '%s of %llu bytes%s' noenhanced\n",
			palette_gp, options->plot, coll_collective_names[options->collective],
			(unsigned long long)options->size, kind->about);
		write_lines(kind, options, row, to);
		if (!pclose(to))
			return true;
	}
	fprintf(stderr, "coll sim: gnuplot did not draw %s; is it installed, and the file's folder "
		"writable?\n", options->plot);
	return false;
}
