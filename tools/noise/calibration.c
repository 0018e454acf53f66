// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/common/arguments.h"
#include "calibration.h"
#include "match.h"
#include "thread.h"
#include "node/units.h"

enum {
	GAPS = 1 << 20,			/* capacity for gaps, of one part */
	STALLS = 20000,
	INJECTED = 1 << 18,
	BACKGROUND_SHARE = 10, DETECTOR_SHARE = 40,	/* per cent of the time */
	PILOT_PART = 5,			/* 1/5 of the injection measures its cost */
	KS_GAPS = 10000,
	DISTURBED_NS = 20000,		/* an event this much longer than requested was disturbed */
	STALL_DISTANCE_NS = 5000,
};

static const u64 lengths[NOISE_LENGTHS] = {
	50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000,
	1000000, 2000000, 5000000, 10000000,
};

/* Memory and state that is only needed while it runs. */
struct bench {
	struct noise_calibration *c;
	struct noise_loop loop;
	struct noise_gap *gap, *plan, *done;
	bool stop;
};

static void calibration_progress(const struct noise_calibration *c, const char *what)
{
	if (c->progress)
		c->progress(what);
}

/* ---- preparation --------------------------------------------------------------------------- */

static void free_bench(struct bench *b)
{
	if (b->gap)
		munmap(b->gap, GAPS * sizeof(*b->gap));
	if (b->plan)
		munmap(b->plan, STALLS * sizeof(*b->plan));
	if (b->done)
		munmap(b->done, INJECTED * sizeof(*b->done));
}

static int settle_in(struct bench *b, const char *command)
{
	struct noise_calibration *c = b->c;
	const char *what;
	int status = noise_thread_bind(c->cpu, &what);

	if (!status) {
		what = "no memory";
		b->gap = noise_thread_memory(GAPS, sizeof(*b->gap));
		b->plan = noise_thread_memory(STALLS, sizeof(*b->plan));
		b->done = noise_thread_memory(INJECTED, sizeof(*b->done));
		status = b->gap && b->plan && b->done ? 0 : -ENOMEM;
	}
	if (!status)
		status = noise_thread_schedule(&c->measure, &what);
	if (status)
		return noise_thread_refuse(command, c->cpu, what, status);
	noise_clock_open(&c->clock);
	c->iteration = noise_loop_iteration(c->clock.counter, &c->least);
	return 0;
}

/* The loop for the next part, without gaps. */
static struct noise_loop *reset_loop(struct bench *b)
{
	b->loop = (struct noise_loop){
		.counter = b->c->clock.counter,
		.threshold = noise_clock_ticks(&b->c->clock, b->c->threshold) + b->c->iteration,
		.gap = b->gap, .capacity = GAPS, .stop = &b->stop,
	};
	return &b->loop;
}

static double calibration_seconds(const struct bench *b, u64 ticks)
{
	return noise_clock_ns(&b->c->clock, ticks) / 1e9;
}

/* Whether a gap has about this length, within a factor of 1.5. */
static bool calibration_about(const struct bench *b, const struct noise_gap *gap, u64 length)
{
	const u64 iteration = b->c->iteration, ticks = gap->end - gap->begin;
	const double ns = noise_clock_ns(&b->c->clock, ticks > iteration ? ticks - iteration : 0);

	return ns >= length / 1.5 && ns < length * 1.5;
}

static u64 count_about(const struct bench *b, u64 length, const bool *matched)
{
	u64 i, count = 0;

	for (i = 0; i < b->loop.gaps; i++)
		count += (!matched || matched[i]) && calibration_about(b, &b->gap[i], length);
	return count;
}

/* Time in gaps, without the loop's own. */
static double calibration_taken(const struct bench *b)
{
	u64 ticks = b->loop.lost_ticks, i;

	for (i = 0; i < b->loop.gaps; i++)
		ticks += b->gap[i].end - b->gap[i].begin - b->c->iteration;
	return ticks;
}

static void watch_background(struct bench *b)
{
	struct noise_calibration *c = b->c;
	struct noise_loop *loop = reset_loop(b);
	double time;
	u32 i;

	calibration_progress(c, "background");
	noise_loop_run(loop, noise_ticks(loop->counter) +
			     noise_clock_ticks(&c->clock, c->duration / 100 * BACKGROUND_SHARE));
	time = calibration_seconds(b, loop->watched);
	c->background_share = calibration_taken(b) / loop->watched;
	c->background_rate = (loop->gaps + loop->lost) / time;
	for (i = 0; i < NOISE_LENGTHS; i++)
		c->background[i] = count_about(b, lengths[i], NULL) / time;
}

