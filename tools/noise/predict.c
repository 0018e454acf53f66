// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * collnoise predict: the cost at N ranks of the noise in captures, and the gain of remedies. A
 * step is a grain of computing and a collective. It ends when the last rank has completed both:
 * order statistics of sim/stretch.h. Further delays while others wait come from the model of
 * algo/redundancy/redundancy.h. Up to NOISE_STEPS_RANKS_MAX ranks the schedules themselves run in
 * virtual time instead. docs/guide/predict.md derives it and states its accuracy.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algo/redundancy/redundancy.h"
#include "algo/tuning.h"
#include "core/noise/text.h"
#include "tools/common/command.h"
#include "commands.h"
#include "cost.h"
#include "formats.h"
#include "options.h"
#include "predict.h"
#include "tools/common/arguments.h"
#include "tools/common/whole.h"
#include "rates.h"
#include "steps.h"
#include "view.h"

/* ---- options ------------------------------------------------------------------------------- */

static bool read_ranks(const struct option_table *table, const struct option_entry *option,
		       void *settings, const char *text)
{
	struct predict *p = settings;
	const char *at = text;
	char *rest, valid[100];

	for (p->counts = 0; p->counts < COUNTS_MAX; at = rest + 1) {
		const double count = strtod(at, &rest);

		if (rest == at || !(count >= 1 && count <= COLL_RANKS_MAX) ||
		    count != floor(count) || (*rest && *rest != ','))
			break;
		p->ranks[p->counts++] = count;
		if (!*rest)
			return true;
	}
	snprintf(valid, sizeof(valid), "up to %d numbers from 1 to %u, with commas between",
		 COUNTS_MAX, (u32)COLL_RANKS_MAX);
	return option_refuse(table, option, text, valid);
}

static bool read_without(const struct option_table *table, const struct option_entry *option,
			 void *settings, const char *text)
{
	struct predict *p = settings;

	if (p->withouts == WITHOUT_MAX)
		return option_refuse(table, option, text, "at most 16 of them");
	p->without[p->withouts++] = text;
	return true;
}

static bool read_base(const struct option_table *table, const struct option_entry *option,
		      void *settings, const char *text)
{
	struct predict *p = settings;

	(void)table;
	(void)option;
	if (noise_base_read(text, &p->base))
		return false;
	p->ideal = p->base.median;
	return true;
}

/* Parsed when the collective is known. */
static bool read_algo(struct predict *p)
{
	const char *text = p->algo_text;
	const struct coll_algo *const *each;
	char why[300];
	size_t length = text ? strcspn(text, ":") : 0, used = 0;

	if (!text)
		return true;
	*why = 0;
	for (each = coll_algos; *each; each++) {
		if ((int)(*each)->collective != p->collective)
			continue;
		if (strlen((*each)->name) == length && !strncmp((*each)->name, text, length))
			p->algo = *each;
		if (used < sizeof(why))
			used += snprintf(why + used, sizeof(why) - used, "%s%s", used ? ", " : "",
					 (*each)->name);
	}
	if (!p->algo)
		return argument_refuse("predict", "--algo", text, why);
	if (!text[length] ||
	    !coll_tuning_parse(p->algo, text + length + 1, &p->tuning, why, sizeof(why)))
		return true;
	fprintf(stderr, "collnoise predict: --algo '%s': %s\n", text, why);
	return false;
}

static bool base_fits(const struct predict *p)
{
	if (!p->base.samples || (p->counts == 1 && p->ranks[0] > 1 &&
				 p->ranks[0] <= NOISE_STEPS_RANKS_MAX))
		return true;
	fprintf(stderr, "collnoise predict: --base was measured with one number of ranks: give -n "
		"one from 2 to %d\n", NOISE_STEPS_RANKS_MAX);
	return false;
}

static const char *const usage[] = {
	"usage: collnoise predict CAPTURE... [OPTION ...]",
	"",
	"Predicts what the noise of these nodes (any format of import) costs at N ranks that "
	"compute",
	"for a grain and then meet in a collective, over and over; and what it would cost without",
	"causes that can be pinned away, co-scheduled, with redundant exchanges, or offloaded.",
	NULL,
};

