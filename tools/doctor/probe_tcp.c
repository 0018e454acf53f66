// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "probe_tcp.h"

enum { BYTES = 1 << 20, PAIRS = 2, EXCHANGES = 12, PATIENCE_S = 1 };

#define TCP_PROBE_NS 800000000ull	/* of both ways together */

static int probe_tcp_compare(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

double doctor_median(double *sample, u32 count)
{
	qsort(sample, count, sizeof(*sample), probe_tcp_compare);
	return sample[count / 2];
}

static void end_prepare(int fd, const char *congestion)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	const int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (congestion)
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, strlen(congestion));
}

/* Two ends of a connection over loopback; what is not there is -1. */
static void connect_pair(int end[2], const char *congestion)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t bytes = sizeof(at);
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	end[0] = end[1] = -1;
	end_prepare(listener, congestion);
	if (!bind(listener, (struct sockaddr *)&at, bytes) && !listen(listener, 1) &&
	    !getsockname(listener, (struct sockaddr *)&at, &bytes)) {
		end[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		end_prepare(end[0], congestion);
		if (!connect(end[0], (struct sockaddr *)&at, bytes))
			end[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		end_prepare(end[1], NULL);
	}
	close(listener);
}

static void close_pair(int end[2])
{
	close(end[0]);
	close(end[1]);
}

/* Answers each message with a byte, until the other end closes. */
static void *answer_all(void *argument)
{
	const int fd = *(int *)argument;
	char *buffer = malloc(BYTES);

	while (buffer && recv(fd, buffer, BYTES, MSG_WAITALL) == BYTES)
		if (send(fd, "", 1, MSG_NOSIGNAL) != 1)
			break;
	free(buffer);
	return NULL;
}

static bool send_whole(int fd, const char *buffer)
{
	size_t sent = 0;
	ssize_t bytes;

	while (sent < BYTES) {
		bytes = send(fd, buffer + sent, BYTES - sent, MSG_NOSIGNAL);
		if (bytes <= 0)
			return false;
		sent += bytes;
	}
	return true;
}

static bool exchange_once(int fd, const char *buffer, double *us)
{
	const u64 begin = coll_now();
	char byte;

	if (!send_whole(fd, buffer) || recv(fd, &byte, 1, MSG_WAITALL) != 1)
		return false;
	*us = (coll_now() - begin) / 1e3;
	return true;
}

static double exchange_us(int end[2], const char *buffer)
{
	double sample[EXCHANGES + 1];
	u64 until = coll_now() + TCP_PROBE_NS / 2;
	pthread_t thread;
	u32 count = 0;

	if (end[1] < 0 || pthread_create(&thread, NULL, answer_all, &end[1]))
		return -1;
	while (count <= EXCHANGES && coll_now() < until &&
	       exchange_once(end[0], buffer, &sample[count]))
		count++;
	shutdown(end[0], SHUT_RDWR);
	pthread_join(thread, NULL);
	/* The first one opens the window. */
	return count > 2 ? doctor_median(sample + 1, count - 1) : -1;
}

void doctor_probe_tcp(struct doctor_probes *probes)
{
	char *buffer = calloc(1, BYTES);
	int usual[2], reno[2];

	if (!buffer)
		return;
	connect_pair(usual, NULL);
	connect_pair(reno, "reno");
	probes->tcp_usual_us = exchange_us(usual, buffer);
	probes->tcp_reno_us = exchange_us(reno, buffer);
	close_pair(usual);
	close_pair(reno);
	free(buffer);
}
