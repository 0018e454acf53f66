// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "../uapi/coll_circuit.h"
#include "circuit.h"
#include "engine.h"
#include "exec.h"
#include "health.h"
#include "link.h"

enum {
	HELLO_S = 5,			/* the manager has so long to answer at the start */
	AGAIN_NS = 20000000,		/* so often a manager that has gone is looked for */
	EARLIER = 8,			/* it gives up an eighth of the time before we would */
};

/* A connect op that was not released yet. */
struct circuit_want {
	struct circuit_want *next;
	uint64_t cookie;
	struct coll_exec *exec;
	uint32_t op, peer;
	bool done;			/* the op is: the circuit was lit once */
};

struct circuit_client {
	struct coll_context *context;
	char path[108], node[COLL_CIRCUIT_NAME];
	char (*peer)[COLL_CIRCUIT_NAME];	/* per rank of the job; "": not asked yet */
	struct watch watch, timer;
	struct circuit_want *wants;
	uint64_t cookie;
	size_t got;
	struct coll_circuit_message message;
};

/* ---- the manager's socket ------------------------------------------------ */

static int dial(struct circuit_client *circuits)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, circuits->path);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -errno;
}

/* A socket that takes no more is one whose manager stands still: it is met again. */
static bool send_message(struct circuit_client *circuits, int fd,
			 struct coll_circuit_message *message)
{
	message->magic = COLL_CIRCUIT_MAGIC;
	message->version = COLL_CIRCUIT_VERSION;
	(void)circuits;
	return send(fd, message, sizeof(*message), MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       sizeof(*message);
}

static bool say_hello(struct circuit_client *circuits, int fd)
{
	struct coll_circuit_message hello = { .kind = COLL_CIRCUIT_HELLO };

	strcpy(hello.node, circuits->node);
	snprintf(hello.holder, sizeof(hello.holder), "%s", circuits->context->boot->job[0] ?
		 circuits->context->boot->job : "job");
	return send_message(circuits, fd, &hello);
}

static bool ask_for(struct circuit_client *circuits, const struct circuit_want *want)
{
	const struct coll_exec *exec = want->exec;
	const uint64_t now = coll_now(), left = exec->deadline > now ? exec->deadline - now : 0;
	struct coll_circuit_message message = {
		.kind = COLL_CIRCUIT_WANT, .cookie = want->cookie, .time = left - left / EARLIER,
	};

	strcpy(message.peer,
	       circuits->peer[exec->group->world[exec->planned->links[want->peer]->rank]]);
	return send_message(circuits, circuits->watch.fd, &message);
}

/* ---- a manager that has gone --------------------------------------------- */

static void set_timer(const struct circuit_client *circuits, uint64_t ns)
{
	const struct itimerspec in = { .it_value = { ns / COLL_SECOND, ns % COLL_SECOND } };

	timerfd_settime(circuits->timer.fd, 0, &in, NULL);
}

/* Looks for it soon, as long as somebody wants something of it. */
static void lose_manager(struct circuit_client *circuits)
{
	const struct coll_engine_ops *engine = circuits->context->engine;

	if (circuits->watch.fd < 0)
		return;
	if (circuits->watch.armed)
		engine->unwatch(circuits->context, &circuits->watch);
	close(circuits->watch.fd);
	circuits->watch.fd = -1;
	circuits->got = 0;
	if (!circuits->timer.armed)
		engine->watch(circuits->context, &circuits->timer, POLLIN);
	set_timer(circuits, AGAIN_NS);
}

static void find_manager(struct watch *watch, int events)
{
	struct circuit_client *circuits = watch->owner;
	struct circuit_want *want;
	uint64_t expired;

	(void)events;
	if (read(watch->fd, &expired, sizeof(expired)) < 0)
		return;
	circuits->watch.fd = dial(circuits);
	if (circuits->watch.fd < 0) {
		circuits->watch.fd = -1;
		circuits->context->engine->watch(circuits->context, &circuits->timer, POLLIN);
		set_timer(circuits, AGAIN_NS);
		return;
	}
	circuits->context->engine->watch(circuits->context, &circuits->watch, POLLIN);
	say_hello(circuits, circuits->watch.fd);
	for (want = circuits->wants; want; want = want->next)
		if (!ask_for(circuits, want)) {
			lose_manager(circuits);
			return;
		}
}

/* ---- what it tells ------------------------------------------------------- */

static struct circuit_want *find_want(const struct circuit_client *circuits, uint64_t cookie)
{
	struct circuit_want *want;

