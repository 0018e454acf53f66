// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* collnoise measure and collnoise record: watch CPUs from user space. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/command.h"
#include "tools/common/whole.h"
#include "actions.h"
#include "commands.h"
#include "compare.h"
#include "formats.h"
#include "module.h"
#include "options.h"
#include "plot.h"
#include "rates.h"
#include "trace.h"
#include "verdict.h"
#include "watch.h"
#include "node/activity.h"

struct measure {
	const char *command;
	struct noise_watch_options watch;
	struct noise_limits limits;
	struct noise_trace trace;
	const char *output, *compare, *plot, *settings, *cgroup;
	struct noise_actions actions;	/* when a threshold is passed */
	u64 bucket;		/* bucket width of rtla's histogram, ns; 0: none */
	u64 entries;
	bool json, debug;
	struct noise_module *module;	/* NULL: it is not there */
	bool explained;		/* causes by the module, */
	u64 watching_cost;	/* and the ns that this took */
	struct noise_passed passed;	/* what the module saw pass --stop */
};

static bool read_action(const struct option_table *table, const struct option_entry *option,
			void *settings, const char *text)
{
	struct measure *m = settings;

	return noise_actions_read(table, option, &m->actions, text);
}

/* ---- traces, in rtla's syntax -------------------------------------------------------------- */

static bool read_event(const struct option_table *table, const struct option_entry *option,
		       void *settings, const char *text)
{
	struct measure *m = settings;

	if (m->trace.events == NOISE_TRACE_EVENTS)
		return option_refuse(table, option, text,
				     "one event per --event, at most 16 of them");
	m->trace.event[m->trace.events++].name = text;
	return true;
}

/* Applies to the preceding --event. */
static bool read_event_part(const struct option_table *table, const struct option_entry *option,
			    void *settings, const char *text)
{
	struct measure *m = settings;
	struct noise_trace_event *event = &m->trace.event[m->trace.events - 1];

	if (!m->trace.events)
		return option_refuse(table, option, text, "after the --event that it applies to");
	*(*option->name == 'f' ? &event->filter : &event->trigger) = text;
	return true;
}

/* An optional value, also in the form -t=FILE. */
static const char *value_of(const char *text, const char *otherwise)
{
	return text ? text + (*text == '=') : otherwise;
}

static const char trace_file[] = "osnoise_trace.txt";

static bool read_trace(const struct option_table *table, const struct option_entry *option,
		       void *settings, const char *text)
{
	struct measure *m = settings;

	(void)table;
	(void)option;
	m->trace.file = value_of(text, trace_file);
	return true;
}

static bool read_auto(const struct option_table *table, const struct option_entry *option,
		      void *settings, const char *text)
{
	struct option_entry stop = *option;
	struct measure *m = settings;

	stop.read = option_time;
	m->watch.threshold = NODE_US;
	m->trace.file = m->trace.file ? m->trace.file : trace_file;
	return option_time(table, &stop, settings, text);
}

static bool read_length(const struct option_table *table, const struct option_entry *option,
			void *settings, const char *text)
{
	struct option_entry time = *option;
	struct measure *m = settings;
	u64 length = 0;

	time.read = option_time;
	time.offset = 0;
	if (!option_time(table, &time, &length, text))
		return false;
	m->limits.length = length;
	return true;
}

static bool read_cgroup(const struct option_table *table, const struct option_entry *option,
			void *settings, const char *text)
{
	struct measure *m = settings;

	(void)table;
	(void)option;
	m->cgroup = value_of(text, NULL);
	return true;
}

static bool read_profile(const struct option_table *table, const struct option_entry *option,
			 void *settings, const char *text)
{
	struct measure *m = settings;

	(void)option;
	return noise_limits_profile(table->command, text, &m->limits);
}

static bool read_histogram(const struct option_table *table, const struct option_entry *option,
			   void *settings, const char *text)
{
	struct measure *m = settings;

	(void)table;
	(void)option;
	(void)text;
	m->bucket = m->bucket ? m->bucket : NODE_US;
	return true;
}

static const char *const usage[] = {
	"usage: collnoise measure [OPTION ...]",
	"       collnoise record -o FILE [OPTION ...]",
	"",
	"A thread on each CPU reads the clock. Where two readings are too far apart, something "
	"else",
	"had the CPU. Needs no privileges and no module.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0; 1 on errors; 2 for wrong options, or when a threshold was passed.",
	NULL,
};

