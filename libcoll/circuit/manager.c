// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The connection to the manager: met at the start, read, lost and met again. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "libcoll/base/stream.h"
#include "libcoll/base/log.h"
#include "client.h"
#include "libcoll/exec/poll.h"
#include "libcoll/engine/engine.h"
#include "libcoll/exec/exec.h"
#include "libcoll/exec/live.h"
#include "libcoll/exec/failure.h"
#include "libcoll/link/link.h"

enum {
	HELLO_S = 5,			/* timeout of the answer to HELLO */
	AGAIN_NS = 20000000,		/* between two attempts to connect again */
};

/* ---- notifications -------------------------------------------------------- */

/*
 * The circuit is up; or it will never be, and the op's data takes the packet network, as
 * barriers do.
 */
static void manager_complete_op(const struct coll_circuit_client *circuits,
				struct coll_circuit_request *request)
{
	struct coll_exec *exec = request->exec;
	struct coll_link *link = request->planned->links[request->peer];
	const uint32_t op = request->op;

	if (request->done || !exec)
		return;
	request->done = true;
	request->confirmed = circuits->cookie;
	if (link->state == LINK_IDLE)
		coll_link_open(link);
	coll_live_op(exec, COLL_FLIGHT_CONNECTED, link, op);
	coll_exec_received(exec, op);	/* may release the request */
}

/*
 * After the manager's last attempt, with other ports where there are some, the data takes the
 * packet network. A timeout or a refused request fails the call.
 */
static void manager_request_failed(struct coll_circuit_client *circuits,
				   struct coll_circuit_request *request,
				   const struct coll_circuit_message *m)
{
	const bool failed = m->kind == COLL_CIRCUIT_MSG_FAILED;	/* else an answer */
	const int error = failed ? m->lease.error : m->answer.error;
	struct coll_circuit_request **slot = &circuits->requests;
	char text[COLL_CIRCUIT_TEXT];
	uint32_t rank;

	if (!request->exec) {
		while (*slot != request)
			slot = &(*slot)->next;
		coll_circuits_drop(slot);
		return;
	}
	if (request->done)
		return;		/* the circuit has been used */
	rank = request->planned->links[request->peer]->rank;
	snprintf(text, sizeof(text), "%.*s", COLL_CIRCUIT_TEXT - 1,
		 failed ? m->lease.text : m->answer.text);
	if (failed && error != -ETIMEDOUT) {
		coll_log(&circuits->context->options, circuits->context->options.explain ?
				COLL_LOG_WARN : COLL_LOG_INFO, "no circuit from rank %u to %u (%s): "
			 "their data takes the packet network", request->planned->group->rank, rank,
			 text);
		manager_complete_op(circuits, request);
		return;
	}
	coll_group_fail(request->exec->group, error ? error : -EIO, rank, COLL_NONE, text);
}

static void manager_take_message(struct coll_circuit_client *circuits)
{
	const struct coll_circuit_message *m = &circuits->message;
	struct coll_circuit_request *request;

	coll_circuits_confirm(circuits, m->cookie);
	request = coll_circuits_find(circuits, m->cookie);
	if (!request)
		return;
	if (m->kind == COLL_CIRCUIT_MSG_UP && coll_circuits_is_completed(request)) {
		request->confirmed = circuits->cookie;
		coll_circuits_tell_release(circuits, request);
	} else if (m->kind == COLL_CIRCUIT_MSG_UP) {
		request->planned->links[request->peer]->circuit_up = true;
		manager_complete_op(circuits, request);
	} else if (m->kind == COLL_CIRCUIT_MSG_FAILED ||
		   (m->kind == COLL_CIRCUIT_MSG_ANSWER && m->answer.error))
		manager_request_failed(circuits, request, m);
}

/* ---- reading, and connecting again ---------------------------------------- */

static void manager_set_timer(const struct coll_circuit_client *circuits, uint64_t ns)
{
	const struct itimerspec in = { .it_value = { ns / COLL_SECOND, ns % COLL_SECOND } };

	timerfd_settime(circuits->timer.fd, 0, &in, NULL);
}

