/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * By which names a browser may ask. A page of elsewhere can have its own name resolve to an address of this
 * node, and read what is served there as if that were its own (DNS rebinding); the request then has that name as
 * Host. An address there is nobody's name.
 */
#ifndef COLL_DAEMON_HOST_H
#define COLL_DAEMON_HOST_H

#include <stdbool.h>

/* Whether a list is names of hosts with commas between them. */
bool colld_host_are_names(const char *names);
/*
 * Whether `host`, a Host header, is an address, localhost, a name of this node by gethostname(), whole or up to its
 * first dot, or one of `names` (may be NULL), each with any port.
 */
bool colld_host_is_here(const char *host, const char *names);

#endif