#define MEASURE_TIME(field, unit, least, most) \
	OPTION_TIME(struct measure, field, unit, least, most)

static const struct option_entry measure_entries[] = {
	{ "cpus", 'c', "LIST", "CPUs to watch", NOISE_OPTION_CPUS(struct measure, watch.cpus),
	  .otherwise = "all that this program may use" },
	{ "house-keeping", 'H', "LIST", "CPUs for the rest of this program meanwhile",
	  NOISE_OPTION_CPUS(struct measure, watch.housekeeping) },
	{ "duration", 'd', "T", "how long",
	  MEASURE_TIME(watch.duration, "s", NODE_MS, 86400 * NODE_S), .preset = "60s" },
	{ "threshold", 'T', "T", "events longer than this",
	  MEASURE_TIME(watch.threshold, "us", 50, NODE_S), .otherwise = "200ns" },
	{ "period", 'p', "T", "watch only the beginning of each period",
	  MEASURE_TIME(watch.period, "us", NODE_US, 3600 * NODE_S) },
	{ "runtime", 'r', "T", "length of that beginning",
	  MEASURE_TIME(watch.runtime, "us", NODE_US, 3600 * NODE_S) },
	{ "stop", 's', "T", "stop when an event is longer than this: exit code 2",
	  MEASURE_TIME(watch.stop, "us", 1, 3600 * NODE_S) },
	{ "stop-total", 'S', "T", "stop when the events of a period add up to more: exit code 2",
	  MEASURE_TIME(watch.stop_total, "us", 1, 3600 * NODE_S) },
	{ "on-threshold", 0, "ACTION",
	  "also do this at a stop, as with rtla: "
	  "shell,command=COMMAND or signal,num=N,pid=PID (or pid=parent); may be repeated",
	  .read = read_action },
	{ "trace", 't', "FILE", "at a stop, write every event as a trace of osnoise",
	  .read = read_trace, .optional = true, .otherwise = trace_file },
	{ "event", 'e', "SYS[:EVENT]",
	  "with it this event of the kernel's tracing; may be repeated", .read = read_event },
	{ "filter", 0, "F", "filter of the --event before it", .read = read_event_part },
	{ "trigger", 0, "T", "trigger of the --event before it", .read = read_event_part },
	{ "auto", 'a', "T", "--stop T --threshold 1us --trace", .read = read_auto,
	  .as = option_time, .unit = "us", .least = 1, .most = 3600 * NODE_S,
	  OPTION_FIELD(struct measure, watch.stop) },
	{ "cgroup", 'C', "PATH", "watch in that cgroup", .read = read_cgroup, .optional = true,
	  .otherwise = "the caller's" },
	{ "priority", 'P', "SPEC", "o:NICE, r:PRIORITY, f:PRIORITY or d:RUNTIME:PERIOD",
	  NOISE_OPTION_POLICY(struct measure, watch.policy) },
	{ "warm-up", 0, "T", "watch for this time before",
	  MEASURE_TIME(watch.warm_up, "s", 0, 3600 * NODE_S), .preset = "0" },
	{ "capacity", 0, "N", "events that the memory of each CPU holds",
	  OPTION_NUMBER(struct measure, watch.capacity, 1, 1ull << 32), .otherwise = "1048576" },
	{ "output", 'o', "FILE", "write the capture: every event, for report, replay, export, ...",
	  OPTION_TEXT(struct measure, output) },
	{ "settings", 0, "FILE", "write libcoll's option noise, for COLL_CONFIG",
	  OPTION_TEXT(struct measure, settings) },
	{ "compare", 0, "FILE", "also what has changed since that capture (any format of import)",
	  OPTION_TEXT(struct measure, compare) },
	{ "profile", 0, "NAME", "a verdict by these limits; exit code 2 if one is passed",
	  .read = read_profile },
	{ "max-share", 0, "S", "limit of the share of the time, on each CPU",
	  NOISE_OPTION_SHARE(struct measure, limits.share) },
	{ "max-length", 0, "T", "limit of the length of an event", .as = option_time, .unit = "us",
	  .least = 1, .most = 3600 * NODE_S, .size = sizeof(u64), .read = read_length },
	{ "max-rate", 0, "N", "limit of the events a second, on each CPU",
	  OPTION_REAL(struct measure, limits.rate, 0, 1e9) },
	{ "histogram", 0, NULL, "print the histogram of rtla osnoise hist",
	  .read = read_histogram, .one_of = OPTION_OF_FORMATS },
	{ "bucket-size", 'b', "T", "width of its buckets", MEASURE_TIME(bucket, "us", 10, NODE_S),
	  .otherwise = "1us" },
	{ "entries", 'E', "N", "number of its buckets",
	  OPTION_NUMBER(struct measure, entries, 1, 1000000), .preset = "256" },
	{ "plot", 0, "FILE.svg", "draw a picture", OPTION_SVG(struct measure, plot) },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct measure, json) },
	{ "quiet", 'q', NULL, "no progress on the terminal",
	  OPTION_FLAG(struct measure, watch.quiet) },
	{ "debug", 'D', NULL, "print the properties of the clock and the loops on stderr",
	  OPTION_FLAG(struct measure, debug) },
	{ NULL },
};

