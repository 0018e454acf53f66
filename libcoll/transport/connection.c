// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <linux/pkt_sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "libcoll/base/descriptors.h"
#include "libcoll/link/arbiter.h"

enum { HURRY_MS = 3000 };

/* ---- sockets ------------------------------------------------------------ */

static int set_congestion(int fd, const char *name)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, strlen(name)) ? -errno : 0;
}

int coll_connection_try_congestion(const char *name)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return 0;		/* that is told where one is needed */
	error = set_congestion(fd, name);
	close(fd);
	return error;
}

int coll_connection_socket(struct coll_context *context, int family)
{
	const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
	socklen_t bytes = sizeof(context->usual_congestion);
	int fd = socket(family, type, 0);

	if (fd < 0 && errno == EMFILE && coll_descriptors_raise())
		fd = socket(family, type, 0);
	if (fd < 0)
		return -errno;
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, context->usual_congestion, &bytes);
	set_congestion(fd, "reno");
	return fd;
}

bool coll_connection_is_local(int fd)
{
	struct sockaddr_storage peer;
	socklen_t bytes = sizeof(peer);
	const struct sockaddr_in *v4 = (struct sockaddr_in *)&peer;
	const struct in6_addr *v6 = &((struct sockaddr_in6 *)&peer)->sin6_addr;

	if (getpeername(fd, (struct sockaddr *)&peer, &bytes))
		return false;
	if (peer.ss_family == AF_UNIX)
		return true;
	if (peer.ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	if (IN6_IS_ADDR_V4MAPPED(v6))
		return v6->s6_addr[12] == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(v6);
}

/* The kernel's number has 31 bits: 24 days. */
void coll_connection_set_patience(const struct coll_context *context, int fd, bool hurries)
{
	const uint64_t ms = context->options.deadline_ns / 1000000;
	const unsigned int least = ms < INT_MAX ? ms : INT_MAX;
	const unsigned int timeout_ms = hurries && least > HURRY_MS ? HURRY_MS : least;

	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
}

void coll_connection_tune(const struct coll_context *context, int fd)
{
	const struct coll_options *options = &context->options;
	const int one = 1, bytes = options->buffer_bytes;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	coll_connection_set_patience(context, fd, false);
	if (options->congestion[0])
		set_congestion(fd, options->congestion);
	if (bytes) {
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	}
}

/* Options for a path with a large bandwidth-delay product. */
static void tune_far(const struct coll_options *options, int fd)
{
	const unsigned long pace = options->wan_pacing;
	const int bytes = options->wan_buffer_bytes, first = TC_PRIO_INTERACTIVE;
	const unsigned int unsent = coll_arbiter_chunk_far(options);

	if (options->wan_congestion[0])
		set_congestion(fd, options->wan_congestion);
	/* Nothing can overtake data that the kernel has taken. */
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
	/* Before other processes' data where this host queues. */
	if (!strcmp(options->link_policy, "occupancy-hier"))
		setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &first, sizeof(first));
	if (pace)
		setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &pace, sizeof(pace));
	if (bytes) {
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	}
}

/*
 * Between nodes of a cluster: the system's, unless that is bbr. It paces a burst by the rate of those before,
 * which a collective's short ones never raise: 16 KB take most of a round trip longer. For long paths with losses,
 * as between clusters, it is right.
 */
static void tune_near(const struct coll_context *context, int fd)
{
	const bool paces = !strncmp(context->usual_congestion, "bbr", 3);

	set_congestion(fd, paces ? "cubic" : context->usual_congestion);	/* not allowed: it stays reno */
}

void coll_connection_tune_peer(struct coll_context *context, int fd, uint32_t world)
{
	const uint32_t *cluster = context->cluster;
	const bool far = cluster && cluster[world] != cluster[context->boot->rank];
	socklen_t bytes = sizeof(context->congestion);

	if (!context->options.congestion[0] && far)
		set_congestion(fd, context->usual_congestion);
	else if (!context->options.congestion[0] && !coll_connection_is_local(fd))
		tune_near(context, fd);
	if (far)
		tune_far(&context->options, fd);
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, context->congestion, &bytes);
}

/* ---- addresses ---------------------------------------------------------- */

int coll_address_parse(struct coll_address *address, const char *text, uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address->socket;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address->socket;

	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		address->bytes = sizeof(*v4);
		return 0;
	}
	if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		address->bytes = sizeof(*v6);
		return 0;
	}
	return -EINVAL;
}
