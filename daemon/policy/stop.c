// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Stops daemons while a job runs: a cgroup by its freezer, a unit of systemd by systemctl.
 * A job is a file in the state's folder `jobs`; coll-job creates and removes it. A unit is
 * recorded before it is stopped, and a unit that does not run is left alone: so all are
 * resumed after the last job, when colld ends, and when it dies.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/probe.h"
#include "daemon/common/log.h"
#include "daemon/common/metrics.h"
#include "jobs.h"
#include "keeper.h"
#include "node/freezer.h"
#include "stop.h"

enum { SYSTEMCTL_MS = 10000, UNIT_MAX = 256 };

extern char **environ;

struct stop {
	const struct node_stop *rule;
	struct node_freezer freezer;
};

struct colld_stops {
	struct stop *stop;
	u32 count;
	struct colld_jobs jobs;
	char stopped[512];		/* the file of units */
	char lock[512];			/* ... and what is locked for it: nobody else may open that */
	struct keeper keeper;
	bool in_force;
	u64 times;
};

/* ---- units ---------------------------------------------------------------- */

/* The exit code, or -errno. A systemctl that does not answer is killed. */
static int stop_systemctl(const char *verb, const char *unit)
{
	char *const arguments[] = { "systemctl", "--no-block", "--quiet", (char *)verb,
				    (char *)unit, NULL };
	const struct timespec glance = { 0, 10000000 };
	posix_spawnattr_t attributes;
	int status, error, ms;
	sigset_t none;
	pid_t pid;

	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	error = posix_spawnp(&pid, arguments[0], NULL, &attributes, arguments, environ);
	posix_spawnattr_destroy(&attributes);
	if (error)
		return -error;
	for (ms = 0; !waitpid(pid, &status, WNOHANG); ms += 10) {
		if (ms >= SYSTEMCTL_MS) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -ETIMEDOUT;
		}
		nanosleep(&glance, NULL);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

/* Against the keeper of a colld that died. Closing the fd unlocks; -1: no lock. */
static int stop_lock(const struct colld_stops *stops)
{
	const int fd = open(stops->lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	while (fd >= 0 && flock(fd, LOCK_EX) && errno == EINTR)
		;
	return fd;
}

static void stop_unlock(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Recorded before it is stopped: it is started again in any case. */
static int stop_record(const struct colld_stops *stops, const char *unit)
{
	FILE *to = fopen(stops->stopped, "ae");
	bool good;

	if (!to)
		return -errno;
	fprintf(to, "%s\n", unit);
	good = !fflush(to) && !fsync(fileno(to));
	return fclose(to) || !good ? -EIO : 0;
}

static void stop_unit(const struct colld_stops *stops, const char *unit)
{
	int error = stop_systemctl("is-active", unit);

	if (error > 0)
		return;		/* it does not run: nothing to resume */
	COLL_PROBE2(colld, rule_stop, unit, error);
	if (!error)
		error = stop_record(stops, unit);
	if (!error)
		error = stop_systemctl("stop", unit);
	if (error)
		colld_log(LOG_ERR, "stop %s: %s", unit, error < 0 ? strerror(-error) :
			  "systemctl failed");
}

static void start_units(const struct colld_stops *stops)
{
	const int locked = stop_lock(stops);
	FILE *from = fopen(stops->stopped, "re");
	char unit[UNIT_MAX];
	int error;

	while (from && fgets(unit, sizeof(unit), from)) {
		unit[strcspn(unit, "\n")] = 0;
		error = stop_systemctl("start", unit);
		if (error)
			colld_log(LOG_ERR, "start %s: %s", unit, error < 0 ? strerror(-error) :
				  "systemctl failed");
	}
	if (from)
		fclose(from);
	unlink(stops->stopped);
	stop_unlock(locked);
}

/* ---- all ------------------------------------------------------------------ */

static void freeze_all(const struct colld_stops *stops, bool frozen)
{
	u32 i;
	int error;

	for (i = 0; i < stops->count; i++) {
		if (stops->stop[i].rule->unit)
			continue;
		error = node_freezer_set(&stops->stop[i].freezer, frozen);
		if (error)
			colld_log(LOG_ERR, "stop %s: %s: %s", stops->stop[i].rule->cgroup,
				  stops->stop[i].freezer.path, strerror(-error));
	}
}

static void stops_resume(void *data)
{
	struct colld_stops *stops = data;

	freeze_all(stops, false);
	start_units(stops);
	stops->in_force = false;
}

static void stops_stop(struct colld_stops *stops)
{
	const int locked = stop_lock(stops);
	u32 i;

	freeze_all(stops, true);
	for (i = 0; i < stops->count; i++)
		if (stops->stop[i].rule->unit)
			stop_unit(stops, stops->stop[i].rule->unit);
	stop_unlock(locked);
	stops->in_force = true;
	stops->times++;
}

void colld_stops_progress(struct colld_stops *stops)
{
	bool any;

	colld_jobs_drain(&stops->jobs);
	any = colld_jobs_any(&stops->jobs);
	if (any && !stops->in_force)
		stops_stop(stops);
	else if (!any && stops->in_force)
		stops_resume(stops);
}

static int watch_jobs(struct colld_stops *stops, const char *state)
{
	if (snprintf(stops->stopped, sizeof(stops->stopped), "%s/stopped", state) >=
	    (int)sizeof(stops->stopped) ||
	    snprintf(stops->lock, sizeof(stops->lock), "%s/stop.lock", state) >= (int)sizeof(stops->lock))
		return -ENAMETOOLONG;
	return colld_jobs_open(&stops->jobs, state);
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
	if (!rules->stops)
		return 0;
	error = watch_jobs(new, state);
	if (!error)
		error = keeper_start(&new->keeper, stops_resume, new);
	if (error)
		return error;
	start_units(new);	/* stopped by a colld that died with its keeper */
	colld_stops_progress(new);
	return 0;
}

int colld_stops_fd(const struct colld_stops *stops)
{
	return stops->jobs.watch;
}

void colld_stops_close(struct colld_stops *stops)
{
	if (!stops)
		return;
	if (stops->in_force)
		stops_resume(stops);
	keeper_end(&stops->keeper);
	colld_jobs_close(&stops->jobs);
	free(stops->stop);
	free(stops);
}

void colld_stops_metrics(const struct colld_stops *stops, FILE *to)
{
	colld_metrics_gauge(to, "coll_stopped", "Daemons that are stopped now.");
	colld_metrics_count(to, "coll_stopped", NULL, NULL, stops->in_force ? stops->count : 0);
	colld_metrics_counter(to, "coll_stops_total", "Times that daemons were stopped.");
	colld_metrics_count(to, "coll_stops_total", NULL, NULL, stops->times);
}
