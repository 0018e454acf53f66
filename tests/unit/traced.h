/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A child that does one instruction at a time, and may be killed after each. */
#ifndef TESTS_UNIT_TRACED_H
#define TESTS_UNIT_TRACED_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { TRACED_NOT_ALLOWED = 77 };

/* The child does this step by step, then ends. */
static inline void traced_do(void (*work)(void))
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(TRACED_NOT_ALLOWED);
	raise(SIGSTOP);
	work();
	raise(SIGSTOP);
	_exit(0);
}

/* It is before its first step. The test is skipped where nobody may be traced. */
static inline void traced_begins(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == TRACED_NOT_ALLOWED)
		skip();			/* by seccomp or Yama */
	assert_true(WIFSTOPPED(status));
	/* A check that fails leaves nobody. */
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_EXITKILL), 0);
}

/* False: it has done all. */
static inline bool traced_step(pid_t child)
{
	int status;

	assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status));
	return WSTOPSIG(status) == SIGTRAP;
}

static inline void traced_kill(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* A copy by one instruction is a step a byte: by registers it is one for each 32. */
static inline void traced_copies_by_registers(char **argv)
{
	if (getenv("GLIBC_TUNABLES"))
		return;
	setenv("GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=1073741824:"
				 "glibc.cpu.x86_rep_stosb_threshold=1073741824", 1);
	execv("/proc/self/exe", argv);
}

#endif