/* ---- the detector ------------------------------------------------------- */

/* xorshift64 (Marsaglia 2003): the same numbers each time. */
static u64 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Stalls of one length, at distances of 0.5 to 1.5 times a mean. */
static u64 plan_stalls(struct bench *b, u64 length, u64 begin, u64 end)
{
	const struct noise_clock *clock = &b->c->clock;
	const u64 distance = noise_clock_ticks(clock, length > STALL_DISTANCE_NS ?
							      length : STALL_DISTANCE_NS);
	const u64 ticks = noise_clock_ticks(clock, length);
	u64 random = length, at = begin, count = 0;

	while (count < STALLS) {
		at += distance / 2 + next_random(&random) % distance;
		if (at + ticks >= end)
			break;
		b->plan[count++] = (struct noise_gap){ at, ticks };
		at += ticks;
	}
	return count;
}

static int judge_stalls(struct bench *b, const struct noise_stalls *stalls,
			struct noise_detector_row *row)
{
	const double ns = b->c->clock.rate / 0x1p32;
	double *longer = calloc(stalls->index + 1, sizeof(*longer));
	struct noise_match match;
	u64 i;

	if (!longer || noise_match(b->done, stalls->index, b->gap, b->loop.gaps, &match)) {
		free(longer);
		return -ENOMEM;
	}
	for (i = 0; i < stalls->index; i++)
		longer[i] = (double)(b->done[i].end - b->done[i].begin) * ns - row->length;
	for (i = 0; i < match.alone; i++)
		match.extra[i] = (match.extra[i] - b->c->iteration) * ns;
	row->injected = match.injected;
	row->found = match.found;
	row->seen = count_about(b, row->length, NULL);
	row->matched = count_about(b, row->length, match.matched);
	row->stall = noise_quantiles(longer, stalls->index);
	row->error = noise_quantiles(match.extra, match.alone);
	noise_match_free(&match);
	free(longer);
	return 0;
}

static int test_detector(struct bench *b)
{
	struct noise_calibration *c = b->c;
	const u64 part = noise_clock_ticks(&c->clock, c->duration / 100 * DETECTOR_SHARE /
						      NOISE_LENGTHS);
	int status = 0;
	u32 i;

	calibration_progress(c, "detector");
	for (i = 0; !status && i < NOISE_LENGTHS; i++) {
		struct noise_loop *loop = reset_loop(b);
		const u64 begin = noise_ticks(loop->counter);
		struct noise_stalls stalls = { .plan = b->plan, .done = b->done };

		c->detector[i].length = lengths[i];
		stalls.count = plan_stalls(b, lengths[i], begin, begin + part);
		loop->stalls = &stalls;
		noise_loop_run(loop, begin + part);
		status = judge_stalls(b, &stalls, &c->detector[i]);
		c->detector[i].background =
			c->background[i] * calibration_seconds(b, loop->watched);
	}
	return status;
}

/* ---- the injector ------------------------------------------------------- */

/* Injects and measures at the same time; the log's events go to `done`. */
static int run_model(struct bench *b, const struct coll_noise_plan *plan, u64 duration,
		     struct noise_injector *injector, const char *command)
{
	struct noise_calibration *c = b->c;
	struct noise_injector_options options = {
		.plan = plan, .plans = 1, .duration = duration, .cost = c->cost,
		.policy = c->inject, .capacity = INJECTED, .module = c->module,
		.context = c->context, .max_share = 0.9,
	};
	struct noise_loop *loop = reset_loop(b);
	int status;
	u64 i;

	node_cpus_add(&options.cpus, c->cpu);
	status = noise_injector_begin(injector, &options, &c->clock, command);
	if (!status) {
		noise_loop_run(loop, noise_clock_at(&c->clock, injector->until));
		injector->stop = true;
		noise_injector_wait(injector);
	}
	for (i = 0; !status && i < injector->cpu->count; i++)
		b->done[i] = (struct noise_gap){ injector->cpu->log[i].begin,
						 injector->cpu->log[i].end };
	noise_clock_settle(&c->clock);
	return status;
}