const struct option_table noise_measure_options = {
	.command = "measure",
	.usage = usage,
	.closing = closing,
	.more = noise_limits_list,
	.list = { measure_entries },
};

const struct option_table noise_record_options = {
	.command = "record",
	.usage = usage,
	.closing = closing,
	.more = noise_limits_list,
	.list = { measure_entries },
};

static bool measure_complete(struct measure *m)
{
	struct noise_watch_options *w = &m->watch;

	if (!node_cpus_count(&w->cpus) && node_cpus_affinity(0, &w->cpus))
		return false;
	if (!w->period != !w->runtime || w->runtime > w->period) {
		fprintf(stderr, "collnoise %s: -p and -r go together, and the runtime is at most "
			"the period\n", m->command);
		return false;
	}
	if (m->trace.events && !m->trace.file) {
		fprintf(stderr, "collnoise %s: -e goes with -t, which writes what it traced\n",
			m->command);
		return false;
	}
	if (m->trace.file && !w->stop && !w->stop_total) {
		fprintf(stderr,
			"collnoise %s: -t goes with -s or -S: a trace is written when one of "
			"them stops it; -o keeps every capture\n",
			m->command);
		return false;
	}
	if (m->json && m->output && !strcmp(m->output, "-")) {
		fprintf(stderr, "collnoise %s: --json and -o -: stdout can have one of the two; valid: -o FILE\n",
			m->command);
		return false;
	}
	/* Without a period, sums are over 1 s, as in rtla. */
	if (w->stop_total && !w->period)
		w->period = w->runtime = NODE_S;
	return true;
}

/* ---- output ------------------------------------------------------------------------------- */

static void print_machine(const struct measure *m, const struct noise_watch *watch)
{
	char cost[24];
	u32 i;

	printf("\nclock: %s, rate known to %.3f ppm\n", noise_clock_name(&watch->clock),
	       watch->clock.ppm);
	if (m->explained)
		printf("causes: from the module, which took %s of CPU time\n",
		       node_time_text(m->watching_cost, cost));
	else
		printf("causes: %s\n", noise_module_state());
	for (i = 0; i < watch->watchers; i++) {
		const struct noise_watcher *w = &watch->watcher[i];

		printf("CPU %u: %llu times another task preempted the loop; steal %.0f ms "
		       "(/proc/stat)\n", w->cpu, (unsigned long long)w->involuntary,
		       w->steal / 1e6);
	}
}

static void print_debug(const struct noise_watch *watch)
{
	u32 i;

	fprintf(stderr, "clock %s: %.6f ns a tick, blur %llu and %llu ticks\n",
		noise_clock_name(&watch->clock), watch->clock.rate / 0x1p32,
		(unsigned long long)watch->clock.first.blur,
		(unsigned long long)watch->clock.last.blur);
	for (i = 0; i < watch->watchers; i++) {
		const struct noise_watcher *w = &watch->watcher[i];

		fprintf(stderr,
			"CPU %u: iteration %llu ticks, at least %llu; threshold %llu ticks; "
			"%llu iterations\n",
			w->cpu, (unsigned long long)w->iteration, (unsigned long long)w->least,
			(unsigned long long)w->loop.threshold,
			(unsigned long long)w->loop.iterations);
	}
}

