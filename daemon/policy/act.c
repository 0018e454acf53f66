// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A user's jobs are looked at by one observer. Each process that took more than a share of the ranks'
 * cores is judged once while they run. At most so many are moved or held back at once, each for a time: acts
 * and log lines are bounded. Who is judged has an entry; one that something is done to has a folder with its
 * former state, which is written before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "act.h"
#include "act_process.h"
#include "counter.h"
#include "daemon/common/clock.h"
#include "daemon/common/log.h"
#include "daemon/common/metrics.h"
#include "jobs.h"
#include "keeper.h"
#include "libcoll/flight/observation.h"
#include "node/units.h"
#include "takers.h"

enum { USERS_MOST = 16, ENTRIES_MOST = 256, RANKS_MOST = USERS_MOST * OBSERVER_RANKS };
static const u64 JUDGE_NS = 2 * NODE_S;		/* at least so long a process is watched */
static const u64 FINISH_NS = 5 * NODE_S;	/* until what could not be undone is tried again */

struct act_user {
	u32 uid;
	struct observer *observer;
	struct colld_counter *counter;	/* or NULL */
	struct colld_takers takers;
	struct act act[ENTRIES_MOST];
	u32 acts;
	u64 look_at, hold_at, judged, left;	/* left: for coll report */
	struct colld_acts *of;
};

struct colld_acts {
	struct act_means means;
	char observed[512];		/* a folder: what is left for coll report of the users */
	struct colld_jobs jobs;
	int timer, events;
	struct act_user *user[USERS_MOST];
	u32 users;
	u64 times[ACT_RESULTS];
	int leave_error;		/* that was logged */
	bool locked;			/* what is in the state's folder is this colld's */
	bool unfinished;		/* something is done that no act knows any more */
	u64 finish_at;			/* that is looked for */
	struct keeper keeper;		/* undoes when this process dies */
	struct colld_counting counting;
};

/* ---- one process ------------------------------------------------------------ */

static const char *act_mode_name(const struct colld_acts *acts)
{
	return acts->means.rules->act.mode == NODE_ACT_ADVISE ? "advise" : "act";
}

/* They are forgotten: what is done and could not be undone is recovered later. */
static void acts_drop(struct colld_acts *acts, struct act **act, u32 count, const char *why)
{
	u32 i;

	acts_end(act, count, &acts->means, why);
	for (i = 0; i < count; i++) {
		if (!act[i]->until)
			continue;
		acts->unfinished = true;
		act_deed_free(&act[i]->deed);
	}
}

/* What is logged of who took how much from whom. */
static void act_evidence(const struct colld_taker *taker, const struct node_task *process, double share,
			 u64 ns, char text[512])
{
	char cgroup[NODE_TASK_CGROUP];

	snprintf(text, 512, "%s (pid %u, user %u, cgroup %s) took %.0f %% of a core from rank %u of job "
		 "%s (CPU %u) in %.1f s", taker->name, taker->pid, process->uid,
		 node_rules_glob(process->cgroup, cgroup, sizeof(cgroup)), 100 * share, taker->rank,
		 taker->job, taker->cpu, ns / 1e9);
}

static u32 user_in_force(const struct act_user *user)
{
	u32 i, count = 0;

	for (i = 0; i < user->acts; i++)
		count += user->act[i].until != 0;
	return count;
}

/* By any user's act. */
static bool is_in_force(const void *data, u32 pid)
{
	const struct colld_acts *acts = data;
	u32 i, j;

	for (i = 0; i < acts->users; i++)
		for (j = 0; j < acts->user[i]->acts; j++)
			if (acts->user[i]->act[j].pid == pid && acts->user[i]->act[j].until)
				return true;
	return false;
}

