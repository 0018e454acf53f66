// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * silent_clients SOCKET USER COUNT SECONDS: becomes the user, connects so often to colld's
 * socket, says nothing, and keeps the connections that stay. Prints how many connections were
 * made, then holds still until standard input ends or the time is over.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void become(uid_t user)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (!user)
		return;
	if (setresgid(user, user, user) || setresuid(user, user, user)) {
		perror("setresuid");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int count, made = 0, i;

	if (argc != 5)
		return 2;
	become(atoi(argv[2]));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[1]);
	count = atoi(argv[3]);
	for (i = 0; i < count; i++) {
		const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		if (fd < 0)
			break;
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
			close(fd);
		else
			made++;
	}
	printf("%d\n", made);
	fflush(stdout);
	poll(&(struct pollfd){ .fd = 0, .events = POLLIN }, 1, atoi(argv[4]) * 1000);
	return 0;
}
