// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The launcher. One loop serves the store, forwards output, passes signals on and reaps ranks.
 * With several hosts its children are the remote shells of the hosts' agents (launch_hosts.h).
 *
 * No process is left over. Each rank leads a process group, which is killed with it. A process
 * that left its group becomes a child of the launcher (a subreaper) and is killed at the end. If
 * the launcher itself is killed, the kernel kills the ranks, and the guard process kills their
 * groups and every process that has the job's secret in its environment.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/port.h"
#include "libcoll/base/clock.h"
#include "job.h"
#include "launch.h"
#include "launch_hosts.h"
#include "leftover.h"
#include "output.h"
#include "libcoll/boot/endpoints.h"
#include "libcoll/boot/store.h"

/* How long to wait for end of file on the pipes after all ranks have ended. */
#define DRAIN_NS (2 * COLL_SECOND)

/* Until the ranks are looked at first: they are to join the job meanwhile. */
#define FIRST_LOOK_NS (COLL_SECOND / 5)

enum { FD_SIGNAL, FD_STORE, FD_ORDERS, FD_SINK, FD_SOURCE = FD_SINK + 2 };

/* ---- starting ------------------------------------------------------------ */

/* The read ends become the rank's sources; the write ends are returned. */
static int open_sources(struct job *job, int rank, int output[2])
{
	struct output_source *source = &job->source[2 * rank];
	int i, fd[2];

	for (i = 0; i < 2; i++) {
		if (pipe2(fd, O_CLOEXEC)) {
			if (i)
				close(output[0]);
			return -errno;
		}
		fcntl(fd[0], F_SETFL, O_NONBLOCK);
		source[i].fd = fd[0];
		source[i].rank = job->order_fd ? -1 : job->launch->first + rank;
		source[i].sink = &job->sink[i];
		output[i] = fd[1];
		job->sources++;
	}
	return 0;
}

/*
 * The agent's input, with its order already written. Never blocks: the pipe holds the whole order
 * before the shell starts.
 */
static int open_orders(struct job *job, int host, int *end)
{
	size_t bytes;
	char *order = hosts_order(job->launch, host, job->address, job->secret, job->name, &bytes);
	int fd[2], err = 0;

	if (!order)
		return -E2BIG;
	if (pipe2(fd, O_CLOEXEC)) {
		free(order);
		return -errno;
	}
	fcntl(fd[1], F_SETPIPE_SZ, (int)bytes + 4096);
	fcntl(fd[1], F_SETFL, O_NONBLOCK);
	if (write(fd[1], order, bytes) != (ssize_t)bytes)
		err = -E2BIG;
	free(order);
	job->order_fd[host] = fd[1];
	*end = fd[0];
	return err;
}

static int start_child(struct job *job, int child)
{
	int output[2] = { -1, -1 }, orders = -1, err = 0;
	bool carries = job->launch->prefix || job->order_fd;
	pid_t pid;

	if (carries)
		err = open_sources(job, child, output);
	if (!err && job->order_fd)
		err = open_orders(job, child, &orders);
	if (err)
		return err;
	coll_assert(!job->shared->group[child] && job->running < job->children);
	pid = fork();
	if (!pid)
		launch_child_main(job, child, output, orders);
	err = pid < 0 ? -errno : 0;
	if (carries) {
		close(output[0]);
		close(output[1]);
	}
	if (orders >= 0)
		close(orders);
	if (err)
		return err;
	setpgid(pid, pid);	/* also done in the child: whichever runs first */
	job->shared->group[child] = pid;
	job->running++;
	return 0;
}

static int start_children(struct job *job)
{
	int child, err;

	for (child = 0; child < job->children; child++) {
		err = start_child(job, child);
		if (err)
			return err;
	}
	return 0;
}

/* An agent's order contains the store's address. */
static int use_store(struct job *job)
{
	const struct launch *launch = job->launch;

	if (snprintf(job->address, sizeof(job->address), "%s", launch->store) >=
	    (int)sizeof(job->address) || strlen(launch->secret) != 2 * COLL_SECRET_BYTES)
		return -EPROTO;
	strcpy(job->secret, launch->secret);
	snprintf(job->name, sizeof(job->name), "%s", launch->job);
	if (launch->directory && chdir(launch->directory))
		dprintf(STDERR_FILENO, "coll run: cannot change to directory %s on this host: %s\n",
			launch->directory, strerror(errno));
	return 0;
}

