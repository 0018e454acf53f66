// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll lab: clusters and a WAN on this machine, to try a program in. One rank a
 * node; rank 0 serves the job's store, so meeting takes the WAN too.
 */
#include <errno.h>
#include <getopt.h>
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

#include "libcoll/base/options.h"
#include "tools/arguments.h"
#include "tools/command.h"
#include "lab.h"

enum { STORE_PORT = 4711 };

struct settings {
	struct lab lab;
	char clusters[128];
	double queue;			/* as asked; < 0: what the WAN holds on the way */
	bool calibrate, json, tell;
	char **program;
	char job[32], secret[2 * 32 + 1];
};

static const char help[] =
"usage: coll lab [OPTION ...] [--] PROGRAM [ARGUMENT ...]\n"
"       coll lab --calibrate [OPTION ...]\n"
"\n"
"Runs a job on clusters of nodes, joined by a WAN, that it makes of network\n"
"namespaces on this machine and that are gone when it ends. One rank a node.\n"
"\n"
"  -c, --clusters A+B    nodes of each cluster (2+2)\n"
"      --nic RATE        bit/s of a node's link, both ways: 20M (no limit)\n"
"      --wan RATE        bit/s from a cluster to the others: 200M (no limit)\n"
"      --delay TIME      of the WAN, one way (10ms)\n"
"      --queue BYTES     that wait before the WAN at most (what it holds in two delays)\n"
"      --port-queue BYTES  at a switch's port to a node (256K)\n"
"      --nic-queue BYTES  in a node, before its NIC (64K)\n"
"      --warm            connections that were idle stay fast: the sysctl of nodes\n"
"                        net.ipv4.tcp_slow_start_after_idle=0\n"
"      --loss P          of packets on the WAN, 0 to 1 (0)\n"
"      --rails N         links of a node, with an address each (1)\n"
"      --ipv6            the nodes have IPv6 only\n"
"      --down WHAT@TIME  a node's links, or wan, go down so long after the start\n"
"      --by forwarder|netem  what delays and limits (forwarder)\n"
"      --no-clusters     do not tell the ranks which cluster they are in\n"
"      --circuits K      an optical switch, to which each node has K ports (none): colld\n"
"                        makes the circuits; one cluster, as root\n"
"      --set-up TIME     of a circuit (10ms)\n"
"  -t, --timeout S       end the job after S seconds (exit code 124)\n"
"      --calibrate       measure the WAN itself: delay, rate, queue\n"
"      --json            ... as JSON\n"
"\n"
"Exit code: 0 if every rank's was, else that of the first rank that failed.\n";

/* ---- ranks -------------------------------------------------------------- */

static void set_number(const char *name, unsigned int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	setenv(name, text, 1);
}

static void be_rank(const struct lab *lab, uint32_t node, void *argument)
{
	const struct settings *settings = argument;
	char address[64], store[80];
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	lab_address(lab, 0, 0, address, sizeof(address));
	snprintf(store, sizeof(store), lab->ipv6 ? "[%s]:%d" : "%s:%d", address, STORE_PORT);
	set_number("COLL_RANK", node);
	set_number("COLL_RANKS", lab->nodes);
	set_number("COLL_LOCAL_RANK", 0);
	set_number("COLL_LOCAL_RANKS", 1);
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

static double lab_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

/* Collects the ranks that have ended; returns how many live. */
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
			*code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	return living;
}

/* What is due now, and when the next thing is. */
static double do_events(struct lab *lab, double start)
{
	const double now = lab_seconds() - start;
	double next = lab->timeout > 0 ? lab->timeout : INFINITY;
	uint32_t i;

	for (i = 0; i < lab->events; i++) {
		if (lab->event[i].after <= now) {
			lab_down(lab, &lab->event[i]);
			lab->event[i].after = INFINITY;
		} else if (lab->event[i].after < next) {
			next = lab->event[i].after;
		}
	}
	return next - now;
}

