// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * fault.so, linked before the C library: the n-th allocation fails, or the n-th call that makes
 * a descriptor; and clocks jump. Memory comes from glibc's own functions, so that nothing here
 * allocates. fault.h says how to use it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <liburing.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "fault.h"

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

enum { FRAMES = 12 };

static struct {
	_Atomic uint64_t calls[FAULT_KINDS], first, last, failed;
	_Atomic int kind;
	int error;
	_Atomic int64_t blocks;
	const char *name;
	void *frame[FRAMES];
	int frames;
	_Atomic int64_t realtime_ns, monotonic_ns;
	void (*_Atomic watch_sends)(int fd, const void *data, size_t bytes);
} fault;

/* While a thread looks at itself nothing counts. */
static __thread bool busy __attribute__((tls_model("initial-exec")));

static bool fails_now(enum fault_kind kind, const char *name)
{
	const uint64_t n = atomic_fetch_add(&fault.calls[kind], 1) + 1;

	if ((int)kind != atomic_load(&fault.kind) || n < fault.first || n > fault.last)
		return false;
	if (!atomic_fetch_add(&fault.failed, 1)) {
		busy = true;
		fault.name = name;
		fault.frames = backtrace(fault.frame, FRAMES);
		busy = false;
	}
	return true;
}

static bool fails(enum fault_kind kind, const char *name, int error)
{
	if (busy || !fails_now(kind, name))
		return false;
	errno = fault.error ? fault.error : error;
	return true;
}

/* ---- control ------------------------------------------------------------- */

EXPORT void fault_arm(enum fault_kind kind, uint64_t n, uint64_t more, int error)
{
	void *frame[2];
	int i;

	backtrace(frame, 2);		/* its first call loads a library */
	fault.kind = -1;
	fault.error = error;
	fault.failed = 0;
	fault.frames = 0;
	fault.first = n;
	fault.last = n ? n + more : 0;
	for (i = 0; i < FAULT_KINDS; i++)
		fault.calls[i] = 0;
	fault.kind = n ? (int)kind : -1;
}

EXPORT uint64_t fault_disarm(void)
{
	fault.kind = -1;
	return fault.failed;
}

EXPORT uint64_t fault_calls(enum fault_kind kind)
{
	return fault.calls[kind];
}

EXPORT int64_t fault_blocks(void)
{
	return fault.blocks;
}

EXPORT void fault_where(char *text, size_t bytes)
{
	size_t length = snprintf(text, bytes, "%s, from", fault.frames ? fault.name : "none");
	Dl_info info;
	int i;

	for (i = 2; i < fault.frames && length < bytes; i++)
		if (dladdr(fault.frame[i], &info))
			length += snprintf(text + length, bytes - length, " %s+%#lx",
					   strrchr(info.dli_fname, '/') ?
						   strrchr(info.dli_fname, '/') + 1 : "?",
					   (unsigned long)((char *)fault.frame[i] -
							   (char *)info.dli_fbase));
}

EXPORT void fault_clocks(int64_t realtime_ns, int64_t monotonic_ns)
{
	fault.realtime_ns = realtime_ns;
	fault.monotonic_ns += monotonic_ns;
}

/* ---- memory ---------------------------------------------------------------- */

static void *counted(void *block)
{
	fault.blocks += block != NULL;
	return block;
}

EXPORT void *malloc(size_t bytes)
{
	return fails(FAULT_MEMORY, "malloc", ENOMEM) ? NULL : counted(__libc_malloc(bytes));
}

EXPORT void *calloc(size_t count, size_t bytes)
{
	return fails(FAULT_MEMORY, "calloc", ENOMEM) ? NULL :
							counted(__libc_calloc(count, bytes));
}

EXPORT void *realloc(void *block, size_t bytes)
{
	void *other;

	if (fails(FAULT_MEMORY, "realloc", ENOMEM))
		return NULL;
	other = __libc_realloc(block, bytes);
	if (!block)
		return counted(other);
	fault.blocks -= !bytes && !other;
	return other;
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
	return fails(FAULT_MEMORY, "memalign", ENOMEM) ?
		       NULL : counted(__libc_memalign(alignment, bytes));
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
	return memalign(alignment, bytes);
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes)
{
	void *made = memalign(alignment, bytes);

	if (!made)
		return ENOMEM;
	*block = made;
	return 0;
}

EXPORT void free(void *block)
{
	fault.blocks -= block != NULL;
	__libc_free(block);
}

/* ---- descriptors, mappings, threads, processes ----------------------------- */

/* The C library's function of this name; dlsym() may allocate, which does not count. */
static void *next_of(const char *name)
{
	const bool was = busy;
	void *symbol;

	busy = true;
	symbol = dlsym(RTLD_NEXT, name);
	busy = was;
	if (!symbol)
		abort();
	return symbol;
}

