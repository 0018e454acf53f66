// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <string.h>
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

int node_write_small(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const ssize_t written = fd < 0 ? -1 : write(fd, text, strlen(text));
	const int error = errno;

	if (fd >= 0)
		close(fd);
	return written < 0 ? -error : 0;
}
