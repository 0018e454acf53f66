// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdio.h>

#include "small_file.h"

bool node_read_small(const char *path, char *text, size_t bytes)
{
	FILE *from = fopen(path, "re");
	size_t length = from ? fread(text, 1, bytes - 1, from) : 0;

	text[length] = 0;
	if (from)
		fclose(from);
	return length > 0;
}
