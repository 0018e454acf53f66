// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The connection to colld's socket. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "circuit_socket.h"

enum { DIAL_S = 5 };	/* colld stands still, and its queue of connections is full */

int circuit_socket(const char *path)
{
	const struct timeval patience = { .tv_sec = DIAL_S };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, error;

	if (strlen(path) > CIRCUIT_SOCKET_MAX)
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	error = errno == EAGAIN ? -ETIMEDOUT : -errno;
	close(fd);
	return error;
}
