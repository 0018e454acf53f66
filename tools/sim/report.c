// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Results of coll sim: as a table, as JSON, as CSV. */
#include <math.h>
#include <string.h>

#include "algo/tuning.h"
#include "sim.h"

static const char *const path_names[] = {
	[SIM_ANY_PATH] = "any",
	[SIM_LEVELS] = "levels",
	[SIM_EVENTS] = "events",
};

double sim_row_percentile(const struct sim_row *row, double percent)
{
	u32 index = ceil(percent / 100 * row->runs);

	return row->time[index ? index - 1 : 0];
}

/* "butterfly-redundant:T=2" */
static const char *row_name(const struct sim_row *row, char *text, size_t bytes)
{
	char tuning[80];

	coll_tuning_print(&row->tuning, tuning, sizeof(tuning));
	snprintf(text, bytes, "%s%s%s", row->choice->algo->name, *tuning ? ":" : "", tuning);
	return text;
}

/* ---- table ------------------------------------------------------------------- */

const char *sim_duration(double seconds, char *text, size_t bytes)
{
	static const char *const units[] = { "s", "ms", "us", "ns" };
	u32 unit = 0;

	while (unit < 3 && seconds < 1) {
		seconds *= 1000;
		unit++;
	}
	snprintf(text, bytes, "%.4g %s", seconds, units[unit]);
	return text;
}

static void print_speed(const struct sim_row *row, FILE *to)
{
	fprintf(to, "%9s  by %s: %.3g CPU s a run, %.3g million messages and %.3g events a second\n",
		"", path_names[row->path], row->cpu / row->runs,
		row->messages * row->runs / row->cpu / 1e6,
		row->events * row->runs / row->cpu / 1e6);
}

static void print_nic(const struct sim_row *row, FILE *to)
{
	fprintf(to, "%9s  a node's NIC: at most %llu bytes out, %llu in\n", "",
		(unsigned long long)row->nic_sent, (unsigned long long)row->nic_received);
}

static bool row_has_nodes(const struct sim_row *row)
{
	return row->nic_sent || row->nic_received;
}

static void print_table(const struct sim_options *options, const struct sim_row *row, u32 rows,
			FILE *to)
{
	char name[120], mean[24], ideal[24], median[24], p99[24], most[24];
	u32 i;

	fprintf(to, "%9s  %-28s %11s %11s %8s %11s %11s %11s %8s\n", "ranks", "algorithm", "mean",
		"ideal", "effect", "median", "p99", "max", "ratio");
	for (i = 0; i < rows; i++) {
		sim_duration(row[i].mean, mean, sizeof(mean));
		sim_duration(row[i].ideal, ideal, sizeof(ideal));
		sim_duration(sim_row_percentile(&row[i], 50), median, sizeof(median));
		sim_duration(sim_row_percentile(&row[i], 99), p99, sizeof(p99));
		sim_duration(sim_row_percentile(&row[i], 100), most, sizeof(most));
		fprintf(to, "%9u  %-28s %11s %11s %8.4g %11s %11s %11s", row[i].ranks,
			row_name(&row[i], name, sizeof(name)), mean, ideal,
			row[i].mean / row[i].ideal, median, p99, most);
		if (row[i].ratio > 0)
			fprintf(to, " %8.4g", row[i].ratio);
		fprintf(to, "\n");
		if (options->noisy.count || options->bad_links.count)
			fprintf(to, "%9s  the ranks that are not named: mean %s\n", "",
				sim_duration(row[i].others, mean, sizeof(mean)));
		if (row_has_nodes(&row[i]))
			print_nic(&row[i], to);
		if (options->speed)
			print_speed(&row[i], to);
	}
}

/* ---- JSON -------------------------------------------------------------------- */

void sim_json_number(FILE *to, const char *name, double number)
{
	if (isfinite(number))
		fprintf(to, ", \"%s\": %.12g", name, number);
	else
		fprintf(to, ", \"%s\": null", name);
}

static void json_list(FILE *to, const char *name, const double *number, u32 count)
{
	u32 i;

	fprintf(to, ", \"%s\": [", name);
	for (i = 0; i < count; i++)
		fprintf(to, "%s%.12g", i ? ", " : "", number[i]);
	fprintf(to, "]");
}

