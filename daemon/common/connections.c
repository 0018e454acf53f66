// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <sys/socket.h>

#include "clock.h"
#include "connections.h"
#include "peer.h"

/* For a request, from its first byte or from the answer before; for the longest answer, of 32 MB. */
static const u64 REQUEST_NS = 10000000000ull, SEND_NS = 60000000000ull;

void colld_connections_init(struct colld_connections *all)
{
	u32 i;

	*all = (struct colld_connections){ .refused = 0 };
	for (i = 0; i < COLLD_CONNECTIONS; i++)
		all->one[i].fd = -1;
}

/* The library sees its end, and closes it. */
static void connection_cut(int fd)
{
	shutdown(fd, SHUT_RDWR);
}

struct colld_connection *colld_connections_add(struct colld_connections *all, int fd)
{
	const u64 who = colld_peer_find(fd);
	struct colld_connection *found = NULL;
	const u32 kept = colld_peer_is_user(who) ? COLLD_CONNECTIONS_KEPT : 0;
	u32 i, has = 0, left = 0;

	for (i = 0; i < COLLD_CONNECTIONS; i++)
		if (all->one[i].fd < 0) {
			found = &all->one[i];
			left++;
		} else {
			has += all->one[i].who == who;
		}
	if (who == COLLD_PEER_GONE || has >= COLLD_CONNECTIONS_PEER || has + kept >= left) {
		all->refused++;
		connection_cut(fd);
		return NULL;
	}
	*found = (struct colld_connection){ fd, who, colld_now() + REQUEST_NS };
	return found;
}

void colld_connections_remove(struct colld_connection *one)
{
	one->fd = -1;
}

void colld_connection_waits(struct colld_connection *one)
{
	one->until = 0;
}

void colld_connection_is_sent(struct colld_connection *one)
{
	one->until = colld_now() + SEND_NS;
}

void colld_connection_is_free(struct colld_connection *one)
{
	one->until = colld_now() + REQUEST_NS;
}

u32 colld_connections_count(const struct colld_connections *all)
{
	u32 i, count = 0;

	for (i = 0; i < COLLD_CONNECTIONS; i++)
		count += all->one[i].fd >= 0;
	return count;
}

void colld_connections_expire(struct colld_connections *all)
{
	const u64 now = colld_now();
	u32 i;

	for (i = 0; i < COLLD_CONNECTIONS; i++) {
		struct colld_connection *one = &all->one[i];

		if (one->fd < 0 || !one->until || now < one->until)
			continue;
		one->until = 0;
		all->slow++;
		connection_cut(one->fd);
	}
}
