// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The requests of this process, and what is sent to the manager about them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"
#include "libcoll/exec/poll.h"
#include "libcoll/exec/exec.h"

enum {
	EARLIER = 8,	/* the manager gives up an eighth of the time before the run does */
	DIAL_S = 2,	/* the time that connect() waits for a manager that takes no connections */
};

/* ---- the manager's socket ------------------------------------------------- */

int coll_circuits_dial(const struct coll_context *context)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	const struct timeval patience = { .tv_sec = DIAL_S };

	strcpy(address.sun_path, context->circuits->path);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		if (errno != EINTR) {		/* it waits while many others connect */
			const int error = errno == EAGAIN ? -ETIMEDOUT : -errno;

			close(fd);
			return error;
		}
	return fd;
}

bool coll_circuits_send(int fd, struct coll_circuit_message *message)
{
	message->magic = COLL_CIRCUIT_MAGIC;
	message->version = COLL_CIRCUIT_VERSION;
	if (send(fd, message, sizeof(*message), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*message))
		return true;
	shutdown(fd, SHUT_RDWR);	/* the reader comes to its end */
	return false;
}

bool coll_circuits_hello(struct coll_circuit_client *circuits, int fd)
{
	struct coll_circuit_message hello = { .kind = COLL_CIRCUIT_MSG_HELLO };
	const char *job = circuits->context->boot->job;
	uint8_t key[COLL_KEY_BYTES];

	coll_key_derive(key, circuits->context->boot->secret, "circuits");
	memcpy(hello.hello.key, key, sizeof(hello.hello.key));
	strcpy(hello.hello.node, circuits->node);
	snprintf(hello.hello.holder, sizeof(hello.hello.holder), "%s", *job ? job : "job");
	return coll_circuits_send(fd, &hello);
}

/* ---- requests ------------------------------------------------------------- */

void coll_circuits_tell(const struct coll_circuit_client *circuits,
			struct coll_circuit_message *message)
{
	if (circuits->watch.fd >= 0)
		coll_circuits_send(circuits->watch.fd, message);
}

bool coll_circuits_is_completed(const struct coll_circuit_request *request)
{
	return !request->exec && !request->run;
}

/* An op that is done uses the circuit at this end at least: its request counts alone. */
static uint32_t request_flags(const struct coll_circuit_request *request)
{
	const uint32_t ahead = request->run ? COLL_CIRCUIT_AHEAD : 0;

	if (coll_circuits_is_completed(request))
		return COLL_CIRCUIT_QUIET | COLL_CIRCUIT_COMPLETED;
	return COLL_CIRCUIT_QUIET | ahead | (request->done ? COLL_CIRCUIT_ONE_SIDED : 0);
}

static uint64_t request_timeout(const struct coll_circuit_request *request)
{
	const uint64_t now = coll_now();
	uint64_t left;

	if (coll_circuits_is_completed(request))
		return COMPLETED_NS;
	if (!request->exec)
		return COLL_FOREVER;
	left = request->exec->deadline > now ? request->exec->deadline - now : 0;
	return left - left / EARLIER;
}

static void request_ask(const struct coll_circuit_client *circuits,
			const struct coll_circuit_request *request)
{
	struct coll_circuit_message message = {
		.kind = COLL_CIRCUIT_MSG_REQUEST, .cookie = request->cookie,
		.request = { .timeout_ns = request_timeout(request),
			     .session = request->session, .flags = request_flags(request) },
	};

	coll_assert(strlen(request->node) < COLL_CIRCUIT_NAME);
	strcpy(message.request.peer, request->node);
	coll_circuits_tell(circuits, &message);
}

void coll_circuits_tell_release(const struct coll_circuit_client *circuits,
				const struct coll_circuit_request *request)
{
	struct coll_circuit_message message = { .kind = COLL_CIRCUIT_MSG_RELEASE,
						.cookie = request->cookie };

	coll_circuits_tell(circuits, &message);
}

void coll_circuits_drop(struct coll_circuit_request **slot)
{
	struct coll_circuit_request *request = *slot;

	*slot = request->next;
	free(request);
}

struct coll_circuit_request *coll_circuits_find(const struct coll_circuit_client *circuits,
						uint64_t cookie)
{
	struct coll_circuit_request *request;

	for (request = circuits->requests; request; request = request->next)
		if (request->cookie == cookie)
			return request;
	return NULL;
}

void coll_circuits_add(struct coll_circuit_client *circuits, struct coll_circuit_request *request)
{
	coll_assert(request->node && (request->exec || request->run));
	request->next = circuits->requests;
	request->cookie = ++circuits->cookie;
	circuits->requests = request;
	request_ask(circuits, request);
}

void coll_circuits_give_back(struct coll_circuit_client *circuits,
			     struct coll_circuit_request **slot)
{
	struct coll_circuit_request *request = *slot;

	coll_circuits_tell_release(circuits, request);
	if (!request->confirmed) {
		coll_circuits_drop(slot);
		return;
	}
	request->exec = NULL;
	request->run = NULL;
	request->planned = NULL;
	if (request->confirmed == UNCONFIRMED) {
		/* Notifications of the old cookie may be on their way. */
		request->cookie = ++circuits->cookie;
		request_ask(circuits, request);
	}
}

void coll_circuits_ask_all(const struct coll_circuit_client *circuits,
			   struct coll_circuit_request *request)
{
	if (!request)
		return;
	coll_circuits_ask_all(circuits, request->next);
	if (request->confirmed)
		request->confirmed = UNCONFIRMED;
	request_ask(circuits, request);
}

void coll_circuits_confirm(struct coll_circuit_client *circuits, uint64_t cookie)
{
	struct coll_circuit_request **slot = &circuits->requests;

	while (*slot) {
		struct coll_circuit_request *request = *slot;

		if (request->confirmed < cookie && coll_circuits_is_completed(request)) {
			coll_circuits_drop(slot);
			continue;
		}
		if (request->confirmed < cookie)
			request->confirmed = 0;
		slot = &request->next;
	}
}

bool coll_circuits_has_completed(const struct coll_circuit_client *circuits, bool *notified)
{
	const struct coll_circuit_request *request;
	bool has = false;

	*notified = false;
	for (request = circuits->requests; request; request = request->next) {
		has |= coll_circuits_is_completed(request);
		*notified |= coll_circuits_is_completed(request) &&
			     request->confirmed != UNCONFIRMED &&
			     request->confirmed >= circuits->synced;
	}
	return has;
}
