/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_TOOLS_CIRCUIT_SOCKET_H
#define COLL_TOOLS_CIRCUIT_SOCKET_H

enum { CIRCUIT_SOCKET_MAX = 107 };	/* bytes of its path */

/* Connects to the colld that manages circuits there; the fd or a negative errno. */
int circuit_socket(const char *path);

#endif
