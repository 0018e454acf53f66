// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Stops daemons while a job runs: a cgroup by its freezer, a unit of systemd by systemctl.
 * A job is a file in the state's folder `jobs`; coll-job creates and removes it. What is
 * stopped is recorded before (stopped.h), and a unit that does not run is left alone: so all are
 * resumed after the last job, when colld ends, and when it dies. What could not be resumed stays
 * recorded, and is tried again.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/probe.h"
#include "daemon/common/clock.h"
#include "daemon/common/log.h"
#include "daemon/common/metrics.h"
#include "jobs.h"
#include "keeper.h"
#include "node/freezer.h"
#include "node/units.h"
#include "stop.h"
#include "stopped.h"

#define STOPPED	"stopped"	/* the record's name */
enum { SYSTEMCTL_MS = 10000 };
/* Until what could not be resumed is tried again; twice that each time, up to the latter. */
static const u64 AGAIN_NS = 5 * NODE_S, AGAIN_MOST_NS = 160 * NODE_S;

extern char **environ;

struct stop {
	const struct node_stop *rule;
	struct node_freezer freezer;
};

enum stops_state {
	STOPS_NONE,
	STOPS_IN_FORCE,
	STOPS_ENDING,		/* not all could be resumed yet */
};

struct colld_stops {
	struct stop *stop;
	u32 count;
	struct colld_jobs jobs;
	struct colld_stopped stopped;
	struct keeper keeper;
	enum stops_state state;
	u64 again_at, pause;	/* STOPS_ENDING */
	int jobs_error;		/* that was logged */
	u64 times;
};

/* ---- units ---------------------------------------------------------------- */

