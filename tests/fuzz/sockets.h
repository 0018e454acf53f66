/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Sockets whose peer is the fuzzer, in place of the C library's: no kernel, no network. What is
 * not here yet comes later: recv() has nothing, poll() times out at once.
 */
#ifndef TESTS_FUZZ_SOCKETS_H
#define TESTS_FUZZ_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

enum { SOCKETS_FIRST = 1 << 20, SOCKETS_MAX = 16, SOCKET_BYTES = 1 << 16 };

/* All are closed, and the next one is SOCKETS_FIRST. */
void sockets_begin(void);
/* One that the program did not make; -1: there are too many. */
int sockets_make(void);
/* The peer sends this; what does not fit is dropped. Then it ends the connection. */
void sockets_feed(int fd, const void *data, size_t bytes);
void sockets_end(int fd);
/* Bytes that the program has not read. */
size_t sockets_unread(int fd);
bool sockets_is_open(int fd);
/* The next accept() has a connection: its descriptor. -1: there are too many. */
int sockets_connect(void);

/* Called when the program sends; NULL: nothing. It may feed. */
extern void (*sockets_sent)(int fd, const void *data, size_t bytes);

#endif
