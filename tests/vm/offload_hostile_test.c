// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Hostile peers: rank 0 uses /dev/coll, the other ranks are sockets of this process that
 * write any header and read when they like. No header hangs a request, exhausts memory
 * or spoils a queue.
 */
#include <errno.h>
#include <liburing.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/build.h"
#include "tests/lib/schedules.h"
#include "offload.h"
#include "vm.h"

enum {
	HASH = 7, PINGS = 200000, PONGS_MAX = 3000, PATIENCE_S = 5,
	GIVEN_UP_MS = 1500,		/* after a failure the module discards what is queued */
	KEPT = 30000, COMMAND_MS = 400,	/* the emulator takes ten times as long as a machine */
};

static int links[OFFLOAD_RANKS_MAX][OFFLOAD_RANKS_MAX];

/* ---- peers ----------------------------------------------------------------------- */

static struct coll_header control(enum coll_message_kind kind, u32 slot, u32 hash)
{
	return (struct coll_header){
		.kind = kind, .version = COLL_WIRE_VERSION, .slot = slot, .hash = hash,
	};
}

static bool peer_send(u32 rank, struct coll_header header)
{
	return send(links[rank][0], &header, sizeof(header), MSG_NOSIGNAL) == sizeof(header);
}

/* The next header that rank 0 sent to this peer; false: none came in time. */
static bool peer_receive(u32 rank, struct coll_header *header)
{
	const struct timeval limit = { .tv_sec = PATIENCE_S };

	setsockopt(links[rank][0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return recv(links[rank][0], header, sizeof(*header), MSG_WAITALL) == sizeof(*header);
}

static void hostile_open(struct offload *o, u32 ranks)
{
	offload_connect(links, ranks);
	vm_is(coll_offload_open(o, 0, ranks, links[0]), 0, "rank 0 attaches its links");
}

static void hostile_close(struct offload *o, u32 ranks)
{
	u32 rank;

	close(o->fd);
	for (rank = 1; rank < ranks; rank++) {
		close(links[0][rank]);
		close(links[rank][0]);
	}
}

/* Waits until rank 0 has received a message of this kind. */
static bool heard(struct offload *o, enum coll_message_kind kind)
{
	const u64 until = offload_now() + PATIENCE_S * 1000000000ull;
	struct coll_device_control got = { .group = o->group };

	while (offload_now() < until) {
		if (!offload_do(o->fd, COLL_DEVICE_CONTROL_GET, &got, sizeof(got)) &&
		    got.header.kind == kind)
			return true;
		usleep(1000);
	}
	return false;
}

/* ---- one system call completes three messages, and the group fails between them -------- */

static long load_three_sends(struct offload *o)
{
	static u64 memory[4096];
	struct coll_schedule *s;
	struct coll_build b;
	u32 first;

	coll_build_init(&b, memory, sizeof(memory), 0, 3);
	first = coll_emit_send(&b, 1, COLL_ADDRESS(COLL_IN, 0), 0);
	coll_emit_send(&b, 1, COLL_ADDRESS(COLL_IN, 0), 0);
	coll_emit_send(&b, 1, COLL_ADDRESS(COLL_IN, 0), 0);
	coll_emit_after(&b, first);
	coll_emit_send(&b, 2, COLL_ADDRESS(COLL_IN, 0), 0);
	return coll_build_finish(&b, &s) ? -EINVAL : offload_load(o, s, HASH);
}

static void failure_between_completions(void)
{
	struct coll_device_control ping = {
		.rank = 1, .header = control(COLL_MESSAGE_PING, COLL_NONE, HASH),
	};
	struct coll_header header = { 0 };
	struct offload o;
	long schedule;
	u32 i;

	hostile_open(&o, 3);
	schedule = load_three_sends(&o);
	vm_ok(schedule >= 0, "three sends to rank 1, then one to rank 2");
	vm_ok(peer_send(2, control(COLL_MESSAGE_BYE, 0, 0)) && heard(&o, COLL_MESSAGE_BYE),
	      "rank 2 leaves");
	vm_is(offload_run(&o, schedule, NULL, NULL, 0, 0), 0, "the run starts");
	vm_is(offload_poll(&o, 0, PATIENCE_S), -ECONNRESET, "it fails at the send to rank 2");
	for (i = 0; i < 3; i++)
		vm_ok(peer_receive(1, &header) && header.kind == COLL_MESSAGE_DATA &&
		      header.slot == i, "rank 1 receives message %u", i);
	vm_ok(peer_receive(1, &header) && header.kind == COLL_MESSAGE_FAIL && header.slot == 2,
	      "rank 1 is told that rank 2 failed");
	ping.group = o.group;
	vm_sleep_ms(GIVEN_UP_MS);	/* else a slow machine may discard a ping that is queued */
	for (i = 0; i < 3; i++) {
		vm_is(offload_do(o.fd, COLL_DEVICE_CONTROL_SEND, &ping, sizeof(ping)), 0,
		      "a ping after the failure is queued");
		vm_ok(peer_receive(1, &header) && header.kind == COLL_MESSAGE_PING,
		      "and arrives whole");
	}
	hostile_close(&o, 3);
}

/* ---- errors that only a kernel may return ----------------------------------------------- */

static int uring_run(struct offload *o, struct io_uring *ring, u32 op, void *argument, u32 bytes)
{
	struct coll_device_command command = { .argument = (uintptr_t)argument, .bytes = bytes };
	struct __kernel_timespec limit = { .tv_sec = PATIENCE_S };
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	int result;

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, o->fd, NULL, 0, 0);
	sqe->cmd_op = op;
	memcpy(sqe->cmd, &command, sizeof(command));
	io_uring_submit(ring);
	result = io_uring_wait_cqe_timeout(ring, &cqe, &limit);
	if (result)
		return result;
	result = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return result;
}

/* 529 is EIOCBQUEUED: a request that returned it would never complete. */
static void error_of_the_kernel(void)
{
	struct coll_device_fail fail = { .error = 512, .failed_rank = 1, .reporter = 1 };
	struct coll_device_run run = {
		.in = { .buffer = COLL_NONE }, .out = { .buffer = COLL_NONE },
	};
	struct coll_device_number word = { 0 };
	struct coll_device_shared *shared;
	struct io_uring ring;
	struct offload o;
	long schedule;

	hostile_open(&o, 3);
	schedule = load_three_sends(&o);
	vm_ok(schedule >= 0 && !io_uring_queue_init(8, &ring, 0), "a schedule, and a ring");
	run.schedule = schedule;
	fail.group = o.group;
	vm_is(offload_do(o.fd, COLL_DEVICE_FAIL, &fail, sizeof(fail)), -EINVAL,
	      "FAIL takes no error above 511");

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, o.fd, 0);
	shared->word[0].status = -529;
	shared->word[0].state = COLL_DEVICE_DONE;
	vm_is(uring_run(&o, &ring, COLL_DEVICE_WAIT, &word, sizeof(word)), -EPROTO,
	      "WAIT completes whatever the program wrote to the word");
	vm_is(offload_do(o.fd, COLL_DEVICE_WAIT, &word, sizeof(word)), -EPROTO, "by ioctl too");

	vm_ok(peer_send(1, control(COLL_MESSAGE_FAIL, 1, 529)) && heard(&o, COLL_MESSAGE_FAIL),
	      "a peer fails the group with error 529");
	vm_is(uring_run(&o, &ring, COLL_DEVICE_RUN, &run, sizeof(run)), -EPROTO,
	      "a run in that group completes");
	munmap(shared, 4096);
	io_uring_queue_exit(&ring);
	hostile_close(&o, 3);
}

