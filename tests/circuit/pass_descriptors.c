// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * pass_descriptors SOCKET USER SECONDS: becomes the user, and passes descriptors to colld whose
 * last close takes so many seconds: one in a message that colld reads, one that is still queued
 * when colld disconnects. Says "refused" if the socket takes none, or not the second.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/descriptors.h"

static int fail(const char *what)
{
	perror(what);
	exit(1);
}

/* One byte, which is no message, with a descriptor whose close lingers. False: refused. */
static bool pass(int to, int seconds)
{
	int peer, fd = files_lingering(seconds, &peer);

	if (fd < 0)
		fail("connection over loopback");
	if (files_pass(to, fd))
		return true;
	if (errno != EPERM && errno != EPIPE)
		fail("sendmsg");
	return false;
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int to = socket(AF_UNIX, SOCK_STREAM, 0);
	uid_t user;
	char byte;

	if (argc != 4)
		return 2;
	user = atoi(argv[2]);
	if (setresgid(user, user, user) || setresuid(user, user, user))
		fail("setresuid");
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[1]);
	if (connect(to, (struct sockaddr *)&address, sizeof(address)))
		fail(argv[1]);
	if (!pass(to, atoi(argv[3])) || !pass(to, atoi(argv[3]))) {
		puts("refused");
		return 0;
	}
	/* Whoever passes descriptors is disconnected. */
	return recv(to, &byte, 1, 0) > 0;
}
