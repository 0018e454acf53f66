// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * without_call CALL COMMAND...: runs it where that system call (getrandom, process_vm_readv,
 * memfd_create, io_uring_setup) fails with ENOSYS, by a seccomp filter, epoll_pwait2 with EPERM;
 * or, of two calls, alone those for Unix sockets: unix_socket, and unix_connect to an address of
 * the library's.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANY = -1, LOCAL_ADDRESS = offsetof(struct sockaddr_un, sun_path) + sizeof("coll-") + 32 };

static const struct forbidden {
	const char *name;
	long number;
	int argument, value;		/* only where this argument is that; ANY: always */
	int error;
} calls[] = {
	{ "getrandom", SYS_getrandom, ANY, 0, ENOSYS },
	{ "process_vm_readv", SYS_process_vm_readv, ANY, 0, ENOSYS },
	{ "memfd_create", SYS_memfd_create, ANY, 0, ENOSYS },
	{ "io_uring_setup", SYS_io_uring_setup, ANY, 0, ENOSYS },
	{ "epoll_pwait2", SYS_epoll_pwait2, ANY, 0, EPERM },	/* as older filters answer to newer calls */
	{ "unix_socket", SYS_socket, 0, AF_UNIX, ENOSYS },
	{ "unix_connect", SYS_connect, 2, LOCAL_ADDRESS, ENOSYS },
};

static const struct forbidden *call_named(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (!strcmp(calls[i].name, name))
			return &calls[i];
	return NULL;
}

static int forbid(const struct forbidden *call)
{
	const int argument = call->argument == ANY ? 0 : call->argument;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call->number, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[argument])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call->value, 0, call->argument == ANY ? 0 : 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | call->error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = 6, .filter = filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	const struct forbidden *call = argc > 2 ? call_named(argv[1]) : NULL;

	if (!call || forbid(call)) {
		fprintf(stderr, "usage: without_call CALL COMMAND...\n");
		return 77;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 1;
}
