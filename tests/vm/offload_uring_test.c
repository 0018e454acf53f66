// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * /dev/coll over io_uring: a run's completion as a CQE of the caller's own
 * ring, or as a word in memory; what each costs in interrupts. exec() ends commands in flight.
 */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

enum { RUNS = 100, COUNT = 16, EXEC_MS = 20000 };
#ifndef IORING_URING_CMD_MULTISHOT	/* since 6.18 */
#define IORING_URING_CMD_MULTISHOT (1U << 1)
#endif

static void prepare(struct io_uring_sqe *sqe, int fd, u32 op, void *argument, u32 bytes)
{
	struct coll_device_command command = {
		.argument = (uintptr_t)argument,
		.bytes = bytes,
	};

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = op;
	memcpy(sqe->cmd, &command, sizeof(command));
}

static int submit(struct io_uring *ring, int fd, u32 op, void *argument, u32 bytes)
{
	prepare(io_uring_get_sqe(ring), fd, op, argument, bytes);
	return io_uring_submit(ring);
}

static int completion(struct io_uring *ring)
{
	struct __kernel_timespec limit = { .tv_sec = 30 };
	struct io_uring_cqe *cqe;
	int result = io_uring_wait_cqe_timeout(ring, &cqe, &limit);

	if (result)
		return result;
	result = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return result;
}

static struct coll_device_run run_of(struct offload *o, long schedule, void *in, void *out,
				     u32 word, u32 flags)
{
	return (struct coll_device_run){
		.schedule = schedule,
		.number = o->next_run++,
		.word = word,
		.flags = flags,
		.in = { .address = (uintptr_t)in, .buffer = COLL_NONE },
		.out = { .address = (uintptr_t)out, .buffer = COLL_NONE },
	};
}

static long load_sum(struct offload *o)
{
	const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, "butterfly");
	struct usual_call usual;
	struct coll_schedule *s;
	long number;

	usual_call(&usual, algo, o->ranks, COUNT, COLL_INT32);
	usual.call.rank = o->rank;
	s = emit_schedule(algo, &usual.call, &usual.tuning);
	number = offload_load(o, s, 7);
	free(s);
	return number;
}

/* Reschedule interrupts of all CPUs so far: a row of /proc/interrupts, by its last words. */
static long interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	char line[1024], *at;
	long sum = 0;

	while (file && fgets(line, sizeof(line), file)) {
		at = strchr(line, ':');
		if (!at || !strstr(line, "escheduling interrupts"))
			continue;
		at++;
		for (;;) {
			char *end;
			long n = strtol(at, &end, 10);

			if (end == at)
				break;
			sum += n;
			at = end;
		}
	}
	if (file)
		fclose(file);
	return sum;
}

static bool right(const int32_t *out, u32 ranks)
{
	int i;

	for (i = 0; i < COUNT; i++)
		if (out[i] != (int32_t)(ranks * (ranks - 1) / 2 + ranks * i))
			return false;
	return true;
}

/* A command completes once: else the ring, and so its program, would never end. */
static bool refuses_multishot(struct io_uring *ring, int fd)
{
	struct coll_device_counters counters;
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	int result;

	prepare(sqe, fd, COLL_DEVICE_COUNTERS, &counters, sizeof(counters));
	sqe->uring_cmd_flags = IORING_URING_CMD_MULTISHOT;
	sqe->flags |= IOSQE_BUFFER_SELECT;
	if (io_uring_submit(ring) != 1)
		return false;
	result = completion(ring);
	return result == -EINVAL || result == -EOPNOTSUPP;
}

/* Runs complete as CQEs; then as words, without one. */
static int cqe_and_word(u32 rank, u32 ranks, const int *links)
{
	int32_t in[COUNT], out[COUNT];
	struct offload o;
	struct io_uring ring;
	struct coll_device_run run;
	struct coll_device_number word = { .number = 5 };
	long schedule;
	int error, i;

	error = coll_offload_open(&o, rank, ranks, links);
	schedule = error ? error : load_sum(&o);
	if (schedule < 0 || io_uring_queue_init(8, &ring, 0))
		return 1;
	for (i = 0; i < COUNT; i++)
		in[i] = rank + i;

	run = run_of(&o, schedule, in, out, 3, 0);
	memset(out, 0, sizeof(out));
	if (submit(&ring, o.fd, COLL_DEVICE_RUN, &run, sizeof(run)) != 1 || completion(&ring) ||
	    !right(out, ranks)) {
		printf("# a run's CQE\n");
		return 1;
	}
	run = run_of(&o, schedule, in, out, 5, COLL_DEVICE_QUIET);
	memset(out, 0, sizeof(out));
	if (submit(&ring, o.fd, COLL_DEVICE_RUN, &run, sizeof(run)) != 1 || completion(&ring) ||
	    offload_poll(&o, 5, 30) || !right(out, ranks)) {
		printf("# a quiet run's word\n");
		return 1;
	}
	run = run_of(&o, schedule, in, out, 5, COLL_DEVICE_QUIET);
	if (submit(&ring, o.fd, COLL_DEVICE_RUN, &run, sizeof(run)) != 1 || completion(&ring) ||
	    submit(&ring, o.fd, COLL_DEVICE_WAIT, &word, sizeof(word)) != 1 || completion(&ring)) {
		printf("# waiting for a word\n");
		return 1;
	}
	if (!refuses_multishot(&ring, o.fd)) {
		printf("# a command of several completions\n");
		return 1;
	}
	io_uring_queue_exit(&ring);
	coll_offload_close(&o);
	return 0;
}

