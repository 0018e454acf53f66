// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * colld: enforces the policy of a node, manages circuits, exports metrics. One thread, one
 * poll(). Exit codes: 0 ok, 1 error, 2 usage.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/noise/text.h"
#include "node/units.h"
#include "node/activity.h"
#include "daemon/circuit/circuits.h"
#include "daemon/common/log.h"
#include "daemon/common/notify.h"
#include "daemon/policy/pin.h"
#include "daemon/policy/stop.h"
#include "daemon/policy/window.h"
#include "metrics.h"

#define DEFAULT_POLICY	"/etc/coll/policy"
enum { POLICY_MAX = 1 << 20 };

struct colld {
	const char *policy, *state, *address, *circuits_file;
	int port;		/* 0: no metrics */
	u64 interval;
	bool keep;		/* at the end, moved tasks stay where they are */
	struct node_rules rules;
	struct colld_pin *pin;
	struct colld_windows *windows;
	struct colld_stops *stops;
	struct colld_metrics *metrics;
	struct circuit_setup *setup;	/* NULL: no circuits */
	struct colld_circuits *circuits;
	int signals, timer;
	u64 reloads, refusals;
};

static const char *const help[] = {
	"usage: colld [OPTION ...]",
	"",
	"Enforces a node's policy (which tasks run on which CPUs, and when), and manages the",
	"circuits of an optical switch.",
	"",
	"      --policy FILE      the policy (default /etc/coll/policy; optional with --circuits);",
	"                         SIGHUP reads it again",
	"      --circuits FILE    nodes, their ports, and the switch whose circuits are managed",
	"      --state DIR        folder of the state (default /run/coll)",
	"      --interval T       time between scans for new tasks and interrupts, 10ms to 1h",
	"                         (default 5s)",
	"      --metrics [A:]PORT Prometheus metrics at http://A:PORT/metrics (default",
	"                         127.0.0.1:9469; 0: none)",
	"      --keep             do not move tasks and interrupts back at the end",
	"      --check            only check the files, and report the first error",
	NULL,
};

