// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * collnoise calibrate: injects noise, measures it, and reports the requested and the measured
 * values.
 */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/command.h"
#include "tools/common/palette.h"
#include "tools/common/whole.h"
#include "calibration.h"
#include "commands.h"
#include "module.h"
#include "options.h"
#include "view.h"

/* The goals; --strict makes them thresholds. */
#define GOAL_RECALL 0.999	/* recall of events of twice the threshold and longer */
#define GOAL_POINTS 0.0005	/* difference of the injected and the measured share */
#define GOAL_CHANCE 0.01	/* probability that the gaps of a Poisson plan are random */

struct calibrate {
	struct noise_calibration c;
	u64 seed;
	u32 context;
	bool user, json, quiet, strict;
	const char *plot;
};

/* ---- options ---------------------------------------------------------------------------- */

static bool read_cpu(const struct option_table *table, const struct option_entry *option,
		     void *settings, const char *text)
{
	struct calibrate *k = settings;
	struct node_cpus cpus;
	const struct option_entry list = { .name = option->name };

	if (!noise_option_cpus(table, &list, &cpus, text))
		return false;
	k->c.cpu = node_cpus_next(&cpus, 0);
	return node_cpus_count(&cpus) == 1 || option_refuse(table, option, text, "one CPU");
}

static void add_model(struct calibrate *k, const char *text)
{
	k->c.model[k->c.models++].text = text;
}

static bool read_model(const struct option_table *table, const struct option_entry *option,
		       void *settings, const char *text)
{
	struct calibrate *k = settings;
	char valid[40];

	snprintf(valid, sizeof(valid), "at most %d models", NOISE_MODELS);
	if (k->c.models == NOISE_MODELS)
		return option_refuse(table, option, text, valid);
	add_model(k, text);
	return true;
}

static const char *const usage[] = {
	"usage: collnoise calibrate [--user] [OPTION ...]",
	"",
	"Injects noise on one CPU, measures it, and compares: which lengths of events are found, "
	"how",
	"exactly, and how exact the injector is.",
	NULL,
};

static const struct option_entry calibrate_entries[] = {
	{ "user", 0, NULL, "inject from user space, not by the module",
	  OPTION_FLAG(struct calibrate, user) },
	{ "context", 0, "C", "context of the module's noise",
	  OPTION_WORD(struct calibrate, context, noise_context_names),
	  .count = COLL_NOISE_CONTEXTS, .preset = "hardirq" },
	{ "cpus", 'c', "CPU", "where: one CPU", .read = read_cpu,
	  .otherwise = "the last that this program may use" },
	{ "duration", 'd', "T", "how long",
	  OPTION_TIME(struct calibrate, c.duration, "s", NODE_S, 86400 * NODE_S),
	  .preset = "10s" },
	{ "threshold", 'T', "T", "threshold of the measuring loop",
	  OPTION_TIME(struct calibrate, c.threshold, "us", 50, NODE_MS), .preset = "50ns" },
	{ "model", 0, "MODEL", "inject this model of collnoise inject; up to 8 times",
	  .read = read_model, .otherwise = "2.5 % of the time, periodic at 10, 100 and 1000 Hz, "
	  "and Poisson" },
	{ "seed", 0, "N", "seed of what is random", OPTION_NUMBER(struct calibrate, seed, 0,
								   UINT64_MAX), .preset = "1" },
	{ "priority", 'P', "SPEC", "priority of the measuring loop: o:NICE, r:PRIORITY, f:PRIORITY "
	  "or d:RUNTIME:PERIOD", NOISE_OPTION_POLICY(struct calibrate, c.measure),
	  .otherwise = "f:1 where that is allowed" },
	{ "plot", 0, "FILE.svg", "draw recall, precision and errors against length",
	  OPTION_SVG(struct calibrate, plot) },
	{ "strict", 0, NULL, "exit with code 2 if less than 99.9 % of the events of twice the "
	  "threshold and longer were found, or the injected and the measured share differ by "
	  "0.05 points", OPTION_FLAG(struct calibrate, strict) },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct calibrate, json) },
	{ "quiet", 'q', NULL, "no progress on the terminal", OPTION_FLAG(struct calibrate, quiet) },
	{ NULL },
};

