// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "sandbox.h"

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#else
#define MACHINE 0
#endif

/* What malloc() and stdio need. All else fails with EPERM; calls of another machine end the process. */
#define ALLOW(number) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ALLOW(SYS_read),
	ALLOW(SYS_write),
	ALLOW(SYS_brk),
	ALLOW(SYS_mmap),
	ALLOW(SYS_munmap),
	ALLOW(SYS_mremap),
	ALLOW(SYS_mprotect),
	ALLOW(SYS_madvise),
	ALLOW(SYS_futex),
	ALLOW(SYS_fstat),
	ALLOW(SYS_lseek),
	ALLOW(SYS_clock_gettime),
	ALLOW(SYS_restart_syscall),
	ALLOW(SYS_rt_sigreturn),
	ALLOW(SYS_exit_group),
	ALLOW(SYS_sigaltstack),		/* of a build with sanitizers */
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
};

int report_sandbox_enter(void)
{
	const struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	if (!MACHINE)
		return -ENOSYS;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return -errno;
	return 0;
}