static void wake_up(int signal_number)
{
	(void)signal_number;
}

/* 115 is EINPROGRESS: a command that took it for its own would sleep. */
static void error_in_progress(void)
{
	struct offload o;
	long schedule;

	hostile_open(&o, 3);
	schedule = load_three_sends(&o);
	vm_ok(peer_send(1, control(COLL_MESSAGE_FAIL, 1, EINPROGRESS)) &&
	      heard(&o, COLL_MESSAGE_FAIL), "a peer fails the group with EINPROGRESS");
	signal(SIGALRM, wake_up);
	alarm(PATIENCE_S);
	vm_is(offload_run(&o, schedule, NULL, NULL, 0, 0), -EINPROGRESS,
	      "a run in that group is refused at once");
	alarm(0);
	hostile_close(&o, 3);
}

/* ---- messages that are kept ------------------------------------------------------------- */

/* Op 0 receives from rank 2; all others from rank 1, once that is done. */
static long load_receives(struct offload *o, u32 count)
{
	static u64 memory[1 << 19];
	struct coll_schedule *s;
	struct coll_build b;
	u32 first, i;

	coll_build_init(&b, memory, sizeof(memory), 0, 3);
	first = coll_emit_recv(&b, 2, COLL_ADDRESS(COLL_OUT, 0), 0);
	for (i = 0; i < count; i++) {
		coll_emit_after(&b, first);
		coll_emit_recv(&b, 1, COLL_ADDRESS(COLL_OUT, 0), 0);
	}
	return coll_build_finish(&b, &s) ? -EINVAL : offload_load(o, s, HASH);
}

