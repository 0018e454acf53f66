// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Starts a round's job, hurts it when the plan says so, and waits for all of its processes. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "round.h"

enum {
	TICK_US = 500,
	ORPHANS_S = 15,		/* what ranks leave behind ends by then */
	SUSPENDS = 16,		/* a jump of the clock is this part of a deadline */
};

static const uint64_t second = 1000000000;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * second + time.tv_nsec;
}

/* ---- starting ------------------------------------------------------------------ */

static void set_options(const struct round *round)
{
	char copy[sizeof(round->options)], folder[80], *save, *word;

	strcpy(copy, round->options);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		putenv(strdup(word));
	snprintf(folder, sizeof(folder), "%s%s", round->folder,
		 round->kind == KIND_FULL ? "/full" : "");
	setenv("XDG_RUNTIME_DIR", folder, 1);
	setenv("TMPDIR", folder, 1);
}

static void redirect(const struct round *round)
{
	char path[100];
	int fd;

	snprintf(path, sizeof(path), "%s%s/out", round->folder,
		 round->kind == KIND_FULL ? "/full" : "");
	fd = open(round->kind == KIND_DISK ? "/dev/full" : path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0)		/* a full file system may not have it */
		fd = open("/dev/full", O_WRONLY);
	if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
		_Exit(126);
	close(fd);
	close(0);
	open("/dev/null", O_RDONLY);
}

/* The arguments of chaos_job, after its name. At most 12, with the NULL. */
static void job_arguments(const struct round *round, char **argument, char text[6][100])
{
	int n = 0;

	snprintf(text[0], 100, "%s/board", round->folder);
	snprintf(text[1], 100, "%lu", (unsigned long)round->seed);
	snprintf(text[2], 100, "%u", round->phases);
	snprintf(text[3], 100, "%d", round->settings->plant ?
		 (round->event[0].victim + 1) % round->ranks : round->event[0].victim);
	snprintf(text[4], 100, "%lu", (unsigned long)round->fail);
	while (n < 3) {
		argument[n] = text[n];
		n++;
	}
	if (round->settings->plant) {
		argument[n++] = (char *)round->settings->plant;
		argument[n++] = text[3];
	} else if (round->kind == KIND_MEMORY || round->kind == KIND_DESCRIPTOR) {
		argument[n++] = "fail";
		argument[n++] = (char *)kind_names[round->kind];
		argument[n++] = text[4];
		argument[n++] = "0";
		argument[n++] = "0";
		argument[n++] = text[3];
	}
	argument[n] = NULL;
}

static void number(const char *name, int value)
{
	char text[20];

	snprintf(text, sizeof(text), "%d", value);
	setenv(name, text, 1);
}

static void start_rank(const struct round *round, int rank, char **argument)
{
	char program[300], job[80], node[16], socket[100];

	snprintf(program, sizeof(program), "%s/chaos_job", round->settings->folder);
	snprintf(job, sizeof(job), "chaos-%d-%lu", getppid(), (unsigned long)round->seed);
	number("COLL_RANK", rank);
	number("COLL_RANKS", round->ranks);
	number("COLL_LOCAL_RANK", rank);
	number("COLL_LOCAL_RANKS", round->ranks);
	if (round->kind == KIND_COLLD) {
		snprintf(node, sizeof(node), "n%d", rank);
		snprintf(socket, sizeof(socket), "%s/colld.socket", round->folder);
		setenv("COLL_NODE", node, 1);
		setenv("COLL_CIRCUITS", socket, 1);
	}
	setenv("COLL_JOB", job, 1);
	argument[0] = program;
	execv(program, argument);
	_Exit(127);
}

