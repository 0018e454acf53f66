// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * half_notified SOCKET: a manager of circuits that dies at the worst moment. When ranks of
 * two nodes have requested their circuit, it notifies n0 that the circuit is up, and ends
 * before it has notified the other. Fails if there are no requests within a minute.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "uapi/coll_circuit.h"

enum { CLIENTS_MAX = 8, PATIENCE_S = 60 };

static struct client {
	bool is_n0, requests;
	uint64_t cookie;	/* of its request */
} client[CLIENTS_MAX];
static struct pollfd fds[CLIENTS_MAX + 1];	/* the last is the listener's */
static int clients;

static void say(int fd, uint16_t kind, uint64_t cookie)
{
	const struct coll_circuit_message m = {
		.magic = COLL_CIRCUIT_MAGIC, .version = COLL_CIRCUIT_VERSION,
		.kind = kind, .cookie = cookie,
	};

	send(fd, &m, sizeof(m), MSG_NOSIGNAL);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(address.sun_path, path);
	unlink(path);
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, CLIENTS_MAX) ?
	       -1 : fd;
}

static void serve(int who)
{
	const int fd = fds[who].fd;
	struct coll_circuit_message m;

	if (recv(fd, &m, sizeof(m), MSG_WAITALL) != sizeof(m)) {
		fds[who].fd = -1;
	} else if (m.kind == COLL_CIRCUIT_MSG_REQUEST) {
		client[who].requests = true;
		client[who].cookie = m.cookie;
	} else {
		if (m.kind == COLL_CIRCUIT_MSG_HELLO)
			client[who].is_n0 = !strcmp(m.hello.node, "n0");
		say(fd, COLL_CIRCUIT_MSG_ANSWER, m.cookie);
	}
}

static bool notify_one_of_two(void)
{
	int i, n0 = -1, requesting = 0;

	for (i = 0; i < clients; i++) {
		requesting += client[i].requests;
		if (client[i].requests && client[i].is_n0)
			n0 = i;
	}
	if (requesting < 2 || n0 < 0)
		return false;
	say(fds[n0].fd, COLL_CIRCUIT_MSG_UP, client[n0].cookie);
	return true;
}

int main(int argc, char **argv)
{
	const int listener = argc == 2 ? listen_at(argv[1]) : -1;
	int i;

	if (listener < 0)
		return 2;
	alarm(PATIENCE_S);
	while (!notify_one_of_two()) {
		fds[clients] = (struct pollfd){ listener, POLLIN, 0 };
		poll(fds, clients + 1, -1);
		for (i = 0; i < clients; i++)
			if (fds[i].revents)
				serve(i);
		if (fds[clients].revents && clients < CLIENTS_MAX)
			fds[clients++] = (struct pollfd){ accept(listener, NULL, NULL), POLLIN, 0 };
	}
	return 0;
}