static int run_job(void *argument)
{
	struct settings *settings = argument;
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
	sigprocmask(SIG_BLOCK, &signals, NULL);
	poll_fd.fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (!lab_build(lab, be_rank, settings)) {
		lab_end(lab);
		return COMMAND_ERROR;
	}
	lab_begin(lab);
	start = lab_seconds();
	while (lab_reap(lab, &code) && !ended) {
		next = do_events(lab, start);
		if (lab->timeout > 0 && lab_seconds() - start >= lab->timeout) {
			fprintf(stderr, "coll lab: %g s are over\n", lab->timeout);
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

static int lab_calibrate(void *argument)
{
	struct settings *settings = argument;
	const struct lab *lab = &settings->lab;
	struct lab_measured m;

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
	return COMMAND_OK;
}

/* ---- options ------------------------------------------------------------ */

enum option_key {
	KEY_HELP = 256, KEY_NIC, KEY_WAN, KEY_DELAY, KEY_QUEUE, KEY_PORT_QUEUE, KEY_NIC_QUEUE,
	KEY_LOSS, KEY_RAILS, KEY_IPV6, KEY_DOWN, KEY_BY, KEY_NO_CLUSTERS, KEY_CALIBRATE, KEY_JSON,
	KEY_WARM, KEY_CIRCUITS, KEY_SET_UP,
};

static const struct option long_options[] = {
	{ "clusters", required_argument, NULL, 'c' },
	{ "nic", required_argument, NULL, KEY_NIC },
	{ "wan", required_argument, NULL, KEY_WAN },
	{ "delay", required_argument, NULL, KEY_DELAY },
	{ "queue", required_argument, NULL, KEY_QUEUE },
	{ "port-queue", required_argument, NULL, KEY_PORT_QUEUE },
	{ "nic-queue", required_argument, NULL, KEY_NIC_QUEUE },
	{ "warm", no_argument, NULL, KEY_WARM },
	{ "loss", required_argument, NULL, KEY_LOSS },
	{ "rails", required_argument, NULL, KEY_RAILS },
	{ "ipv6", no_argument, NULL, KEY_IPV6 },
	{ "down", required_argument, NULL, KEY_DOWN },
	{ "by", required_argument, NULL, KEY_BY },
	{ "no-clusters", no_argument, NULL, KEY_NO_CLUSTERS },
	{ "circuits", required_argument, NULL, KEY_CIRCUITS },
	{ "set-up", required_argument, NULL, KEY_SET_UP },
	{ "timeout", required_argument, NULL, 't' },
	{ "calibrate", no_argument, NULL, KEY_CALIBRATE },
	{ "json", no_argument, NULL, KEY_JSON },
	{ "help", no_argument, NULL, KEY_HELP },
	{ NULL, 0, NULL, 0 },
};

/* A number with K, M or G, of `unit` 1000 or 1024. */
static bool read_scaled(const char *what, double unit, double most, double *value)
{
	const char *suffixes = "KMG", *suffix;
	char *end;
	double number = strtod(optarg, &end);

	suffix = *end ? strchr(suffixes, *end & ~32) : NULL;
	if (suffix) {
		number *= pow(unit, suffix - suffixes + 1);
		end++;
	}
	if (end != optarg && !*end && number >= 0 && number <= most) {
		*value = number;
		return true;
	}
	fprintf(stderr, "coll lab: %s '%s'; valid: a number from 0 to %g, suffix K, M or G\n", what,
		optarg, most);
	return false;
}

static bool read_clusters(struct settings *settings, const char *text)
{
	snprintf(settings->clusters, sizeof(settings->clusters), "%s", text);
	return argument_sizes("lab", "--clusters", text, LAB_CLUSTERS_MAX, LAB_NODES_MAX,
			      settings->lab.size, &settings->lab.clusters);
}

/* "3@2s", "wan@500ms" */
static bool read_event(struct lab *lab, char *text)
{
	struct lab_event *event = &lab->event[lab->events];
	char *at = strchr(text, '@'), *end;

	if (at && lab->events < LAB_EVENTS_MAX && !coll_options_time(at + 1, &event->after)) {
		*at = 0;
		event->node = strcmp(text, "wan") ? (int)strtoul(text, &end, 10) : -1;
		lab->events++;
		if (event->node < 0 || (end != text && !*end))
			return true;
		*at = '@';
	}
	fprintf(stderr, "coll lab: --down '%s'; valid: a node's number or wan, @ and a time, "
		"up to %d times: 3@2s\n", text, LAB_EVENTS_MAX);
	return false;
}

static bool read_time(const char *what, double *seconds_)
{
	if (!coll_options_time(optarg, seconds_))
		return true;
	fprintf(stderr, "coll lab: %s '%s'; valid: a time: 10ms\n", what, optarg);
	return false;
}

static bool apply_option(int key, char *const *argv, struct settings *settings)
{
	static const char *const ways[] = { "forwarder", "netem", NULL };
	struct lab *lab = &settings->lab;
	u64 number;
	u32 way;

	switch (key) {
	case 'c':
		return read_clusters(settings, optarg);
	case 't':
		return read_time("--timeout", &lab->timeout);
	case KEY_NIC:
		return read_scaled("--nic", 1000, 1e12, &lab->nic);
	case KEY_WAN:
		return read_scaled("--wan", 1000, 1e12, &lab->wan);
	case KEY_DELAY:
		return read_time("--delay", &lab->delay);
	case KEY_QUEUE:
		return read_scaled("--queue", 1024, 1e12, &settings->queue);
	case KEY_PORT_QUEUE:
		return read_scaled("--port-queue", 1024, 1e12, &lab->port_queue);
	case KEY_WARM:
		lab->warm = true;
		return true;
	case KEY_NIC_QUEUE:
		return read_scaled("--nic-queue", 1024, 1e12, &lab->nic_queue);
	case KEY_LOSS:
		return read_scaled("--loss", 1000, 1, &lab->loss);
	case KEY_RAILS:
		if (!argument_number("lab", "--rails", optarg, 1, LAB_RAILS_MAX, &number))
			return false;
		lab->rails = number;
		return true;
	case KEY_IPV6:
		lab->ipv6 = true;
		return true;
	case KEY_DOWN:
		return read_event(lab, optarg);
	case KEY_BY:
		if (!argument_word("lab", "way", optarg, ways, COLL_NONE, &way))
			return false;
		lab->netem = way;
		return true;
	case KEY_CIRCUITS:
		if (!argument_number("lab", "--circuits", optarg, 1, LAB_PORTS_MAX, &number))
			return false;
		lab->ports = number;
		return true;
	case KEY_SET_UP:
		return read_time("--set-up", &lab->set_up);
	case KEY_NO_CLUSTERS:
		settings->tell = false;
		return true;
	case KEY_CALIBRATE:
		settings->calibrate = true;
		return true;
	case KEY_JSON:
		settings->json = true;
		return true;
	default:
		return argument_unknown("lab", key, argv, long_options);
	}
}

static bool lab_settle(struct settings *settings)
{
	struct lab *lab = &settings->lab;
	uint32_t nodes = 0, i;
	uint8_t random[40];

	for (i = 0; i < lab->clusters; i++)
		nodes += lab->size[i];
	for (i = 0; i < lab->events; i++)
		if (lab->event[i].node >= (int)nodes) {
			fprintf(stderr, "coll lab: --down %d: there are %u nodes\n",
				lab->event[i].node, nodes);
			return false;
		}
	if (lab->ports && (lab->clusters > 1 || lab->ipv6 || nodes > 99)) {
		fprintf(stderr,
			"coll lab: --circuits takes one cluster of up to 99 nodes (-c 8) and "
			"IPv4\n");
		return false;
	}
	lab->queue = settings->queue >= 0 ? settings->queue : lab->wan / 8 * 2 * lab->delay;
	if (lab->wan > 0 && settings->queue < 0 && lab->queue < 65536)
		lab->queue = 65536;
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
	struct settings settings = {
		.lab = { .rails = 1, .delay = 10e-3, .set_up = 10e-3, .port_queue = 256 << 10,
			 .nic_queue = 64 << 10 },
		.queue = -1,
		.tell = true,
	};
	int key;

	read_clusters(&settings, "2+2");
	optind = 1;
	opterr = 0;
	while ((key = getopt_long(argc, argv, "+:c:t:", long_options, NULL)) != -1) {
		if (key == KEY_HELP) {
			fputs(help, stdout);
			return COMMAND_OK;
		}
		if (!apply_option(key, argv, &settings))
			return COMMAND_USAGE;
	}
	settings.program = argv + optind;
	if (settings.calibrate ? optind < argc : optind == argc) {
		fprintf(stderr, "coll lab: %s; --help tells more\n", settings.calibrate ?
			"--calibrate runs no program" : "which program?");
		return COMMAND_USAGE;
	}
	if (!lab_settle(&settings))
		return COMMAND_USAGE;
	return lab_enter(settings.calibrate ? lab_calibrate : run_job, &settings);
}