/* 0 or -errno. What it prints goes to `out`; -1: to where colld's goes. */
static int systemctl_start(char *const *arguments, int out, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int error;

	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	if (out >= 0)
		posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	error = posix_spawnp(pid, arguments[0], &actions, &attributes, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -error;
}

/* The exit code, or -errno. A systemctl that does not answer is killed. */
static int systemctl_run(char *const *arguments, int out)
{
	const struct timespec glance = { 0, 10000000 };
	int status = 0, ms;
	pid_t pid, ended;
	const int error = systemctl_start(arguments, out, &pid);

	if (error)
		return error;
	for (ms = 0; !(ended = waitpid(pid, &status, WNOHANG)); ms += 10) {
		if (ms >= SYSTEMCTL_MS) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -ETIMEDOUT;
		}
		nanosleep(&glance, NULL);
	}
	if (ended < 0)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

static int stop_systemctl(const char *verb, const char *unit)
{
	char *const arguments[] = { "systemctl", "--no-block", "--quiet", (char *)verb, (char *)unit, NULL };

	return systemctl_run(arguments, -1);
}

/*
 * Whether it runs, or begins to, as where it was resumed after another job a moment ago. 0; or what failed: the exit
 * code, where that says nothing of the unit, or -errno.
 */
static int stop_look(const char *unit, bool *runs)
{
	enum { NOT_RUNNING = 3, UNKNOWN = 4 };
	static const char begins[] = "activating";
	char *const arguments[] = { "systemctl", "is-active", (char *)unit, NULL };
	char said[sizeof(begins)] = "";
	int out[2], code;

	if (pipe2(out, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	code = systemctl_run(arguments, out[1]);
	close(out[1]);
	*runs = !code || (read(out[0], said, sizeof(said) - 1) > 0 && !strcmp(said, begins));
	close(out[0]);
	return *runs || code == NOT_RUNNING || code == UNKNOWN ? 0 : code;
}

/* 0, or what failed: it may run on. */
static int stop_unit(const struct colld_stops *stops, const char *unit)
{
	bool runs = false;
	int error = stop_look(unit, &runs);

	if (!error && !runs)
		return 0;	/* nothing to resume */
	COLL_PROBE2(colld, rule_stop, unit, error);
	if (!error)
		error = colld_stopped_add(&stops->stopped, unit);
	if (!error)
		error = stop_systemctl("stop", unit);
	if (error)
		colld_log(LOG_ERR, "stop %s: %s", unit, error < 0 ? strerror(-error) :
			  "systemctl failed");
	return error;
}

/* ---- cgroups -------------------------------------------------------------- */

static void stop_cgroup(const struct colld_stops *stops, const struct stop *stop)
{
	int error = colld_stopped_add(&stops->stopped, stop->rule->cgroup);

	if (!error)
		error = node_freezer_set(&stop->freezer, true);
	if (error)
		colld_log(LOG_ERR, "stop %s: %s: %s", stop->rule->cgroup, stop->freezer.path, strerror(-error));
}

/* ---- all ------------------------------------------------------------------ */

struct resuming {
	bool again;		/* it was logged before */
	bool timed_out;		/* systemd does not answer: it is asked no more, this time */
};

/* A line of the record: a path is a cgroup. */
static int stop_resume(const char *what, void *data)
{
	struct resuming *resuming = data;
	int error;

	if (*what == '/')
		error = node_freezer_thaw(what);
	else
		error = resuming->timed_out ? -ETIMEDOUT : stop_systemctl("start", what);
	if (error && !resuming->again && !resuming->timed_out)
		colld_log(LOG_ERR, "resume %s: %s; it is tried again", what, error < 0 ? strerror(-error) :
			  "systemctl failed");
	resuming->timed_out |= error == -ETIMEDOUT;
	return error;
}

static void stops_resume(void *data)
{
	struct colld_stops *stops = data;
	struct resuming resuming = { .again = stops->state == STOPS_ENDING };
	const int error = colld_stopped_resume(&stops->stopped, stop_resume, &resuming);

	if (!error && resuming.again)
		colld_log(LOG_NOTICE, "what was stopped is resumed now");
	stops->pause = !resuming.again ? AGAIN_NS : stops->pause < AGAIN_MOST_NS ? 2 * stops->pause : AGAIN_MOST_NS;
	stops->again_at = colld_now() + stops->pause;
	stops->state = error ? STOPS_ENDING : STOPS_NONE;
}

bool colld_stops_left(const char *state)
{
	struct colld_stopped stopped;

	return !colld_stopped_open(&stopped, state, STOPPED) && colld_stopped_any(&stopped);
}

void colld_stops_recover(const char *state)
{
	struct colld_stops former = { .state = STOPS_NONE };

	if (!colld_stopped_open(&former.stopped, state, STOPPED))
		stops_resume(&former);
}

static void stops_stop(struct colld_stops *stops)
{
	const int lock = colld_stopped_lock(&stops->stopped);
	int error = 0;
	u32 i;

	/* Cgroups first: that takes no time. */
	for (i = 0; i < stops->count; i++)
		if (!stops->stop[i].rule->unit)
			stop_cgroup(stops, &stops->stop[i]);
	/* Where systemd does not answer it is asked no more: nothing else is done here meanwhile. */
	for (i = 0; i < stops->count && error != -ETIMEDOUT; i++)
		if (stops->stop[i].rule->unit)
			error = stop_unit(stops, stops->stop[i].rule->unit);
	if (error == -ETIMEDOUT)
		colld_log(LOG_ERR, "stop: systemd does not answer: units after that one are not stopped");
	colld_stopped_unlock(lock);
	stops->state = STOPS_IN_FORCE;
	stops->times++;
}

/* Nobody looks for jobs where the policy stops nothing. Logged once. */
static int stops_any_job(struct colld_stops *stops)
{
	const int any = stops->jobs.watch < 0 ? 0 : colld_jobs_any(&stops->jobs);

	if (any < 0 && any != stops->jobs_error)
		colld_log(LOG_ERR, "stop: %s: %s: whether a job runs is not known, all stays as it is",
			  stops->jobs.folder, strerror(-any));
	stops->jobs_error = any < 0 ? any : 0;
	return any;
}

void colld_stops_progress(struct colld_stops *stops)
{
	int any;

	colld_jobs_drain(&stops->jobs);
	any = stops_any_job(stops);
	if (any > 0 && stops->state != STOPS_IN_FORCE)
		stops_stop(stops);
	else if (!any && (stops->state == STOPS_IN_FORCE ||
			  (stops->state == STOPS_ENDING && colld_now() >= stops->again_at)))
		stops_resume(stops);
}

int colld_stops_open(struct colld_stops **stops, const struct node_rules *rules,
		     const char *state)
{
	struct colld_stops *new = calloc(1, sizeof(*new));
	int error;
	u32 i;

	*stops = new;
	if (!new)
		return -ENOMEM;
	new->keeper = KEEPER_NONE;
	new->jobs = COLLD_JOBS_NONE;
	new->stop = calloc(rules->stops + 1, sizeof(*new->stop));
	if (!new->stop)
		return -ENOMEM;
	for (i = 0; i < rules->stops; i++) {
		struct stop *stop = &new->stop[new->count];

		*stop = (struct stop){ .rule = &rules->stop[i] };
		if (!stop->rule->unit && node_freezer_find(&stop->freezer, stop->rule->cgroup))
			colld_log(LOG_WARNING, "stop %s: no such cgroup with a freezer here",
				  stop->rule->cgroup);
		else
			new->count++;
	}
	error = colld_stopped_open(&new->stopped, state, STOPPED);
	if (error)
		return error;
	stops_resume(new);	/* of a colld that died with its keeper, by whatever policy */
	if (!rules->stops)
		return 0;
	error = colld_jobs_open(&new->jobs, state);
	if (!error)
		error = keeper_start(&new->keeper, stops_resume, new);
	if (!error)
		colld_stops_progress(new);
	return error;
}

int colld_stops_fd(const struct colld_stops *stops)
{
	return stops->jobs.watch;
}

void colld_stops_close(struct colld_stops *stops)
{
	if (!stops)
		return;
	if (stops->state != STOPS_NONE)
		stops_resume(stops);
	keeper_end(&stops->keeper);
	colld_jobs_close(&stops->jobs);
	free(stops->stop);
	free(stops);
}

void colld_stops_metrics(const struct colld_stops *stops, FILE *to)
{
	colld_metrics_gauge(to, "coll_stopped", "Daemons that are stopped now.");
	colld_metrics_count(to, "coll_stopped", NULL, NULL, stops->state ? stops->count : 0);
	colld_metrics_counter(to, "coll_stops_total", "Times that daemons were stopped.");
	colld_metrics_count(to, "coll_stops_total", NULL, NULL, stops->times);
}
