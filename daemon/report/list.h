/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The jobs of this node, as JSON and as a page with links to their reports. */
#ifndef COLL_DAEMON_LIST_H
#define COLL_DAEMON_LIST_H

#include <jansson.h>
#include <stdio.h>

#include "gather.h"

/* NULL: no memory. */
json_t *report_list_json(const struct report_gathered *gathered, const char *node);
void report_list_page(const struct report_gathered *gathered, const char *node, FILE *to);

#endif