/* The address of the store: on this node only, or on all its interfaces. */
static int find_store_address(struct job *job, int fd)
{
	char address[COLL_STORE_ADDRESS_MAX];
	int err = coll_store_address(fd, address, sizeof(address));

	if (err)
		return err;
	if (!job->launch->hosts) {
		strcpy(job->address, address);
		return 0;
	}
	return coll_node_endpoints(job->address, sizeof(job->address),
				   atoi(strrchr(address, ':') + 1))
		       ? 0
		       : -EADDRNOTAVAIL;
}

static int open_store(struct job *job)
{
	uint8_t secret[COLL_SECRET_BYTES];
	int fd, err, i;

	if (job->launch->agent)
		return use_store(job);
	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return -EIO;
	for (i = 0; i < COLL_SECRET_BYTES; i++)
		sprintf(job->secret + 2 * i, "%02x", secret[i]);
	snprintf(job->name, sizeof(job->name), "run-%d", job->self);
	err = coll_store_listen_anywhere(!job->launch->hosts, &fd);
	if (err)
		return err;
	err = find_store_address(job, fd);
	if (err) {
		close(fd);
		return err;
	}
	return coll_store_open(&job->store, fd, job->launch->ranks, job->name, secret);
}

static int open_signals(struct job *job)
{
	static const int signals[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
	sigset_t mask;
	size_t i;

	sigemptyset(&mask);
	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaddset(&mask, signals[i]);
	if (sigprocmask(SIG_BLOCK, &mask, &job->old_mask))
		return -errno;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);	/* if ignored, children would be reaped by the kernel */
	job->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return job->signal_fd < 0 ? -errno : 0;
}

/* What a job needs: pipes of each child, its own, and if the ranks join, a connection of each. */
static rlim_t files_needed(const struct job *job, bool join)
{
	const struct launch *launch = job->launch;
	const int lowest = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	rlim_t needed = 16;

	if (lowest >= 0) {
		needed += lowest;
		close(lowest);
	}
	if (launch->prefix || launch->hosts)
		needed += 2 * (rlim_t)job->children;
	if (launch->hosts)
		needed += job->children;
	if (launch->looks && !launch->hosts)	/* it keeps the ranks' pages open */
		needed += launch->ranks;
	return join && !launch->agent ? needed + launch->ranks : needed;
}

/* The ranks get the old limit back. */
static int raise_files(struct job *job)
{
	const rlim_t needed = files_needed(job, true);
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &job->old_files))
		return -errno;
	files = job->old_files;
	files.rlim_cur = files.rlim_max;
	if (files.rlim_max < needed) {
		dprintf(STDERR_FILENO, "coll run: %d ranks take %ju file descriptors here, and %ju are "
			"allowed (ulimit -Hn): not all can join a job\n", job->launch->ranks, (uintmax_t)needed,
			(uintmax_t)files.rlim_max);
		if (files.rlim_max < files_needed(job, false))
			return -EMFILE;		/* else programs without the library run */
	}
	return setrlimit(RLIMIT_NOFILE, &files) ? -errno : 0;
}

