// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Runs that end badly: a peer dies, a deadline passes, a process is killed or
 * closes its file with runs under way, memory is unmapped, sockets are closed
 * or shut down by their owner, the module is to go.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

enum {
	COUNT = 200000,		/* floats: more than sockets hold */
	RING = 4,
	HASH = 3,
};
static const u64 second = 1000000000;
static u32 *ready, *done;		/* how many ranks are; they share it */
static struct coll_device_counters *seen;	/* by the one that will be killed */

static struct coll_schedule *ring(u32 rank, u32 ranks, u64 count)
{
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, "ring");
	struct usual_call usual;

	usual_call(&usual, algo, ranks, count, COLL_FLOAT);
	usual.call.rank = rank;
	return emit_schedule(algo, &usual.call, &usual.tuning);
}

static long load_ring(struct offload *o, u64 count)
{
	struct coll_schedule *s = ring(o->rank, o->ranks, count);
	long number = offload_load(o, s, HASH);

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

/* The number of a ring's schedule, to be run on these links; negative: it failed. */
static long begin(struct offload *o, u32 rank, u32 ranks, const int *links)
{
	return coll_offload_open(o, rank, ranks, links) ? -1 : load_ring(o, COUNT);
}

/* Rank 2 dies when the others have begun; they hear who it was. */
static int peer_dies(u32 rank, u32 ranks, const int *links)
{
	static float in[COUNT], out[COUNT];
	struct offload o;
	long schedule;
	int bad;

	if ((schedule = begin(&o, rank, ranks, links)) < 0)
		return 1;
	if (rank == 2) {
		wait_for(ready, 2);
		return 0;	/* and exits */
	}
	bad = expect("run", offload_run(&o, schedule, in, out, 0, 0), 0);
	tell(ready);
	bad |= expect("status", offload_wait(&o, 0), -ECONNRESET);
	bad |= expect("failed_rank", o.shared->word[0].failed_rank, 2);
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

	if ((schedule = begin(&o, rank, ranks, links)) < 0)
		return 1;
	if (rank == 1) {
		wait_for(done, ranks - 1);
		return 0;
	}
	bad = expect("run", offload_run(&o, schedule, in, out, 0, offload_now() + second), 0);
	bad |= expect("status", offload_wait(&o, 0), -ETIMEDOUT);
	bad |= expect("failed_rank", o.shared->word[0].failed_rank, 1);
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

	if ((schedule = begin(&o, rank, ranks, links)) < 0)
		return 1;
	if (rank)
		usleep(300000);
	bad = expect("run", offload_run(&o, schedule, in, out, 0, 0), 0);
	munmap(in, bytes);
	munmap(out, bytes);
	bad |= expect("status", offload_wait(&o, 0), 0);
	coll_offload_close(&o);
	return bad;
}

/* The module is to be unloaded in the middle: it stays, and so does the run. */
static int module_stays(u32 rank, u32 ranks, const int *links)
{
	static float in[COUNT], out[COUNT];
	struct offload o;
	long schedule;
	int bad;

	if ((schedule = begin(&o, rank, ranks, links)) < 0)
		return 1;
	if (rank)
		wait_for(done, 1);
	bad = expect("run", offload_run(&o, schedule, in, out, 0, 0), 0);
	if (!rank) {
		bad |= expect("unload", syscall(SYS_delete_module, "coll", O_NONBLOCK) ? -errno : 0,
			      -EAGAIN);
		tell(done);
	}
	bad |= expect("status", offload_wait(&o, 0), 0);
	coll_offload_close(&o);
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

	if ((schedule = begin(&o, rank, ranks, links)) < 0)
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

	if ((schedule = begin(&o, rank, ranks, links)) < 0)
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

	if ((schedule = begin(&o, rank, ranks, links)) < 0)
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
		coll_offload_start(3, runs_on, 60, children);
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

/* ---- killed at every op ------------------------------------------------------------ */

/* After so many commands it only looks how far its run is, until it is killed. */
static void victim(const int *links, u64 count, int commands)
{
	static float in[COUNT], out[COUNT];
	struct offload o = { .fd = -1 };
	long schedule;

	if (commands == 1)
		o.fd = open("/dev/coll", O_RDWR);
	if (commands > 1 && coll_offload_open(&o, 1, RING, links))
		_exit(1);
	if (commands > 2 && (schedule = load_ring(&o, count)) < 0)
		_exit(1);
	if (commands > 3 && offload_run(&o, schedule, in, out, 0, 0))
		_exit(1);
	tell(ready);
	for (;;) {
		if (commands > 1)
			offload_do(o.fd, COLL_DEVICE_COUNTERS, seen, sizeof(*seen));
		usleep(200);
	}
}

/* What its receives wait for, in their order: so many halves of messages. Bytes. */
static u64 feed(int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX], const struct coll_schedule *s,
		int halves)
{
	static u8 message[sizeof(struct coll_header) + COUNT];
	const struct coll_op *ops = coll_ops(s);
	u64 fed = 0, bytes;
	u32 i;

	for (i = 0; i < s->ops && halves > 0; i++) {
		const struct coll_header header = {
			.kind = COLL_MESSAGE_DATA, .version = COLL_WIRE_VERSION,
			.slot = ops[i].slot, .hash = HASH, .bytes = ops[i].bytes,
		};

		if (ops[i].kind != COLL_OP_RECV)
			continue;
		memcpy(message, &header, sizeof(header));
		bytes = sizeof(header) + ops[i].bytes;
		if (halves == 1)
			bytes /= 2;
		if (write(links[coll_op_rank(s, &ops[i])][1], message, bytes) != (ssize_t)bytes)
			return 0;
		fed += bytes;
		halves -= 2;
	}
	return halves > 0 ? 0 : fed;
}

/* False: it was not alive at that point. *ops: so many of its ops had begun. */
static bool killed_at(u64 count, int commands, int halves, u64 *ops)
{
	struct coll_schedule *s = ring(1, RING, count);
	int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX], status;
	const u64 until = offload_now() + 20 * second;
	u64 fed = 0;
	bool there;
	u32 a, b;
	pid_t child;

	*ready = 0;
	memset(seen, 0, sizeof(*seen));
	offload_connect(links, RING);
	child = fork();
	if (!child)
		victim(links[1], count, commands);
	while (!__atomic_load_n(ready, __ATOMIC_SEQ_CST) && offload_now() < until)
		usleep(200);
	if (halves)
		fed = feed(links, s, halves);
	while (__atomic_load_n(&seen->recv_bytes, __ATOMIC_SEQ_CST) < fed && offload_now() < until)
		usleep(200);
	*ops = seen->ops;
	there = *ready && (!halves || fed) && offload_now() < until;
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	for (a = 0; a < RING; a++)
		for (b = 0; b < RING; b++)
			if (a != b)
				close(links[a][b]);
	free(s);
	return there && WIFSIGNALED(status);
}

