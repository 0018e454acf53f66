/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Shared connections by themselves: two muxes in one process, joined by a wire that a fake
 * engine moves as it likes. Each has three links, in groups of their own. The wire may be
 * sealed, and a test may change what is on it. Above the links is a fake floor, which counts.
 */
#ifndef TESTS_TWO_SIDES_H
#define TESTS_TWO_SIDES_H

#include "libcoll/link/link.h"
#include "libcoll/transport/channel.h"

enum { SIDES = 2, GROUPS = 3, BYTES = 100000, MESSAGES = 8, WIRE = 1 << 22 };

/* A process: its context and its end of the connection. */
struct side {
	struct coll_context context;
	struct coll_flight_page flight;
	struct coll_boot boot;
	struct coll_group group[GROUPS];
	struct coll_link *links[GROUPS][SIDES];
	uint32_t world[SIDES];
	uint8_t *wire;			/* WIRE bytes: on its way to this side */
	uint64_t written, read;
	struct iovec receive[COLL_RECV_IOV_MAX];
	int entries;			/* of a receive under way; 0: to any buffer */
};

/* What the links of a side and a group have told the floor above. */
struct side_events {
	int begun, ended, lost, closing, sent, failed;
};

extern struct side side[SIDES];
extern struct side_events told[SIDES][GROUPS];
/* Messages of BYTES bytes of the payload, and where such messages arrive. */
extern struct coll_message message[SIDES][GROUPS][MESSAGES];
extern uint8_t payload[BYTES], received[SIDES][GROUPS][BYTES];

/* All links are up. Aborts if the two sides do not get there. */
void sides_begin(bool sealed);
/* Frees it all. */
void sides_end(void);

/* One transfer of at most `max` bytes, as a socket that takes or has no more. */
void sides_send(struct side *from, struct coll_socket *socket, uint64_t max);
void sides_recv(struct side *to, struct coll_socket *socket, uint64_t max);
/* Work of both sides until there is none, with transfers of at most `max` bytes. */
void sides_move(uint64_t max);

/* If the side watches the descriptor: it has these poll(2) events. */
bool sides_ready(int which, int fd, int ready_events);

/* The link of this side in this group. */
struct coll_link *link_at(int which, int group);
/* It waits for so many messages more; it sends messages first, first + 1, ... */
void expect_from(int which, int group, uint32_t messages);
void send_from(int which, int group, int first, int count);

#endif