static enum act_result act_decide(struct act_user *user, struct act *act, const char *name,
				  const struct colld_case *of, const char *evidence, const char *why_not)
{
	struct colld_acts *acts = user->of;
	const struct node_rules *rules = acts->means.rules;
	char cpus[NODE_CPUS_TEXT];

	if (!why_not && is_in_force(acts, act->pid))
		why_not = "it is moved or held back for another user's job";
	if (!why_not && user_in_force(user) >= rules->act.most)
		why_not = "as many as the policy allows (most=) are moved or held back";
	if (why_not) {
		colld_log(LOG_NOTICE, "%s: %s: left alone: %s", act_mode_name(acts), evidence, why_not);
		return ACT_LEFT;
	}
	if (rules->act.mode != NODE_ACT_ADVISE)
		return act_begin(act, &acts->means, name, of, evidence);
	colld_log(LOG_NOTICE, "advise: %s: it would be moved by: taskset -acp %s %u", evidence,
		  node_cpus_list(&rules->housekeeping, cpus, sizeof(cpus)), act->pid);
	return ACT_ADVISED;
}

/* It was judged. Those that have ended are forgotten: the number is not used again. */
static struct act *act_find(struct act_user *user, u32 pid)
{
	u32 i;

	for (i = 0; i < user->acts; i++)
		if (user->act[i].pid == pid)
			return &user->act[i];
	return NULL;
}

static struct act *act_entry(struct act_user *user, const struct node_task *process)
{
	if (user->acts == ENTRIES_MOST)
		return NULL;
	user->act[user->acts] = (struct act){
		.pid = process->pid, .born = process->born, .since = colld_now() };
	return &user->act[user->acts++];
}

static void act_judge(struct act_user *user, const struct colld_taker *taker,
		      const struct colld_case *of, u64 ns)
{
	const struct node_task *process = node_tasks_find(of->tasks, taker->pid);
	const double share = (double)taker->ns / ns;
	enum act_result result;
	char evidence[512];
	struct act *act;

	if (share < of->rules->act.share || !process || colld_is_of_users(process))
		return;
	act = act_find(user, process->pid) ? NULL : act_entry(user, process);
	if (!act)
		return;
	act_evidence(taker, process, share, ns, evidence);
	result = act_decide(user, act, taker->name, of, evidence, colld_judge(of, process));
	user->of->times[result]++;
	node_observer_mark(user->observer, taker->pid, result == ACT_MOVED ? COLL_FLIGHT_TAKER_MOVED :
						       result == ACT_HELD  ? COLL_FLIGHT_TAKER_HELD : 0);
}

/* ---- a user's jobs ------------------------------------------------------------ */

static void user_taken(const struct observer_taken *taken, void *argument)
{
	struct act_user *user = argument;

	if (node_cpus_has(&user->of->means.rules->application, taken->ran->cpu))
		colld_takers_add(&user->takers, taken);
}

static struct act_user *user_open(struct colld_acts *acts, u32 uid)
{
	struct act_user *user = calloc(1, sizeof(*user));

	if (user)
		user->observer = node_observer_open_user(uid);
	if (!user || !user->observer) {
		free(user);
		return NULL;
	}
	user->uid = uid;
	user->of = acts;
	node_observer_hear(user->observer, user_taken, user);
	user->counter = colld_counter_open(&acts->counting);
	node_observer_count(user->observer, colld_counter_table(user->counter));
	return user;
}

static void user_close(struct act_user *user, const char *why)
{
	struct act *all[ENTRIES_MOST] = { NULL };
	u32 i;

	colld_counter_stop(user->counter);
	/* First: undoing needs descriptors, of which this has many. */
	node_observer_close(user->observer);
	colld_counter_close(user->counter);
	for (i = 0; i < user->acts; i++)
		all[i] = &user->act[i];
	acts_drop(user->of, all, user->acts, why);
	coll_flight_observation_remove(user->of->observed, user->uid);
	free(user);
}

