/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Unix sockets to which any user of the node may connect: whose it is, the kernel says. */
#ifndef COLL_DAEMON_LOCAL_H
#define COLL_DAEMON_LOCAL_H

#include <sys/types.h>

/*
 * A stream socket at that path, which listens and does not block; its folder is made. Where a colld that was
 * killed has left one it takes its place. -errno, which is logged; -EADDRINUSE: somebody listens there.
 * Peers can send it no descriptors from Linux 6.16 on; before, who receives must drop them (closer.h).
 */
int colld_local_listen(const char *path);
/* The user at the other end. */
uid_t colld_local_user(int fd);

#endif
