// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A rank before its program: input, environment, core. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "job.h"
#include "launch_hosts.h"

/* How many cores this job may use. */
static int cores_count(void)
{
	cpu_set_t may;

	return sched_getaffinity(0, sizeof(may), &may) ? 1 : CPU_COUNT(&may);
}

/*
 * auto binds only a job that needs most cores: two small jobs would both be bound to the first
 * cores.
 */
static bool should_bind(const struct launch *launch)
{
	const int cores = cores_count();

	if (launch->bind == LAUNCH_BIND_AUTO)
		return launch->ranks <= cores && 2 * launch->ranks > cores;
	return launch->bind == LAUNCH_BIND_CORE;
}

/* The rank-th core of those this job may use, modulo their number. */
static void bind_core(int rank)
{
	cpu_set_t may, one;
	int core, skip;

	if (sched_getaffinity(0, sizeof(may), &may) || !CPU_COUNT(&may))
		return;
	skip = rank % CPU_COUNT(&may);
	for (core = 0; !CPU_ISSET(core, &may) || skip--; core++)
		;
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void set_number(const char *name, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	setenv(name, text, 1);
}

static void set_environment(const struct job *job, int rank)
{
	char **more;

	set_number("COLL_RANK", job->launch->first + rank);
	set_number("COLL_RANKS", job->launch->agent ? job->launch->all : job->launch->ranks);
	set_number("COLL_LOCAL_RANK", rank);
	set_number("COLL_LOCAL_CORES", cores_count());
	set_number("COLL_LOCAL_RANKS", job->launch->ranks);
	setenv("COLL_STORE", job->address, 1);
	setenv("COLL_STORE_SERVED", "1", 1);
	setenv("COLL_SECRET", job->secret, 1);
	setenv("COLL_JOB", job->name, 1);
	for (more = job->launch->environment; more && *more; more++)
		putenv(*more);
}

/*
 * Only rank 0 reads the launcher's input, and not if that is a terminal: the rank's process group
 * is not in the foreground, so reading would stop it. An agent keeps its input.
 */
static void set_input(int rank, bool agent)
{
	int null;

	if (!rank && !agent && !isatty(STDIN_FILENO))
		return;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
}

static void exec_rank(const struct job *job, int rank)
{
	set_input(rank, job->launch->agent);
	set_environment(job, rank);
	if (should_bind(job->launch))
		bind_core(rank);
	execvp(job->launch->argv[0], job->launch->argv);
	job->shared->exec_error = errno;
}

void launch_child_main(struct job *job, int child, const int output[2], int orders)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != job->self)
		_exit(LAUNCH_CANNOT_RUN);
	if (output[0] >= 0) {
		dup2(output[0], STDOUT_FILENO);
		dup2(output[1], STDERR_FILENO);
	}
	setrlimit(RLIMIT_NOFILE, &job->old_files);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &job->old_mask, NULL);
	if (orders >= 0) {
		dup2(orders, STDIN_FILENO);
		job->shared->exec_error = hosts_exec(job->launch, child, "run --agent");
	} else {
		exec_rank(job, child);
	}
	_exit(job->shared->exec_error == ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_CANNOT_RUN);
}
