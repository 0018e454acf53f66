/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_DESCRIPTORS_H
#define COLL_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * After EMFILE: raises the soft limit of file descriptors to the hard one. True: it was lower, so
 * trying again helps. Only where connections need it: select() cannot take descriptors from
 * FD_SETSIZE on, and children inherit the limit.
 */
bool coll_descriptors_raise(void);

/*
 * Whether a file of this process may have so many bytes. To exceed the limit (ulimit -f), which
 * holds for a memfd too, is a signal that ends the process: ask before.
 */
bool coll_file_may_have(uint64_t bytes);

/*
 * Allocates so many bytes of it: a write to them cannot fail later. Linux before 6.12 stops at any
 * signal, also when io_uring has something to tell the thread, which it does on the way back.
 */
bool coll_file_fill(int fd, uint64_t bytes);

/* Whether the connection is one over a Unix socket: between ranks, of one node. */
bool coll_connection_is_unix(int fd);

#endif
