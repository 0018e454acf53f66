// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Memory that the kernel keeps for a process: it counts against the limits of this process,
 * whoever asks for it, and goes with its address space. A peer that sends as much as it can
 * makes the host keep no more than that.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/build.h"
#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

#define CGROUP "/sys/fs/cgroup/little"
#define MB (1ull << 20)

enum { HASH = 7, USER = 1000, PATIENCE_S = 20, NO_DEVICE = 200, NO_RUN, NOT_SENT, NO_CGROUP };

static int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX];

/* ---- a message before its receive, longer than the capacity ------------------------------ */

static long load_receive(struct offload *o)
{
	static u64 memory[4096];
	struct coll_schedule *s;
	struct coll_build b;

	coll_build_init(&b, memory, sizeof(memory), 0, 2);
	coll_build_buffers(&b, 0, 64);
	coll_emit_recv(&b, 1, COLL_ADDRESS(COLL_OUT, 0), 64);
	return coll_build_finish(&b, &s) ? -EINVAL : offload_load(o, s, HASH);
}

/* Rank 1: a message of the run after this one, then the message of this run. */
static void peer_sends(u64 bytes)
{
	static char payload[1 << 16];
	struct coll_header header = {
		.kind = COLL_MESSAGE_DATA, .version = COLL_WIRE_VERSION, .run = 1, .hash = HASH,
		.bytes = bytes,
	};
	bool good = !prctl(PR_SET_PDEATHSIG, SIGKILL) &&
		    offload_send_all(links[1][0], &header, sizeof(header));

	for (u64 done = 0; good && done < bytes; done += sizeof(payload))
		good = offload_send_all(links[1][0], payload, sizeof(payload));
	header.run = 0;
	header.bytes = 64;
	good = good && offload_send_all(links[1][0], &header, sizeof(header)) &&
	       offload_send_all(links[1][0], payload, 64);
	pause();
	_exit(good ? 0 : NOT_SENT);
}

static int cgroup_procs = -1;	/* opened by root: by it a user may enter; -1: stays outside */

/*
 * Rank 0: the status of its run. It waits for what comes behind the long message. Its peer is not
 * in the cgroup: what that one asks for beyond the limit would call the OOM killer.
 */
static int run_beside(u64 bytes)
{
	static char out[64] __attribute__((aligned(64)));
	struct offload o;
	long schedule;
	pid_t peer;
	int status;

	offload_connect(links, 2);
	peer = fork();
	if (!peer)
		peer_sends(bytes);
	if (cgroup_procs >= 0 && write(cgroup_procs, "0", 1) != 1)
		_exit(NO_CGROUP);
	status = coll_offload_open(&o, 0, 2, links[0]) ? -NO_DEVICE : 0;
	schedule = status ? -1 : load_receive(&o);
	if (!status && (schedule < 0 || offload_run(&o, schedule, NULL, out, 0, 0)))
		status = -NO_RUN;
	if (!status)
		status = offload_poll(&o, 0, PATIENCE_S * vm_slowness());
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	return -status;
}

