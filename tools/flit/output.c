// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The results of coll sim flit: table, CSV, JSON, series, distribution. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/whole.h"
#include "flit.h"

/* The measured quantities of a run, with their names. */
struct column {
	const char *name, *title;	/* title NULL: not in the table */
	double (*of)(const struct flit_result *result);
	int decimals, width;
	bool program;			/* of programs only */
};

#define COLUMN(name, expression)					\
	static double name(const struct flit_result *r)			\
	{								\
		return expression;					\
	}

COLUMN(latency, r->all.mean)
COLUMN(deviation, r->all.deviation)
COLUMN(p50, r->all.p50)
COLUMN(p95, r->all.p95)
COLUMN(p99, r->all.p99)
COLUMN(least, r->all.least)
COLUMN(most, r->all.most)
COLUMN(local_latency, r->local.mean)
COLUMN(local_deviation, r->local.deviation)
COLUMN(between_latency, r->between.mean)
COLUMN(between_deviation, r->between.deviation)
COLUMN(messages, r->all.messages)
COLUMN(throughput, r->throughput)
COLUMN(offered, r->offered)
COLUMN(accepted, r->accepted)
COLUMN(use, 100 * r->use)
COLUMN(idle_none, r->idle.none)
COLUMN(idle_gap, r->idle.gap)
COLUMN(idle_blocked, r->idle.blocked)
COLUMN(outer_use, 100 * r->outer_use)
COLUMN(outer_none, r->outer_idle.none)
COLUMN(outer_gap, r->outer_idle.gap)
COLUMN(outer_blocked, r->outer_idle.blocked)
COLUMN(finish_first, r->finish_first)
COLUMN(finish_mean, r->finish_mean)
COLUMN(finish_last, r->finish_last)
COLUMN(cycles, r->cycles)
COLUMN(sent, r->sent)
COLUMN(arrived, r->arrived)
COLUMN(inside, r->inside)
COLUMN(hops, r->hops)
COLUMN(speed, r->seconds > 0 ? r->hops / r->seconds * 1e-6 : 0)

static const struct column columns[] = {
	{ "latency", "latency", latency, 2, 10, false },
	{ "deviation", "spread", deviation, 2, 8, false },
	{ "p50", "p50", p50, 1, 7, false },
	{ "p95", NULL, p95, 1, 7, false },
	{ "p99", "p99", p99, 1, 8, false },
	{ "least", NULL, least, 1, 7, false },
	{ "most", "most", most, 1, 8, false },
	{ "local_latency", NULL, local_latency, 2, 8, false },
	{ "local_deviation", NULL, local_deviation, 2, 8, false },
	{ "between_latency", NULL, between_latency, 2, 8, false },
	{ "between_deviation", NULL, between_deviation, 2, 8, false },
	{ "messages", NULL, messages, 0, 9, false },
	{ "throughput", "flits/cyc", throughput, 3, 10, false },
	{ "offered", NULL, offered, 5, 8, false },
	{ "accepted", "accepted", accepted, 5, 9, false },
	{ "use", "use%", use, 2, 7, false },
	{ "idle_none", NULL, idle_none, 2, 8, false },
	{ "idle_gap", NULL, idle_gap, 2, 8, false },
	{ "idle_blocked", NULL, idle_blocked, 2, 8, false },
	{ "outer_use", "outer%", outer_use, 2, 7, false },
	{ "outer_none", NULL, outer_none, 3, 8, false },
	{ "outer_gap", NULL, outer_gap, 3, 8, false },
	{ "outer_blocked", NULL, outer_blocked, 3, 8, false },
	{ "finish_first", "first", finish_first, 0, 9, true },
	{ "finish_mean", "finish", finish_mean, 1, 10, true },
	{ "finish_last", "last", finish_last, 0, 9, true },
	{ "cycles", NULL, cycles, 0, 9, false },
	{ "sent", NULL, sent, 0, 10, false },
	{ "arrived", NULL, arrived, 0, 10, false },
	{ "inside", NULL, inside, 0, 8, false },
	{ "hops", NULL, hops, 0, 10, false },
	{ "mhops_per_cpu_second", "Mhops/s", speed, 1, 8, false },
};

enum { COLUMNS = sizeof(columns) / sizeof(*columns) };

static struct flit_estimate output_estimate(const struct flit_plan *plan, u32 p, u32 v, u32 column)
{
	const struct flit_result *result = flit_results(plan, p, v);
	double value[FLIT_SEEDS_MAX];
	u32 s;

	for (s = 0; s < plan->seeds; s++)
		value[s] = columns[column].of(&result[s]);
	return flit_estimate(value, plan->seeds);
}

