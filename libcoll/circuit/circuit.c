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

#include "uapi/coll_circuit.h"
#include "circuit.h"
#include "libcoll/api/context.h"
#include "libcoll/engine/engine.h"
#include "libcoll/exec/exec.h"
#include "libcoll/link/health.h"
#include "libcoll/link/link.h"

enum {
	HELLO_S = 5,			/* the manager has so long to answer at the start */
	AGAIN_NS = 20000000,		/* so often a manager that has gone is looked for */
	EARLIER = 8,			/* it gives up an eighth of the time before we would */
};
#define PAST_NS		5000000000ull	/* so long after a restart the other end is waited for */
#define NOT_YET		UINT64_MAX

/* A connect op's, or, ahead of its start, a run's; until it is released, but see `heard`. */
struct circuit_want {
	struct circuit_want *next;
	uint64_t cookie;
	struct coll_exec *exec;		/* or NULL: */
	const struct coll_run *run;	/* or NULL: it is past */
	const struct planned *planned;
	const char *node;		/* the peer's */
	uint32_t op, peer;
	uint64_t session;		/* 0: for none in particular */
	bool done;			/* the op is: the circuit was lit once */
	/*
	 * A manager that was killed may have told us of the light and not the other end, which
	 * then asks its successor for a use that we have had. So a want is kept, past its release,
	 * until we know that both were told: this is the latest cookie when we were. The manager
	 * tells all that it has to before it reads on, so what it says of a later cookie is the
	 * proof. 0: we know, or have nothing to tell; NOT_YET: this manager has not told us.
	 */
	uint64_t heard;
};

struct circuit_client {
	struct coll_context *context;
	char path[108], node[COLL_CIRCUIT_NAME];
	char (*peer)[COLL_CIRCUIT_NAME];	/* per rank of the job; "": not asked yet */
	struct coll_watch watch, timer;
	struct circuit_want *wants;
	uint64_t cookie;
	uint64_t synced;	/* the cookie of the latest COLL_CIRCUIT_MSG_SYNC */
	size_t got;
	struct coll_circuit_message message;
};

/* ---- the manager's socket ------------------------------------------------ */

static int circuit_dial(const struct circuit_client *circuits)
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

int coll_circuits_dial(const struct coll_context *context)
{
	return circuit_dial(context->circuits);
}

/*
 * A socket that takes no more is one whose manager has gone, or stands still: it is met
 * again, after what it has said was read.
 */
static bool send_message(int fd, struct coll_circuit_message *message)
{
	message->magic = COLL_CIRCUIT_MAGIC;
	message->version = COLL_CIRCUIT_VERSION;
	if (send(fd, message, sizeof(*message), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*message))
		return true;
	shutdown(fd, SHUT_RDWR);	/* the reader comes to its end */
	return false;
}

static bool say_hello(struct circuit_client *circuits, int fd)
{
	struct coll_circuit_message hello = { .kind = COLL_CIRCUIT_MSG_HELLO };
	const char *job = circuits->context->boot->job;

	strcpy(hello.hello.node, circuits->node);
	snprintf(hello.hello.holder, sizeof(hello.hello.holder), "%s", *job ? job : "job");
	return send_message(fd, &hello);
}

/* If there is one; the next is asked for all. */
static void tell_manager(const struct circuit_client *circuits,
			 struct coll_circuit_message *message)
{
	if (circuits->watch.fd >= 0)
		send_message(circuits->watch.fd, message);
}

static bool is_past(const struct circuit_want *want)
{
	return !want->exec && !want->run;
}

/* An op's that is done is in use, by this end at least: it counts by itself. */
static void ask_for(const struct circuit_client *circuits, const struct circuit_want *want)
{
	const uint64_t now = coll_now();
	const uint64_t left = want->exec && want->exec->deadline > now ?
			      want->exec->deadline - now : 0;
	struct coll_circuit_message message = {
		.kind = COLL_CIRCUIT_MSG_REQUEST,
		.cookie = want->cookie,
		.request.timeout_ns = is_past(want) ? PAST_NS
			: want->exec  ? left - left / EARLIER
				      : COLL_FOREVER,
		.request.flags = COLL_CIRCUIT_QUIET | (want->run ? COLL_CIRCUIT_AHEAD : 0) |
			 (is_past(want) ? COLL_CIRCUIT_COMPLETED
			  : want->done	? COLL_CIRCUIT_ONE_SIDED
					: 0),
		.request.session = want->session,
	};

	strcpy(message.request.peer, want->node);
	tell_manager(circuits, &message);
}

