// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Runs that end badly: a peer dies, a deadline passes, a process is killed or
 * closes its file with runs under way, memory is unmapped, sockets are closed
 * or shut down by their owner.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/schedules.h"
#include "offload.h"
#include "vm.h"

enum { COUNT = 200000 };	/* floats: more than sockets hold */
static const u64 second = 1000000000;
static u32 *ready, *done;		/* how many ranks are; they share it */

static long load_ring(struct offload *o, u64 count)
{
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, "ring");
	struct usual_call usual;
	struct coll_schedule *s;
	long number;

	usual_call(&usual, algo, o->ranks, count, COLL_FLOAT);
	usual.call.rank = o->rank;
	s = emit_schedule(algo, &usual.call, &usual.tuning);
	number = offload_load(o, s, 3);
	free(s);
	return number;
}

static int expect(const char *what, long got, long wanted)
{
	if (got == wanted)
		return 0;
	printf("# %s: %ld (%s), not %ld\n", what, got, strerror(labs(got)), wanted);
	return 1;
}

static void tell(u32 *count)
{
	__atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST);
}

/* Or the alarm comes first. */
static void wait_for(const u32 *count, u32 wanted)
{
	while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < wanted)
		usleep(1000);
}

/* Rank 2 dies when the others have begun; they hear who it was. */
static int peer_dies(u32 rank, u32 ranks, const int *links)
{
	static float in[COUNT], out[COUNT];
	struct offload o;
	long schedule;
	int bad;

	if (offload_open(&o, rank, ranks, links) || (schedule = load_ring(&o, COUNT)) < 0)
		return 1;
	if (rank == 2) {
		wait_for(ready, 2);
		return 0;	/* and exits */
	}
	bad = expect("run", offload_run(&o, schedule, in, out, 0, 0), 0);
	tell(ready);
	bad |= expect("status", offload_wait(&o, 0), -ECONNRESET);
	bad |= expect("culprit", o.shared->word[0].culprit, 2);
	bad |= expect("next run", offload_run(&o, schedule, in, out, 0, 0), -ECONNRESET);
	tell(done);
	wait_for(done, 2);	/* the other is to hear of rank 2 first, not of our end */
	return bad;
}

/* Rank 1 never calls: the deadline of one passes, and all name it. */
static int peer_is_late(u32 rank, u32 ranks, const int *links)
{
	static float in[COUNT], out[COUNT];
	struct offload o;
	long schedule;
	int bad;

	if (offload_open(&o, rank, ranks, links) || (schedule = load_ring(&o, COUNT)) < 0)
		return 1;
	if (rank == 1) {
		wait_for(done, ranks - 1);
		return 0;
	}
	bad = expect("run", offload_run(&o, schedule, in, out, 0, offload_now() + second), 0);
	bad |= expect("status", offload_wait(&o, 0), -ETIMEDOUT);
	bad |= expect("culprit", o.shared->word[0].culprit, 1);
	tell(done);
	wait_for(done, ranks - 1);
	return bad;
}

/* Our buffers are unmapped in the middle: the run goes on with the pinned pages. */
static int memory_goes(u32 rank, u32 ranks, const int *links)
{
	const size_t bytes = COUNT * sizeof(float);
	void *in = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct offload o;
	long schedule;
	int bad;

	if (offload_open(&o, rank, ranks, links) || (schedule = load_ring(&o, COUNT)) < 0)
		return 1;
	if (rank)
		usleep(300000);
	bad = expect("run", offload_run(&o, schedule, in, out, 0, 0), 0);
	munmap(in, bytes);
	munmap(out, bytes);
	bad |= expect("status", offload_wait(&o, 0), 0);
	offload_close(&o);
	return bad;
}

/* The sockets' own fds are closed after they were lent, then one is shut down. */
static int sockets_go(u32 rank, u32 ranks, const int *links)
{
	static float in[COUNT], out[COUNT];
	struct offload o;
	long schedule;
	int bad, keep = dup(links[!rank]);
	u32 peer;

	if (offload_open(&o, rank, ranks, links) || (schedule = load_ring(&o, COUNT)) < 0)
		return 1;
	for (peer = 0; peer < ranks; peer++)
		if (peer != rank)
			close(links[peer]);
	bad = expect("run", offload_run(&o, schedule, in, out, 0, 0), 0);
	bad |= expect("without fds", offload_wait(&o, 0), 0);
	if (!rank)
		shutdown(keep, SHUT_RDWR);
	if (!offload_run(&o, schedule, in, out, 1, 0))
		bad |= expect("shut down", offload_wait(&o, 1) == 0, 0);
	return bad;
}

/* The file is closed with runs under way. */
static int file_closes(u32 rank, u32 ranks, const int *links)
{
	static float in[COUNT], out[COUNT];
	struct offload o;
	long schedule;

	if (offload_open(&o, rank, ranks, links) || (schedule = load_ring(&o, COUNT)) < 0)
		return 1;
	if (rank)
		usleep(100000);
	else
		offload_run(&o, schedule, in, out, 0, 0);
	close(o.fd);
	return expect("canceled", __atomic_load_n(&o.shared->word[0].state, __ATOMIC_ACQUIRE) ==
		      COLL_DEVICE_RUNNING, 0);
}

/* Runs until one fails: nothing but somebody's death ends it. */
static int runs_on(u32 rank, u32 ranks, const int *links)
{
	static float in[COUNT], out[COUNT];
	struct offload o;
	long schedule;

	if (offload_open(&o, rank, ranks, links) || (schedule = load_ring(&o, COUNT)) < 0)
		return 1;
	tell(ready);
	while (!offload_run(&o, schedule, in, out, 0, 0) && !offload_wait(&o, 0))
		;
	return 0;
}

/* Killed at any moment of a run. */
static void killed_anywhere(int times)
{
	int i, status, failed = 0;
	u64 random = 5;

	for (i = 0; i < times; i++) {
		pid_t children[3];
		u32 victim = random_next(&random) % 3, r;

		*ready = 0;
		offload_start(3, runs_on, 60, children);
		wait_for(ready, 3);
		usleep(random_next(&random) % 200000);
		kill(children[victim], SIGKILL);
		for (r = 0; r < 3; r++) {
			waitpid(children[r], &status, 0);
			failed += r != victim && status;
		}
	}
	vm_ok(!failed, "%d times one of three is killed in the middle, and the others end", times);
}

int main(void)
{
	vm_loopback_up();
	ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	done = ready + 1;
	vm_ok(!offload_ranks(3, peer_dies, 60), "a peer dies: its survivors know its name");
	*done = 0;
	vm_ok(!offload_ranks(3, peer_is_late, 60), "a peer is late: the deadline names it");
	vm_ok(!offload_ranks(2, memory_goes, 60), "memory is unmapped during a run");
	vm_ok(!offload_ranks(2, sockets_go, 60), "sockets are closed and shut down");
	vm_ok(!offload_ranks(2, file_closes, 60), "the file is closed during a run");
	killed_anywhere(5);
	return vm_end();
}
