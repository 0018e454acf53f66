// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * colld: enforces the policy of a node, manages circuits, exports metrics, tells what jobs lose. One thread, one
 * poll(). Exit codes: 0 ok, 1 error, 2 usage.
 */
#include <errno.h>
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
#include "daemon/common/clock.h"
#include "daemon/common/http.h"
#include "daemon/common/log.h"
#include "daemon/common/metrics.h"
#include "daemon/common/notify.h"
#include "daemon/policy/act.h"
#include "daemon/policy/deed.h"
#include "daemon/policy/pin.h"
#include "daemon/policy/stop.h"
#include "daemon/policy/window.h"
#include "daemon/report/reports.h"
#include "libcoll/base/descriptors.h"
#include "options.h"

#define DEFAULT_POLICY	"/etc/coll/policy"
enum { POLICY_MAX = 1 << 20 };
static const u64 METRICS_NS = NODE_S;

struct colld {
	struct colld_options options;
	struct node_rules rules;
	struct colld_pin *pin;
	struct colld_windows *windows;
	struct colld_stops *stops;
	struct colld_acts *acts;
	bool acts_locked;		/* no other colld acts with this state */
	char *metrics;			/* the text that was served last, from then on for METRICS_NS */
	size_t metrics_bytes;
	u64 metrics_at;
	struct colld_http *http;	/* metrics, and reports where anybody may have them */
	int http_error;			/* that was logged */
	struct colld_reports *reports;	/* NULL: there are none */
	struct circuit_setup *setup;	/* NULL: no circuits */
	struct colld_circuits *circuits;
	int signals, timer;
	bool failed;			/* nothing is in force: it ends */
	u64 reloads, refusals;
};

/* ---- the policy ----------------------------------------------------------- */

/* At most POLICY_MAX - 1 bytes, and all of them text: what is behind a zero byte would not be read. */
static int read_text(FILE *from, char *text, struct coll_text_error *error)
{
	const size_t bytes = fread(text, 1, POLICY_MAX - 1, from);

	if (ferror(from))
		return -errno;
	if (bytes == POLICY_MAX - 1)
		return -EFBIG;
	if (strlen(text) == bytes)
		return 0;
	snprintf(error->reason, sizeof(error->reason), "it has a zero byte, as no text has");
	return -EINVAL;
}

static int read_policy(const char *path, struct node_rules *rules)
{
	struct coll_text_error error = { 0 };
	FILE *from = fopen(path, "re");
	char *text = calloc(1, POLICY_MAX);
	int status = from && text ? 0 : from ? -ENOMEM : -errno;

	*rules = (struct node_rules){ .rules = 0 };
	if (!status)
		status = read_text(from, text, &error);
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

	if (!colld->options.policy)
		return 0;
	error = colld_pin_open(&colld->pin, &colld->rules, colld->options.state);
	node_cpus_set_affinity(0, &colld->rules.housekeeping);
	if (!error)
		error = colld_windows_open(&colld->windows, &colld->rules, colld->options.state);
	if (!error)
		error = colld_stops_open(&colld->stops, &colld->rules, colld->options.state);
	if (colld->options.act_given)
		colld->rules.act.mode = colld->options.act;
	if (!colld->acts_locked && colld->rules.act.mode > NODE_ACT_ADVISE)
		colld->rules.act.mode = NODE_ACT_ADVISE;
	if (!error)
		error = colld_acts_open(&colld->acts, &colld->rules, colld->options.state, colld->acts_locked,
					colld->options.watch_cost);
	if (error)
		colld_log(LOG_ERR, "the policy is not in force: %s", strerror(-error));
	return error;
}

static void colld_lift(struct colld *colld, bool restore)
{
	colld_acts_close(colld->acts);
	colld->acts = NULL;
	colld_stops_close(colld->stops);
	colld_windows_close(colld->windows);
	colld->stops = NULL;
	colld_pin_close(colld->pin, restore);
	colld->windows = NULL;
	colld->pin = NULL;
}

