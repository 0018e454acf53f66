// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A connection of the store's server: its stay, its replies, and its epoll events. */
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libcoll/base/log.h"
#include "core/port.h"
#include "libcoll/base/clock.h"
#include "store_server.h"

uint32_t coll_store_stays_complete(const struct coll_store *store)
{
	uint32_t least = UINT32_MAX;
	int i;

	for (i = 0; i < store->ranks; i++)
		if (store->member[i].joins < least)
			least = store->member[i].joins;
	return least;
}

/* All ranks have been there, and left: nobody can ask for its values. */
static bool stay_has_ended(const struct coll_store *store, uint32_t stay)
{
	int i;

	for (i = 0; i < store->connections; i++) {
		const struct coll_store_connection *c = store->connection[i];

		if (!coll_store_closed(c) && c->rank >= 0 && c->stay == stay)
			return false;
	}
	return stay < coll_store_stays_complete(store);
}

void coll_store_disconnect(struct coll_store *store, struct coll_store_connection *c)
{
	if (coll_store_closed(c))
		return;
	close(c->fd);
	c->fd = -1;
	if (c->rank < 0)
		return;
	store->member[c->rank].present--;
	if (stay_has_ended(store, c->stay))
		coll_store_table_drop(&store->table, c->stay);
}

/* A port scan must not flood the log. */
void coll_store_refuse(struct coll_store *store, struct coll_store_connection *c,
		       const char *reason)
{
	if (!__atomic_fetch_add(&store->refused, 1, __ATOMIC_RELAXED))
		coll_log_by_environment(COLL_LOG_WARN, "store of job %s: refused a connection "
					"from %s: %s (told once)", store->job, c->from, reason);
	coll_store_disconnect(store, c);
}

void coll_store_watch(struct coll_store *store, struct coll_store_connection *c)
{
	uint32_t events = c->out_sent < c->out_bytes ? EPOLLOUT : c->waits ? EPOLLRDHUP : EPOLLIN;
	struct epoll_event event = { .events = events, .data.ptr = c };

	if (coll_store_closed(c) || c->watched == events)
		return;
	if (epoll_ctl(store->epoll_fd, c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &event))
		coll_store_disconnect(store, c);
	c->watched = events;
}

void coll_store_flush(struct coll_store *store, struct coll_store_connection *c)
{
	ssize_t n;

	while (!coll_store_closed(c) && c->out_sent < c->out_bytes) {
		n = send(c->fd, c->out + c->out_sent, c->out_bytes - c->out_sent,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0)
			c->out_sent += n;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			coll_store_disconnect(store, c);
	}
}

void coll_store_say(struct coll_store *store, struct coll_store_connection *c, const void *head,
		    size_t head_bytes, const void *body, size_t body_bytes)
{
	coll_assert(head_bytes + body_bytes <= sizeof(c->out) && c->out_sent == c->out_bytes);
	memcpy(c->out, head, head_bytes);
	if (body_bytes)
		memcpy(c->out + head_bytes, body, body_bytes);
	c->out_bytes = head_bytes + body_bytes;
	c->out_sent = 0;
	c->in_bytes = 0;	/* the request has been answered */
	coll_store_flush(store, c);
}

void coll_store_reply(struct coll_store *store, struct coll_store_connection *c, int status,
		      const void *value, uint32_t bytes)
{
	struct coll_store_reply head = { .status = htole32(status), .bytes = htole32(bytes) };

	c->waits = 0;
	c->deadline = COLL_FOREVER;
	coll_store_say(store, c, &head, sizeof(head), value, bytes);
}