/* A function of that type and these arguments; fails with `problem` as its value. */
#define INTERPOSE(type, name, parameters, arguments, problem, code)                  \
	EXPORT type name parameters                                                  \
	{                                                                            \
		static type(*_Atomic real) parameters;                               \
									             \
		if (fails(FAULT_DESCRIPTOR, #name, code))                            \
			return problem;                                              \
		if (!real)                                                           \
			real = (type(*) parameters)next_of(#name);                   \
		return real arguments;                                               \
	}

INTERPOSE(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1, EMFILE)
INTERPOSE(int, socketpair, (int domain, int type, int protocol, int fd[2]),
	  (domain, type, protocol, fd), -1, EMFILE)
INTERPOSE(int, accept4, (int fd, struct sockaddr *from, socklen_t *bytes, int flags),
	  (fd, from, bytes, flags), -1, EMFILE)
INTERPOSE(int, pipe2, (int fd[2], int flags), (fd, flags), -1, EMFILE)
INTERPOSE(int, eventfd, (unsigned int value, int flags), (value, flags), -1, EMFILE)
INTERPOSE(int, timerfd_create, (clockid_t clock, int flags), (clock, flags), -1, EMFILE)
INTERPOSE(int, memfd_create, (const char *name, unsigned int flags), (name, flags), -1, EMFILE)
INTERPOSE(int, epoll_create1, (int flags), (flags), -1, EMFILE)
INTERPOSE(int, dup, (int fd), (fd), -1, EMFILE)
INTERPOSE(int, mkstemp, (char *name), (name), -1, ENOSPC)
INTERPOSE(int, mkdir, (const char *name, mode_t mode), (name, mode), -1, ENOSPC)
INTERPOSE(int, listen, (int fd, int backlog), (fd, backlog), -1, EADDRINUSE)
INTERPOSE(FILE *, fopen, (const char *name, const char *mode), (name, mode), NULL, EMFILE)
INTERPOSE(FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL, ENOMEM)
INTERPOSE(void *, mmap, (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),
	  (at, bytes, protection, flags, fd, offset), MAP_FAILED, ENOMEM)
INTERPOSE(int, io_uring_queue_init_params,
	  (unsigned int entries, struct io_uring *ring, struct io_uring_params *parameters),
	  (entries, ring, parameters), -errno, ENOMEM)
INTERPOSE(pid_t, fork, (void), (), -1, EAGAIN)
INTERPOSE(int, pthread_create,
	  (pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *data),
	  (thread, attributes, start, data), errno, EAGAIN)
INTERPOSE(int, posix_spawn,
	  (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
	   const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment),
	  (pid, path, actions, attributes, arguments, environment), errno, EAGAIN)

/* Only to add a descriptor needs memory. */
EXPORT int epoll_ctl(int fd, int op, int other, struct epoll_event *event)
{
	static int (*_Atomic real)(int fd, int op, int other, struct epoll_event *event);

	if (op == EPOLL_CTL_ADD && fails(FAULT_DESCRIPTOR, "epoll_ctl", ENOMEM))
		return -1;
	if (!real)
		real = (int (*)(int, int, int, struct epoll_event *))next_of("epoll_ctl");
	return real(fd, op, other, event);
}

/* Those with a mode only sometimes. */
static mode_t mode_of(int flags, va_list *arguments)
{
	return flags & (O_CREAT | __O_TMPFILE) ? va_arg(*arguments, mode_t) : 0;
}

EXPORT int open(const char *name, int flags, ...)
{
	mode_t mode;
	va_list arguments;

	va_start(arguments, flags);
	mode = mode_of(flags, &arguments);
	va_end(arguments);
	if (fails(FAULT_DESCRIPTOR, "open", flags & O_CREAT ? ENOSPC : EMFILE))
		return -1;
	return syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

/* What has no function of its own, as pidfd_open. */
EXPORT long syscall(long number, ...)
{
	static long (*_Atomic real)(long number, ...);
	long a[6];
	va_list arguments;
	int i;

	va_start(arguments, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	if ((number == SYS_pidfd_open || number == SYS_io_uring_setup) &&
	    fails(FAULT_DESCRIPTOR, "syscall", EMFILE))
		return -1;
	if (!real)
		real = (long (*)(long, ...))next_of("syscall");
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- what is sent ------------------------------------------------------------ */

EXPORT void fault_watch_sends(void (*watch)(int fd, const void *data, size_t bytes))
{
	fault.watch_sends = watch;
}

EXPORT ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
	if (fault.watch_sends)
		fault.watch_sends(fd, data, bytes);
	return syscall(SYS_sendto, fd, data, bytes, flags, NULL, 0);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (fault.watch_sends && message->msg_iovlen)
		fault.watch_sends(fd, message->msg_iov[0].iov_base, message->msg_iov[0].iov_len);
	return syscall(SYS_sendmsg, fd, message, flags);
}

/* ---- clocks ------------------------------------------------------------------ */

EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int (*_Atomic real)(clockid_t clock, struct timespec *time);
	int64_t ns;
	int error;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))next_of("clock_gettime");
	error = real(clock, time);
	ns = clock == CLOCK_REALTIME  ? fault.realtime_ns :
	     clock == CLOCK_MONOTONIC ? fault.monotonic_ns : 0;
	if (error || !ns)
		return error;
	ns += time->tv_sec * 1000000000ll + time->tv_nsec;
	time->tv_sec = ns / 1000000000;
	time->tv_nsec = ns % 1000000000;
	return 0;
}
