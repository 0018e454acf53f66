/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A client of coll.ko's generic netlink family. It builds messages with libnl, sends
 * them, and keeps the kernel's reason for a refusal. What a socket starts belongs to the
 * socket: the kernel stops it when the socket is closed. One thread at a time.
 *
 *	struct nl_msg *message = netlink_message(netlink, COLL_CMD_NOISE_STOP, 0);
 *	nla_put_u32(message, COLL_NOISE_A_ID, id);
 *	error = netlink_ask(netlink, message, NULL, NULL);
 *	if (error)
 *		fprintf(stderr, "%s\n", netlink_reason(netlink));
 */
#ifndef COLL_NODE_NETLINK_H
#define COLL_NODE_NETLINK_H

#include <netlink/attr.h>
#include <netlink/msg.h>

#include "uapi/coll_netlink.h"

struct netlink;

/* -ENOENT: coll.ko is not loaded. After a failure netlink_reason() works; close it too. */
int netlink_open(struct netlink **netlink);
void netlink_close(struct netlink *netlink);

/* `flags` is 0 or NLM_F_DUMP. NULL: no memory. netlink_ask() frees it. */
struct nl_msg *netlink_message(struct netlink *netlink, enum coll_command command, int flags);

/*
 * Sends the message and passes the attributes of each answer to `answer` (an array of at
 * least 64, NULL where there is none). `answer` may be NULL; its negative result is that of the
 * call. Its positive result ends the call: the rest is not read, and the socket is then only to be
 * closed. Returns 0, the kernel's negative errno, or -ETIMEDOUT after 10 seconds.
 */
typedef int (*netlink_answer)(enum coll_command command, struct nlattr **attributes, void *data);
int netlink_ask(struct netlink *netlink, struct nl_msg *message, netlink_answer answer,
		void *data);

/* Why the last call failed, naming the attribute and what is valid. */
const char *netlink_reason(const struct netlink *netlink);
/* Says why, for a message that is not sent. Returns `error`. */
int __attribute__((format(printf, 3, 4))) netlink_fail(struct netlink *netlink, int error,
						       const char *format, ...);

/* Subscribes to events. netlink_events() passes them on when netlink_fd() is readable. */
int netlink_listen(struct netlink *netlink);
int netlink_events(struct netlink *netlink, netlink_answer answer, void *data);
int netlink_fd(const struct netlink *netlink);

/* Number of the family in struct nlmsghdr, for hand-made messages. */
int netlink_family(const struct netlink *netlink);

/* "share" for COLL_NOISE_A_SHARE of a noise command; "?" */
const char *netlink_attribute_name(enum coll_command command, int attribute);

#endif
