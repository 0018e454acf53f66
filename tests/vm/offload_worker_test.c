// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Where the kernel has it, the device's thread is a thread of the program: its limits hold for
 * it, it stops, freezes and dies with it, and at any moment. Elsewhere it is a kernel thread, which
 * the end of the program's address space does not wait for.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <liburing.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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
	vm_ok(VM_COMES(!thread_of(getpid())), "closed, it has none");
	return ours;
}

/* ---- who may call ------------------------------------------------------------------------ */

/* Set up by a ring: what comes of it. */
static int set_up_by_ring(int fd, unsigned int ring_flags, unsigned int sqe_flags)
{
	struct coll_device_command command = {
		.argument = (uintptr_t)&usual, .bytes = sizeof(usual),
	};
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int result;

	if (io_uring_queue_init(4, &ring, ring_flags))
		return -ENOSYS;
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = COLL_DEVICE_SETUP;
	sqe->flags |= sqe_flags;
	memcpy(sqe->cmd, &command, sizeof(command));
	result = io_uring_submit(&ring) == 1 ? io_uring_wait_cqe(&ring, &cqe) : -EIO;
	if (!result)
		result = cqe->res;
	io_uring_queue_exit(&ring);
	return result;
}

/* A ring's workers are none of the program's own threads. */
static int set_up_by_workers(void)
{
	int fd = open("/dev/coll", O_RDWR | O_CLOEXEC);

	if (set_up_by_ring(fd, 0, IOSQE_ASYNC) != -EPERM)
		return 1;
	if (set_up_by_ring(fd, IORING_SETUP_SQPOLL, 0) != -EPERM)
		return 2;
	return set_up_by_ring(fd, 0, 0) ? 3 : 0;
}

static int set_up_by_ring_at_the_limit(void)
{
	int fd = open("/dev/coll", O_RDWR | O_CLOEXEC);

	if (vm_write(CGROUP "few/pids.max", "1") || vm_write(CGROUP "few/cgroup.procs", "0"))
		return 1;
	return set_up_by_ring(fd, 0, 0) == -EAGAIN ? 0 : 2;
}

static int set_up_by_a_child(void)
{
	int fd = open("/dev/coll", O_RDWR | O_CLOEXEC);
	pid_t child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);

	if (!child)
		_exit(set_up(fd) == -EPERM ? 0 : 1);
	return end_of(child) || set_up(fd);
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
	const struct rlimit one = { 1, 2 }, two = { 2, 2 };
	int fd = open("/dev/coll", O_RDWR | O_CLOEXEC);

	if (setrlimit(RLIMIT_NPROC, &one) || setuid(USER))
		return 1;
	if (set_up(fd) != -EAGAIN || thread_of(getpid()))
		return 2;
	return !setrlimit(RLIMIT_NPROC, &two) && !set_up(fd) ? 0 : 3;
}

static void limits(void)
{
	vm_write(CGROUP "cgroup.subtree_control", "+pids");
	mkdir(CGROUP "few", 0755);
	vm_is(apart(at_the_limit_of_pids), 0, "pids.max counts the thread");
	vm_is(apart(set_up_by_ring_at_the_limit), 0, "and says so to a ring, too");
	vm_ok(VM_COMES(!rmdir(CGROUP "few")), "which goes with its process");
	vm_is(apart(at_the_limit_of_processes), 0, "so does RLIMIT_NPROC");
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

/* With nothing to do it sleeps, and is stopped there. */
static pid_t sleeps(void)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		if (set_up(open("/dev/coll", O_RDWR | O_CLOEXEC)))
			_exit(1);
		while (pause())
			;
	}
	vm_ok(VM_COMES(busy(thread_of(child)) > 0), "a thread sleeps");
	return child;
}

static void asleep(void)
{
	pid_t child = sleeps();
	siginfo_t info;

	kill(child, SIGSTOP);
	vm_ok(!waitid(P_PID, child, &info, WSTOPPED) && info.si_code == CLD_STOPPED,
	      "SIGSTOP stops all threads");
	kill(child, SIGCONT);
	vm_ok(!waitid(P_PID, child, &info, WCONTINUED), "SIGCONT, again");
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

static void dumped(pid_t child)
{
	uint64_t before = vm_now();
	int status;

	kill(child, SIGABRT);
	status = end_of(child);
	vm_is(status & 0x7f, SIGABRT, "it dies of what dumps core");
	if (access("/proc/self/coredump_filter", F_OK))
		vm_skip("and its core is dumped", "this kernel dumps none");
	else
		vm_ok(WCOREDUMP(status), "and its core is dumped");
	vm_ok(vm_now() - before < (uint64_t)LONG_MS / 2 * 1000000, "before its run ends");
	unlink("/core");
}

/* Again and again, until it is killed; counts how often. */
static void set_up_for_ever(volatile int *times)
{
	for (;; ++*times) {
		int fd = open("/dev/coll", O_RDWR | O_CLOEXEC);

		if (fd < 0 && errno == EINTR)
			continue;	/* SIGCONT came */
		if (set_up(fd))
			_exit(1);
		close(fd);
	}
}

static pid_t sets_up_for_ever(volatile int *times)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child)
		set_up_for_ever(times);
	return child;
}

