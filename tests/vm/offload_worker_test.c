// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Where the kernel has it, the device's thread is a thread of the program: its limits hold for
 * it, it stops, freezes and dies with it, and at any moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "offload.h"
#include "vm.h"

#define CGROUP "/sys/fs/cgroup/"

enum { LONG_MS = 60000, SOON_MS = 300, KILLS = 150, USER = 1000 };

static struct coll_device_setup usual = {
	.version = COLL_DEVICE_VERSION, .words = 1, .cpu = COLL_NONE,
};

static long set_up(int fd)
{
	return offload_do(fd, COLL_DEVICE_SETUP, &usual, sizeof(usual));
}

/* 0: none. */
static pid_t thread_of(pid_t process)
{
	char name[32];
	pid_t thread = 0;

	snprintf(name, sizeof(name), "coll/%d\n", process);
	vm_threads(name, &thread, 1);
	return thread;
}

static bool is_ours(pid_t thread)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d", thread);
	return thread && !access(path, F_OK);
}

static int end_of(pid_t child)
{
	int status = -1;

	waitpid(child, &status, 0);
	return status;
}

/* Calls `body` in a process of its own: what it returns. */
static int apart(int (*body)(void))
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child)
		_exit(body());
	status = end_of(child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

/* ---- whether it is one ------------------------------------------------------------------ */

static bool of_the_program(void)
{
	int fd = open("/dev/coll", O_RDWR | O_CLOEXEC);
	bool ours;

	vm_is(set_up(fd), 0, "a file is set up");
	vm_ok(thread_of(getpid()), "and has a thread");
	ours = is_ours(thread_of(getpid()));
	vm_is(set_up(fd), -EBUSY, "it is set up once");
	close(fd);
	vm_is(thread_of(getpid()), 0, "closed, it has none");
	return ours;
}

/* ---- limits ----------------------------------------------------------------------------- */

/* Refused at the limit; the same file is set up when there is room. */
static int at_the_limit_of_pids(void)
{
	int fd = open("/dev/coll", O_RDWR | O_CLOEXEC);

	if (vm_write(CGROUP "few/pids.max", "1") || vm_write(CGROUP "few/cgroup.procs", "0"))
		return 1;
	if (set_up(fd) != -EAGAIN || thread_of(getpid()))
		return 2;
	if (vm_write(CGROUP "few/pids.max", "2") || set_up(fd))
		return 3;
	return is_ours(thread_of(getpid())) ? 0 : 4;
}

static int at_the_limit_of_processes(void)
{
	const struct rlimit one = { 1, 1 };
	int fd = open("/dev/coll", O_RDWR | O_CLOEXEC);

	if (setrlimit(RLIMIT_NPROC, &one) || setuid(USER))
		return 1;
	return set_up(fd) == -EAGAIN && !thread_of(getpid()) ? 0 : 2;
}

static void limits(void)
{
	vm_write(CGROUP "cgroup.subtree_control", "+pids");
	mkdir(CGROUP "few", 0755);
	vm_is(apart(at_the_limit_of_pids), 0, "pids.max counts the thread");
	vm_ok(VM_COMES(!rmdir(CGROUP "few")), "which goes with its process");
	vm_is(apart(at_the_limit_of_processes), 0, "so does RLIMIT_NPROC");
}

/* ---- who may call ------------------------------------------------------------------------ */

/* A ring's worker is none of the program's own threads. */
static int set_up_by_a_worker(void)
{
	struct coll_device_command command = {
		.argument = (uintptr_t)&usual, .bytes = sizeof(usual),
	};
	int fd = open("/dev/coll", O_RDWR | O_CLOEXEC), result;
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;

	if (io_uring_queue_init(4, &ring, 0))
		return 1;
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = COLL_DEVICE_SETUP;
	sqe->flags |= IOSQE_ASYNC;
	memcpy(sqe->cmd, &command, sizeof(command));
	if (io_uring_submit(&ring) != 1 || io_uring_wait_cqe(&ring, &cqe))
		return 2;
	result = cqe->res;
	io_uring_cqe_seen(&ring, cqe);
	return result == -EPERM && !set_up(fd) ? 0 : 3;
}

/* ---- stopped, frozen, dead --------------------------------------------------------------- */

static int compute_long(void)
{
	return offload_compute(LONG_MS);
}

/* ns of CPU time of a thread; -1: it is not there. */
static long long busy(pid_t thread)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", thread);
	return vm_read(path, text, sizeof(text)) ? -1 : atoll(text);
}

