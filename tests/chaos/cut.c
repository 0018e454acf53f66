// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* All that the handler calls is async-signal-safe: its rank may be anywhere. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "cut.h"

enum { DESCRIPTORS_MAX = 256 };

static struct {
	struct board *board;
	int self;
} cut;

/* The rank that this socket is connected to, by the port where it listens; -1: none. */
static int peer_of(int fd)
{
	struct sockaddr_in peer;
	socklen_t bytes = sizeof(peer);
	uint32_t i;

	if (getpeername(fd, (struct sockaddr *)&peer, &bytes) || peer.sin_family != AF_INET)
		return -1;
	for (i = 0; i < cut.board->ranks; i++)
		if (cut.board->rank[i].port == ntohs(peer.sin_port))
			return i;
	return -1;
}

/*
 * To connect to nowhere resets a connection; and with TCP_REPAIR, which needs a capability, the
 * other end is told nothing.
 */
static bool cut_one(int fd)
{
	static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	const int on = 1;

	if (cut.board->cut == CUT_ORDERLY)
		return !shutdown(fd, SHUT_RDWR);
	if (cut.board->cut == CUT_HALF_OPEN &&
	    setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)))
		return false;
	return !connect(fd, &nowhere, sizeof(nowhere));
}

static void handle(int signal)
{
	const int error = errno;
	int fd, peer;

	(void)signal;
	for (fd = 3; fd < DESCRIPTORS_MAX; fd++) {
		peer = peer_of(fd);
		if (peer < 0)
			continue;
		cut.board->rank[cut.self].cut_from |= 1u << peer;
		cut.board->rank[cut.self].cuts += cut_one(fd);
		break;
	}
	errno = error;
}

void cut_on_signal(struct board *board, int self)
{
	const struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };

	cut.board = board;
	cut.self = self;
	sigaction(SIGUSR1, &action, NULL);
}
