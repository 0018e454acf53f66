// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The accepting side of connections: connect.c has the other. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connection.h"
#include "libcoll/boot/places.h"
#include "libcoll/engine/engine.h"
#include "stream.h"

enum {
	BACKLOG = 4096,
	STRANGERS_MAX = 4096,
	STRANGER_PATIENCE_S = 10,
	LISTEN_PAUSE_NS = 100000000,
};

/* An accepted connection that has not been attached to a link yet. */
struct stranger {
	struct stranger *next;
	struct coll_context *context;
	struct coll_watch watch;
	uint64_t since;
	uint32_t got;
	struct coll_hello hello;
};

static void stranger_remove(struct stranger *stranger)
{
	struct stranger **slot = &stranger->context->strangers;

	while (*slot != stranger)
		slot = &(*slot)->next;
	*slot = stranger->next;
	stranger->context->strangers_count--;
	if (stranger->watch.armed)
		coll_engine_unwatch(&stranger->context->engine, &stranger->watch);
	free(stranger);
}

static void stranger_refuse(struct stranger *stranger, const char *reason)
{
	char text[INET6_ADDRSTRLEN] = "?";
	struct sockaddr_storage from;
	socklen_t bytes = sizeof(from);

	if (!getpeername(stranger->watch.fd, (struct sockaddr *)&from, &bytes))
		inet_ntop(from.ss_family,
			  from.ss_family == AF_INET ?
				  (void *)&((struct sockaddr_in *)&from)->sin_addr :
				  (void *)&((struct sockaddr_in6 *)&from)->sin6_addr,
			  text, sizeof(text));
	fprintf(stderr, "coll: refused a connection from %s: %s\n", text, reason);
	close(stranger->watch.fd);
	stranger_remove(stranger);
}

/* Comes too late, to a group that has failed: hears of it, and who is to blame. */
static void stranger_tell_failure(struct stranger *stranger, const struct coll_group *group)
{
	const struct coll_header news = coll_link_events(group)->news(group);

	/* A fresh socket's buffer always takes this little. */
	if (send(stranger->watch.fd, &news, sizeof(news), MSG_NOSIGNAL) < 0)
		fprintf(stderr, "coll: cannot tell rank %u that its group has failed: %s\n",
			stranger->hello.from, strerror(errno));
	close(stranger->watch.fd);
	stranger_remove(stranger);
}

/* As part of a link that has its own connection already; else it waits for that. */
static void stranger_introduce_stream(struct stranger *stranger, struct coll_group *group)
{
	const struct coll_hello *hello = &stranger->hello;
	struct coll_link *link = group->links[hello->from], *stream;

	if (!group->freed && (!link || link->state == LINK_IDLE))
		return;
	if (!link || link->state == LINK_CLOSED) {	/* it was late */
		close(stranger->watch.fd);
		stranger_remove(stranger);
		return;
	}
	stream = hello->stream <= link->streams ? &link->stream[hello->stream - 1] : NULL;
	if (!stream || stream->state != LINK_IDLE) {
		stranger_refuse(stranger, "that rank has no such stream");
		return;
	}
	if (coll_connection_attach(stream, stranger->watch.fd, 0)) {
		close(stranger->watch.fd);
		coll_link_lost(stream, -ENOMEM);
	}
	stranger_remove(stranger);
}

/* Gives an introduced connection to its link, if its group exists already. */
static void stranger_introduce(struct stranger *stranger)
{
	const struct coll_hello *hello = &stranger->hello;
	struct coll_context *context = stranger->context;
	struct coll_group *group;
	struct coll_link *link;
	int error;

	for (group = context->groups; group; group = group->next)
		if (group->id == hello->group)
			break;
	if (!group)
		return;		/* coll_listen_adopt() comes back to it */
	if (hello->to != group->rank || hello->from >= group->rank) {
		stranger_refuse(stranger, "its ranks are not ours");
		return;
	}
	if (group->state != GROUP_OK) {
		stranger_tell_failure(stranger, group);
		return;
	}
	if (hello->stream) {
		stranger_introduce_stream(stranger, group);
		return;
	}
	/* A freed group takes only what it still has something to say to. */
	link = group->freed ? group->links[hello->from] : coll_link_get(group, hello->from);
	if (group->freed && (!link || link->state != LINK_IDLE)) {
		close(stranger->watch.fd);
		stranger_remove(stranger);
		return;
	}
	if (!link || link->state != LINK_IDLE) {
		stranger_refuse(stranger, "that rank is connected already");
		return;
	}
	error = coll_connection_attach(link, stranger->watch.fd, hello->streams);
	if (error) {
		close(stranger->watch.fd);
		coll_link_lost(link, error);
	}
	stranger_remove(stranger);
}