static bool is_shown(const struct flit_plan *plan, u32 c)
{
	if (!columns[c].title || (columns[c].program && plan->base.pattern <= FLIT_COMPLEMENT))
		return false;
	return columns[c].of != outer_use || plan->net.outer;
}

static void print_value(const struct flit_plan *plan, u32 v)
{
	printf("%g", plan->value[v]);
}

/* ---- table --------------------------------------------------------------- */

static void print_heading(const struct flit_plan *plan)
{
	const struct flit_machine *m = &plan->base.machine;

	printf("%s, routing %s, traffic %s, machine %s: %u channels, buffers %u", plan->net.name,
	       flit_routing_names[plan->base.route.routing],
	       flit_pattern_names[plan->base.pattern], plan->machine, m->vcs, m->buffer);
	if (m->out_buffer)
		printf(" and %u", m->out_buffer);
	printf("; header %u, setup %u\n", m->header, m->setup);
	if (plan->proved)
		printf("free of deadlock: %llu dependencies of %u channels without a cycle\n",
		       (unsigned long long)plan->proof.dependencies, plan->proof.channels);
	if (plan->base.pattern <= FLIT_COMPLEMENT)
		printf("measured: cycles %llu to %llu%s; %u seed%s, +-: 95 %% confidence\n",
		       (unsigned long long)plan->base.warmup,
		       (unsigned long long)plan->base.cycles,
		       plan->base.drain ? ", messages born then, until all arrived" : "",
		       plan->seeds, plan->seeds > 1 ? "s" : "");
}

static void print_row(const struct flit_plan *plan, u32 p, u32 v)
{
	u32 c;

	printf("%-15s %8g", flit_policy_names[plan->policy[p]], plan->value[v]);
	for (c = 0; c < COLUMNS; c++) {
		struct flit_estimate e;

		if (!is_shown(plan, c))
			continue;
		e = output_estimate(plan, p, v, c);
		printf(" %*.*f", columns[c].width, columns[c].decimals, e.mean);
		if (!c && plan->seeds > 1)
			printf(" +-%-6.2f", e.half);
	}
	putchar('\n');
}

void flit_print_table(const struct flit_plan *plan)
{
	u32 p, v, c;

	print_heading(plan);
	printf("%-15s %8s", "policy", plan->axis);
	for (c = 0; c < COLUMNS; c++)
		if (is_shown(plan, c))
			printf(" %*s%s", columns[c].width, columns[c].title,
			       !c && plan->seeds > 1 ? "         " : "");
	putchar('\n');
	for (p = 0; p < plan->policies; p++)
		for (v = 0; v < plan->values; v++)
			print_row(plan, p, v);
}

/* ---- JSON ---------------------------------------------------------------- */

void flit_print_csv(const struct flit_plan *plan)
{
	u32 p, v, c;

	printf("policy,%s,seeds", plan->axis);
	for (c = 0; c < COLUMNS; c++)
		printf(",%s,%s_ci", columns[c].name, columns[c].name);
	putchar('\n');
	for (p = 0; p < plan->policies; p++)
		for (v = 0; v < plan->values; v++) {
			printf("%s,", flit_policy_names[plan->policy[p]]);
			print_value(plan, v);
			printf(",%u", plan->seeds);
			for (c = 0; c < COLUMNS; c++) {
				struct flit_estimate e = output_estimate(plan, p, v, c);

				printf(",%.*f,%.*f", columns[c].decimals + 2, e.mean,
				       columns[c].decimals + 2, e.half);
			}
			putchar('\n');
		}
}

static void json_machine(const struct flit_plan *plan)
{
	const struct flit_machine *m = &plan->base.machine;

	printf("{\"name\": \"%s\", \"vcs\": %u, \"inject_vcs\": %u, \"eject_vcs\": %u, "
	       "\"buffer\": %u, \"out_buffer\": %u, \"link\": %u, \"inject\": %u, \"credit\": %u, "
	       "\"route_delay\": %u, \"setup\": %u, \"header\": %u, \"queue\": %u, "
	       "\"heads\": \"%s\", "
	       "\"one_port\": %s, \"to_self\": %s, \"classes_first\": %s}", plan->machine, m->vcs,
	       m->inject_vcs, m->eject_vcs, m->buffer, m->out_buffer, m->link, m->inject,
	       m->credit, m->route, m->setup, m->header, m->queue, flit_heads_names[m->heads],
	       m->one_port ? "true" : "false",
	       m->to_self ? "true" : "false", m->classes_first ? "true" : "false");
}