/* The mean of values near the median: events that nothing disturbed. */
static double undisturbed_mean(double *value, u64 count)
{
	double limit, sum = 0;
	u64 i, used = 0;

	limit = noise_quantiles(value, count).p50 + DISTURBED_NS;
	for (i = 0; i < count; i++)
		if (value[i] <= limit) {
			sum += value[i];
			used++;
		}
	return used ? sum / used : 0;
}

/*
 * Measures the cost of an event beyond its length: the switch into the thread and out of it. It
 * grows with the time since the last event (cold caches), so it is measured at the model's rate
 * where that is fast enough. On a shared machine it varies by the second, so each model has its
 * own. The first event wakes an idle thread and does not count.
 */
static int find_cost(struct bench *b, u64 period, u64 duration, const char *command)
{
	struct noise_calibration *c = b->c;
	const struct coll_noise_model model = {
		.arrival = COLL_NOISE_PERIODIC, .phase = COLL_NOISE_SAME,
		.length = COLL_NOISE_FIXED, .duration = 50 * NODE_US,
		.period = period < NODE_MS ? NODE_MS :
			  period > 10 * NODE_MS ? 10 * NODE_MS : period,
	};
	const struct coll_noise_plan plan = { .model = &model };
	struct noise_injector injector;
	struct noise_match match = { 0 };
	double cost = 0;
	int status;
	u64 i;

	calibration_progress(c, "cost of an event");
	c->cost = 0;
	status = run_model(b, &plan, duration, &injector, command);
	if (!status)
		status = noise_match(b->done, injector.cpu->count, b->gap, b->loop.gaps, &match);
	for (i = 0; i < match.alone; i++)
		match.extra[i] = (match.extra[i] - c->iteration) * c->clock.rate / 0x1p32;
	if (!status && match.alone > 1)
		cost = undisturbed_mean(match.extra + 1, match.alone - 1);
	if (cost > 0)
		c->cost = cost;
	noise_match_free(&match);
	noise_injector_free(&injector);
	return status;
}

/* The plan's events from `from` to `until`; events that touch count as one. */
static void plan_totals(const struct coll_noise_plan *plan, u64 from, u64 until,
			struct noise_model_row *row)
{
	struct coll_noise_stream stream = coll_noise_stream(plan, 0);
	u64 end = 0, total = 0;

	coll_noise_seek(plan, &stream, from);
	for (;;) {
		const struct coll_noise_span span = coll_noise_next(plan, &stream);
		const u64 start = span.start > end ? span.start : end;

		if (span.start >= until && span.start > end)
			break;
		row->asked += span.start > end || !row->asked;
		if (span.start + span.duration > start)
			total += span.start + span.duration - start;
		if (span.start + span.duration > end)
			end = span.start + span.duration;
	}
	row->asked_share = (double)total / (until - from);
}

/* The idle times of a Poisson process are exponential, also if events are merged. */
static double ks_of_idle(u64 *idle, u64 count, u64 mean)
{
	double chance;

	noise_sort(idle, count);
	noise_ks_exponential(idle, count, mean, &chance);
	return chance;
}

static int judge_gaps(const struct bench *b, const struct noise_injector *injector,
		      struct noise_model_row *row)
{
	const u64 count = injector->cpu->count, mean = row->said.model.period;
	const struct coll_noise_plan plan = coll_noise_said_plan(&row->said);
	struct coll_noise_stream stream = coll_noise_stream(&plan, 0);
	struct coll_noise_span last = coll_noise_next(&plan, &stream);
	u64 *idle = calloc((count > KS_GAPS ? count : KS_GAPS) + 1, sizeof(*idle)), i;

	if (!idle)
		return -ENOMEM;
	for (i = 0; i < KS_GAPS; i++) {
		const struct coll_noise_span span = coll_noise_next(&plan, &stream);

		idle[i] = span.start - last.start;
		last = span;
	}
	row->ks_plan = ks_of_idle(idle, KS_GAPS, mean);
	for (i = 1; i < count; i++)
		idle[i - 1] = b->done[i].begin > b->done[i - 1].end ?
			noise_clock_ns(&b->c->clock, b->done[i].begin - b->done[i - 1].end) : 0;
	row->ks_done = ks_of_idle(idle, count ? count - 1 : 0, mean);
	free(idle);
	return 0;
}

