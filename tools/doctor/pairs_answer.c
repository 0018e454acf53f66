// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "libcoll/boot/store.h"
#include "pairs_answer.h"

enum { CONNECTIONS_MAX = 4096 };

#define ANSWER_NS (120 * COLL_SECOND)	/* longer than any run of the doctor */

struct answers {
	struct pollfd fd[CONNECTIONS_MAX + 1];	/* the first one listens */
	int got[CONNECTIONS_MAX + 1];		/* bytes of the token so far */
	int count;
	unsigned char token[PAIRS_TOKEN];
};

uint64_t pairs_time_of_day(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * COLL_SECOND + now.tv_nsec;
}

static void answers_take(struct answers *answers)
{
	const int fd = accept4(answers->fd[0].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (answers->count > CONNECTIONS_MAX) {
		close(fd);
		return;
	}
	answers->got[answers->count] = 0;
	answers->fd[answers->count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* False: the connection has ended, or did not begin with the token. */
static bool answers_read(struct answers *answers, int index)
{
	unsigned char byte[PAIRS_TOKEN + 64];
	const ssize_t bytes = recv(answers->fd[index].fd, byte, sizeof(byte), 0);
	uint64_t now;
	ssize_t i;

	if (bytes <= 0)
		return bytes < 0 && errno == EAGAIN;
	for (i = 0; i < bytes; i++) {
		if (answers->got[index] < PAIRS_TOKEN) {
			if (byte[i] != answers->token[answers->got[index]++])
				return false;
			continue;
		}
		now = pairs_time_of_day();
		if (send(answers->fd[index].fd, &now, sizeof(now), MSG_NOSIGNAL) != sizeof(now))
			return false;
	}
	return true;
}

static void answers_drop(struct answers *answers, int index)
{
	close(answers->fd[index].fd);
	answers->fd[index] = answers->fd[--answers->count];
	answers->got[index] = answers->got[answers->count];
}

static void answers_serve(struct answers *answers)
{
	const uint64_t until = coll_now() + ANSWER_NS;
	int i;

	while (coll_now() < until &&
	       (poll(answers->fd, answers->count, 1000) >= 0 || errno == EINTR)) {
		for (i = answers->count - 1; i > 0; i--)
			if (answers->fd[i].revents && !answers_read(answers, i))
				answers_drop(answers, i);
		if (answers->fd[0].revents)
			answers_take(answers);
	}
	_exit(0);
}

static int port_of(int fd)
{
	char address[COLL_STORE_ADDRESS_MAX], *colon;

	if (coll_store_address(fd, address, sizeof(address)) || !(colon = strrchr(address, ':')))
		return -1;
	return atoi(colon + 1);
}

pid_t pairs_answer(unsigned char token[PAIRS_TOKEN], int *port)
{
	struct answers *answers = calloc(1, sizeof(*answers));
	const pid_t parent = getpid();
	pid_t child = -1;
	int fd = -1;

	if (answers && getrandom(token, PAIRS_TOKEN, 0) == PAIRS_TOKEN &&
	    !coll_store_listen_anywhere(false, &fd) && (*port = port_of(fd)) > 0) {
		memcpy(answers->token, token, PAIRS_TOKEN);
		answers->fd[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
		answers->count = 1;
		child = fork();
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() == parent)
				answers_serve(answers);
			_exit(0);
		}
	}
	if (fd >= 0)
		close(fd);
	free(answers);
	return child;
}
