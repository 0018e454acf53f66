// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* collnoise inject and collnoise replay: noise by a model, or of a capture. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/noise/text.h"
#include "tools/common/command.h"
#include "tools/common/whole.h"
#include "commands.h"
#include "formats.h"
#include "injector.h"
#include "module.h"
#include "options.h"
#include "view.h"

static const u64 EPOCH_NOT_GIVEN = UINT64_MAX;

struct noise_injection {
	const char *command;
	bool replay, user, json, quiet, epoch_given;
	const char *what;		/* the model or the file */
	struct noise_injector_options options;
	u64 seed;
	double max_share;
	u32 phase, context;
	const char *output, *log;
	struct coll_noise_said said;	/* inject: owns the plan's model and table */
	struct node_capture capture;	/* replay */
	struct coll_noise_model *model;	/* replay: one per CPU, */
	struct coll_noise_span *table;	/* and their tables */
	struct coll_noise_plan *plan;
};

/* ---- options ------------------------------------------------------------------------------ */

static const char *const inject_usage[] = {
	"usage: collnoise inject [--user] MODEL [OPTION ...]",
	"",
	"Keeps CPUs busy as a model says:",
	"",
	"  periodic:period=10ms,duration=250us,phase=random",
	"  periodic:rate=100,duration=250us,phase=staggered,streams=8",
	"  poisson:rate=100,duration=50us,length=pareto,shape=1.5,longest=10ms",
	"  poisson:period=10ms,table=FILE     lengths drawn from a file's events",
	"",
	"Starts are times of day, so nothing drifts, and nodes with the same clock keep in phase.",
	"The same seed gives the same events.",
	NULL,
};

static const char *const replay_usage[] = {
	"usage: collnoise replay [--user] FILE [OPTION ...]",
	"",
	"Keeps CPUs busy when they were busy in the file: a capture of collnoise record, a file of",
	"Netgauge or LogGOPSim, a trace of osnoise, or FTQ's output. The first CPU of --cpus",
	"replays the first CPU of the file, and so on. The file is repeated.",
	NULL,
};

static const struct option_entry common_entries[] = {
	{ "user", 0, NULL, "inject from user space, not by the module, which needs root",
	  OPTION_FLAG(struct noise_injection, user) },
	{ "context", 0, "C", "context of the module's noise",
	  OPTION_WORD(struct noise_injection, context, noise_context_names),
	  .count = COLL_NOISE_CONTEXTS, .preset = "hardirq" },
	{ "cpus", 'c', "LIST", "where", NOISE_OPTION_CPUS(struct noise_injection, options.cpus),
	  .otherwise = "all that this program may use" },
	{ "duration", 'd', "T", "how long",
	  OPTION_TIME(struct noise_injection, options.duration, "s", NODE_MS, 86400 * NODE_S),
	  .preset = "10s" },
	{ "seed", 0, "N", "seed of what is random",
	  OPTION_NUMBER(struct noise_injection, seed, 0, UINT64_MAX), .preset = "1" },
	{ "epoch", 0, "T", "the plan begins at this time of day, seconds since 1970",
	  OPTION_TIME(struct noise_injection, options.epoch, "s", 0, 4000000000ull * NODE_S),
	  .otherwise = "0 for a model, now for a file" },
	{ "priority", 'P', "SPEC", "priority: o:NICE, r:PRIORITY, f:PRIORITY or d:RUNTIME:PERIOD",
	  NOISE_OPTION_POLICY(struct noise_injection, options.policy),
	  .otherwise = "f:50 where that is allowed, else o:0 with a short slice" },
	{ "cost", 0, "T", "time that an event takes beyond itself, and is shortened by; collnoise "
	  "calibrate measures it", OPTION_TIME(struct noise_injection, options.cost, "us", 0,
					       NODE_MS), .preset = "0" },
	{ "max-share", 0, "S", "refuse to take more of the time of a CPU",
	  NOISE_OPTION_SHARE(struct noise_injection, max_share), .preset = "50%" },
	{ "output", 'o', "FILE", "write what was injected as a capture",
	  OPTION_TEXT(struct noise_injection, output) },
	{ "log", 0, "FILE", "write it as lines: cpu,asked_start_ns,late_ns,asked_ns,duration_ns",
	  OPTION_TEXT(struct noise_injection, log) },
	{ "capacity", 0, "N", "events that the log of each CPU holds",
	  OPTION_NUMBER(struct noise_injection, options.capacity, 1, 1ull << 32),
	  .preset = "1048576" },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct noise_injection, json) },
	{ "quiet", 'q', NULL, "no progress on the terminal",
	  OPTION_FLAG(struct noise_injection, quiet) },
	{ NULL },
};

