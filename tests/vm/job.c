// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"
#include "vm.h"

enum { ARGUMENTS_MAX = 32 };

static const char output[] = "/tmp/job.out";
static char said[1 << 16];

/* As that user, whose files nobody else reads. */
static void start(const struct job *job)
{
	const char *arguments[ARGUMENTS_MAX] = { "coll", "run", "-q", "-t", job->seconds ?: "100", "--no-prefix",
						 "-n", job->ranks, "--" };
	int count = 0, i, fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char procs[256];

	while (arguments[count])
		count++;
	for (i = 0; i < 16 && job->program[i]; i++)
		arguments[count++] = job->program[i];
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", job->cgroup);
	if (fd < 0 || (job->cgroup && vm_write(procs, "0")))
		_exit(126);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	setenv("COLL_MEMORY", job->memory, 1);
	setenv("COLL_EXPLAIN", "1", 1);
	if (job->user && (setgid(job->user) || setuid(job->user)))
		_exit(125);
	execvp(arguments[0], (char **)arguments);
	_exit(127);
}

int job_run(const struct job *job)
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child)
		start(job);
	waitpid(child, &status, 0);
	vm_read(output, said, sizeof(said));
	return status;
}

const char *job_said(const char *text)
{
	return strstr(said, text);
}

void job_show(void)
{
	char *line, *save;

	for (line = strtok_r(said, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		vm_note("%s", line);
}
