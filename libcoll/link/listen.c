// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The accepting side of connections; connect.c has the other. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/port.h"
#include "connection.h"
#include "libcoll/boot/endpoints.h"
#include "libcoll/engine/engine.h"
#include "stream.h"

enum {
	BACKLOG = 4096,
	PENDING_MAX = 4096,
	HELLO_TIMEOUT_S = 10,
	LISTEN_PAUSE_NS = 100000000,
};

/* An accepted connection that has not been attached to a link yet. */
struct coll_pending_peer {
	struct coll_pending_peer *next;
	struct coll_context *context;
	struct coll_watch watch;
	uint64_t since;
	uint32_t got;
	struct coll_hello hello;
};

static void pending_remove(struct coll_pending_peer *pending)
{
	struct coll_pending_peer **slot = &pending->context->pending_peers;

	while (*slot != pending)
		slot = &(*slot)->next;
	*slot = pending->next;
	coll_assert(pending->context->pending_count);
	pending->context->pending_count--;
	if (pending->watch.armed)
		coll_engine_unwatch(&pending->context->engine, &pending->watch);
	free(pending);
}

static void pending_refuse(struct coll_pending_peer *pending, const char *reason)
{
	char text[INET6_ADDRSTRLEN] = "?";
	struct sockaddr_storage from;
	socklen_t bytes = sizeof(from);

	if (!getpeername(pending->watch.fd, (struct sockaddr *)&from, &bytes))
		inet_ntop(from.ss_family,
			  from.ss_family == AF_INET ?
				  (void *)&((struct sockaddr_in *)&from)->sin_addr :
				  (void *)&((struct sockaddr_in6 *)&from)->sin6_addr,
			  text, sizeof(text));
	fprintf(stderr, "coll: refused a connection from %s: %s\n", text, reason);
	close(pending->watch.fd);
	pending_remove(pending);
}

/* The group has failed: tells the late peer which rank is to blame. */
static void pending_tell_failure(struct coll_pending_peer *pending, const struct coll_group *group)
{
	const struct coll_header news = coll_link_events(group)->news(group);

	/* The buffer of a fresh socket has the capacity for it. */
	if (send(pending->watch.fd, &news, sizeof(news), MSG_NOSIGNAL) < 0)
		fprintf(stderr, "coll: cannot tell rank %u that its group has failed: %s\n",
			pending->hello.from, strerror(errno));
	close(pending->watch.fd);
	pending_remove(pending);
}

/* A stream joins its link if that is connected; else it waits. */
static void pending_introduce_stream(struct coll_pending_peer *pending, struct coll_group *group)
{
	const struct coll_hello *hello = &pending->hello;
	struct coll_link *link = group->links[hello->from], *stream;

	if (!group->freed && (!link || link->state == LINK_IDLE))
		return;
	if (!link || link->state == LINK_CLOSED) {	/* it is late */
		close(pending->watch.fd);
		pending_remove(pending);
		return;
	}
	stream = hello->stream <= link->streams ? &link->stream[hello->stream - 1] : NULL;
	if (!stream || stream->state != LINK_IDLE) {
		pending_refuse(pending, "its rank has no such stream");
		return;
	}
	if (coll_connection_attach(stream, pending->watch.fd, 0)) {
		close(pending->watch.fd);
		coll_link_lost(stream, -ENOMEM);
	}
	pending_remove(pending);
}

