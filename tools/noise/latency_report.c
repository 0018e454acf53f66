// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "latency.h"
#include "module.h"
#include "node/units.h"
#include "plot.h"

static const char *const stage_names[COLL_WATCH_STAGES] = { "timer", "thread" };

/* ---- figures ----------------------------------------------------------------------------- */

void noise_stage_add(struct noise_stage *stage, u64 latency)
{
	stage->bucket[coll_bucket(latency)]++;
	stage->min = stage->count && stage->min < latency ? stage->min : latency;
	stage->max = stage->max > latency ? stage->max : latency;
	stage->total += latency;
	__atomic_store_n(&stage->count, stage->count + 1, __ATOMIC_RELAXED);
}

u64 noise_stage_percentile(const struct noise_stage *stage, double share)
{
	u64 all = 0, below = 0, value;
	u32 i;

	for (i = 0; i < COLL_BUCKETS; i++)
		all += stage->bucket[i];
	for (i = 0; i < COLL_BUCKETS - 1; i++) {
		below += stage->bucket[i];
		if (below && below >= share * all)
			break;
	}
	value = i < COLL_BUCKETS - 1 ? coll_bucket_least(i + 1) - 1 : stage->max;
	value = value > stage->min ? value : stage->min;
	return value < stage->max ? value : stage->max;
}

static const char *policy_text(const struct noise_policy *policy, char text[32])
{
	if (policy->policy == SCHED_OTHER)
		snprintf(text, 32, "o:%d", policy->nice);
	else
		snprintf(text, 32, "%c:%u", policy->policy == SCHED_FIFO ? 'f' : 'r',
			 policy->priority);
	return text;
}

/* ---- tables ------------------------------------------------------------------------------- */

static void print_stage(const struct noise_latency_cpu *cpu, u32 number, FILE *to)
{
	const struct noise_stage *stage = &cpu->stage[number];
	char min[24], p50[24], p99[24], p999[24], max[24];

	if (!stage->count)
		return;
	fprintf(to, "%-4u %-7s %10llu %10s %10s %10s %10s %10s\n", cpu->cpu, stage_names[number],
		(unsigned long long)stage->count, node_time_text(stage->min, min),
		node_time_text(noise_stage_percentile(stage, 0.5), p50),
		node_time_text(noise_stage_percentile(stage, 0.99), p99),
		node_time_text(noise_stage_percentile(stage, 0.999), p999),
		node_time_text(stage->max, max));
}

static int longest_first(const void *a, const void *b)
{
	const struct noise_case *const *x = a, *const *y = b;

	return ((*x)->total < (*y)->total) - ((*x)->total > (*y)->total);
}

/* The longest of all CPUs, at most `most`. NULL: no memory. */
static const struct noise_case **longest_cases(const struct noise_latency *latency, u32 *count)
{
	const struct noise_case **list = calloc(latency->cpus * NOISE_WORST + 1, sizeof(*list));
	u32 c, i;

	*count = 0;
	if (!list)
		return NULL;
	for (c = 0; c < latency->cpus; c++)
		for (i = 0; i < latency->cpu[c].worsts; i++)
			list[(*count)++] = &latency->cpu[c].worst[i];
	qsort(list, *count, sizeof(*list), longest_first);
	*count = *count < NOISE_WORST ? *count : NOISE_WORST;
	return list;
}

static void print_passed(const struct noise_latency *latency, FILE *to)
{
	const struct noise_passed *passed = &latency->passed;
	char limit[24], time[24];

	if (latency->module)
		noise_passed_print(passed, to);
	else
		fprintf(to, "\nthe threshold of %s was passed:\nCPU %u: %s\n",
			node_time_text(passed->threshold, limit), passed->one.cpu,
			node_time_text(passed->one.total, time));
}

