// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "descriptors.h"

void files_leave(int limit, int free)
{
	struct rlimit files = { .rlim_cur = limit, .rlim_max = limit };
	int taken[limit], count = 0, i;

	if (setrlimit(RLIMIT_NOFILE, &files))
		abort();
	while (count < limit && (taken[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		count++;
	if (count < free)
		abort();
	for (i = 0; i < free; i++)
		close(taken[i]);
}

int files_listener(int *port)
{
	struct sockaddr_storage address;
	socklen_t bytes;
	int fd, listens;

	for (fd = 0; fd < 1024; fd++) {
		bytes = sizeof(listens);
		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) || !listens)
			continue;
		bytes = sizeof(address);
		if (getsockname(fd, (struct sockaddr *)&address, &bytes) ||
		    (address.ss_family != AF_INET && address.ss_family != AF_INET6))
			continue;
		*port = ntohs(address.ss_family == AF_INET6 ?
				      ((struct sockaddr_in6 *)&address)->sin6_port :
				      ((struct sockaddr_in *)&address)->sin_port);
		return fd;
	}
	return -1;
}