/* Tries to connect again after a pause. */
static void manager_lost(struct coll_circuit_client *circuits)
{
	struct coll_engine *engine = &circuits->context->engine;

	if (circuits->watch.fd < 0)
		return;
	if (circuits->watch.armed)
		coll_engine_unwatch(engine, &circuits->watch);
	close(circuits->watch.fd);
	circuits->watch.fd = -1;
	circuits->context->flight.page->manager = 2;
	circuits->got = 0;
	if (!circuits->timer.armed)
		coll_engine_watch(engine, &circuits->timer, POLLIN);
	manager_set_timer(circuits, AGAIN_NS);
}

static void manager_reconnect(struct coll_watch *watch, int events)
{
	struct coll_circuit_client *circuits = watch->owner;
	uint64_t expired;

	(void)events;
	if (read(watch->fd, &expired, sizeof(expired)) > 0)
		circuits->watch.fd = coll_circuits_dial(circuits->context);
	if (circuits->watch.fd < 0) {
		circuits->watch.fd = -1;
		coll_engine_watch(&circuits->context->engine, &circuits->timer, POLLIN);
		manager_set_timer(circuits, AGAIN_NS);
		return;
	}
	if (coll_engine_watch(&circuits->context->engine, &circuits->watch, POLLIN)) {
		manager_lost(circuits);
		return;
	}
	circuits->context->flight.page->manager = 1;
	coll_circuits_hello(circuits, circuits->watch.fd);
	coll_circuits_ask_all(circuits, circuits->requests);
}

static void manager_read(struct coll_watch *watch, int events)
{
	struct coll_circuit_client *circuits = watch->owner;
	uint8_t *to = (uint8_t *)&circuits->message;
	ssize_t got;

	(void)events;
	while ((got = recv(watch->fd, to + circuits->got, sizeof(circuits->message) - circuits->got,
			   MSG_DONTWAIT)) > 0) {
		circuits->got += got;
		if (circuits->got < sizeof(circuits->message))
			continue;
		circuits->got = 0;
		if (circuits->message.magic != COLL_CIRCUIT_MAGIC ||
		    circuits->message.version != COLL_CIRCUIT_VERSION) {
			got = 0;
			break;
		}
		manager_take_message(circuits);
	}
	if (!got || (errno != EAGAIN && errno != EINTR))
		manager_lost(circuits);
	else
		coll_engine_watch(&circuits->context->engine, watch, POLLIN);
}

/* ---- open and close ------------------------------------------------------- */

/* Connects and says HELLO. -ECONNRESET: the manager was killed meanwhile. */
static int manager_try(struct coll_circuit_client *circuits, char *why, size_t why_bytes)
{
	struct coll_circuit_message answer;
	const int fd = coll_circuits_dial(circuits->context);

	if (fd < 0) {
		snprintf(why, why_bytes, "circuits: %s: %s", circuits->path, strerror(-fd));
		return fd;
	}
	circuits->watch.fd = fd;
	if (!coll_circuits_hello(circuits, fd) ||
	    coll_stream_receive(fd, &answer, sizeof(answer), coll_now() + HELLO_S * COLL_SECOND)) {
		snprintf(why, why_bytes, "circuits: the manager at %s does not answer",
			 circuits->path);
		close(fd);
		circuits->watch.fd = -1;
		return -ECONNRESET;
	}
	if (answer.magic != COLL_CIRCUIT_MAGIC || answer.version != COLL_CIRCUIT_VERSION) {
		snprintf(why, why_bytes, "circuits: the manager at %s speaks another version; "
			 "valid: %d", circuits->path, COLL_CIRCUIT_VERSION);
		return -EPROTO;
	}
	if (!answer.answer.error)
		return 0;
	snprintf(why, why_bytes, "circuits: %.*s", COLL_CIRCUIT_TEXT - 1, answer.answer.text);
	return answer.answer.error;
}

