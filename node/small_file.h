/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef NODE_SMALL_FILE_H
#define NODE_SMALL_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The first bytes - 1 bytes of a file, as text. False: it is empty, or cannot be read. */
bool node_read_small(const char *path, char *text, size_t bytes);
/* The text in one write(2), as files of the kernel want it, to a file that is there. 0 or -errno. */
int node_write_small(const char *path, const char *text);

#endif
