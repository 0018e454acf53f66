// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Rank 0's store in a process of its own. It outlives a rank 0 that leaves early, and needs
 * no thread in the application.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"
#include "libcoll/base/clock.h"

/* Gives up the application's descriptors, handlers and terminal. */
static int host_detach(int fd)
{
	sigset_t none;
	int null, i;

	setsid();
	for (i = 1; i < NSIG; i++)
		signal(i, i == SIGPIPE ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);

	fd = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	if (fd < 0)
		return -errno;
	close_range(3, fd - 1, 0);
	close_range(fd + 1, ~0u, 0);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, 0);
		dup2(null, 1);
		close(null);
	}
	return chdir("/") ? -errno : fd;
}

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
 * A rank 0 that said goodbye may end while others still read. If it ended otherwise it has
 * failed, and so has the job.
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
	/* Its goodbye may not have been read yet. */
	if (coll_store_here(store, 0) && coll_now() < watch->rank0.gone_since + COLL_SECOND)
		return false;
	return !coll_store_left(store, 0) || !coll_store_present(store);
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

static void host_main(int fd, const struct coll_boot *boot, const struct coll_rendezvous *file,
		      pid_t parent)
{
	char address[COLL_STORE_ADDRESS_MAX] = "";
	struct watch watch = { .rank0 = { .pid = parent }, .timeout = boot->timeout };
	struct coll_store *store;

	fd = host_detach(fd);
	if (fd < 0)
		return;
	coll_store_address(fd, address, sizeof(address));
	watch.rank0.fd = syscall(SYS_pidfd_open, parent, 0);
	if (!coll_store_open(&store, fd, boot->ranks, boot->job, boot->secret)) {
		watch.store = store;
		serve_job(store, &watch);
		coll_store_close(store);
	}
	if (file)
		coll_rendezvous_remove(file, address);
}

int coll_boot_host(int fd, const struct coll_boot *boot, const struct coll_rendezvous *file)
{
	pid_t self = getpid(), child;

	child = fork();
	if (!child) {
		/* A grandchild belongs to init: the application never waits for it. */
		if (!fork())
			host_main(fd, boot, file, self);
		_exit(0);
	}
	close(fd);
	if (child < 0)
		return -errno;
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}
