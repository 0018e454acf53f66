// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <nettle/base16.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connect.h"
#include "libcoll/base/descriptors.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/memory.h"
#include "libcoll/link/link.h"
#include "peer_process.h"
#include "seal.h"
#include "shared_memory.h"

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

/* Watches the peer's process, which is on this node: coll_peer_watch(). */
static int peer_watch(struct coll_context *context, uint32_t world, const char *text)
{
	struct coll_process_id id;
	unsigned long namespace;

	if (sscanf(text, "%u@%lu", &id.pid, &namespace) != 2)
		return 0;
	id.namespace = namespace;
	return coll_peer_watch(context, world, id);
}

/*
 * Address number `attempts` of a process on this node: its Unix socket if both take memory, then
 * loopback.
 */
static int address_on_node(const struct coll_connect *attempt, const char *links,
			   const char *port, struct coll_address *address)
{
	struct coll_context *context = attempt->context;
	const bool memory = !strcmp(links, "memory") && !attempt->hello.group &&
			    coll_listens_for_memory(context);

	if (attempt->attempts > (uint32_t)memory)
		return -ENOENT;
	if (memory && !attempt->attempts) {
		if (coll_shared_memory_is_left(context)) {
			coll_local_address(address, context->key, attempt->hello.process);
			return 0;
		}
		context->without_memory = "the cgroup's memory";
	}
	return coll_address_parse(address, "127.0.0.1", atoi(port));
}

/* Address number `attempts` of a published line; -ENOENT when all were tried. */
static int address_choose(struct coll_connect *attempt, char *line, struct coll_address *address)
{
	const struct coll_context *context = attempt->context;
	char *save, *node = strtok_r(line, " ", &save), *process = strtok_r(NULL, " ", &save),
	     *pid = strtok_r(NULL, " ", &save), *links = strtok_r(NULL, " ", &save),
	     *port = strtok_r(NULL, " ", &save);
	char *texts[32], *text;
	uint32_t count = 0;

	while ((text = strtok_r(NULL, " ", &save)) && count < 32)
		texts[count++] = text;
	if (!node || !process || !links || !port || !process_parse(process, attempt->hello.process))
		return -EPROTO;
	if (!strcmp(node, context->node) && peer_watch(attempt->context, attempt->world, pid))
		return -ECONNRESET;
	attempt->has_others = false;		/* on this node what is not there refuses at once */
	if (!strcmp(node, context->node) && !context->options.address[0])
		return address_on_node(attempt, links, port, address);
	if (attempt->attempts >= count)
		return -ENOENT;
	attempt->has_others = attempt->attempts + 1 < count && !attempt->patient;
	text = texts[(attempt->spread + attempt->attempts) % count];
	attempt->may_be_elsewhere = !strcmp(text, "127.0.0.1");
	return coll_address_parse(address, text, atoi(port));
}

/* The line that the peer has published; kept, since streams connect as well. */
static int address_published(struct coll_context *context, uint32_t world, uint64_t deadline,
			     const char **line)
{
	char text[COLL_BOOT_VALUE_MAX + 1], key[32];
	size_t bytes = COLL_BOOT_VALUE_MAX;
	int error;

	if (!context->published)
		context->published = calloc(context->boot->ranks, sizeof(*context->published));
	if (!context->published)
		return -ENOMEM;
	*line = context->published[world];
	if (*line)
		return 0;
	snprintf(key, sizeof(key), "addr/%u", world);
	error = coll_boot_get(context->boot, key, text, &bytes, deadline);
	if (error)
		return error;
	text[bytes] = 0;
	*line = context->published[world] = strdup(text);
	return *line ? 0 : -ENOMEM;
}

static uint64_t boot_deadline(const struct coll_context *context)
{
	return coll_now() + context->options.deadline_ns;
}

int coll_connect_look(struct coll_context *context, uint32_t world)
{
	char node[sizeof(context->node)], pid[40];
	const char *line;
	int error = address_published(context, world, coll_now(), &line);

	if (error)
		return error == -ECONNRESET ? -EAGAIN : error;	/* the store's end is not the peer's */
	if (sscanf(line, "%79s %*s %39s", node, pid) != 2)
		return -EPROTO;
	if (strcmp(node, context->node))
		return -ENOTSUP;
	error = peer_watch(context, world, pid);
	return error ? error : coll_peer_is_watched(context, world) ? 0 : -ENOTSUP;
}