/* A model has its own phase. */
static bool refuse_phase(const struct option_table *table, const struct option_entry *option,
			 void *settings, const char *text)
{
	(void)settings;
	return option_refuse(table, option, text, "a phase in the model: periodic:...,phase=same");
}

static const struct option_entry inject_entries[] = {
	{ "phase", 0, "PHASE", "", .read = refuse_phase, .hidden = true },
	{ NULL },
};

static const char *const phases[] = { "same", "random", NULL };

static const struct option_entry replay_entries[] = {
	{ "phase", 0, "PHASE", "random: each CPU begins elsewhere in the file",
	  OPTION_WORD(struct noise_injection, phase, phases), .preset = "same" },
	{ NULL },
};

const struct option_table noise_inject_options = {
	.command = "inject",
	.usage = inject_usage,
	.list = { common_entries, inject_entries },
	.arguments = 1,
};

const struct option_table noise_replay_options = {
	.command = "replay",
	.usage = replay_usage,
	.list = { replay_entries, common_entries },
	.arguments = 1,
};

static bool inject_complete(struct noise_injection *inject)
{
	inject->epoch_given = inject->options.epoch != EPOCH_NOT_GIVEN;
	if (!inject->epoch_given)
		inject->options.epoch = 0;
	inject->options.module = !inject->user;
	inject->options.context = inject->context;
	inject->options.max_share = inject->max_share;
	return node_cpus_count(&inject->options.cpus) ||
	       !node_cpus_affinity(0, &inject->options.cpus);
}

static bool read_options(int argc, char **argv, struct noise_injection *inject)
{
	if (!options_read(inject->replay ? &noise_replay_options : &noise_inject_options, argc,
			  argv, inject))
		return false;
	if (optind == argc) {
		fprintf(stderr, "collnoise %s: the %s is needed; --help tells more\n",
			inject->command, inject->replay ? "file" : "model");
		return false;
	}
	inject->what = argv[optind];
	return inject_complete(inject);
}

/* ---- plans ---------------------------------------------------------------------------------- */

/* COMMAND_*. */
static int plan_model(struct noise_injection *inject)
{
	struct coll_text_error error;

	if (coll_noise_parse(inject->what, inject->seed, &inject->said, &error)) {
		fprintf(stderr, "collnoise inject: %s: %s\n", inject->what, error.reason);
		return COMMAND_USAGE;
	}
	inject->plan = calloc(1, sizeof(*inject->plan));
	if (!inject->plan)
		return COMMAND_ERROR;
	*inject->plan = coll_noise_said_plan(&inject->said);
	inject->options.plans = 1;
	return COMMAND_OK;
}

/* The events of one CPU of the capture, with starts relative to its watched time. */
static u32 fill_table(const struct node_capture *capture, u32 index, struct coll_noise_span *table)
{
	const struct coll_noise_cpu *cpu = &capture->cpu[index];
	const struct coll_noise_event *event = node_capture_events(capture, index);
	u64 i;

	for (i = 0; i < cpu->events; i++)
		table[i] = (struct coll_noise_span){
			event[i].start > cpu->first ? event[i].start - cpu->first : 0,
			event[i].duration,
		};
	return cpu->events;
}

