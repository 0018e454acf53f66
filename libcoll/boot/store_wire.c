// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "store.h"
#include "store_wire.h"

void coll_store_key(uint8_t key[COLL_KEY_BYTES], const uint8_t secret[COLL_SECRET_BYTES])
{
	coll_key_derive(key, secret, "store");
}

bool coll_store_request_read(struct coll_store_request *request, const void *wire)
{
	bool keyed;

	memcpy(request, wire, sizeof(*request));
	request->verb = le32toh(request->verb);
	request->key_bytes = le32toh(request->key_bytes);
	request->value_bytes = le32toh(request->value_bytes);
	request->wait_ms = le32toh(request->wait_ms);

	keyed = request->verb == STORE_PUT || request->verb == STORE_GET || request->verb == STORE_FORGET;
	return request->verb && request->verb < STORE_VERBS &&
	       request->key_bytes <= COLL_BOOT_KEY_MAX && keyed == !!request->key_bytes &&
	       request->value_bytes <= STORE_VALUE_MAX &&
	       (request->verb == STORE_PUT || !request->value_bytes);
}

int coll_store_split(const char *address, char *host, size_t bytes, const char **port)
{
	const char *colon = strrchr(address, ':'), *end = colon;
	char *rest;
	long number;

	if (!colon || colon == address)
		return -EINVAL;
	if (*address == '[') {
		address++;
		end--;
		if (*end != ']')
			return -EINVAL;
	} else if (memchr(address, ':', colon - address)) {
		return -EINVAL;
	}
	if (end <= address || (size_t)(end - address) >= bytes)
		return -EINVAL;
	memcpy(host, address, end - address);
	host[end - address] = '\0';

	number = strtol(colon + 1, &rest, 10);
	if (colon[1] < '0' || colon[1] > '9' || *rest || number > 65535)
		return -EINVAL;
	*port = colon + 1;
	return 0;
}

/* The address is well-formed: whatever the resolver says, it may say something else later. */
static int resolver_error(int status)
{
	switch (status) {
	case 0:
		return 0;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_AGAIN:
	case EAI_FAIL:
	case EAI_SYSTEM:
		return -EAGAIN;
	default:
		return -ENOENT;
	}
}

int coll_store_resolve(const char *address, bool listening, struct addrinfo **found)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	char host[COLL_STORE_ADDRESS_MAX];
	const char *port;
	int err;

	err = coll_store_split(address, host, sizeof(host), &port);
	if (err)
		return err;
	hints.ai_flags |= AI_NUMERICHOST;
	if (!getaddrinfo(host, port, &hints, found))
		return 0;
	hints.ai_flags &= ~AI_NUMERICHOST;
	if (listening && strcmp(host, "localhost")) {
		hints.ai_flags |= AI_PASSIVE;
		return getaddrinfo(NULL, port, &hints, found) ? -EINVAL : 0;
	}
	return resolver_error(getaddrinfo(host, port, &hints, found));
}
