// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Connections to the ranks' ports: silent ones, garbage, a hello's beginning. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "round.h"
#include "tests/lib/interpret.h"
#include "uapi/coll_wire.h"

enum { OPEN_MAX = 300 };	/* beyond, the oldest is closed */

struct strangers {
	u64 random;
	enum kind kind;
	uint32_t made;
	int fd[OPEN_MAX];
};

struct strangers *strangers_make(uint64_t seed, enum kind kind)
{
	struct strangers *strangers = calloc(1, sizeof(*strangers));
	int i;

	if (!strangers)
		abort();
	strangers->random = seed | 1;
	strangers->kind = kind;
	for (i = 0; i < OPEN_MAX; i++)
		strangers->fd[i] = -1;
	return strangers;
}

/* Nothing, noise, or a hello that is right up to where its proof begins. */
static void say_something(struct strangers *strangers, int fd)
{
	uint8_t bytes[300];
	size_t length = interpret_random(&strangers->random, sizeof(bytes)), i;

	for (i = 0; i < length; i++)
		bytes[i] = interpret_random(&strangers->random, 256);
	if (interpret_random(&strangers->random, 3))
		send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int visit(struct strangers *strangers, int port)
{
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int *slot = &strangers->fd[strangers->made % OPEN_MAX];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (*slot >= 0)
		close(*slot);
	*slot = fd;
	strangers->made++;
	connect(fd, (const struct sockaddr *)&to, sizeof(to));
	return fd;
}

/* Its port may be another rank's: then the process that it names is not there either. */
static uint32_t replay(struct strangers *strangers, const struct board *board,
		       const struct board_rank *from)
{
	const struct board_rank *any = &board->rank[interpret_random(&strangers->random,
								     board->ranks)];
	const bool astray = any->port && !interpret_random(&strangers->random, 4);
	int fd;

	if (!from->hello_port || interpret_random(&strangers->random, 3))
		return 0;
	fd = visit(strangers, astray ? any->port : from->hello_port);
	if (fd < 0)
		return 0;
	send(fd, &from->hello, sizeof(from->hello), MSG_DONTWAIT | MSG_NOSIGNAL);
	if (interpret_random(&strangers->random, 4))
		send(fd, &from->proof, sizeof(from->proof), MSG_DONTWAIT | MSG_NOSIGNAL);
	return 1;
}

uint32_t strangers_poll(struct strangers *strangers, const struct board *board)
{
	uint32_t i, made = 0;

	for (i = 0; i < board->ranks; i++) {
		const struct board_rank *rank = &board->rank[i];
		const int port = strangers->kind == KIND_STORE ? board->store_port : rank->port;
		int fd;

		if (strangers->kind == KIND_REPLAY) {
			made += replay(strangers, board, rank);
			continue;
		}
		if (!port || interpret_random(&strangers->random, 3))
			continue;
		fd = visit(strangers, port);
		if (fd >= 0)
			say_something(strangers, fd);
		made += fd >= 0;
	}
	return made;
}

void strangers_end(struct strangers *strangers)
{
	int i;

	for (i = 0; strangers && i < OPEN_MAX; i++)
		if (strangers->fd[i] >= 0)
			close(strangers->fd[i]);
	free(strangers);
}
