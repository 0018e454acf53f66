// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "endpoints.h"

size_t coll_node_addresses(char *line, size_t length, size_t capacity)
{
	struct ifaddrs *all, *one;

	if (getifaddrs(&all))
		return length;
	for (one = all; one; one = one->ifa_next) {
		char text[INET6_ADDRSTRLEN];
		const void *address;

		if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) || one->ifa_flags & IFF_LOOPBACK)
			continue;
		if (one->ifa_addr->sa_family == AF_INET) {
			address = &((struct sockaddr_in *)one->ifa_addr)->sin_addr;
		} else if (one->ifa_addr->sa_family == AF_INET6) {
			address = &((struct sockaddr_in6 *)one->ifa_addr)->sin6_addr;
			if (IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)address))
				continue;
		} else {
			continue;
		}
		inet_ntop(one->ifa_addr->sa_family, address, text, sizeof(text));
		if (length + strlen(text) + 2 < capacity)
			length += sprintf(line + length, " %s", text);
	}
	freeifaddrs(all);
	return length;
}

static bool endpoints_append(char *list, size_t capacity, const char *host, unsigned int port)
{
	const size_t length = strlen(list);
	const int n = snprintf(list + length, capacity - length, strchr(host, ':') ? "%s[%s]:%u" :
			       "%s%s:%u", length ? "," : "", host, port);

	if (n < (int)(capacity - length))
		return true;
	list[length] = '\0';
	return false;
}

int coll_node_endpoints(char *list, size_t capacity, unsigned int port)
{
	char line[1024], host[65] = "", *save, *text;
	int count = 0;

	*list = '\0';
	line[coll_node_addresses(line, 0, sizeof(line))] = '\0';
	/* IPv4 first: a socket that listens on all addresses listens there. */
	for (text = strtok_r(line, " ", &save); text && count < ENDPOINTS_MAX - 1;
	     text = strtok_r(NULL, " ", &save))
		count += endpoints_append(list, capacity, text, port);
	if (!gethostname(host, sizeof(host) - 1) && *host)
		count += endpoints_append(list, capacity, host, port);
	return count;
}
