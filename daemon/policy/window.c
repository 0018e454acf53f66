// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Co-scheduling: the tasks of a cgroup run only in windows of the wall clock. They run at
 * the same time on all nodes, and a collective is delayed once and not once per node. A
 * frozen cgroup takes no CPU time and continues where it was. Their cgroups are recorded before
 * (stopped.h): so all go on when colld ends, and when it dies.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "core/probe.h"
#include "daemon/common/clock.h"
#include "daemon/common/log.h"
#include "daemon/common/metrics.h"
#include "keeper.h"
#include "node/freezer.h"
#include "node/units.h"
#include "stopped.h"
#include "window.h"

#define FROZEN	"frozen"	/* the record's name */

struct window {
	const struct node_window *rule;
	struct node_freezer freezer;
	bool open;
	int error;		/* that was logged */
};

struct colld_windows {
	struct window *window;
	u32 count;
	int timer;
	struct colld_stopped frozen;	/* all of them, as long as they may be */
	struct keeper keeper;	/* thaws */
	bool real_time;
	u64 turns, late;	/* ns, the worst */
};

static u64 window_wall(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NODE_S + now.tv_nsec;
}

static int thaw_one(const char *cgroup, void *data)
{
	const int error = node_freezer_thaw(cgroup);

	(void)data;
	if (error)
		colld_log(LOG_ERR, "window %s: it is not thawed: %s; the next colld does that", cgroup,
			  strerror(-error));
	return error;
}

static void thaw_all(void *data)
{
	const struct colld_windows *windows = data;

	colld_stopped_resume(&windows->frozen, thaw_one, NULL);
}

bool colld_windows_left(const char *state)
{
	struct colld_stopped frozen;

	return !colld_stopped_open(&frozen, state, FROZEN) && colld_stopped_any(&frozen);
}

void colld_windows_recover(const char *state)
{
	struct colld_windows former = { .count = 0 };

	if (!colld_stopped_open(&former.frozen, state, FROZEN))
		thaw_all(&former);
}

/* ---- turns ---------------------------------------------------------------- */

/* Whether the window is open, and when it changes. */
static bool is_open(const struct node_window *rule, u64 now, u64 *edge)
{
	const u64 since = (now + rule->period - rule->phase) % rule->period;
	const bool open = since < rule->open;

	*edge = now - since + (open ? rule->open : rule->period);
	return open;
}

static void window_turn(struct colld_windows *windows, struct window *window, bool open)
{
	int error;

	if (window->open == open)
		return;
	error = node_freezer_set(&window->freezer, !open);
	if (error && error != window->error)
		colld_log(LOG_ERR, "window %s: %s: %s", window->rule->cgroup,
			  window->freezer.path, strerror(-error));
	COLL_PROBE3(colld, rule_window, window->rule->cgroup, (int)open, error);
	window->error = error;
	window->open = open;
	windows->turns++;
}

static void wake_at(const struct colld_windows *windows, u64 at)
{
	const struct itimerspec time = { .it_value = { at / NODE_S, at % NODE_S } };

	/* Readable at once also when the clock is set. */
	timerfd_settime(windows->timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &time, NULL);
}

static u64 turn_all(struct colld_windows *windows)
{
	const u64 now = window_wall();
	u64 next = UINT64_MAX, edge;
	u32 i;

	for (i = 0; i < windows->count; i++) {
		struct window *window = &windows->window[i];

		window_turn(windows, window, is_open(window->rule, now, &edge));
		next = edge < next ? edge : next;
	}
	return next;
}

void colld_windows_progress(struct colld_windows *windows)
{
	const u64 begun = colld_now();	/* the wall clock may be set meanwhile */
	u64 expired, next, took;

	if (read(windows->timer, &expired, sizeof(expired)) < 0 && errno != EAGAIN &&
	    errno != ECANCELED)
		return;
	next = turn_all(windows);
	wake_at(windows, next);
	took = colld_now() - begun;
	windows->late = took > windows->late ? took : windows->late;
}

static int set_priority(bool real_time)
{
	const struct sched_param priority = { .sched_priority = real_time };

	return sched_setscheduler(0, (real_time ? SCHED_FIFO : SCHED_OTHER) | SCHED_RESET_ON_FORK,
				  &priority);
}

void colld_windows_set_real_time(const struct colld_windows *windows, bool real_time)
{
	if (windows->real_time)
		set_priority(real_time);
}

/* It has a freezer, and is recorded. */
static int window_open(const struct colld_windows *windows, struct window *window, const struct node_window *rule)
{
	int lock, error;

	*window = (struct window){ .rule = rule, .open = true };
	error = node_freezer_find(&window->freezer, rule->cgroup);
	if (error) {
		colld_log(LOG_WARNING, "window %s: no such cgroup with a freezer here", rule->cgroup);
		return error;
	}
	lock = colld_stopped_lock(&windows->frozen);
	error = colld_stopped_add(&windows->frozen, rule->cgroup);
	colld_stopped_unlock(lock);
	if (error)
		colld_log(LOG_ERR, "window %s: %s: %s", rule->cgroup, windows->frozen.path, strerror(-error));
	return error;
}

int colld_windows_open(struct colld_windows **windows, const struct node_rules *rules, const char *state)
{
	struct colld_windows *new = calloc(1, sizeof(*new));
	u32 i;
	int error;

	*windows = new;
	if (!new)
		return -ENOMEM;
	new->keeper = KEEPER_NONE;
	new->timer = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	new->window = calloc(rules->windows + 1, sizeof(*new->window));
	if (new->timer < 0 || !new->window)
		return -ENOMEM;
	error = colld_stopped_open(&new->frozen, state, FROZEN);
	if (error)
		return error;
	thaw_all(new);		/* of a colld that died with its keeper, by whatever policy */
	for (i = 0; i < rules->windows; i++)
		new->count += !window_open(new, &new->window[new->count], &rules->window[i]);
	if (!new->count)
		return 0;
	error = keeper_start(&new->keeper, thaw_all, new);
	/* A late node delays all others; each change is short. */
	new->real_time = !set_priority(true);
	if (!new->real_time)
		colld_log(LOG_NOTICE, "windows may be late: no real-time priority is allowed");
	if (!error)
		wake_at(new, turn_all(new));
	return error;
}

int colld_windows_fd(const struct colld_windows *windows)
{
	return windows->timer;
}

void colld_windows_close(struct colld_windows *windows)
{
	if (!windows)
		return;
	colld_windows_set_real_time(windows, false);
	thaw_all(windows);
	keeper_end(&windows->keeper);
	if (windows->timer >= 0)
		close(windows->timer);
	free(windows->window);
	free(windows);
}

void colld_windows_metrics(const struct colld_windows *windows, FILE *to)
{
	colld_metrics_gauge(to, "coll_windows", "Cgroups that run in windows only.");
	colld_metrics_count(to, "coll_windows", NULL, NULL, windows->count);
	colld_metrics_counter(to, "coll_window_turns_total", "Changes of a cgroup, frozen or thawed.");
	colld_metrics_count(to, "coll_window_turns_total", NULL, NULL, windows->turns);
	colld_metrics_gauge(to, "coll_window_turn_seconds_max", "The longest change.");
	colld_metrics_seconds(to, "coll_window_turn_seconds_max", NULL, NULL, windows->late);
}