static bool plan_cpu(struct noise_injection *inject, u32 stream, struct coll_noise_span *table)
{
	const u32 index = stream % inject->capture.head.cpus;
	struct coll_noise_model *model = &inject->model[stream];
	struct coll_noise_plan *plan = &inject->plan[stream];
	const u32 spans = fill_table(&inject->capture, index, table);
	const u64 end = spans ? table[spans - 1].start + table[spans - 1].duration : 0;
	const u64 watched = inject->capture.cpu[index].watched;
	const char *wrong;

	*model = (struct coll_noise_model){
		.arrival = COLL_NOISE_REPLAY,
		.phase = inject->phase ? COLL_NOISE_RANDOM : COLL_NOISE_SAME,
		.length = COLL_NOISE_TABLE,
		.period = watched > end ? watched : end + 1,
		.seed = inject->seed,
	};
	*plan = (struct coll_noise_plan){ model, table, spans };
	if (spans && !coll_noise_check(plan, &wrong))
		return true;
	fprintf(stderr, "collnoise replay: %s: CPU %u: %s\n", inject->what,
		inject->capture.cpu[index].cpu, spans ? wrong : "no events");
	return false;
}

static int plan_file(struct noise_injection *inject)
{
	const struct noise_import any = { .format = NOISE_GUESS };
	const u32 cpus = node_cpus_count(&inject->options.cpus);
	u64 used = 0;
	u32 i;

	if (noise_load(inject->command, inject->what, &any, &inject->capture))
		return COMMAND_ERROR;
	if (!inject->capture.head.cpus) {
		fprintf(stderr, "collnoise replay: %s: no events\n", inject->what);
		return COMMAND_ERROR;
	}
	inject->plan = calloc(cpus, sizeof(*inject->plan));
	inject->model = calloc(cpus, sizeof(*inject->model));
	inject->table = calloc((cpus / inject->capture.head.cpus + 1) *
			       (inject->capture.head.events + 1), sizeof(*inject->table));
	if (!inject->plan || !inject->model || !inject->table)
		return COMMAND_ERROR;
	for (i = 0; i < cpus; i++) {
		if (!plan_cpu(inject, i, inject->table + used))
			return COMMAND_ERROR;
		used += inject->plan[i].spans;
	}
	inject->options.plans = cpus;
	inject->options.from_now = !inject->epoch_given;
	return COMMAND_OK;
}

static bool share_is_allowed(const struct noise_injection *inject)
{
	u32 i;

	for (i = 0; i < inject->options.plans; i++) {
		const struct coll_noise_plan *plan = &inject->plan[i];
		const double share = (double)coll_noise_load(plan) / plan->model->period;

		if (share <= inject->max_share)
			continue;
		fprintf(stderr, "collnoise %s: %s takes %.1f %% of the time, more than %.1f %% "
			"(--max-share)\n", inject->command, inject->what, 100 * share,
			100 * inject->max_share);
		return false;
	}
	return true;
}

/* ---- results ------------------------------------------------------------------------------- */

struct tally {
	u64 planned, events, lost, merged;
	double asked, injected;		/* ns */
	struct noise_quantiles late, error;
};

static int inject_tally(const struct noise_injector *injector, const struct noise_injector_cpu *cpu,
			struct tally *tally)
{
	double *late = calloc(cpu->count + 1, sizeof(*late));
	double *error = calloc(cpu->count + 1, sizeof(*error));
	u64 i;

	if (!late || !error) {
		free(late);
		free(error);
		return -ENOMEM;
	}
	*tally = (struct tally){
		.planned = noise_injector_planned(injector, cpu - injector->cpu),
		.events = cpu->count, .lost = cpu->lost, .merged = cpu->merged,
	};
	for (i = 0; i < cpu->count; i++) {
		const struct coll_noise_injected e = noise_injector_entry(injector, &cpu->log[i]);

		late[i] = e.late;
		error[i] = (double)e.duration - e.asked_duration;
		tally->asked += e.asked_duration;
		tally->injected += e.duration;
	}
	tally->late = noise_quantiles(late, cpu->count);
	tally->error = noise_quantiles(error, cpu->count);
	free(late);
	free(error);
	return 0;
}

