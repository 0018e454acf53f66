// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/common/clock.h"
#include "daemon/common/closer.h"
#include "daemon/common/local.h"
#include "daemon/common/peer.h"
#include "door.h"
#include "make.h"

static const u64 CLOSING_NS = 500000000;

enum { REQUEST_MAX = 4096, HEAD_MAX = 1024, REQUEST_S = 10 };

/* ---- in the child ------------------------------------------------------------------ */

struct door_question {
	const char *state;
	u32 user;
};

static bool write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		const ssize_t wrote = write(fd, text, bytes);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return false;
		text += wrote;
		bytes -= wrote;
	}
	return true;
}

/* Without the text. */
static int door_head(const struct colld_answer *answer, char head[HEAD_MAX])
{
	struct colld_answer_header header[COLLD_ANSWER_HEADERS];
	const u32 status = answer->text ? answer->head.status : 503;
	const u32 count = colld_answer_headers(&answer->head, header);
	int used = snprintf(head, HEAD_MAX, "HTTP/1.1 %u %s\r\nConnection: close\r\n"
			    "Content-Length: %llu\r\n", status, colld_answer_reason(status),
			    (unsigned long long)answer->head.bytes);
	u32 i;

	for (i = 0; i < count; i++)
		used += snprintf(head + used, HEAD_MAX - used, "%s: %s\r\n", header[i].name,
				 header[i].value);
	return used + snprintf(head + used, HEAD_MAX - used, "\r\n");
}

static void door_send(int fd, const struct colld_answer *answer)
{
	char head[HEAD_MAX];

	if (write_all(fd, head, door_head(answer, head)) && answer->text)
		write_all(fd, answer->text, answer->head.bytes);
}

/* Up to the empty line after the headers. False: it does not come, or is longer. */
static bool door_receive(int fd, char text[REQUEST_MAX])
{
	size_t got = 0;

	while (got < REQUEST_MAX - 1) {
		const ssize_t part = read(fd, text + got, REQUEST_MAX - 1 - got);

		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0)
			return false;
		got += part;
		text[got] = 0;
		if (strstr(text, "\r\n\r\n"))
			return true;
	}
	return false;
}

static void door_answer(const struct door_question *of, char *request, struct colld_answer *answer)
{
	const struct report_asker asker = { .all = !of->user, .user = of->user };
	struct report_question question;
	char *target = strchr(request, ' ');

	if (strncmp(request, "GET /", 5)) {
		colld_answer_say(answer, 405, "only GET is served here");
		return;
	}
	target++;
	target[strcspn(target, " \r\n")] = 0;
	if (report_question_read(target, asker, &question, answer))
		report_make(&question, of->state, answer);
}

static void door_serve(int fd, const void *data)
{
	struct colld_answer answer;
	char request[REQUEST_MAX];
	bool received;

	alarm(REQUEST_S);		/* that ends it */
	received = door_receive(fd, request);
	alarm(0);
	if (received)
		door_answer(data, request, &answer);
	else
		colld_answer_say(&answer, 400, "that is no request of HTTP of at most %d bytes",
				 REQUEST_MAX - 1);
	door_send(fd, &answer);
}

/* ---- in colld ------------------------------------------------------------------------ */

static bool door_admits(const struct report_door *door, u32 user)
{
	u32 i, all = 0, has = 0;

	for (i = 0; i < REPORT_CLIENTS; i++) {
		all += door->client[i].child.pid != 0;
		has += door->client[i].child.pid && door->client[i].user == user;
	}
	return all < REPORT_CLIENTS - (user ? REPORT_CLIENTS_ROOT : 0) &&
	       (!user || has < REPORT_CLIENTS_USER);
}

static void door_close_refused(struct report_door *door, u32 which)
{
	if (door->closing[which] >= 0)
		closer_close(door->closing[which]);
	door->closing[which] = -1;
}

