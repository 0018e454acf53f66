/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What file descriptors a test's process has. */
#ifndef TESTS_FILES_H
#define TESTS_FILES_H

#include <stdbool.h>

/* Takes all descriptors below `limit` but the `free` lowest. */
void files_leave(int limit, int free);

/*
 * A connection over loopback whose peer, *peer, reads nothing, with a full queue: its last close
 * takes so many seconds. -1: there is none.
 */
int files_lingering(int seconds, int *peer);

/* Sends one byte with the descriptor, and closes that at once. False, and errno: it was not sent. */
bool files_pass(int to, int fd);

/* The descriptor of this process's first listening TCP socket, and its port. -1: it has none. */
int files_listener(int *port);

#endif