static int launch_allocate(struct job *job)
{
	int ranks = job->children;

	job->shared_bytes = sizeof(*job->shared) + ranks * sizeof(pid_t);
	job->shared = mmap(NULL, job->shared_bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (job->shared == MAP_FAILED) {
		job->shared = NULL;
		return -ENOMEM;
	}
	job->source = calloc(2 * ranks, sizeof(*job->source));
	job->poll_fd = calloc(FD_SOURCE + 2 * ranks, sizeof(*job->poll_fd));
	if (job->launch->hosts)
		job->order_fd = calloc(ranks, sizeof(*job->order_fd));
	return job->source && job->poll_fd && (job->order_fd || !job->launch->hosts) ? 0 : -ENOMEM;
}

static int open_job(struct job *job)
{
	int err;

	err = launch_allocate(job);
	if (!err)
		err = raise_files(job);
	if (!err)
		err = open_signals(job);
	if (!err)
		err = open_store(job);
	if (!err && prctl(PR_SET_CHILD_SUBREAPER, 1))
		err = -errno;
	return err ? err : launch_start_guard(job);
}

/* ---- the loop ------------------------------------------------------------ */

static void handle_signal(struct job *job, int signal)
{
	if (signal == SIGCHLD) {
		launch_reap(job);
		return;
	}
	if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP)
		job->end_requested = true;
	if (signal == SIGINT && ++job->interrupts > 1) {
		launch_report(job, "interrupted twice: killing all ranks");
		launch_signal_ranks(job, SIGKILL);
		return;
	}
	launch_signal_ranks(job, signal);
}

/* An agent's input: signals for its ranks, until end of file. */
static void read_orders(struct job *job)
{
	unsigned char byte;
	const ssize_t got = read(STDIN_FILENO, &byte, 1);

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (got == 1) {
		job->end_requested |= byte == SIGINT || byte == SIGTERM || byte == SIGHUP;
		if (byte < NSIG)
			launch_signal_ranks(job, byte);
		return;
	}
	job->orders_ended = true;
	job->end_requested = true;
	launch_fail(job, 128 + SIGHUP);
	launch_end_ranks(job);
}

static void handle_signals(struct job *job)
{
	struct signalfd_siginfo info;

	while (read(job->signal_fd, &info, sizeof(info)) == sizeof(info))
		handle_signal(job, info.ssi_signo);
}

static void check_times(struct job *job)
{
	uint64_t now = coll_now();

	if (now >= job->timeout_at) {
		launch_report(job, "the job did not end within %g s", job->launch->timeout / 1e9);
		launch_fail(job, LAUNCH_TIMEOUT);
		job->timeout_at = COLL_FOREVER;
		launch_end_ranks(job);
	}
	if (now >= job->look_at && !job->told_end)
		job->look_at = job->launch->looks(job->launch->looks_argument, job->name);
	if (job->kill_at != COLL_FOREVER && now >= job->kill_at) {
		launch_signal_ranks(job, SIGKILL);
		job->kill_at = now + COLL_SECOND;
	}
}

static int ms_until(uint64_t when)
{
	uint64_t now = coll_now();

	if (when == COLL_FOREVER)
		return -1;
	return when <= now ? 0 : (when - now) / 1000000 + 1;
}

static void launch_watch(struct job *job, int slot, int fd, short events)
{
	job->poll_fd[slot] = (struct pollfd){ .fd = fd, .events = events };
}

/* stdout and stderr may be the same terminal: neither interrupts a line of the other. */
static bool may_write(const struct job *job, int sink)
{
	return job->sink[sink].bytes && !job->sink[!sink].inside_line;
}

/* A reader that has closed it wants no more; else output is lost, and the job has not gone well. */
static void write_sink(struct job *job, int sink)
{
	output_write(&job->sink[sink]);
	if (!job->sink[sink].error || job->sink[sink].error == -EPIPE)
		return;
	dprintf(STDERR_FILENO, "coll run: cannot write standard %s: %s\n", sink ? "error" : "output",
		strerror(-job->sink[sink].error));
	launch_fail(job, 1);
}

static void forward_output(struct job *job)
{
	int i;

	/* Checked again: the first sink may have begun a line just now. */
	for (i = 0; i < 2; i++)
		if (job->poll_fd[FD_SINK + i].revents && may_write(job, i))
			write_sink(job, i);
	for (i = 0; i < job->sources; i++)
		if (job->poll_fd[FD_SOURCE + i].revents)
			output_read(&job->source[i]);
}

