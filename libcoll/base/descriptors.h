/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_DESCRIPTORS_H
#define COLL_DESCRIPTORS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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
 * A file of memory that can be sealed and never executed, which is all that some machines allow
 * (vm.memfd_noexec=2); exec() closes it. -1 and errno.
 */
int coll_memory_file(const char *name);

/*
 * Allocates so many bytes of it: a write to them cannot fail later. Linux before 6.12 stops at any
 * signal, also when io_uring has something to tell the thread, which it does on the way back.
 */
bool coll_file_fill(int fd, uint64_t bytes);

/* Of a file that other processes map: what can shrink would kill them when they read it. */
#define COLL_SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
/* Nor can anybody take pages out of it or map it to write, who has not; and this is for good. */
#define COLL_FILE_SEALS (COLL_SIZE_SEALS | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

/* The bytes of a file of memory that has all of these seals; 0: it has not, or is another. */
uint64_t coll_file_sealed(int fd, int seals);
/* Whether all pages of a file of memory of so many bytes are there. It may lose them again, unless that is sealed. */
bool coll_file_is_whole(int fd, uint64_t bytes);

/* Whether the connection is one over a Unix socket: between ranks, of one node. */
bool coll_connection_is_unix(int fd);

/*
 * Whether peers may send descriptors; connections inherit it of the listening socket. The last
 * reference to a file that somebody made so may take any time to close. False: Linux before 6.16.
 */
bool coll_connection_accepts_descriptors(int fd, bool accepts);

/* send(2) and recv(2) with a descriptor beside the bytes. fd -1: none. Not blocking. */
ssize_t coll_send_with_descriptor(int socket, const void *data, size_t bytes, int fd);
/* Closes what *fd has if others come; of several at once none is kept. */
ssize_t coll_recv_with_descriptor(int socket, void *data, size_t bytes, int *fd);

#endif