#define PREDICT_SECONDS(field) OPTION_SECONDS(struct predict, field, 0, 3600)

static const struct option_entry predict_entries[] = {
	{ "grain", 'g', "T", "computing between collectives",
	  OPTION_TIME(struct predict, grain, "us", 0, 3600 * NODE_S), .preset = "0" },
	{ "ranks", 'n', "LIST", "numbers of ranks, such as 16,1024,10000000", .read = read_ranks,
	  .otherwise = "10 to 10^7 by tens" },
	{ "collective", 0, "C", "the collective", .read = option_collective,
	  OPTION_FIELD(struct predict, collective), .preset = "allreduce" },
	{ "size", 's', "BYTES", "bytes of its vector, or of a block",
	  OPTION_NUMBER(struct predict, bytes, 1, 1ull << 40), .preset = "8" },
	{ "algo", 0, "A[:K=V,..]", "its algorithm", OPTION_TEXT(struct predict, algo_text),
	  .otherwise = "the one that the library would choose" },
	{ "alpha", 0, "T", "latency of a message", PREDICT_SECONDS(machine.alpha),
	  .preset = "2us" },
	{ "beta", 0, "T", "time of a byte", PREDICT_SECONDS(machine.beta), .preset = "0.1ns" },
	{ "gamma", 0, "T", "time of a byte's reduction", PREDICT_SECONDS(machine.gamma),
	  .preset = "0.1ns" },
	{ "overhead", 0, "T", "time that a message takes from its sender",
	  PREDICT_SECONDS(machine.overhead), .preset = "0.3us" },
	{ "ideal", 0, "T", "time of the collective without noise, where it was measured",
	  PREDICT_SECONDS(ideal) },
	{ "base", 0, "FILE",
	  "times of the collective without this noise, as coll bench --samples "
	  "and --base write them, for one N of at most 128: the median becomes --ideal, and the "
	  "deviations from it are added",
	  .read = read_base },
	{ "idle", 0, "T", "time between steps, not counted, in which noise costs nothing",
	  PREDICT_SECONDS(idle), .preset = "0" },
	{ "without", 0, "CAUSE|NAME",
	  "pinned away: a cause (irq, softirq, thread, ...) or the name "
	  "of a source; may be repeated",
	  .read = read_without, .otherwise = "thread, irq and softirq" },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct predict, json) },
	{ "plot", 0, "FILE.svg", "draw the slow-down over the ranks",
	  OPTION_SVG(struct predict, plot) },
	{ NULL },
};

const struct option_table noise_predict_options = {
	.command = "predict",
	.usage = usage,
	.list = { predict_entries },
	.arguments = OPTIONS_ANY,
};

static bool read_options(int argc, char **argv, struct predict *p)
{
	if (!options_read(&noise_predict_options, argc, argv, p) || !read_algo(p) || !base_fits(p))
		return false;
	if (optind < argc && argc - optind <= CAPTURES_MAX)
		return true;
	fprintf(stderr, "collnoise predict: from 1 to %d captures are needed; collnoise record "
		"makes them\n", CAPTURES_MAX);
	return false;
}

/* ---- captures ------------------------------------------------------------------------------ */

static bool is_without(const struct predict *p, const struct node_capture *capture,
		       const struct coll_noise_event *event)
{
	const char *cause = node_cause_name(event->cause);
	const char *name = event->source ? capture->source[event->source - 1].name : "";
	u32 i;

	for (i = 0; i < p->withouts; i++)
		if (!strcmp(p->without[i], cause) || (*name && !strcmp(p->without[i], name)))
			return true;
	return false;
}

static int without_sources(struct predict *p, const struct node_capture *from,
			   struct node_capture *to, double *moved, double *all)
{
	u64 i;
	u32 c;
	int status = 0;

	node_capture_init(to);
	for (c = 0; c < from->head.cpus && !status; c++) {
		struct coll_noise_cpu cpu = from->cpu[c];

		cpu.events = 0;
		status = node_capture_add_cpu(to, &cpu);
	}
	for (i = 0; i < from->head.events && !status; i++) {
		const struct coll_noise_event *e = &from->event[i];

		*all += e->duration;
		if (is_without(p, from, e))
			*moved += e->duration;
		else
			status = node_capture_add_event(to, e->start, e->duration, e->cpu,
							e->cause, 0);
	}
	return status ? status : node_capture_finish(to);
}

