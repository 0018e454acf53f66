// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * How links are made. Every process listens, and publishes in the store
 *
 *	addr/<rank in the job> = "<node> <process> <pid>@<namespace> <port> <address> ..."
 *
 * A rank that needs a link to a higher rank looks that up and connects: over loopback on
 * the same node (machine and network namespace), else over the addresses in turn, so links
 * spread over a node's rails. A connection begins with a handshake (base/handshake.h). In it
 * both processes prove that they belong to the job, and the accepting one that it is the
 * process that published the address. Nothing else is sent before. The peer answers when it
 * polls its engine.
 */
#include <errno.h>
#include <nettle/base16.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connection.h"
#include "libcoll/engine/engine.h"
#include "peer_process.h"

/* The handshake of a connection that is not the link's yet. */
struct coll_introduction {
	struct coll_hello hello;
	struct coll_challenge challenge;
	uint32_t got;			/* bytes of the challenge */
	uint32_t again;			/* how often the same address has been tried once more */
};

/* ---- the peer's address --------------------------------------------------- */

/* Reads the process of a published line. */
static bool process_parse(const char *text, uint8_t process[COLL_PROCESS_BYTES])
{
	struct base16_decode_ctx decode;
	size_t bytes = COLL_PROCESS_BYTES;

	base16_decode_init(&decode);
	return strlen(text) == 2 * COLL_PROCESS_BYTES &&
	       base16_decode_update(&decode, &bytes, process, strlen(text), text) &&
	       bytes == COLL_PROCESS_BYTES && base16_decode_final(&decode);
}

/* Watches the peer's process, which is on this node. */
static bool peer_has_ended(const struct coll_link *link, const char *text)
{
	struct coll_process_id id;
	unsigned long namespace;

	if (sscanf(text, "%u@%lu", &id.pid, &namespace) != 2)
		return false;
	id.namespace = namespace;
	return coll_peer_watch(link->group->context, link->group->world[link->rank], id);
}

/* Address number `attempts` of a published line; -ENOENT when all were tried. */
static int address_choose(const struct coll_link *link, char *line, struct coll_address *address)
{
	const struct coll_group *group = link->group;
	char *save, *node = strtok_r(line, " ", &save), *process = strtok_r(NULL, " ", &save),
	     *pid = strtok_r(NULL, " ", &save), *port = strtok_r(NULL, " ", &save);
	char *texts[32], *text;
	uint32_t count = 0;

	while ((text = strtok_r(NULL, " ", &save)) && count < 32)
		texts[count++] = text;
	if (!node || !process || !port ||
	    !process_parse(process, link->introduction->hello.process))
		return -EPROTO;
	if (!strcmp(node, group->context->node) && peer_has_ended(link, pid))
		return -ECONNRESET;
	if (!strcmp(node, group->context->node) && !group->context->options.address[0]) {
		if (link->attempts > 0)
			return -ENOENT;
		return coll_address_parse(address, "127.0.0.1", atoi(port));
	}
	if (link->attempts >= count)
		return -ENOENT;
	text = texts[(group->rank + link->rank + link->number + link->attempts) % count];
	return coll_address_parse(address, text, atoi(port));
}

static int link_try_next(struct coll_link *link);

/* How many streams the links have that this rank connects. */
static uint32_t streams_wanted(const struct coll_link *link)
{
	const uint32_t streams = link->group->context->streams;

	return coll_link_is_far(link) && streams > 1 ? streams : 0;
}

/* The buffer of a fresh socket has the capacity for it. */
static bool link_say_hello(const struct coll_link *link)
{
	const struct coll_group *group = link->group;
	struct coll_introduction *introduction = link->introduction;
	struct coll_hello *hello = &introduction->hello;
	const struct coll_process_id self = coll_process_self();

	hello->magic = COLL_WIRE_MAGIC;
	hello->version = COLL_WIRE_VERSION;
	hello->streams = streams_wanted(link);
	hello->stream = link->number;
	hello->from = group->rank;
	hello->to = link->rank;
	hello->group = group->id;
	hello->pid = self.pid;
	hello->pid_namespace = self.namespace;
	introduction->got = 0;
	return coll_nonce_make(hello->nonce, sizeof(hello->nonce)) &&
	       send(link->connecting.fd, hello, sizeof(*hello), MSG_NOSIGNAL) == sizeof(*hello);
}

static bool link_prove(const struct coll_link *link)
{
	const struct coll_introduction *introduction = link->introduction;
	const struct coll_hello *hello = &introduction->hello;
	const struct coll_context *context = link->group->context;
	struct coll_proof proof;

	if (!coll_challenge_verify(&introduction->challenge, context->key, hello, sizeof(*hello)))
		return false;
	coll_proof_make(&proof, &introduction->challenge, context->key, hello, sizeof(*hello));
	return send(link->connecting.fd, &proof, sizeof(proof), MSG_NOSIGNAL) == sizeof(proof);
}

