/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A client of coll.ko's generic netlink family, for every program that speaks
 * to the module: it builds messages with libnl, asks, and has what the kernel
 * refuses in words. What a socket starts belongs to it: close it, and the
 * kernel stops that. One thread at a time.
 *
 *	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_STOP, 0);
 *	nla_put_u32(message, COLL_NOISE_A_ID, id);
 *	error = netlink_ask(netlink, message, NULL, NULL);
 *	if (error)
 *		fprintf(stderr, "%s\n", netlink_reason(netlink));
 */
#ifndef COLL_TOOLS_NETLINK_H
#define COLL_TOOLS_NETLINK_H

#include <netlink/attr.h>
#include <netlink/msg.h>

#include "uapi/coll_netlink.h"

struct netlink;

/* -ENOENT: coll.ko is not loaded. After a failure too: the reason is in words, then close. */
int netlink_open(struct netlink **netlink);
void netlink_close(struct netlink *netlink);

/* `flags` is 0 or NLM_F_DUMP. NULL: no memory. netlink_ask() frees it. */
struct nl_msg *netlink_message(struct netlink *netlink, enum coll_command command, int flags);

/*
 * Sends, and has each answer's attributes (at least up to 64, NULL where there
 * is none) given to `answer`, which may be NULL; a negative value from it ends
 * that. Returns when the kernel is done: 0, or its negative errno, or -ETIMEDOUT
 * after 10 seconds.
 */
typedef int (*netlink_answer)(enum coll_command command, struct nlattr **attributes, void *data);
int netlink_ask(struct netlink *netlink, struct nl_msg *message, netlink_answer answer,
		void *data);

/* Why the last call failed, naming the attribute and what is valid. */
const char *netlink_reason(const struct netlink *netlink);

/* A socket that is told events: they come when netlink_fd() is readable. */
int netlink_listen(struct netlink *netlink);
int netlink_events(struct netlink *netlink, netlink_answer answer, void *data);
int netlink_fd(const struct netlink *netlink);

/* Number of the family in struct nlmsghdr, for who sends messages of its own. */
int netlink_family(const struct netlink *netlink);

/* "share" for COLL_NOISE_A_SHARE of a noise command; "?" */
const char *netlink_attribute_name(enum coll_command command, int attribute);

#endif
