// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Rank 0 starts coll-store, which serves the store. It is a program of its own: a fork of the
 * application would keep the application's memory, and must not run its code if it has threads.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"
#include "libcoll/base/clock.h"
#include "libcoll/base/stream.h"

enum { ABOVE = 10 };	/* descriptors from here on are none of those that coll-store gets */

/* ---- where the program is ---------------------------------------------------- */

#define PROGRAM "/libexec/coll/coll-store"

/* The file of libcoll.so, or of the program that libcoll is linked into. */
static bool find_library(char path[PATH_MAX])
{
	Dl_info info;
	ssize_t bytes;

	if (dladdr((void *)coll_boot_host, &info) && strchr(info.dli_fname, '/') &&
	    realpath(info.dli_fname, path))
		return true;
	bytes = readlink("/proc/self/exe", path, PATH_MAX - 1);
	path[bytes > 0 ? bytes : 0] = '\0';
	return bytes > 0;
}

/* Only root, or the user whose library it is, can have put something there, or changed it. */
static bool is_trusted(const char *path, uid_t owner)
{
	struct stat st;

	return !stat(*path ? path : "/", &st) && (!st.st_uid || st.st_uid == owner) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Below a trusted folder, whose name has so many characters: each folder, and the file. */
static bool is_trusted_program(char *program, size_t folder, uid_t owner)
{
	char *slash = program + folder;
	bool trusted = is_trusted(program, owner);

	while (trusted && (slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		trusted = is_trusted(program, owner);
		*slash = '/';
	}
	return trusted;
}

/*
 * From the library's folder upwards: PREFIX/lib/TRIPLET/libcoll.so has
 * PREFIX/libexec/coll/coll-store. Ends at a folder or program that others can change, as /tmp.
 */
static bool find_near_library(char program[PATH_MAX])
{
	char folder[PATH_MAX], *slash;
	struct stat library;

	if (!find_library(folder) || stat(folder, &library))
		return false;
	while ((slash = strrchr(folder, '/'))) {
		*slash = '\0';
		if (!is_trusted(folder, library.st_uid))
			return false;
		if (snprintf(program, PATH_MAX, "%s" PROGRAM, folder) < PATH_MAX &&
		    !access(program, X_OK))
			return is_trusted_program(program, strlen(folder), library.st_uid);
	}
	return false;
}

/* As set, or near the library, or where installations are. */
static bool find_program(char program[PATH_MAX])
{
	static const char *const places[] = { "/usr/local" PROGRAM, "/usr" PROGRAM };
	const char *chosen = secure_getenv("COLL_STORE_PROGRAM");
	size_t i;

	if (chosen && *chosen)
		return snprintf(program, PATH_MAX, "%s", chosen) < PATH_MAX;
	if (find_near_library(program))
		return true;
	for (i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (!access(strcpy(program, places[i]), X_OK))
			return true;
	return false;
}

/* ---- what it gets ------------------------------------------------------------ */

/* The environment without libraries that are meant for the application. */
static char **host_environment(void)
{
	static const char *const left_out[] = { "LD_PRELOAD=", "LD_AUDIT=" };
	char **from, **to, **all;
	size_t i, count = 0;

	for (from = environ; from && *from; from++)
		count++;
	to = all = calloc(count + 1, sizeof(*all));
	for (from = environ; all && from && *from; from++) {
		for (i = 0; i < 2 && strncmp(*from, left_out[i], strlen(left_out[i])); i++)
			;
		if (i == 2)
			*to++ = *from;
	}
	return all;
}

/* Closes *fd; -1 on failure. */
static int move_up(int *fd)
{
	const int high = fcntl(*fd, F_DUPFD_CLOEXEC, ABOVE), error = errno;

	close(*fd);
	*fd = high;
	/* -EINVAL: so many descriptors are not allowed. */
	return high >= 0 ? 0 : error == EINVAL ? -EMFILE : -error;
}

/* A pipe with the job in it; returns its reading end. */
static int host_job_pipe(const struct coll_boot *boot, const struct coll_rendezvous *file)
{
	struct coll_host_job job = {
		.magic = STORE_MAGIC,
		.bytes = sizeof(job),
		.ranks = boot->ranks,
		.pid = getpid(),
		.timeout = boot->timeout,
	};
	int fds[2], error;

	memcpy(job.job, boot->job, sizeof(job.job));
	memcpy(job.secret, boot->secret, sizeof(job.secret));
	if (file)
		job.file = *file;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	error = move_up(&fds[0]);
	/* Less than a page: it fits. */
	if (!error && write(fds[1], &job, sizeof(job)) != sizeof(job))
		error = -EIO;
	close(fds[1]);
	explicit_bzero(job.secret, sizeof(job.secret));
	if (!error)
		return fds[0];
	if (fds[0] >= 0)
		close(fds[0]);
	return error;
}

/* ---- start ------------------------------------------------------------------- */

/* No signal handler, mask, terminal or descriptor of the application. */
static int host_spawn(pid_t *child, char *program, int job, int listen, int rank0)
{
	char *const arguments[] = { program, NULL }, **environment;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	int error;

	environment = host_environment();
	if (!environment)
		return -ENOMEM;
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawn_file_actions_init(&actions);
	error = posix_spawn_file_actions_adddup2(&actions, job, HOST_JOB);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, listen, HOST_LISTEN);
	if (!error && rank0 >= 0)
		error = posix_spawn_file_actions_adddup2(&actions, rank0, HOST_RANK0);
	if (!error)
		error = posix_spawn_file_actions_addclosefrom_np(
			&actions, rank0 >= 0 ? HOST_RANK0 + 1 : HOST_LISTEN + 1);
	if (!error)
		error = posix_spawn(child, program, &actions, &attributes, arguments, environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	free(environment);
	return -error;
}

/* Whether it has ended by then. Where the kernel has no pidfd the caller waits for it. */
static bool host_ends(pid_t child, uint64_t deadline)
{
	const int fd = syscall(SYS_pidfd_open, child, 0);
	bool ends;

	if (fd < 0)
		return true;
	ends = coll_stream_wait(fd, POLLIN, deadline) != -ETIMEDOUT;
	close(fd);
	return ends;
}

/*
 * It has left us when it has what it needs. Another program may stay, and is killed with its
 * children: it has a session of its own.
 */
static int host_wait(pid_t child, uint64_t deadline)
{
	const bool ends = host_ends(child, deadline);
	int status;

	if (!ends)
		kill(-child, SIGKILL);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return ends ? 0 : -ETIMEDOUT;	/* the application ignores its children */
	if (!ends)
		return -ETIMEDOUT;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ENOEXEC;
}

int coll_boot_host(int fd, const struct coll_boot *boot, const struct coll_rendezvous *file,
		   const struct coll_boot_reason *why)
{
	int rank0, job, error;
	char program[PATH_MAX];
	pid_t child;

	if (!find_program(program)) {
		close(fd);
		return coll_boot_fail(why, -ENOENT,
				      "coll-store, which serves the job's store, is not installed: "
				      "PREFIX" PROGRAM " for PREFIX/lib/libcoll.so, or "
				      "COLL_STORE_PROGRAM, is its path; only its owner may be able to write "
				      "to it and its folders; coll run needs none");
	}
	error = move_up(&fd);
	if (error)
		return coll_boot_fail(why, error, "cannot start %s, which serves the job's store: %s", program,
				      strerror(-error));
	job = host_job_pipe(boot, file);
	rank0 = syscall(SYS_pidfd_open, getpid(), 0);
	if (rank0 >= 0)
		move_up(&rank0);	/* without it coll-store asks for the pid */
	error = job < 0 ? job : host_spawn(&child, program, job, fd, rank0);
	if (!error)
		error = host_wait(child, coll_now() + boot->timeout);
	if (rank0 >= 0)
		close(rank0);
	if (job >= 0)
		close(job);
	close(fd);
	return error ? coll_boot_fail(why, error, "cannot start %s, which serves the job's store: %s", program,
				      error == -ETIMEDOUT ? "it has not left its parent in time; valid: the "
							    "coll-store of this version" : strerror(-error)) : 0;
}