int coll_connect_shares(struct coll_context *context, uint32_t world, bool *shares)
{
	char links[8] = "";
	const char *line;
	int error = address_published(context, world, coll_now(), &line);

	if (error)
		return error;
	*shares = sscanf(line, "%*s %*s %*s %7s", links) == 1 && (!strcmp(links, "shared") || !strcmp(links, "memory"));
	return 0;
}

/* ---- the handshake -------------------------------------------------------- */

static int connect_try_next(struct coll_connect *attempt);

/* The buffer of a fresh socket has the capacity for it. */
static int connect_say_hello(struct coll_connect *attempt)
{
	struct coll_hello *hello = &attempt->hello;
	const struct coll_process_id self = coll_process_self();

	hello->magic = COLL_WIRE_MAGIC;
	hello->version = COLL_WIRE_VERSION;
	hello->pid = self.pid;
	hello->pid_namespace = self.namespace;
	attempt->got = 0;
	if (!coll_nonce_make(hello->nonce, sizeof(hello->nonce)))
		return -EIO;
	return send(attempt->watch.fd, hello, sizeof(*hello), MSG_NOSIGNAL) == sizeof(*hello) ?
		       0 : -ECONNRESET;
}

static int connect_prove(struct coll_connect *attempt)
{
	const struct coll_hello *hello = &attempt->hello;
	const uint8_t *key = attempt->context->key;
	struct coll_proof proof;

	if (!coll_challenge_verify(&attempt->challenge, key, hello, sizeof(*hello)))
		return -EACCES;
	if (coll_connection_is_unix(attempt->watch.fd))
		attempt->memory = coll_shared_memory_make(attempt->context, &attempt->memory_file);
	coll_proof_make(&proof, &attempt->challenge, key, hello, sizeof(*hello));
	return coll_send_with_descriptor(attempt->watch.fd, &proof, sizeof(proof), attempt->memory_file) ==
	       sizeof(proof) ? 0 : -ECONNRESET;
}

static int connect_hand_over(struct coll_connect *attempt)
{
	struct coll_connected connected = { .fd = attempt->watch.fd, .memory = attempt->memory };
	int error = coll_seal_make(attempt->context, attempt->watch.fd, &attempt->hello,
				   &attempt->challenge, true, &connected.seal);

	if (error)
		return error;
	attempt->memory = NULL;
	error = attempt->connected(attempt, &connected);
	if (!error)
		return 0;		/* the attempt may be gone */
	attempt->memory = connected.memory;
	coll_seal_free(connected.seal);
	return error;
}

static void connect_close_file(struct coll_connect *attempt)
{
	if (attempt->memory_file >= 0)
		close(attempt->memory_file);
	attempt->memory_file = -1;
}

static void connect_close(struct coll_connect *attempt)
{
	close(attempt->watch.fd);
	attempt->watch.fd = -1;
	connect_close_file(attempt);
	coll_memory_free(attempt->memory);
	attempt->memory = NULL;
}

/* This address leads nowhere, or to a process that is not the peer; or this rank lacks memory. */
static void connect_next(struct coll_connect *attempt, int error)
{
	if (!coll_is_our_lack(attempt->error))
		attempt->error = error;
	connect_close(attempt);
	error = connect_try_next(attempt);
	if (error)
		attempt->failed(attempt, error);
}

enum { AGAIN_MAX = 3 };

/*
 * The peer may have dropped this connection for another, when unproven ones were many: the
 * same address again, a few times. If the peer is gone that fails at once.
 */
static void connect_again(struct coll_connect *attempt)
{
	if (!attempt->got && attempt->again++ < AGAIN_MAX)
		attempt->attempts--;
	connect_next(attempt, -ECONNRESET);
}

/* Whether the peer has taken the memory. */
static void connect_answered_memory(struct coll_watch *watch, int events)
{
	struct coll_connect *attempt = watch->owner;
	uint8_t taken = 0;
	const ssize_t got = recv(watch->fd, &taken, 1, MSG_DONTWAIT);
	int error;

	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
		error = coll_engine_watch(&attempt->context->engine, watch, POLLIN);
		if (error)
			connect_next(attempt, error);
		return;
	}
	if (got != 1 || taken > !!attempt->memory) {
		connect_next(attempt, -ECONNRESET);
		return;
	}
	if (taken && !coll_shared_memory_is_kept(attempt->memory_file)) {
		connect_next(attempt, -EPROTO);
		return;
	}
	connect_close_file(attempt);
	if (!taken) {
		coll_memory_free(attempt->memory);
		attempt->memory = NULL;
	}
	error = connect_hand_over(attempt);
	if (error)
		connect_next(attempt, error);
}

