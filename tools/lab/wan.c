// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The WAN. Each cluster's switch has a port to it; frames from that port enter the queue of the
 * cluster's way out. A queue stores no frames, only a time: a frame leaves when all earlier frames
 * and its own bytes have left at the WAN's rate; if too many bytes wait, it is dropped. It arrives
 * one delay later, so the frames of one way arrive in order and are kept in one ring. The arrival
 * time is the kernel's time stamp: a late forwarder does not reduce the rate.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/arena.h"
#include "lab.h"

enum {
	FRAME_MAX = 1600,
	MACS = 4096,			/* a power of two above the number of MAC addresses */
	BATCH = 64,			/* frames of one way before the next way is served */
};

struct frame {
	uint64_t due;
	uint16_t bytes;
	uint8_t data[FRAME_MAX];
};

/* One way out. Frames head .. tail - 1 of the ring are in flight. */
struct way {
	struct frame *ring;
	uint64_t head, tail, capacity;
	uint64_t free_at;		/* when its last byte has left */
};

struct wan {
	const struct lab *lab;
	const int *port;
	uint32_t ports;
	struct way way[LAB_CLUSTERS_MAX];
	struct {
		uint8_t address[6];
		uint8_t port, known;
	} mac[MACS];			/* port of each MAC address */
	uint64_t random;
};

/* The clock of the kernel's time stamps. */
static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static uint32_t mac_slot(const struct wan *wan, const uint8_t *address)
{
	uint64_t hash = 0;
	uint32_t slot;

	memcpy(&hash, address, 6);
	slot = hash * 0x9e3779b97f4a7c15ull >> 52;
	while (wan->mac[slot].known && memcmp(wan->mac[slot].address, address, 6))
		slot = (slot + 1) % MACS;
	return slot;
}

static void wan_learn(struct wan *wan, const uint8_t *address, uint32_t port)
{
	uint32_t slot = mac_slot(wan, address);

	memcpy(wan->mac[slot].address, address, 6);
	wan->mac[slot].port = port;
	wan->mac[slot].known = 1;
}

/* Sends to the port of the destination address, or to all other ports, as a switch does. */
static void wan_deliver(const struct wan *wan, uint32_t from, const struct frame *frame)
{
	uint32_t slot = mac_slot(wan, frame->data), port;

	for (port = 0; port < wan->ports; port++) {
		if (port == from || (wan->mac[slot].known && wan->mac[slot].port != port))
			continue;
		if (send(wan->port[port], frame->data, frame->bytes, 0) < 0 && errno == EBADF)
			exit(1);
	}
}

/* Delivers frames that are due; returns the time of the next, or 0. */
static uint64_t deliver_due(struct wan *wan)
{
	uint64_t now = now_ns(), next = 0;
	uint32_t i;

	for (i = 0; i < wan->ports; i++) {
		struct way *way = &wan->way[i];

		while (way->head < way->tail && way->ring[way->head % way->capacity].due <= now)
			wan_deliver(wan, i, &way->ring[way->head++ % way->capacity]);
		if (way->head < way->tail &&
		    (!next || way->ring[way->head % way->capacity].due < next))
			next = way->ring[way->head % way->capacity].due;
	}
	return next;
}

static bool is_lost(struct wan *wan)
{
	wan->random = wan->random * 6364136223846793005ull + 1442695040888963407ull;
	return wan->lab->loss > 0 && (wan->random >> 11) * 0x1p-53 < wan->lab->loss;
}

/* A frame arrived at `now`. Returns whether it is queued. */
static bool wan_admit(struct wan *wan, struct way *way, struct frame *frame, uint64_t now)
{
	const double ns_per_byte = wan->lab->wan > 0 ? 8e9 / wan->lab->wan : 0;
	const uint64_t start = way->free_at > now ? way->free_at : now;

	if (start - now > wan->lab->queue * ns_per_byte || is_lost(wan))
		return false;
	way->free_at = start + (uint64_t)(frame->bytes * ns_per_byte);
	frame->due = way->free_at + (uint64_t)(wan->lab->delay * 1e9);
	return true;
}

static uint64_t stamp_of(struct msghdr *message)
{
	const struct cmsghdr *part = CMSG_FIRSTHDR(message);
	struct timespec when;

	if (!part || part->cmsg_type != SCM_TIMESTAMPNS)
		return now_ns();
	memcpy(&when, CMSG_DATA(part), sizeof(when));
	return when.tv_sec * 1000000000ull + when.tv_nsec;
}

static void wan_take(struct wan *wan, uint32_t port)
{
	struct way *way = &wan->way[port];
	int i;

	for (i = 0; i < BATCH && way->tail - way->head < way->capacity; i++) {
		struct frame *frame = &way->ring[way->tail % way->capacity];
		struct iovec iov = { frame->data, sizeof(frame->data) };
		union {
			struct cmsghdr align;
			uint8_t bytes[CMSG_SPACE(sizeof(struct timespec))];
		} control;
		struct msghdr message = {
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control),
		};
		ssize_t bytes = recvmsg(wan->port[port], &message, MSG_DONTWAIT);

		if (bytes < 14)
			return;
		frame->bytes = bytes;
		wan_learn(wan, frame->data + 6, port);
		way->tail += wan_admit(wan, way, frame, stamp_of(&message));
	}
}

/* Capacity for the queue and the frames in flight, if all frames are small. */
static uint64_t ring_capacity(const struct lab *lab)
{
	const double bytes = lab->queue + lab->wan / 8 * lab->delay;
	const double frames = lab->wan > 0 ? bytes / 60 : 1e5;

	return frames < 1000 ? 1000 : frames > 1e5 ? 1e5 : (uint64_t)frames;
}

void lab_forward(const struct lab *lab, const int *port, uint32_t ports)
{
	struct wan *wan = memory_grow(NULL, 1, sizeof(*wan));
	const struct sched_param first = { .sched_priority = 2 };
	struct pollfd poll[LAB_CLUSTERS_MAX];
	uint32_t i;

	memset(wan, 0, sizeof(*wan));
	wan->lab = lab;
	wan->port = port;
	wan->ports = ports;
	wan->random = 1;
	for (i = 0; i < ports; i++) {
		wan->way[i].capacity = ring_capacity(lab);
		wan->way[i].ring = memory_grow(NULL, wan->way[i].capacity, sizeof(struct frame));
		poll[i] = (struct pollfd){ .fd = port[i], .events = POLLIN };
	}
	/* Wakes in time for a frame that is due. Without CAP_SYS_NICE, as well as possible. */
	prctl(PR_SET_TIMERSLACK, 1);
	sched_setscheduler(0, SCHED_FIFO, &first);
	for (;;) {
		const uint64_t next = deliver_due(wan), now = now_ns();
		const uint64_t left = next > now ? next - now : 0;
		const struct timespec wait = { left / 1000000000, left % 1000000000 };

		if (ppoll(poll, ports, next ? &wait : NULL, NULL) <= 0)
			continue;
		for (i = 0; i < ports; i++)
			if (poll[i].revents)
				wan_take(wan, i);
	}
}
