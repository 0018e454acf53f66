// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* collnoise measure and collnoise record: watch CPUs from user space. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/command.h"
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

enum {
	OPTION_JSON = 256,
	OPTION_COMPARE,
	OPTION_PROFILE,
	OPTION_SHARE,
	OPTION_LENGTH,
	OPTION_RATE,
	OPTION_WARM_UP,
	OPTION_ROOM,
	OPTION_HISTOGRAM,
	OPTION_PLOT,
	OPTION_SETTINGS,
	OPTION_ACTION,
	OPTION_FILTER,
	OPTION_TRIGGER,
	ACTIONS_MAX = 8,
};

struct measure {
	const char *command;
	struct noise_watch_options watch;
	struct noise_limits limits;
	struct noise_trace trace;
	const char *output, *compare, *plot, *settings, *cgroup;
	const char *action[ACTIONS_MAX];	/* when a threshold is passed */
	int actions;
	u64 bucket;		/* ns; 0: no histogram of rtla's */
	u64 entries;
	bool json, debug;
	bool explained;		/* by the module, */
	u64 watching_cost;	/* which took so many ns for that */
};

static const char *const help[] = {
	"usage: collnoise measure [OPTION ...]",
	"       collnoise record -o FILE [OPTION ...]",
	"",
	"A thread on each CPU reads the clock; where two readings are too far apart, somebody",
	"else had the CPU. Needs no privileges and no module.",
	"",
	"  -c, --cpus LIST       CPUs to watch (default: all that this program may use)",
	"  -H, --house-keeping LIST  where the rest of this program stays meanwhile",
	"  -d, --duration T      how long (default 60s; a bare number: seconds)",
	"  -T, --threshold T     events longer than this (default 200ns, at least 50ns; a bare",
	"                        number, here and below: microseconds)",
	"  -p, --period T        watch only the beginning of each period,",
	"  -r, --runtime T       for so long",
	"  -s, --stop T          stop when an event is longer than this: exit code 2",
	"  -S, --stop-total T    stop when the events of a period add up to more: exit code 2",
	"      --on-threshold ACTION  then, too; again and again, as with rtla:",
	"                        shell,command=COMMAND or signal,num=N,pid=PID (or pid=parent)",
	"  -t, --trace[=FILE]    then, too: every event as a trace of osnoise (osnoise_trace.txt),",
	"  -e, --event SYS[:EVENT]  and with it what the kernel traced of this meanwhile;",
	"      --filter F, --trigger T  of the -e before it",
	"  -a, --auto T          -s T -T 1us -t",
	"  -C, --cgroup[=PATH]   in that cgroup (default: the caller's)",
	"  -P, --priority SPEC   o:NICE, r:PRIORITY, f:PRIORITY or d:RUNTIME:PERIOD",
	"      --warm-up T       watch so long before (default 0; a bare number: seconds)",
	"      --room N          events to keep room for on each CPU (default 1048576)",
	"  -o, --output FILE     keep the capture: every event, for report, replay, export, ...",
	"      --settings FILE   write what libcoll's option noise takes; for COLL_CONFIG",
	"      --compare FILE    also what changed since that capture (any format of import)",
	"      --profile NAME    a verdict; exit code 2 if it is not passed:",
	NULL,
}, *const help_rest[] = {
	"      --max-share S, --max-length T, --max-rate N   limits of your own: of the time,",
	"                        of one event, of events a second; on each CPU",
	"      --histogram       as rtla osnoise hist prints it;",
	"  -b, --bucket-size T   of so wide buckets (default 1us),",
	"  -E, --entries N       so many (default 256)",
	"      --plot FILE.svg   also a picture",
	"      --json            for programs",
	"  -q, --quiet           no progress on the terminal",
	"  -D, --debug           also what the clock and the loops are like, on stderr",
	"",
	"Exit code: 0; 1 on errors; 2 for wrong options, or when a threshold was passed.",
	NULL,
};