static int judge_log(const struct bench *b, const struct noise_injector *injector,
		     struct noise_model_row *row)
{
	const u64 count = injector->cpu->count, cost = b->c->cost;
	double *late = calloc(count + 1, sizeof(*late)),
	       *length = calloc(count + 1, sizeof(*length));
	double total = 0;
	u64 i;

	for (i = 0; late && length && i < count; i++) {
		const struct coll_noise_injected e =
			noise_injector_entry(injector, &injector->cpu->log[i]);

		late[i] = e.late;
		length[i] = (double)e.duration + cost - e.asked_duration;
		total += e.duration + cost;
	}
	row->injected = count;
	row->lost = injector->cpu->lost;
	row->injected_share = total / (injector->until - injector->from);
	if (late && length) {
		row->late = noise_quantiles(late, count);
		row->length = noise_quantiles(length, count);
	}
	free(late);
	free(length);
	return late && length ? 0 : -ENOMEM;
}

/*
 * An event disturbed by another task looks longer than it is: it counts with its own length and
 * the usual cost.
 */
static int judge_seen(const struct bench *b, const struct noise_injector *injector,
		      struct noise_model_row *row)
{
	const struct noise_calibration *c = b->c;
	const double ns = c->clock.rate / 0x1p32;
	struct noise_match match;
	double usual, seen, squares = 0, *error;
	u64 i;

	if (noise_match(b->done, row->injected, b->gap, b->loop.gaps, &match))
		return -ENOMEM;
	error = calloc(match.alone + 1, sizeof(*error));
	if (!error) {
		noise_match_free(&match);
		return -ENOMEM;
	}
	for (i = 0; i < match.alone; i++)
		error[i] = match.extra[i] = (match.extra[i] - c->iteration) * ns;
	usual = undisturbed_mean(error, match.alone);
	seen = match.seen * ns - c->iteration * ns * match.alone +
	       match.together_length * ns + usual * match.together;
	row->disturbed = match.together;
	for (i = 0; i < match.alone; i++) {
		const double off = match.extra[i] - usual;

		if (off > DISTURBED_NS) {
			row->disturbed++;
			seen -= off;
		} else {
			squares += off * off;
		}
		error[i] = match.extra[i] - c->cost;
	}
	row->found = match.found;
	row->seen_share = seen / (injector->until - injector->from);
	row->seen_error = 1.96 * sqrt(squares) / (injector->until - injector->from);
	row->total_share = calibration_taken(b) / b->loop.watched;
	row->error = noise_quantiles(error, match.alone);
	free(error);
	noise_match_free(&match);
	return 0;
}

static int test_model(struct bench *b, struct noise_model_row *row, u64 duration,
		      const char *command)
{
	const struct coll_noise_plan plan = coll_noise_said_plan(&row->said);
	struct noise_injector injector;
	int status = find_cost(b, row->said.model.period, duration / PILOT_PART, command);

	calibration_progress(b->c, row->text);
	row->cost = b->c->cost;
	row->fingerprint = noise_plan_fingerprint(&plan, 0);
	row->ks_plan = row->ks_done = -1;
	if (status)
		return status;
	status = run_model(b, &plan, duration - duration / PILOT_PART, &injector, command);
	if (!status) {
		plan_totals(&plan, injector.from, injector.until, row);
		status = judge_log(b, &injector, row);
	}
	if (!status)
		status = judge_seen(b, &injector, row);
	if (!status && row->said.model.arrival == COLL_NOISE_POISSON)
		status = judge_gaps(b, &injector, row);
	noise_injector_free(&injector);
	return status;
}

int noise_calibrate_run(struct noise_calibration *c, const char *command)
{
	const u64 rest = c->duration / 100 * (100 - BACKGROUND_SHARE - DETECTOR_SHARE);
	struct bench bench = { .c = c };
	int status = settle_in(&bench, command);
	u32 i;

	if (!status) {
		watch_background(&bench);
		status = test_detector(&bench);
	}
	for (i = 0; !status && i < c->models; i++)
		status = test_model(&bench, &c->model[i], rest / c->models, command);
	free_bench(&bench);
	return status;
}
