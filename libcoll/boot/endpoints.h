/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Addresses at which other nodes reach this one. */
#ifndef COLL_ENDPOINTS_H
#define COLL_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>

/* How many endpoints of one store are tried. */
enum { ENDPOINTS_MAX = 4 };

/* Appends " address" for each such address; returns the new length. */
size_t coll_node_addresses(char *line, size_t length, size_t capacity);

/*
 * Lists "address:port,...,name:port" of this node, at most ENDPOINTS_MAX: other nodes may
 * not resolve the name, or not reach an address. Returns how many.
 */
int coll_node_endpoints(char *list, size_t capacity, unsigned int port);

#endif
