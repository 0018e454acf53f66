/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What several programs of the test machine ask of the module by netlink. */
#ifndef TESTS_VM_ASK_H
#define TESTS_VM_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "node/netlink.h"

/* For netlink_ask(): the answer's attributes do not matter. */
int ask_nothing(enum coll_command command, struct nlattr **attributes, void *data);
/* A whole dump: 0 or -errno. */
int ask_dump(struct netlink *netlink, enum coll_command command);
/* Attribution on CPU 1 begins: 0 or -errno. */
int ask_watch(struct netlink *netlink);
/* Noise on CPU 1 every 10 ms, for so many ns, in hard interrupts: 0 or -errno. */
int ask_noise(struct netlink *netlink, uint64_t duration);

/* Asks for this dump on a socket of its own, of which nothing is received yet; frees the message. Returns the socket. */
int ask_slowly(struct netlink *netlink, struct nl_msg *message);
/* One part of it, as the kernel sends it. 0; 1: it was the last one; or -errno. */
int ask_receive(int fd, netlink_answer answer, void *data);

/* A part of a test, by its name. */
struct ask_part {
	const char *name;
	void (*run)(struct netlink *netlink);
};

/* All of a program: its parts, or those that are named; 'exact' before them: no host takes time from this machine. */
int ask_parts(int argc, char **argv, const struct ask_part *parts, size_t count, bool *exact);

#endif