void noise_latency_print(const struct noise_latency_options *options,
			 const struct noise_latency *latency, FILE *to)
{
	const struct noise_case **longest;
	char period[24], policy[32];
	u32 c, count, i;

	fprintf(to, "a wake-up every %s on each CPU for %.4g s, %s, priority %s\n\n",
		node_time_text(options->period, period), latency->took / 1e9,
		latency->module ? "by the module" : "from user space",
		policy_text(&latency->policy, policy));
	fprintf(to, "%-4s %-7s %10s %10s %10s %10s %10s %10s\n", "CPU", "late", "wake-ups", "min",
		"p50", "p99", "p99.9", "max");
	for (c = 0; c < latency->cpus; c++)
		for (i = 0; i < COLL_WATCH_STAGES; i++)
			print_stage(&latency->cpu[c], i, to);
	for (c = 0; c < latency->cpus; c++)
		if (latency->cpu[c].missed)
			fprintf(to, "CPU %u: %llu more periods were missed\n", latency->cpu[c].cpu,
				(unsigned long long)latency->cpu[c].missed);
	longest = longest_cases(latency, &count);
	if (longest && count)
		fprintf(to, "\nthe longest, and who had the time:\n");
	for (i = 0; longest && i < count; i++)
		noise_case_print(longest[i], to);
	free(longest);
	if (!latency->module)
		fprintf(to, "\ncauses: %s\n", options->user ? "not asked for (--user)" :
			noise_module_state());
	if (latency->passed.any)
		print_passed(latency, to);
}

/* ---- rtla's histogram ---------------------------------------------------------------------- */

/* `count` has entries + 1 numbers for each stage of each CPU. */
static void count_rows(const struct noise_latency *latency, u64 size, u32 entries, u64 *count)
{
	u32 c, s, i;
	u64 row;

	for (c = 0; c < latency->cpus; c++)
		for (s = 0; s < COLL_WATCH_STAGES; s++, count += entries + 1)
			for (i = 0; i < COLL_BUCKETS; i++) {
				row = coll_bucket_least(i) / size;
				count[row < entries ? row : entries] +=
					latency->cpu[c].stage[s].bucket[i];
			}
}

static void print_row(const struct noise_latency *latency, const char *name, const u64 *count,
		      u32 entries, FILE *to)
{
	u32 column, columns = latency->cpus * COLL_WATCH_STAGES;
	bool any = !strcmp(name, "over:");

	for (column = 0; column < columns; column++)
		any |= count[column * (entries + 1)] > 0;
	if (!any)
		return;
	fprintf(to, "%-6s", name);
	for (column = 0; column < columns; column++)
		fprintf(to, "%9llu ", (unsigned long long)count[column * (entries + 1)]);
	fprintf(to, "\n");
}

static void print_end(const struct noise_latency *latency, const char *name, int which, FILE *to)
{
	u32 c, s;

	fprintf(to, "%-6s", name);
	for (c = 0; c < latency->cpus; c++)
		for (s = 0; s < COLL_WATCH_STAGES; s++) {
			const struct noise_stage *stage = &latency->cpu[c].stage[s];
			const double value[] = { stage->count, stage->min / 1e3,
				stage->count ? stage->total / 1e3 / stage->count : 0,
				stage->max / 1e3 };

			fprintf(to, which ? "%9.2f " : "%9.0f ", value[which]);
		}
	fprintf(to, "\n");
}

