// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll-store: serves the store of one job. Rank 0 starts it (libcoll/boot/host.c) with the
 * listening socket; it outlives a rank 0 that leaves early, and needs neither a thread nor
 * memory of the application.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "libcoll/base/descriptors.h"
#include "libcoll/boot/host.h"

struct process {
	pid_t pid;
	int fd; /* readable when it has ended; -1: the kernel has no pidfd */
	uint64_t gone_since;		/* when its end was noticed; 0: it lives */
};

static bool host_gone(struct process *process)
{
	struct pollfd poll_fd = { .fd = process->fd, .events = POLLIN };

	if (!process->gone_since &&
	    (process->fd < 0 ? kill(process->pid, 0) && errno == ESRCH : poll(&poll_fd, 1, 0) > 0))
		process->gone_since = coll_now();
	return process->gone_since;
}

/* What ends the service. */
struct watch {
	const struct coll_store *store;
	struct process rank0;
	uint64_t timeout;		/* ns */
	uint64_t alone_since;		/* since when one rank, not the last of all, is alone; or 0 */
};

/* A rank that is alone waits in vain. It may be stopped and never leave. */
static bool alone_too_long(struct watch *watch)
{
	const uint64_t now = coll_now();

	if (!coll_store_met(watch->store) || coll_store_present(watch->store) > 1)
		watch->alone_since = 0;
	else if (!watch->alone_since)
		watch->alone_since = now;
	return watch->alone_since && now - watch->alone_since >= watch->timeout;
}

/*
 * A rank 0 that said goodbye may end while others still read, or have begun the next program, in which
 * rank 0 is another process. If it ended otherwise it has failed, and so has the job.
 */
static bool job_has_ended(struct watch *watch)
{
	const struct coll_store *store = watch->store;

	if (coll_store_met(store) && !coll_store_present(store))
		return true;
	if (alone_too_long(watch))
		return true;
	if (!host_gone(&watch->rank0))
		return false;
	/* Its goodbye may not have been read yet. A child may hold its connection. */
	if (coll_store_here_as(store, 0, watch->rank0.pid))
		return coll_now() >= watch->rank0.gone_since + COLL_SECOND;
	return !coll_store_is_well(store, 0) || !coll_store_present(store);
}

static void serve_job(struct coll_store *store, struct watch *watch)
{
	struct pollfd poll_fd[] = {
		{ .fd = coll_store_fd(store), .events = POLLIN },
		{ .fd = watch->rank0.fd, .events = POLLIN },
	};

	while (!job_has_ended(watch)) {
		/* When rank 0 has ended, its descriptor stays readable: only the store counts. */
		if (poll(poll_fd, watch->rank0.gone_since ? 1 : 2, 1000) < 0 && errno != EINTR)
			return;
		if (coll_store_poll(store, 0))
			return;
	}
}

/* Rank 0 waits for the parent: the child belongs to init, and the application has no child. */
static int leave_rank0(void)
{
	const pid_t child = fork();
	int null;

	if (child)
		_exit(child < 0);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, 0);
		dup2(null, 1);
		close(null);
	}
	signal(SIGPIPE, SIG_IGN);
	return chdir("/");
}

static bool read_job(struct coll_host_job *job)
{
	return read(HOST_JOB, job, sizeof(*job)) == sizeof(*job) && job->bytes == sizeof(*job) &&
	       !memcmp(job->magic, STORE_MAGIC, STORE_MAGIC_BYTES) && memchr(job->job, 0, sizeof(job->job)) &&
	       memchr(job->file.path, 0, sizeof(job->file.path));
}

int main(void)
{
	char address[COLL_STORE_ADDRESS_MAX] = "";
	struct coll_host_job job;
	struct watch watch = { 0 };
	struct coll_store *store;

	if (!read_job(&job)) {
		fputs("coll-store: rank 0 of a job starts it, with libcoll of the same version\n",
		      stderr);
		return 2;
	}
	if (leave_rank0())
		return 1;
	coll_descriptors_raise();	/* one for each rank: many have a soft limit of 1024 */
	watch.timeout = job.timeout;
	watch.rank0 = (struct process){ .pid = job.pid, .fd = HOST_RANK0 };
	if (fcntl(HOST_RANK0, F_SETFD, FD_CLOEXEC))
		watch.rank0.fd = -1;
	coll_store_address(HOST_LISTEN, address, sizeof(address));
	if (!coll_store_open(&store, HOST_LISTEN, job.ranks, job.job, job.secret)) {
		watch.store = store;
		serve_job(store, &watch);
		coll_store_close(store);
	}
	if (*job.file.path)
		coll_rendezvous_remove(&job.file, address);
	return 0;
}