const struct option_table noise_calibrate_options = {
	.command = "calibrate",
	.usage = usage,
	.list = { calibrate_entries },
};

static void show_step(const char *what)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%.60s\033[K", what);
}

/*
 * The loop has a lower priority than the injector and, where allowed, a higher one than all
 * others.
 */
static void choose_policies(struct noise_calibration *c)
{
	c->inject = noise_injector_policy();
	if (c->measure.policy || c->measure.nice)
		return;
	if (c->inject.policy == SCHED_FIFO)
		c->measure = (struct noise_policy){ .policy = SCHED_FIFO, .priority = 1 };
}

static bool read_models(struct calibrate *k)
{
	static const char *const usual[] = {
		"periodic:rate=10,duration=2500us", "periodic:rate=100,duration=250us",
		"periodic:rate=1000,duration=25us", "poisson:rate=200,duration=125us",
	};
	struct coll_text_error error;
	u32 i;

	for (i = 0; !k->c.models || (k->c.model[0].text == usual[0] && i < 4); i++)
		add_model(k, usual[i]);
	for (i = 0; i < k->c.models; i++) {
		struct noise_model_row *row = &k->c.model[i];

		if (!coll_noise_parse(row->text, k->seed, &row->said, &error))
			continue;
		fprintf(stderr, "collnoise calibrate: %s: %s\n", row->text, error.reason);
		return false;
	}
	return true;
}

static bool calibrate_complete(struct calibrate *k)
{
	struct node_cpus cpus;
	u32 cpu;

	k->c.module = !k->user;
	k->c.context = k->context;
	if (k->c.cpu == NODE_CPUS_MAX && !node_cpus_affinity(0, &cpus))
		for (cpu = node_cpus_next(&cpus, 0); cpu < NODE_CPUS_MAX;
		     cpu = node_cpus_next(&cpus, cpu + 1))
			k->c.cpu = cpu;
	choose_policies(&k->c);
	k->c.progress = k->quiet ? NULL : show_step;
	return read_models(k);
}

/* ---- goals ---------------------------------------------------------------------------------- */

static double share_of(u64 part, u64 all)
{
	return all ? (double)part / all : 1;
}

/* The share of the gaps of about that length that were injected; net: without the background. */
static double calibrate_precision(const struct noise_detector_row *row, bool net)
{
	double seen = row->seen - (net ? row->background : 0);

	if (seen < row->matched)
		seen = row->matched;
	return seen > 0 ? row->matched / seen : 1;
}

static bool recall_is_good(const struct noise_calibration *c, double *recall)
{
	u64 injected = 0, found = 0;
	u32 i;

	for (i = 0; i < NOISE_LENGTHS; i++)
		if (c->detector[i].length >= 2 * c->threshold) {
			injected += c->detector[i].injected;
			found += c->detector[i].found;
		}
	*recall = share_of(found, injected);
	return *recall >= GOAL_RECALL;
}

static bool model_is_good(const struct noise_model_row *row)
{
	return fabs(row->seen_share - row->asked_share) <= GOAL_POINTS &&
	       (row->ks_plan < 0 || row->ks_plan >= GOAL_CHANCE);
}

static const char *model_verdict(const struct noise_model_row *row)
{
	return model_is_good(row) ? "good" :
	       row->said.model.duration <= row->cost || row->seen_error > GOAL_POINTS ?
	       "cannot be decided on this machine" : "NOT GOOD";
}

static bool all_is_good(const struct noise_calibration *c)
{
	double recall;
	bool good = recall_is_good(c, &recall);
	u32 i;

	for (i = 0; i < c->models; i++)
		good &= model_is_good(&c->model[i]);
	return good;
}

/* ---- table --------------------------------------------------------------------------------- */

static void print_loop(const struct noise_calibration *c)
{
	const double ns = c->clock.rate / 0x1p32;
	char threshold[24];

	printf("CPU %u: clock %s, rate known to %.3f ppm; a loop iteration takes %.1f ns, at "
	       "least %.1f; threshold %s\n", c->cpu, noise_clock_name(&c->clock), c->clock.ppm,
	       c->iteration * ns, c->least * ns, node_time_text(c->threshold, threshold));
	printf("measuring: %s %d; injecting: %s%s\n", noise_policy_name(&c->measure),
	       (int)c->measure.priority, c->module ? "the module, " : "",
	       c->module ? noise_context_names[c->context] : noise_policy_name(&c->inject));
	printf("without injection: %.4f %% of the time taken, %.1f events/s\n",
	       100 * c->background_share, c->background_rate);
}