static int connect_await_answer(struct coll_connect *attempt)
{
	attempt->watch.ready = connect_answered_memory;
	return coll_engine_watch(&attempt->context->engine, &attempt->watch, POLLIN);
}

/* All of the challenge has come. */
static int connect_answer(struct coll_connect *attempt)
{
	int error = connect_prove(attempt);

	if (error)
		return error;
	return coll_connection_is_unix(attempt->watch.fd) ? connect_await_answer(attempt) :
							    connect_hand_over(attempt);
}

static void connect_challenged(struct coll_watch *watch, int events)
{
	struct coll_connect *attempt = watch->owner;
	uint8_t *to = (uint8_t *)&attempt->challenge + attempt->got;
	ssize_t got = recv(watch->fd, to, sizeof(attempt->challenge) - attempt->got, MSG_DONTWAIT);
	int error;

	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		got = 0;
	else if (got <= 0) {
		connect_again(attempt);
		return;
	}
	attempt->got += got;
	error = attempt->got < sizeof(attempt->challenge) ?
			coll_engine_watch(&attempt->context->engine, watch, POLLIN) :
			connect_answer(attempt);
	if (error)
		connect_next(attempt, error);
}

/* The attempt to connect has ended: says hello, or tries the next address. */
static void connect_answered(struct coll_watch *watch, int events)
{
	struct coll_connect *attempt = watch->owner;
	int error = 0;
	socklen_t bytes = sizeof(error);

	(void)events;
	getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
	coll_connection_set_patience(attempt->context, watch->fd, false);
	watch->ready = connect_challenged;
	attempt->left_early |= error == ETIMEDOUT && attempt->has_others;
	error = error ? -error : connect_say_hello(attempt);
	if (!error)
		error = coll_engine_watch(&attempt->context->engine, watch, POLLIN);
	if (error)
		connect_next(attempt, error);
}

/* No address is left. If this rank lacked something that is why. */
static int connect_exhausted(const struct coll_connect *attempt)
{
	return coll_is_our_lack(attempt->error) ? attempt->error : -EHOSTUNREACH;
}

/* Connects to the next address of the peer. */
static int connect_try_next(struct coll_connect *attempt)
{
	struct coll_context *context = attempt->context;
	struct coll_address address;
	const char *line;
	int error, fd;

	error = address_published(context, attempt->world, boot_deadline(context), &line);
	if (error)
		return error;
	for (;;) {
		char copy[COLL_BOOT_VALUE_MAX + 1];

		strcpy(copy, line);
		error = address_choose(attempt, copy, &address);
		if (error == -ENOENT && attempt->left_early) {
			attempt->left_early = false;
			attempt->patient = true;
			attempt->attempts = 0;
			continue;
		}
		if (error)
			return error == -ENOENT ? connect_exhausted(attempt) : error;
		attempt->attempts++;
		fd = coll_connection_socket(context, address.socket.ss_family);
		if (fd < 0)
			return fd;
		coll_connection_tune(context, fd);
		if (attempt->has_others)
			coll_connection_set_patience(context, fd, true);
		if (address.socket.ss_family == AF_UNIX)
			coll_connection_accepts_descriptors(fd, false);
		if (!connect(fd, (struct sockaddr *)&address.socket, address.bytes) ||
		    errno == EINPROGRESS)
			break;
		if (!coll_is_our_lack(attempt->error))
			attempt->error = -errno;
		close(fd);
	}
	attempt->watch = (struct coll_watch){ .ready = connect_answered, .owner = attempt,
					      .fd = fd };
	error = coll_engine_watch(&context->engine, &attempt->watch, POLLOUT);
	if (error)
		close(fd);
	return error;
}

int coll_connect_begin(struct coll_connect *attempt)
{
	coll_assert(!attempt->watch.armed);
	attempt->attempts = attempt->again = attempt->error = 0;
	attempt->left_early = attempt->patient = false;
	attempt->memory_file = -1;
	return connect_try_next(attempt);
}

void coll_connect_abandon(struct coll_connect *attempt)
{
	if (!attempt->watch.armed)
		return;
	coll_engine_unwatch(&attempt->context->engine, &attempt->watch);
	connect_close(attempt);
}
