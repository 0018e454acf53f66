// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Listening sockets, and what they accept (pending.h). connect.c has the other side. */
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

#include "libcoll/base/log.h"
#include "libcoll/base/memory_limit.h"
#include "arrival.h"
#include "connection.h"
#include "core/port.h"
#include "libcoll/base/descriptors.h"
#include "libcoll/boot/endpoints.h"
#include "libcoll/engine/engine.h"
#include "libcoll/link/explain.h"
#include "listen.h"
#include "peer_process.h"
#include "pending.h"
#include "shared_memory.h"

enum {
	BACKLOG = 4096,
	ACCEPTS_MAX = 16,		/* at a time: somebody may connect without end */
	LISTEN_PAUSE_NS = 100000000,
	SILENT_NS = 1000000000,		/* a connecting rank has said hello by then */
};

static void listen_resume(struct coll_context *context)
{
	uint32_t i;

	context->listen_again = 0;
	for (i = 0; i < context->listeners; i++)
		if (!context->listener[i].armed &&
		    coll_engine_watch(&context->engine, &context->listener[i], POLLIN))
			context->listen_again = coll_now() + LISTEN_PAUSE_NS;
}

void coll_listen_check(struct coll_context *context)
{
	const uint64_t now = coll_now();

	if (context->listen_again && now >= context->listen_again)
		listen_resume(context);
	coll_pending_check(context, now);
}

/* ---- accepting ------------------------------------------------------------ */

/* The connection stays where it is, and would be reported again at once. */
static void listen_pause(struct coll_context *context, uint64_t now, int error)
{
	if (!context->listen_error)
		coll_log(&context->options, COLL_LOG_ERROR, "rank %d: cannot accept connections: %s",
			 context->boot->rank, strerror(error));
	context->listen_error = -error;
	context->listen_again = now + LISTEN_PAUSE_NS;
}

/*
 * More may wait: after this turn of the engine, which would else report the socket again, and not
 * return while somebody connects.
 */
static void listen_on(struct coll_context *context, uint64_t now)
{
	if (!context->listen_again)
		context->listen_again = now;
}

