// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A rank writes its page to a file, by itself or at a signal. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "flight.h"
#include "libcoll/base/clock.h"

/* For the signal's handler, which can be given nothing else. */
static struct {
	const struct coll_flight_page *page;	/* set last; NULL: none */
	int signal;
	pid_t pid;
	char path[PATH_MAX];
} dump_on;

void coll_flight_make_plain(char *name)
{
	/* The same on each machine, also where a char has no sign. */
	for (; *name; name++)
		if ((unsigned char)*name <= ' ' || (unsigned char)*name >= 0x7f || *name == '/')
			*name = '_';
}

static int dump_path(char path[PATH_MAX], const struct coll_flight_page *page, const char *folder)
{
	char job[sizeof(page->job)];

	snprintf(job, sizeof(job), "%s", page->job);
	coll_flight_make_plain(job);
	return snprintf(path, PATH_MAX, "%s/coll-%s-%u.flight", folder, job, page->rank) <
	       PATH_MAX ? 0 : -ENAMETOOLONG;
}

static uint64_t dump_clock(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * COLL_SECOND + time.tv_nsec;
}

/* The name that a dump has until it is whole. No snprintf(): it is called in a signal's handler. */
static bool dump_beside(const char *path, char beside[PATH_MAX])
{
	static const char end[] = ".new";
	const size_t length = strlen(path);

	if (length + sizeof(end) > PATH_MAX)
		return false;
	memcpy(beside, path, length);
	memcpy(beside + length, end, sizeof(end));
	return true;
}

int coll_flight_replace(const char *path, const char *beside, int error)
{
	if (!error && rename(beside, path))
		error = -errno;
	if (error)
		unlink(beside);
	return error;
}

/*
 * Safe in a signal's handler. Under its name a dump is whole. A file that somebody put there
 * meanwhile is not written: the folder may be one like /tmp.
 */
static int dump_write(const char *path, const struct coll_flight_page *page)
{
	struct coll_flight_seen seen = {
		.magic = COLL_FLIGHT_MAGIC,
		.version = COLL_FLIGHT_VERSION,
		.bytes = sizeof(seen),
		.time = dump_clock(CLOCK_MONOTONIC),
		.realtime = dump_clock(CLOCK_REALTIME),
		.pid = page->pid,
		.flags = COLL_FLIGHT_BY_RANK,
	};
	const size_t head = offsetof(struct coll_flight_seen, page);
	const struct iovec parts[] = {
		{ &seen, head },
		{ (void *)page, sizeof(*page) },
		{ &seen, sizeof(seen) - head - sizeof(*page) },	/* padding, if any */
	};
	char beside[PATH_MAX];
	ssize_t written;
	int fd, error;

	if (!dump_beside(path, beside))
		return -ENAMETOOLONG;
	unlink(beside);
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	written = writev(fd, parts, 3);
	error = written < 0 ? -errno : written != (ssize_t)sizeof(seen) ? -ENOSPC : 0;
	if (close(fd) && !error)
		error = -errno;
	return coll_flight_replace(path, beside, error);
}

int coll_flight_dump(const struct coll_flight *flight, const char *folder)
{
	char path[PATH_MAX];
	int error = dump_path(path, flight->page, folder);

	return error ? error : dump_write(path, flight->page);
}

static void dump_handler(int signal)
{
	const struct coll_flight_page *page = __atomic_load_n(&dump_on.page, __ATOMIC_ACQUIRE);
	const int error = errno;

	(void)signal;
	/* A forked child has the handler, but no page. */
	if (page && getpid() == dump_on.pid)
		dump_write(dump_on.path, page);
	errno = error;
}

int coll_flight_dump_on(struct coll_flight *flight, int signal, const char *folder)
{
	struct sigaction action = { .sa_handler = dump_handler, .sa_flags = SA_RESTART }, before;
	int error;

	if (sigaction(signal, NULL, &before))
		return -errno;
	if (before.sa_handler != SIG_DFL && before.sa_handler != dump_handler)
		return -EBUSY;
	__atomic_store_n(&dump_on.page, NULL, __ATOMIC_RELEASE);
	error = dump_path(dump_on.path, flight->page, folder);
	if (error)
		return error;
	dump_on.signal = signal;
	dump_on.pid = getpid();
	__atomic_store_n(&dump_on.page, flight->page, __ATOMIC_RELEASE);
	return sigaction(signal, &action, NULL) ? -errno : 0;
}

void coll_flight_dump_off(struct coll_flight *flight)
{
	if (!flight->page || dump_on.page != flight->page)
		return;
	__atomic_store_n(&dump_on.page, NULL, __ATOMIC_RELEASE);
	signal(dump_on.signal, SIG_DFL);
}
