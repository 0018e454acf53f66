// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* collnoise latency: how late a thread runs that a timer should have woken. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/command.h"
#include "tools/common/whole.h"
#include "actions.h"
#include "commands.h"
#include "latency.h"
#include "options.h"
#include "view.h"

struct latency_command {
	struct noise_latency_options options;
	struct noise_actions actions;
	const char *plot;
	u64 bucket, entries;
	bool json, histogram, policy_said;
};

volatile bool noise_latency_interrupted;

static const char *const usage[] = {
	"usage: collnoise latency [OPTION ...]",
	"",
	"A timer wakes a thread on each CPU, once a period. How late are the timer's interrupt and",
	"the thread, and who had the time between? With the module, as root; without it a thread",
	"of this program sleeps until each period, and only how late it is is known.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0; 1 on errors; 2 for wrong options, or when the threshold was passed.",
	NULL,
};

static bool read_histogram(const struct option_table *table, const struct option_entry *option,
			   void *settings, const char *text)
{
	struct latency_command *command = settings;

	(void)table;
	(void)option;
	(void)text;
	command->histogram = true;
	return true;
}

static bool read_action(const struct option_table *table, const struct option_entry *option,
			void *settings, const char *text)
{
	struct latency_command *command = settings;

	return noise_actions_read(table, option, &command->actions, text);
}

/* The module knows SCHED_FIFO, and threads without a priority. */
static bool read_policy(const struct option_table *table, const struct option_entry *option,
			void *settings, const char *text)
{
	struct latency_command *command = settings;
	struct noise_policy *policy = &command->options.policy;

	command->policy_said = true;
	if (noise_policy_read(policy, text) &&
	    (policy->policy == SCHED_FIFO || (policy->policy == SCHED_OTHER && !policy->nice)))
		return true;
	return option_refuse(table, option, text, "f:PRIORITY (1 to 99) or o:0");
}

static const struct option_entry entries[] = {
	{ "cpus", 'c', "LIST", "CPUs to wake threads on",
	  NOISE_OPTION_CPUS(struct latency_command, options.cpus),
	  .otherwise = "all that this program may use" },
	{ "house-keeping", 'H', "LIST", "CPUs for the rest of this program meanwhile",
	  NOISE_OPTION_CPUS(struct latency_command, options.housekeeping) },
	{ "duration", 'd', "T", "how long",
	  OPTION_TIME(struct latency_command, options.duration, "s", NODE_MS, 86400 * NODE_S),
	  .preset = "60s" },
	{ "period", 'p', "T", "from wake-up to wake-up",
	  OPTION_TIME(struct latency_command, options.period, "us", 100 * NODE_US, 10 * NODE_S),
	  .preset = "1ms" },
	{ "priority", 'P', "SPEC", "of the threads: f:PRIORITY or o:0", .read = read_policy,
	  .otherwise = "f:95; from user space o:0 where that is refused" },
	{ "stop", 's', "T", "stop when a wake-up is later than this: exit code 2",
	  OPTION_TIME(struct latency_command, options.stop, "us", NODE_US, 100 * NODE_S) },
	{ "on-threshold", 0, "ACTION",
	  "also do this at a stop: shell,command=COMMAND or signal,num=N,pid=PID (or pid=parent); "
	  "may be repeated", .read = read_action },
	{ "user", 0, NULL, "from user space, also where the module is",
	  OPTION_FLAG(struct latency_command, options.user) },
	{ "histogram", 0, NULL, "print the histogram of rtla timerlat hist",
	  .read = read_histogram, .one_of = OPTION_OF_FORMATS },
	{ "bucket-size", 'b', "T", "width of its buckets",
	  OPTION_TIME(struct latency_command, bucket, "us", NODE_US, NODE_S), .preset = "1us" },
	{ "entries", 'E', "N", "number of its buckets",
	  OPTION_NUMBER(struct latency_command, entries, 1, 1000000), .preset = "256" },
	{ "plot", 0, "FILE.svg", "draw a picture", OPTION_SVG(struct latency_command, plot) },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct latency_command, json) },
	{ NULL },
};

const struct option_table noise_latency_options = {
	.command = "latency",
	.usage = usage,
	.closing = closing,
	.list = { entries },
};

/* ---- measuring ------------------------------------------------------------------------------ */

static void latency_interrupt(int signal)
{
	(void)signal;
	noise_latency_interrupted = true;
}

/* Moves the caller to the CPUs said, or those without threads, if there are any. */
static void leave_cpus(const struct noise_latency_options *options)
{
	struct node_cpus stay = options->housekeeping;

	if (!node_cpus_count(&stay)) {
		if (node_cpus_affinity(0, &stay))
			return;
		node_cpus_remove(&stay, &options->cpus);
	}
	if (node_cpus_count(&stay))
		node_cpus_set_affinity(0, &stay);
}

static int make_cpus(const struct noise_latency_options *options, struct noise_latency *latency)
{
	u32 cpu = node_cpus_next(&options->cpus, 0), i;

	latency->cpus = node_cpus_count(&options->cpus);
	latency->cpu = calloc(latency->cpus, sizeof(*latency->cpu));
	if (!latency->cpu)
		return -ENOMEM;
	for (i = 0; i < latency->cpus; i++, cpu = node_cpus_next(&options->cpus, cpu + 1))
		latency->cpu[i].cpu = cpu;
	return 0;
}

/* Whether the scheduler lets this process have such threads. */
static bool policy_allowed(const struct noise_policy *policy)
{
	const struct noise_policy ordinary = { .policy = SCHED_OTHER };
	const bool allowed = !noise_policy_set(policy);

	noise_policy_set(&ordinary);
	return allowed;
}

static int latency_measure(struct noise_latency_options *options, bool policy_said,
			   struct noise_latency *latency)
{
	int status = options->user ? -ENOENT : noise_latency_module(options, latency);

	if (status != -ENOENT)
		return status;
	if (!policy_said && !policy_allowed(&options->policy))
		options->policy = (struct noise_policy){ .policy = SCHED_OTHER };
	return noise_latency_user(options, latency);
}

static int latency_report(const struct latency_command *command,
			  const struct noise_latency *latency)
{
	int status = latency->passed.any ? COMMAND_USAGE : COMMAND_OK;

	if (command->json)
		noise_json_print(noise_latency_json(&command->options, latency), stdout);
	else if (!command->histogram)
		noise_latency_print(&command->options, latency, stdout);
	else if (noise_latency_histogram(latency, command->bucket, command->entries, stdout))
		status = COMMAND_ERROR;
	if (command->plot && noise_latency_plot(&command->options, latency, command->plot))
		status = COMMAND_ERROR;
	if (latency->passed.any)
		noise_actions_do(&command->actions, command->options.command);
	return status;
}

int noise_latency(int argc, char **argv)
{
	struct latency_command command = { .options.command = noise_latency_options.command };
	struct sigaction action = { .sa_handler = latency_interrupt };
	struct noise_latency latency = { 0 };
	struct noise_latency_options *options = &command.options;
	int status;

	if (!options_read(&noise_latency_options, argc, argv, &command))
		return COMMAND_USAGE;
	if (!command.policy_said)
		noise_policy_read(&options->policy, "f:95");
	if (!node_cpus_count(&options->cpus) && node_cpus_affinity(0, &options->cpus))
		return COMMAND_ERROR;
	if (!whole_possible(options->command, command.plot) || make_cpus(options, &latency))
		return COMMAND_ERROR;
	leave_cpus(options);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	status = latency_measure(options, command.policy_said, &latency) ? COMMAND_ERROR :
								  latency_report(&command, &latency);
	free(latency.cpu);
	return status;
}