static bool no_descriptor(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Out of descriptors: takes more, or drops long silent connections for the next one. */
static int listener_accept(struct coll_context *context, int listener, uint64_t now)
{
	int fd;

	do
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (fd < 0 && no_descriptor(errno) &&
	       ((errno == EMFILE && coll_descriptors_raise()) ||
		coll_pending_drop_silent(context, now - SILENT_NS)));
	return fd;
}

static void listener_ready(struct coll_watch *watch, int events)
{
	struct coll_context *context = watch->owner;
	uint64_t now = coll_now();
	int fd = 0, count;

	(void)events;
	for (count = 0; count < ACCEPTS_MAX; count++) {
		fd = listener_accept(context, watch->fd, now);
		if (fd < 0)
			break;
		coll_pending_add(context, fd, now);
	}
	if (fd < 0 && no_descriptor(errno))
		listen_pause(context, now, errno);
	else if (fd >= 0)
		listen_on(context, now);
	else if (coll_engine_watch(&context->engine, watch, POLLIN))
		listen_pause(context, now, ENOMEM);
}

/* ---- the listening sockets ------------------------------------------------ */

static uint16_t port_of(int fd)
{
	struct sockaddr_storage bound = { 0 };
	socklen_t bytes = sizeof(bound);

	getsockname(fd, (struct sockaddr *)&bound, &bytes);
	return ntohs(bound.ss_family == AF_INET ? ((struct sockaddr_in *)&bound)->sin_port :
						  ((struct sockaddr_in6 *)&bound)->sin6_port);
}

/* "::" listens for IPv4 as well. */
static int listen_at(struct coll_context *context, const char *text)
{
	const int no = 0, port = context->listeners ? port_of(context->listener[0].fd) : 0;
	struct coll_address address;
	int fd, error;

	if (coll_address_parse(&address, text, port))
		return -EINVAL;
	fd = coll_connection_socket(context, address.socket.ss_family);
	if (fd < 0)
		return fd;
	if (!strcmp(text, "::"))
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (bind(fd, (struct sockaddr *)&address.socket, address.bytes) || listen(fd, BACKLOG)) {
		error = -errno;
		close(fd);
		return error;
	}
	context->listener[context->listeners++] =
		(struct coll_watch){ .ready = listener_ready, .owner = context, .fd = fd };
	return 0;
}

/* NULL: the ranks of this node may use memory. */
static const char *why_no_memory(const struct coll_context *context)
{
	const struct coll_options *options = &context->options;

	return !strcmp(options->memory, "off")	  ? "memory=off" :
	       !strcmp(options->protect, "seal")  ? "protect=seal" :
	       options->address[0]		  ? "option address" :
	       context->offload			  ? "progress=kernel" :
	       context->boot->local_ranks == 1	  ? "alone on its node" :
						    NULL;
}

/* A Unix socket for the ranks of this node. Without it they use TCP. */
static void listen_locally(struct coll_context *context)
{
	struct coll_address address;
	int fd;

	context->without_memory = why_no_memory(context);
	if (context->without_memory)
		return;
	context->without_memory = "no Unix socket";
	fd = coll_connection_socket(context, AF_UNIX);
	if (fd < 0)
		return;
	coll_local_address(&address, context->key, context->process);
	coll_connection_accepts_descriptors(fd, false);
	if (bind(fd, (struct sockaddr *)&address.socket, address.bytes) || listen(fd, BACKLOG)) {
		close(fd);
		return;
	}
	context->without_memory = NULL;
	context->memory_is_limited = coll_memory_limit_left() != UINT64_MAX;
	context->listener[context->listeners++] =
		(struct coll_watch){ .ready = listener_ready, .owner = context, .fd = fd };
	context->listens_locally = true;
	coll_shared_memory_offer(context);
}

static void close_listeners(struct coll_context *context)
{
	while (context->listeners) {
		struct coll_watch *listener = &context->listener[--context->listeners];

		if (listener->armed)
			coll_engine_unwatch(&context->engine, listener);
		close(listener->fd);
	}
}

static int address_refuse(struct coll_context *context, const char *text, int error)
{
	const char *reason = error == -EINVAL	      ? "is no IP address" :
			     error == -EADDRNOTAVAIL ? "is no address of this node" :
			     error == -E2BIG	      ? "is one too many" :
							strerror(-error);

	coll_context_explain(context, "option address: '%.150s' %.60s; valid: up to %u "
			     "IP addresses of this node, separated by commas",
			     text, reason, COLL_LISTENERS_MAX);
	return error;
}

/* Listens at each of these addresses, on one port, and appends them to the line. */
static int listen_chosen(struct coll_context *context, char *line, size_t capacity)
{
	char copy[sizeof(context->options.address)], *save, *text;
	int error = 0;

	strcpy(copy, context->options.address);
	*line = 0;
	for (text = strtok_r(copy, ",", &save); text && !error; text = strtok_r(NULL, ",", &save)) {
		error = context->listeners == COLL_LISTENERS_MAX ? -E2BIG
								 : listen_at(context, text);
		if (error && error != -EADDRINUSE)
			address_refuse(context, text, error);
		line += snprintf(line, capacity, " %s", text);
		capacity -= strlen(text) + 1;
	}
	if (!context->listeners && !error)
		return address_refuse(context, context->options.address, -EINVAL);
	return error;
}

/*
 * Where the job needs it and nowhere else: a job of one node listens on loopback. Appends the
 * addresses for ranks of other nodes, of which a container may look like one: to it /proc says what
 * its runtime likes.
 */
static int listen_where_needed(struct coll_context *context, char *line, size_t capacity)
{
	const struct coll_boot *boot = context->boot;

	*line = 0;
	if (boot->local_ranks == boot->ranks) {
		snprintf(line, capacity, " 127.0.0.1");
		return listen_at(context, "127.0.0.1");
	}
	coll_node_addresses(line, 0, capacity);
	return listen_at(context, "::") ? listen_at(context, "0.0.0.0") : 0;
}

/* Another address may have the port of the first one in use. */
static int listen_all(struct coll_context *context, char *line, size_t capacity)
{
	int error = -EADDRINUSE, attempts;

	for (attempts = 0; attempts < 16 && error == -EADDRINUSE; attempts++) {
		close_listeners(context);
		error = context->options.address[0] ? listen_chosen(context, line, capacity) :
						      listen_where_needed(context, line, capacity);
	}
	return error;
}

/*
 * Names this machine's boot and this process's network namespace. A rank that could not read
 * its own would be on another node than the rest: where /proc is missing all are "unknown".
 */
static int node_name(char *node, size_t bytes)
{
	struct stat namespace = { 0 };
	char boot[40] = "unknown";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!file && errno != ENOENT && errno != EACCES)
		return -errno;
	if (file) {
		if (fscanf(file, "%39s", boot) != 1)
			strcpy(boot, "unknown");
		fclose(file);
	}
	stat("/proc/self/ns/net", &namespace);
	snprintf(node, bytes, "%s:%lu", boot, (unsigned long)namespace.st_ino);
	return 0;
}

int coll_listen(struct coll_context *context)
{
	static const uint8_t no_secret[COLL_SECRET_BYTES];	/* with protect=none */
	char key[32], line[COLL_BOOT_VALUE_MAX], process[2 * COLL_PROCESS_BYTES + 1] = "";
	char addresses[sizeof(line) - sizeof(context->node) - sizeof(process) - 64];
	const struct coll_process_id self = coll_process_self();
	int error, length;

	if (!coll_nonce_make(context->process, sizeof(context->process)))
		return -EIO;
	coll_key_derive(context->key, strcmp(context->options.protect, "none") ?
			context->boot->secret : no_secret, "link");
	error = node_name(context->node, sizeof(context->node));
	if (!error)
		error = listen_all(context, addresses, sizeof(addresses));
	if (error)
		return error;
	listen_locally(context);
	listen_resume(context);
	base16_encode_update(process, sizeof(context->process), context->process);
	length = snprintf(line, sizeof(line), "%s %s %u@%lu %s %u%s", context->node, process,
			  self.pid, (unsigned long)self.namespace,
			  context->offload ? "own" :
			  context->listens_locally ? "memory" : "shared",
			  port_of(context->listener[0].fd), addresses);
	snprintf(key, sizeof(key), "addr/%d", context->boot->rank);
	return coll_boot_put(context->boot, key, line, length);
}

void coll_listen_stop(struct coll_context *context)
{
	coll_peers_unwatch(context);
	coll_arrivals_drop(context);
	coll_pending_drop_all(context);
	close_listeners(context);
}