/* A process whose thread computes. */
static pid_t computes(void)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child)
		_exit(compute_long());
	vm_ok(VM_COMES(busy(thread_of(child)) > 20000000), "a thread computes");
	return child;
}

static bool rests(pid_t thread)
{
	long long before;

	vm_sleep_ms(SOON_MS / 3);	/* it may be in the midst of a turn */
	before = busy(thread);
	vm_sleep_ms(SOON_MS);
	return before > 0 && busy(thread) == before;
}

static bool goes_on(pid_t thread)
{
	const long long before = busy(thread);

	return VM_COMES(busy(thread) > before + 20000000);
}

static void stopped(void)
{
	pid_t child = computes(), thread = thread_of(child);

	kill(child, SIGSTOP);
	vm_ok(rests(thread), "SIGSTOP stops it");
	kill(child, SIGCONT);
	vm_ok(goes_on(thread), "SIGCONT lets it go on");
	kill(child, SIGKILL);
	vm_is(end_of(child), SIGKILL, "SIGKILL ends both");
}

static void frozen(void)
{
	pid_t child = computes(), thread = thread_of(child);
	char number[16];

	mkdir(CGROUP "cold", 0755);
	snprintf(number, sizeof(number), "%d", child);
	vm_is(vm_write(CGROUP "cold/cgroup.procs", number), 0, "its process changes the cgroup");
	vm_write(CGROUP "cold/cgroup.freeze", "1");
	vm_ok(VM_COMES(vm_number(CGROUP "cold/cgroup.events", "frozen ")), "the cgroup freezes");
	vm_ok(rests(thread), "and the thread in it");
	vm_write(CGROUP "cold/cgroup.freeze", "0");
	vm_ok(goes_on(thread), "it thaws");
	vm_write(CGROUP "cold/cgroup.kill", "1");
	vm_is(end_of(child), SIGKILL, "the cgroup is killed");
	vm_ok(VM_COMES(!rmdir(CGROUP "cold")), "and goes");
}

static void dumped(void)
{
	pid_t child = computes();
	uint64_t before = vm_now();

	kill(child, SIGABRT);
	vm_is(end_of(child) & 0x7f, SIGABRT, "it dies of what dumps core");
	vm_ok(vm_now() - before < (uint64_t)LONG_MS / 2 * 1000000, "before its run ends");
}

/* Killed while it is set up, and soon after. */
static void killed_at_once(void)
{
	int wrong = 0;

	for (int i = 0; i < KILLS; i++) {
		pid_t child;

		fflush(stdout);
		child = fork();
		if (!child)
			_exit(compute_long());
		usleep(i * 40);
		kill(child, SIGKILL);
		wrong += end_of(child) != SIGKILL;
	}
	vm_is(wrong, 0, "killed at any moment of its start");
	vm_ok(VM_COMES(!vm_threads("coll/", NULL, 0)), "no thread is left");
}

int main(void)
{
	const struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };

	killed_at_once();
	if (!of_the_program()) {
		vm_skip("a thread of the program", "this kernel has no vhost_task, or one before 6.10");
		return vm_end();
	}
	setrlimit(RLIMIT_CORE, &no_limit);
	vm_write("/proc/sys/kernel/core_pattern", "/dev/null");
	limits();
	vm_is(apart(set_up_by_a_worker), 0, "a ring's worker does not set it up; its program does");
	stopped();
	frozen();
	dumped();
	return vm_end();
}