static int predict_load(struct predict *p, char **paths, u32 count)
{
	const struct noise_import any = { .format = NOISE_GUESS };
	double moved = 0, all = 0;
	int status = 0;

	for (p->captures = 0; p->captures < count && !status; p->captures++) {
		struct node_capture *capture = &p->capture[p->captures];

		status = noise_load("predict", paths[p->captures], &any, capture);
		if (!status)
			status = without_sources(p, capture, &p->pinned[p->captures], &moved, &all);
	}
	p->moved = all > 0 ? moved / all : 0;
	return status;
}

/* The mean rates of all captures: each rank has the noise of one of them. */
static void rates_of(const struct node_capture *capture, u32 captures,
		     struct coll_noise_rate rate[COLL_NOISES_MAX])
{
	double count[COLL_NOISES_MAX] = { 0 }, total[COLL_NOISES_MAX] = { 0 };
	struct coll_noise_rate one[COLL_NOISES_MAX];
	u32 i, k, kinds = 0;

	for (i = 0; i < captures; i++) {
		noise_rates(&capture[i], one);
		for (k = 0; k < COLL_NOISES_MAX && one[k].rate > 0; k++) {
			const int decade = log2(one[k].duration * 1e6) / 2;
			const u32 place = decade < 0 ? 0 : decade < COLL_NOISES_MAX ? decade :
							   COLL_NOISES_MAX - 1;

			count[place] += one[k].rate / captures;
			total[place] += one[k].rate * one[k].duration / captures;
		}
	}
	memset(rate, 0, COLL_NOISES_MAX * sizeof(*rate));
	for (k = 0; k < COLL_NOISES_MAX; k++)
		if (count[k] > 0)
			rate[kinds++] = (struct coll_noise_rate){ count[k], total[k] / count[k] };
}

static int stretch_of(const struct node_capture *capture, u32 captures, double seconds,
		      double wait, struct sim_stretch *stretch)
{
	const int status = noise_stretch(capture, captures, seconds * 1e9, wait * 1e9, stretch);

	if (status == -EINVAL)
		fprintf(stderr, "collnoise predict: the noise leaves no time to compute\n");
	return status;
}

/* ---- one N --------------------------------------------------------------------------------- */

static struct coll_call call_of(const struct predict *p, u32 ranks)
{
	const bool doubles = p->bytes % sizeof(double) == 0;

	return (struct coll_call){
		.collective = p->collective, .ranks = ranks,
		.type = doubles ? COLL_DOUBLE : COLL_UINT8, .reduction = COLL_SUM,
		.element = doubles ? sizeof(double) : 1, .commutative = true,
		.count = p->bytes / (doubles ? sizeof(double) : 1),
	};
}

/* Seconds added to the last rank's work. */
struct top {
	double again;		/* delays after the first, for a call at a random time */
	double more;		/* in any case */
};

/* Seconds that noise delays the last of `ranks` if the work may begin anywhere in an event. */
static int delay_anywhere(const struct predict *p, const struct node_capture *capture,
			  double seconds, double ranks, double *delay)
{
	struct sim_stretch stretch = { 0 };
	int status = stretch_of(capture, p->captures, seconds, INFINITY, &stretch);

	if (!status)
		*delay = stretch_mean(&stretch, ranks) * 1e-9 - seconds;
	stretch_free(&stretch);
	return status;
}

/*
 * The step of the last of `ranks`. A rank that has waited for others may begin inside an event;
 * one that has not waited cannot. The mean wait and the step's length determine each other, so
 * both are iterated. Delays after the first are scaled by the ratio of the first delay to that of
 * a call at a random time.
 */
static int predict_longest(const struct predict *p, const struct node_capture *capture,
			   double seconds, double ranks, struct top top,
			   struct predict_times *times)
{
	struct sim_stretch stretch = { 0 };
	double wait = p->idle, before, delay, again = 0, anywhere = 0;
	int status, round = 0;