static void print_detector(const struct noise_calibration *c)
{
	char length[24], a[24], b[24], d[24];
	double recall;
	const bool good = recall_is_good(c, &recall);
	u32 i;

	printf("\nthe detector: stalls of the loop itself, measured by the loop\n"
	       "%10s %9s %9s %10s %10s %10s %12s %12s %12s\n", "length", "injected", "found",
	       "recall", "precision", "net of bg", "error p50", "error p95", "stall p95");
	for (i = 0; i < NOISE_LENGTHS; i++) {
		const struct noise_detector_row *row = &c->detector[i];

		printf("%10s %9llu %9llu %9.3f%% %9.2f%% %9.2f%% %12s %12s %12s\n",
		       node_time_text(row->length, length), (unsigned long long)row->injected,
		       (unsigned long long)row->found, 100 * share_of(row->found, row->injected),
		       100 * calibrate_precision(row, false), 100 * calibrate_precision(row, true),
		       node_time_text(row->error.p50, a), node_time_text(row->error.p95, b),
		       node_time_text(row->stall.p95, d));
	}
	printf("twice the threshold and longer: %s (recall %.4f %%, wanted %.1f %%)\n",
	       good ? "good" : "NOT GOOD", 100 * recall, 100 * GOAL_RECALL);
}

static void print_model(const struct noise_calibration *c, const struct noise_model_row *row)
{
	char a[24], b[24], d[24], e[24];

	printf("\n%s  (plan %016llx)\n", row->text, (unsigned long long)row->fingerprint);
	printf("  events: requested %llu, injected %llu, found %llu (%.3f %%)%s\n",
	       (unsigned long long)row->asked, (unsigned long long)row->injected,
	       (unsigned long long)row->found, 100 * share_of(row->found, row->injected),
	       row->lost ? "; the log was full" : "");
	printf("  of the time: asked %.4f %%, injected %.4f %%, seen %.4f +- %.4f %% (%+.4f "
	       "points: "
	       "%s); all gaps less the background %+.4f %%\n",
	       100 * row->asked_share, 100 * row->injected_share, 100 * row->seen_share,
	       100 * row->seen_error, 100 * (row->seen_share - row->asked_share),
	       model_verdict(row), 100 * (row->total_share - c->background_share));
	printf("  an event costs %s beyond its length, which is subtracted%s\n",
	       node_time_text(row->cost, a), row->said.model.duration <= row->cost ?
	       ": too much for such short events, from user space" : "");
	printf("  late: median %s, p95 %s, p99 %s, at most %s\n", node_time_text(row->late.p50, a),
	       node_time_text(row->late.p95, b), node_time_text(row->late.p99, d),
	       node_time_text(row->late.max, e));
	printf("  length: injector off by median %s, p99 %s; seen off by median %s, p95 %s; "
	       "%llu had company\n", node_time_text(row->length.p50, a),
	       node_time_text(row->length.p99, b), node_time_text(row->error.p50, d),
	       node_time_text(row->error.p95, e), (unsigned long long)row->disturbed);
	if (row->ks_plan >= 0)
		printf("  exponential, if these were chance: the plan's 10000 gaps %.3f, the idle "
		       "times injected %.3f\n", row->ks_plan, row->ks_done);
}

static void print_all(const struct noise_calibration *c)
{
	u32 i;

	print_loop(c);
	print_detector(c);
	printf("\nthe injector, %s\n", "seen by the loop on the same CPU");
	for (i = 0; i < c->models; i++)
		print_model(c, &c->model[i]);
}

/*
 * ---- JSON
 * ---------------------------------------------------------------------------------------
 */

