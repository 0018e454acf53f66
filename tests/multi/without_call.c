// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * without_call CALL COMMAND...: runs it where that system call (getrandom, process_vm_readv,
 * memfd_create, io_uring_setup) fails with ENOSYS, by a seccomp filter.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static long number_of(const char *call)
{
	if (!strcmp(call, "getrandom"))
		return SYS_getrandom;
	if (!strcmp(call, "process_vm_readv"))
		return SYS_process_vm_readv;
	if (!strcmp(call, "memfd_create"))
		return SYS_memfd_create;
	if (!strcmp(call, "io_uring_setup"))
		return SYS_io_uring_setup;
	return -1;
}

int main(int argc, char **argv)
{
	const long call = argc > 2 ? number_of(argv[1]) : -1;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = 4, .filter = filter };

	if (call < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		fprintf(stderr, "usage: without_call CALL COMMAND...\n");
		return 77;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 1;
}
