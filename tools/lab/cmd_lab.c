// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll lab: emulates clusters and a WAN on this machine to test a program. Each node has one rank,
 * or as many as are asked for. Rank 0 serves the job's store, so starting crosses the WAN too.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <poll.h>
#include <unistd.h>

#include "core/noise/text.h"
#include "core/text_parsed.h"
#include "tools/common/arguments.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "tools/common/printed.h"
#include "lab.h"

enum { STORE_PORT = 4711 };

enum { EACH_MAX = 64 };		/* ranks of a node */

#define FILE_LOOK 0.02		/* seconds between two looks for a file */

struct lab_settings {
	struct lab lab;
	int each;			/* ranks of a node */
	char clusters[128];		/* how many ranks each has, for COLL_CLUSTERS */
	double queue;			/* bytes; < 0: what the WAN carries in two delays */
	bool calibrate, json, tell;
	char **program;
	char job[32], secret[2 * 32 + 1];
};

/* ---- ranks -------------------------------------------------------------- */

static void set_number(const char *name, unsigned int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	setenv(name, text, 1);
}

/* In the node's namespace: becomes the program, as this rank of the node. */
static void rank_execute(const struct lab *lab, const struct lab_settings *settings, uint32_t node,
			 uint32_t index)
{
	char address[64], store[80];
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	lab_address(lab, 0, 0, address, sizeof(address));
	snprintf(store, sizeof(store), lab->ipv6 ? "[%s]:%d" : "%s:%d", address, STORE_PORT);
	set_number("COLL_RANK", node * settings->each + index);
	set_number("COLL_RANKS", lab->nodes * settings->each);
	set_number("COLL_LOCAL_RANK", index);
	set_number("COLL_LOCAL_RANKS", settings->each);
	setenv("COLL_STORE", store, 1);
	setenv("COLL_JOB", settings->job, 1);
	setenv("COLL_SECRET", settings->secret, 1);
	if (lab->ports) {
		snprintf(store, sizeof(store), "%s/socket", lab->directory);
		setenv("COLL_CIRCUITS", store, 0);
		snprintf(store, sizeof(store), "n%u", node);
		setenv("COLL_NODE", store, 0);
	}
	if (settings->tell && lab->clusters > 1)
		setenv("COLL_CLUSTERS", settings->clusters, 0);
	execvp(settings->program[0], settings->program);
	fprintf(stderr, "coll lab: cannot run '%s': %s\n", settings->program[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static int exit_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/*
 * The node's process: its only rank, or the one that waits for its ranks. Whatever happens to it, they
 * end with the lab's PID namespace.
 */
static void rank_main(const struct lab *lab, uint32_t node, void *argument)
{
	const struct lab_settings *settings = argument;
	int code = 0, status, i;

	if (settings->each == 1)
		rank_execute(lab, settings, node, 0);
	for (i = 0; i < settings->each; i++) {
		const pid_t pid = fork();

		if (!pid)
			rank_execute(lab, settings, node, i);
		if (pid < 0) {
			fprintf(stderr, "coll lab: node %u: its rank %d does not start: %s\n", node, i,
				strerror(errno));
			_exit(COMMAND_ERROR);
		}
	}
	while (wait(&status) > 0)
		if (!code)
			code = exit_code(status);
	_exit(code);
}

static double lab_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

/* Reaps ranks that have ended; returns how many are alive. */
static uint32_t lab_reap(struct lab *lab, int *code)
{
	uint32_t living = 0, i;

	for (i = 0; i < lab->nodes; i++) {
		int status;

		if (lab->node[i].pid <= 0)
			continue;
		if (waitpid(lab->node[i].pid, &status, WNOHANG) != lab->node[i].pid) {
			living++;
			continue;
		}
		lab->node[i].pid = 0;
		if (!*code)
			*code = exit_code(status);
	}
	return living;
}

/* When the event is due, or is to be looked at again if it waits for a file. */
static double event_time(const struct lab_event *event, double now)
{
	if (!event->file || event->after == INFINITY)
		return event->after;
	return access(event->file, F_OK) ? now + FILE_LOOK : now;
}

/* Executes events that are due; returns the seconds until the next. */
static double execute_events(struct lab *lab, double start)
{
	const double now = lab_seconds() - start;
	double next = lab->timeout > 0 ? lab->timeout : INFINITY;
	uint32_t i;

	for (i = 0; i < lab->events; i++) {
		const double when = event_time(&lab->event[i], now);

		if (when <= now) {
			lab_down(lab, &lab->event[i]);
			lab->event[i].after = INFINITY;
		} else if (when < next) {
			next = when;
		}
	}
	return next - now;
}

static int run_job(void *argument)
{
	struct lab_settings *settings = argument;
	struct lab *lab = &settings->lab;
	struct signalfd_siginfo info;
	struct pollfd poll_fd = { .events = POLLIN };
	double start, next;
	sigset_t signals;
	int code = 0, ended = 0;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGQUIT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	poll_fd.fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (!lab_build(lab, rank_main, settings)) {
		lab_end(lab);
		return COMMAND_ERROR;
	}
	lab_begin(lab);
	start = lab_seconds();
	while (lab_reap(lab, &code) && !ended) {
		next = execute_events(lab, start);
		if (lab->timeout > 0 && lab_seconds() - start >= lab->timeout) {
			fprintf(stderr, "coll lab: the job did not end within %g s\n",
				lab->timeout);
			ended = 124;
		} else if (poll(&poll_fd, 1, next > 1e6 ? -1 : (int)(next * 1e3) + 1) > 0 &&
			   read(poll_fd.fd, &info, sizeof(info)) == sizeof(info) &&
			   info.ssi_signo != SIGCHLD) {
			ended = 128 + info.ssi_signo;
		}
	}
	lab_end(lab);
	return ended ? ended : code;
}

/* ---- calibrating -------------------------------------------------------- */

/* The init of a PID namespace gets no signal that it does not handle. All others end with it. */
static void calibrate_ended(int number)
{
	_exit(128 + number);
}

static int lab_calibrate(void *argument)
{
	struct lab_settings *settings = argument;
	const struct lab *lab = &settings->lab;
	struct lab_measured m;

	signal(SIGINT, calibrate_ended);
	signal(SIGTERM, calibrate_ended);
	signal(SIGHUP, calibrate_ended);
	signal(SIGQUIT, calibrate_ended);
	if (!lab_check(&settings->lab, &m)) {
		lab_end(&settings->lab);
		return COMMAND_ERROR;
	}
	if (settings->json)
		printf("{\"delay\": {\"asked\": %g, \"median\": %g, \"p99\": %g}, "
		       "\"rate\": {\"asked\": %g, \"measured\": %g}, "
		       "\"queue\": {\"asked\": %g, \"measured\": %g}, \"lost\": %g}\n",
		       lab->delay, m.delay, m.delay_worst, lab->wan, m.rate, lab->queue, m.queue,
		       m.lost);
	else
		printf("delay  %8.3f ms asked, %8.3f median, %8.3f p99\n"
		       "rate   %8.2f Mbit/s asked, %8.2f under twice that load\n"
		       "queue  %8.0f bytes asked, %8.0f, then drops: %.1f %% of that load\n",
		       lab->delay * 1e3, m.delay * 1e3, m.delay_worst * 1e3, lab->wan / 1e6,
		       m.rate / 1e6, lab->queue, m.queue, m.lost * 100);
	return printed_status("lab", COMMAND_OK);
}

/* ---- options ------------------------------------------------------------ */

/* A number with suffix K, M or G into a double; option->value is their base, 1000 or 1024. */
static bool read_scaled(const struct option_table *table, const struct option_entry *option,
			void *to, const char *text)
{
	const char *suffixes = "KMG", *suffix;
	char *end, valid[80];
	double number = strtod(text, &end);

	suffix = memchr(suffixes, *end & ~32, strlen(suffixes));	/* not its end, which is a blank's */
	if (suffix) {
		number *= pow(option->value, suffix - suffixes + 1);
		end++;
	}
	if (end != text && !*end && number >= 0 && number <= option->high) {
		*(double *)option_field(option, to) = number;
		return true;
	}
	snprintf(valid, sizeof(valid), "a number from 0 to %g%s", option->high,
		 option->high > 1 ? ", suffix K, M or G" : "");
	return option_refuse(table, option, text, valid);
}

static bool read_clusters(const struct option_table *table, const struct option_entry *option,
			  void *to, const char *text)
{
	struct lab_settings *settings = to;
	char what[32];

	snprintf(what, sizeof(what), "--%s", option->name);
	return argument_sizes(table->command, what, text, LAB_CLUSTERS_MAX, LAB_NODES_MAX,
			      settings->lab.size, &settings->lab.clusters);
}

/* A path has a slash, a time has none. */
static bool read_moment(const char *text, struct lab_event *event)
{
	event->after = 0;
	event->file = strchr(text, '/') ? text : NULL;
	return event->file || coll_text_seconds(text, &event->after);
}

/* "3@2s", "wan@500ms", "wan@/tmp/now" */
static bool read_event(const struct option_table *table, const struct option_entry *option,
		       void *to, const char *text)
{
	struct lab *lab = &((struct lab_settings *)to)->lab;
	struct lab_event *event = &lab->event[lab->events];
	const char *at = strchr(text, '@');
	u64 node = 0;

	if (at && lab->events < LAB_EVENTS_MAX && read_moment(at + 1, event)) {
		const bool wan = !strncmp(text, "wan@", 4);

		if (wan || coll_parse_number(text, at - text, INT_MAX, &node)) {
			event->node = wan ? -1 : (int)node;
			lab->events++;
			return true;
		}
	}
	return option_refuse(table, option, text,
			     "a node's number or wan, @ and a time or a file's path, up to 8 times: "
			     "3@2s");
}

static const char *const forwards[] = { "forwarder", "netem", NULL };

#define LAB_RATE(type, field) \
	.read = read_scaled, .value = 1000, .high = 1e12, OPTION_FIELD(type, field)
#define LAB_BYTES(type, field) \
	.read = read_scaled, .value = 1024, .high = 1e12, OPTION_FIELD(type, field)
#define LAB_TIME(field) OPTION_SECONDS(struct lab_settings, lab.field, 0, INFINITY)

static const struct option_entry lab_entries[] = {
	{ "clusters", 'c', "A+B", "nodes of each cluster", .read = read_clusters, .preset = "2+2" },
	{ "each", 0, "N", "ranks of each node",
	  OPTION_NUMBER(struct lab_settings, each, 1, EACH_MAX), .preset = "1" },
	{ "nic", 0, "RATE", "rate of a node's link in each direction, bit/s: 20M",
	  LAB_RATE(struct lab_settings, lab.nic), .otherwise = "no limit" },
	{ "wan", 0, "RATE", "rate from a cluster to the others, bit/s: 200M",
	  LAB_RATE(struct lab_settings, lab.wan), .otherwise = "no limit" },
	{ "delay", 0, "TIME", "one-way delay of the WAN", LAB_TIME(delay), .preset = "10ms" },
	{ "queue", 0, "BYTES", "queue before the WAN", LAB_BYTES(struct lab_settings, queue),
	  .otherwise = "what the WAN carries in two delays" },
	{ "port-queue", 0, "BYTES", "queue of a switch's port to a node",
	  LAB_BYTES(struct lab_settings, lab.port_queue), .preset = "256K" },
	{ "nic-queue", 0, "BYTES", "queue of a node before its NIC",
	  LAB_BYTES(struct lab_settings, lab.nic_queue), .preset = "64K" },
	{ "warm", 0, NULL,
	  "idle connections keep their rate: "
	  "net.ipv4.tcp_slow_start_after_idle=0 on the nodes",
	  OPTION_FLAG(struct lab_settings, lab.warm) },
	{ "loss", 0, "P", "share of packets lost on the WAN, 0 to 1", .read = read_scaled,
	  .value = 1000, .high = 1, OPTION_FIELD(struct lab_settings, lab.loss), .otherwise = "0" },
	{ "rails", 0, "N", "links of a node, each with its address",
	  OPTION_NUMBER(struct lab_settings, lab.rails, 1, LAB_RAILS_MAX), .preset = "1" },
	{ "ipv6", 0, NULL, "the nodes have IPv6 only", OPTION_FLAG(struct lab_settings, lab.ipv6) },
	{ "down", 0, "WHAT@TIME", "take a node's links (or wan) down this time after the start; "
	  "WHAT@PATH: when there is this file", .read = read_event },
	{ "by", 0, "HOW", "what delays and limits packets",
	  OPTION_WORD(struct lab_settings, lab.netem, forwards), .preset = "forwarder" },
	{ "no-clusters", 0, NULL, "do not tell the ranks their cluster",
	  OPTION_CHOICE(struct lab_settings, tell, false) },
	{ "circuits", 0, "K",
	  "ports of each node to an optical switch; colld sets circuits up; "
	  "one cluster, as root",
	  OPTION_NUMBER(struct lab_settings, lab.ports, 1, LAB_PORTS_MAX), .otherwise = "none" },
	{ "set-up", 0, "TIME", "reconfiguration delay of a circuit", LAB_TIME(set_up),
	  .preset = "10ms" },
	{ "timeout", 't', "T", "end the job after this time, with exit code 124", LAB_TIME(timeout),
	  .otherwise = "none" },
	{ "calibrate", 0, NULL, "measure the WAN itself: delay, rate, queue",
	  OPTION_FLAG(struct lab_settings, calibrate) },
	{ "json", 0, NULL, "with --calibrate: print JSON", OPTION_FORMAT(struct lab_settings, json) },
	{ NULL },
};

static const char *const usage[] = {
	"usage: coll lab [OPTION ...] [--] PROGRAM [ARGUMENT ...]",
	"       coll lab --calibrate [OPTION ...]",
	"",
	"Runs a job on clusters of nodes that a WAN joins. The nodes are network namespaces of",
	"this machine; they are removed when the job ends.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0 if all ranks exit with 0, else that of the first rank that failed.",
	NULL,
};

const struct option_table cmd_lab_options = {
	.command = "lab",
	.usage = usage,
	.closing = closing,
	.list = { lab_entries },
	.arguments = OPTIONS_ANY,
	.program = true,
};

/* "8+8", by ranks. */
static void lab_tell_clusters(struct lab_settings *settings)
{
	size_t used = 0;
	uint32_t i;

	for (i = 0; i < settings->lab.clusters; i++)
		used += snprintf(settings->clusters + used, sizeof(settings->clusters) - used,
				 "%s%u", i ? "+" : "", settings->lab.size[i] * settings->each);
}

/* Whether there are these links. */
static bool can_go_down(const struct lab *lab, const struct lab_event *event, uint32_t nodes)
{
	if (event->node >= (int)nodes)
		fprintf(stderr, "coll lab: --down %d: there are %u nodes\n", event->node, nodes);
	else if (event->node < 0 && lab->clusters == 1)
		fprintf(stderr, "coll lab: --down wan: one cluster has no WAN; valid: a node, or "
			"--clusters A+B\n");
	else
		return true;
	return false;
}

static bool lab_settle(struct lab_settings *settings)
{
	struct lab *lab = &settings->lab;
	uint32_t nodes = 0, i;
	uint8_t random[40];

	for (i = 0; i < lab->clusters; i++)
		nodes += lab->size[i];
	lab_tell_clusters(settings);
	for (i = 0; i < lab->events; i++)
		if (!can_go_down(lab, &lab->event[i], nodes))
			return false;
	if (lab->ports && (lab->clusters > 1 || lab->ipv6 || nodes > 99 || settings->each > 1)) {
		fprintf(stderr,
			"coll lab: --circuits takes one cluster of up to 99 nodes (-c 8) of one rank, "
			"and IPv4\n");
		return false;
	}
	lab->queue = settings->queue >= 0 ? settings->queue : lab->wan / 8 * 2 * lab->delay;
	if (lab->wan > 0 && settings->queue < 0 && lab->queue < 65536)
		lab->queue = 65536;
	if (settings->json && !settings->calibrate) {
		fprintf(stderr, "coll lab: --json goes with --calibrate; a program prints what it prints\n");
		return false;
	}
	if (settings->calibrate && (lab->clusters < 2 || lab->ipv6)) {
		fprintf(stderr, "coll lab: --calibrate takes two clusters and IPv4\n");
		return false;
	}
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return false;
	for (i = 0; i < 32; i++)
		sprintf(settings->secret + 2 * i, "%02x", random[i]);
	snprintf(settings->job, sizeof(settings->job), "lab-%d", (int)getpid());
	return true;
}

int cmd_lab(int argc, char **argv)
{
	struct lab_settings settings = { .queue = -1, .tell = true };

	if (!options_read(&cmd_lab_options, argc, argv, &settings))
		return COMMAND_USAGE;
	settings.program = argv + optind;
	if (settings.calibrate ? optind < argc : optind == argc) {
		fprintf(stderr, "coll lab: %s; --help tells more\n", settings.calibrate ?
			"--calibrate runs no program" : "the program to run is needed");
		return COMMAND_USAGE;
	}
	if (!lab_settle(&settings))
		return COMMAND_USAGE;
	return lab_enter(settings.calibrate ? lab_calibrate : run_job, &settings);
}