	if (top.again > 0) {
		status = delay_anywhere(p, capture, seconds, ranks, &anywhere);
		if (status)
			return status;
	}
	do {
		status = stretch_of(capture, p->captures, seconds, wait, &stretch);
		if (status)
			break;
		delay = stretch_mean(&stretch, ranks) * 1e-9 - seconds;
		again = anywhere > 0 ? top.again * fmin(1, delay / anywhere) : 0;
		times->mean = seconds + delay + again + top.more;
		before = wait;
		wait = p->idle + times->mean - stretch_mean(&stretch, 1) * 1e-9;
	} while (ranks > 1 && ++round < ROUNDS_MAX && fabs(wait - before) > 0.01 * times->mean);
	if (!status)
		times->p99 = stretch_quantile(&stretch, ranks, 0.99) * 1e-9 + again + top.more;
	stretch_free(&stretch);
	return status;
}

/* Seconds of the collective without noise, by the algorithm that would be chosen. */
static double ideal_of(const struct predict *p, const struct coll_call *call,
		       const struct coll_algo **algo)
{
	struct coll_machine quiet = p->machine;

	memset(quiet.noise, 0, sizeof(quiet.noise));
	*algo = p->algo ? p->algo : coll_algo_choose(call, &p->tuning, &quiet);
	if (call->ranks == 1)
		return 0;
	return p->ideal > 0 ? p->ideal : *algo ? (*algo)->cost(call, &p->tuning, &quiet) : 0;
}

/* ---- simulated steps ------------------------------------------------------------------------- */

static int predict_simulate(const struct predict *p, const struct node_capture *capture,
			    bool together, struct noise_steps *steps, struct predict_times *times)
{
	struct coll_noise_span *table;
	int status = noise_steps_noise(capture, p->captures, together, &steps->noise, &table);

	if (!status)
		status = noise_steps_run(steps, &times->mean, &times->p99);
	free(table);
	return status;
}

static void redundant_job(const struct coll_redundancy with, struct sim_job *job)
{
	job->algo = coll_algo_find(COLL_ALLREDUCE, with.relays ? "butterfly-relayed" :
								 "butterfly-redundant");
	job->tuning = COLL_TUNING_UNSET;
	job->tuning.redundancy = with.exchanges;
	if (with.relays)
		job->tuning.relays = with.relays;
}

/* -E2BIG: the captures are too large to be simulated. */
static int predict_steps(const struct predict *p, const struct coll_call *call,
			 const struct coll_algo *algo, struct predict_row *row)
{
	struct noise_steps steps = {
		.job = { .algo = algo, .call = *call, .tuning = p->tuning },
		.costs = SIM_COSTS(p->machine.alpha, p->machine.beta, p->machine.gamma),
		.steps = { .grain = p->grain * 1e-9, .idle = p->idle },
		.base = p->base.samples ? &p->base : NULL,
	};
	struct predict_times *of = row->of;
	int status;

	steps.costs.send = steps.costs.redundant = p->machine.overhead;
	status = noise_steps_scale(&steps, row->base - p->grain * 1e-9);
	if (!status)
		status = predict_simulate(p, p->capture, false, &steps, &of[NOTHING]);
	if (!status)
		status = predict_simulate(p, p->pinned, false, &steps, &of[PINNED]);
	if (!status)
		status = predict_simulate(p, p->capture, true, &steps, &of[TOGETHER]);
	steps.steps.offloaded = true;
	if (!status)
		status = predict_simulate(p, p->capture, false, &steps, &of[OFFLOADED]);
	steps.steps.offloaded = false;
	of[REDUNDANT] = of[NOTHING];
	if (row->with.exchanges || row->with.relays) {
		redundant_job(row->with, &steps.job);
		if (!status)
			status = predict_simulate(p, p->capture, false, &steps, &of[REDUNDANT]);
	}
	return status;
}