static json_t *machine_json(const struct measure *m, const struct noise_watch *watch)
{
	json_t *cpus = json_array();
	u32 i;

	for (i = 0; i < watch->watchers; i++) {
		const struct noise_watcher *w = &watch->watcher[i];

		json_array_append_new(cpus, json_pack("{si sI sI sf sI}", "cpu", (int)w->cpu,
			"involuntary_switches", (json_int_t)w->involuntary, "steal_ns",
			(json_int_t)w->steal, "least_loop_ns",
			w->least * watch->clock.rate / 0x1p32, "iterations",
			(json_int_t)w->loop.iterations));
	}
	return json_pack("{s{ss sf sf} so ss sb sI sb sb}", "clock", "name",
			 noise_clock_name(&watch->clock), "ns_per_tick", watch->clock.rate / 0x1p32,
			 "error_ppm", watch->clock.ppm, "loops", cpus, "module",
			 noise_module_state(), "explained", m->explained, "watching_cost_ns",
			 (json_int_t)m->watching_cost, "stopped_by_threshold", watch->passed,
			 "interrupted", watch->interrupted);
}

static int print_all(const struct measure *m, const struct noise_watch *watch,
		     const struct noise_view *view, const struct noise_view *before)
{
	bool passed = true;

	if (m->bucket) {
		noise_view_histogram(view, m->bucket, m->entries, stdout);
	} else {
		noise_view_print(view, stdout);
		print_machine(m, watch);
	}
	if (before)
		noise_compare_print(before, view, stdout);
	if (noise_limits_any(&m->limits))
		passed = noise_verdict_print(&m->limits, view, stdout);
	if (watch->passed)
		printf("\nstopped: a threshold (-s, -S) was exceeded\n");
	if (m->passed.any)
		noise_passed_print(&m->passed, stdout);
	return passed && !watch->passed ? COMMAND_OK : COMMAND_USAGE;
}

static int print_json(const struct measure *m, const struct noise_watch *watch,
		      const struct noise_view *view, const struct noise_view *before)
{
	json_t *all = noise_view_json(view), *machine = machine_json(m, watch);
	bool passed = true;

	json_object_update(all, machine);
	json_decref(machine);
	if (before)
		json_object_set_new(all, "compare", noise_compare_json(before, view));
	if (noise_limits_any(&m->limits))
		json_object_set_new(all, "verdict",
				    noise_verdict_json(&m->limits, view, &passed));
	if (m->passed.any)
		json_object_set_new(all, "passed", noise_passed_json(&m->passed));
	noise_json_print(all, stdout);
	return passed && !watch->passed ? COMMAND_OK : COMMAND_USAGE;
}

/* ---- measuring ---------------------------------------------------------------------------- */

static int write_capture(const struct measure *m, const struct node_capture *capture)
{
	struct whole_file file;
	int status;

	if (!strcmp(m->output, "-"))
		return node_capture_write(capture, stdout);	/* command_run() says why not */
	status = whole_open(&file, m->output);
	if (!status) {
		node_capture_write(capture, file.to);
		status = whole_close(&file);
	}
	if (status)
		fprintf(stderr, "collnoise %s: cannot write %s: %s\n", m->command, m->output,
			strerror(-status));
	return status;
}

/* The loops are ready, and wait: what delays them now is not theirs. */
static void measure_ready(void *argument)
{
	struct measure *m = argument;
	const u32 capacity = m->watch.capacity < 1 << 20 ? m->watch.capacity : 1 << 20;

	/* What the module takes: up to 100 s. */
	m->explained = m->module && !noise_module_watch(m->module, &m->watch.cpus, capacity,
		m->watch.stop >= NODE_US && m->watch.stop <= 100 * NODE_S ? m->watch.stop : 0);
	if (m->module && !m->explained)
		fprintf(stderr, "collnoise %s: causes stay unknown: %s\n", m->command,
			noise_module_reason(m->module));
}

/* With the module: the cause of each event. */
static void measure_explain(struct measure *m, struct node_capture *capture)
{
	if (m->watch.stop)
		noise_module_passed(m->module, &m->passed);
	if (!noise_module_explain(m->module, capture, &m->watching_cost))
		return;
	fprintf(stderr, "collnoise %s: causes stay unknown: %s\n", m->command,
		noise_module_reason(m->module));
	m->explained = false;
}

/* Without it: tasks and interrupts that were active, by /proc. */
static int measure_loops(struct measure *m, struct noise_watch *watch,
			 struct node_capture *capture)
{
	struct node_activity *before = node_activity_sample(&m->watch.cpus), *after;
	int status = noise_watch_begin(watch, &m->watch, m->command);