/* One that cannot be enforced is taken back, for the former one. Where that fails, too, colld ends. */
static void colld_replace(struct colld *colld, const struct node_rules *rules)
{
	struct node_rules former = colld->rules;

	colld_lift(colld, true);
	colld->rules = *rules;
	if (!colld_enforce(colld)) {
		node_rules_free(&former);
		colld->reloads++;
		return;
	}
	colld->refusals++;
	colld_lift(colld, true);
	node_rules_free(&colld->rules);
	colld->rules = former;
	colld->failed = colld_enforce(colld);
	if (!colld->failed)
		colld_log(LOG_NOTICE, "the former policy is in force again");
}

/* An invalid policy changes nothing: the former one stays in force. */
static void colld_reload(struct colld *colld)
{
	struct node_rules rules;

	colld_notify("RELOADING=1");
	if (!colld->options.policy) {
		colld_log(LOG_WARNING, "SIGHUP: there is no policy; the file of circuits is read "
				       "at the start only");
	} else if (read_policy(colld->options.policy, &rules)) {
		colld->refusals++;
	} else {
		colld_replace(colld, &rules);
	}
	colld_notify("READY=1");
}

/* ---- metrics -------------------------------------------------------------- */

static void write_metrics(const struct colld *colld, FILE *to)
{
	struct node_cpu_taken *taken = calloc(NODE_CPUS_MAX, sizeof(*taken));
	u32 cpu = node_cpus_next(&colld->rules.application, 0);
	char number[16];

	if (colld->pin)
		colld_pin_metrics(colld->pin, to);
	if (colld->windows)
		colld_windows_metrics(colld->windows, to);
	if (colld->stops)
		colld_stops_metrics(colld->stops, to);
	if (colld->acts)
		colld_acts_metrics(colld->acts, to);
	if (colld->circuits)
		colld_circuits_metrics(colld->circuits, to);
	if (colld->reports)
		colld_reports_metrics(colld->reports, to);
	if (colld->http)
		colld_http_metrics(colld->http, to);
	colld_metrics_counter(to, "coll_policy_reloads_total", "Reloads of the policy.");
	colld_metrics_count(to, "coll_policy_reloads_total", "result", "ok", colld->reloads);
	colld_metrics_count(to, "coll_policy_reloads_total", "result", "refused", colld->refusals);
	colld_metrics_counter(to, "coll_steal_seconds_total", "Time that the hypervisor has taken from a CPU.");
	if (taken)
		node_cpus_taken(taken, NODE_CPUS_MAX);
	for (; taken && cpu < NODE_CPUS_MAX; cpu = node_cpus_next(&colld->rules.application, cpu + 1)) {
		snprintf(number, sizeof(number), "%u", cpu);
		colld_metrics_seconds(to, "coll_steal_seconds_total", "cpu", number, taken[cpu].steal);
	}
	free(taken);
}

/* Whoever reaches the port may ask as often as it likes: the text is made once a second. */
static void renew_metrics(struct colld *colld)
{
	const u64 now = colld_now();
	FILE *to;

	if (colld->metrics && now < colld->metrics_at + METRICS_NS)
		return;
	free(colld->metrics);
	colld->metrics = NULL;
	colld->metrics_bytes = 0;
	colld->metrics_at = now;
	to = open_memstream(&colld->metrics, &colld->metrics_bytes);
	if (!to)
		return;
	write_metrics(colld, to);
	fclose(to);
}

static void answer_metrics(struct colld *colld, struct colld_request *request)
{
	struct colld_answer answer = { .head = { .status = 200, .type = COLLD_ANSWER_METRICS } };

	renew_metrics(colld);
	answer.text = colld->metrics ? malloc(colld->metrics_bytes + 1) : NULL;
	if (answer.text) {
		memcpy(answer.text, colld->metrics, colld->metrics_bytes + 1);
		answer.head.bytes = colld->metrics_bytes;
	}
	colld_request_answer(request, &answer);
}

/* Not by any name that somebody has made resolve to here. What /metrics says is the node's, and of no user. */
static void answer_reports(const struct colld *colld, struct colld_request *request)
{
	struct colld_answer refused;

	if (colld_request_is_here(request, colld->options.host_names)) {
		colld_reports_ask(colld->reports, request);
		return;
	}
	colld_answer_say(&refused, 421, "nothing is told of jobs by this name; valid: an address, localhost, the "
			 "node's host name, and names that colld has by --host-names");
	colld_request_answer(request, &refused);
}