int noise_latency_histogram(const struct noise_latency *latency, u64 size, u32 entries, FILE *to)
{
	static const char *const ends[] = { "count:", "min:", "avg:", "max:" };
	u64 *count = calloc((size_t)latency->cpus * COLL_WATCH_STAGES * (entries + 1),
			    sizeof(*count));
	const u64 seconds = (latency->took + NODE_S / 2) / NODE_S;
	char name[32];
	u32 c, row;

	if (!count)
		return -ENOMEM;
	count_rows(latency, size, entries, count);
	fprintf(to, "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n"
		"# Duration: %3llu %02llu:%02llu:%02llu\nIndex ",
		(unsigned long long)seconds / 86400, (unsigned long long)seconds / 3600 % 24,
		(unsigned long long)seconds / 60 % 60, (unsigned long long)seconds % 60);
	for (c = 0; c < latency->cpus; c++)
		fprintf(to, "  IRQ-%03u   Thr-%03u ", latency->cpu[c].cpu, latency->cpu[c].cpu);
	fprintf(to, "\n");
	for (row = 0; row <= entries; row++) {
		snprintf(name, sizeof(name), "%.6g", row * size / 1e3);
		print_row(latency, row == entries ? "over:" : name, count + row, entries, to);
	}
	for (row = 0; row < 4; row++)
		print_end(latency, ends[row], row, to);
	free(count);
	return 0;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *stage_json(const struct noise_stage *stage)
{
	json_t *buckets = json_array();
	u32 i;

	for (i = 0; i < COLL_BUCKETS; i++)
		if (stage->bucket[i])
			json_array_append_new(buckets, json_pack("{sI sI}", "from_ns",
				(json_int_t)coll_bucket_least(i), "count",
				(json_int_t)stage->bucket[i]));
	return json_pack("{sI sI sf sI sI sI sI so}", "count", (json_int_t)stage->count, "min_ns",
			 (json_int_t)stage->min, "mean_ns",
			 stage->count ? (double)stage->total / stage->count : 0, "p50_ns",
			 (json_int_t)noise_stage_percentile(stage, 0.5), "p99_ns",
			 (json_int_t)noise_stage_percentile(stage, 0.99), "p999_ns",
			 (json_int_t)noise_stage_percentile(stage, 0.999), "max_ns",
			 (json_int_t)stage->max, "histogram", buckets);
}

static json_t *cpu_json(const struct noise_latency *latency, const struct noise_latency_cpu *cpu)
{
	json_t *json = json_pack("{si sI so}", "cpu", (int)cpu->cpu, "missed",
				 (json_int_t)cpu->missed, "thread",
				 stage_json(&cpu->stage[COLL_WATCH_THREAD]));

	if (latency->module)
		json_object_set_new(json, "timer", stage_json(&cpu->stage[COLL_WATCH_TIMER]));
	return json;
}

json_t *noise_latency_json(const struct noise_latency_options *options,
			   const struct noise_latency *latency)
{
	json_t *cpus = json_array(), *cases = json_array(), *json;
	const struct noise_case **longest;
	char policy[32];
	u32 count, i;

	for (i = 0; i < latency->cpus; i++)
		json_array_append_new(cpus, cpu_json(latency, &latency->cpu[i]));
	longest = longest_cases(latency, &count);
	for (i = 0; longest && i < count; i++)
		json_array_append_new(cases, noise_case_json(longest[i]));
	free(longest);
	json = json_pack("{sI sI ss ss ss sb sb so so}", "period_ns", (json_int_t)options->period,
			 "took_ns", (json_int_t)latency->took, "by",
			 latency->module ? "module" : "user", "priority",
			 policy_text(&latency->policy, policy), "module", noise_module_state(),
			 "stopped_by_threshold", latency->passed.any, "interrupted",
			 latency->interrupted, "cpus", cpus, "longest", cases);
	if (latency->passed.any)
		json_object_set_new(json, "passed", noise_passed_json(&latency->passed));
	return json;
}

/* ---- picture ------------------------------------------------------------------------------- */

static void write_stage(const struct noise_stage *stage, FILE *to)
{
	u32 i;

	for (i = 0; i < COLL_BUCKETS; i++)
		if (stage->bucket[i])
			fprintf(to, "%.4f %llu\n", (coll_bucket_least(i) ? coll_bucket_least(i) : 1) / 1e3,
				(unsigned long long)stage->bucket[i]);
	fprintf(to, "%sEOD\n", stage->count ? "" : "NaN NaN\n");
}

struct picture {
	const struct noise_latency_options *options;
	const struct noise_latency *latency;
};

static int write_picture(const void *data, FILE *to)
{
	const struct picture *picture = data;
	const struct noise_latency *latency = picture->latency;
	u32 c, s, shown = 0;
	char period[24];

	for (c = 0; c < latency->cpus; c++)
		for (s = 0; s < COLL_WATCH_STAGES; s++) {
			fprintf(to, "$late%u_%u << EOD\n", c, s);
			write_stage(&latency->cpu[c].stage[s], to);
		}
	fprintf(to, "set title 'Latency of a wake-up every %s, %.4g s'\nset xlabel 'us'\n"
		"set ylabel 'wake-ups'\nset logscale xy\nset yrange [0.7:*]\nset key outside\n"
		"set grid lc rgb rule\nset border 3\nset tics nomirror\nplot",
		node_time_text(picture->options->period, period), latency->took / 1e9);
	for (c = 0; c < latency->cpus; c++)
		for (s = 0; s < COLL_WATCH_STAGES; s++)
			if (latency->cpu[c].stage[s].count)
				fprintf(to, "%s \\\n $late%u_%u using 1:2 with histeps lc %u dt %u "
					"title 'CPU %u, %s'", shown++ ? "," : "", c, s, c + 1,
					s == COLL_WATCH_TIMER ? 2 : 1, latency->cpu[c].cpu,
					stage_names[s]);
	fprintf(to, "%s\n", shown ? "" : " NaN notitle");
	return 0;
}

int noise_latency_plot(const struct noise_latency_options *options,
		       const struct noise_latency *latency, const char *path)
{
	const struct picture picture = { options, latency };

	return noise_plot_draw(options->command, write_picture, &picture, path);
}
