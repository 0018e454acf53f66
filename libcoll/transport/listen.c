// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The accepting side of connections; connect.c has the other. A connection is nobody's until
 * the handshake has authenticated the peer. Unauthenticated connections are few; after a time
 * they are dropped, the oldest first.
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

#include "arrival.h"
#include "channel.h"
#include "connection.h"
#include "core/port.h"
#include "libcoll/base/descriptors.h"
#include "libcoll/boot/endpoints.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/memory.h"
#include "libcoll/link/explain.h"
#include "listen.h"
#include "own_connection.h"
#include "peer_process.h"
#include "seal.h"
#include "shared_memory.h"

enum {
	BACKLOG = 4096,
	STRANGERS_MAX = 64,		/* connections without a hello, besides those of ranks */
	PENDING_MAX = 4096,
	HELLO_TIMEOUT_S = 10,
	LISTEN_PAUSE_NS = 100000000,
	SILENT_NS = 1000000000,		/* a connecting rank has said hello by then */
};

/* An accepted connection that is nobody's yet. */
struct coll_pending_peer {
	struct coll_arrival arrival;	/* once authenticated, if it is of one link */
	struct coll_pending_peer *next;
	struct coll_context *context;
	struct coll_watch watch;
	uint64_t since;
	enum { SILENT, CHALLENGED, PROVEN } state;
	uint32_t got;			/* bytes of the hello and, after it, of the proof */
	struct coll_hello hello;
	struct coll_proof proof;
	struct coll_challenge challenge;
	struct coll_seal *seal;		/* once proven, or NULL */
	int memory;			/* a descriptor that came with the proof, or -1 */
};

/* ---- refusing ------------------------------------------------------------- */

static void pending_set_state(struct coll_pending_peer *pending, int state)
{
	coll_assert(state == (int)pending->state + 1);
	pending->context->silent -= pending->state == SILENT;
	pending->state = state;
}

/* Descriptor and seal have other owners, or none. */
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
	if (pending->arrival.ops)
		coll_arrival_remove(&pending->arrival);
	if (pending->memory >= 0)
		close(pending->memory);
	free(pending);
}

static void pending_drop(struct coll_pending_peer *pending)
{
	close(pending->watch.fd);
	coll_seal_free(pending->seal);
	pending_remove(pending);
}

/* The first refusal is logged, later ones are counted: a port scan must not flood the log. */
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

/* ---- what is authenticated --------------------------------------------------- */

static struct coll_pending_peer *pending_of(const struct coll_arrival *arrival)
{
	return (struct coll_pending_peer *)arrival;
}

/* If it has ended since, children may hold the connection: it is read to its end. */
static void pending_watch_process(const struct coll_pending_peer *pending, uint32_t world)
{
	const struct coll_hello *hello = &pending->hello;
	const struct coll_process_id id = { .pid = hello->pid, .namespace = hello->pid_namespace };

	if (coll_connection_is_local(pending->watch.fd) &&
	    coll_peer_watch(pending->context, world, id))
		shutdown(pending->watch.fd, SHUT_RD);
}

static int pending_attach(struct coll_arrival *arrival, struct coll_link *link, uint32_t streams)
{
	struct coll_pending_peer *pending = pending_of(arrival);
	int error;

	pending_watch_process(pending, link->group->world[link->rank]);
	error = coll_own_connection_attach(link, streams, &(struct coll_connected){
		.fd = pending->watch.fd, .seal = pending->seal });
	if (!error)
		pending_remove(pending);
	return error;
}

/* The group has failed: tells the late peer which rank is to blame. */
static void pending_notify(struct coll_arrival *arrival, const struct coll_header *news)
{
	struct coll_pending_peer *pending = pending_of(arrival);

	/* The buffer of a fresh socket has the capacity for it. */
	coll_seal_send(pending->seal, pending->watch.fd, news, sizeof(*news));
	pending_drop(pending);
}

static void pending_end(struct coll_arrival *arrival, const char *reason)
{
	if (reason)
		pending_refuse(pending_of(arrival), reason);
	else
		pending_drop(pending_of(arrival));
}