/* Number of runs that took from_s + i * width_s to from_s + (i + 1) * width_s. */
static void json_histogram(FILE *to, const struct sim_row *row, u32 bins)
{
	const double from = row->time[0], width = (row->time[row->runs - 1] - from) / bins;
	u32 i, bin = 0, count = 0;

	fprintf(to, ", \"histogram\": {\"from_s\": %.12g, \"width_s\": %.12g, \"runs\": [", from,
		width);
	for (i = 0; i < row->runs; i++, count++)
		for (; bin + 1 < bins && row->time[i] >= from + (bin + 1) * width; bin++, count = 0)
			fprintf(to, "%u, ", count);
	fprintf(to, "%u", count);
	for (; bin + 1 < bins; bin++)
		fputs(", 0", to);
	fputs("]}", to);
}

void sim_json_times(const struct sim_row *row, FILE *to)
{
	sim_json_number(to, "mean_s", row->mean);
	sim_json_number(to, "ideal_s", row->ideal);
	sim_json_number(to, "effect", row->mean / row->ideal);
	sim_json_number(to, "sd_s", row->deviation);
	sim_json_number(to, "min_s", row->time[0]);
	sim_json_number(to, "median_s", sim_row_percentile(row, 50));
	sim_json_number(to, "p90_s", sim_row_percentile(row, 90));
	sim_json_number(to, "p99_s", sim_row_percentile(row, 99));
	sim_json_number(to, "max_s", row->time[row->runs - 1]);
}

static void json_row(const struct sim_options *options, const struct sim_row *row, FILE *to)
{
	char tuning[80];

	fprintf(to, "{\"algo\": \"%s\", \"options\": \"%s\", \"ranks\": %u, \"runs\": %u",
		row->choice->algo->name, coll_tuning_print(&row->tuning, tuning, sizeof(tuning)),
		row->ranks, row->runs);
	sim_json_times(row, to);
	if (options->noisy.count || options->bad_links.count)
		sim_json_number(to, "others_mean_s", row->others);
	if (row->reference) {
		sim_json_number(to, "ratio", row->ratio);
		fprintf(to, ", \"reference\": \"%s\"", row->reference->choice->algo->name);
	}
	if (row->scanned) {
		fprintf(to, ", \"best_T\": %llu", (unsigned long long)row->tuning.redundancy);
		json_list(to, "mean_s_by_T", row->scan, row->scanned);
		sim_json_number(to, "again_s", row->again);
	}
	fprintf(to, ", \"messages\": %llu, \"path\": \"%s\"", (unsigned long long)row->messages,
		path_names[row->path]);
	if (row_has_nodes(row))
		fprintf(to, ", \"nic_sent\": %llu, \"nic_received\": %llu",
			(unsigned long long)row->nic_sent, (unsigned long long)row->nic_received);
	if (options->speed) {
		sim_json_number(to, "cpu_s", row->cpu);
		sim_json_number(to, "messages_per_cpu_s", row->messages * row->runs / row->cpu);
		sim_json_number(to, "events_per_cpu_s", row->events * row->runs / row->cpu);
	}
	if (options->prove)
		fputs(", \"proved\": true", to);
	if (options->bins)
		json_histogram(to, row, options->bins);
	if (options->all_runs)
		json_list(to, "times_s", row->time, row->runs);
	fprintf(to, "}");
}

static void json_costs(const struct sim_costs *costs, FILE *to)
{
	fprintf(to, "\"alpha_s\": %.12g", costs->alpha);
	sim_json_number(to, "beta_s", costs->beta);
	sim_json_number(to, "gamma_s", costs->gamma);
	sim_json_number(to, "copy_s", costs->copy);
	sim_json_number(to, "send_s", costs->send);
	sim_json_number(to, "recv_s", costs->recv);
	sim_json_number(to, "redundant_s", costs->redundant);
	sim_json_number(to, "gap_s", costs->gap);
	sim_json_number(to, "nic_s", costs->nic);
	if (costs->byte_overhead > 0)
		sim_json_number(to, "byte_overhead_s", costs->byte_overhead);
	if (costs->eager != SIM_ALWAYS_EAGER)
		fprintf(to, ", \"eager\": %llu", (unsigned long long)costs->eager);
}