/* Its peers feed it half a message after the other, and read nothing. */
static void killed_at_every_op(void)
{
	enum { COMMANDS = 4 };
	const int halves = 2 * 2 * (RING - 1);
	u64 ops = 0, before;
	int i, points = 0, steps = 0;
	bool good = true;

	for (i = 0; i < COMMANDS; i++, points++)
		good &= killed_at(1000, i, 0, &ops);
	for (i = 0; i <= halves; i++, points++) {
		before = ops;
		good &= killed_at(1000, COMMANDS, i, &ops);
		steps += ops > before;
	}
	for (i = 0; i < 4; i++, points++)	/* its send is stuck as well */
		good &= killed_at(COUNT, COMMANDS, i, &before);
	vm_ok(good, "killed at each of %d points from its first command to its last op", points);
	/* At the start, and with each message but the last. */
	vm_ok(steps == halves / 2, "between which ops had begun %d times, %llu in all", steps,
	      (unsigned long long)ops);
}

/* ---- a file that outlives its opener ----------------------------------------------------- */

/* Whether the thread of a file that this process opened lives. */
static bool thread_lives(pid_t opener)
{
	char wanted[32];
	pid_t thread;

	snprintf(wanted, sizeof(wanted), "coll/%d\n", opener);
	return vm_threads(wanted, &thread, 1);
}

/* Opens the file and dies; its child, whose pid it tells, has the file still. */
static void open_and_leave(int tell)
{
	struct offload o;
	pid_t child;

	if (offload_open_alone(&o, 2, 0, COLL_NONE))
		_exit(1);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	if (write(tell, &child, sizeof(child)) != sizeof(child))
		_exit(1);
	vm_sleep_ms(200 * vm_slowness());
	_exit(0);
}

static void file_outlives_opener(void)
{
	pid_t opener, child = 0;
	int hear[2], status = -1;

	vm_is(pipe(hear), 0, "a pipe");
	fflush(stdout);
	opener = fork();
	if (!opener)
		open_and_leave(hear[1]);
	vm_ok(read(hear[0], &child, sizeof(child)) == sizeof(child) && thread_lives(opener),
	      "a child has a file whose opener lives, and its thread does");
	waitpid(opener, &status, 0);
	vm_is(status, 0, "the opener dies");
	vm_ok(VM_COMES(!thread_lives(opener)), "and the thread with it, although the file is open");
	vm_is(kill(child, 0), 0, "the child lives");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(hear[0]);
	close(hear[1]);
}

int main(void)
{
	vm_loopback_up();
	ready = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	done = ready + 1;
	seen = (void *)(ready + 16);
	vm_ok(!offload_ranks(3, peer_dies, 60), "a peer dies: its survivors know its name");
	*done = 0;
	vm_ok(!offload_ranks(3, peer_is_late, 60), "a peer is late: the deadline names it");
	vm_ok(!offload_ranks(2, memory_goes, 60), "memory is unmapped during a run");
	*done = 0;
	vm_ok(!offload_ranks(2, module_stays, 60), "the module cannot be unloaded during a run");
	vm_ok(!offload_ranks(2, sockets_go, 60), "sockets are closed and shut down");
	vm_ok(!offload_ranks(2, file_closes, 60), "the file is closed during a run");
	killed_anywhere(5);
	killed_at_every_op();
	file_outlives_opener();
	return vm_end();
}
