// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "queues.h"

static bool sockets_room(struct coll_flight_sockets *sockets, size_t more)
{
	size_t capacity = sockets->capacity ? sockets->capacity : 256;
	struct coll_flight_socket *socket;

	while (capacity < sockets->count + more)
		capacity *= 2;
	if (capacity == sockets->capacity)
		return true;
	socket = realloc(sockets->socket, capacity * sizeof(*socket));
	if (!socket)
		return false;
	sockets->socket = socket;
	sockets->capacity = capacity;
	return true;
}

void coll_flight_sockets_add(struct coll_flight_sockets *sockets, struct coll_flight_seen *seen,
			     const struct coll_flight_found *found)
{
	struct stat space;
	char path[64];
	size_t i;

	snprintf(path, sizeof(path), "/proc/%u/ns/net", seen->pid);
	if (stat(path, &space) || !sockets_room(sockets, found->sockets))
		return;
	for (i = 0; i < found->sockets; i++)
		sockets->socket[sockets->count++] = (struct coll_flight_socket){
			space.st_ino, found->socket[i], seen
		};
}

static int by_inode(const void *left, const void *right)
{
	const struct coll_flight_socket *a = left, *b = right;

	if (a->space != b->space)
		return a->space < b->space ? -1 : 1;
	return a->inode < b->inode ? -1 : a->inode > b->inode;
}

/* So that a rank's own are one after the other. */
static int by_inode_and_rank(const void *left, const void *right)
{
	const struct coll_flight_socket *a = left, *b = right;
	const int order = by_inode(left, right);

	return order ? order : a->seen < b->seen ? -1 : a->seen > b->seen;
}

/* A line of /proc/PID/net/tcp. Listening sockets have other numbers in these columns. */
static bool read_line(const char *line, struct coll_flight_queue *queue, uint64_t *inode)
{
	unsigned long long number;
	uint32_t state;

	if (sscanf(line, " %*d: %*[0-9A-F]:%*x %*[0-9A-F]:%*x %x %x:%x %*x:%*x %x %*u %*u %llu",
		   &state, &queue->unsent, &queue->unread, &queue->retransmits, &number) != 5)
		return false;
	*inode = number;
	return state != 0x0a;
}

static void take_queue(struct coll_flight_seen *seen, uint64_t inode,
		       const struct coll_flight_queue *queue)
{
	uint32_t i;

	seen->unread += queue->unread;
	seen->unsent += queue->unsent;
	for (i = 0; i < seen->page.links && i < COLL_FLIGHT_LINKS; i++)
		if (seen->page.link[i].inode == inode)
			seen->queue[i] = *queue;
}

/* The sockets of one namespace. */
struct space {
	const struct coll_flight_socket *socket;
	size_t count;
};

static void take_line(const struct space *space, const char *line)
{
	struct coll_flight_queue queue = { .known = 1 };
	struct coll_flight_socket key = { .space = space->socket->space };
	const struct coll_flight_socket *found;
	struct coll_flight_seen *seen = NULL;

	if (!read_line(line, &queue, &key.inode))
		return;
	found = bsearch(&key, space->socket, space->count, sizeof(key), by_inode);
	while (found && found > space->socket && found[-1].inode == key.inode)
		found--;
	/* A rank that forked another shares its connections with it. */
	for (; found && found < space->socket + space->count && found->inode == key.inode; found++)
		if (found->seen != seen)
			take_queue(seen = found->seen, key.inode, &queue);
}

/* As the first rank that still lives sees its namespace. */
static FILE *open_list(const struct space *space, const char *file)
{
	const struct coll_flight_seen *tried = NULL;
	FILE *list = NULL;
	char path[64];
	size_t i;

	for (i = 0; i < space->count && !list; i++) {
		if (space->socket[i].seen == tried)
			continue;
		tried = space->socket[i].seen;
		snprintf(path, sizeof(path), "/proc/%u/net/%s", tried->pid, file);
		list = fopen(path, "re");
	}
	return list;
}

static void read_list(const struct space *space, const char *file)
{
	FILE *list = open_list(space, file);
	char line[512];

	while (list && fgets(line, sizeof(line), list))
		take_line(space, line);
	if (list)
		fclose(list);
}

void coll_flight_sockets_look(struct coll_flight_sockets *sockets)
{
	struct space space = { .count = 0 };
	size_t i;

	if (sockets->count)
		qsort(sockets->socket, sockets->count, sizeof(*sockets->socket),
		      by_inode_and_rank);
	for (i = 0; i < sockets->count; i += space.count) {
		space.socket = sockets->socket + i;
		space.count = 1;
		while (i + space.count < sockets->count &&
		       space.socket[space.count].space == space.socket->space)
			space.count++;
		read_list(&space, "tcp");
		read_list(&space, "tcp6");
	}
	free(sockets->socket);
	memset(sockets, 0, sizeof(*sockets));
}
