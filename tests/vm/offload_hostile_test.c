// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Hostile peers: rank 0 uses /dev/coll, the other ranks are sockets of this process that
 * write any header and read when they like. No header hangs a request, exhausts memory
 * or spoils a queue.
 */
#include <errno.h>
#include <liburing.h>
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

enum { HASH = 7, PINGS = 200000, PONGS_MAX = 3000, PATIENCE_S = 5 };

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
	if (!*only || !strcmp(only, "sends"))
		failure_between_completions();
	return vm_end();
}