	for (want = circuits->wants; want; want = want->next)
		if (want->cookie == cookie)
			return want;
	return NULL;
}

static void is_lit(struct circuit_want *want)
{
	struct coll_exec *exec = want->exec;
	struct coll_link *link = exec->planned->links[want->peer];
	const uint32_t op = want->op;

	if (want->done)
		return;
	want->done = true;
	if (link->state == LINK_IDLE)
		coll_link_open(link);
	coll_exec_received(exec, op);	/* may release the want */
}

static void take_message(struct circuit_client *circuits)
{
	const struct coll_circuit_message *m = &circuits->message;
	struct circuit_want *want = find_want(circuits, m->cookie);
	char text[COLL_CIRCUIT_TEXT];

	if (!want)
		return;
	if (m->kind == COLL_CIRCUIT_IS_LIT)
		is_lit(want);
	if (m->kind == COLL_CIRCUIT_NEVER || (m->kind == COLL_CIRCUIT_ANSWER && m->error)) {
		snprintf(text, sizeof(text), "%.*s", (int)sizeof(m->text) - 1, m->text);
		group_fail(want->exec->group, m->error ? m->error : -EIO,
			   want->exec->planned->links[want->peer]->rank, COLL_NONE, text);
	}
}

static void read_manager(struct watch *watch, int events)
{
	struct circuit_client *circuits = watch->owner;
	uint8_t *to = (uint8_t *)&circuits->message;
	ssize_t got;

	(void)events;
	while ((got = recv(watch->fd, to + circuits->got, sizeof(circuits->message) - circuits->got,
			   MSG_DONTWAIT)) > 0) {
		circuits->got += got;
		if (circuits->got < sizeof(circuits->message))
			continue;
		circuits->got = 0;
		if (circuits->message.magic != COLL_CIRCUIT_MAGIC) {
			got = 0;
			break;
		}
		take_message(circuits);
		if (circuits->watch.fd < 0)
			return;
	}
	if (!got || (errno != EAGAIN && errno != EINTR))
		lose_manager(circuits);
	else
		circuits->context->engine->watch(circuits->context, watch, POLLIN);
}

/* ---- ops ----------------------------------------------------------------- */

/* The node of a peer of the schedule; NULL: it has told none. "" is never one. */
static const char *peer_node(struct circuit_client *circuits, const struct coll_exec *exec,
			     uint32_t peer)
{
	const uint32_t rank = exec->group->world[exec->planned->links[peer]->rank];
	char *name = circuits->peer[rank], key[32];
	size_t bytes = COLL_CIRCUIT_NAME - 1;

	if (*name)
		return name;
	snprintf(key, sizeof(key), "circuit/%u", rank);
	if (coll_boot_get(circuits->context->boot, key, name, &bytes, exec->deadline))
		return NULL;
	name[bytes] = 0;
	return name;
}

static bool has_connect(const struct coll_exec *exec, uint32_t peer)
{
	const struct coll_schedule *s = exec->planned->schedule;
	uint32_t i;

	for (i = 0; i < s->ops; i++)
		if (coll_ops(s)[i].kind == COLL_OP_CONNECT && coll_ops(s)[i].peer == peer)
			return true;
	return false;
}

bool circuits_free(const struct coll_exec *exec, uint32_t peer)
{
	struct circuit_client *circuits = exec->group->context->circuits;
	const char *node;

	if (!circuits || !has_connect(exec, peer))
		return true;
	node = peer_node(circuits, exec, peer);
	return node && !strcmp(node, circuits->node);
}

bool circuits_connect(struct coll_exec *exec, uint32_t op)
{
	struct circuit_client *circuits = exec->group->context->circuits;
	const uint32_t peer = coll_ops(exec->planned->schedule)[op].peer;
	struct circuit_want *want;
	const char *node;

	if (!circuits)
		return true;
	node = peer_node(circuits, exec, peer);
	if (node && !strcmp(node, circuits->node))
		return true;
	want = node ? malloc(sizeof(*want)) : NULL;
	if (!want) {
		group_fail(exec->group, node ? -ENOMEM : -ENOENT, exec->planned->links[peer]->rank,
			   COLL_NONE, node ? "no memory for its circuit" :
					     "it has no circuit manager, and this rank has");
		return false;
	}
	*want = (struct circuit_want){ .next = circuits->wants, .cookie = ++circuits->cookie,
				       .exec = exec, .op = op, .peer = peer };
	circuits->wants = want;
	if (circuits->watch.fd >= 0 && !ask_for(circuits, want))
		lose_manager(circuits);
	return false;
}

static void give_back(struct circuit_client *circuits, struct circuit_want **slot)
{
	struct circuit_want *want = *slot;
	struct coll_circuit_message message = { .kind = COLL_CIRCUIT_RELEASE,
						.cookie = want->cookie };

	*slot = want->next;
	free(want);
	if (circuits->watch.fd >= 0 && !send_message(circuits, circuits->watch.fd, &message))
		lose_manager(circuits);
}

/* The oldest of this peer: the list has the latest first. */
void circuits_release(struct coll_exec *exec, uint32_t op)
{
	struct circuit_client *circuits = exec->group->context->circuits;
	const uint32_t peer = coll_ops(exec->planned->schedule)[op].peer;
	struct circuit_want **slot, **oldest = NULL;

	if (!circuits)
		return;
	for (slot = &circuits->wants; *slot; slot = &(*slot)->next)
		if ((*slot)->exec == exec && (*slot)->peer == peer)
			oldest = slot;
	if (oldest)
		give_back(circuits, oldest);
}

void circuits_run_over(struct coll_exec *exec)
{
	struct circuit_client *circuits = exec->group->context->circuits;
	struct circuit_want **slot;

	if (!circuits)
		return;
	slot = &circuits->wants;
	while (*slot)
		if ((*slot)->exec == exec)
			give_back(circuits, slot);
		else
			slot = &(*slot)->next;
}

/* ---- open and close ------------------------------------------------------ */

/* The answer to the hello; -ECONNRESET: the manager was killed meanwhile. */
static int try_to_meet(struct circuit_client *circuits, char *why, size_t why_bytes)
{
	const struct timeval patience = { .tv_sec = HELLO_S };
	struct coll_circuit_message answer;
	const int fd = dial(circuits);

	if (fd < 0) {
		snprintf(why, why_bytes, "circuits: %s: %s", circuits->path, strerror(-fd));
		return fd;
	}
	circuits->watch.fd = fd;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!say_hello(circuits, fd) ||
	    recv(fd, &answer, sizeof(answer), MSG_WAITALL) != sizeof(answer)) {
		snprintf(why, why_bytes, "circuits: the manager at %s does not answer",
			 circuits->path);
		close(fd);
		circuits->watch.fd = -1;
		return -ECONNRESET;
	}
	if (!answer.error)
		return 0;
	snprintf(why, why_bytes, "circuits: %.*s", (int)sizeof(answer.text) - 1, answer.text);
	return answer.error;
}

