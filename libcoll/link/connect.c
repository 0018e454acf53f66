// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * How links are made. Every process listens, and publishes in the store
 *
 *	addr/<rank in the job> = "<node> <port> <address> <address> ..."
 *
 * A rank that needs a link to a higher rank looks that up and connects: over loopback on
 * the same node (machine and network namespace), else over the addresses in turn, so links
 * spread over a node's rails. A hello with a proof of the job's secret introduces the
 * connection; without the proof it is refused.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connection.h"
#include "libcoll/engine/engine.h"

/* Address number `attempts` of a published line; -ENOENT when all were tried. */
static int address_choose(const struct coll_link *link, char *line, struct coll_address *address)
{
	const struct coll_group *group = link->group;
	char *save, *node = strtok_r(line, " ", &save), *port = strtok_r(NULL, " ", &save);
	char *texts[32], *text;
	uint32_t count = 0;

	while ((text = strtok_r(NULL, " ", &save)) && count < 32)
		texts[count++] = text;
	if (!node || !port)
		return -EPROTO;
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
static bool link_say_hello(const struct coll_link *link, int fd)
{
	const struct coll_group *group = link->group;
	struct coll_hello hello = {
		.magic = COLL_WIRE_MAGIC,
		.version = COLL_WIRE_VERSION,
		.streams = streams_wanted(link),
		.stream = link->number,
		.from = group->rank,
		.to = link->rank,
		.group = group->id,
	};

	coll_hello_prove(group->context, &hello, hello.proof);
	return send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello);
}

/* The attempt has ended: says hello, or tries the next address. */
static void link_connected(struct coll_watch *watch, int events)
{
	struct coll_link *link = watch->owner;
	int error = 0;
	socklen_t bytes = sizeof(error);
	uint32_t i;

	(void)events;
	getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
	if (!error && link_say_hello(link, watch->fd) &&
	    !coll_connection_attach(link, watch->fd, streams_wanted(link))) {
		for (i = 0; i < link->streams && link->state == LINK_UP; i++)
			coll_link_open(&link->stream[i]);
		return;
	}
	close(watch->fd);
	watch->fd = -1;
	error = link_try_next(link);
	if (error)
		coll_link_lost(link, error);
}

/* The line that the peer has published. It is kept for connections of streams. */
static int link_where(struct coll_link *link, char line[COLL_BOOT_VALUE_MAX + 1])
{
	struct coll_link *whole = link->whole;
	size_t bytes = COLL_BOOT_VALUE_MAX;
	char key[32];
	int error;

	if (whole->where) {
		strcpy(line, whole->where);
		return 0;
	}
	snprintf(key, sizeof(key), "addr/%u", link->group->world[link->rank]);
	error = coll_boot_get(link->group->context->boot, key, line, &bytes,
			      coll_now() + link->group->options.deadline_ns);
	if (error)
		return error;
	line[bytes] = 0;
	if (streams_wanted(whole))
		whole->where = strdup(line);
	return 0;
}

/* Connects to the next address of the peer. */
static int link_try_next(struct coll_link *link)
{
	struct coll_context *context = link->group->context;
	char line[COLL_BOOT_VALUE_MAX + 1];
	struct coll_address address;
	int error, fd;

	error = link_where(link, line);
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

	if (!link->connecting.armed)
		return;
	coll_engine_unwatch(&context->engine, &link->connecting);
	if (link->number)	/* connected meanwhile: the peer learns which stream it was */
		link_say_hello(link, link->connecting.fd);
	close(link->connecting.fd);
	link->connecting.fd = -1;
}
