// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 *	offload_bounded_test [exact]
 *
 * Reductions that take seconds: their process is killed at once, deadlines hold, other
 * commands are answered, and the results are right although they are computed in parts. Others
 * on its CPU go on during a command that takes seconds.
 * exact: in a machine whose time is what was executed (tests/vm/run -i), a process that is
 * killed in a long reduction and has a CPU is gone within 10 ms. The first one after loading
 * may sleep for longer: the end of an address space with a notifier waits for a grace period of
 * the kernel's notifiers, and their first one is not expedited. It takes no CPU time, and the
 * reduction is over before.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/build.h"
#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

#define MS 1000000ull

enum {
	BYTES = 1 << 20, OPS = 4000, SHORT_OPS = 20,
	KILLS = 5, KILL_MS = 60,	/* the emulator takes ten times as long as a machine */
	EXACT_MS = 10,
	LONG_BYTES = 8 << 20,		/* of one op */
	DEADLINE_MS = 100, LATE_MS = 400, PATIENCE_S = 60,
	STALE_BYTES = 256 << 20,
};

static u64 memory[1 << 17];
static u32 thread_cpu = COLL_NONE;

static void close_alone(struct offload *o)
{
	munmap(o->shared, 4096);
	close(o->fd);
}

/* out = in, then `ops` times out += in, each of so many bytes. */
static long load_sums(struct offload *o, int ops, u64 bytes, u32 type)
{
	const u64 in = COLL_ADDRESS(COLL_IN, 0), out = COLL_ADDRESS(COLL_OUT, 0);
	struct coll_schedule *s;
	struct coll_build b;
	u32 op;
	int i;

	coll_build_init(&b, memory, sizeof(memory), 0, 2);
	coll_build_reduction(&b, type, COLL_SUM, 0);
	coll_build_buffers(&b, bytes, bytes);
	op = coll_emit_copy(&b, out, in, bytes);
	for (i = 0; i < ops; i++) {
		coll_emit_after(&b, op);
		op = coll_emit_reduce(&b, out, out, in, bytes);
	}
	return coll_build_finish(&b, &s) ? -EINVAL : offload_load(o, s, 7);
}

static int start_sums(struct offload *o, int ops, u64 bytes, u32 type, void **in, void **out,
		      u64 deadline)
{
	long schedule;

	*in = aligned_alloc(4096, bytes);
	*out = aligned_alloc(4096, bytes);
	memset(*in, 1, bytes);
	if (offload_open_alone(o, 2, 0, thread_cpu))
		return -ENODEV;
	schedule = load_sums(o, ops, bytes, type);
	return schedule < 0 ? (int)schedule : offload_run(o, schedule, *in, *out, 0, deadline);
}

/* ---- right ----------------------------------------------------------------------------- */

static void in_parts(void)
{
	struct offload o;
	uint32_t *in, *out;
	size_t i, wrong = 0;

	vm_is(start_sums(&o, SHORT_OPS, BYTES, COLL_UINT32, (void **)&in, (void **)&out, 0), 0,
	      "twenty sums, one after the other");
	vm_is(offload_poll(&o, 0, PATIENCE_S * vm_slowness()), 0, "end");
	for (i = 0; i < BYTES / sizeof(*out); i++)
		wrong += out[i] != in[i] * (1 + SHORT_OPS);
	vm_is(wrong, 0, "with the right result");
	close_alone(&o);
}

/* ---- killed ------------------------------------------------------------------------------ */

static void compute_for_long(int tell, int ops, u64 bytes)
{
	void *in, *out;
	struct offload o;
	char error = start_sums(&o, ops, bytes, COLL_FP16, &in, &out, 0);

	if (write(tell, &error, 1) == 1)
		pause();
	_exit(1);
}

/* How long a process lives after its kill, and what CPU time that takes, in ns; 0: it did not start. */
struct death {
	u64 time, cpu;
};

