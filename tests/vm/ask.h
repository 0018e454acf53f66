/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What several programs of the test machine ask of the module by netlink. */
#ifndef TESTS_VM_ASK_H
#define TESTS_VM_ASK_H

#include "node/netlink.h"

/* For netlink_ask(): the answer's attributes do not matter. */
int ask_nothing(enum coll_command command, struct nlattr **attributes, void *data);
/* A whole dump: 0 or -errno. */
int ask_dump(struct netlink *netlink, enum coll_command command);
/* Attribution on CPU 1 begins: 0 or -errno. */
int ask_watch(struct netlink *netlink);
/* Noise on CPU 1 every 10 ms, for so many ns, in hard interrupts: 0 or -errno. */
int ask_noise(struct netlink *netlink, uint64_t duration);

#endif
