// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * forged_links impostor silent|garbage|reflect: a process of somebody else accepts at
 * the port of rank 1. Rank 0 gives it no payload and takes none from it.
 *
 * forged_links recording FILE: the job's handshake, as somebody between the hosts sees it, is
 * sent to the same process once more, and kept in the file.
 *
 * forged_links replay FILE: it is sent to this job, which has the same secret.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uapi/coll_wire.h"
#include "tests/lib/descriptors.h"
#include "tests/lib/rank.h"

enum { PATIENCE_MS = 2500, SECRET_VALUE = 1005 };

/* This process's part of its latest handshake: the library's calls of send() come here. */
static struct {
	struct coll_hello hello;
	struct coll_proof proof;
} seen;

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
	if (bytes == sizeof(seen.hello))
		memcpy(&seen.hello, data, bytes);
	else if (bytes == sizeof(seen.proof))
		memcpy(&seen.proof, data, bytes);
	return syscall(SYS_sendto, fd, data, bytes, flags, NULL, 0);
}

static int connect_to(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Bytes that came until the other side closed, or nothing came for a while. */
static size_t read_for(int fd, void *data, size_t room, int ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	size_t all = 0;
	ssize_t got;

	while (all < room && poll(&poll_fd, 1, ms) > 0) {
		got = recv(fd, (char *)data + all, room - all, 0);
		if (got <= 0)
			break;
		all += got;
	}
	return all;
}

/* ---- an impostor at the port of rank 1 ------------------------------------------ */

/* What rank 1 would have sent: the payload of its part of an allreduce, forged. */
static void forge_data(int fd)
{
	const struct coll_header header = { .kind = COLL_MESSAGE_DATA,
					    .version = COLL_WIRE_VERSION, .bytes = 8 };
	const int64_t value = SECRET_VALUE;

	send(fd, &header, sizeof(header), MSG_NOSIGNAL);
	send(fd, &value, sizeof(value), MSG_NOSIGNAL);
}

/* Accepts one connection after the other; exits with 1 if it received more than a hello. */
static void play_impostor(int listener, const char *how)
{
	struct pollfd poll_fd = { .fd = listener, .events = POLLIN };
	struct coll_challenge challenge;
	uint8_t said[4096];
	bool betrayed = false;

	while (poll(&poll_fd, 1, PATIENCE_MS) > 0) {
		const int fd = accept(listener, NULL, NULL);
		size_t bytes;

		if (fd < 0)
			continue;
		bytes = read_for(fd, said, sizeof(struct coll_hello), 500);
		memset(&challenge, 'x', sizeof(challenge));
		if (!strcmp(how, "reflect"))	/* its own words as an answer */
			memcpy(&challenge, said + sizeof(struct coll_hello) - sizeof(challenge),
			       sizeof(challenge));
		if (strcmp(how, "silent")) {
			send(fd, &challenge, sizeof(challenge), MSG_NOSIGNAL);
			forge_data(fd);
		}
		bytes += read_for(fd, said, sizeof(said), 300);
		betrayed |= bytes > sizeof(struct coll_hello);
		close(fd);
	}
	_exit(betrayed);
}

/* Rank 1 does not poll its engine meanwhile: only the impostor accepts at its port. */
static void host_impostor(const struct coll_group *world, const char *how)
{
	int port, status, listener = files_listener(&port);
	pid_t impostor;

	rank_assert(world, listener >= 0);
	impostor = fork();
	if (!impostor) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		play_impostor(listener, how);
	}
	rank_assert(world, waitpid(impostor, &status, 0) == impostor);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		rank_fail(world, "the impostor received more than a hello");
}

static void meet_impostor(struct coll_group *world, const char *how)
{
	int64_t in = 5, out = 0;
	int error;

	if (coll_rank(world)) {
		host_impostor(world, how);
		return;
	}
	error = coll_allreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world);
	if (!error)
		rank_fail(world, "allreduce returned 0, and %lld", (long long)out);
	if (!strstr(coll_last_error(world), "rank 1"))
		rank_fail(world, "rank 1 is not named: %s", coll_last_error(world));
}

/* ---- a recorded handshake -------------------------------------------------------- */

/* Sends it to the port with forged bad news behind it; the other side hangs up. */
static void send_recorded(const struct coll_group *world, int port)
{
	const struct coll_header fail = { .kind = COLL_MESSAGE_FAIL, .version = COLL_WIRE_VERSION,
					  .hash = EPROTO };
	const int fd = connect_to(port);
	uint8_t answer[256];

	rank_assert(world, fd >= 0);
	send(fd, &seen.hello, sizeof(seen.hello), MSG_NOSIGNAL);
	read_for(fd, answer, sizeof(struct coll_challenge), 1000);
	send(fd, &seen.proof, sizeof(seen.proof), MSG_NOSIGNAL);
	send(fd, &fail, sizeof(fail), MSG_NOSIGNAL);
	read_for(fd, answer, sizeof(answer), 1000);
	close(fd);
}

static void allreduce_right(struct coll_group *world)
{
	const int ranks = coll_ranks(world);
	int64_t in = coll_rank(world) + 1, out = 0;

	rank_must(world, coll_allreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world));
	rank_assert(world, out == (int64_t)ranks * (ranks + 1) / 2);
}

/* Rank 0 is the attacker too: it knows the port, and its own part of the handshake. */
static void replay(struct coll_context *context, const char *file, bool record)
{
	struct coll_group *world = coll_world(context);
	struct coll_counters counters = { .size = sizeof(counters) };
	int ports[2], port = 0, fd;
	struct coll_run *run;

	rank_assert(world, files_listener(&port) >= 0);
	rank_must(world, coll_allgather(&port, ports, 1, COLL_INT32, world));
	if (!coll_rank(world)) {
		fd = open(file, record ? O_CREAT | O_WRONLY | O_TRUNC : O_RDONLY, 0600);
		rank_assert(world, (record ? write(fd, &seen, sizeof(seen)) :
				    read(fd, &seen, sizeof(seen))) == sizeof(seen));
		close(fd);
		send_recorded(world, ports[1]);
		allreduce_right(world);
	} else {
		int64_t in = 2, out = 0;	/* polls until rank 0 comes */

		rank_must(world, coll_iallreduce(&in, &out, 1, COLL_INT64, COLL_SUM, world, &run));
		rank_must(world, coll_run_wait(&run));
		rank_assert(world, out == 3);
		coll_counters(context, &counters);
		rank_assert(world, counters.refused == 1);
	}
	allreduce_right(world);
}

int main(int argc, char **argv)
{
	struct coll_context *context = rank_open("deadline=3s progress=call");
	struct coll_group *world = coll_world(context);

	if (argc != 3 || coll_ranks(world) != 2)
		return 2;
	if (!strcmp(argv[1], "impostor"))
		meet_impostor(world, argv[2]);
	else
		replay(context, argv[2], !strcmp(argv[1], "recording"));
	coll_close(context);
	return 0;
}
