// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* How a job ends: waiting for ranks, ending ranks, and the messages about it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/port.h"
#include "job.h"
#include "libcoll/base/clock.h"

void launch_report(const struct job *job, const char *format, ...)
{
	char line[512];
	va_list arguments;
	int n;

	if (job->launch->quiet)
		return;
	va_start(arguments, format);
	n = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	dprintf(STDERR_FILENO, "coll run: %.*s\n", n, line);
}

/* ---- ending -------------------------------------------------------------- */

/* Before the first signal that may end ranks. */
static void tell_end(struct job *job, int signal)
{
	if (job->told_end || !job->launch->ends ||
	    (signal != SIGINT && signal != SIGTERM && signal != SIGHUP && signal != SIGKILL))
		return;
	job->told_end = true;
	job->launch->ends(job->launch->ends_argument, job->name, false);
}

/*
 * Through the agents of the hosts, if there are any. An agent that cannot read ends with its
 * shell.
 */
void launch_signal_ranks(struct job *job, int signal)
{
	const char byte = signal;
	int i;

	tell_end(job, signal);
	job->kills += signal == SIGKILL;
	if (!job->order_fd || job->kills > 1) {
		launch_signal_children(job, signal);
		return;
	}
	for (i = 0; i < job->children; i++)
		if (job->shared->group[i] && write(job->order_fd[i], &byte, 1) != 1)
			kill(-job->shared->group[i], SIGKILL);
}

/* SIGTERM now, SIGKILL after the grace time. SIGCONT lets stopped ranks handle it. */
void launch_end_ranks(struct job *job)
{
	if (job->kill_at != COLL_FOREVER)
		return;
	launch_signal_ranks(job, SIGTERM);
	launch_signal_ranks(job, SIGCONT);
	job->kill_at = coll_now() + job->launch->grace;
}

void launch_fail(struct job *job, int exit_code)
{
	if (!job->failed)
		job->exit_code = exit_code;
	job->failed = true;
}

/* ---- seeing ranks end ---------------------------------------------------- */

static int child_of(const struct job *job, pid_t pid)
{
	int i;

	for (i = 0; i < job->children; i++)
		if (job->shared->group[i] == pid)
			return i;
	return -1;
}

static int exit_code_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

enum { SHELL_FAILED = 255 };

/* An agent reports its ranks itself. */
static void report_host_end(const struct job *job, int host, int status)
{
	const char *name = job->launch->hosts[host].name;

	if (job->shared->exec_error)
		launch_report(job, "cannot run the remote shell '%s': %s", job->launch->ssh,
			      strerror(job->shared->exec_error));
	else if (WIFSIGNALED(status))
		launch_report(job, "host %s: the remote shell was killed by signal %d (%s)", name,
			      WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == SHELL_FAILED)
		launch_report(job, "host %s: the remote shell '%s' failed, or the connection broke",
			      name, job->launch->ssh);
	else if (WEXITSTATUS(status) == LAUNCH_NOT_FOUND)
		launch_report(job, "host %s: no program, or no %s (see --coll)", name,
			      job->launch->coll);
}

static void report_end(const struct job *job, int child, int status)
{
	const int rank = job->launch->first + child;

	if (job->order_fd)
		report_host_end(job, child, status);
	else if (job->shared->exec_error)
		launch_report(job, "cannot run '%s': %s", job->launch->argv[0],
			      strerror(job->shared->exec_error));
	else if (WIFSIGNALED(status))
		launch_report(job, "rank %d was killed by signal %d (%s)%s", rank, WTERMSIG(status),
			      strsignal(WTERMSIG(status)),
			      WCOREDUMP(status) ? ", core dumped" : "");
	else
		launch_report(job, "rank %d exited with code %d", rank, WEXITSTATUS(status));
}

/* Ranks that the launcher ends itself are not reported. */
static void launch_child_ended(struct job *job, int rank, int status)
{
	bool ending = job->kill_at != COLL_FOREVER;

	if (!exit_code_of(status) || ending)
		return;
	report_end(job, rank, status);
	launch_fail(job, exit_code_of(status));
	if (!job->launch->keep_going || job->shared->exec_error)
		launch_end_ranks(job);
}

struct death {
	int rank, status;
};

/*
 * Kills the rest of the rank's process group, then reaps the rank. In this order: until the rank
 * is reaped its pid cannot be reused, so the signal reaches no other process.
 */
static int launch_reap_child(struct job *job, pid_t pid, int rank)
{
	int status = 0;

	if (rank >= 0) {
		coll_assert(job->running > 0);
		coll_assert(job->shared->group[rank] == pid);
		kill(-pid, SIGKILL);
		job->shared->group[rank] = 0;
		if (job->order_fd)
			close(job->order_fd[rank]);
		job->running--;
	}
	waitpid(pid, &status, 0);
	return status;
}

static pid_t next_ended(void)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) ? 0 : info.si_pid;
}

/*
 * Reaps all children that have ended. Of several, ranks killed by a signal are reported first: the
 * others most likely failed because of them.
 */
void launch_reap(struct job *job)
{
	struct death death[64];
	int count = 0, status, rank, i;
	pid_t pid;

	while (count < 64 && (pid = next_ended())) {
		rank = child_of(job, pid);
		status = launch_reap_child(job, pid, rank);
		if (rank >= 0)
			death[count++] = (struct death){ rank, status };
	}
	for (i = 0; i < count; i++)
		if (WIFSIGNALED(death[i].status))
			launch_child_ended(job, death[i].rank, death[i].status);
	for (i = 0; i < count; i++)
		if (!WIFSIGNALED(death[i].status))
			launch_child_ended(job, death[i].rank, death[i].status);
	if (count == 64)
		launch_reap(job);
}