/* Of a process that lives, with the device's thread if that is one of its own. */
static u64 cpu_time(pid_t pid)
{
	char path[64], name[32];
	pid_t thread = 0;
	u64 of_thread;

	snprintf(name, sizeof(name), "coll/%d\n", pid);
	vm_threads(name, &thread, 1);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, thread);
	of_thread = access(path, R_OK) ? 0 : vm_number(path, "");
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, pid);
	return vm_number(path, "") + of_thread;
}

static u64 cpu_time_whole(const struct rusage *usage)
{
	return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000 * MS +
	       (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000ull;
}

/*
 * Looks each millisecond: where all CPUs are idle and no timer is due, 6.12 lets the end of an
 * address space that had a notifier wait for up to two seconds, now and then.
 */
static struct death kill_one(int ops, u64 bytes)
{
	struct death death = { 0 };
	struct rusage usage;
	int hear[2];
	pid_t child;
	char error = 1;
	u64 killed, used;

	if (pipe(hear))
		return death;
	child = fork();
	if (!child)
		compute_for_long(hear[1], ops, bytes);
	if (read(hear[0], &error, 1) != 1 || error)
		return death;
	vm_sleep_ms(50);
	used = cpu_time(child);
	killed = vm_now();
	kill(child, SIGKILL);
	while (!wait4(child, NULL, WNOHANG, &usage))
		vm_sleep_ms(1);
	death.time = vm_now() - killed;
	death.cpu = cpu_time_whole(&usage) - used;
	close(hear[0]);
	close(hear[1]);
	return death;
}

struct took {
	u64 least, most, most_cpu;
};

static struct took kill_some(int ops, u64 bytes)
{
	struct took took = { .least = ~0ull };
	struct death one;

	for (int i = 0; i < KILLS; i++) {
		one = kill_one(ops, bytes);
		vm_note("%.1f ms, %.2f ms of CPU time", one.time / 1e6, one.cpu / 1e6);
		took.least = one.time < took.least ? one.time : took.least;
		took.most = one.time > took.most ? one.time : took.most;
		took.most_cpu = one.cpu > took.most_cpu ? one.cpu : took.most_cpu;
	}
	vm_note("a killed process is gone after %.1f to %.1f ms", took.least / 1e6, took.most / 1e6);
	return took;
}

static void killed_at_once(void)
{
	const u64 limit = KILL_MS * MS * vm_slowness();
	const struct took took = kill_some(OPS, BYTES);

	vm_ok(took.least > 0 && took.most < 10 * limit && took.least < limit,
	      "a process that is killed in a long reduction is gone at once");
}

/* Each op of a chain as long as they come, and one op as long as there is memory for. */
static void killed_exactly(void)
{
	struct took chain, one;
	struct death first;

	/* The process and the thread have a CPU each. */
	vm_run_on(0);
	thread_cpu = 1;
	first = kill_one(OPS, BYTES);
	vm_note("the first after loading: %.1f ms, %.2f ms of CPU time", first.time / 1e6,
		first.cpu / 1e6);
	vm_ok(first.cpu > 0 && first.cpu < EXACT_MS * MS,
	      "the first process that is killed takes no %d ms of CPU time", EXACT_MS);
	chain = kill_some(OPS, BYTES);
	one = kill_some(OPS, LONG_BYTES);
	vm_ok(chain.most_cpu > 0 && chain.most_cpu < EXACT_MS * MS && one.most_cpu < EXACT_MS * MS,
	      "nor do those that follow");
	vm_ok(chain.least > 0 && chain.most < EXACT_MS * MS,
	      "a process that is killed in a chain of long reductions is gone within %d ms", EXACT_MS);
	vm_ok(one.least > 0 && one.most < EXACT_MS * MS,
	      "and in one of %d MB", LONG_BYTES >> 20);
}

/* ---- deadlines, other commands ------------------------------------------------------------- */

static void deadline_holds(void)
{
	struct coll_device_counters counters;
	struct offload o;
	void *in, *out;
	const u64 late = LATE_MS * MS * vm_slowness();
	u64 start = vm_now(), asked, took, most = 0;
	char fdinfo[64];
	bool shown = true;
	int i;

	vm_is(start_sums(&o, OPS, BYTES, COLL_FP16, &in, &out,
			 offload_now() + 20 * DEADLINE_MS * MS), 0,
	      "a long reduction with a deadline");
	snprintf(fdinfo, sizeof(fdinfo), "/proc/self/fdinfo/%d", o.fd);
	vm_ok(VM_COMES(vm_number(fdinfo, "coll-thread:\t") > 0), "whose thread begins");
	for (i = 0; i < 10; i++) {
		asked = vm_now();
		offload_do(o.fd, COLL_DEVICE_COUNTERS, &counters, sizeof(counters));
		took = vm_now() - asked;
		most = took > most ? took : most;
		shown &= vm_number(fdinfo, "coll-thread:\t") > 0;
		vm_sleep_ms(10);
	}
	vm_ok(shown, "fdinfo has the thread's number, also while it holds the lock");
	vm_note("a command takes at most %.1f ms", most / 1e6);
	vm_ok(most < late, "other commands are answered meanwhile");
	vm_is(offload_poll(&o, 0, PATIENCE_S * vm_slowness()), -ETIMEDOUT, "it ends with its deadline");
	took = vm_now() - start;
	vm_note("after %.0f ms, of %d", took / 1e6, 20 * DEADLINE_MS);
	vm_ok(took < 20 * DEADLINE_MS * MS + late, "which is noticed in time");
	close_alone(&o);
}

/* ---- a long command ------------------------------------------------------------------------- */

/* Notes, until it is killed, the longest time for which it was without the CPU. */
static pid_t shares_the_cpu(volatile u64 *longest)
{
	u64 last = vm_now(), now;
	pid_t child;

	fflush(stdout);
	child = fork();
	while (!child) {
		now = vm_now();
		if (now - last > *longest)
			*longest = now - last;
		last = now;
	}
	return child;
}

/*
 * One message of a run that is over, as if it had been read from the socket: all is discarded. `longest`
 * counts from when the command begins, which takes `took` ns.
 */
static long attach_stale(struct offload *o, int fd, volatile u64 *longest, u64 *took)
{
	struct coll_device_group group = { .rank = 0, .ranks = 2, .next_run = 1 };
	struct coll_device_link link = { .rank = 1, .fd = fd, .bytes = STALE_BYTES };
	struct coll_header *stale = mmap(NULL, STALE_BYTES, PROT_READ,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	long result;

	if (stale == MAP_FAILED || mprotect(stale, 4096, PROT_READ | PROT_WRITE))
		return -ENOMEM;
	*stale = (struct coll_header){
		.kind = COLL_MESSAGE_DATA, .version = COLL_WIRE_VERSION,
		.bytes = STALE_BYTES - sizeof(*stale),
	};
	link.address = (uintptr_t)stale;
	link.group = offload_do(o->fd, COLL_DEVICE_GROUP, &group, sizeof(group));
	*longest = 0;
	*took = vm_now();
	result = offload_do(o->fd, COLL_DEVICE_ATTACH, &link, sizeof(link));
	*took = vm_now() - *took;
	munmap(stale, STALE_BYTES);
	return result;
}

static void others_go_on(void)
{
	int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX];
	volatile u64 *longest = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct offload o;
	pid_t child;
	u64 took = 0;

	vm_loopback_up();
	offload_connect(links, 2);
	vm_run_on(0);
	vm_is(offload_open_alone(&o, 2, 0, COLL_NONE), 0, "a file");
	child = shares_the_cpu(longest);
	vm_ok(VM_COMES(*longest), "somebody else computes on this CPU");
	vm_is(attach_stale(&o, links[0][1], longest, &took), 0, "ATTACH of much that nobody wants");
	vm_note("%.0f ms; somebody else was without the CPU for %.0f at most", took / 1e6, *longest / 1e6);
	/* Half of it is somebody else's in any case: what was kept back is had before we go on. */
	vm_ok(*longest < took / 4, "others on this CPU go on meanwhile");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close_alone(&o);
	close(links[0][1]);
	close(links[1][0]);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "exact")) {
		killed_exactly();
		return vm_end();
	}
	in_parts();
	killed_at_once();
	deadline_holds();
	others_go_on();
	return vm_end();
}
