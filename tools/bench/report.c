// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The results of coll bench: table, JSON, CSV. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/names.h"
#include "bench.h"

const char *bench_size(uint64_t bytes, char text[24])
{
	static const char units[] = " KMG";
	int unit = 0;

	while (unit < 3 && bytes && !(bytes & 1023)) {
		bytes >>= 10;
		unit++;
	}
	snprintf(text, 24, unit ? "%llu%c" : "%llu", (unsigned long long)bytes, units[unit]);
	return text;
}

static double report_ratio(double value, double first)
{
	return first > 0 ? value / first : 0;
}

static const char *collective_name(const struct bench_report *report)
{
	return coll_collective_names[report->options->collective];
}

/* ---- table ----------------------------------------------------------------------- */

static void print_setting(const struct bench_report *report)
{
	const struct bench_options *options = report->options;
	const struct bench_setting *setting = &report->setting;

	printf("%s, %d ranks", collective_name(report), setting->ranks);
	if (options->collective != COLL_BARRIER)
		printf(", %s", coll_type_name(options->type));
	if (bench_reduces(options->collective))
		printf(" %s", coll_reduction_name(options->op));
	printf("\nengine %s, %s%s, %s, %d cores, waiting: %s\n", setting->engine,
	       *setting->congestion ? "TCP " : "memory",
	       setting->congestion, setting->kernel, setting->cores, setting->wait);
	printf("injected: %s\n", *setting->inject ? setting->inject : "nothing");
	printf("times in us: the slowest rank of each iteration; results %s\n",
	       options->check ? "checked on every iteration" : "not checked");
}

static void print_counts(const struct bench_options *options, const struct bench_result *result)
{
	int algo;

	printf("%-28s %8s %8s %8s %10s %10s %10s %10s %7s %7s %7s %7s %10s %8s\n", "  per run and rank",
	       "enters", "syscalls", "sends", "bytes", "copied", "exposed", "mapped", "unexp.", "stale", "allocs", "far",
	       "far bytes", "streamed");
	for (algo = 0; algo < options->algos; algo++) {
		const struct bench_counts *c = &result[algo].counts;

		printf("  %-26s %8.2f %8.2f %8.2f %10.0f %10.0f %10.0f %10.0f %7.2f %7.2f %7.2f %7.2f %10.0f "
		       "%8.2f\n",
		       options->algo[algo], c->enters, c->syscalls, c->sends, c->sent_bytes,
		       c->copied_bytes, c->exposed_bytes, c->mapped_bytes, c->unexpected, c->stale,
		       c->allocations, c->far_sends, c->far_bytes, c->streamed);
	}
}

void bench_print_table(const struct bench_report *report)
{
	const struct bench_options *options = report->options;
	int size, algo;
	char text[24];

	print_setting(report);
	for (size = 0; size < options->sizes; size++) {
		const struct bench_result *result = report->result[size];

		printf("\n%s%-*s %9s %9s %9s %9s %9s %9s %9s %7s %8s\n",
		       bench_size(options->size[size], text), 28 - (int)strlen(text), " bytes",
		       "mean", "median", "p90", "p99", "p99.9", "max", "min", "runs", "x first");
		for (algo = 0; algo < options->algos; algo++) {
			const struct bench_figures *f = &result[algo].slowest;

			printf("  %-26s %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %7llu %8.2f%s\n",
			       options->algo[algo], f->mean, f->p50, f->p90, f->p99, f->p999,
			       f->max, f->min, (unsigned long long)result[algo].iterations,
			       report_ratio(f->mean, result[0].slowest.mean),
			       result[algo].wrong ? "  WRONG RESULTS" : "");
		}
		if (options->counters)
			print_counts(options, result);
	}
}

/* ---- JSON -------------------------------------------------------------------------- */

static void set_real(json_t *object, const char *key, double value)
{
	json_object_set_new(object, key, json_real(value));
}

static void set_figures(json_t *object, const struct bench_figures *f)
{
	set_real(object, "mean_us", f->mean);
	set_real(object, "p50_us", f->p50);
	set_real(object, "p90_us", f->p90);
	set_real(object, "p99_us", f->p99);
	set_real(object, "p999_us", f->p999);
	set_real(object, "max_us", f->max);
	set_real(object, "min_us", f->min);
}

static json_t *ratios_json(const struct bench_figures *f, const struct bench_figures *first)
{
	json_t *object = json_object();

	set_real(object, "mean", report_ratio(f->mean, first->mean));
	set_real(object, "p50", report_ratio(f->p50, first->p50));
	set_real(object, "p99", report_ratio(f->p99, first->p99));
	return object;
}

