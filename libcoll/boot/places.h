/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Where other nodes may reach this one. */
#ifndef COLL_PLACES_H
#define COLL_PLACES_H

#include <stdbool.h>
#include <stddef.h>

/* How many places of one store are tried. */
enum { PLACES_MAX = 4 };

/* Appends " address" for each that others may reach; returns the new length. */
size_t coll_node_addresses(char *line, size_t length, size_t room);

/*
 * Lists "address:port,...,name:port" of this node, at most PLACES_MAX: a name may mean
 * nothing elsewhere, an address lead nowhere. Returns how many.
 */
int coll_node_places(char *list, size_t room, unsigned int port);

#endif