static const struct option options_known[] = {
	{ "cpus", required_argument, NULL, 'c' },
	{ "house-keeping", required_argument, NULL, 'H' },
	{ "duration", required_argument, NULL, 'd' },
	{ "threshold", required_argument, NULL, 'T' },
	{ "period", required_argument, NULL, 'p' },
	{ "runtime", required_argument, NULL, 'r' },
	{ "stop", required_argument, NULL, 's' },
	{ "stop-total", required_argument, NULL, 'S' },
	{ "on-threshold", required_argument, NULL, OPTION_ACTION },
	{ "trace", optional_argument, NULL, 't' },
	{ "event", required_argument, NULL, 'e' },
	{ "filter", required_argument, NULL, OPTION_FILTER },
	{ "trigger", required_argument, NULL, OPTION_TRIGGER },
	{ "auto", required_argument, NULL, 'a' },
	{ "cgroup", optional_argument, NULL, 'C' },
	{ "priority", required_argument, NULL, 'P' },
	{ "warm-up", required_argument, NULL, OPTION_WARM_UP },
	{ "room", required_argument, NULL, OPTION_ROOM },
	{ "output", required_argument, NULL, 'o' },
	{ "compare", required_argument, NULL, OPTION_COMPARE },
	{ "profile", required_argument, NULL, OPTION_PROFILE },
	{ "max-share", required_argument, NULL, OPTION_SHARE },
	{ "max-length", required_argument, NULL, OPTION_LENGTH },
	{ "max-rate", required_argument, NULL, OPTION_RATE },
	{ "histogram", no_argument, NULL, OPTION_HISTOGRAM },
	{ "bucket-size", required_argument, NULL, 'b' },
	{ "entries", required_argument, NULL, 'E' },
	{ "plot", required_argument, NULL, OPTION_PLOT },
	{ "settings", required_argument, NULL, OPTION_SETTINGS },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "quiet", no_argument, NULL, 'q' },
	{ "debug", no_argument, NULL, 'D' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void measure_usage(void)
{
	argument_help(help, stdout);
	noise_limits_list(stdout);
	argument_help(help_rest, stdout);
}

/* ---- options ----------------------------------------------------------------------------- */

static bool read_limit(struct measure *m, int key)
{
	u64 length;

	switch (key) {
	case OPTION_PROFILE:
		return noise_limits_profile(m->command, optarg, &m->limits);
	case OPTION_SHARE:
		return noise_option_share(m->command, "--max-share", optarg, &m->limits.share);
	case OPTION_LENGTH:
		if (!noise_option_time(m->command, "--max-length", optarg, NOISE_US, 1, 3600 * NOISE_S,
				 &length))
			return false;
		m->limits.length = length;
		return true;
	default:
		return noise_option_real(m->command, "--max-rate", optarg, 0, 1e9, &m->limits.rate);
	}
}

/* ---- actions, in the words of rtla ----------------------------------------------------------- */

/* "signal,num=2,pid=parent" */
static bool read_signal(const char *text, int *number, pid_t *pid)
{
	int end = 0;

	if (sscanf(text, "signal,num=%d,pid=%d%n", number, pid, &end) == 2 && !text[end])
		return *number > 0 && *number <= SIGRTMAX && *pid > 0;
	end = 0;
	*pid = getppid();
	return sscanf(text, "signal,num=%d,pid=parent%n", number, &end) == 1 && end &&
	       !text[end] && *number > 0 && *number <= SIGRTMAX;
}

static bool read_action(struct measure *m, const char *text)
{
	static const char shell[] = "shell,command=";
	int number;
	pid_t pid;

	if (m->actions < ACTIONS_MAX &&
	    ((!strncmp(text, shell, strlen(shell)) && text[strlen(shell)]) ||
	     read_signal(text, &number, &pid))) {
		m->action[m->actions++] = text;
		return true;
	}
	fprintf(stderr, "collnoise %s: --on-threshold '%s'; valid: shell,command=COMMAND and "
		"signal,num=N,pid=PID or pid=parent, %d of them at most\n", m->command, text,
		ACTIONS_MAX);
	return false;
}

static void measure_act(const struct measure *m)
{
	int i, number;
	pid_t pid;

	fflush(stdout);
	for (i = 0; i < m->actions; i++) {
		const bool is_signal = read_signal(m->action[i], &number, &pid);

		if (is_signal ? kill(pid, number) : system(strchr(m->action[i], '=') + 1))
			fprintf(stderr, "collnoise %s: --on-threshold %s: %s\n", m->command,
				m->action[i], is_signal ? strerror(errno) : "it failed");
	}
}

/* ---- a trace, in the words of rtla ------------------------------------------------------------- */

static bool add_trace_event(struct measure *m)
{
	if (m->trace.events < NOISE_TRACE_EVENTS) {
		m->trace.event[m->trace.events++].name = optarg;
		return true;
	}
	fprintf(stderr, "collnoise %s: -e '%s'; valid: %d of them at most\n", m->command, optarg,
		NOISE_TRACE_EVENTS);
	return false;
}

static bool of_trace_event(struct measure *m, int key)
{
	struct noise_trace_event *event = &m->trace.event[m->trace.events - 1];

	if (!m->trace.events) {
		fprintf(stderr, "collnoise %s: --%s '%s' goes after the -e that it is for\n",
			m->command, key == OPTION_FILTER ? "filter" : "trigger", optarg);
		return false;
	}
	*(key == OPTION_FILTER ? &event->filter : &event->trigger) = optarg;
	return true;
}

/* What an optional argument is, which may have come as -t=FILE. */
static const char *measure_given(const char *otherwise)
{
	if (!optarg)
		return otherwise;
	return optarg + (*optarg == '=');
}

static bool read_trace_option(struct measure *m, int key)
{
	static const char usual[] = "osnoise_trace.txt";

	switch (key) {
	case 't':
		m->trace.file = measure_given(usual);
		return true;
	case 'e':
		return add_trace_event(m);
	case 'a':
		m->watch.threshold = NOISE_US;
		m->trace.file = m->trace.file ? m->trace.file : usual;
		return noise_option_time(m->command, "-a", optarg, NOISE_US, 1, 3600 * NOISE_S,
				   &m->watch.stop);
	default:
		return of_trace_event(m, key);
	}
}

static bool read_watch_option(struct measure *m, int key)
{
	struct noise_watch_options *w = &m->watch;
	const char *c = m->command;

	switch (key) {
	case 'c':
		return noise_option_cpus(c, "-c", optarg, &w->cpus);
	case 'H':
		return noise_option_cpus(c, "-H", optarg, &w->housekeeping);
	case 'd':
		return noise_option_time(c, "-d", optarg, NOISE_S, NOISE_MS, 86400 * NOISE_S,
				   &w->duration);
	case 'T':
		return noise_option_time(c, "-T", optarg, NOISE_US, 50, NOISE_S, &w->threshold);
	case 'p':
		return noise_option_time(c, "-p", optarg, NOISE_US, NOISE_US, 3600 * NOISE_S, &w->period);
	case 'r':
		return noise_option_time(c, "-r", optarg, NOISE_US, NOISE_US, 3600 * NOISE_S,
				   &w->runtime);
	case 's':
		return noise_option_time(c, "-s", optarg, NOISE_US, 1, 3600 * NOISE_S, &w->stop);
	case 'S':
		return noise_option_time(c, "-S", optarg, NOISE_US, 1, 3600 * NOISE_S, &w->stop_total);
	case 'P':
		return noise_option_policy(c, "-P", optarg, &w->policy);
	case OPTION_WARM_UP:
		return noise_option_time(c, "--warm-up", optarg, NOISE_S, 0, 3600 * NOISE_S, &w->warm_up);
	case OPTION_ROOM:
		return argument_number(c, "--room", optarg, 1, 1ull << 32, &w->room);
	case 'q':
		w->quiet = true;
		return true;
	default:
		return read_limit(m, key);
	}
}

static bool ends_in_svg(const char *command, const char *path)
{
	const size_t length = strlen(path);

	if (length > 4 && !strcmp(path + length - 4, ".svg"))
		return true;
	fprintf(stderr, "collnoise %s: --plot '%s'; valid: a file name ending in .svg\n", command,
		path);
	return false;
}

static bool read_option(struct measure *m, int key, char **argv)
{
	switch (key) {
	case OPTION_JSON:
		m->json = true;
		return true;
	case OPTION_HISTOGRAM:
		m->bucket = m->bucket ? m->bucket : NOISE_US;
		return true;
	case 'b':
		return noise_option_time(m->command, "-b", optarg, NOISE_US, 10, NOISE_S, &m->bucket);
	case 'E':
		return argument_number(m->command, "-E", optarg, 1, 1000000, &m->entries);
	case OPTION_PLOT:
		m->plot = optarg;
		return ends_in_svg(m->command, optarg);
	case OPTION_ACTION:
		return read_action(m, optarg);
	case OPTION_SETTINGS:
		m->settings = optarg;
		return true;
	case 'o':
		m->output = optarg;
		return true;
	case OPTION_COMPARE:
		m->compare = optarg;
		return true;
	case 'D':
		m->debug = true;
		return true;
	case 'C':
		m->cgroup = measure_given(NULL);
		return true;
	case 't':
	case 'e':
	case 'a':
	case OPTION_FILTER:
	case OPTION_TRIGGER:
		return read_trace_option(m, key);
	case ':':
	case '?':
		return argument_unknown(m->command, key, argv, options_known);
	default:
		return read_watch_option(m, key);
	}
}

static bool measure_complete(struct measure *m)
{
	struct noise_watch_options *w = &m->watch;

	if (!noise_cpus_count(&w->cpus) && noise_cpus_affinity(0, &w->cpus))
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
	/* Sums are over a second where there is no period, as rtla has it. */
	if (w->stop_total && !w->period)
		w->period = w->runtime = NOISE_S;
	return true;
}

static bool read_options(int argc, char **argv, struct measure *m)
{
	int key;

	opterr = 0;
	while ((key = getopt_long(argc, argv, ":c:H:d:T:p:r:s:S:P:t::e:a:C::o:b:E:qDh",
				  options_known, NULL)) != -1) {
		if (key == 'h') {
			measure_usage();
			exit(COMMAND_OK);
		}
		if (!read_option(m, key, argv))
			return false;
	}
	return noise_option_no_more(m->command, argc, argv) && measure_complete(m);
}

/* ---- what is said ------------------------------------------------------------------------- */

static void print_machine(const struct measure *m, const struct noise_watch *watch)
{
	char cost[24];
	u32 i;

	printf("\nclock: %s, rate known to %.3f ppm\n", noise_clock_name(&watch->clock),
	       watch->clock.ppm);
	if (m->explained)
		printf("causes: from the module, which took %s to watch\n",
		       noise_time_text(m->watching_cost, cost));
	else
		printf("causes: %s\n", noise_module_state());
	for (i = 0; i < watch->watchers; i++) {
		const struct noise_watcher *w = &watch->watcher[i];

		printf("CPU %u: %llu times another task was put in the loop's place; steal %.0f ms "
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

		fprintf(stderr, "CPU %u: turn %llu ticks, at least %llu; threshold %llu ticks; "
			"%llu turns\n", w->cpu, (unsigned long long)w->turn,
			(unsigned long long)w->least, (unsigned long long)w->loop.threshold,
			(unsigned long long)w->loop.turns);
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
			w->least * watch->clock.rate / 0x1p32, "turns",
			(json_int_t)w->loop.turns));
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
		printf("\nstopped: a threshold (-s, -S) was passed\n");
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
	noise_json_print(all, stdout);
	return passed && !watch->passed ? COMMAND_OK : COMMAND_USAGE;
}

/* ---- what is done ------------------------------------------------------------------------- */

static int write_capture(const struct measure *m, const struct noise_capture *capture)
{
	FILE *to = strcmp(m->output, "-") ? fopen(m->output, "we") : stdout;
	int status = to ? noise_capture_write(capture, to) : -errno;

	if (to && to != stdout && fclose(to) && !status)
		status = -errno;
	if (status)
		fprintf(stderr, "collnoise %s: cannot write %s: %s\n", m->command, m->output,
			strerror(-status));
	return status;
}

/* Without the module: who was about, as far as /proc tells. */
static int look_about(const struct measure *m, struct noise_watch *watch,
		      struct noise_capture *capture)
{
	struct noise_activity *before = noise_activity_sample(&m->watch.cpus), *after;
	int status = noise_watch_begin(watch, &m->watch, m->command);

	if (!status)
		status = noise_watch_wait(watch);
	after = status ? NULL : noise_activity_sample(&m->watch.cpus);
	if (!status)
		status = noise_watch_capture(watch, capture);
	if (!status && before && after)
		status = noise_activity_difference(before, after, capture);
	noise_activity_free(before);
	noise_activity_free(after);
	return status;
}

/* With it: each event's cause. */
static int watch_with_module(struct measure *m, struct noise_module *module,
			     struct noise_watch *watch, struct noise_capture *capture)
{
	int status = noise_watch_begin(watch, &m->watch, m->command);

	if (!status)
		status = noise_watch_wait(watch);
	if (!status)
		status = noise_watch_capture(watch, capture);
	if (!status && noise_module_explain(module, capture, &m->watching_cost)) {
		fprintf(stderr, "collnoise %s: causes stay unknown: %s\n", m->command,
			noise_module_reason(module));
		m->explained = false;
	}
	return status;
}

static int measure_watch(struct measure *m, struct noise_watch *watch,
			 struct noise_capture *capture)
{
	const u32 room = m->watch.room < 1 << 20 ? m->watch.room : 1 << 20;
	struct noise_module *module = NULL;
	int status = noise_module_open(&module);

	if (!status)
		status = noise_module_watch(module, &m->watch.cpus, room);
	if (status && status != -ENOENT)
		fprintf(stderr, "collnoise %s: causes stay unknown: %s\n", m->command,
			noise_module_reason(module));
	m->explained = !status;
	status = m->explained ? watch_with_module(m, module, watch, capture) :
				look_about(m, watch, capture);
	noise_trace_stop(&m->trace);
	noise_module_close(module);
	return status;
}

static int measure_tell(const struct measure *m, const struct noise_watch *watch,
			const struct noise_capture *capture, const struct noise_view *before)
{
	struct noise_view view;
	int status;

	if (noise_view_init(&view, capture))
		return COMMAND_ERROR;
	if (m->output && !strcmp(m->output, "-"))
		status = COMMAND_OK;	/* the capture is all of the output */
	else
		status = (m->json ? print_json : print_all)(m, watch, &view, before);
	if (m->debug)
		print_debug(watch);
	if (m->plot && noise_plot_svg(m->command, &view, m->plot))
		status = COMMAND_ERROR;
	noise_view_free(&view);
	return status;
}

static int measure_node(struct measure *m)
{
	const struct noise_import any = { .format = NOISE_GUESS };
	struct noise_capture capture = { 0 }, earlier = { 0 };
	struct noise_view before = { 0 };
	struct noise_watch w;
	int status = COMMAND_ERROR;

	if (m->cgroup && noise_cgroup_enter(m->cgroup, m->command))
		return COMMAND_ERROR;
	if (m->compare && (noise_load(m->command, m->compare, &any, &earlier) ||
			   noise_view_init(&before, &earlier)))
		return COMMAND_ERROR;
	if (noise_trace_begin(&m->trace, m->command))
		goto forget;
	if (!measure_watch(m, &w, &capture) && !(m->output && write_capture(m, &capture)) &&
	    !(m->settings && noise_rates_write(m->command, &capture, m->settings)))
		status = measure_tell(m, &w, &capture, m->compare ? &before : NULL);
	if (w.passed && m->trace.file && noise_trace_write(&m->trace, &capture, m->command))
		status = COMMAND_ERROR;
	noise_trace_end(&m->trace);
	if (w.passed)
		measure_act(m);
	noise_watch_free(&w);
	noise_capture_free(&capture);
forget:
	noise_view_free(&before);
	noise_capture_free(&earlier);
	return status;
}

int noise_measure(int argc, char **argv)
{
	struct measure m = { .command = "measure", .watch = noise_watch_defaults(),
			     .limits = NOISE_NO_LIMITS, .entries = 256 };

	m.watch.duration = 60 * NOISE_S;
	return read_options(argc, argv, &m) ? measure_node(&m) : COMMAND_USAGE;
}

int noise_record(int argc, char **argv)
{
	struct measure m = { .command = "record", .watch = noise_watch_defaults(),
			     .limits = NOISE_NO_LIMITS, .entries = 256 };

	m.watch.duration = 60 * NOISE_S;
	if (!read_options(argc, argv, &m))
		return COMMAND_USAGE;
	if (!m.output) {
		fprintf(stderr, "collnoise record: -o FILE is needed; - is the standard output\n");
		return COMMAND_USAGE;
	}
	return measure_node(&m);
}
