// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "host.h"

enum { NAME_MOST = 253 };		/* of a name in the DNS */

static bool is_name_letter(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

bool colld_host_are_names(const char *names)
{
	size_t length = 0;

	for (; *names; names++) {
		const bool ends = *names == ',';

		if (ends ? !length : !is_name_letter(*names) || (*names == '.' && !length))
			return false;
		length = ends ? 0 : length + 1;
		if (length > NAME_MOST)
			return false;
	}
	return length;
}

static bool is_same(const char *name, size_t length, const char *other)
{
	return strlen(other) == length && !strncasecmp(name, other, length);
}

static bool is_of_list(const char *name, size_t length, const char *names)
{
	size_t one;

	for (; names && *names; names += one + (names[one] == ',')) {
		one = strcspn(names, ",");
		if (one == length && !strncasecmp(name, names, length))
			return true;
	}
	return false;
}

static bool is_node(const char *name, size_t length)
{
	char node[HOST_NAME_MAX + 1] = "";

	if (gethostname(node, sizeof(node) - 1) || !*node)
		return false;
	if (is_same(name, length, node))
		return true;
	node[strcspn(node, ".")] = 0;
	return *node && is_same(name, length, node);
}

static bool is_port(const char *text)
{
	return !*text || (*text == ':' && strspn(text + 1, "0123456789") == strlen(text + 1));
}

/* "[::1]:9469" */
static bool is_address_6(const char *host)
{
	const char *end = strchr(host, ']');
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;

	if (*host != '[' || !end || end - host > (int)sizeof(text) || !is_port(end + 1))
		return false;
	memcpy(text, host + 1, end - host - 1);
	text[end - host - 1] = 0;
	return inet_pton(AF_INET6, text, &address) == 1;
}

static bool is_address_4(const char *name, size_t length)
{
	char text[INET_ADDRSTRLEN];
	struct in_addr address;

	if (length >= sizeof(text))
		return false;
	memcpy(text, name, length);
	text[length] = 0;
	return inet_pton(AF_INET, text, &address) == 1;
}

bool colld_host_is_here(const char *host, const char *names)
{
	size_t length = strcspn(host, ":");

	if (*host == '[')
		return is_address_6(host);
	if (!is_port(host + length))
		return false;
	if (is_address_4(host, length))
		return true;
	length -= length && host[length - 1] == '.';	/* the root of all names */
	return length && (is_same(host, length, "localhost") || is_node(host, length) ||
			  is_of_list(host, length, names));
}