/* Killed while it sets up and closes. */
static void killed_at_once(volatile int *times)
{
	int wrong = 0;

	for (int i = 0; i < KILLS; i++) {
		pid_t child = sets_up_for_ever(times);

		usleep(1000 + i * 37);
		kill(child, SIGKILL);
		wrong += end_of(child) != SIGKILL;
	}
	vm_is(wrong, 0, "killed at any moment of its start and end");
	vm_ok(VM_COMES(!vm_threads("coll/", NULL, 0)), "no thread is left");
}

/* Whether all its threads stop; one that closes the file just then may wait for the other. */
static bool stops(pid_t child)
{
	for (int tries = 0; tries < 100; tries++) {
		if (waitpid(child, NULL, WUNTRACED | WNOHANG) > 0)
			return true;
		vm_sleep_ms(1);
	}
	return false;
}

static void stopped_at_once(volatile int *times)
{
	pid_t child = sets_up_for_ever(times);
	int stopped = 0, going_on = 0;

	for (int i = 0; i < KILLS && going_on == i; i++) {
		int before;

		usleep(500 + i * 37);
		kill(child, SIGSTOP);
		stopped += stops(child);
		before = *times;
		kill(child, SIGCONT);
		going_on += VM_COMES(*times != before);
	}
	vm_note("all threads stopped %d of %d times", stopped, KILLS);
	vm_ok(stopped > KILLS / 2, "stopped at any moment of its start and end");
	vm_is(going_on, KILLS, "it goes on each time");
	kill(child, SIGKILL);
	vm_is(end_of(child), SIGKILL, "it ends");
}

/* ---- a kernel thread --------------------------------------------------------------------- */

/* Stops with a thread on CPU 1; continued, it is another program, whose argument is where to tell that. */
static void become_another(int tell)
{
	char number[16];

	usual.cpu = 1;
	vm_run_on(0);
	if (set_up(open("/dev/coll", O_RDWR)) || !VM_COMES(busy(thread_of(getpid())) > 0))
		_exit(1);
	raise(SIGSTOP);
	snprintf(number, sizeof(number), "%d", tell);
	execl("/proc/self/exe", "offload_worker_test", number, NULL);
	_exit(2);
}

static int be_another(int tell)
{
	if (write(tell, "", 1) == 1)
		pause();
	return 1;
}

static pid_t takes_all_of_cpu_1(void)
{
	const struct sched_param first = { .sched_priority = 50 };
	pid_t child;

	vm_write("/proc/sys/kernel/sched_rt_runtime_us", "-1");
	fflush(stdout);
	child = fork();
	if (!child && (vm_run_on(1) || sched_setscheduler(0, SCHED_FIFO, &first)))
		_exit(1);
	while (!child)
		;
	return child;
}

/*
 * The thread cannot end, for want of a CPU, as it cannot while a cpuset takes tasks in and waits
 * for the end of an address space, which is that of its program.
 */
static void not_waited_for(void)
{
	pid_t child, hog;
	struct pollfd hear;
	int ends[2], status;

	if (pipe(ends))
		return;
	hear = (struct pollfd){ ends[0], POLLIN, 0 };
	fflush(stdout);
	child = fork();
	if (!child)
		become_another(ends[1]);
	vm_ok(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status), "a thread on CPU 1");
	hog = takes_all_of_cpu_1();
	vm_sleep_ms(SOON_MS);
	kill(child, SIGCONT);
	vm_is(poll(&hear, 1, SOON_MS * 30), 1, "exec() does not wait for a thread that gets no CPU time");
	kill(hog, SIGKILL);
	end_of(hog);
	vm_is(poll(&hear, 1, LONG_MS / 2), 1, "the program is another");
	vm_ok(VM_COMES(!vm_threads("coll/", NULL, 0)), "the thread ends, though the file is still open");
	kill(child, SIGKILL);
	vm_is(end_of(child), SIGKILL, "and then the program");
	close(ends[0]);
	close(ends[1]);
}

int main(int argc, char **argv)
{
	const struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };
	volatile int *times = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (argc > 1)
		return be_another(atoi(argv[1]));
	killed_at_once(times);
	if (!of_the_program()) {
		not_waited_for();
		vm_skip("a thread of the program", "this kernel has no vhost_task, or one before 6.10");
		return vm_end();
	}
	setrlimit(RLIMIT_CORE, &no_limit);
	vm_write("/proc/sys/kernel/core_pattern", "/core");
	vm_write("/proc/self/coredump_filter", "0");
	limits();
	vm_is(apart(set_up_by_workers), 0, "a ring's workers do not set it up; its program does");
	vm_is(apart(set_up_by_a_child), 0, "nor does another process with the same files");
	stopped_at_once(times);
	stopped();
	asleep();
	frozen();
	dumped(computes());
	dumped(sleeps());
	return vm_end();
}
