// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdio.h>

#include "algo.h"

const char *coll_late_print(const u32 rank[COLL_LATE_MAX], char *text, size_t bytes)
{
	size_t used = 0;
	u32 i;

	*text = '\0';
	for (i = 0; i < COLL_LATE_MAX && rank[i] != COLL_NONE && used < bytes; i++)
		used += snprintf(text + used, bytes - used, "%s%u", i ? "+" : "", rank[i]);
	return text;
}

const char *coll_late_links_print(const struct coll_late *late, char *text, size_t bytes)
{
	if (late->peer == COLL_NONE)
		snprintf(text, bytes, "its links");
	else
		snprintf(text, bytes, "its link to rank %u", late->peer);
	return text;
}