/* Where all are taken one goes at once. */
static void door_close_later(struct report_door *door, int fd)
{
	const u32 which = door->refused % REPORT_REFUSED;

	door_close_refused(door, which);
	shutdown(fd, SHUT_WR);
	door->closing[which] = fd;
	door->closing_since = colld_now();
}

/* What does not fit into the socket at once is not sent. `busy` is freed. */
static void door_refuse(struct report_door *door, int fd, struct colld_answer *busy)
{
	char head[HEAD_MAX];

	door->refused++;
	send(fd, head, door_head(busy, head), MSG_DONTWAIT | MSG_NOSIGNAL);
	if (busy->text)
		send(fd, busy->text, busy->head.bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	colld_answer_free(busy);
	door_close_later(door, fd);
}

/* False: `busy` says why. */
static bool door_lets_in(const struct report_door *door, u32 user, struct colld_answer *busy)
{
	if (user == (u32)-1 || !door_admits(door, user))	/* or nobody knows who asks */
		colld_answer_say(busy, 503, "there are too many requests now; ask in 1 s");
	else
		return !user || report_shares_admit(door->shares, colld_peer_user(user), busy);
	return false;
}

struct report_client *report_door_accept(struct report_door *door, int *error)
{
	const int fd = accept4(door->listener, NULL, NULL, SOCK_CLOEXEC);
	const u32 user = fd < 0 ? 0 : colld_local_user(fd);
	const struct door_question question = { door->state, user };
	struct report_client *client = door->client;
	struct colld_answer busy;

	*error = fd < 0 ? -errno : 0;
	if (fd < 0)
		return NULL;
	if (!door_lets_in(door, user, &busy)) {
		door_refuse(door, fd, &busy);
		return NULL;
	}
	while (client->child.pid)
		client++;
	*error = report_child_start(&client->child, fd, door_serve, &question);
	if (*error) {
		colld_answer_say(&busy, 503, "there is no process for it: %s; ask in 1 s", strerror(-*error));
		door_refuse(door, fd, &busy);
		return NULL;
	}
	client->fd = fd;
	client->user = user;
	if (user)
		report_shares_begin(door->shares, colld_peer_user(user));
	return client;
}

/* This end was kept: who closes last may have to wait for what the client has sent (closer.h). */
u32 report_door_reap(struct report_door *door)
{
	const bool over = colld_now() - door->closing_since >= CLOSING_NS;
	u32 i, left = 0;
	u64 cost;

	for (i = 0; i < REPORT_REFUSED; i++) {
		if (over)
			door_close_refused(door, i);
		left += door->closing[i] >= 0;
	}
	for (i = 0; i < REPORT_CLIENTS; i++) {
		struct report_client *client = &door->client[i];

		if (!client->child.pid)
			continue;
		if (!report_child_ended(&client->child, &cost)) {
			left++;
			continue;
		}
		closer_close(client->fd);
		door->served++;
		door->cost += cost;
		if (client->user)
			report_shares_take(door->shares, colld_peer_user(client->user), colld_now(), cost);
	}
	return left;
}

int report_door_open(struct report_door *door, const char *state, struct report_shares *shares)
{
	u32 i;

	*door = (struct report_door){ .state = state, .shares = shares, .listener = -1 };
	for (i = 0; i < REPORT_REFUSED; i++)
		door->closing[i] = -1;
	if (snprintf(door->path, sizeof(door->path), "%s/reports", state) >= (int)sizeof(door->path))
		return -ENAMETOOLONG;
	door->listener = colld_local_listen(door->path);
	return door->listener < 0 ? door->listener : 0;
}

void report_door_close(struct report_door *door)
{
	u32 i;

	if (door->listener < 0)
		return;
	for (i = 0; i < REPORT_CLIENTS; i++)
		if (door->client[i].child.pid) {
			report_child_kill(&door->client[i].child);
			closer_close(door->client[i].fd);
		}
	for (i = 0; i < REPORT_REFUSED; i++)
		door_close_refused(door, i);
	unlink(door->path);
	close(door->listener);
	door->listener = -1;
}
