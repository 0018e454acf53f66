// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Paths that were read from a switch. */
#include "switch.h"

bool switch_has_path(const struct switch_path *path, int paths, u32 in, u32 out)
{
	int i;

	for (i = 0; i < paths; i++)
		if (path[i].in == in && path[i].out == out)
			return true;
	return false;
}