static void answer_request(void *data, struct colld_request *request)
{
	struct colld *colld = data;
	const char *target = colld_request_target(request);
	struct colld_answer none;

	if (strcspn(target, "?") == strlen("/metrics") && !strncmp(target, "/metrics", strlen("/metrics"))) {
		answer_metrics(colld, request);
	} else if (colld->reports && colld->options.reports == COLLD_REPORTS_ANYBODY) {
		answer_reports(colld, request);
	} else {
		colld_answer_say(&none, 404, "metrics are at /metrics; reports of jobs are not served here: "
				 "colld --reports anybody serves them");
		colld_request_answer(request, &none);
	}
}

/*
 * Any user can take the port before colld does. The node's policy does not depend on that: colld
 * runs without metrics, and tries again at its timer.
 */
static void colld_open_http(struct colld *colld)
{
	const struct colld_options *options = &colld->options;
	int error;

	if (!options->port || colld->http)
		return;
	error = colld_http_open(&colld->http, options->address, options->port, answer_request, colld);
	if (error && error != colld->http_error)
		colld_log(LOG_ERR, "metrics at %s:%d: %s; there are none until it is free",
			  options->address, options->port, strerror(-error));
	else if (!error && colld->http_error)
		colld_log(LOG_NOTICE, "metrics at %s:%d: served from now on", options->address,
			  options->port);
	colld->http_error = error;
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
	signal(SIGCHLD, SIG_DFL);	/* ignored, as by who started it: of no child is known how it ended */
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
	return !colld->failed;
}

enum { WATCH_WINDOWS, WATCH_SIGNALS, WATCH_TIMER, WATCH_HTTP, WATCH_CIRCUITS, WATCH_STOPS,
       WATCH_ACTS, WATCH_REPORTS, WATCHED };

/* All but the windows. None ready: the pause is over. False: colld ends. */
static bool colld_handle(struct colld *colld, const struct pollfd *fds, int ready)
{
	u64 expired;

	if (fds[WATCH_CIRCUITS].revents)
		colld_circuits_progress(colld->circuits);
	if (fds[WATCH_STOPS].revents)
		colld_stops_progress(colld->stops);
	if (fds[WATCH_ACTS].revents)
		colld_acts_progress(colld->acts);
	if (fds[WATCH_REPORTS].revents)
		colld_reports_progress(colld->reports);
	if (colld->http && (fds[WATCH_HTTP].revents || fds[WATCH_REPORTS].revents || !ready))
		colld_http_progress(colld->http);
	if (fds[WATCH_TIMER].revents && read(colld->timer, &expired, sizeof(expired)) > 0) {
		if (colld->pin)
			colld_pin_renew(colld->pin);
		if (colld->http)
			colld_http_progress(colld->http);
		colld_open_http(colld);
		if (colld->stops)
			colld_stops_progress(colld->stops);
		if (colld->acts)
			colld_acts_finish(colld->acts);
	}
	return !fds[WATCH_SIGNALS].revents || take_signal(colld);
}

static void colld_set_real_time(const struct colld *colld, bool real_time)
{
	if (colld->windows)
		colld_windows_set_real_time(colld->windows, real_time);
}

/*
 * It sleeps, and turns windows, at a real-time priority, if there are any. What other users ask
 * for is done without.
 */
static void colld_watch(struct colld *colld)
{
	bool goes_on = true;
	int ready;

	while (goes_on) {
		struct pollfd fds[WATCHED] = {
			[WATCH_WINDOWS] = {
				colld->windows ? colld_windows_fd(colld->windows) : -1, POLLIN, 0 },
			[WATCH_SIGNALS] = { colld->signals, POLLIN, 0 },
			[WATCH_TIMER] = { colld->timer, POLLIN, 0 },
			[WATCH_HTTP] = { colld->http ? colld_http_fd(colld->http) : -1, POLLIN, 0 },
			[WATCH_CIRCUITS] = {
				colld->circuits ? colld_circuits_fd(colld->circuits) : -1, POLLIN,
				0 },
			[WATCH_STOPS] = {
				colld->stops ? colld_stops_fd(colld->stops) : -1, POLLIN, 0 },
			[WATCH_ACTS] = {
				colld->acts ? colld_acts_fd(colld->acts) : -1, POLLIN, 0 },
			[WATCH_REPORTS] = {
				colld->reports ? colld_reports_fd(colld->reports) : -1, POLLIN, 0 },
		};

		ready = poll(fds, WATCHED, colld->http ? colld_http_pause(colld->http) : -1);
		if (ready < 0 && errno != EINTR) {
			colld_log(LOG_ERR, "poll: %s", strerror(errno));
			colld->failed = true;
			return;
		}
		/* Windows first: they depend on the clock. */
		if (fds[WATCH_WINDOWS].revents)
			colld_windows_progress(colld->windows);
		if (ready < 0 || (ready == 1 && fds[WATCH_WINDOWS].revents))
			continue;
		colld_set_real_time(colld, false);
		goes_on = colld_handle(colld, fds, ready);
		colld_set_real_time(colld, true);
	}
}

