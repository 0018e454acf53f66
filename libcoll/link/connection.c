// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <linux/pkt_sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "core/port.h"
#include "arbiter.h"
#include "channel.h"
#include "connection.h"
#include "libcoll/engine/engine.h"
#include "stream.h"

/* ---- sockets ------------------------------------------------------------ */

static void set_congestion(int fd, const char *name)
{
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, strlen(name));
}

int coll_connection_socket(struct coll_context *context, int family)
{
	const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t bytes = sizeof(context->usual_congestion);

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
	if (peer.ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	if (IN6_IS_ADDR_V4MAPPED(v6))
		return v6->s6_addr[12] == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(v6);
}

void coll_connection_tune(const struct coll_context *context, int fd)
{
	const struct coll_options *options = &context->options;
	const int one = 1, bytes = options->buffer_bytes;
	const unsigned int timeout_ms = options->deadline_ns / 1000000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
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

void coll_connection_tune_peer(struct coll_context *context, int fd, uint32_t world)
{
	const uint32_t *cluster = context->cluster;
	socklen_t bytes = sizeof(context->congestion);

	if (!context->options.congestion[0] && !coll_connection_is_local(fd))
		set_congestion(fd, context->usual_congestion);
	if (cluster && cluster[world] != cluster[context->boot->rank])
		tune_far(&context->options, fd);
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, context->congestion, &bytes);
}

/* ---- links ---------------------------------------------------------------- */

static void link_up(struct coll_link *link)
{
	struct coll_context *context = link->group->context;
	int error;

	coll_link_set_state(link, LINK_UP);
	link->attached = true;
	coll_arbiter_update(link->whole);
	if (link->number) {
		context->counters.streams++;
		coll_link_touch(link);
		return;
	}
	context->counters.links++;
	error = coll_link_events(link->group)->up(link);
	if (error)		/* what it has goes with the link */
		coll_link_lost(link, error);
}

int coll_connection_attach(struct coll_link *link, int fd, uint32_t streams)
{
	struct coll_context *context = link->group->context;
	int error = link->number ? 0 : coll_streams_make(link, streams);

	coll_assert(!link->attached && link->socket.fd < 0);
	if (error)
		return error;
	link->local = coll_connection_is_local(fd);
	coll_connection_tune_peer(context, fd, link->group->world[link->rank]);
	link->socket.fd = fd;
	error = context->engine.ops->attach(&link->socket);
	if (error) {
		link->socket.fd = -1;
		return error;
	}
	context->counters.connections++;
	link_up(link);
	return 0;
}

int coll_connection_join(struct coll_link *link, struct coll_channel *channel, uint32_t streams)
{
	int error = link->number ? 0 : coll_streams_make(link, streams);

	coll_assert(!link->attached && link->channel == channel);
	if (error)
		return error;
	link->local = channel->mux->local;
	link_up(link);
	return 0;
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
