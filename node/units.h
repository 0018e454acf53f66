/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Times and shares as people write and read them; coll_text_time() reads times. */
#ifndef COLL_NODE_UNITS_H
#define COLL_NODE_UNITS_H

#include "core/port.h"

#define NODE_NS 1ull
#define NODE_US 1000ull
#define NODE_MS 1000000ull
#define NODE_S 1000000000ull

/* "2.50 ms"; three digits. Returns `text`. */
char *node_time_text(double ns, char text[24]);
/* "2.5%" or "0.025": a share of 1. */
bool node_share_read(const char *text, double *share);

#endif
