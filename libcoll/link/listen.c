// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The accepting side of connections: connect.c has the other. A connection is nobody's until
 * the handshake has proved whose it is: those before that are few, dropped after a time, the
 * oldest first, and harm nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <nettle/base16.h>
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
	SILENT_MAX = 64,		/* connections without a hello, besides one of each rank */
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
	enum { SILENT, CHALLENGED, PROVEN } state;
	uint32_t got;			/* bytes of the hello and, after it, of the proof */
	struct coll_hello hello;
	struct coll_proof proof;
	struct coll_challenge challenge;
};

/* ---- refusing ------------------------------------------------------------- */

static void pending_set_state(struct coll_pending_peer *pending, int state)
{
	coll_assert(state == (int)pending->state + 1);
	pending->context->silent -= pending->state == SILENT;
	pending->state = state;
}

static void pending_remove(struct coll_pending_peer *pending)
{
	struct coll_pending_peer **slot = &pending->context->pending_peers;

	while (*slot != pending)
		slot = &(*slot)->next;
	*slot = pending->next;
	coll_assert(pending->context->pending_count);
	pending->context->silent -= pending->state == SILENT;
	pending->context->pending_count--;
	if (pending->watch.armed)
		coll_engine_unwatch(&pending->context->engine, &pending->watch);
	free(pending);
}

static void pending_drop(struct coll_pending_peer *pending)
{
	close(pending->watch.fd);
	pending_remove(pending);
}

/* The first is told, the rest is counted: a port scan must not flood the log. */
static void pending_refuse(struct coll_pending_peer *pending, const char *reason)
{
	struct coll_context *context = pending->context;
	char text[INET6_ADDRSTRLEN] = "?";
	struct sockaddr_storage from;
	socklen_t bytes = sizeof(from);

	if (!getpeername(pending->watch.fd, (struct sockaddr *)&from, &bytes))
		inet_ntop(from.ss_family,
			  from.ss_family == AF_INET ?
				  (void *)&((struct sockaddr_in *)&from)->sin_addr :
				  (void *)&((struct sockaddr_in6 *)&from)->sin6_addr,
			  text, sizeof(text));
	if (!context->counters.refused++)
		fprintf(stderr, "coll: rank %d: refused a connection from %s: %s (told once)\n",
			context->boot->rank, text, reason);
	pending_drop(pending);
}

/* The group has failed: tells the late peer which rank is to blame. */
static void pending_tell_failure(struct coll_pending_peer *pending, const struct coll_group *group)
{
	const struct coll_header news = coll_link_events(group)->news(group);

	/* The buffer of a fresh socket has the capacity for it. */
	if (send(pending->watch.fd, &news, sizeof(news), MSG_NOSIGNAL) < 0)
		fprintf(stderr, "coll: cannot tell rank %u that its group has failed: %s\n",
			pending->hello.from, strerror(errno));
	pending_drop(pending);
}