static int predict_order(const struct predict *p, const struct coll_call *call, double ideal,
			 const struct coll_machine *m, const struct coll_machine *pinned,
			 struct predict_row *row)
{
	const struct coll_redundancy plain = { 0, 0 };
	const double grain = p->grain * 1e-9;
	const struct top without = { .again = coll_redundancy_delay_again(call, plain, m) };
	const struct top others = { .again = coll_redundancy_delay_again(call, plain, pinned) };
	const struct top redundant = {
		.again = coll_redundancy_delay_again(call, row->with, m),
		.more = coll_redundancy_cost(call, row->with, m) -
			coll_redundancy_cost(call, plain, m),
	};
	const struct top offloaded = { .more = ideal };
	struct predict_times *of = row->of;
	int status;

	status = predict_longest(p, p->capture, row->base, row->ranks, without, &of[NOTHING]);
	if (!status)
		status = predict_longest(p, p->pinned, row->base, row->ranks, others, &of[PINNED]);
	if (!status)
		status = predict_longest(p, p->capture, row->base, 1, (struct top){ 0 },
					 &of[TOGETHER]);
	if (!status)
		status = predict_longest(p, p->capture, row->base, row->ranks, redundant,
					 &of[REDUNDANT]);
	if (!status)
		status = predict_longest(p, p->capture, grain, row->ranks, offloaded,
					 &of[OFFLOADED]);
	return status;
}

static double watched_of(const struct predict *p)
{
	double watched = 0;
	u32 i;

	for (i = 0; i < p->captures; i++)
		watched += noise_watched(&p->capture[i]);
	return watched;
}

static int predict_one(const struct predict *p, u32 ranks, struct predict_row *row)
{
	const struct coll_call call = call_of(p, ranks);
	struct coll_machine m = p->machine, pinned = p->machine;
	const struct coll_algo *algo;
	const double ideal = ideal_of(p, &call, &algo);
	int status = -E2BIG;

	m.grain = pinned.grain = p->grain * 1e-9;
	rates_of(p->capture, p->captures, m.noise);
	rates_of(p->pinned, p->captures, pinned.noise);
	*row = (struct predict_row){ .ranks = ranks, .algo = algo ? algo->name : "?",
			     .base = m.grain + ideal };
	if (p->collective == COLL_ALLREDUCE)
		row->with = coll_redundancy_best(&call, ~0u, &m);
	row->beyond = ranks * (row->base * 1e9 + 1000) > watched_of(p);
	if (ranks > 1 && ranks <= NOISE_STEPS_RANKS_MAX && algo)
		status = predict_steps(p, &call, algo, row);
	row->simulated = !status;
	return status == -E2BIG ? predict_order(p, &call, ideal, &m, &pinned, row) : status;
}

/* ---- the command --------------------------------------------------------------------------- */

/* Long captures and many ranks take minutes. */
static void show_progress(const struct predict *p, u32 done)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K");
	if (done < p->counts)
		fprintf(stderr, "%u ranks: %u of %u", p->ranks[done], done + 1, p->counts);
}

static int predict_captures(struct predict *p, char **paths, u32 count)
{
	struct predict_row row[COUNTS_MAX] = { { 0 } };
	int status = predict_load(p, paths, count);
	u32 i;

	for (i = 0; i < p->counts && !status; i++) {
		show_progress(p, i);
		status = predict_one(p, p->ranks[i], &row[i]);
	}
	show_progress(p, p->counts);
	if (!status)
		(p->json ? predict_print_json : predict_print)(p, row);
	if (!status && p->plot)
		status = predict_draw(p, row);
	for (i = 0; i < p->captures; i++) {
		node_capture_free(&p->capture[i]);
		node_capture_free(&p->pinned[i]);
	}
	return status ? COMMAND_ERROR : COMMAND_OK;
}

int noise_predict(int argc, char **argv)
{
	static struct predict p = {
		.tuning = COLL_TUNING_UNSET,
		.ranks = { 10, 100, 1000, 10000, 100000, 1000000, 10000000 },
		.counts = 7,
	};

	if (!read_options(argc, argv, &p))
		return COMMAND_USAGE;
	if (!whole_possible("predict", p.plot))
		return COMMAND_ERROR;
	if (!p.withouts) {
		p.without[p.withouts++] = "thread";
		p.without[p.withouts++] = "irq";
		p.without[p.withouts++] = "softirq";
	}
	return predict_captures(&p, argv + optind, argc - optind);
}
