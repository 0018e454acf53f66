// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What the library needs to move bytes: io_uring, limits, memory between processes. */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcoll/base/descriptors.h"
#include "facts.h"
#include "files.h"

enum {
	OP_SEND_ZC = 47, OP_FUTEX_WAIT = 51,	/* liburing's headers may be older than the kernel */
	MEMORY_BYTES = 1 << 20,
};

static long long limit_of(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return -1;
	return limit.rlim_cur == RLIM_INFINITY ? DOCTOR_NO_LIMIT : (long long)limit.rlim_cur;
}

static long long hard_limit_of(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return -1;
	return limit.rlim_max == RLIM_INFINITY ? DOCTOR_NO_LIMIT : (long long)limit.rlim_max;
}

/* Whether a request can be ended at once: of one that nobody has made the kernel says so. */
static bool ring_cancels(struct io_uring *ring)
{
	struct io_uring_sync_cancel_reg nobodys = { .fd = -1, .timeout = { -1, -1 } };
	const int error = io_uring_register_sync_cancel(ring, &nobodys);

	return !error || error == -ENOENT;
}

/* The rings that the engine tries (libcoll/engine/uring.c), the best first. */
static void read_ring(struct doctor_transport_facts *facts)
{
	static const unsigned int flags[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, IORING_SETUP_COOP_TASKRUN, 0,
	};
	struct io_uring_probe *ops;
	struct io_uring ring;
	size_t i;
	int error = -EINVAL;

	for (i = 0; i < sizeof(flags) / sizeof(*flags) && error == -EINVAL; i++)
		error = io_uring_queue_init(8, &ring, flags[i]);
	facts->ring_error = -error;
	if (error)
		return;
	facts->ring_defers = ring.flags & IORING_SETUP_DEFER_TASKRUN;
	facts->ring_suits = ring.features & IORING_FEAT_FAST_POLL &&
			    ring.features & IORING_FEAT_EXT_ARG && ring_cancels(&ring);
	ops = io_uring_get_probe_ring(&ring);
	if (ops) {
		facts->ring_send_zc = io_uring_opcode_supported(ops, OP_SEND_ZC);
		facts->ring_futex = io_uring_opcode_supported(ops, OP_FUTEX_WAIT);
		io_uring_free_probe(ops);
	}
	io_uring_queue_exit(&ring);
}

/* A child reads its parent, as a rank reads another: neither is the other's descendant. */
static int try_copy(void)
{
	static const char word[8] = "doctor";
	const pid_t parent = getpid(), child = fork();
	char copy[sizeof(word)];
	struct iovec local = { copy, sizeof(copy) }, remote = { (void *)word, sizeof(word) };
	int status;

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(process_vm_readv(parent, &local, 1, &remote, 1, 0) == sizeof(word) ? 0 :
		      errno);
	}
	if (child < 0)
		return errno;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : ENOSYS;
}

static int map_memory(int fd)
{
	void *map;

	if (fallocate(fd, 0, 0, MEMORY_BYTES) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL))
		return errno;
	map = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (map == MAP_FAILED)
		return errno;
	munmap(map, MEMORY_BYTES);
	return 0;
}

/* The memory that two ranks of a node share. */
static int try_memory(void)
{
	/* A limit on files would end this process otherwise. */
	void (*const before)(int) = signal(SIGXFSZ, SIG_IGN);
	const int fd = coll_memory_file("coll doctor");
	const int error = fd < 0 ? errno : map_memory(fd);

	if (fd >= 0)
		close(fd);
	signal(SIGXFSZ, before);
	return error;
}

/* Processes and threads that the cgroup and its parents still allow. */
static void read_tasks(struct doctor_transport_facts *facts, const char *root)
{
	long long least = DOCTOR_NO_LIMIT, most, now;
	struct doctor_cgroup cgroup;

	facts->tasks_left = -1;
	if (!doctor_cgroup_find(&cgroup, root, "pids"))
		return;
	do {
		most = doctor_cgroup_number(&cgroup, "pids.max");
		now = doctor_cgroup_number(&cgroup, "pids.current");
		if (most < 0 || now < 0 || most - now >= least)
			continue;
		least = most > now ? most - now : 0;
		doctor_cgroup_name(&cgroup, "pids.max", facts->tasks_file, DOCTOR_FILE);
	} while (doctor_cgroup_up(&cgroup));
	facts->tasks_left = least;
}

void doctor_read_transport(struct doctor_transport_facts *facts, const char *root)
{
	*facts = (struct doctor_transport_facts){
		.uring_disabled = doctor_file_number(root, "/proc/sys/kernel/io_uring_disabled"),
		.seccomp = doctor_file_entry(root, "/proc/self/status", "Seccomp:"),
		.memlock = limit_of(RLIMIT_MEMLOCK),
		.files_soft = limit_of(RLIMIT_NOFILE),
		.files_hard = hard_limit_of(RLIMIT_NOFILE),
		.file_bytes = limit_of(RLIMIT_FSIZE),
		.yama = doctor_file_number(root, "/proc/sys/kernel/yama/ptrace_scope"),
		.copy_error = try_copy(),
		.memory_error = try_memory(),
	};
	read_ring(facts);
	read_tasks(facts, root);
}