static void circuit_release(const struct circuit_client *circuits, const struct circuit_want *want)
{
	struct coll_circuit_message message = { .kind = COLL_CIRCUIT_MSG_RELEASE,
						.cookie = want->cookie };

	tell_manager(circuits, &message);
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
	struct coll_engine *engine = &circuits->context->engine;

	if (circuits->watch.fd < 0)
		return;
	if (circuits->watch.armed)
		coll_engine_unwatch(engine, &circuits->watch);
	close(circuits->watch.fd);
	circuits->watch.fd = -1;
	circuits->got = 0;
	if (!circuits->timer.armed)
		coll_engine_watch(engine, &circuits->timer, POLLIN);
	set_timer(circuits, AGAIN_NS);
}

/* For all, the oldest first, as they were asked for: the list has the latest first. */
static void ask_again(const struct circuit_client *circuits, struct circuit_want *want)
{
	if (!want)
		return;
	ask_again(circuits, want->next);
	if (want->heard)
		want->heard = NOT_YET;
	ask_for(circuits, want);
}

static void find_manager(struct coll_watch *watch, int events)
{
	struct circuit_client *circuits = watch->owner;
	uint64_t expired;

	(void)events;
	if (read(watch->fd, &expired, sizeof(expired)) < 0)
		return;
	circuits->watch.fd = circuit_dial(circuits);
	if (circuits->watch.fd < 0) {
		circuits->watch.fd = -1;
		coll_engine_watch(&circuits->context->engine, &circuits->timer, POLLIN);
		set_timer(circuits, AGAIN_NS);
		return;
	}
	coll_engine_watch(&circuits->context->engine, &circuits->watch, POLLIN);
	say_hello(circuits, circuits->watch.fd);
	ask_again(circuits, circuits->wants);
}

/* ---- what it tells ------------------------------------------------------- */

static void forget_want(struct circuit_want **slot)
{
	struct circuit_want *want = *slot;

	*slot = want->next;
	free(want);
}

/* It speaks of this want: so whoever was told of something before we asked for it knows. */
static void all_know(struct circuit_client *circuits, uint64_t cookie)
{
	struct circuit_want **slot = &circuits->wants;

	while (*slot) {
		struct circuit_want *want = *slot;

		if (want->heard < cookie && is_past(want)) {
			forget_want(slot);
			continue;
		}
		if (want->heard < cookie)
			want->heard = 0;
		slot = &want->next;
	}
}

static struct circuit_want *find_want(const struct circuit_client *circuits, uint64_t cookie)
{
	struct circuit_want *want;

	for (want = circuits->wants; want; want = want->next)
		if (want->cookie == cookie)
			return want;
	return NULL;
}

/*
 * There is light; or there will be none, and what is sent goes over the network that is
 * beside the circuits, as barriers do.
 */
static void may_go(const struct circuit_client *circuits, struct circuit_want *want)
{
	struct coll_exec *exec = want->exec;
	struct coll_link *link = want->planned->links[want->peer];
	const uint32_t op = want->op;

	if (want->done || !exec)
		return;
	want->done = true;
	want->heard = circuits->cookie;
	if (link->state == LINK_IDLE)
		coll_link_open(link);
	coll_exec_received(exec, op);	/* may release the want */
}

/*
 * The switch cannot: after as many attempts as the manager makes, by other ports where
 * there are some. Where there was no port in time, or nobody may ask, the call fails.
 */
