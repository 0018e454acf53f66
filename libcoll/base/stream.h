/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Whole messages over a stream socket, by a deadline: for short exchanges outside of any engine.
 *
 * Not SO_RCVTIMEO: a receive with such a limit ends with EINTR at any signal, SA_RESTART or not,
 * and at work that a closed io_uring left for the thread; begun again, it begins its limit again.
 */
#ifndef COLL_STREAM_H
#define COLL_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * 0: all went out, or came. -ETIMEDOUT: not by the deadline (of coll_now()); -ECONNRESET: the
 * other end has closed; else a -errno of the socket. A part may then have been moved. The socket
 * may be blocking or not.
 */
int coll_stream_send(int fd, const void *data, size_t bytes, uint64_t deadline);
int coll_stream_receive(int fd, void *data, size_t bytes, uint64_t deadline);

/* The same, of which *got bytes are here: after -ETIMEDOUT it may go on. */
int coll_stream_receive_rest(int fd, void *data, size_t bytes, size_t *got, uint64_t deadline);

/* Connects a socket that does not block: 0, -ETIMEDOUT or another -errno. */
int coll_stream_connect(int fd, const void *to, socklen_t bytes, uint64_t deadline);

/* Waits for poll's events: 0, -ETIMEDOUT or another -errno. */
int coll_stream_wait(int fd, short events, uint64_t deadline);

/* Milliseconds left, rounded up, so that a poll does not spin in the last one. */
int coll_ms_until(uint64_t deadline);

#endif
