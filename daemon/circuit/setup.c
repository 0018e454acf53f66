// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/noise/text.h"
#include "daemon/switch/switch.h"
#include "setup.h"

static const char valid[] = "socket PATH, switch DRIVER ..., node NAME PORT[,PORT...] [ADDRESS], "
			    "kernel NODE PREFIX, limit N, retries N, or lease, grace, keep, "
			    "timeout, retry or reconcile and a time";

enum { SHORTEST_NS = 1000000 };

struct reading {
	struct circuit_setup *setup;
	bool taken[SWITCH_PORTS_MAX + 1];
	char *why;
	size_t bytes;
};

__attribute__((format(printf, 2, 3)))
static bool circuit_setup_refuse(struct reading *reading, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(reading->why, reading->bytes, format, list);
	va_end(list);
	return false;
}

static bool read_number(struct reading *reading, const char *what, const char *text, u32 most,
			u32 *number)
{
	char *rest = NULL;
	const unsigned long value = text ? strtoul(text, &rest, 10) : 0;

	if (!text || rest == text || *rest || value > most)
		return circuit_setup_refuse(reading, "%s: from 0 to %u", what, most);
	*number = value;
	return true;
}

/* Each port of the switch has one node. */
static bool read_ports(struct reading *reading, struct circuit_node *node, char *list)
{
	char *save, *word;
	u32 port;

	for (word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (!read_number(reading, "node: a port", word, SWITCH_PORTS_MAX, &port))
			return false;
		if (!port || reading->taken[port] || node->ports == COLL_CIRCUIT_PORTS_MAX)
			return circuit_setup_refuse(
				reading,
				"node: port %u: ports count from 1, each is one node's, "
				"and a node has %d at most",
				port, COLL_CIRCUIT_PORTS_MAX);
		reading->taken[port] = true;
		node->port[node->ports++] = port;
	}
	return true;
}

static bool read_node(struct reading *reading, const char *name, char *ports, const char *address)
{
	struct circuit_setup *setup = reading->setup;
	struct circuit_node *node = &setup->node[setup->nodes];
	u32 i;

	if (!name || !ports)
		return circuit_setup_refuse(reading,
					    "node: a name and the switch's ports: node a 1,2");
	if (setup->nodes == CIRCUIT_NODES_MAX || strlen(name) >= COLL_CIRCUIT_NAME)
		return circuit_setup_refuse(
			reading, "node: at most %d nodes, with names of at most %d bytes",
			CIRCUIT_NODES_MAX, COLL_CIRCUIT_NAME - 1);
	for (i = 0; i < setup->nodes; i++)
		if (!strcmp(setup->node[i].name, name))
			return circuit_setup_refuse(reading, "node: '%s' is listed twice", name);
	*node = (struct circuit_node){ .ports = 0 };
	strcpy(node->name, name);
	setup->nodes++;
	if (address && inet_pton(AF_INET, address, node->address) == 1)
		node->address_bytes = 4;
	else if (address && inet_pton(AF_INET6, address, node->address) == 1)
		node->address_bytes = 16;
	else if (address)
		return circuit_setup_refuse(reading, "node: '%s' is no IPv4 or IPv6 address",
					    address);
	return read_ports(reading, node, ports);
}

/* The node whose traffic coll.ko holds: this host. */
static bool read_kernel(struct reading *reading, const char *name, const char *prefix)
{
	struct circuit_setup *setup = reading->setup;
	u32 i, bits;

	for (i = 0; name && i < setup->nodes; i++)
		if (!strcmp(setup->node[i].name, name) && setup->node[i].address_bytes)
			break;
	if (!name || i == setup->nodes)
		return circuit_setup_refuse(
			reading, "kernel: NODE must be listed before, with an address");
	if (!read_number(reading, "kernel: the prefix", prefix, 8 * setup->node[i].address_bytes,
			 &bits))
		return false;
	setup->kernel = i;
	setup->kernel_prefix = bits;
	return true;
}

/* Without the blanks before a comment. */
static void end_of_words(char *text)
{
	size_t length = strlen(text);

	while (length && strchr(" \t\r", text[length - 1]))
		text[--length] = 0;
}

