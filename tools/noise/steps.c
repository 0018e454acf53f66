// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/ranks.h"
#include "core/noise/noise.h"
#include "steps.h"

enum {
	WORK = 500000,		/* messages in all, approximately: seconds of CPU time */
	STRUCK_MIN = 300,	/* steps with noise: standard error at most 6 % */
	STRUCK_MAX = 3000,
	RUNS = 20,		/* at most this many steps per step with noise, if noise is rare */
	BISECTIONS = 60,
};

/* ---- measured times -------------------------------------------------------------- */

static int steps_ascending(const void *left, const void *right)
{
	const double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static int base_refuse(const char *path, u64 line, const char *why)
{
	fprintf(stderr, "collnoise predict: --base %s:%llu: %s\n", path, (unsigned long long)line,
		why);
	return -EINVAL;
}

static int base_add(struct noise_base *base, u64 *capacity, double seconds)
{
	if (base->samples == *capacity) {
		double *more = realloc(base->sample, (2 * *capacity + 1024) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		base->sample = more;
		*capacity = 2 * *capacity + 1024;
	}
	base->sample[base->samples++] = seconds;
	base->mean += seconds;
	return 0;
}

int noise_base_read(const char *path, struct noise_base *base)
{
	char text[64], *rest;
	u64 capacity = 0, line = 0;
	FILE *from = fopen(path, "re");
	int error = 0;

	*base = (struct noise_base){ 0 };
	if (!from) {
		fprintf(stderr, "collnoise predict: --base %s: %s\n", path, strerror(errno));
		return -ENOENT;
	}
	while (!error && fgets(text, sizeof(text), from)) {
		const double us = strtod(text, &rest);

		line++;
		if (rest == text || *rest != '\n' || !(us > 0 && us < 1e9))
			error = base_refuse(path, line,
					    "valid: microseconds, above 0, on a line each");
		else
			error = base_add(base, &capacity, us * 1e-6);
	}
	fclose(from);
	if (!error && !base->samples)
		error = base_refuse(path, line, "no times; coll bench --samples writes them");
	if (error)
		return error;
	qsort(base->sample, base->samples, sizeof(*base->sample), steps_ascending);
	base->mean /= base->samples;
	base->median = base->sample[base->samples / 2];
	return 0;
}

/* Share of the measured times that are at most this. */
static double base_share(const struct noise_base *base, double seconds)
{
	u64 low = 0, high = base->samples;

	while (low < high) {
		const u64 middle = (low + high) / 2;

		if (base->sample[middle] <= seconds)
			low = middle + 1;
		else
			high = middle;
	}
	return (double)low / base->samples;
}

/* ---- captures --------------------------------------------------------------------- */

static u64 add_recording(const struct node_capture *capture, u32 cpu, u64 at,
			 struct coll_noise_span *table, u32 *spans)
{
	const struct coll_noise_event *event = node_capture_events(capture, cpu);
	const struct coll_noise_cpu *c = &capture->cpu[cpu];
	u64 i;

	for (i = 0; i < c->events; i++) {
		const u64 start = event[i].start > c->first ? event[i].start - c->first : 0;

		if (start < c->watched && event[i].duration)
			table[(*spans)++] = (struct coll_noise_span){ at + start,
								      event[i].duration };
	}
	return at + c->watched;
}

int noise_steps_noise(const struct node_capture *capture, u32 captures, bool together,
		      struct sim_noise *noise, struct coll_noise_span **table)
{
	struct coll_noise_plan plan;
	const char *wrong;
	u64 events = 0, at = 0;
	u32 i, c, spans = 0;

	*noise = (struct sim_noise){ .model = { .arrival = COLL_NOISE_REPLAY,
						.length = COLL_NOISE_TABLE } };
	*table = NULL;
	for (i = 0; i < captures; i++)
		events += capture[i].head.events;
	if (!events)
		return 0;
	if (events > COLL_NOISE_SPANS_MAX)
		return -E2BIG;
	*table = malloc(events * sizeof(**table));
	if (!*table)
		return -ENOMEM;
	for (i = 0; i < captures; i++)
		for (c = 0; c < capture[i].head.cpus; c++)
			at = add_recording(&capture[i], c, at, *table, &spans);
	if (!spans)
		return 0;
	noise->model.phase = together ? COLL_NOISE_SAME : COLL_NOISE_RANDOM;
	noise->model.period = at;
	noise->table = *table;
	noise->spans = spans;
	plan = (struct coll_noise_plan){ &noise->model, noise->table, noise->spans };
	return coll_noise_check(&plan, &wrong) ? -E2BIG : 0;
}

/* ---- steps ------------------------------------------------------------------------- */

static struct sim_model model_of(const struct noise_steps *steps)
{
	return (struct sim_model){
		.costs = steps->costs, .semantics = SIM_OCCUPANCY, .os = { steps->noise },
	};
}

static int job_open(const struct noise_steps *steps, struct sim **sim)
{
	char why[200] = "";
	int error = sim_open(&steps->job, sim, why, sizeof(why));

	if (error)
		fprintf(stderr, "collnoise predict: %s: %s\n", steps->job.algo->name,
			*why ? why : strerror(-error));
	return error;
}

int noise_steps_scale(struct noise_steps *steps, double ideal)
{
	struct sim_model model = model_of(steps);
	struct sim_costs *costs = &steps->costs;
	struct sim_outcome outcome;
	struct sim *sim;
	double factor;
	int error = job_open(steps, &sim);

	if (error)
		return error;
	model.os[0].model.period = 0;
	error = sim_run(sim, &model, 1, SIM_ANY_PATH, &outcome, NULL);
	sim_close(sim);
	if (error)
		return error;
	factor = outcome.finish ? ideal / sim_seconds(outcome.finish) : 1;
	costs->alpha *= factor;
	costs->beta *= factor;
	costs->gamma *= factor;
	costs->send *= factor;
	costs->redundant *= factor;
	return 0;
}

static double share_below(const struct noise_steps *steps, const struct sim_step *step, u32 count,
			  double seconds)
{
	const struct noise_base *base = steps->base;
	double below = 0, all = 0;
	u32 i;

	for (i = 0; i < count; i++) {
		const double more = seconds - step[i].seconds;

		all += step[i].times;
		below += step[i].times * (base ? base_share(base, base->median + more) : more >= 0);
	}
	return below / all;
}

static double steps_quantile(const struct noise_steps *steps, const struct sim_step *step,
			     u32 count, double share)
{
	const struct noise_base *base = steps->base;
	double low = 0, high = 0, middle;
	u32 i;

	for (i = 0; i < count; i++)
		high = step[i].seconds > high ? step[i].seconds : high;
	if (base)
		high += base->sample[base->samples - 1];
	for (i = 0; i < BISECTIONS; i++) {
		middle = (low + high) / 2;
		if (share_below(steps, step, count, middle) >= share)
			high = middle;
		else
			low = middle;
	}
	return high;
}

static double mean_of(const struct noise_steps *steps, const struct sim_step *step, u32 count)
{
	double sum = 0, all = 0;
	u32 i;

	for (i = 0; i < count; i++) {
		all += step[i].times;
		sum += step[i].times * step[i].seconds;
	}
	return sum / all + (steps->base ? steps->base->mean - steps->base->median : 0);
}

int noise_steps_run(const struct noise_steps *steps, double *mean, double *p99)
{
	const u32 ranks = steps->job.call.ranks, work = WORK / (ranks * (log2_floor(ranks) + 1));
	const struct sim_model model = model_of(steps);
	struct sim_steps wanted = steps->steps;
	struct sim_step *step;
	struct sim *sim;
	u32 count;
	int error = job_open(steps, &sim);

	if (error)
		return error;
	wanted.struck = work < STRUCK_MIN ? STRUCK_MIN : work > STRUCK_MAX ? STRUCK_MAX : work;
	wanted.runs = steps->noise.model.period ? RUNS * wanted.struck : 1;
	step = malloc((1 + wanted.struck) * sizeof(*step));
	error = step ? sim_steps(sim, &model, 1, &wanted, step, &count) : -ENOMEM;
	if (!error) {
		*mean = mean_of(steps, step, count);
		*p99 = steps_quantile(steps, step, count, 0.99);
	}
	free(step);
	sim_close(sim);
	return error;
}