static void json_run(const struct flit_plan *plan, u32 p, u32 v)
{
	u32 c;

	printf("    {\"policy\": \"%s\", \"%s\": ", flit_policy_names[plan->policy[p]], plan->axis);
	print_value(plan, v);
	for (c = 0; c < COLUMNS; c++) {
		struct flit_estimate e = output_estimate(plan, p, v, c);

		printf(", \"%s\": %.*f", columns[c].name, columns[c].decimals + 2, e.mean);
		if (plan->seeds > 1)
			printf(", \"%s_ci\": %.*f", columns[c].name, columns[c].decimals + 2,
			       e.half);
	}
	printf("}");
}

void flit_print_json(const struct flit_plan *plan)
{
	u32 p, v;

	printf("{\n  \"network\": \"%s\", \"routing\": \"%s\", \"traffic\": \"%s\",\n",
	       plan->net.name, flit_routing_names[plan->base.route.routing],
	       flit_pattern_names[plan->base.pattern]);
	printf("  \"length\": %u, \"cycles\": %llu, \"warmup\": %llu, \"drain\": %s, "
	       "\"seed\": %llu, \"seeds\": %u,\n  \"machine\": ", plan->base.length,
	       (unsigned long long)plan->base.cycles, (unsigned long long)plan->base.warmup,
	       plan->base.drain ? "true" : "false", (unsigned long long)plan->base.seed,
	       plan->seeds);
	json_machine(plan);
	printf(",\n  \"proved\": %s, \"dependencies\": %llu,\n  \"runs\": [\n",
	       plan->proved ? "true" : "false", (unsigned long long)plan->proof.dependencies);
	for (p = 0; p < plan->policies; p++)
		for (v = 0; v < plan->values; v++) {
			json_run(plan, p, v);
			printf("%s\n", p + 1 == plan->policies && v + 1 == plan->values ? "" : ",");
		}
	printf("  ]\n}\n");
}

/* ---- files -------------------------------------------------------------- */

typedef void print_plan(const struct flit_plan *plan, FILE *to);

static bool write_whole(const struct flit_plan *plan, const char *name, print_plan *print)
{
	struct whole_file file;
	int error = whole_open(&file, name);

	if (!error) {
		print(plan, file.to);
		error = whole_close(&file);
	}
	if (error)
		fprintf(stderr, "coll sim flit: cannot write %s: %s\n", name, strerror(-error));
	return !error;
}

static void add_point(struct flit_point *sum, const struct flit_point *point, u32 seeds)
{
	sum->used += point->used / seeds;
	sum->idle.none += point->idle.none / seeds;
	sum->idle.gap += point->idle.gap / seeds;
	sum->idle.blocked += point->idle.blocked / seeds;
}

static void print_point(FILE *to, const struct flit_point *point)
{
	fprintf(to, ",%.3f,%.3f,%.3f,%.3f", 100 * point->used, point->idle.none, point->idle.gap,
		point->idle.blocked);
}

static void series_of(const struct flit_plan *plan, u32 p, u32 v, FILE *to)
{
	const struct flit_result *result = flit_results(plan, p, v);
	u32 i, s;

	for (i = 0; i < result->points; i++) {
		struct flit_point all = { 0 }, outer = { 0 };

		for (s = 0; s < plan->seeds; s++) {
			add_point(&all, &result[s].point[i], plan->seeds);
			add_point(&outer, &result[s].outer_point[i], plan->seeds);
		}
		fprintf(to, "%s,%g,%llu", flit_policy_names[plan->policy[p]], plan->value[v],
			(unsigned long long)(i + 1) * plan->base.interval);
		print_point(to, &all);
		print_point(to, &outer);
		fprintf(to, "\n");
	}
}

static void print_series(const struct flit_plan *plan, FILE *to)
{
	u32 p, v;

	fprintf(to, "policy,%s,cycle,use,none,gap,blocked,outer_use,outer_none,outer_gap,"
		"outer_blocked\n", plan->axis);
	for (p = 0; p < plan->policies; p++)
		for (v = 0; v < plan->values; v++)
			series_of(plan, p, v, to);
}

bool flit_write_series(const struct flit_plan *plan, const char *name)
{
	return write_whole(plan, name, print_series);
}

static void print_distribution(const struct flit_plan *plan, FILE *to)
{
	u32 p, v, s, b;

	fprintf(to, "policy,%s,seed,latency,messages\n", plan->axis);
	for (p = 0; p < plan->policies; p++)
		for (v = 0; v < plan->values; v++)
			for (s = 0; s < plan->seeds; s++) {
				const struct flit_result *r = &flit_results(plan, p, v)[s];

				for (b = 0; b < FLIT_BINS; b++)
					if (r->bins[b])
						fprintf(to, "%s,%g,%u,%u,%u\n",
							flit_policy_names[plan->policy[p]],
							plan->value[v], s, b * r->bin, r->bins[b]);
			}
}

bool flit_write_distribution(const struct flit_plan *plan, const char *name)
{
	return write_whole(plan, name, print_distribution);
}
