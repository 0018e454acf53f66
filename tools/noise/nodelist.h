/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Names of nodes, as --hosts and Slurm list them: a,b or n[1-3,07-09],m2. */
#ifndef COLL_NOISE_NODELIST_H
#define COLL_NOISE_NODELIST_H

#include <stdbool.h>

#include "core/port.h"

enum { NODELIST_MAX = 4096, NODELIST_NAME = 256 };

struct noise_nodelist {
	char **name;
	u32 count;
};

/* False: it is no such list, or of more names than NODELIST_MAX; then there is nothing to free. */
bool noise_nodelist_read(struct noise_nodelist *list, const char *text);
/* With commas between. NULL: no memory. */
char *noise_nodelist_join(const struct noise_nodelist *list);
void noise_nodelist_free(struct noise_nodelist *list);

#endif
