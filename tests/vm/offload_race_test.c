// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Processes that share a table of files, and so the device, use it at random at the same
 * time: groups come and go, links are lent and taken back, schedules loaded, run and
 * unloaded, the file closed under the others' hands. So many steps each as the first
 * argument says. Nothing is expected but that each command returns and that afterwards
 * all is as it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

enum {
	PROCESSES = 3,
	NUMBERS = 6,			/* that groups, schedules and buffers are picked from */
	WORDS = 8,
	COUNT = 20000,			/* floats: two lent links hand them over */
	REOPEN = 150,			/* one step in so many closes the file */
	SECONDS = 100,			/* for all of it */
};
static const u64 ms = 1000000;

/* Of all processes. */
static struct shared {
	int fd;
	u32 next_run;
	u64 tried, groups, links, loaded, runs, ended, opened;
} *all;

static u64 state;
static struct coll_schedule *schedule[2];	/* of rank 0 and 1 */
static float *in, *out;

static u32 number(u32 below)
{
	return random_next(&state) % below;
}

static void more(u64 *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static long ask(u32 op, void *argument, u32 bytes)
{
	return offload_do(__atomic_load_n(&all->fd, __ATOMIC_RELAXED), op, argument, bytes);
}

/* ---- steps --------------------------------------------------------------------------- */

static void open_file(void)
{
	struct coll_device_setup setup = { .version = COLL_DEVICE_VERSION, .words = WORDS,
					   .cpu = number(2) };
	int fd = open("/dev/coll", O_RDWR | O_CLOEXEC);

	if (!offload_do(fd, COLL_DEVICE_SETUP, &setup, sizeof(setup)))
		more(&all->opened);
	__atomic_store_n(&all->fd, fd, __ATOMIC_RELAXED);
}

/* Whoever takes the number closes it; the others may still be using it. */
static void reopen(void)
{
	int fd = __atomic_exchange_n(&all->fd, -1, __ATOMIC_RELAXED);

	if (fd < 0)
		return;
	close(fd);
	open_file();
}

static void load(u32 group, u32 rank)
{
	struct coll_device_load asked = { .group = group, .hash = 1,
					  .schedule = (uintptr_t)schedule[rank],
					  .bytes = schedule[rank]->bytes };

	if (ask(COLL_DEVICE_LOAD, &asked, sizeof(asked)) >= 0)
		more(&all->loaded);
}

static void lend(u32 group, u32 rank, int fd)
{
	struct coll_device_link link = { .group = group, .rank = rank, .fd = fd,
					 .flags = number(4) ? COLL_DEVICE_PAIRS : 0 };

	if (!ask(COLL_DEVICE_ATTACH, &link, sizeof(link)))
		more(&all->links);
}

/* Two groups that are each other's ranks. */
static void make_groups(void)
{
	int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX];
	u32 rank;

	offload_connect(links, 2);
	for (rank = 0; rank < 2; rank++) {
		struct coll_device_group asked = { .rank = rank, .ranks = 2 };
		long group = ask(COLL_DEVICE_GROUP, &asked, sizeof(asked));

		if (group >= 0) {
			more(&all->groups);
			lend(group, !rank, links[rank][!rank]);
			load(group, rank);
		}
		close(links[rank][!rank]);
	}
}

static void run(u32 loaded, u32 number_of_run)
{
	struct coll_device_run asked = {
		.schedule = loaded, .word = number(WORDS), .flags = COLL_DEVICE_QUIET,
		.number = number_of_run,
		.in = { .address = (uintptr_t)in, .buffer = COLL_NONE },
		.out = { .address = (uintptr_t)out, .buffer = COLL_NONE },
		.deadline = offload_now() + (10 + number(100)) * ms,
	};

	if (!number(8))
		asked.out = (struct coll_device_place){ .buffer = number(NUMBERS) };
	if (!ask(COLL_DEVICE_RUN, &asked, sizeof(asked)))
		more(&all->runs);
}

/* Often on two schedules that were loaded one after the other, so that they may be a pair. */
static void run_some(void)
{
	const u32 next = __atomic_add_fetch(&all->next_run, 1, __ATOMIC_RELAXED);
	const u32 loaded = number(NUMBERS);

	run(loaded, next);
	if (number(4))
		run(loaded ^ 1, next);
}

/* A word that is never set: a signal ends the wait. */
static void wait_for_word(void)
{
	struct coll_device_number word = { .number = number(WORDS) };
	const struct itimerval soon = { .it_value = { .tv_usec = 1000 + number(30000) } };
	const struct itimerval never = { .it_value = { 0 } };

	setitimer(ITIMER_REAL, &soon, NULL);
	if (!ask(COLL_DEVICE_WAIT, &word, sizeof(word)))
		more(&all->ended);
	setitimer(ITIMER_REAL, &never, NULL);
}

static void take_number(u32 op)
{
	struct coll_device_number it = { .number = number(NUMBERS) };

	ask(op, &it, sizeof(it));
}

static void take_link_back(void)
{
	static u8 stream[1 << 16];
	struct coll_device_link back = { .group = number(NUMBERS), .rank = number(2), .fd = -1,
					 .address = (uintptr_t)stream, .bytes = sizeof(stream) };

	ask(COLL_DEVICE_DETACH, &back, sizeof(back));
}