static void is_never(struct circuit_client *circuits, struct circuit_want *want,
		     const struct coll_circuit_message *m)
{
	const bool failed = m->kind == COLL_CIRCUIT_MSG_FAILED;	/* else an answer */
	const int error = failed ? m->lease.error : m->answer.error;
	struct circuit_want **slot = &circuits->wants;
	char text[COLL_CIRCUIT_TEXT];
	uint32_t rank;

	if (!want->exec) {
		while (*slot != want)
			slot = &(*slot)->next;
		forget_want(slot);
		return;
	}
	if (want->done)
		return;		/* it had its use */
	rank = want->planned->links[want->peer]->rank;
	snprintf(text, sizeof(text), "%.*s", COLL_CIRCUIT_TEXT - 1,
		 failed ? m->lease.text : m->answer.text);
	if (failed && error != -ETIMEDOUT) {
		if (circuits->context->options.explain)
			fprintf(stderr, "coll: no circuit from rank %u to %u (%s): what they send "
				"goes beside\n", want->planned->group->rank, rank, text);
		may_go(circuits, want);
		return;
	}
	coll_group_fail(want->exec->group, error ? error : -EIO, rank, COLL_NONE, text);
}

static void take_message(struct circuit_client *circuits)
{
	const struct coll_circuit_message *m = &circuits->message;
	struct circuit_want *want;

	all_know(circuits, m->cookie);
	want = find_want(circuits, m->cookie);
	if (!want)
		return;
	if (m->kind == COLL_CIRCUIT_MSG_UP && is_past(want)) {
		want->heard = circuits->cookie;
		circuit_release(circuits, want);
	} else if (m->kind == COLL_CIRCUIT_MSG_UP) {
		want->planned->links[want->peer]->circuit_up = true;
		may_go(circuits, want);
	} else if (m->kind == COLL_CIRCUIT_MSG_FAILED ||
		   (m->kind == COLL_CIRCUIT_MSG_ANSWER && m->answer.error))
		is_never(circuits, want, m);
}

static void read_manager(struct coll_watch *watch, int events)
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
		if (circuits->message.magic != COLL_CIRCUIT_MAGIC ||
		    circuits->message.version != COLL_CIRCUIT_VERSION) {
			got = 0;
			break;
		}
		take_message(circuits);
	}
	if (!got || (errno != EAGAIN && errno != EINTR))
		lose_manager(circuits);
	else
		coll_engine_watch(&circuits->context->engine, watch, POLLIN);
}

/* ---- ops ----------------------------------------------------------------- */

/* "" is never one. */
const char *coll_circuits_node(struct coll_context *context, uint32_t world_rank, uint64_t deadline)
{
	char *name = context->circuits->peer[world_rank], key[32];
	size_t bytes = COLL_CIRCUIT_NAME - 1;

	if (*name)
		return name;
	snprintf(key, sizeof(key), "circuit/%u", world_rank);
	if (coll_boot_get(context->boot, key, name, &bytes, deadline))
		return NULL;
	name[bytes] = 0;
	return name;
}

/* Of a peer of the schedule. */
static const char *peer_node(const struct planned *planned, uint32_t peer, uint64_t deadline)
{
	const struct coll_group *group = planned->group;

	return coll_circuits_node(group->context, group->world[planned->links[peer]->rank],
				  deadline);
}

/* Messages without bytes go beside the circuits, when it may be dark. */
static bool needs_circuit(const struct coll_exec *exec, uint32_t peer)
{
	const struct coll_schedule *s = exec->planned->schedule;
	bool needs = false;
	uint32_t i;

	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];

		if (op->peer != peer)
			continue;
		if (op->kind == COLL_OP_CONNECT)
			needs = true;
		else if (op->kind != COLL_OP_RELEASE && !op->bytes)
			return false;
	}
	return needs;
}

bool coll_circuits_free(const struct coll_exec *exec, uint32_t peer)
{
	struct circuit_client *circuits = exec->group->context->circuits;
	const char *node;

	if (!circuits || !needs_circuit(exec, peer))
		return true;
	node = peer_node(exec->planned, peer, exec->deadline);
	return node && !strcmp(node, circuits->node);
}

static void add_want(struct circuit_client *circuits, struct circuit_want *want)
{
	want->next = circuits->wants;
	want->cookie = ++circuits->cookie;
	circuits->wants = want;
	ask_for(circuits, want);
}

/*
 * Both ends of a circuit have its uses in the same order, so they are numbered; where
 * circuits go one way, those of each way.
 */
