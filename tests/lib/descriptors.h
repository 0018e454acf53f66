/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What file descriptors a test's process has. */
#ifndef TESTS_FILES_H
#define TESTS_FILES_H

/* Takes all descriptors below `limit` but the `free` lowest. */
void files_leave(int limit, int free);

/* The descriptor of this process's first listening TCP socket, and its port. -1: it has none. */
int files_listener(int *port);

#endif