static void start_launcher(const struct round *round, char **argument)
{
	char program[300], coll[300], ranks[20];
	char *whole[24] = { coll, "run", "-q", "-k", "--no-prefix", "-n", ranks, "--", program };
	int n = 9;

	snprintf(program, sizeof(program), "%s/chaos_job", round->settings->folder);
	snprintf(coll, sizeof(coll), "%s/../../coll", round->settings->folder);
	snprintf(ranks, sizeof(ranks), "%d", round->ranks);
	while (*++argument)
		whole[n++] = *argument;
	execv(coll, whole);
	_Exit(127);
}

static int start(struct round *round)
{
	const int processes = round->launched ? 1 : round->ranks;
	char text[6][100], *argument[16];
	int i;

	job_arguments(round, argument + 1, text);
	for (i = 0; i < processes; i++) {
		round->pid[i] = fork();
		if (round->pid[i] < 0)
			return -errno;
		if (!round->pid[i]) {
			set_options(round);
			redirect(round);
			if (round->launched)
				start_launcher(round, argument);
			start_rank(round, i, argument);
		}
		round->left++;
	}
	return 0;
}

/* ---- hurting -------------------------------------------------------------------- */

static bool has_ended(const struct round *round, int rank)
{
	return round->board->rank[rank].state >= STATE_REFUSED;
}

static bool all_joined(const struct round *round)
{
	int i;

	for (i = 0; i < round->ranks; i++)
		if (round->board->rank[i].state < STATE_RUNNING)
			return false;
	return true;
}

static void inject(struct round *round, struct event *event, uint64_t time)
{
	static const int signals[KINDS] = {
		[KIND_KILL] = SIGKILL,	     [KIND_STOP_SHORT] = SIGSTOP,
		[KIND_STOP_LONG] = SIGSTOP, [KIND_CUT] = SIGUSR1, [KIND_RESET] = SIGUSR1,
		[KIND_CLOCK] = SIGUSR2, [KIND_SUSPEND] = SIGUSR2, [KIND_HALF_OPEN] = SIGUSR1,
	};
	const struct board_rank *victim = &round->board->rank[event->victim];

	if (round->kind == KIND_COLLD && round->colld) {
		round_kill_colld(round);
		round_start_colld(round);
		event->injected = true;
		round->injected++;
	}
	if (round->kind == KIND_MODULE && !round->reload) {
		event->injected = true;
		round->injected++;
		if (module_unload())
			round->reload = time + event->duration_us * 1000ull;
	}
	if (!signals[round->kind] || kill(victim->pid, signals[round->kind]))
		return;
	event->injected = true;
	if (round->kind == KIND_STOP_SHORT)
		event->resume = time + event->duration_us * 1000ull;
	if (round->kind == KIND_STOP_LONG)
		event->resume = UINT64_MAX;
	if (!round_cuts(round))
		round->injected++;
}

/* A rank that was stopped for long goes on when the others have ended. */
static bool others_ended(const struct round *round, int rank)
{
	int i;

	for (i = 0; i < round->ranks; i++)
		if (i != rank && !has_ended(round, i))
			return false;
	return true;
}

static void watch_event(struct round *round, struct event *event, uint64_t time)
{
	const struct board_rank *victim = &round->board->rank[event->victim];

	if (event->resume && (time >= event->resume || others_ended(round, event->victim))) {
		kill(victim->pid, SIGCONT);
		event->resume = 0;
	}
	if (event->injected || has_ended(round, event->victim) || !victim->pid)
		return;
	if (!event->due && victim->calls >= event->calls) {
		event->due = time + event->delay_us * 1000ull;
		event->early = !all_joined(round);
	}
	if (event->due && time >= event->due)
		inject(round, event, time);
}

static void reload_module(struct round *round, uint64_t time)
{
	if (round->reload && time >= round->reload && !module_load(round->settings->module))
		round->reload = 0;
}

/* ---- waiting ---------------------------------------------------------------------- */

static void reap(struct round *round)
{
	pid_t pid;
	int i;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		if (pid == round->colld)
			round->colld = 0;
		for (i = 0; i < BOARD_RANKS_MAX; i++)
			if (round->pid[i] == pid) {
				round->pid[i] = 0;
				round->left--;
			}
	}
}