static void print_tally(const struct noise_injector_cpu *cpu, const struct tally *t, double span)
{
	char a[24], b[24], c[24], d[24];

	printf("CPU %u: %llu of %llu events, requested %.4f %% of the time, injected %.4f %%; "
	       "late: median %s, p99 %s; length off by: median %s, p99 %s\n",
	       cpu->cpu, (unsigned long long)t->events, (unsigned long long)t->planned,
	       100 * t->asked / span, 100 * t->injected / span, node_time_text(t->late.p50, a),
	       node_time_text(t->late.p99, b), node_time_text(t->error.p50, c),
	       node_time_text(t->error.p99, d));
	if (t->merged)
		printf("CPU %u: %llu events were merged with the one before, or "
		       "were too late to be injected\n",
		       cpu->cpu, (unsigned long long)t->merged);
	if (cpu->refused)
		printf("CPU %u: %llu events were refused: they exceed --max-share\n",
		       cpu->cpu, (unsigned long long)cpu->refused);
	if (t->lost)
		printf("CPU %u: %llu events did not fit into the log (--capacity)\n", cpu->cpu,
		       (unsigned long long)t->lost);
}

static json_t *tally_json(const struct noise_injection *inject,
			  const struct noise_injector_cpu *cpu, const struct tally *t, double span)
{
	const struct coll_noise_plan *plan =
		&inject->plan[inject->options.plans > 1 ? cpu->stream : 0];
	char fingerprint[24];

	snprintf(fingerprint, sizeof(fingerprint), "%016llx",
		 (unsigned long long)noise_plan_fingerprint(plan, cpu->stream));
	return json_pack("{si ss sI sI sI sI sI sf sf so so}", "cpu", (int)cpu->cpu, "plan",
			 fingerprint, "planned", (json_int_t)t->planned, "events",
			 (json_int_t)t->events, "lost", (json_int_t)t->lost,
			 "merged", (json_int_t)t->merged, "refused", (json_int_t)cpu->refused,
			 "asked_share", t->asked / span, "injected_share", t->injected / span,
			 "late", noise_quantiles_json(&t->late), "duration_error",
			 noise_quantiles_json(&t->error));
}

static int inject_report(const struct noise_injection *inject,
			 const struct noise_injector *injector)
{
	const double span = injector->until - injector->from;
	json_t *cpus = json_array();
	struct tally t;
	u32 i;

	for (i = 0; i < injector->cpus; i++) {
		if (inject_tally(injector, &injector->cpu[i], &t))
			return COMMAND_ERROR;
		if (inject->json)
			json_array_append_new(cpus, tally_json(inject, &injector->cpu[i], &t,
							       span));
		else
			print_tally(&injector->cpu[i], &t, span);
	}
	if (!inject->json) {
		json_decref(cpus);
		return COMMAND_OK;
	}
	noise_json_print(json_pack("{ss ss sI sI so}", inject->replay ? "file" : "model",
				   inject->what, "context",
				   noise_injector_context(&injector->options), "from_ns",
				   (json_int_t)injector->from, "duration_ns",
				   (json_int_t)(injector->until - injector->from), "cpus", cpus),
			 stdout);
	return COMMAND_OK;
}

static int write_log(const struct noise_injector *injector, FILE *to)
{
	u32 c;
	u64 i;

	fprintf(to, "cpu,asked_start_ns,late_ns,asked_ns,duration_ns\n");
	for (c = 0; c < injector->cpus; c++)
		for (i = 0; i < injector->cpu[c].count; i++) {
			const struct coll_noise_injected e =
				noise_injector_entry(injector, &injector->cpu[c].log[i]);

			fprintf(to, "%u,%llu,%lld,%u,%u\n", injector->cpu[c].cpu,
				(unsigned long long)e.asked_start, (long long)e.late,
				e.asked_duration, e.duration);
		}
	return ferror(to) ? -EIO : 0;
}

static int write_capture(const struct noise_injector *injector, FILE *to)
{
	struct node_capture capture;
	int status = noise_injector_capture(injector, &capture);

	if (!status)
		status = node_capture_write(&capture, to);
	node_capture_free(&capture);
	return status;
}

