/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* All that coll.ko says of watches, to the nanosecond: more than colld asks for (node/watched.h). */
#ifndef COLL_TESTS_VM_WATCHES_H
#define COLL_TESTS_VM_WATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "node/netlink.h"

/* A source of a CPU; or, last, the CPU. What is not said is 0. */
struct watches_said {
	uint32_t cpu;
	bool is_source;
	uint64_t watched, ran, idle, cost, lost, folded;	/* of a CPU */
	uint8_t state;
	bool own;
	uint32_t index, reused, number;			/* of a source, as all that follows */
	uint8_t cause;
	char name[64];
	uint64_t count, total, inclusive, longest, events;	/* events: of its histogram */
};

/* Of all watches: 0 or -errno. A failure is a check that fails. */
int watches_read(struct netlink *netlink, void (*each)(const struct watches_said *said, void *argument), void *argument);
/* A GET of all on a socket of its own, of which nothing is received yet. Returns the socket. */
int watches_ask(struct netlink *netlink);
/* All of it; the socket is closed. 0 or -errno, which is a check that fails. */
int watches_receive(int fd, void (*each)(const struct watches_said *said, void *argument), void *argument);
/* STARTs one of CPU 1, of this task (0: whatever runs), with a log of so many events: 0 or -errno. */
int watches_start(struct netlink *netlink, uint32_t task, uint32_t log);
/* STOPs all: a check. */
void watches_stop(struct netlink *netlink);

#endif