/* A stream joins its link if that is connected; else it waits. */
static void pending_introduce_stream(struct coll_pending_peer *pending, struct coll_group *group)
{
	const struct coll_hello *hello = &pending->hello;
	struct coll_link *link = group->links[hello->from], *stream;

	if (!group->freed && (!link || link->state == LINK_IDLE))
		return;
	if (!link || link->state == LINK_CLOSED) {	/* it was late */
		pending_drop(pending);
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
		pending_drop(pending);
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

/* Those of a group that have proved themselves: links first, then their streams. */
static void pending_introduce_all(struct coll_context *context, uint64_t group)
{
	struct coll_pending_peer *pending, *next;
	int streams;

	for (streams = 0; streams < 2; streams++)
		for (pending = context->pending_peers; pending; pending = next) {
			next = pending->next;
			if (pending->state == PROVEN && pending->hello.group == group &&
			    !pending->hello.stream == !streams)
				pending_introduce(pending);
		}
}

/* ---- the handshake -------------------------------------------------------- */

/* Why a hello is not one for this process; NULL: it is. Nothing is proved by that yet. */
static const char *hello_refusal(const struct coll_context *context, const struct coll_hello *hello)
{
	if (hello->magic != COLL_WIRE_MAGIC)
		return "it does not speak this protocol";
	if (hello->version != COLL_WIRE_VERSION)
		return "it speaks another version of the protocol";
	if (memcmp(hello->process, context->process, sizeof(hello->process)))
		return "it expects another process here";
	if (hello->streams > WAN_STREAMS_MAX || hello->stream > hello->streams)
		return "its hello is malformed";
	return NULL;
}

static void pending_take_hello(struct coll_pending_peer *pending)
{
	struct coll_context *context = pending->context;
	const struct coll_hello *hello = &pending->hello;
	struct coll_challenge *challenge = &pending->challenge;
	const char *refusal = hello_refusal(context, hello);

	if (refusal) {
		pending_refuse(pending, refusal);
		return;
	}
	/* A fresh socket's buffer always takes a challenge. */
	if (!coll_challenge_make(challenge, context->key, hello, sizeof(*hello)) ||
	    send(pending->watch.fd, challenge, sizeof(*challenge), MSG_NOSIGNAL) !=
		    sizeof(*challenge)) {
		pending_drop(pending);
		return;
	}
	pending_set_state(pending, CHALLENGED);
	coll_engine_watch(&context->engine, &pending->watch, POLLIN);
}

static void pending_take_proof(struct coll_pending_peer *pending)
{
	struct coll_context *context = pending->context;

	if (!coll_proof_verify(&pending->proof, &pending->challenge, context->key, &pending->hello,
			       sizeof(pending->hello))) {
		pending_refuse(pending, "it does not prove the secret of this job");
		return;
	}
	pending_set_state(pending, PROVEN);
	pending_introduce_all(context, pending->hello.group);
}

_Static_assert(offsetof(struct coll_pending_peer, proof) ==
	       offsetof(struct coll_pending_peer, hello) + sizeof(struct coll_hello),
	       "the proof is read behind the hello");

static void pending_read(struct coll_watch *watch, int events)
{
	struct coll_pending_peer *pending = watch->owner;
	const uint32_t all = sizeof(pending->hello) +
			     (pending->state == CHALLENGED ? sizeof(pending->proof) : 0);
	uint8_t *to = (uint8_t *)&pending->hello + pending->got;
	ssize_t got = recv(watch->fd, to, all - pending->got, MSG_DONTWAIT);

	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		got = 0;
	else if (got <= 0) {		/* also a rank that needs the connection no more */
		pending_drop(pending);
		return;
	}
	pending->got += got;
	if (pending->got < all)
		coll_engine_watch(&pending->context->engine, watch, POLLIN);
	else if (pending->state == SILENT)
		pending_take_hello(pending);
	else
		pending_take_proof(pending);
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
		if (pending->state != PROVEN &&
		    now - pending->since > HELLO_TIMEOUT_S * COLL_SECOND)
			pending_refuse(pending, "it does not prove the secret in time");
	}
}

/* ---- accepting ------------------------------------------------------------ */

/* Drops the oldest connection in this state. The list begins with the latest. */
static bool pending_drop_oldest(struct coll_context *context, int state)
{
	struct coll_pending_peer *pending, *oldest = NULL;

	for (pending = context->pending_peers; pending; pending = pending->next)
		if ((int)pending->state == state)
			oldest = pending;
	if (oldest)
		pending_refuse(oldest, "too many connections have not proved the secret");
	return oldest;
}

/* Those that have said nothing go first: the process in a hello is known to ranks alone. */
static bool pending_make_room(struct coll_context *context)
{
	return pending_drop_oldest(context, SILENT) || pending_drop_oldest(context, CHALLENGED);
}

/* The connection stays where it is, and would be reported again at once. */
static void listen_pause(struct coll_context *context, uint64_t now, int error)
{
	if (!context->listen_error)
		fprintf(stderr, "coll: cannot accept connections: %s\n", strerror(error));
	context->listen_error = -error;
	context->listen_again = now + LISTEN_PAUSE_NS;
}

static bool no_descriptor(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Where descriptors are out, those of unproven connections are given to the next. */
static int listener_accept(struct coll_context *context)
{
	int fd;

	do
		fd = accept4(context->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (fd < 0 && no_descriptor(errno) && pending_make_room(context));
	return fd;
}

static void listener_ready(struct coll_watch *watch, int events)
{
	struct coll_context *context = watch->owner;
	uint64_t now = coll_now();
	int fd;

	(void)events;
	while ((fd = listener_accept(context)) >= 0) {
		struct coll_pending_peer *pending = NULL;

		context->listen_error = 0;
		if (context->silent >= SILENT_MAX + (uint32_t)context->boot->ranks)
			pending_drop_oldest(context, SILENT);
		if (context->pending_count < PENDING_MAX || pending_make_room(context))
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
		context->silent++;
		/* The hello is usually there already. */
		pending_read(&pending->watch, 0);
	}
	if (no_descriptor(errno))
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
	char key[32], line[COLL_BOOT_VALUE_MAX], process[2 * COLL_PROCESS_BYTES + 1] = "";
	uint16_t port = 0;
	int fd, length;

	if (!coll_nonce_make(context->process, sizeof(context->process)))
		return -EIO;
	coll_key_derive(context->key, context->boot->secret, "link");
	fd = listen_any(context, &port);
	if (fd < 0)
		return fd;
	node_name(context->node, sizeof(context->node));
	base16_encode_update(process, sizeof(context->process), context->process);
	length = snprintf(line, sizeof(line), "%s %s %u", context->node, process, port);
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
	while (context->pending_peers)
		pending_drop(context->pending_peers);
	if (context->listener.fd >= 0) {
		if (context->listener.armed)
			coll_engine_unwatch(&context->engine, &context->listener);
		close(context->listener.fd);
		context->listener.fd = -1;
	}
}