static void make_buffer(void)
{
	struct coll_device_buffer asked = { .address = (uintptr_t)out, .writable = 1,
					    .bytes = COUNT * sizeof(float) };

	ask(COLL_DEVICE_BUFFER, &asked, sizeof(asked));
}

static void control(void)
{
	struct coll_device_control it = {
		.group = number(NUMBERS), .rank = number(2),
		.header = { .kind = COLL_MESSAGE_PING, .version = COLL_WIRE_VERSION },
	};
	struct coll_device_fail fail = { .group = number(NUMBERS), .error = ECANCELED,
					 .failed_rank = number(2), .reporter = COLL_NONE };
	struct coll_device_counters counters;
	struct coll_device_deadline deadline = { .group = number(NUMBERS), .number = all->next_run,
						 .deadline = offload_now() + number(10) * ms };

	switch (number(6)) {
	case 0:
		ask(COLL_DEVICE_FAIL, &fail, sizeof(fail));
		break;
	case 1:
		ask(COLL_DEVICE_CONTROL_SEND, &it, sizeof(it));
		break;
	case 2:
	case 3:
		ask(COLL_DEVICE_CONTROL_GET, &it, sizeof(it));
		break;
	case 4:
		ask(COLL_DEVICE_DEADLINE, &deadline, sizeof(deadline));
		break;
	default:
		ask(COLL_DEVICE_COUNTERS, &counters, sizeof(counters));
	}
}

static void step(void)
{
	more(&all->tried);
	if (!number(REOPEN)) {
		reopen();
		return;
	}
	switch (number(16)) {
	case 0:
		make_groups();
		break;
	case 1:
		load(number(NUMBERS), number(2));
		break;
	case 2:
		take_number(COLL_DEVICE_UNLOAD);
		break;
	case 3:
		take_number(number(3) ? COLL_DEVICE_BUFFER_FREE : COLL_DEVICE_GROUP_FREE);
		break;
	case 4:
		take_link_back();
		break;
	case 5:
		make_buffer();
		break;
	case 6:
		control();
		break;
	case 7:
	case 8:
		wait_for_word();
		break;
	default:
		run_some();
	}
}

/* ---- all ----------------------------------------------------------------------------------- */

static void wake_up(int signal)
{
	(void)signal;
}

static void steps(u64 count, u64 seed)
{
	const struct sigaction interrupt = { .sa_handler = wake_up };

	state = seed;
	sigaction(SIGALRM, &interrupt, NULL);
	while (count--)
		step();
	_exit(0);
}

static struct coll_schedule *ring(u32 rank)
{
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, "ring");
	struct usual_call usual;

	usual_call(&usual, algo, 2, COUNT, COLL_FLOAT);
	usual.call.rank = rank;
	return emit_schedule(algo, &usual.call, &usual.tuning);
}

/* What this file's own group does when it is left alone. */
static int works(u32 rank, u32 ranks, const int *links)
{
	static float mine[COUNT], sum[COUNT];
	struct offload o;
	long loaded;
	int bad;

	mine[COUNT - 1] = rank + 1;
	if (coll_offload_open(&o, rank, ranks, links) ||
	    (loaded = offload_load(&o, schedule[rank], 1)) < 0)
		return 1;
	bad = offload_run(&o, loaded, mine, sum, 0, 0) || offload_wait(&o, 0) ||
	      sum[COUNT - 1] != 3;
	coll_offload_close(&o);
	return bad;
}

int main(int argc, char **argv)
{
	u64 count = argc > 1 ? strtoull(argv[1], NULL, 0) : 2500;
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : vm_now();
	int i, status, failed = 0;
	pid_t child[PROCESSES];

	vm_loopback_up();
	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	in = calloc(COUNT, sizeof(*in));
	out = calloc(COUNT, sizeof(*out));
	schedule[0] = ring(0);
	schedule[1] = ring(1);
	state = seed;
	vm_note("first number %#llx", (unsigned long long)seed);
	open_file();
	alarm(SECONDS);
	for (i = 0; i < PROCESSES; i++) {
		child[i] = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
		if (!child[i])
			steps(count, seed + i + 1);
	}
	for (i = 0; i < PROCESSES; i++) {
		waitpid(child[i], &status, 0);
		failed += status != 0;
	}
	close(all->fd);
	vm_is(failed, 0, "every command of every process came back");
	vm_note("%llu steps: %llu files, %llu groups, %llu links, %llu loads, %llu runs, %llu "
		"waits for "
		"an end",
		(unsigned long long)all->tried, (unsigned long long)all->opened,
		(unsigned long long)all->groups, (unsigned long long)all->links,
		(unsigned long long)all->loaded, (unsigned long long)all->runs,
		(unsigned long long)all->ended);
	/* A wait that nobody's next step ends is rare where a run takes long. */
	vm_ok(all->opened > 1 && all->links && all->runs && (all->ended || vm_slowness() > 1),
	      "files, links and runs among them");
	vm_ok(!offload_ranks(2, works, 60), "and the device is good for others");
	return vm_end();
}