static bool pending_is_ended(const struct coll_arrival *arrival)
{
	(void)arrival;		/* nobody reads it yet */
	return false;
}

static const struct coll_arrival_ops pending_arrival_ops = {
	.attach = pending_attach,
	.notify = pending_notify,
	.drop = pending_end,
	.is_ended = pending_is_ended,
};

/* Over a Unix socket: tells the peer whether its memory can be used. False: it cannot be told. */
static bool pending_take_memory(struct coll_pending_peer *pending, struct coll_memory **memory)
{
	uint8_t taken;

	*memory = NULL;
	if (!coll_connection_is_unix(pending->watch.fd))
		return true;
	*memory = coll_shared_memory_take(pending->memory);
	pending->memory = -1;
	taken = !!*memory;
	return send(pending->watch.fd, &taken, 1, MSG_NOSIGNAL) == 1;
}

/* It is shared by all links to the peer. */
static void pending_share(struct coll_pending_peer *pending)
{
	const struct coll_hello *hello = &pending->hello;

	struct coll_connected connected = { .fd = pending->watch.fd, .seal = pending->seal };

	pending_watch_process(pending, hello->from);
	if (!pending_take_memory(pending, &connected.memory) ||
	    coll_channels_accept(pending->context, hello->from, hello->stream, &connected)) {
		coll_memory_free(connected.memory);
		pending_drop(pending);
	} else {
		pending_remove(pending);
	}
}

/* It is of one link of one group. */
static void pending_arrive(struct coll_pending_peer *pending)
{
	const struct coll_hello *hello = &pending->hello;

	pending->arrival = (struct coll_arrival){
		.ops = &pending_arrival_ops,
		.context = pending->context,
		.world = COLL_NONE,
		.group = hello->group,
		.from = hello->from,
		.to = hello->to,
		.streams = hello->streams,
		.stream = hello->stream,
	};
	coll_arrival_add(&pending->arrival);
}

/* ---- the handshake -------------------------------------------------------- */