static const struct option options_known[] = {
	{ "policy", required_argument, NULL, 'p' },
	{ "circuits", required_argument, NULL, 'o' },
	{ "state", required_argument, NULL, 's' },
	{ "interval", required_argument, NULL, 'i' },
	{ "metrics", required_argument, NULL, 'm' },
	{ "keep", no_argument, NULL, 'k' },
	{ "check", no_argument, NULL, 'c' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* ---- the policy ----------------------------------------------------------- */

static int read_policy(const char *path, struct node_rules *rules)
{
	struct coll_text_error error = { 0 };
	FILE *from = fopen(path, "re");
	char *text = calloc(1, POLICY_MAX);
	int status = from && text ? 0 : from ? -ENOMEM : -errno;

	*rules = (struct node_rules){ .rules = 0 };
	if (!status && (fread(text, 1, POLICY_MAX - 1, from) == POLICY_MAX - 1 || ferror(from)))
		status = -EFBIG;
	if (!status)
		status = node_rules_parse(text, rules, &error);
	if (!status)
		status = node_rules_complete(rules, &error);
	if (status && error.line)
		colld_log(LOG_ERR, "%s:%u: %s", path, error.line, error.reason);
	else if (status)
		colld_log(LOG_ERR, "%s: %s", path,
			  *error.reason ? error.reason : strerror(-status));
	if (status)
		node_rules_free(rules);
	if (from)
		fclose(from);
	free(text);
	return status;
}

static int colld_enforce(struct colld *colld)
{
	int error;

	if (!colld->policy)
		return 0;
	error = colld_pin_open(&colld->pin, &colld->rules, colld->state);
	node_cpus_set_affinity(0, &colld->rules.housekeeping);
	if (!error)
		error = colld_windows_open(&colld->windows, &colld->rules);
	if (!error)
		error = colld_stops_open(&colld->stops, &colld->rules, colld->state);
	if (error)
		colld_log(LOG_ERR, "the policy is not in force: %s", strerror(-error));
	return error;
}

static void colld_lift(struct colld *colld, bool restore)
{
	colld_stops_close(colld->stops);
	colld_windows_close(colld->windows);
	colld->stops = NULL;
	colld_pin_close(colld->pin, restore);
	colld->windows = NULL;
	colld->pin = NULL;
}

/* An invalid policy changes nothing: the former one stays in force. */
static void colld_reload(struct colld *colld)
{
	struct node_rules rules;

	colld_notify("RELOADING=1");
	if (!colld->policy) {
		colld_log(LOG_WARNING, "SIGHUP: there is no policy; the file of circuits is read "
				       "at the start only");
	} else if (read_policy(colld->policy, &rules)) {
		colld->refusals++;
	} else {
		colld_lift(colld, true);
		node_rules_free(&colld->rules);
		colld->rules = rules;
		colld_enforce(colld);
		colld->reloads++;
	}
	colld_notify("READY=1");
}

/* ---- options -------------------------------------------------------------- */

static bool read_address(struct colld *colld, char *text)
{
	char *colon = strrchr(text, ':'), *rest;
	const char *port = colon ? colon + 1 : text;

	colld->port = strtol(port, &rest, 10);
	if (colon) {
		*colon = 0;
		colld->address = text;
	}
	if (rest != port && !*rest && colld->port >= 0 && colld->port < 65536)
		return true;
	fprintf(stderr, "colld: --metrics: invalid port; valid: PORT or ADDRESS:PORT, such as "
		"127.0.0.1:9469\n");
	return false;
}

static bool read_option(struct colld *colld, int key, char **argv, bool *check)
{
	switch (key) {
	case 'p':
		colld->policy = optarg;
		return true;
	case 'o':
		colld->circuits_file = optarg;
		return true;
	case 's':
		colld->state = optarg;
		return true;
	case 'i':
		if (coll_text_time(optarg, NODE_S, &colld->interval) &&
		    colld->interval >= 10 * NODE_MS && colld->interval <= 3600 * NODE_S)
			return true;
		fprintf(stderr, "colld: --interval '%s'; valid: a time from 10ms to 1h\n", optarg);
		return false;
	case 'm':
		return read_address(colld, optarg);
	case 'k':
		return colld->keep = true;
	case 'c':
		return *check = true;
	default:
		fprintf(stderr, "colld: option '%s' is unknown or lacks its value; --help lists "
			"the options\n", argv[optind - 1]);
		return false;
	}
}

static bool read_options(int argc, char **argv, struct colld *colld, bool *check)
{
	const char *const *line;
	int key;

	opterr = 0;
	while ((key = getopt_long(argc, argv, ":h", options_known, NULL)) != -1) {
		if (key == 'h') {
			for (line = help; *line; line++)
				puts(*line);
			exit(0);
		}
		if (!read_option(colld, key, argv, check))
			return false;
	}
	if (optind < argc)
		fprintf(stderr, "colld: unexpected argument '%s'; valid: options only\n",
			argv[optind]);
	return optind == argc;
}

/* ---- metrics -------------------------------------------------------------- */

static void write_metrics(void *data, FILE *to)
{
	const struct colld *colld = data;
	u32 cpu = node_cpus_next(&colld->rules.application, 0);

	if (colld->pin)
		colld_pin_metrics(colld->pin, to);
	if (colld->windows)
		colld_windows_metrics(colld->windows, to);
	if (colld->stops)
		colld_stops_metrics(colld->stops, to);
	if (colld->circuits)
		colld_circuits_metrics(colld->circuits, to);
	fprintf(to, "# HELP coll_policy_reloads_total Reloads of the policy.\n"
		"# TYPE coll_policy_reloads_total counter\n"
		"coll_policy_reloads_total{result=\"ok\"} %llu\n"
		"coll_policy_reloads_total{result=\"refused\"} %llu\n"
		"# HELP coll_steal_seconds_total Time that the hypervisor has taken from a CPU.\n"
		"# TYPE coll_steal_seconds_total counter\n",
		(unsigned long long)colld->reloads, (unsigned long long)colld->refusals);
	for (; cpu < NODE_CPUS_MAX; cpu = node_cpus_next(&colld->rules.application, cpu + 1))
		fprintf(to, "coll_steal_seconds_total{cpu=\"%u\"} %.2f\n", cpu,
			node_steal(cpu) / 1e9);
}

/* ---- the loop ------------------------------------------------------------- */

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int open_timer(u64 interval)
{
	const struct timespec time = { interval / NODE_S, interval % NODE_S };
	const struct itimerspec every = { time, time };
	const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0)
		timerfd_settime(fd, 0, &every, NULL);
	return fd;
}

/* False: colld ends. */
static bool take_signal(struct colld *colld)
{
	struct signalfd_siginfo info;

	if (read(colld->signals, &info, sizeof(info)) != sizeof(info))
		return true;
	if (info.ssi_signo != SIGHUP)
		return false;
	colld_reload(colld);
	return true;
}

static void colld_watch(struct colld *colld)
{
	u64 expired;
	bool goes_on = true;

	while (goes_on) {
		struct pollfd fds[] = {
			{ colld->signals, POLLIN, 0 },
			{ colld->timer, POLLIN, 0 },
			{ colld->windows ? colld_windows_fd(colld->windows) : -1, POLLIN, 0 },
			{ colld->metrics ? colld_metrics_fd(colld->metrics) : -1, POLLIN, 0 },
			{ colld->circuits ? colld_circuits_fd(colld->circuits) : -1, POLLIN, 0 },
			{ colld->stops ? colld_stops_fd(colld->stops) : -1, POLLIN, 0 },
		};

		if (poll(fds, 6, -1) < 0 && errno != EINTR)
			return;
		/* Windows first: they depend on the clock. */
		if (fds[2].revents)
			colld_windows_progress(colld->windows);
		if (fds[4].revents)
			colld_circuits_progress(colld->circuits);
		if (fds[5].revents)
			colld_stops_progress(colld->stops);
		if (fds[3].revents)
			colld_metrics_progress(colld->metrics);
		if (fds[1].revents && read(colld->timer, &expired, sizeof(expired)) > 0) {
			if (colld->pin)
				colld_pin_renew(colld->pin);
			if (colld->metrics)
				colld_metrics_progress(colld->metrics);	/* times out slow clients */
		}
		if (fds[0].revents)
			goes_on = take_signal(colld);
	}
}

static int colld_serve(struct colld *colld)
{
	int error;

	colld->signals = open_signals();
	colld->timer = open_timer(colld->interval);
	if (colld->signals < 0 || colld->timer < 0)
		return 1;
	error = colld_enforce(colld);
	if (!error && colld->setup)
		error = colld_circuits_open(&colld->circuits, colld->setup);
	if (!error && colld->port) {
		error = colld_metrics_open(&colld->metrics, colld->address, colld->port,
					   write_metrics, colld);
		if (error)
			colld_log(LOG_ERR, "metrics at %s:%d: %s", colld->address, colld->port,
				  strerror(-error));
	}
	if (!error) {
		colld_notify("READY=1");
		colld_watch(colld);
		colld_notify("STOPPING=1");
	}
	colld_metrics_close(colld->metrics);
	colld_circuits_close(colld->circuits);
	colld_lift(colld, !colld->keep);
	close(colld->signals);
	close(colld->timer);
	return error ? 1 : 0;
}

static bool read_circuits(struct colld *colld)
{
	char why[1200] = "no memory";

	colld->setup = malloc(sizeof(*colld->setup));
	if (colld->setup && !circuit_setup_read(colld->circuits_file, colld->setup, why,
						sizeof(why)))
		return true;
	colld_log(LOG_ERR, "%s", why);
	return false;
}

int main(int argc, char **argv)
{
	struct colld colld = { .state = "/run/coll", .address = "127.0.0.1", .port = 9469,
			       .interval = 5 * NODE_S };
	bool check = false;
	int status;

	if (!read_options(argc, argv, &colld, &check))
		return 2;
	if (!colld.policy && (!colld.circuits_file || !access(DEFAULT_POLICY, F_OK)))
		colld.policy = DEFAULT_POLICY;
	if (colld.policy && read_policy(colld.policy, &colld.rules))
		return 1;
	if (colld.circuits_file && !read_circuits(&colld))
		return 1;
	status = check ? 0 : colld_serve(&colld);
	node_rules_free(&colld.rules);
	free(colld.setup);
	return status;
}