static json_t *detector_json(const struct noise_calibration *c)
{
	json_t *list = json_array();
	u32 i;

	for (i = 0; i < NOISE_LENGTHS; i++) {
		const struct noise_detector_row *row = &c->detector[i];

		json_array_append_new(
			list,
			json_pack("{sI sI sI sf sI sI sf sf sf so so}", "length_ns",
				  (json_int_t)row->length, "injected", (json_int_t)row->injected,
				  "found", (json_int_t)row->found, "recall",
				  share_of(row->found, row->injected), "seen_about_that_long",
				  (json_int_t)row->seen, "of_these_injected",
				  (json_int_t)row->matched, "background_expected", row->background,
				  "precision", calibrate_precision(row, false), "precision_net",
				  calibrate_precision(row, true), "seen_error",
				  noise_quantiles_json(&row->error), "stall_error",
				  noise_quantiles_json(&row->stall)));
	}
	return list;
}

static json_t *model_json(const struct noise_calibration *c, const struct noise_model_row *row)
{
	char fingerprint[24];
	json_t *object;

	snprintf(fingerprint, sizeof(fingerprint), "%016llx", (unsigned long long)row->fingerprint);
	object = json_pack(
		"{ss ss sI sI sI sI sI sf sf sf sf sf sf sf so so so sI sb}", "model", row->text,
		"plan", fingerprint, "event_cost_ns", (json_int_t)row->cost, "asked",
		(json_int_t)row->asked, "injected", (json_int_t)row->injected, "found",
		(json_int_t)row->found, "lost", (json_int_t)row->lost, "recall",
		share_of(row->found, row->injected), "asked_share", row->asked_share,
		"injected_share", row->injected_share, "seen_share", row->seen_share, "points_off",
		100 * (row->seen_share - row->asked_share), "points_error95", 100 * row->seen_error,
		"net_share", row->total_share - c->background_share, "late",
		noise_quantiles_json(&row->late), "duration_error",
		noise_quantiles_json(&row->length), "seen_error", noise_quantiles_json(&row->error),
		"disturbed", (json_int_t)row->disturbed, "good", model_is_good(row));
	if (row->ks_plan >= 0) {
		json_object_set_new(object, "ks_chance_plan", json_real(row->ks_plan));
		json_object_set_new(object, "ks_chance_injected", json_real(row->ks_done));
	}
	return object;
}

static void print_json(const struct noise_calibration *c)
{
	const double ns = c->clock.rate / 0x1p32;
	json_t *models = json_array();
	double recall;
	u32 i;

	recall_is_good(c, &recall);
	for (i = 0; i < c->models; i++)
		json_array_append_new(models, model_json(c, &c->model[i]));
	noise_json_print(json_pack(
		"{si s{ss sf sf} sf sf sI ss ss s{sf sf} so sf so sb}", "cpu", (int)c->cpu,
		"clock", "name", noise_clock_name(&c->clock), "ns_per_tick", ns, "error_ppm",
		c->clock.ppm, "loop_ns", c->iteration * ns, "least_loop_ns", c->least * ns,
		"threshold_ns", (json_int_t)c->threshold, "measured_as",
		noise_policy_name(&c->measure), "injected_as",
		c->module ? noise_context_names[c->context] : noise_policy_name(&c->inject),
		"background", "share", c->background_share,
		"events_per_s", c->background_rate, "detector", detector_json(c),
		"recall_twice_threshold", recall, "injector", models, "good", all_is_good(c)),
		stdout);
}

/* ---- picture ----------------------------------------------------------------------------- */

