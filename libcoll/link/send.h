/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The sending half of struct coll_socket_ops, which link_up.c puts into its table. */
#ifndef COLL_LINK_SEND_H
#define COLL_LINK_SEND_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

struct coll_socket;

bool coll_link_wants_send(struct coll_socket *socket);
int coll_link_send_iov(struct coll_socket *socket, struct iovec *iov, int max);
bool coll_link_sends_quietly(const struct coll_socket *socket);
void coll_link_sent(struct coll_socket *socket, ssize_t result);

#endif
