// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "in_path.h"

bool in_path(const char *program)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];

	while (path && *path) {
		const int length = strcspn(path, ":");

		snprintf(file, sizeof(file), "%.*s/%s", length, path, program);
		if (length && !access(file, X_OK))
			return true;
		path += length + (path[length] == ':');
	}
	return false;
}