/* Gives an introduced connection to its link, if its group exists already. */
static void pending_introduce(struct coll_pending_peer *pending)
{
	const struct coll_hello *hello = &pending->hello;
	struct coll_context *context = pending->context;
	struct coll_group *group;
	struct coll_link *link;
	int error;

	for (group = context->groups; group; group = group->next)
		if (group->id == hello->group)
			break;
	if (!group)
		return;		/* until coll_listen_adopt() */
	if (hello->to != group->rank || hello->from >= group->rank) {
		pending_refuse(pending, "its hello names other ranks");
		return;
	}
	if (group->state != GROUP_OK) {
		pending_tell_failure(pending, group);
		return;
	}
	if (hello->stream) {
		pending_introduce_stream(pending, group);
		return;
	}
	/* A freed group accepts only peers that it still has messages for. */
	link = group->freed ? group->links[hello->from] : coll_link_get(group, hello->from);
	if (group->freed && (!link || link->state != LINK_IDLE)) {
		close(pending->watch.fd);
		pending_remove(pending);
		return;
	}
	if (!link || link->state != LINK_IDLE) {
		pending_refuse(pending, "its rank is connected already");
		return;
	}
	error = coll_connection_attach(link, pending->watch.fd, hello->streams);
	if (error) {
		close(pending->watch.fd);
		coll_link_lost(link, error);
	}
	pending_remove(pending);
}

/* Introduces the group's connections that have said hello: links first, then streams. */
static void pending_introduce_all(struct coll_context *context, uint64_t group)
{
	struct coll_pending_peer *pending, *next;
	int streams;

	for (streams = 0; streams < 2; streams++)
		for (pending = context->pending_peers; pending; pending = next) {
			next = pending->next;
			if (pending->got == sizeof(pending->hello) &&
			    pending->hello.group == group && !pending->hello.stream == !streams)
				pending_introduce(pending);
		}
}

static void pending_read(struct coll_watch *watch, int events)
{
	struct coll_pending_peer *pending = watch->owner;
	struct coll_context *context = pending->context;
	uint8_t *to = (uint8_t *)&pending->hello + pending->got;
	ssize_t got = recv(watch->fd, to, sizeof(pending->hello) - pending->got, MSG_DONTWAIT);

	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		got = 0;
	else if (got <= 0) {
		pending_refuse(pending, "it closed before its hello");
		return;
	}
	pending->got += got;
	if (pending->got < sizeof(pending->hello))
		coll_engine_watch(&context->engine, watch, POLLIN);
	else if (!coll_hello_proven(context, &pending->hello))
		pending_refuse(pending, "it has no proof of this job's secret");
	else
		pending_introduce_all(context, pending->hello.group);
}

void coll_listen_check(struct coll_context *context)
{
	uint64_t now = coll_now();
	struct coll_pending_peer *pending, *next;

	if (context->listen_again && now >= context->listen_again) {
		context->listen_again = 0;
		coll_engine_watch(&context->engine, &context->listener, POLLIN);
	}
	for (pending = context->pending_peers; pending; pending = next) {
		next = pending->next;
		if (pending->got < sizeof(pending->hello) &&
		    now - pending->since > HELLO_TIMEOUT_S * COLL_SECOND)
			pending_refuse(pending, "no hello in time");
	}
}

/* The connection stays in the backlog and would be reported again at once. */
static void listen_pause(struct coll_context *context, uint64_t now, int error)
{
	if (!context->listen_error)
		fprintf(stderr, "coll: cannot accept connections: %s\n", strerror(error));
	context->listen_error = -error;
	context->listen_again = now + LISTEN_PAUSE_NS;
}