/* Of a process that has ended there is nothing to be undone; its number is used again. */
static void user_forget_ended(struct act_user *user)
{
	struct act *ended[ENTRIES_MOST + 1];
	u32 i, kept = 0, count = 0;

	for (i = 0; i < user->acts; i++)
		if (!node_task_is(user->act[i].pid, user->act[i].born))
			ended[count++] = &user->act[i];
	ended[count] = NULL;
	if (count)
		acts_drop(user->of, ended, count, "it has ended");
	for (i = count = 0; i < user->acts; i++)
		if (ended[count] == &user->act[i])
			count++;
		else
			user->act[kept++] = user->act[i];
	user->acts = kept;
}

/* Of all users: for whichever job one is judged, none is to be touched. */
static u32 acts_ranks(const struct colld_acts *acts, u32 rank[RANKS_MOST])
{
	u32 i, count = 0;

	for (i = 0; i < acts->users; i++)
		count += node_observer_pids(acts->user[i]->observer, rank + count, RANKS_MOST - count);
	return count;
}

/* It took enough, and nothing is known of it: all tasks are looked at for that. */
static bool is_news(struct act_user *user, const struct colld_taker *taker, u64 ns)
{
	const struct node_act *policy = &user->of->means.rules->act;
	const double share = (double)taker->ns / ns;
	struct act *known = act_find(user, taker->pid);
	struct node_task process;

	if (known)
		act_tell_share(known, policy, share);
	return !known && share >= policy->share && user->acts < ENTRIES_MOST &&
	       node_task_read(taker->pid, taker->pid, &process) && !colld_is_of_users(&process);
}

static void judge_all(struct act_user *user, u64 ns)
{
	static u32 rank[RANKS_MOST];
	struct node_tasks tasks;
	struct colld_case of = {
		.rules = user->of->means.rules, .tasks = &tasks, .rank = rank,
		.ranks = acts_ranks(user->of, rank),
	};
	u32 i;

	if (node_tasks_look(&tasks))
		return;
	for (i = 0; i < user->takers.count; i++)
		act_judge(user, &user->takers.taker[i], &of, ns);
	node_tasks_free(&tasks);
}

static void user_judge(struct act_user *user, u64 ns)
{
	bool news = false;
	u32 i;

	user_forget_ended(user);
	colld_takers_sort(&user->takers);
	for (i = 0; i < user->takers.count; i++)
		news |= is_news(user, &user->takers.taker[i], ns);
	if (news)
		judge_all(user, ns);
	user->takers.count = 0;
}

/* Where that fails coll report has looks of its own, as long as it runs. It is logged once. */
static void user_leave(struct act_user *user)
{
	struct colld_acts *acts = user->of;
	const int error = node_observer_write(user->observer, acts->observed);

	if (error && error != acts->leave_error)
		colld_log(LOG_WARNING, "act: %s/%u: %s%s; coll report does without what colld saw",
			  acts->observed, user->uid, strerror(-error), error == -EOPNOTSUPP ?
			  ": it needs a file system with access control lists" : "");
	if (error)
		acts->leave_error = error;
}

static void user_expire(struct act_user *user, u64 now)
{
	struct act *over[ENTRIES_MOST];
	u32 i, count = 0;

	for (i = 0; i < user->acts; i++)
		if (user->act[i].until && now >= user->act[i].until)
			over[count++] = &user->act[i];
	if (count)
		acts_end(over, count, &user->of->means, "it was as long as the policy allows (for=)");
}

static void user_look(struct act_user *user)
{
	u64 looked;

	user->look_at = node_observer_look(user->observer);
	looked = node_observer_looked(user->observer);
	if (looked > user->left)
		user_leave(user);
	colld_counter_look(user->counter, user->observer);
	user->left = looked;
	if (!user->judged)
		user->judged = looked;
	if (looked < user->judged + JUDGE_NS)
		return;
	user_judge(user, looked - user->judged);
	user->judged = looked;
}

