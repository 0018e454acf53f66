// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "libcoll/base/descriptors.h"
#include "libcoll/base/log.h"
#include "arrival.h"
#include "channel.h"
#include "connection.h"
#include "core/port.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/memory.h"
#include "own_connection.h"
#include "peer_process.h"
#include "pending.h"
#include "seal.h"
#include "shared_memory.h"

enum {
	STRANGERS_MAX = 64,		/* connections without a hello, besides those of ranks */
	PENDING_MAX = 4096,
	HELLO_TIMEOUT_S = 10,		/* at least, */
	PATIENCE_MAX_S = 300,		/* and at most: strangers have connections, too */
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

/* Descriptor and seal have other owners, or none. Nobody watches. */
static void pending_remove(struct coll_pending_peer *pending)
{
	struct coll_pending_peer **slot = &pending->context->pending_peers;

	while (*slot != pending)
		slot = &(*slot)->next;
	*slot = pending->next;
	coll_assert(pending->context->pending_count);
	pending->context->silent -= pending->state == SILENT;
	pending->context->pending_count--;
	coll_assert(!pending->watch.armed);
	if (pending->arrival.ops)
		coll_arrival_remove(&pending->arrival);
	if (pending->memory >= 0)
		close(pending->memory);
	free(pending);
}

/* A child of this process may have the socket, too: closing does not end the watch then. */
static void pending_drop(struct coll_pending_peer *pending)
{
	if (pending->watch.armed)
		coll_engine_unwatch(&pending->context->engine, &pending->watch);
	close(pending->watch.fd);
	coll_seal_free(pending->seal);
	pending_remove(pending);
}

/* The first refusal is logged, later ones are counted: a port scan must not flood the log. */
static void refusal_tell(struct coll_context *context, int fd, const char *reason)
{
	char text[INET6_ADDRSTRLEN] = "?";
	struct sockaddr_storage from;
	socklen_t bytes = sizeof(from);

	if (!getpeername(fd, (struct sockaddr *)&from, &bytes))
		inet_ntop(from.ss_family,
			  from.ss_family == AF_INET ?
				  (void *)&((struct sockaddr_in *)&from)->sin_addr :
				  (void *)&((struct sockaddr_in6 *)&from)->sin6_addr,
			  text, sizeof(text));
	if (!context->counters.refused++)
		coll_log(&context->options, COLL_LOG_WARN,
			 "rank %d: refused a connection from %s: %s (told once)",
			 context->boot->rank, text, reason);
}

static void pending_refuse(struct coll_pending_peer *pending, const char *reason)
{
	refusal_tell(pending->context, pending->watch.fd, reason);
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

	if (!coll_muxes_may_accept(pending->context, hello->from)) {
		pending_refuse(pending, "its rank has too many already");
		return;
	}
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
	    hello->from == hello->to || hello->zero)
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
	/* One comes with the proof. */
	coll_connection_accepts_descriptors(pending->watch.fd, true);
	/*
	 * Watched first: a peer that has no challenge yet connects again. The buffer of a fresh
	 * socket has the capacity for it.
	 */
	if (!coll_challenge_make(challenge, context->key, hello, sizeof(*hello)) ||
	    coll_engine_watch(&context->engine, &pending->watch, POLLIN) ||
	    send(pending->watch.fd, challenge, sizeof(*challenge), MSG_NOSIGNAL) !=
		    sizeof(*challenge)) {
		pending_drop(pending);
		return;
	}
	pending_set_state(pending, CHALLENGED);
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
	ssize_t got = pending->state == SILENT ?
			      recv(watch->fd, to, all - pending->got, MSG_DONTWAIT) :
			      coll_recv_with_descriptor(watch->fd, to, all - pending->got,
							&pending->memory);

	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		got = 0;
	else if (got <= 0) {		/* also a rank that needs the connection no more */
		pending_drop(pending);
		return;
	}
	pending->got += got;
	if (pending->got < all) {
		if (coll_engine_watch(&pending->context->engine, watch, POLLIN))
			pending_drop(pending);	/* nobody would read it */
	} else if (pending->state == SILENT)
		pending_take_hello(pending);
	else
		pending_take_proof(pending);
}

/* ---- adding and dropping ---------------------------------------------------- */