/* Rank 1's message for that receive of the first run. */
static struct coll_header message(u32 slot)
{
	return (struct coll_header){ .kind = COLL_MESSAGE_DATA, .version = COLL_WIRE_VERSION,
				     .slot = slot, .hash = HASH };
}

static bool peer_sends_all(u32 count)
{
	static struct coll_header sent[KEPT];
	u32 i;

	for (i = 0; i < count; i++)
		sent[i] = message(count - 1 - i);	/* the last one first */
	return offload_send_all(links[1][0], sent, count * sizeof(*sent));
}

/* The longest that a command takes until the peer's goodbye has been read. */
static u64 slowest_command(struct offload *o)
{
	const u64 until = offload_now() + PATIENCE_S * vm_slowness() * 1000000000ull;
	struct coll_device_control got = { .group = o->group };
	u64 begun, slowest = 0;
	long result = -EAGAIN;

	while (result == -EAGAIN && offload_now() < until) {
		begun = offload_now();
		result = offload_do(o->fd, COLL_DEVICE_CONTROL_GET, &got, sizeof(got));
		if (offload_now() - begun > slowest)
			slowest = offload_now() - begun;
	}
	return result ? UINT64_MAX : slowest;
}

/* The work for each message, and for the end of its link, must not grow with all that are kept. */
static void many_kept(void)
{
	struct offload o;
	long schedule;
	u64 slowest;

	hostile_open(&o, 3);
	schedule = load_receives(&o, KEPT);
	vm_ok(schedule >= 0, "a receive from rank 2, then 30,000 from rank 1");
	vm_is(offload_run(&o, schedule, NULL, NULL, 0, 0), 0, "the run starts");
	vm_ok(peer_sends_all(KEPT) && peer_send(1, control(COLL_MESSAGE_BYE, 0, 0)),
	      "rank 1 sends all, the last one first, and leaves");
	slowest = slowest_command(&o);
	vm_note("a command took %.1f ms at most", slowest / 1e6);
	vm_ok(slowest < COMMAND_MS * 1000000ull * vm_slowness(), "commands are answered meanwhile");
	vm_ok(peer_send(2, message(0)), "rank 2 sends");
	vm_is(offload_poll(&o, 0, PATIENCE_S * vm_slowness()), 0, "each message is found");
	hostile_close(&o, 3);
}

static void same_twice(void)
{
	struct offload o;
	long schedule;

	hostile_open(&o, 3);
	schedule = load_receives(&o, 1);
	vm_ok(peer_send(1, message(0)) && peer_send(1, message(0)) &&
	      peer_send(1, control(COLL_MESSAGE_PING, COLL_NONE, HASH)),
	      "a peer sends a message twice, before its run");
	vm_ok(VM_COMES(offload_run(&o, schedule, NULL, NULL, 0, 0) == -EPROTO),
	      "which is against the protocol");
	hostile_close(&o, 3);
}

/* ---- a link that is attached after two attempts that failed ------------------------------- */