static void kill_all(struct round *round)
{
	int i;

	for (i = 0; i < BOARD_RANKS_MAX; i++) {
		if (round->pid[i])
			kill(round->pid[i], SIGKILL);
		if (round->board->rank[i].pid && !has_ended(round, i))
			kill(round->board->rank[i].pid, SIGKILL);
	}
}

/* Children of this process: it is the reaper of all that the job has started. */
static void kill_orphans(void)
{
	char path[60];
	int pid;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", getpid(), getpid());
	file = fopen(path, "r");
	while (file && fscanf(file, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (file)
		fclose(file);
}

static void wait_for_orphans(struct round *round)
{
	const uint64_t until = now() + ORPHANS_S * second;
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 && now() < until)
		if (!pid)
			usleep(2000);
	round->orphans = pid >= 0;
	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		kill_orphans();
		usleep(10000);
	}
}

static int prepare(struct round *round)
{
	char path[100];

	strcpy(round->folder, "/tmp/coll-chaos-XXXXXX");
	if (!mkdtemp(round->folder))
		return -errno;
	snprintf(path, sizeof(path), "%s/board", round->folder);
	round->board = board_open(path);
	if (!round->board)
		return -errno;
	round->board->ranks = round->ranks;
	round->board->cut = round->kind == KIND_RESET ? CUT_RESET :
			    round->kind == KIND_HALF_OPEN ? CUT_HALF_OPEN : CUT_ORDERLY;
	if (round->kind == KIND_SUSPEND)
		round->board->jump_ns = round->settings->deadline_s * second / SUSPENDS;
	if (round->kind == KIND_FULL)
		return full_mount(round->folder);
	if (round->kind == KIND_MODULE)
		return module_load(round->settings->module);
	return 0;
}

static void count_faults(struct round *round)
{
	int i;

	for (i = 0; i < round->ranks; i++) {
		const struct board_rank *rank = &round->board->rank[i];

		round->cut[i] = rank->cut_from;
		round->injected += rank->cuts + rank->injected;
	}
	if (round->kind == KIND_DISK || round->kind == KIND_NONE || round->kind == KIND_FULL)
		round->injected = 1;
}

int round_run(struct round *round)
{
	uint64_t until = now() + round->settings->limit_s * second, time;
	struct strangers *strangers = NULL;
	int error = prepare(round);
	uint32_t i;

	if (!error && round->kind == KIND_COLLD)
		round_start_colld(round);
	if (!error)
		error = start(round);
	if (!error && (round->kind == KIND_STRANGERS || round->kind == KIND_STORE ||
		       round->kind == KIND_REPLAY))
		strangers = strangers_make(round->seed, round->kind);
	while (!error && round->left) {
		usleep(TICK_US);
		time = now();
		reap(round);
		for (i = 0; i < round->events; i++)
			watch_event(round, &round->event[i], time);
		reload_module(round, time);
		if (strangers)
			round->injected += strangers_poll(strangers, round->board);
		if (time > until) {
			round->hung = true;
			kill_all(round);
			until = UINT64_MAX;
		}
	}
	strangers_end(strangers);
	round_kill_colld(round);
	if (error)
		return error;
	wait_for_orphans(round);
	if (round->kind == KIND_MODULE)
		round->held = !module_is_free() || module_load(round->settings->module);
	count_faults(round);
	return 0;
}

/* ---- the end ------------------------------------------------------------------------ */

static int remove_one(const char *path, const struct stat *what, int type, struct FTW *at)
{
	(void)what;
	(void)type;
	(void)at;
	return remove(path);
}

void round_end(struct round *round)
{
	if (round->board)
		board_close(round->board);
	if (round->kind == KIND_FULL)
		full_unmount(round->folder);
	nftw(round->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
