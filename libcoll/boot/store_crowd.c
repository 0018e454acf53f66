// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Which unauthenticated connection makes room for another. */
#include <string.h>
#include <sys/socket.h>

#include "store_server.h"

/* Sources share a crowd by chance only: they cannot know the key. */
enum { CROWDS = 256 };

void coll_store_source(uint8_t source[COLL_STORE_SOURCE_BYTES], const struct sockaddr *from)
{
	const struct in6_addr *six = &((const struct sockaddr_in6 *)from)->sin6_addr;
	const uint8_t *four = (const uint8_t *)&((const struct sockaddr_in *)from)->sin_addr;

	memset(source, 0, COLL_STORE_SOURCE_BYTES);
	if (from->sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(six)) {
		memcpy(source, six, COLL_STORE_SOURCE_BYTES);	/* of ::1: zeros */
		return;
	}
	if (from->sa_family == AF_INET6)
		four = six->s6_addr + 12;
	if (four[0] == IN_LOOPBACKNET)
		return;
	memcpy(source + 2, "\xff\xff", 2);
	memcpy(source + 4, four, 4);
}

static uint32_t crowd_of(const struct coll_store *store, const struct coll_store_connection *c)
{
	uint32_t hash = c->challenged;
	int i;

	for (i = 0; i < COLL_STORE_SOURCE_BYTES; i++)
		hash = (hash ^ c->source[i] ^ store->key[i]) * 0x01000193;
	return (hash ^ hash >> 16) % CROWDS;
}

struct coll_store_connection *coll_store_crowded(const struct coll_store *store)
{
	struct coll_store_connection *c, *oldest[CROWDS] = { NULL }, *crowded = NULL;
	uint32_t count[CROWDS] = { 0 }, most = 0, crowd;
	int i;

	for (i = 0; i < store->connections; i++) {
		c = store->connection[i];
		if (coll_store_closed(c) || c->rank >= 0)
			continue;
		crowd = crowd_of(store, c);
		if (!oldest[crowd])
			oldest[crowd] = c;
		if (++count[crowd] > most) {
			most = count[crowd];
			crowded = oldest[crowd];
		}
	}
	return crowded;
}