static struct coll_pending_peer *pending_oldest(const struct coll_context *context, int state)
{
	struct coll_pending_peer *pending, *oldest = NULL;

	for (pending = context->pending_peers; pending; pending = pending->next)
		if ((int)pending->state == state)
			oldest = pending;	/* the list begins with the latest */
	return oldest;
}

/* A rank says hello at once; so those that have are left alone as long as there is room. */
bool coll_pending_drop_silent(struct coll_context *context, uint64_t since)
{
	struct coll_pending_peer *oldest = pending_oldest(context, SILENT);

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

/*
 * A rank proves itself at once. The process that a hello names is known to ranks, and to those
 * that can read their traffic, who can hold connections that never do.
 */
static bool pending_has_room(struct coll_context *context)
{
	struct coll_pending_peer *oldest;

	if (context->pending_count < PENDING_MAX)
		return true;
	oldest = pending_oldest(context, CHALLENGED);
	if (oldest)
		pending_refuse(oldest, "it does not prove the secret, and others wait");
	return oldest;
}

/* Without memory the connection is closed: its peer connects again, a few times. */
static struct coll_pending_peer *pending_make(struct coll_context *context)
{
	struct coll_pending_peer *pending;

	if (!pending_has_room(context))
		return NULL;
	pending = calloc(1, sizeof(*pending));
	if (!pending && !context->listen_error) {
		coll_log(&context->options, COLL_LOG_ERROR,
			 "rank %d: closed a connection: %s (told once)", context->boot->rank,
			 strerror(ENOMEM));
		context->listen_error = -ENOMEM;
	}
	return pending;
}

void coll_pending_add(struct coll_context *context, int fd, uint64_t now)
{
	struct coll_pending_peer *pending;

	if (coll_connection_is_unix(fd) && !coll_local_peer_is_trusted(fd)) {
		refusal_tell(context, fd, "it is of another user");
		close(fd);
		return;
	}
	if (context->silent >= silent_max(context))
		coll_pending_drop_silent(context, now);
	pending = pending_make(context);
	if (!pending) {
		close(fd);
		return;
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

/*
 * A rank answers when it gets a core and calls the library: with hundreds of them on a few cores, or
 * one that computes meanwhile, that takes long. What limits any wait for it limits this one, too.
 */
static uint64_t pending_patience(const struct coll_context *context)
{
	const uint64_t least = HELLO_TIMEOUT_S * COLL_SECOND, most = PATIENCE_MAX_S * COLL_SECOND;
	const uint64_t deadline = context->options.deadline_ns;

	return deadline < least ? least : deadline > most ? most : deadline;
}

void coll_pending_check(struct coll_context *context, uint64_t now)
{
	struct coll_pending_peer *pending, *next;

	for (pending = context->pending_peers; pending; pending = next) {
		next = pending->next;
		if (pending->state != PROVEN && now - pending->since > pending_patience(context))
			pending_refuse(pending, "it does not prove the secret in time");
	}
}

uint64_t coll_pending_due(const struct coll_context *context)
{
	const struct coll_pending_peer *pending;
	uint64_t due = COLL_FOREVER;

	for (pending = context->pending_peers; pending; pending = pending->next)
		if (pending->state != PROVEN)	/* the list begins with the latest */
			due = pending->since + pending_patience(context) + 1;
	return due;
}

/* Anybody can say its hello. If the peer has answered the challenge, that is here. */
static bool pending_has_answer(const struct coll_pending_peer *pending)
{
	int left;

	return pending->state == CHALLENGED && !ioctl(pending->watch.fd, FIONREAD, &left) && left;
}

bool coll_pending_expects(const struct coll_link *link)
{
	const struct coll_group *group = link->group;
	const struct coll_pending_peer *pending = group->context->pending_peers;

	for (; pending; pending = pending->next) {
		const struct coll_hello *hello = &pending->hello;

		if ((hello->group ? hello->group == group->id && hello->from == link->rank :
				    hello->from == group->world[link->rank]) &&
		    pending_has_answer(pending))
			return true;
	}
	return false;
}

void coll_pending_drop_all(struct coll_context *context)
{
	while (context->pending_peers)
		pending_drop(context->pending_peers);
}
