/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Closes descriptors that come from another process. The last close of one may block as long as
 * that process has chosen (SO_LINGER), so threads of their own do it.
 */
#ifndef COLL_DAEMON_CLOSER_H
#define COLL_DAEMON_CLOSER_H

#include <sys/socket.h>

/* The most descriptors of one message: the kernel's SCM_MAX_FD. */
enum { CLOSER_RIGHTS_MAX = 253 };

/* Where recvmsg() puts all descriptors of one message. */
union closer_control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(CLOSER_RIGHTS_MAX * sizeof(int))];
};

/* Closes the descriptors that came with a message; returns how many. */
int closer_take(struct msghdr *message);
/* Closes a connected Unix socket, which may hold unread descriptors. */
void closer_close(int fd);

#endif