/* As a user with this limit, perhaps in the cgroup: what body() returns, or what went wrong. */
static int user_with(rlim_t locked, bool in_cgroup, int (*body)(u64 bytes), u64 bytes)
{
	const struct rlimit limit = { locked, locked };
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		cgroup_procs = in_cgroup ? open(CGROUP "/cgroup.procs", O_WRONLY | O_CLOEXEC) : -1;
		if ((in_cgroup && cgroup_procs < 0) || setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(USER) || setuid(USER))
			_exit(99);
		_exit(body(bytes));
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void limits(void)
{
	chmod("/", 0755);
	chmod("/dev/coll", 0666);
	vm_is(user_with(RLIM_INFINITY, false, run_beside, 64 * MB), 0,
	      "without a limit of locked memory, a message of 64 MB is kept for later");
	vm_is(user_with(32 * MB, false, run_beside, 16 * MB), 0, "with 32 MB, one of 16 MB is");
	vm_is(user_with(16 * MB, false, run_beside, 64 * MB), ENOBUFS,
	      "with 16 MB, one of 64 MB is refused");
	vm_write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	mkdir(CGROUP, 0755);
	if (vm_write(CGROUP "/memory.max", "32M")) {
		vm_skip("the memory cgroup", "this kernel has none");
		return;
	}
	vm_is(user_with(RLIM_INFINITY, true, run_beside, 128 * MB), ENOBUFS,
	      "a memory cgroup of 32 MB bounds it too, and none of its processes is killed");
	vm_ok(VM_COMES(!rmdir(CGROUP)), "the cgroup goes");
	chmod("/dev/coll", 0660);
}

/* ---- pages that a program writes after they are pinned to be read -------------------------- */

static long load_copy(struct offload *o, u64 bytes)
{
	static u64 memory[4096];
	struct coll_schedule *s;
	struct coll_build b;

	coll_build_init(&b, memory, sizeof(memory), 0, 2);
	coll_build_buffers(&b, bytes, bytes);
	coll_emit_copy(&b, COLL_ADDRESS(COLL_OUT, 0), COLL_ADDRESS(COLL_IN, 0), bytes);
	return coll_build_finish(&b, &s) ? -EINVAL : offload_load(o, s, HASH);
}

static void written_once_pinned(void)
{
	const u64 bytes = 4 * 4096;
	char *in = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *out = aligned_alloc(4096, bytes);
	struct coll_device_buffer buffer = { .address = (uintptr_t)in, .bytes = bytes };
	struct coll_device_run run = { .out = { .address = (uintptr_t)out, .buffer = COLL_NONE } };
	struct offload o;

	memset(out, 0, bytes);
	vm_is(offload_open_alone(&o, 2, 0, COLL_NONE), 0, "a file");
	run.in.buffer = offload_do(o.fd, COLL_DEVICE_BUFFER, &buffer, sizeof(buffer));
	memset(in, 7, bytes);
	run.schedule = load_copy(&o, bytes);
	vm_is(offload_do(o.fd, COLL_DEVICE_RUN, &run, sizeof(run)), 0,
	      "memory that nobody has touched is pinned, written, and copied");
	vm_ok(!memcmp(in, out, bytes), "as it was written");
	munmap(in, bytes);
	munmap(o.shared, 4096);
	close(o.fd);
}

/* ---- links count as locked memory ------------------------------------------------------------ */

enum { LINKS = 60000 };

/* Attaches nothing to link after link: errno of the first that is refused otherwise. */
static int make_links(u64 count)
{
	struct coll_device_group group = { .ranks = count + 1, .unexpected_bytes = 4096 };
	struct coll_device_link link = { .fd = -1 };
	struct offload o;
	long result = -EBADF;

	if (offload_open_alone(&o, 2, 0, COLL_NONE))
		return NO_DEVICE;
	link.group = offload_do(o.fd, COLL_DEVICE_GROUP, &group, sizeof(group));
	for (link.rank = 1; link.rank <= count && result == -EBADF; link.rank++)
		result = offload_do(o.fd, COLL_DEVICE_ATTACH, &link, sizeof(link));
	return -result;
}

static void links_count(void)
{
	chmod("/dev/coll", 0666);
	vm_is(user_with(8 * MB, false, make_links, LINKS), ENOMEM,
	      "a user with 8 MB gets no 60,000 links");
	chmod("/dev/coll", 0660);
}

/* ---- a peer that sends as much as it can --------------------------------------------------- */

enum {
	LIMIT_MB = 16, FLOOD_MB = 256, SMALL = 400000,	/* messages, if they are small */
	SOCKETS_MB = 16,	/* what TCP keeps of a connection, both ways, and more */
	FLOOD_S = 5, STUCK_S = 2,
};

/* Rank 1: messages of the run after this one, each of its own, until nobody takes any. */
static void peer_floods(u64 bytes)
{
	const struct timeval limit = { .tv_sec = STUCK_S };
	static char message[sizeof(struct coll_header) + (1 << 20)];
	struct coll_header header = {
		.kind = COLL_MESSAGE_DATA, .version = COLL_WIRE_VERSION, .run = 1, .hash = HASH,
		.bytes = bytes,
	};
	const u64 each = sizeof(header) + bytes, most = FLOOD_MB * MB / each;

	setsockopt(links[1][0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	for (u64 i = 0; i < (most < SMALL ? most : SMALL); i++) {
		header.slot = i;
		memcpy(message, &header, sizeof(header));
		if (!offload_send_all(links[1][0], message, each))
			break;
	}
	pause();
	_exit(0);
}

/* Rank 0: its run waits for a message that does not come, so it reads on. */
static int wait_amid_flood(u64 bytes)
{
	const struct rlimit limit = { LIMIT_MB * MB, LIMIT_MB * MB };
	static char out[64] __attribute__((aligned(64)));
	struct offload o;
	long schedule;
	pid_t peer;
	int status;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(USER) || setuid(USER))
		return 99;
	offload_connect(links, 2);
	peer = fork();
	if (!peer)
		peer_floods(bytes);
	if (coll_offload_open(&o, 0, 2, links[0]))
		return NO_DEVICE;
	schedule = load_receive(&o);
	if (schedule < 0 || offload_run(&o, schedule, NULL, out, 0,
					offload_now() + FLOOD_S * vm_slowness() * 1000000000ull))
		return NO_RUN;
	status = offload_poll(&o, 0, 2 * FLOOD_S * vm_slowness());
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	return -status;
}

static long available_now(void)
{
	char text[4096], *at;

	vm_read("/proc/meminfo", text, sizeof(text));
	at = strstr(text, "MemAvailable:");
	return at ? atol(at + strlen("MemAvailable:")) : 0;
}

/* The checks of the debug kernel keep something beside each allocation. */
static long most_kib(void)
{
	const long most = (2 * LIMIT_MB + SOCKETS_MB) * 1024l;	/* sizes are rounded up */

	return vm_slowness() > 1 ? 3 * most : most;
}

static void flooded(u64 bytes)
{
	const long before = vm_available_kib();
	long least = before, now;
	pid_t child;
	int status = -1;

	fflush(stdout);
	child = fork();
	if (!child)
		_exit(wait_amid_flood(bytes));
	while (!waitpid(child, &status, WNOHANG)) {
		now = available_now();
		least = now < least ? now : least;
		vm_sleep_ms(20);
	}
	status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	vm_note("%ld KiB were kept at most, the run ended with errno %d", before - least, status);
	vm_ok(status == ENOBUFS || status == ETIMEDOUT,
	      "a peer floods with messages of %llu bytes: refused, or not read any more",
	      (unsigned long long)bytes);
	vm_ok(before - least < most_kib(), "the host kept no more than the limit of %d MB, twice, and the sockets'",
	      LIMIT_MB);
}

static void floods(void)
{
	chmod("/", 0755);
	chmod("/dev/coll", 0666);
	flooded(0);
	flooded(1000);
	flooded(1 << 20);
	chmod("/dev/coll", 0660);
}

/* ---- exec ---------------------------------------------------------------------------------- */

enum { PINNED_MIN = 512 };

static int pin_and_exec(const char *self)
{
	struct coll_device_setup setup = {
		.version = COLL_DEVICE_VERSION, .words = 1, .cpu = COLL_NONE,
	};
	struct coll_device_buffer buffer = { .bytes = 4 * MB, .writable = 1 };
	char fd[16];
	int file = open("/dev/coll", O_RDWR);	/* stays open in exec */

	buffer.address = (uintptr_t)mmap(NULL, 4 * MB, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (offload_do(file, COLL_DEVICE_SETUP, &setup, sizeof(setup)) ||
	    offload_do(file, COLL_DEVICE_BUFFER, &buffer, sizeof(buffer)) < 0 ||
	    vm_pinned_pages() < PINNED_MIN)
		return 1;
	snprintf(fd, sizeof(fd), "%d", file);
	execl(self, self, "executed", fd, NULL);
	return 2;
}

/* The new program, with the file of the former. */
static int executed(int file)
{
	struct coll_device_counters counters;
	long result = offload_do(file, COLL_DEVICE_COUNTERS, &counters, sizeof(counters));

	if (!VM_COMES(vm_pinned_pages() < PINNED_MIN))
		return 3;
	return result == -ECANCELED ? 0 : 4;
}

static void exec_ends_it(void)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child)
		_exit(pin_and_exec("/bin/offload_memory_test"));
	waitpid(child, &status, 0);
	vm_is(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0,
	      "exec unpins the pages of the former address space and ends the file");
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "executed"))
		return executed(atoi(argv[2]));
	vm_loopback_up();
	limits();
	written_once_pinned();
	links_count();
	floods();
	exec_ends_it();
	return vm_end();
}