/* What is held back is so, or let go, as it is time. */
static void user_hold(struct act_user *user)
{
	static u32 rank[RANKS_MOST];
	const bool phase = node_observer_calls(user->observer);
	u64 next;
	u32 i;

	user->hold_at = UINT64_MAX;
	for (i = 0; i < user->acts; i++) {
		if (!act_is_hold(&user->act[i]))
			continue;
		next = act_hold(&user->act[i], &user->of->means, phase, rank, acts_ranks(user->of, rank));
		if (next < user->hold_at)
			user->hold_at = next;
	}
}

static void user_progress(struct act_user *user, u64 now)
{
	user_expire(user, now);
	if (now >= user->look_at)
		user_look(user);
	user_hold(user);
}

static u64 user_next(const struct act_user *user)
{
	u64 next = user->look_at < user->hold_at ? user->look_at : user->hold_at;
	u32 i;

	for (i = 0; i < user->acts; i++)
		if (user->act[i].until && user->act[i].until < next)
			next = user->act[i].until;
	return next;
}

/* ---- all ------------------------------------------------------------------- */

static bool is_among(const u32 *uid, u32 count, u32 user)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (uid[i] == user)
			return true;
	return false;
}

/* All folders that are of no act in force are of those that were not finished. */
void colld_acts_finish(struct colld_acts *acts)
{
	const u64 now = colld_now();

	if (!acts->locked || now < acts->finish_at)
		return;
	acts->unfinished = !act_deed_recover(acts->means.state, is_in_force, acts);
	acts->finish_at = now + FINISH_NS;
}

/* Those whose last job has ended go, those that have one now come. Unless that cannot be read. */
static void acts_renew_users(struct colld_acts *acts)
{
	u32 uid[USERS_MOST], known[USERS_MOST];
	const int found = colld_jobs_users(&acts->jobs, uid, USERS_MOST);
	const u32 count = found;
	u32 i, kept = 0;

	if (found < 0) {
		colld_log(LOG_ERR, "act: %s: %s: whose jobs run is not known, all stays as it is",
			  acts->jobs.folder, strerror(-found));
		return;
	}
	for (i = 0; i < acts->users; i++)
		if (is_among(uid, count, acts->user[i]->uid))
			acts->user[kept++] = acts->user[i];
		else
			user_close(acts->user[i], "the job ended");
	acts->users = kept;
	for (i = 0; i < kept; i++)
		known[i] = acts->user[i]->uid;
	for (i = 0; i < count; i++) {
		if (is_among(known, kept, uid[i]))
			continue;
		acts->user[acts->users] = user_open(acts, uid[i]);
		acts->users += acts->user[acts->users] != NULL;
	}
}

