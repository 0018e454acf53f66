// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "daemon/common/clock.h"

enum { NICE = 10, FD = 3 };

/*
 * No file of its parent may be open in it: the keepers wait for the end of pipes that this one has, and a
 * successor for the lock. Nor is colld's log what something that a user has led astray can write to. The first
 * three are nowhere, so that no other file gets their numbers.
 */
static bool child_close_others(void)
{
	const int null = open("/dev/null", O_RDWR);
	const bool closed = null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
			    dup2(null, STDERR_FILENO) >= 0;

	closefrom(FD + 1);
	return closed;
}

/* What it reads of users is in no core dump. */
static int child_settle(int fd, pid_t parent)
{
	const struct rlimit none = { 0, 0 },
			    time = { REPORT_CHILD_NS / 1000000000, REPORT_CHILD_NS / 1000000000 },
			    memory __attribute__((unused)) = { 1ull << 30, 1ull << 30 };
	const struct sched_param usual = { .sched_priority = 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || (fd != FD && dup2(fd, FD) < 0) || !child_close_others())
		_exit(1);
	prctl(PR_SET_NAME, "colld-report");
	sched_setscheduler(0, SCHED_OTHER, &usual);
	setpriority(PRIO_PROCESS, 0, NICE);
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_CPU, &time);
#ifndef __SANITIZE_ADDRESS__
	setrlimit(RLIMIT_AS, &memory);
#endif
	return FD;
}

int report_child_start(struct report_child *child, int fd, void (*run)(int fd, const void *data),
		       const void *data)
{
	const pid_t parent = getpid();
	int error;

	child->until = colld_now() + REPORT_CHILD_NS;
	child->pid = fork();
	if (!child->pid) {
		run(child_settle(fd, parent), data);
		_exit(0);
	}
	if (child->pid < 0) {
		child->pid = 0;
		return -errno;
	}
	child->ended = pidfd_open(child->pid, 0);
	if (child->ended >= 0)
		return 0;
	error = -errno;
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	child->pid = 0;
	return error;
}

bool report_child_ended(struct report_child *child, u64 *cost)
{
	struct rusage used = { .ru_utime.tv_sec = 0 };
	const pid_t got = child->pid ? wait4(child->pid, NULL, WNOHANG, &used) : -1;

	if (!got) {
		if (colld_now() >= child->until)
			kill(child->pid, SIGKILL);
		return false;
	}
	*cost = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000ull +
		(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000ull;
	close(child->ended);
	child->pid = 0;
	return true;
}

void report_child_kill(struct report_child *child)
{
	if (!child->pid)
		return;
	kill(child->pid, SIGKILL);
	close(child->ended);
	child->pid = 0;
}
