// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <fcntl.h>
#include <unistd.h>

#include "small_file.h"

/* Without a stream: colld reads some for each new task. */
bool node_read_small(const char *path, char *text, size_t bytes)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t more = 1;

	while (fd >= 0 && more > 0 && length < bytes - 1) {
		more = read(fd, text + length, bytes - 1 - length);
		length += more > 0 ? more : 0;
	}
	if (fd >= 0)
		close(fd);
	text[length] = 0;
	return length > 0;
}