static uint64_t session_of(struct coll_exec *exec, uint32_t index)
{
	const struct coll_op *op = &coll_ops(exec->planned->schedule)[index];
	const uint32_t way = op->flags & COLL_ONE_WAY;
	const uint32_t from = way == COLL_CIRCUIT_OUT ? exec->group->rank + 1 :
			      way == COLL_CIRCUIT_IN ? exec->planned->links[op->peer]->rank + 1 : 0;
	const uint32_t number = ++exec->connects[2 * op->peer + (way == COLL_CIRCUIT_OUT)];
	uint64_t session = exec->group->id ^ (uint64_t)exec->number << 32 ^ number;

	session = (session ^ session >> 31) * 0xff51afd7ed558ccdull ^ from;
	session = (session ^ session >> 29) * 0xc4ceb9fe1a85ec53ull;
	return session ? session : 1;
}

bool coll_circuits_connect(struct coll_exec *exec, uint32_t op)
{
	struct circuit_client *circuits = exec->group->context->circuits;
	const uint32_t peer = coll_ops(exec->planned->schedule)[op].peer;
	struct circuit_want *want;
	const char *node;

	if (!circuits)
		return true;
	node = peer_node(exec->planned, peer, exec->deadline);
	if (node && !strcmp(node, circuits->node))
		return true;
	want = node ? malloc(sizeof(*want)) : NULL;
	if (!want) {
		coll_group_fail(exec->group, node ? -ENOMEM : -ENOENT,
				exec->planned->links[peer]->rank, COLL_NONE,
				node ? "no memory for its circuit"
				     : "it has no circuit manager, and this rank has");
		return false;
	}
	*want = (struct circuit_want){ .exec = exec, .planned = exec->planned, .op = op,
				       .peer = peer, .node = node,
				       .session = session_of(exec, op) };
	add_want(circuits, want);
	return false;
}

static void give_back(struct circuit_client *circuits, struct circuit_want **slot)
{
	struct circuit_want *want = *slot;

	circuit_release(circuits, want);
	if (!want->heard) {
		forget_want(slot);
		return;
	}
	want->exec = NULL;
	want->run = NULL;
	want->planned = NULL;
	if (want->heard == NOT_YET) {
		want->cookie = ++circuits->cookie;	/* news of the old one are on their way */
		ask_for(circuits, want);
	}
}

/* The oldest of this peer: the list has the latest first. */
void coll_circuits_release(struct coll_exec *exec, uint32_t op)
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

void coll_circuits_run_over(struct coll_exec *exec)
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
	if (exec->run && exec->run->persistent && !exec->status)
		coll_circuits_prefetch(exec->run);
}

/* ---- persistent runs -------------------------------------------------------- */

/* What is for the run, but not by this plan; without a run, for all of the group. */
static void circuit_forget(const struct coll_group *group, const struct coll_run *run,
			   const struct planned *but)
{
	struct circuit_client *circuits = group->context->circuits;
	struct circuit_want **slot;

	if (!circuits)
		return;
	slot = &circuits->wants;
	while (*slot)
		if ((*slot)->run && (*slot)->planned != but &&
		    (run ? (*slot)->run == run : (*slot)->planned->group == group))
			give_back(circuits, slot);
		else
			slot = &(*slot)->next;
}

static bool circuits_wanted(const struct circuit_client *circuits, const struct coll_run *run)
{
	const struct circuit_want *want;

	for (want = circuits->wants; want; want = want->next)
		if (want->run == run && want->planned == run->planned)
			return true;
	return false;
}

/* Those that wait for no other's release: with them the run begins. */
void coll_circuits_prefetch(struct coll_run *run)
{
	struct circuit_client *circuits = run->group->context->circuits;
	const struct planned *planned = run->planned;
	const struct coll_schedule *s = planned->schedule;
	uint32_t i;

	if (!circuits || circuits_wanted(circuits, run))
		return;
	for (i = 0; i < s->ops; i++) {
		const struct coll_op *op = &coll_ops(s)[i];
		struct circuit_want *want;
		const char *node;

		if (op->kind != COLL_OP_CONNECT || op->waits)
			continue;
		node = peer_node(planned, op->peer, coll_now() + run->group->options.deadline_ns);
		if (!node || !strcmp(node, circuits->node))
			continue;
		want = malloc(sizeof(*want));
		if (!want)
			return;		/* it is asked for when it is needed */
		*want = (struct circuit_want){ .run = run, .planned = planned, .op = i,
					       .peer = op->peer, .node = node };
		add_want(circuits, want);
	}
	circuit_forget(run->group, run, planned);
}