/* What is wrong is said at the start; a manager that is started again is waited for. */
static int meet(struct circuit_client *circuits, char *why, size_t why_bytes)
{
	const uint64_t end = coll_now() + HELLO_S * COLL_SECOND;
	int error = try_to_meet(circuits, why, why_bytes);
	bool was_there = error == -ECONNRESET;

	while (was_there && circuits->watch.fd < 0 && coll_now() < end) {
		usleep(AGAIN_NS / 1000);
		error = try_to_meet(circuits, why, why_bytes);
	}
	return error;
}

static int begin(struct circuit_client *circuits, char *why, size_t why_bytes)
{
	struct coll_context *context = circuits->context;
	char key[32];
	int error = meet(circuits, why, why_bytes);

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
		error = context->engine->watch(context, &circuits->watch, POLLIN);
	return error;
}

int circuits_open(struct coll_context *context, char *why, size_t why_bytes)
{
	const char *path = context->options.circuits;
	struct circuit_client *circuits;
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
	circuits->watch = (struct watch){ .ready = read_manager, .owner = circuits, .fd = -1 };
	circuits->timer = (struct watch){ .ready = find_manager, .owner = circuits, .fd = -1 };
	snprintf(circuits->path, sizeof(circuits->path), "%s", path);
	snprintf(circuits->node, sizeof(circuits->node), "%s", context->options.node);
	if (!circuits->node[0])
		gethostname(circuits->node, sizeof(circuits->node) - 1);
	error = begin(circuits, why, why_bytes);
	if (error)
		circuits_close(context);
	return error;
}

void circuits_close(struct coll_context *context)
{
	struct circuit_client *circuits = context->circuits;

	if (!circuits)
		return;
	if (circuits->watch.armed)
		context->engine->unwatch(context, &circuits->watch);
	if (circuits->timer.armed)
		context->engine->unwatch(context, &circuits->timer);
	if (circuits->watch.fd >= 0)
		close(circuits->watch.fd);
	if (circuits->timer.fd >= 0)
		close(circuits->timer.fd);
	while (circuits->wants) {
		struct circuit_want *want = circuits->wants;

		circuits->wants = want->next;
		free(want);
	}
	free(circuits->peer);
	free(circuits);
	context->circuits = NULL;
}