static int write_file(const struct noise_injection *inject, const struct noise_injector *injector,
		      const char *path, int (*write)(const struct noise_injector *, FILE *))
{
	FILE *to = fopen(path, "we");
	int status = to ? write(injector, to) : -errno;

	if (to && fclose(to) && !status)
		status = -errno;
	if (status)
		fprintf(stderr, "collnoise %s: cannot write %s: %s\n", inject->command, path,
			strerror(-status));
	return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void inject_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* Of a clock that is slewed. */
static u64 clock_spare(u64 span)
{
	return NODE_S + span / 1000;
}

/* Of the day, and no longer than that is away now: a clock that is set back would keep the CPUs busy meanwhile. */
static void wait_for_end(const struct noise_injection *inject, struct noise_injector *injector)
{
	const bool progress = !inject->quiet && isatty(STDERR_FILENO);
	const struct timespec glance = { .tv_nsec = 100 * NODE_MS };
	const struct sigaction action = { .sa_handler = inject_interrupt };
	u64 now = noise_clock_read(CLOCK_REALTIME), span = injector->until > now ? injector->until - now : 0;
	const u64 latest = noise_clock_read(CLOCK_MONOTONIC) + span + clock_spare(span);

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	while ((now = noise_clock_read(CLOCK_REALTIME)) < injector->until && !interrupted &&
	       noise_clock_read(CLOCK_MONOTONIC) < latest) {
		const struct timespec rest = { .tv_nsec = injector->until - now };

		if (progress && now > injector->from)
			fprintf(stderr, "\r%.0f s of %.0f s\033[K",
				(now - injector->from) / 1e9, injector->options.duration / 1e9);
		nanosleep(injector->until - now < 100 * NODE_MS ? &rest : &glance, NULL);
	}
	if (progress)
		fprintf(stderr, "\r\033[K");
	__atomic_store_n(&injector->stop, true, __ATOMIC_RELAXED);
	noise_injector_wait(injector);
	if (now > injector->from && now < injector->until)
		injector->until = now;
}

static int inject_run(struct noise_injection *inject)
{
	struct noise_injector injector;
	struct noise_clock clock;
	int status = COMMAND_ERROR;

	if (!whole_possible(inject->command, inject->output) || !whole_possible(inject->command, inject->log))
		return COMMAND_ERROR;
	inject->options.plan = inject->plan;
	if (inject->user && !inject->options.policy.policy && !inject->options.policy.nice)
		inject->options.policy = noise_injector_policy();
	noise_clock_open(&clock);
	if (!noise_injector_begin(&injector, &inject->options, &clock, inject->command)) {
		wait_for_end(inject, &injector);
		noise_clock_settle(&clock);
		status = inject_report(inject, &injector);
		if ((inject->output &&
		     write_file(inject, &injector, inject->output, write_capture)) ||
		    (inject->log && write_file(inject, &injector, inject->log, write_log)))
			status = COMMAND_ERROR;
	}
	noise_injector_free(&injector);
	return status;
}

static int inject_command(int argc, char **argv, struct noise_injection *inject)
{
	int status;

	inject->options.epoch = EPOCH_NOT_GIVEN;
	if (!read_options(argc, argv, inject))
		return COMMAND_USAGE;
	status = inject->replay ? plan_file(inject) : plan_model(inject);
	if (status == COMMAND_OK)
		status = share_is_allowed(inject) ? inject_run(inject) : COMMAND_USAGE;
	coll_noise_said_free(&inject->said);
	node_capture_free(&inject->capture);
	free(inject->model);
	free(inject->table);
	free(inject->plan);
	return status;
}

int noise_inject(int argc, char **argv)
{
	struct noise_injection inject = { .command = "inject" };

	return inject_command(argc, argv, &inject);
}

int noise_replay(int argc, char **argv)
{
	struct noise_injection inject = { .command = "replay", .replay = true };

	return inject_command(argc, argv, &inject);
}