static void json_text(FILE *to, const char *text)
{
	putc('"', to);
	for (; *text; text++) {
		if (strchr("\"\\", *text))
			putc('\\', to);
		if ((unsigned char)*text >= ' ')
			putc(*text, to);
	}
	putc('"', to);
}

static void json_noise(const struct sim_options *options, FILE *to)
{
	u32 i;

	fprintf(to, "\"semantics\": \"%s\", \"os\": [",
		sim_semantics_names[options->model.semantics]);
	for (i = 0; i < options->os_noises; i++) {
		fputs(i ? ", " : "", to);
		json_text(to, options->os_noise[i]);
	}
	fprintf(to, "], \"link\": ");
	if (options->link_noise)
		json_text(to, options->link_noise);
	else
		fputs("null", to);
}

void sim_json_model(const struct sim_options *options, FILE *to)
{
	fprintf(to, " \"costs\": {");
	json_costs(&options->model.costs, to);
	fprintf(to, "},\n");
	if (options->model.messages != SIM_MESSAGE_NIC)
		fprintf(to, " \"message_semantics\": \"%s\",\n",
			sim_message_semantics_names[options->model.messages]);
	fprintf(to, " \"noise\": {");
	json_noise(options, to);
	fprintf(to, "},\n");
}

static void print_json(const struct sim_options *options, const struct sim_row *row, u32 rows,
		       FILE *to)
{
	u32 i;

	fprintf(to, "{\"collective\": \"%s\", \"size\": %llu, \"root\": %u, \"seed\": %llu,\n",
		coll_collective_names[options->collective], (unsigned long long)options->size,
		options->root, (unsigned long long)options->seed);
	sim_json_model(options, to);
	fprintf(to, " \"algorithms\": [\n");
	for (i = 0; i < rows; i++) {
		fputs("  ", to);
		json_row(options, &row[i], to);
		fputs(i + 1 < rows ? ",\n" : "\n", to);
	}
	fprintf(to, " ]}\n");
}

/* ---- CSV --------------------------------------------------------------------- */

static void print_csv(const struct sim_options *options, const struct sim_row *row, u32 rows,
		      FILE *to)
{
	char name[120];
	u32 i;

	fprintf(to, "collective,algorithm,ranks,size,T,mean_s,ideal_s,effect,ratio,sd_s,min_s,"
		    "median_s,p90_s,p99_s,max_s,runs,seed,messages%s\n",
		options->levels ? ",nic_sent,nic_received" : "");
	for (i = 0; i < rows; i++) {
		fprintf(to, "%s,\"%s\",%u,%llu,", coll_collective_names[options->collective],
			row_name(&row[i], name, sizeof(name)), row[i].ranks,
			(unsigned long long)options->size);
		if (row[i].tuning.redundancy != COLL_UNSET)
			fprintf(to, "%llu", (unsigned long long)row[i].tuning.redundancy);
		fprintf(to, ",%.12g,%.12g,%.12g,", row[i].mean, row[i].ideal,
			row[i].mean / row[i].ideal);
		if (row[i].reference)
			fprintf(to, "%.12g", row[i].ratio);
		fprintf(to, ",%.12g,%.12g,%.12g,%.12g,%.12g,%.12g,%u,%llu,%llu", row[i].deviation,
			row[i].time[0], sim_row_percentile(&row[i], 50),
			sim_row_percentile(&row[i], 90), sim_row_percentile(&row[i], 99),
			row[i].time[row[i].runs - 1], row[i].runs,
			(unsigned long long)options->seed, (unsigned long long)row[i].messages);
		if (options->levels)
			fprintf(to, ",%llu,%llu", (unsigned long long)row[i].nic_sent,
				(unsigned long long)row[i].nic_received);
		fprintf(to, "\n");
	}
}

void sim_report(const struct sim_options *options, const struct sim_row *row, u32 rows, FILE *to)
{
	switch (options->format) {
	case SIM_JSON:
		print_json(options, row, rows, to);
		break;
	case SIM_CSV:
		print_csv(options, row, rows, to);
		break;
	default:
		print_table(options, row, rows, to);
	}
}