/* One iteration of the loop; waits until `until` at most. */
static void launch_poll(struct job *job, uint64_t until)
{
	const struct output_source *source;
	int i;

	launch_watch(job, FD_SIGNAL, job->signal_fd, POLLIN);
	launch_watch(job, FD_STORE, job->store ? coll_store_fd(job->store) : -1, POLLIN);
	launch_watch(job, FD_ORDERS, job->launch->agent && !job->orders_ended ? STDIN_FILENO : -1,
		     POLLIN);
	for (i = 0; i < 2; i++)
		launch_watch(job, FD_SINK + i, may_write(job, i) ? job->sink[i].fd : -1, POLLOUT);
	for (i = 0; i < job->sources; i++) {
		source = &job->source[i];
		launch_watch(job, FD_SOURCE + i, output_wanted(source->sink) ? source->fd : -1,
			     POLLIN);
	}
	if (poll(job->poll_fd, FD_SOURCE + job->sources, ms_until(until)) <= 0)
		return;
	if (job->poll_fd[FD_STORE].revents)
		coll_store_poll(job->store, 0);
	if (job->poll_fd[FD_ORDERS].revents)
		read_orders(job);
	forward_output(job);
	if (job->poll_fd[FD_SIGNAL].revents)
		handle_signals(job);
}

static void run_to_end(struct job *job)
{
	uint64_t until;

	while (job->running) {
		until = job->timeout_at < job->kill_at ? job->timeout_at : job->kill_at;
		if (job->look_at < until && !job->told_end)
			until = job->look_at;
		launch_poll(job, until);
		check_times(job);
	}
}

/* ---- what remains -------------------------------------------------------- */

/* Processes that left their rank's group become children of the launcher when their parents end. */
static void kill_leftovers(struct job *job)
{
	uint64_t until = coll_now() + job->launch->grace;

	while (coll_now() < until && leftover_kill_children(job->guard)) {
		usleep(1000);
		launch_reap(job);
	}
}

static bool sources_open(const struct job *job)
{
	int i;

	for (i = 0; i < job->sources; i++)
		if (job->source[i].fd >= 0)
			return true;
	return false;
}

/* Forwards what the pipes still hold. A slow reader of our output may take its time. */
static void drain_output(struct job *job)
{
	uint64_t until = coll_now() + DRAIN_NS;
	int i;

	while (sources_open(job) &&
	       (coll_now() < until || (!output_wanted(&job->sink[0]) && !job->end_requested)))
		launch_poll(job, coll_now() + COLL_SECOND / 10);
	for (i = 0; i < job->sources; i++)
		output_end(&job->source[i]);
	while ((job->sink[0].bytes || job->sink[1].bytes) &&
	       (coll_now() < until || !job->end_requested))
		launch_poll(job, coll_now() + COLL_SECOND / 10);
	free(job->sink[0].data);
	free(job->sink[1].data);
}

static void close_job(struct job *job)
{
	coll_assert(!job->running);
	launch_end_guard(job);
	coll_store_close(job->store);
	if (job->signal_fd >= 0)
		close(job->signal_fd);
	if (job->shared)
		munmap(job->shared, job->shared_bytes);
	free(job->source);
	free(job->poll_fd);
	free(job->order_fd);
}

int launch_job(const struct launch *options)
{
	struct job job = {
		.launch = options,
		.self = getpid(),
		.children = options->hosts ? options->hosts_count : options->ranks,
		.signal_fd = -1,
		.timeout_at = options->timeout ? coll_now() + options->timeout : COLL_FOREVER,
		.kill_at = COLL_FOREVER,
		.look_at = options->looks && !options->hosts ? coll_now() + FIRST_LOOK_NS :
								 COLL_FOREVER,
		.sink = { { .fd = STDOUT_FILENO }, { .fd = STDERR_FILENO } },
	};
	int err;

	err = open_job(&job);
	if (!err)
		err = start_children(&job);
	if (err) {
		dprintf(STDERR_FILENO, "coll run: cannot start %d ranks: %s\n", options->ranks,
			strerror(-err));
		launch_fail(&job, 1);
		if (job.running)
			launch_end_ranks(&job);
	}
	run_to_end(&job);
	if (job.guard > 0) {
		kill_leftovers(&job);
		drain_output(&job);
	}
	if (options->ends)
		options->ends(options->ends_argument, job.name, true);
	close_job(&job);
	return job.exit_code;
}