static void write_plot(const struct noise_calibration *c, const char *path, FILE *to)
{
	u32 i;

	fprintf(to, "%sset terminal svg size 1100,820 font 'sans,12' background paper\n"
		"set output '%s'\n$d << EOD\n", palette_gp, path);
	for (i = 0; i < NOISE_LENGTHS; i++) {
		const struct noise_detector_row *r = &c->detector[i];

		fprintf(to, "%llu %.6f %.6f %.6f %.1f %.1f %.1f\n", (unsigned long long)r->length,
			100 * share_of(r->found, r->injected), 100 * calibrate_precision(r, false),
			100 * calibrate_precision(r, true), r->error.p05, r->error.p50,
			r->error.p95);
	}
	fprintf(to, "EOD\n$m << EOD\n");
	for (i = 0; i < c->models; i++)
		fprintf(to, "%u %.6f %.6f %.6f %.3f %.3f %.3f\n", i,
			100 * c->model[i].asked_share, 100 * c->model[i].injected_share,
			100 * c->model[i].seen_share, c->model[i].late.p50 / 1e3,
			c->model[i].late.p95 / 1e3, c->model[i].late.p99 / 1e3);
	fprintf(to, "EOD\nset multiplot layout 2,2 title 'CPU %u: loop %.1f ns, threshold %llu ns, "
		"background %.3f %%'\nset grid lc rgb rule\nset border 3\nset tics nomirror\n"
		"set logscale x\nset format x '10^{%%T}'\nset xlabel 'length, ns'\n", c->cpu,
		c->iteration * c->clock.rate / 0x1p32, (unsigned long long)c->threshold,
		100 * c->background_share);
	fprintf(to, "set key bottom right\nset yrange [0:105]\nset ylabel '%%'\n"
		    "set title 'Found of what was there'\n"
		    "plot $d using 1:2 with linespoints lw 2 pt 7 ps 0.5 title 'recall', "
		    "$d using 1:3 with linespoints lw 1 pt 7 ps 0.4 title 'precision', "
		    "$d using 1:4 with linespoints lw 2 pt 7 ps 0.4 title 'precision, net of "
		    "background'\n"
		    "set yrange [*:*]\nset ylabel 'ns'\nset key top left\n"
		    "set title 'Length seen, less length injected'\nset logscale y\n"
		    "plot $d using 1:(abs($6)<1?1:abs($6)) with linespoints lw 2 pt 7 ps 0.5 title "
		    "'median', "
		    "$d using 1:(abs($7)<1?1:abs($7)) with linespoints pt 7 ps 0.4 title 'p95'\n"
		    "unset logscale\nset format x '%%g'\nset xlabel ''\nset xtics (");
	for (i = 0; i < c->models; i++)
		fprintf(to, "%s'%.30s' %u", i ? ", " : "", c->model[i].text, i);
	fprintf(to, ") noenhanced rotate by -20 font ',9'\nset rmargin 8\nset boxwidth 0.25\n"
		"set style fill solid 0.6\nset xrange [-0.6:%.1f]\n"
		"set title 'Of the time'\nset ylabel '%%'\nset yrange [0:*]\n"
		"plot $m using ($1-0.27):2 with boxes title 'asked', "
		"$m using 1:3 with boxes title 'injected', "
		"$m using ($1+0.27):4 with boxes title 'seen'\n"
		"set title 'Late'\nset ylabel 'us'\nset yrange [*:*]\nset logscale y\n"
		"plot $m using ($1-0.27):5 with boxes title 'median', "
		"$m using 1:6 with boxes title 'p95', $m using ($1+0.27):7 with boxes title 'p99'\n"
		"unset multiplot\n", c->models - 0.4);
}

static int calibrate_plot(const struct noise_calibration *c, const char *path)
{
	FILE *gnuplot;

	fflush(stdout);
	gnuplot = strchr(path, '\'') ? NULL : popen("gnuplot -", "we");
	if (gnuplot)
		write_plot(c, path, gnuplot);
	if (gnuplot && !pclose(gnuplot))
		return 0;
	fprintf(stderr, "collnoise calibrate: gnuplot did not draw %s; is it installed, and the "
		"file's folder writable?\n", path);
	return -EIO;
}

int noise_calibrate(int argc, char **argv)
{
	struct calibrate k = { .c.cpu = NODE_CPUS_MAX };
	int status = COMMAND_USAGE;
	u32 i;

	if (options_read(&noise_calibrate_options, argc, argv, &k) && calibrate_complete(&k)) {
		status = !whole_possible("calibrate", k.plot) || noise_calibrate_run(&k.c, "calibrate") ?
			 COMMAND_ERROR : COMMAND_OK;
		if (k.c.progress && isatty(STDERR_FILENO))
			fprintf(stderr, "\r\033[K");
		if (status == COMMAND_OK) {
			(k.json ? print_json : print_all)(&k.c);
			if (k.strict && !all_is_good(&k.c))
				status = COMMAND_USAGE;
			if (k.plot && calibrate_plot(&k.c, k.plot))
				status = COMMAND_ERROR;
		}
	}
	for (i = 0; i < k.c.models; i++)
		coll_noise_said_free(&k.c.model[i].said);
	return status;
}