/*
 * What a former colld has moved is not where the plan of this one should find it; and it is put back where the
 * policy is wrong, too, as what it has frozen and stopped goes on. One without a policy, as a lab's, leaves no
 * lock in its folder.
 */
static void colld_recover(struct colld *colld)
{
	const char *state = colld->options.state;

	if (!colld->options.policy && !colld->options.act_given && !act_deeds_exist(state) &&
	    !colld_windows_left(state) && !colld_stops_left(state))
		return;
	/* Of each rank of a job it has a file. */
	coll_descriptors_raise();
	colld->acts_locked = act_deed_lock(state) >= 0;
	if (!colld->acts_locked) {
		colld_log(LOG_ERR, "act: %s/acts.lock: another colld has it; what it does stays, and this one "
			  "only advises", state);
		return;
	}
	act_deed_recover(state, NULL, NULL);
	colld_windows_recover(state);
	colld_stops_recover(state);
}

static int colld_serve(struct colld *colld)
{
	int error;

	colld->signals = open_signals();
	colld->timer = open_timer(colld->options.interval);
	if (colld->signals < 0 || colld->timer < 0)
		return 1;
	error = colld_enforce(colld);
	if (!error && colld->setup)
		error = colld_circuits_open(&colld->circuits, colld->setup);
	if (!error && colld->options.reports != COLLD_REPORTS_OFF)
		error = colld_reports_open(&colld->reports, colld->options.state);
	if (!error) {
		colld_open_http(colld);
		colld_notify("READY=1");
		colld_watch(colld);
		colld_notify("STOPPING=1");
	}
	/* First: what follows waits for the switch, and systemd not for ever. */
	colld_lift(colld, !colld->options.keep);
	colld_reports_close(colld->reports);
	colld_http_close(colld->http);
	colld_circuits_close(colld->circuits);
	close(colld->signals);
	close(colld->timer);
	return error || colld->failed ? 1 : 0;
}

static bool read_circuits(struct colld *colld)
{
	char why[1200] = "no memory";

	colld->setup = malloc(sizeof(*colld->setup));
	if (colld->setup && !circuit_setup_read(colld->options.circuits, colld->setup, why,
						sizeof(why)))
		return true;
	colld_log(LOG_ERR, "%s", why);
	return false;
}

static bool read_files(struct colld *colld)
{
	return (!colld->options.policy || !read_policy(colld->options.policy, &colld->rules)) &&
	       (!colld->options.circuits || read_circuits(colld));
}

static bool print_status(const struct colld_options *options)
{
	if (access(options->state, F_OK)) {
		fprintf(stderr, "colld: no colld runs: %s: %s\n", options->state, strerror(errno));
		return false;
	}
	return !act_deed_print(options->state, options->json);
}

int main(int argc, char **argv)
{
	struct colld colld = { .options = { .state = "/run/coll", .address = "127.0.0.1",
					    .port = 9469, .interval = 5 * NODE_S, .watch_cost = 0.01 } };
	int status;

	if (!colld_options_read(argc, argv, &colld.options))
		return 2;
	if (colld.options.status)
		return print_status(&colld.options) ? 0 : 1;
	if (!colld.options.policy && !access(DEFAULT_POLICY, F_OK))
		colld.options.policy = DEFAULT_POLICY;
	if (!colld.options.policy && !colld.options.circuits && !colld.options.reports)
		colld.options.policy = DEFAULT_POLICY;
	status = !read_files(&colld);
	if (!colld.options.check) {
		colld_recover(&colld);
		status = status || colld_serve(&colld);
	}
	node_rules_free(&colld.rules);
	free(colld.setup);
	free(colld.metrics);
	return status;
}
