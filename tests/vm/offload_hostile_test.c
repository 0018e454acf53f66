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

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : "";

	vm_loopback_up();
	if (!*only || !strcmp(only, "sends"))
		failure_between_completions();
	return vm_end();
}
