// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The guard: ends the job's processes if the launcher is killed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/port.h"
#include "job.h"
#include "leftover.h"

void launch_signal_children(const struct job *job, int signal)
{
	int i;

	for (i = 0; i < job->children; i++)
		if (job->shared->group[i])
			kill(-job->shared->group[i], signal);
}

/*
 * Every descendant of a rank has the secret in its environment, also in another group or session.
 */
static void end_marked(const struct job *job)
{
	char mark[sizeof("COLL_SECRET=") + 2 * COLL_SECRET_BYTES];
	int tries = 100;

	snprintf(mark, sizeof(mark), "COLL_SECRET=%s", job->secret);
	while (leftover_kill_marked(mark) && tries--)
		usleep(10000);
}

static void guard_main(const struct job *job, int fd)
{
	ssize_t got;
	char byte;
	int i;

	setpgid(0, 0);
	prctl(PR_SET_NAME, "coll run guard");
	/* An inherited pipe end would keep the reader of that pipe waiting. */
	for (i = 0; i < 3; i++)
		close(i);
	do
		got = read(fd, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1)
		_exit(0);	/* the launcher has ended the job itself */
	launch_signal_children(job, SIGKILL);
	end_marked(job);
	_exit(0);
}

int launch_start_guard(struct job *job)
{
	int fd[2];

	coll_assert(!job->guard && !job->running);	/* its copy of the job is then complete */
	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	job->guard = fork();
	if (!job->guard) {
		close(fd[1]);
		guard_main(job, fd[0]);
	}
	close(fd[0]);
	job->guard_fd = fd[1];
	return job->guard < 0 ? -errno : 0;
}

void launch_end_guard(struct job *job)
{
	if (job->guard <= 0)
		return;
	if (write(job->guard_fd, "", 1) != 1)
		kill(job->guard, SIGKILL);
	close(job->guard_fd);
	while (waitpid(job->guard, NULL, 0) < 0 && errno == EINTR)
		;
}
