// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll show, of a job whose runs are in the kernel: it names the rank whose thread there gets no
 * time, and who has its CPU; and the rank that has not called. tests/vm/run -p brings `coll` and
 * tests/multi/hang along.
 */
#include <fcntl.h>
#include <signal.h>
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
	const char *const arguments[] = { "coll", "run", "-q", "-k", "-t", "300", "--bind", "none",
					  "--no-prefix", "-n", "2", "--", "hang", kind, NULL };

	setenv("COLL_PROGRESS", "kernel", 1);
	setenv("COLL_PROGRESS_CPUS", "0-1", 1);
	setenv("COLL_LOG", "warn", 1);
	setenv("COLL_DEADLINE", "280s", 1);
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

/*
 * Whether a look finds that, of rank 1. A look may take seconds: this machine is slow. Returns what
 * it has said.
 */
static const char *names(pid_t job, const char *kind, const char *cause)
{
	const uint64_t until = vm_now() + 100 * 1000000000ull * vm_slowness();
	static char text[8192];
	const char *first;

	do
		look(job, text, sizeof(text));
	while (!strstr(text, cause) && vm_now() < until && !waitpid(job, NULL, WNOHANG));
	vm_says(text, cause, kind);
	vm_says(text, "first cause: rank 1: ", "of rank 1");
	first = strstr(text, "first cause");
	vm_note("%s", first ? first : text);
	return text;
}

/* The task that it names is in the way indeed: without it the job goes on. */
static void a_thread_without_time(void)
{
	static const char task[] = "gets no time on CPU 1: hog (pid ";
	const pid_t job = start_job("kernel");
	const char *named = strstr(names(job, "a kernel thread that gets no time", task), task);
	int status = 0;

	if (named)
		kill(atoi(named + strlen(task)), SIGKILL);
	else
		kill(job, SIGTERM);
	waitpid(job, &status, 0);
	vm_is(status, 0, "the job goes on when that task has ended");
}

static void a_rank_that_has_not_called(void)
{
	const pid_t job = start_job("never");

	names(job, "a rank that has not called", "rank 1: asleep outside of the library");
	kill(job, SIGTERM);
	waitpid(job, NULL, 0);
}

int main(void)
{
	vm_run_on(0);
	/* Else others have a twentieth of the CPU, and the kernel complains of who has it long. */
	vm_is(vm_write("/proc/sys/kernel/sched_rt_runtime_us", "-1"), 0, "real time has no limit");
	vm_write("/sys/module/rcupdate/parameters/rcu_cpu_stall_suppress", "1");
	vm_write("/proc/sys/kernel/watchdog", "0");
	a_thread_without_time();
	a_rank_that_has_not_called();
	vm_write("/proc/sys/kernel/watchdog", "1");
	vm_write("/sys/module/rcupdate/parameters/rcu_cpu_stall_suppress", "0");
	vm_write("/proc/sys/kernel/sched_rt_runtime_us", "950000");
	return vm_end();
}
