/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A process that is short of file descriptors, for tests. */
#ifndef TESTS_FILES_H
#define TESTS_FILES_H

/* Takes all descriptors below `limit` but the `free` lowest. */
void files_leave(int limit, int free);

#endif