static bool read_switch(struct reading *reading, char *text)
{
	struct circuit_setup *setup = reading->setup;
	char *save, *driver = strtok_r(text, " \t", &save);
	u32 i;

	if (driver && switch_find(driver)) {
		snprintf(setup->driver, sizeof(setup->driver), "%s", driver);
		snprintf(setup->argument, sizeof(setup->argument), "%s",
			 save + strspn(save, " \t"));
		end_of_words(setup->argument);
		return true;
	}
	circuit_setup_refuse(reading, "switch: '%s'; valid:", driver ? driver : "");
	for (i = 0; switch_drivers[i]; i++) {
		const size_t length = strlen(reading->why);

		snprintf(reading->why + length, reading->bytes - length, " %s",
			 switch_drivers[i]->name);
	}
	return false;
}

static bool read_line(struct reading *reading, char *text)
{
	struct circuit_setup *setup = reading->setup;
	const struct { const char *name; u64 *time, least; } times[] = {
		{ "lease", &setup->policy.lease, 0 }, { "grace", &setup->policy.grace, 0 },
		{ "keep", &setup->policy.keep, 0 }, { "retry", &setup->policy.retry, 0 },
		{ "timeout", &setup->policy.timeout, SHORTEST_NS },	/* below, curl waits forever */
		{ "reconcile", &setup->reconcile, SHORTEST_NS },
	};
	char *save, *key = strtok_r(text, " \t", &save), *value;
	u32 i;

	if (!strcmp(key, "switch"))
		return read_switch(reading, save);
	value = strtok_r(NULL, " \t", &save);
	if (!strcmp(key, "node")) {
		char *ports = strtok_r(NULL, " \t", &save);

		return read_node(reading, value, ports, strtok_r(NULL, " \t", &save));
	}
	if (!strcmp(key, "kernel"))
		return read_kernel(reading, value, strtok_r(NULL, " \t", &save));
	if (!strcmp(key, "limit"))
		return read_number(reading, key, value, CIRCUITS_MAX, &setup->policy.limit);
	if (!strcmp(key, "retries"))
		return read_number(reading, key, value, 100, &setup->policy.retries);
	if (!strcmp(key, "socket")) {
		if (!value || strlen(value) >= sizeof(setup->socket))
			return circuit_setup_refuse(reading, "socket: a path of at most %zu bytes",
						    sizeof(setup->socket) - 1);
		strcpy(setup->socket, value);
		return true;
	}
	for (i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (!strcmp(key, times[i].name))
			return (value && coll_text_time(value, 1000000000, times[i].time) &&
				*times[i].time >= times[i].least) ||
			       circuit_setup_refuse(reading, "%s: a time such as 20ms%s", key,
						    times[i].least ? ", at least 1ms" : "");
	return circuit_setup_refuse(reading, "no '%s'; valid: %s", key, valid);
}

int circuit_setup_read(const char *path, struct circuit_setup *setup, char *why, size_t bytes)
{
	static struct reading reading;
	char line[4096], said[1024];
	FILE *from = fopen(path, "re");
	u32 number = 0;
	bool fine = true;

	reading = (struct reading){ .setup = setup, .why = said, .bytes = sizeof(said) };
	*setup = (struct circuit_setup){ .socket = COLL_CIRCUIT_SOCKET,
					 .policy = coll_circuit_policy_default,
					 .reconcile = 2000000000, .kernel = COLL_CIRCUIT_NONE };
	if (!from) {
		snprintf(why, bytes, "%s: %s", path, strerror(errno));
		return -errno;
	}
	while (fine && fgets(line, sizeof(line), from)) {
		number++;
		line[strcspn(line, "#\n")] = 0;
		if (line[strspn(line, " \t")])
			fine = read_line(&reading, line);
	}
	if (ferror(from)) {
		const int error = -errno;

		snprintf(why, bytes, "%s: %s", path, strerror(-error));
		fclose(from);
		return error;
	}
	fclose(from);
	if (fine && !setup->driver[0])
		fine = circuit_setup_refuse(&reading, "no switch; valid: switch DRIVER ...");
	if (fine && setup->nodes < 2)
		fine = circuit_setup_refuse(
			&reading, "%u nodes; valid: 2 and more, each: node NAME PORT[,PORT...]",
			setup->nodes);
	if (fine)
		return 0;
	snprintf(why, bytes, "%s:%u: %s", path, number, said);
	return -EINVAL;
}

const char *circuit_setup_shown(const struct circuit_setup *setup)
{
	return strcmp(setup->driver, "restconf") ? setup->argument : "";
}

u32 circuit_setup_node(const struct circuit_setup *setup, const char *name)
{
	u32 i;

	for (i = 0; i < setup->nodes; i++)
		if (!strcmp(setup->node[i].name, name))
			return i;
	return COLL_CIRCUIT_NONE;
}
