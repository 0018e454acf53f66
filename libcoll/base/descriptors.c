// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "descriptors.h"

bool coll_descriptors_raise(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= files.rlim_max)
		return false;
	files.rlim_cur = files.rlim_max;
	return !setrlimit(RLIMIT_NOFILE, &files);
}

bool coll_file_may_have(uint64_t bytes)
{
	struct rlimit files;

	return getrlimit(RLIMIT_FSIZE, &files) || files.rlim_cur >= bytes;
}

bool coll_file_fill(int fd, uint64_t bytes)
{
	int error;

	do
		error = fallocate(fd, 0, 0, bytes);
	while (error && errno == EINTR);
	return !error;
}

bool coll_connection_is_unix(int fd)
{
	int domain = 0;
	socklen_t bytes = sizeof(domain);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) && domain == AF_UNIX;
}
