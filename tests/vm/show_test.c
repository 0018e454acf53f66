// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll show, of a job whose runs are in the kernel: it names the rank whose thread there gets no
 * time, and who has its CPU; and the rank that has not called. tests/vm/run -p brings `coll` and
 * tests/multi/hang along.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vm.h"

static const char said[] = "/tmp/show.said", shown[] = "/tmp/show.out";

/* A program whose output goes to that file. */
static pid_t start(const char *output, const char *const *arguments)
{
	const int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	const pid_t child = fork();

	if (!child) {
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		execvp(arguments[0], (char **)arguments);
		_exit(127);
	}
	close(fd);
	return child;
}

static pid_t start_job(const char *kind)
{
	const char *const arguments[] = { "coll", "run", "-q", "-k", "-t", "100", "--bind", "none",
					  "--no-prefix", "-n", "2", "--", "hang", kind, NULL };

	setenv("COLL_PROGRESS", "kernel", 1);
	setenv("COLL_PROGRESS_CPUS", "0-1", 1);
	setenv("COLL_LOG", "warn", 1);
	return start(said, arguments);
}

static void look(pid_t job, char *text, size_t bytes)
{
	char name[32];
	const char *const arguments[] = { "coll", "show", name, NULL };

	snprintf(name, sizeof(name), "run-%d", job);
	waitpid(start(shown, arguments), NULL, 0);
	vm_read(shown, text, bytes);
}

/* Whether a look finds that, while the job lives; how long the ranks had waited is noted. */
static void names(const char *kind, const char *cause, int seconds)
{
	const pid_t job = start_job(kind);
	const uint64_t until = vm_now() + seconds * 1000000000ull * vm_slowness();
	char text[8192] = "";
	int status = 0;

	while (!strstr(text, cause) && vm_now() < until && !waitpid(job, &status, WNOHANG))
		look(job, text, sizeof(text));
	if (!vm_says(text, cause, kind)) {
		vm_note("%s", text);
		vm_read(said, text, sizeof(text));
		vm_note("%s", text);
	} else if (vm_says(text, "first cause: rank 1: ", "of rank 1")) {
		vm_note("%s", strstr(text, "first cause"));
	}
	waitpid(job, &status, 0);
	vm_is(status, 0, "the job ends when that has passed");
}

int main(void)
{
	vm_run_on(0);
	/* Else others have a twentieth of the CPU. */
	vm_is(vm_write("/proc/sys/kernel/sched_rt_runtime_us", "-1"), 0, "real time has no limit");
	names("kernel", "gets no time on CPU 1: hog (pid ", 60);
	names("slow", "first cause: rank 1: asleep outside of the library", 60);
	vm_write("/proc/sys/kernel/sched_rt_runtime_us", "950000");
	return vm_end();
}