static void listener_ready(struct coll_watch *watch, int events)
{
	struct coll_context *context = watch->owner;
	uint64_t now = coll_now();
	int fd;

	(void)events;
	while ((fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct coll_pending_peer *pending = NULL;

		context->listen_error = 0;
		if (context->pending_count < PENDING_MAX)
			pending = calloc(1, sizeof(*pending));
		if (!pending) {
			close(fd);
			continue;
		}
		coll_connection_tune(context, fd);
		pending->context = context;
		pending->since = now;
		pending->watch = (struct coll_watch){ .ready = pending_read, .owner = pending,
						  .fd = fd };
		pending->next = context->pending_peers;
		context->pending_peers = pending;
		context->pending_count++;
		/* The hello is usually there already. */
		pending_read(&pending->watch, 0);
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		listen_pause(context, now, errno);
	else
		coll_engine_watch(&context->engine, watch, POLLIN);
}

void coll_listen_adopt(struct coll_group *group)
{
	pending_introduce_all(group->context, group->id);
}

/* IPv6 and IPv4 on one socket where the kernel has IPv6, else IPv4. */
static int listen_any(struct coll_context *context, uint16_t *port)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	const int zero = 0;
	struct sockaddr_storage bound;
	socklen_t bytes = sizeof(bound);
	int fd = coll_connection_socket(context, AF_INET6);

	if (fd >= 0) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
		if (bind(fd, (struct sockaddr *)&v6, sizeof(v6))) {
			close(fd);
			fd = -1;
		}
	}
	if (fd < 0) {
		fd = coll_connection_socket(context, AF_INET);
		if (fd < 0)
			return fd;
		if (bind(fd, (struct sockaddr *)&v4, sizeof(v4)))
			goto err_close;
	}
	if (listen(fd, BACKLOG) || getsockname(fd, (struct sockaddr *)&bound, &bytes))
		goto err_close;
	*port = ntohs(bound.ss_family == AF_INET ? ((struct sockaddr_in *)&bound)->sin_port :
						   ((struct sockaddr_in6 *)&bound)->sin6_port);
	return fd;

err_close:
	close(fd);
	return -errno;
}

/* Names this machine's boot and this process's network namespace. */
static void node_name(char *node, size_t bytes)
{
	struct stat namespace = { 0 };
	char boot[40] = "unknown";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (file) {
		if (fscanf(file, "%39s", boot) != 1)
			strcpy(boot, "unknown");
		fclose(file);
	}
	stat("/proc/self/ns/net", &namespace);
	snprintf(node, bytes, "%s:%lu", boot, (unsigned long)namespace.st_ino);
}

/* Adds the addresses of the option after checking them. */
static int list_chosen(const char *chosen, char *line, size_t length, size_t capacity)
{
	char copy[256], *save, *text;
	struct coll_address address;

	snprintf(copy, sizeof(copy), "%s", chosen);
	for (text = strtok_r(copy, ",", &save); text; text = strtok_r(NULL, ",", &save)) {
		if (coll_address_parse(&address, text, 0))
			return -EINVAL;
		if (length + strlen(text) + 2 < capacity)
			length += sprintf(line + length, " %s", text);
	}
	return length;
}

int coll_listen(struct coll_context *context)
{
	char key[32], line[COLL_BOOT_VALUE_MAX];
	uint16_t port = 0;
	int fd = listen_any(context, &port), length;

	if (fd < 0)
		return fd;
	node_name(context->node, sizeof(context->node));
	length = snprintf(line, sizeof(line), "%s %u", context->node, port);
	if (context->options.address[0])
		length = list_chosen(context->options.address, line, length, sizeof(line));
	else
		length = coll_node_addresses(line, length, sizeof(line));
	if (length < 0) {
		snprintf(context->error, sizeof(context->error),
			 "option address: '%s' is not a list of IP addresses",
			 context->options.address);
		close(fd);
		return length;
	}
	context->listener =
		(struct coll_watch){ .ready = listener_ready, .owner = context, .fd = fd };
	coll_engine_watch(&context->engine, &context->listener, POLLIN);
	snprintf(key, sizeof(key), "addr/%d", context->boot->rank);
	return coll_boot_put(context->boot, key, line, length);
}

void coll_listen_stop(struct coll_context *context)
{
	while (context->pending_peers) {
		close(context->pending_peers->watch.fd);
		pending_remove(context->pending_peers);
	}
	if (context->listener.fd >= 0) {
		if (context->listener.armed)
			coll_engine_unwatch(&context->engine, &context->listener);
		close(context->listener.fd);
		context->listener.fd = -1;
	}
}