static json_t *counts_json(const struct bench_counts *c)
{
	json_t *object = json_object();

	set_real(object, "enters", c->enters);
	set_real(object, "syscalls", c->syscalls);
	set_real(object, "sends", c->sends);
	set_real(object, "sent_bytes", c->sent_bytes);
	set_real(object, "copied_bytes", c->copied_bytes);
	set_real(object, "unexpected", c->unexpected);
	set_real(object, "stale", c->stale);
	set_real(object, "allocations", c->allocations);
	set_real(object, "far_sends", c->far_sends);
	set_real(object, "far_bytes", c->far_bytes);
	set_real(object, "exposed_bytes", c->exposed_bytes);
	set_real(object, "mapped_bytes", c->mapped_bytes);
	set_real(object, "published_bytes", c->published_bytes);
	set_real(object, "board_sends", c->board_sends);
	set_real(object, "streamed", c->streamed);
	return object;
}

static json_t *result_json(const struct bench_options *options, const char *algo,
			   const struct bench_result *result, const struct bench_result *first)
{
	json_t *object = json_object(), *ranks = json_object();

	json_object_set_new(object, "algorithm", json_string(algo));
	json_object_set_new(object, "iterations", json_integer(result->iterations));
	json_object_set_new(object, "wrong", json_integer(result->wrong));
	set_figures(object, &result->slowest);
	set_figures(ranks, &result->ranks);
	json_object_set_new(object, "mean_over_ranks", ranks);
	json_object_set_new(object, "ratio", ratios_json(&result->slowest, &first->slowest));
	if (options->counters)
		json_object_set_new(object, "counters", counts_json(&result->counts));
	return object;
}

static json_t *results_json(const struct bench_report *report)
{
	const struct bench_options *options = report->options;
	json_t *results = json_array();
	int size, algo;

	for (size = 0; size < options->sizes; size++) {
		const struct bench_result *result = report->result[size];
		json_t *object = json_object(), *algos = json_array();

		for (algo = 0; algo < options->algos; algo++)
			json_array_append_new(algos,
					      result_json(options, options->algo[algo],
							  &result[algo], &result[0]));
		json_object_set_new(object, "size", json_integer(options->size[size]));
		json_object_set_new(object, "algorithms", algos);
		json_array_append_new(results, object);
	}
	return results;
}

void bench_print_json(const struct bench_report *report)
{
	const struct bench_options *options = report->options;
	const struct bench_setting *setting = &report->setting;
	json_t *all = json_object();

	json_object_set_new(all, "collective", json_string(collective_name(report)));
	json_object_set_new(all, "ranks", json_integer(setting->ranks));
	json_object_set_new(all, "type", json_string(coll_type_name(options->type)));
	if (bench_reduces(options->collective))
		json_object_set_new(all, "op", json_string(coll_reduction_name(options->op)));
	json_object_set_new(all, "engine", json_string(setting->engine));
	json_object_set_new(all, "congestion", json_string(setting->congestion));
	json_object_set_new(all, "kernel", json_string(setting->kernel));
	json_object_set_new(all, "cores", json_integer(setting->cores));
	json_object_set_new(all, "wait", json_string(setting->wait));
	json_object_set_new(all, "inject", json_string(setting->inject));
	json_object_set_new(all, "checked", json_boolean(options->check));
	json_object_set_new(all, "results", results_json(report));
	json_dumpf(all, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(all);
}

/* A CSV field in quotes: specifications contain commas. */
static void put_quoted(const char *text)
{
	printf("\"%s\"", text);
}

void bench_print_csv(const struct bench_report *report)
{
	const struct bench_options *options = report->options;
	int size, algo;

	printf("collective,ranks,engine,inject,size,algorithm,iterations,wrong,"
	       "mean_us,p50_us,p90_us,p99_us,p999_us,max_us,min_us\n");
	for (size = 0; size < options->sizes; size++)
		for (algo = 0; algo < options->algos; algo++) {
			const struct bench_result *result = &report->result[size][algo];
			const struct bench_figures *f = &result->slowest;

			printf("%s,%d,%s,", collective_name(report), report->setting.ranks,
			       report->setting.engine);
			put_quoted(report->setting.inject);
			printf(",%llu,", (unsigned long long)options->size[size]);
			put_quoted(options->algo[algo]);
			printf(",%llu,%llu,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f\n",
			       (unsigned long long)result->iterations,
			       (unsigned long long)result->wrong, f->mean, f->p50, f->p90, f->p99,
			       f->p999, f->max, f->min);
		}
}