/* This address leads nowhere, or to a process that is not the peer. */
static void link_connect_failed(struct coll_link *link)
{
	int error;

	close(link->connecting.fd);
	link->connecting.fd = -1;
	error = link_try_next(link);
	if (error)
		coll_link_lost(link, error);
}

enum { AGAIN_MAX = 3 };

/*
 * The peer may have dropped this connection for another, when unproven ones were many: the
 * same address again, a few times. If the peer is gone that fails at once.
 */
static void link_connect_again(struct coll_link *link)
{
	if (!link->introduction->got && link->introduction->again++ < AGAIN_MAX)
		link->attempts--;
	link_connect_failed(link);
}

static void link_introduced(struct coll_link *link)
{
	const int fd = link->connecting.fd;
	uint32_t i;

	if (!link_prove(link) || coll_connection_attach(link, fd, streams_wanted(link))) {
		link_connect_failed(link);
		return;
	}
	free(link->introduction);
	link->introduction = NULL;
	for (i = 0; i < link->streams && link->state == LINK_UP; i++)
		coll_link_open(&link->stream[i]);
}

static void link_challenged(struct coll_watch *watch, int events)
{
	struct coll_link *link = watch->owner;
	struct coll_introduction *introduction = link->introduction;
	uint8_t *to = (uint8_t *)&introduction->challenge + introduction->got;
	ssize_t got = recv(watch->fd, to, sizeof(introduction->challenge) - introduction->got,
			   MSG_DONTWAIT);

	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		got = 0;
	else if (got <= 0) {
		link_connect_again(link);
		return;
	}
	introduction->got += got;
	if (introduction->got < sizeof(introduction->challenge))
		coll_engine_watch(&link->group->context->engine, watch, POLLIN);
	else
		link_introduced(link);
}

/* The attempt to connect has ended: says hello, or tries the next address. */
static void link_connected(struct coll_watch *watch, int events)
{
	struct coll_link *link = watch->owner;
	int error = 0;
	socklen_t bytes = sizeof(error);

	(void)events;
	getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
	watch->ready = link_challenged;
	if (error || !link_say_hello(link) ||
	    coll_engine_watch(&link->group->context->engine, watch, POLLIN))
		link_connect_failed(link);
}

/* The line that the peer has published. It is kept for connections of streams. */
static int link_published(struct coll_link *link, char line[COLL_BOOT_VALUE_MAX + 1])
{
	struct coll_link *whole = link->whole;
	size_t bytes = COLL_BOOT_VALUE_MAX;
	char key[32];
	int error;

	if (whole->published) {
		strcpy(line, whole->published);
		return 0;
	}
	snprintf(key, sizeof(key), "addr/%u", link->group->world[link->rank]);
	error = coll_boot_get(link->group->context->boot, key, line, &bytes,
			      coll_now() + link->group->options.deadline_ns);
	if (error)
		return error;
	line[bytes] = 0;
	if (streams_wanted(whole))
		whole->published = strdup(line);
	return 0;
}

/* Connects to the next address of the peer. */
static int link_try_next(struct coll_link *link)
{
	struct coll_context *context = link->group->context;
	char line[COLL_BOOT_VALUE_MAX + 1];
	struct coll_address address;
	int error, fd;

	if (!link->introduction)
		link->introduction = calloc(1, sizeof(*link->introduction));
	if (!link->introduction)
		return -ENOMEM;
	error = link_published(link, line);
	if (error)
		return error;
	for (;;) {
		char copy[sizeof(line)];

		strcpy(copy, line);
		error = address_choose(link, copy, &address);
		if (error)
			return error == -ENOENT ? -EHOSTUNREACH : error;
		link->attempts++;
		fd = coll_connection_socket(context, address.socket.ss_family);
		if (fd < 0)
			return fd;
		coll_connection_tune(context, fd);
		if (!connect(fd, (struct sockaddr *)&address.socket, address.bytes) ||
		    errno == EINPROGRESS)
			break;
		close(fd);
	}
	link->connecting = (struct coll_watch){ .ready = link_connected, .owner = link, .fd = fd };
	error = coll_engine_watch(&context->engine, &link->connecting, POLLOUT);
	if (error)
		close(fd);
	return error;
}

void coll_link_open(struct coll_link *link)
{
	int error;

	if (link->state != LINK_IDLE || link->rank < link->group->rank)
		return;
	coll_link_set_state(link, LINK_CONNECTING);
	error = link_try_next(link);
	if (error)
		coll_link_lost(link, error);
}

void coll_link_abandon_connect(struct coll_link *link)
{
	struct coll_context *context = link->group->context;

	free(link->introduction);
	link->introduction = NULL;
	if (!link->connecting.armed)
		return;
	coll_engine_unwatch(&context->engine, &link->connecting);
	close(link->connecting.fd);
	link->connecting.fd = -1;
}