/* Never in the past: that would disarm it. */
static void acts_arm(const struct colld_acts *acts)
{
	struct itimerspec at = { .it_value.tv_sec = 0 };
	u64 next = acts->unfinished ? acts->finish_at : UINT64_MAX;
	u32 i;

	for (i = 0; i < acts->users; i++)
		if (user_next(acts->user[i]) < next)
			next = user_next(acts->user[i]);
	if (acts->users || acts->unfinished) {
		next += !next;
		at.it_value = (struct timespec){ next / NODE_S, next % NODE_S };
	}
	timerfd_settime(acts->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void colld_acts_progress(struct colld_acts *acts)
{
	const u64 now = colld_now();
	u64 expired;
	u32 i;

	colld_jobs_drain(&acts->jobs);
	if (read(acts->timer, &expired, sizeof(expired)) < 0 && errno != EAGAIN)
		return;
	acts_renew_users(acts);
	for (i = 0; i < acts->users; i++)
		user_progress(acts->user[i], now);
	colld_acts_finish(acts);
	acts_arm(acts);
}

static int acts_make_folder(struct colld_acts *acts)
{
	snprintf(acts->observed, sizeof(acts->observed), "%s/observed", acts->means.state);
	return mkdir(acts->observed, 0755) && errno != EEXIST ? -errno : 0;
}

/* By the keeper of a colld that has died: unless the next one has come before, which does it. */
static void acts_recover_dead(void *data)
{
	const struct colld_acts *acts = data;

	if (act_deed_lock(acts->means.state) >= 0)
		act_deed_recover(acts->means.state, NULL, NULL);
}

static int acts_watch(struct colld_acts *acts, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(acts->events, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* What it is woken by. */
static int acts_open_events(struct colld_acts *acts)
{
	int error = colld_jobs_open(&acts->jobs, acts->means.state);

	if (!error)
		error = acts_make_folder(acts);
	if (error)
		return error;
	acts->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	acts->events = epoll_create1(EPOLL_CLOEXEC);
	if (acts->timer < 0 || acts->events < 0)
		return -errno;
	error = acts_watch(acts, acts->jobs.watch);
	return error ? error : acts_watch(acts, acts->timer);
}

int colld_acts_open(struct colld_acts **acts, const struct node_rules *rules, const char *state, bool locked,
		    double watch)
{
	struct colld_acts *new = calloc(1, sizeof(*new));
	int error = 0;

	*acts = new;
	if (!new)
		return -ENOMEM;
	new->means = (struct act_means){ rules, state };
	new->keeper = KEEPER_NONE;
	new->jobs = COLLD_JOBS_NONE;
	new->timer = new->events = -1;
	new->locked = locked;
	new->counting = (struct colld_counting){ .most = watch };
	if (rules->act.mode == NODE_ACT_OFF)
		return 0;
	if (rules->act.mode != NODE_ACT_ADVISE)
		error = keeper_start(&new->keeper, acts_recover_dead, new);
	if (!error)
		error = acts_open_events(new);
	if (!error) {
		colld_acts_progress(new);
	} else if (new->events >= 0) {	/* nothing wakes what is not all there */
		close(new->events);
		new->events = -1;
	}
	return error;
}

int colld_acts_fd(const struct colld_acts *acts)
{
	return acts->events;
}

void colld_acts_close(struct colld_acts *acts)
{
	u32 i;

	if (!acts)
		return;
	for (i = 0; i < acts->users; i++)
		user_close(acts->user[i], "colld or this policy ends");
	acts->users = 0;
	acts->finish_at = 0;
	colld_acts_finish(acts);
	if (acts->unfinished)
		keeper_leave(&acts->keeper);
	keeper_end(&acts->keeper);
	colld_jobs_close(&acts->jobs);
	if (acts->timer >= 0)
		close(acts->timer);
	if (acts->events >= 0)
		close(acts->events);
	free(acts);
}

static u32 acts_in_force(const struct colld_acts *acts, bool hold)
{
	u32 i, k, count = 0;

	for (i = 0; i < acts->users; i++)
		for (k = 0; k < acts->user[i]->acts; k++)
			count += acts->user[i]->act[k].until && act_is_hold(&acts->user[i]->act[k]) == hold;
	return count;
}

void colld_acts_metrics(const struct colld_acts *acts, FILE *to)
{
	static const char *const results[ACT_RESULTS] = {
		[ACT_MOVED] = "moved", [ACT_HELD] = "held", [ACT_ADVISED] = "advised", [ACT_LEFT] = "left",
	};
	u32 i, cpus = 0;

	for (i = 0; i < acts->users; i++)
		cpus += node_observer_counts(acts->user[i]->observer).cpus;
	colld_counting_metrics(&acts->counting, cpus, to);
	colld_metrics_gauge(to, "coll_acts", "Processes that took a job's cores, by what is done to them now.");
	colld_metrics_count(to, "coll_acts", "act", "moved", acts_in_force(acts, false));
	colld_metrics_count(to, "coll_acts", "act", "held", acts_in_force(acts, true));
	colld_metrics_counter(to, "coll_acts_total", "Processes found to take a job's cores, by what was done.");
	for (i = 0; i < ACT_RESULTS; i++)
		colld_metrics_count(to, "coll_acts_total", "result", results[i], acts->times[i]);
}