static void attach_with(struct io_uring *ring, const struct offload *o,
			struct coll_device_link *link, int fd)
{
	const struct coll_device_command command = { .argument = (uintptr_t)link,
						     .bytes = sizeof(*link) };
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	*link = (struct coll_device_link){ .group = o->group, .rank = 1, .fd = fd };
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, o->fd, NULL, 0, 0);
	sqe->cmd_op = COLL_DEVICE_ATTACH;
	sqe->flags = IOSQE_IO_HARDLINK;
	memcpy(sqe->cmd, &command, sizeof(command));
}

static void attached_at_last(void)
{
	struct coll_device_link link[3], back = { .rank = 1, .fd = -1 };
	const int loose = socket(AF_INET, SOCK_STREAM, 0);
	struct io_uring ring;
	struct offload o;
	long schedule;

	hostile_open(&o, 3);
	back.group = o.group;
	vm_is(offload_do(o.fd, COLL_DEVICE_DETACH, &back, sizeof(back)), 0, "a link is taken back");
	vm_is(io_uring_queue_init(8, &ring, 0), 0, "a ring");
	attach_with(&ring, &o, &link[0], -1);
	attach_with(&ring, &o, &link[1], loose);
	attach_with(&ring, &o, &link[2], links[0][1]);
	vm_is(io_uring_submit_and_wait(&ring, 3), 3, "no socket, a loose one, and the right one");
	schedule = load_receives(&o, 1);
	vm_is(offload_run(&o, schedule, NULL, NULL, 0, 0), 0, "a run");
	vm_ok(peer_send(2, message(0)) && peer_send(1, message(0)), "whose messages come");
	vm_is(offload_poll(&o, 0, PATIENCE_S), 0, "ends: the link is read");
	io_uring_queue_exit(&ring);
	close(loose);
	hostile_close(&o, 3);
}

/* ---- a flood of pings ------------------------------------------------------------------- */

static bool flood(u32 rank)
{
	const struct coll_header ping = control(COLL_MESSAGE_PING, COLL_NONE, HASH);
	struct coll_header pings[1000];
	int i, n;

	for (i = 0; i < 1000; i++)
		pings[i] = ping;
	for (n = 0; n < PINGS; n += 1000)
		if (send(links[rank][0], pings, sizeof(pings), MSG_NOSIGNAL) != sizeof(pings))
			return false;
	return true;
}

static void pings_unread(void)
{
	const struct timeval limit = { .tv_sec = PATIENCE_S };
	struct coll_header header;
	struct offload o;
	int pongs = 0, small = 4096;

	offload_connect(links, 2);
	setsockopt(links[0][1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	setsockopt(links[1][0], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	setsockopt(links[1][0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	vm_is(coll_offload_open(&o, 0, 2, links[0]), 0, "a link with small buffers");
	vm_ok(flood(1), "a peer sends 200,000 pings and reads nothing");
	while (pongs < PONGS_MAX && peer_receive(1, &header) && header.kind == COLL_MESSAGE_PONG)
		pongs++;
	vm_note("%d pongs were kept", pongs);
	vm_ok(pongs > 0 && pongs < PONGS_MAX, "the kernel does not keep a pong for each");
	vm_ok(peer_send(1, control(COLL_MESSAGE_PING, COLL_NONE, HASH)) &&
	      peer_receive(1, &header) && header.kind == COLL_MESSAGE_PONG,
	      "a later ping is answered");
	hostile_close(&o, 2);
}

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : "";

	vm_loopback_up();
	if (!*only || !strcmp(only, "pings"))
		pings_unread();
	if (!*only || !strcmp(only, "errors"))
		error_of_the_kernel();
	if (!*only || !strcmp(only, "errors"))
		error_in_progress();
	if (!*only || !strcmp(only, "kept"))
		many_kept();
	if (!*only || !strcmp(only, "twice"))
		same_twice();
	if (!*only || !strcmp(only, "attach"))
		attached_at_last();
	if (!*only || !strcmp(only, "sends"))
		failure_between_completions();
	return vm_end();
}