/* Those of a group that have said hello: links first, then their streams. */
static void strangers_introduce(struct coll_context *context, uint64_t group)
{
	struct stranger *stranger, *next;
	int streams;

	for (streams = 0; streams < 2; streams++)
		for (stranger = context->strangers; stranger; stranger = next) {
			next = stranger->next;
			if (stranger->got == sizeof(stranger->hello) &&
			    stranger->hello.group == group && !stranger->hello.stream == !streams)
				stranger_introduce(stranger);
		}
}

static void stranger_read(struct coll_watch *watch, int events)
{
	struct stranger *stranger = watch->owner;
	struct coll_context *context = stranger->context;
	uint8_t *to = (uint8_t *)&stranger->hello + stranger->got;
	ssize_t got = recv(watch->fd, to, sizeof(stranger->hello) - stranger->got, MSG_DONTWAIT);

	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		got = 0;
	else if (got <= 0) {
		stranger_refuse(stranger, "it said no hello");
		return;
	}
	stranger->got += got;
	if (stranger->got < sizeof(stranger->hello))
		coll_engine_watch(&context->engine, watch, POLLIN);
	else if (!coll_hello_proven(context, &stranger->hello))
		stranger_refuse(stranger, "it is no rank of this job");
	else
		strangers_introduce(context, stranger->hello.group);
}

void coll_listen_check(struct coll_context *context)
{
	uint64_t now = coll_now();
	struct stranger *stranger, *next;

	if (context->listen_again && now >= context->listen_again) {
		context->listen_again = 0;
		coll_engine_watch(&context->engine, &context->listener, POLLIN);
	}
	for (stranger = context->strangers; stranger; stranger = next) {
		next = stranger->next;
		if (stranger->got < sizeof(stranger->hello) &&
		    now - stranger->since > STRANGER_PATIENCE_S * COLL_SECOND)
			stranger_refuse(stranger, "it said no hello in time");
	}
}

/* The connection stays where it is, and would be reported again at once. */
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
		struct stranger *stranger = NULL;

		context->listen_error = 0;
		if (context->strangers_count < STRANGERS_MAX)
			stranger = calloc(1, sizeof(*stranger));
		if (!stranger) {
			close(fd);
			continue;
		}
		coll_connection_tune(context, fd);
		stranger->context = context;
		stranger->since = now;
		stranger->watch = (struct coll_watch){ .ready = stranger_read, .owner = stranger,
						  .fd = fd };
		stranger->next = context->strangers;
		context->strangers = stranger;
		context->strangers_count++;
		/* The hello is usually there already. */
		stranger_read(&stranger->watch, 0);
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		listen_pause(context, now, errno);
	else
		coll_engine_watch(&context->engine, watch, POLLIN);
}

void coll_listen_adopt(struct coll_group *group)
{
	strangers_introduce(group->context, group->id);
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

/* This machine's boot and this process's network namespace. */
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

/* The addresses that the option names, checked. */
static int list_chosen(const char *chosen, char *line, size_t length, size_t room)
{
	char copy[256], *save, *text;
	struct coll_address address;

	snprintf(copy, sizeof(copy), "%s", chosen);
	for (text = strtok_r(copy, ",", &save); text; text = strtok_r(NULL, ",", &save)) {
		if (coll_address_parse(&address, text, 0))
			return -EINVAL;
		if (length + strlen(text) + 2 < room)
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
	while (context->strangers) {
		close(context->strangers->watch.fd);
		stranger_remove(context->strangers);
	}
	if (context->listener.fd >= 0) {
		if (context->listener.armed)
			coll_engine_unwatch(&context->engine, &context->listener);
		close(context->listener.fd);
		context->listener.fd = -1;
	}
}