/* How many reschedule interrupts RUNS runs cost, with their ends heard of in one way. */
static int count_interrupts(struct offload *o, long schedule, unsigned int flags, bool quiet,
			    long *count)
{
	int32_t in[COUNT] = { 0 }, out[COUNT];
	struct io_uring ring;
	long before;
	int i, error = io_uring_queue_init(8, &ring, flags);

	if (error)
		return error;
	before = interrupts();
	for (i = 0; i < RUNS && !error; i++) {
		struct coll_device_run run = run_of(o, schedule, in, out, 1,
						    quiet ? COLL_DEVICE_QUIET : 0);

		submit(&ring, o->fd, COLL_DEVICE_RUN, &run, sizeof(run));
		if (quiet)
			error = completion(&ring) ?: offload_poll(o, 1, 30);
		while (!quiet) {	/* computing, it would be interrupted */
			struct io_uring_cqe *cqe;

			if (!io_uring_peek_cqe(&ring, &cqe)) {
				error = cqe->res;
				io_uring_cqe_seen(&ring, cqe);
				break;
			}
		}
	}
	*count = interrupts() - before;
	io_uring_queue_exit(&ring);
	return error;
}

/* One rank alone, bound to CPU 1, its thread on CPU 0: only completions interrupt. */
static void completions_cost(void)
{
	static const struct {
		const char *what;
		unsigned int flags;
		bool quiet;
	} ways[] = {
		{ "a word that is polled", 0, true },
		{ "CQEs of a ring as it comes", 0, false },
		{ "CQEs with COOP_TASKRUN", IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
		  false },
	};
	const int links[OFFLOAD_RANKS_MAX] = { -1 };
	struct offload o;
	long schedule, count[3] = { 0 };
	size_t i;

	vm_run_on(1);
	if (offload_open_on(&o, 0, 1, links, 0) || (schedule = load_sum(&o)) < 0) {
		vm_ok(false, "a thread on CPU 0");
		return;
	}
	for (i = 0; i < 3; i++) {
		if (vm_is(count_interrupts(&o, schedule, ways[i].flags, ways[i].quiet, &count[i]),
			  0, ways[i].what))
			vm_note("%s: %ld interrupts for %d runs, submissions included",
				ways[i].what, count[i], RUNS);
	}
	vm_ok(count[0] < count[1], "a polled word costs fewer interrupts than a CQE");
	coll_offload_close(&o);
}

/* ---- exec() ------------------------------------------------------------------------------ */

/* Is another program, whose argument is where to tell that, with a command in flight that nothing ends. */
static void become_another(int tell)
{
	const int links[OFFLOAD_RANKS_MAX] = { -1 };
	struct coll_device_number word = { .number = 5 };
	struct io_uring ring;
	struct offload o;
	char number[16];

	if (coll_offload_open(&o, 0, 1, links) || io_uring_queue_init(8, &ring, 0) ||
	    submit(&ring, o.fd, COLL_DEVICE_WAIT, &word, sizeof(word)) != 1)
		_exit(1);
	snprintf(number, sizeof(number), "%d", tell);
	execl("/proc/self/exe", "offload_uring_test", number, NULL);
	_exit(2);
}

static void exec_ends_commands(void)
{
	struct pollfd hear;
	int ends[2];
	pid_t child;

	if (pipe(ends))
		return;
	hear = (struct pollfd){ ends[0], POLLIN, 0 };
	fflush(stdout);
	child = fork();
	if (!child)
		become_another(ends[1]);
	close(ends[1]);
	vm_ok(poll(&hear, 1, EXEC_MS * vm_slowness()) == 1 && hear.revents & POLLIN,
	      "exec() with a command in flight that nothing ends");
	kill(child, SIGKILL);
	vm_ok(VM_COMES(waitpid(child, NULL, WNOHANG) == child), "and the program can be killed");
	close(ends[0]);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return write(atoi(argv[1]), "", 1) != 1;
	vm_loopback_up();
	vm_ok(!offload_ranks(2, cqe_and_word, 60), "CQE, word, and waiting for a word");
	completions_cost();
	exec_ends_commands();
	return vm_end();
}