/* Waits for a manager that is being restarted; any other error ends the start. */
static int manager_meet(struct coll_circuit_client *circuits, char *why, size_t why_bytes)
{
	const uint64_t end = coll_now() + HELLO_S * COLL_SECOND;
	int error = manager_try(circuits, why, why_bytes);
	const bool was_there = error == -ECONNRESET || error == -ECONNREFUSED || error == -ETIMEDOUT;

	while (was_there && circuits->watch.fd < 0 && coll_now() < end) {
		usleep(AGAIN_NS / 1000);
		error = manager_try(circuits, why, why_bytes);
	}
	return error;
}

static int manager_begin(struct coll_circuit_client *circuits, char *why, size_t why_bytes)
{
	struct coll_context *context = circuits->context;
	char key[32];
	int error = manager_meet(circuits, why, why_bytes);

	circuits->peer = calloc(context->boot->ranks, sizeof(*circuits->peer));
	circuits->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (!error && (!circuits->peer || circuits->timer.fd < 0))
		error = -ENOMEM;
	if (error)
		return error;
	if (context->boot->ranks > 1) {
		snprintf(key, sizeof(key), "circuit/%u", context->boot->rank);
		error = coll_boot_put(context->boot, key, circuits->node, strlen(circuits->node));
	}
	if (!error)
		error = coll_engine_watch(&context->engine, &circuits->watch, POLLIN);
	return error;
}

int coll_circuits_open(struct coll_context *context, char *why, size_t why_bytes)
{
	const char *path = context->options.circuits;
	struct coll_circuit_client *circuits;
	int error;

	if (!*path || !strcmp(path, "off"))
		return 0;
	if (!strcmp(path, "on"))
		path = COLL_CIRCUIT_SOCKET;
	circuits = calloc(1, sizeof(*circuits));
	if (!circuits)
		return -ENOMEM;
	context->circuits = circuits;
	circuits->context = context;
	circuits->watch = (struct coll_watch){ .ready = manager_read, .owner = circuits, .fd = -1 };
	circuits->timer = (struct coll_watch){ .ready = manager_reconnect, .owner = circuits,
					       .fd = -1 };
	snprintf(circuits->path, sizeof(circuits->path), "%s", path);
	snprintf(circuits->node, sizeof(circuits->node), "%s", context->options.node);
	if (!circuits->node[0])
		gethostname(circuits->node, sizeof(circuits->node) - 1);
	error = manager_begin(circuits, why, why_bytes);
	if (error)
		coll_circuits_close(context);
	return error;
}

/* Its answer confirms all notifications before it. */
static void manager_sync(struct coll_circuit_client *circuits)
{
	struct coll_circuit_message sync = { .kind = COLL_CIRCUIT_MSG_SYNC };

	sync.cookie = circuits->synced = ++circuits->cookie;
	coll_circuits_tell(circuits, &sync);
}

void coll_circuits_leave(struct coll_context *context)
{
	const uint64_t deadline = context->options.deadline_ns;
	const uint64_t until = coll_now() + (deadline < COMPLETED_NS ? deadline : COMPLETED_NS);
	struct coll_circuit_client *circuits = context->circuits;
	bool notified;

	while (circuits && coll_circuits_has_completed(circuits, &notified) && coll_now() < until) {
		if (notified)
			manager_sync(circuits);
		if (coll_context_poll(context, coll_now() + AGAIN_NS))
			break;
	}
}

void coll_circuits_close(struct coll_context *context)
{
	struct coll_circuit_client *circuits = context->circuits;

	if (!circuits)
		return;
	if (circuits->watch.armed)
		coll_engine_unwatch(&context->engine, &circuits->watch);
	if (circuits->timer.armed)
		coll_engine_unwatch(&context->engine, &circuits->timer);
	if (circuits->watch.fd >= 0)
		close(circuits->watch.fd);
	if (circuits->timer.fd >= 0)
		close(circuits->timer.fd);
	while (circuits->requests)
		coll_circuits_drop(&circuits->requests);
	free(circuits->peer);
	free(circuits);
	context->circuits = NULL;
}
