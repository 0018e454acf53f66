/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The receiving half of struct coll_socket_ops, which link_up.c puts into its table. */
#ifndef COLL_LINK_RECEIVE_H
#define COLL_LINK_RECEIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct coll_socket;

int coll_link_recv_iov(struct coll_socket *socket, struct iovec *iov, bool *whole);
void coll_link_received(struct coll_socket *socket, ssize_t result);
void coll_link_received_in(struct coll_socket *socket, const uint8_t *data, ssize_t result);
void coll_link_received_none(struct coll_socket *socket);

#endif
