// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * ask_for_lists SOCKET USER CONNECTIONS SECONDS: becomes the user, and asks colld for its list of
 * circuits on all connections, again and again, without waiting for the answers. Prints how many
 * messages were sent and received.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "uapi/coll_circuit.h"

enum { CONNECTIONS_MAX = 64 };

static struct pollfd fds[CONNECTIONS_MAX];

static int fail(const char *what)
{
	perror(what);
	exit(1);
}

static void open_all(const char *path, int count)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int i;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	for (i = 0; i < count; i++) {
		fds[i] = (struct pollfd){ socket(AF_UNIX, SOCK_STREAM, 0), POLLIN | POLLOUT, 0 };
		if (connect(fds[i].fd, (struct sockaddr *)&address, sizeof(address)))
			fail(path);
	}
}

/* Bytes sent and received. */
static long use(struct pollfd *connection)
{
	static const struct coll_circuit_message ask = { .magic = COLL_CIRCUIT_MAGIC,
							 .version = COLL_CIRCUIT_VERSION,
							 .kind = COLL_CIRCUIT_MSG_SHOW };
	static char answers[1 << 18];
	long bytes = 0, got;

	if (connection->revents & POLLOUT) {
		got = send(connection->fd, &ask, sizeof(ask), MSG_DONTWAIT | MSG_NOSIGNAL);
		bytes += got > 0 ? got : 0;
	}
	if (connection->revents & (POLLIN | POLLHUP)) {
		got = recv(connection->fd, answers, sizeof(answers), MSG_DONTWAIT);
		if (!got)
			connection->fd = -1;	/* poll() passes over it */
		bytes += got > 0 ? got : 0;
	}
	return bytes;
}

int main(int argc, char **argv)
{
	int count, i;
	long bytes = 0;
	time_t end;
	uid_t user;

	if (argc != 5 || atoi(argv[3]) > CONNECTIONS_MAX)
		return 2;
	user = atoi(argv[2]);
	count = atoi(argv[3]);
	if (setresgid(user, user, user) || setresuid(user, user, user))
		fail("setresuid");
	open_all(argv[1], count);
	end = time(NULL) + atoi(argv[4]);
	while (time(NULL) < end && poll(fds, count, 1000) >= 0)
		for (i = 0; i < count; i++)
			bytes += use(&fds[i]);
	printf("%ld\n", bytes / (long)sizeof(struct coll_circuit_message));
	return 0;
}