	if (!status)
		status = noise_watch_wait(watch);
	after = status || m->explained ? NULL : node_activity_sample(&m->watch.cpus);
	if (!status)
		status = noise_watch_capture(watch, capture);
	if (!status && m->explained)
		measure_explain(m, capture);
	else if (!status && before && after)
		status = node_activity_difference(before, after, capture);
	node_activity_free(before);
	node_activity_free(after);
	return status;
}

static int measure_watch(struct measure *m, struct noise_watch *watch,
			 struct node_capture *capture)
{
	struct noise_module *module = NULL;
	int status = noise_module_open(&module);

	if (status && status != -ENOENT)
		fprintf(stderr, "collnoise %s: causes stay unknown: %s\n", m->command,
			noise_module_reason(module));
	m->module = status ? NULL : module;
	m->watch.ready = measure_ready;
	m->watch.ready_argument = m;
	status = measure_loops(m, watch, capture);
	noise_trace_stop(&m->trace);
	noise_module_close(module);
	return status;
}

static int measure_report(const struct measure *m, const struct noise_watch *watch,
			  const struct node_capture *capture, const struct noise_view *before)
{
	struct noise_view view;
	int status;

	if (noise_view_init(&view, capture))
		return COMMAND_ERROR;
	if (m->output && !strcmp(m->output, "-"))
		status = COMMAND_OK;	/* the capture is the only output */
	else
		status = (m->json ? print_json : print_all)(m, watch, &view, before);
	if (m->debug)
		print_debug(watch);
	if (m->plot && noise_plot_svg(m->command, &view, m->plot))
		status = COMMAND_ERROR;
	noise_view_free(&view);
	return status;
}

/* What was measured: to the files, and told, also if a file cannot be written. */
static int measure_keep(const struct measure *m, const struct noise_watch *watch,
			const struct node_capture *capture, const struct noise_view *before)
{
	const bool lost = m->output && write_capture(m, capture);
	const bool lost_rates = m->settings && noise_rates_write(m->command, capture, m->settings);
	const int status = measure_report(m, watch, capture, before);

	return lost || lost_rates ? COMMAND_ERROR : status;
}

static int measure_node(struct measure *m)
{
	const struct noise_import any = { .format = NOISE_GUESS };
	struct node_capture capture = { 0 }, earlier = { 0 };
	struct noise_view before = { 0 };
	struct noise_watch w;
	int status = COMMAND_ERROR;

	if (!whole_possible(m->command, m->output) || !whole_possible(m->command, m->settings) ||
	    !whole_possible(m->command, m->plot) ||
	    (m->cgroup && noise_cgroup_enter(m->cgroup, m->command)))
		return COMMAND_ERROR;
	if (m->compare && (noise_load(m->command, m->compare, &any, &earlier) ||
			   noise_view_init(&before, &earlier)))
		return COMMAND_ERROR;
	if (noise_trace_begin(&m->trace, m->command))
		goto forget;
	if (!measure_watch(m, &w, &capture))
		status = measure_keep(m, &w, &capture, m->compare ? &before : NULL);
	if (w.passed && m->trace.file && noise_trace_write(&m->trace, &capture, m->command))
		status = COMMAND_ERROR;
	noise_trace_end(&m->trace);
	if (w.passed)
		noise_actions_do(&m->actions, m->command);
	noise_watch_free(&w);
	node_capture_free(&capture);
forget:
	noise_view_free(&before);
	node_capture_free(&earlier);
	return status;
}

static bool read_options(const struct option_table *table, int argc, char **argv, struct measure *m)
{
	*m = (struct measure){ .command = table->command, .watch = noise_watch_defaults(),
			       .limits = NOISE_NO_LIMITS };
	return options_read(table, argc, argv, m) && measure_complete(m);
}

int noise_measure(int argc, char **argv)
{
	struct measure m;

	return read_options(&noise_measure_options, argc, argv, &m) ? measure_node(&m) :
								       COMMAND_USAGE;
}

int noise_record(int argc, char **argv)
{
	struct measure m;

	if (!read_options(&noise_record_options, argc, argv, &m))
		return COMMAND_USAGE;
	if (!m.output) {
		fprintf(stderr, "collnoise record: -o FILE is needed; - is the standard output\n");
		return COMMAND_USAGE;
	}
	return measure_node(&m);
}