void coll_circuits_forget(const struct coll_run *run)
{
	circuit_forget(run->group, run, NULL);
}

void coll_circuits_forget_group(const struct coll_group *group)
{
	circuit_forget(group, NULL, NULL);
}

void coll_circuits_started(const struct coll_run *run)
{
	const struct coll_schedule *s = run->planned->schedule;
	uint32_t i;

	if (!run->group->context->circuits)
		return;
	for (i = 0; i < s->ops; i++)
		if (coll_ops(s)[i].kind == COLL_OP_CONNECT && coll_ops(s)[i].waits) {
			coll_circuits_forget(run);
			return;
		}
}

/* ---- open and close ------------------------------------------------------ */

/* The answer to the hello; -ECONNRESET: the manager was killed meanwhile. */
static int try_to_meet(struct circuit_client *circuits, char *why, size_t why_bytes)
{
	const struct timeval patience = { .tv_sec = HELLO_S };
	struct coll_circuit_message answer;
	const int fd = circuit_dial(circuits);

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

/* What is wrong is said at the start; a manager that is started again is waited for. */
static int circuit_meet(struct circuit_client *circuits, char *why, size_t why_bytes)
{
	const uint64_t end = coll_now() + HELLO_S * COLL_SECOND;
	int error = try_to_meet(circuits, why, why_bytes);
	const bool was_there = error == -ECONNRESET || error == -ECONNREFUSED;

	while (was_there && circuits->watch.fd < 0 && coll_now() < end) {
		usleep(AGAIN_NS / 1000);
		error = try_to_meet(circuits, why, why_bytes);
	}
	return error;
}

static int circuit_begin(struct circuit_client *circuits, char *why, size_t why_bytes)
{
	struct coll_context *context = circuits->context;
	char key[32];
	int error = circuit_meet(circuits, why, why_bytes);

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
	circuits->watch = (struct coll_watch){ .ready = read_manager, .owner = circuits, .fd = -1 };
	circuits->timer = (struct coll_watch){ .ready = find_manager, .owner = circuits, .fd = -1 };
	snprintf(circuits->path, sizeof(circuits->path), "%s", path);
	snprintf(circuits->node, sizeof(circuits->node), "%s", context->options.node);
	if (!circuits->node[0])
		gethostname(circuits->node, sizeof(circuits->node) - 1);
	error = circuit_begin(circuits, why, why_bytes);
	if (error)
		coll_circuits_close(context);
	return error;
}

/* Whether there are wants of the past; and `told`: of which it has told us since we asked. */
static bool has_past(const struct circuit_client *circuits, bool *told)
{
	const struct circuit_want *want;
	bool has = false;

	*told = false;
	for (want = circuits->wants; want; want = want->next) {
		has |= is_past(want);
		*told |= is_past(want) && want->heard != NOT_YET && want->heard >= circuits->synced;
	}
	return has;
}

/* Its answer is the proof. */
static void sync_with_manager(struct circuit_client *circuits)
{
	struct coll_circuit_message sync = { .kind = COLL_CIRCUIT_MSG_SYNC };

	sync.cookie = circuits->synced = ++circuits->cookie;
	tell_manager(circuits, &sync);
}

void coll_circuits_leave(struct coll_context *context)
{
	const uint64_t deadline = context->options.deadline_ns;
	const uint64_t until = coll_now() + (deadline < PAST_NS ? deadline : PAST_NS);
	struct circuit_client *circuits = context->circuits;
	bool told;

	while (circuits && has_past(circuits, &told) && coll_now() < until) {
		if (told)
			sync_with_manager(circuits);
		if (coll_context_turn(context, coll_now() + AGAIN_NS))
			break;
	}
}

void coll_circuits_close(struct coll_context *context)
{
	struct circuit_client *circuits = context->circuits;

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
	while (circuits->wants)
		forget_want(&circuits->wants);
	free(circuits->peer);
	free(circuits);
	context->circuits = NULL;
}