/* Why the hello is not for this process, or NULL. It is not authenticated yet. */
static const char *hello_refusal(const struct coll_context *context, const struct coll_hello *hello)
{
	if (hello->magic != COLL_WIRE_MAGIC)
		return "it does not speak this protocol";
	if (hello->version != COLL_WIRE_VERSION)
		return "it speaks another version of the protocol";
	if (memcmp(hello->process, context->process, sizeof(hello->process)))
		return "it expects another process here";
	if (hello->streams > WAN_STREAMS_MAX || hello->stream > hello->streams ||
	    hello->from == hello->to)
		return "its hello is malformed";
	if (!hello->group && (hello->to != (uint32_t)context->boot->rank ||
			      hello->from >= (uint32_t)context->boot->ranks))
		return "its hello names other ranks";
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
	/* The buffer of a fresh socket has the capacity for it. */
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
	if (coll_seal_make(context, pending->watch.fd, &pending->hello, &pending->challenge, false,
			   &pending->seal))
		pending_drop(pending);
	else if (pending->hello.group)
		pending_arrive(pending);
	else
		pending_share(pending);
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
	ssize_t got = coll_recv_with_descriptor(watch->fd, to, all - pending->got,
						&pending->memory);

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

static void listen_resume(struct coll_context *context)
{
	uint32_t i;

	context->listen_again = 0;
	for (i = 0; i < context->listeners; i++)
		if (!context->listener[i].armed)
			coll_engine_watch(&context->engine, &context->listener[i], POLLIN);
}

void coll_listen_check(struct coll_context *context)
{
	uint64_t now = coll_now();
	struct coll_pending_peer *pending, *next;

	if (context->listen_again && now >= context->listen_again)
		listen_resume(context);
	for (pending = context->pending_peers; pending; pending = next) {
		next = pending->next;
		if (pending->state != PROVEN &&
		    now - pending->since > HELLO_TIMEOUT_S * COLL_SECOND)
			pending_refuse(pending, "it does not prove the secret in time");
	}
}

/* ---- accepting ------------------------------------------------------------ */

/*
 * Drops the connection that has been silent longest, if that is so long. A rank says hello at
 * once; so those that have are left alone, and their number is bounded by HELLO_TIMEOUT_S: the
 * process that a hello names is known to ranks, and to those that can read their traffic.
 */
static bool drop_silent(struct coll_context *context, uint64_t since)
{
	struct coll_pending_peer *pending, *oldest = NULL;

	for (pending = context->pending_peers; pending; pending = pending->next)
		if (pending->state == SILENT)
			oldest = pending;	/* the list begins with the latest */
	if (!oldest || oldest->since > since)
		return false;
	pending_refuse(oldest, "it said no hello, and others wait");
	return true;
}

/* All ranks may connect at once, for each stream; and for each link that is not shared. */
static uint64_t silent_max(const struct coll_context *context)
{
	const struct coll_group *group;
	uint64_t links = context->boot->ranks;

	for (group = context->offload ? context->groups : NULL; group; group = group->next)
		links += group->ranks;
	return STRANGERS_MAX + links * (1 + context->streams);
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

/* Out of descriptors: takes more, or drops long silent connections for the next one. */
static int listener_accept(struct coll_context *context, int listener, uint64_t now)
{
	int fd;

	do
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (fd < 0 && no_descriptor(errno) &&
	       ((errno == EMFILE && coll_descriptors_raise()) ||
		drop_silent(context, now - SILENT_NS)));
	return fd;
}

/* Without memory the connection is closed: its peer connects again, a few times. */
static struct coll_pending_peer *pending_make(struct coll_context *context)
{
	struct coll_pending_peer *pending;

	if (context->pending_count >= PENDING_MAX)
		return NULL;
	pending = calloc(1, sizeof(*pending));
	if (!pending && !context->listen_error) {
		fprintf(stderr, "coll: rank %d: closed a connection: %s (told once)\n",
			context->boot->rank, strerror(ENOMEM));
		context->listen_error = -ENOMEM;
	}
	return pending;
}

static void listener_ready(struct coll_watch *watch, int events)
{
	struct coll_context *context = watch->owner;
	uint64_t now = coll_now();
	int fd;

	(void)events;
	while ((fd = listener_accept(context, watch->fd, now)) >= 0) {
		struct coll_pending_peer *pending;

		if (context->silent >= silent_max(context))
			drop_silent(context, now);
		pending = pending_make(context);
		if (!pending) {
			close(fd);
			continue;
		}
		context->listen_error = 0;
		coll_connection_tune(context, fd);
		pending->context = context;
		pending->since = now;
		pending->memory = -1;
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

/*
 * A Unix socket for the ranks of this node. Without it they use TCP, as where connections are
 * sealed or an address is asked for.
 */
static void listen_locally(struct coll_context *context)
{
	const struct coll_options *options = &context->options;
	struct coll_address address;
	int fd;

	if (strcmp(options->memory, "auto") || !strcmp(options->protect, "seal") ||
	    options->address[0] || context->offload || context->boot->local_ranks == 1)
		return;
	fd = coll_connection_socket(context, AF_UNIX);
	if (fd < 0)
		return;
	coll_local_address(&address, context->process);
	if (bind(fd, (struct sockaddr *)&address.socket, address.bytes) || listen(fd, BACKLOG)) {
		close(fd);
		return;
	}
	context->listener[context->listeners++] =
		(struct coll_watch){ .ready = listener_ready, .owner = context, .fd = fd };
	context->listens_locally = true;
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
 * addresses where other nodes reach this one.
 */
static int listen_where_needed(struct coll_context *context, char *line, size_t capacity)
{
	const struct coll_boot *boot = context->boot;

	*line = 0;
	if (boot->local_ranks == boot->ranks)
		return listen_at(context, "127.0.0.1");
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
	while (context->pending_peers)
		pending_drop(context->pending_peers);
	close_listeners(context);
}
