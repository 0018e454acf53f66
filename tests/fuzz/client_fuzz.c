// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Clients of colld's socket, root and others, that send requests, right ones and any bytes, while
 * a switch carries orders out, fails and loses circuits. Only root manages what others have, and
 * when all clients are gone so are their jobs and requests.
 */
#include <errno.h>

#include "daemon/circuit/clients.h"
#include "daemon/common/log.h"
#include "fuzz.h"
#include "sockets.h"

enum { PEERS = 4, STEPS_MAX = 48, NODES = 3, ORDERS_MAX = 256, USER = 1000 };

static struct circuit_manager *manager;
static struct circuit_peer *peer[PEERS];

/* ---- the switch: in place of daemon/switch/worker.c ------------------------------ */

static struct switch_event order[ORDERS_MAX];	/* given, and not done yet */
static u32 orders, told;

int switch_worker_start(struct switch_worker **worker, struct switch_device *s, u64 reconcile)
{
	(void)s;
	(void)reconcile;
	*worker = NULL;
	orders = told = 0;
	return 0;
}

void switch_worker_adopt(struct switch_worker *worker, const u32 *port)
{
	(void)worker;
	(void)port;
}

int switch_worker_give(struct switch_worker *worker, const struct switch_order *given)
{
	(void)worker;
	if (!given->what)
		return 0;
	if (orders == ORDERS_MAX)
		return -ENOMEM;
	order[orders++] = (struct switch_event){ .kind = SWITCH_DONE, .order = *given };
	return 0;
}

int switch_worker_fd(const struct switch_worker *worker)
{
	(void)worker;
	return -1;
}

bool switch_worker_event(struct switch_worker *worker, struct switch_event *event)
{
	(void)worker;
	if (told == orders)
		return false;
	*event = order[told++];
	return true;
}

void switch_worker_stop(struct switch_worker *worker)
{
	(void)worker;
}

static void switch_step(struct fuzz_input *in)
{
	const u8 how = fuzz_byte(in);

	if (told < orders && how % 4 == 1) {
		order[told].order.error = -EIO;
		strcpy(order[told].order.why, "the mirror is stuck");
	}
	if (how % 4 == 2 && orders < ORDERS_MAX)
		order[orders++] = (struct switch_event){ .kind = SWITCH_LOST,
			.order.port = { 1 + how / 4 % 6, 1 + how / 24 % 6 } };
	circuit_manager_switch_events(manager);
}

/* In place of daemon/common/log.c. */
void colld_log(int level, const char *format, ...)
{
	(void)level;
	(void)format;
}

/* ---- clients ---------------------------------------------------------------------- */

static void kernel_notified(struct circuit_manager *of,
			    const struct coll_circuit_notification *notification)
{
	(void)of;
	(void)notification;
}

static const struct circuit_listener listener = {
	.client_notified = circuit_client_notify,
	.kernel_notified = kernel_notified,
	.circuit_changed = circuit_clients_changed,
};

static void check_text(const char *text, size_t bytes)
{
	fuzz_must(memchr(text, 0, bytes) != NULL, "a text without an end");
}

/* What colld sends is of its protocol. */
static void check_sent(int fd, const void *data, size_t bytes)
{
	struct coll_circuit_message m;

	(void)fd;
	fuzz_must(bytes == sizeof(m), "a message of another size");
	memcpy(&m, data, bytes);
	fuzz_must(m.magic == COLL_CIRCUIT_MAGIC && m.kind >= COLL_CIRCUIT_MSG_ANSWER,
		  "a message of another protocol");
	if (m.kind == COLL_CIRCUIT_MSG_ANSWER)
		check_text(m.answer.text, sizeof(m.answer.text));
	if (m.kind == COLL_CIRCUIT_MSG_FAILED)
		check_text(m.lease.text, sizeof(m.lease.text));
	if (m.kind == COLL_CIRCUIT_MSG_CIRCUIT)
		check_text(m.circuit.text, sizeof(m.circuit.text));
}

static struct circuit_peer *connect_peer(uid_t user)
{
	struct circuit_peer *one = circuit_client_new(manager->clients, sockets_make(), user);

	fuzz_must(one != NULL, "out of memory");
	return one;
}

static bool is_connected(const struct circuit_peer *one)
{
	const struct circuit_peer *other;

	for (other = manager->clients->first; other; other = other->next)
		if (other == one)
			return true;
	return false;
}

static void put_name(struct fuzz_input *in, char *to)
{
	static const char *const names[] = { "a", "b", "c", "", "job", "nobody" };
	const u8 which = fuzz_byte(in);

	if (which % 16 == 15)
		memset(to, 'x', COLL_CIRCUIT_NAME);	/* without an end */
	else
		strcpy(to, names[which % (sizeof(names) / sizeof(*names))]);
}

static void send_message(struct fuzz_input *in, const struct circuit_peer *one)
{
	struct coll_circuit_message m = { .magic = COLL_CIRCUIT_MAGIC,
					  .version = COLL_CIRCUIT_VERSION,
					  .kind = fuzz_byte(in) % 12, .cookie = fuzz_byte(in) % 8 };

	switch (m.kind) {
	case COLL_CIRCUIT_MSG_HELLO:
		put_name(in, m.hello.holder);
		put_name(in, m.hello.node);
		m.hello.priority = fuzz_byte(in) % 3;
		m.hello.key[0] = fuzz_byte(in) % 2;
		break;
	case COLL_CIRCUIT_MSG_REQUEST:
		m.request.flags = fuzz_byte(in);
		m.request.session = fuzz_byte(in) % 4;
		m.request.timeout_ns = fuzz_byte(in) % 2 ? ~0ull : 1000;
		put_name(in, m.request.node);
		put_name(in, m.request.peer);
		break;
	case COLL_CIRCUIT_MSG_PORTS:
		put_name(in, m.node.name);
		m.node.ports = fuzz_byte(in) % 4;
		break;
	default:
		put_name(in, m.pair.node);
		put_name(in, m.pair.peer);
	}
	sockets_feed(one->fd, &m, sizeof(m));
}

static void client_step(struct fuzz_input *in)
{
	const u8 what = fuzz_byte(in);
	struct circuit_peer **one = &peer[what / 8 % PEERS];
	const u8 *raw;
	size_t bytes;

	if (!*one)
		*one = connect_peer(one == peer ? 0 : USER + (one - peer) / 2);
	switch (what % 8) {
	case 0:
		switch_step(in);
		return;
	case 1:
		bytes = fuzz_some(in, &raw, fuzz_byte(in));
		sockets_feed((*one)->fd, raw, bytes);
		break;
	case 2:
		sockets_end((*one)->fd);
		break;
	case 3:
		circuit_manager_timer_expired(manager);
		break;
	default:
		send_message(in, *one);
	}
	circuit_client_read(manager, *one);
	if (!is_connected(*one))
		*one = NULL;
	circuit_manager_follow(manager);
}

static void manager_begin(void)
{
	static struct circuit_manager memory;
	static struct circuit_setup setup;
	u32 i;

	manager = &memory;
	setup = (struct circuit_setup){ .driver = "fake", .kernel = COLL_CIRCUIT_NONE,
					.policy = coll_circuit_policy_default, .nodes = NODES };
	for (i = 0; i < NODES; i++) {
		setup.node[i].name[0] = 'a' + i;
		setup.node[i].ports = 2;
		setup.node[i].port[0] = 2 * i + 1;
		setup.node[i].port[1] = 2 * i + 2;
	}
	fuzz_must(!circuit_manager_open(manager, &setup, &listener), "no manager");
	manager->clients = calloc(1, sizeof(*manager->clients));
	manager->clients->listener = manager->clients->pause = manager->clients->refill =
		manager->clients->epoll = -1;
}

/* Zeros again. Of its two megabytes only what was used. */
static void manager_end(void)
{
	const u32 made = manager->core.made, leased = manager->core.leased;

	circuit_clients_close(manager);
	circuit_manager_close(manager);
	memset(manager->circuit, 0, made * sizeof(*manager->circuit));
	memset(manager->why, 0, made * sizeof(*manager->why));
	memset(manager->time, 0, made * sizeof(*manager->time));
	memset(manager->lease, 0, leased * sizeof(*manager->lease));
	memset(manager->owner, 0, leased * sizeof(*manager->owner));
	memset(manager->node, 0, sizeof(manager->node));
	memset(manager->holder, 0, sizeof(manager->holder));
	memset(manager->job, 0, sizeof(manager->job));
	memset(&manager->delays, 0, sizeof(manager->delays));
	memset(&manager->device, 0, sizeof(manager->device));
	manager->drift = manager->refused = manager->timer_at = 0;
}

static void check_left(void)
{
	u32 i;

	for (i = 0; i < CIRCUIT_HOLDERS_MAX; i++)
		fuzz_must(i == manager->operator || !manager->job[i].clients,
			  "a job without clients");
	for (i = 0; i < manager->core.leased; i++)
		fuzz_must(!manager->lease[i].used || manager->lease[i].holder == manager->operator,
			  "a request without a client");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz_input in = { data, bytes };
	int steps;

	sockets_begin();
	sockets_sent = check_sent;
	memset(peer, 0, sizeof(peer));
	manager_begin();
	for (steps = 0; in.bytes && steps < STEPS_MAX; steps++)
		client_step(&in);
	while (manager->clients->first)
		circuit_client_disconnect(manager, manager->clients->first);
	circuit_manager_follow(manager);
	check_left();
	manager_end();
	return 0;
}

#define PEER(number, what) ((number) * 8 + (what))

void fuzz_seeds(take_seed *take, void *argument)
{
	static const uint8_t job[] = {
		PEER(1, 4), COLL_CIRCUIT_MSG_HELLO, 1, 4, 0, 0, 1,
		PEER(2, 4), COLL_CIRCUIT_MSG_HELLO, 1, 4, 1, 0, 1,
		PEER(1, 4), COLL_CIRCUIT_MSG_REQUEST, 2, 0, 1, 1, 3, 1,
		PEER(2, 4), COLL_CIRCUIT_MSG_REQUEST, 2, 0, 1, 1, 3, 0,
		PEER(0, 0), 0, PEER(1, 4), COLL_CIRCUIT_MSG_SHOW, 3, 3, 3,
		PEER(2, 4), COLL_CIRCUIT_MSG_WATCH, 3, 3, 3,
		PEER(1, 4), COLL_CIRCUIT_MSG_RELEASE, 2, 3, 3, PEER(0, 0), 2, PEER(0, 3),
		PEER(1, 4), COLL_CIRCUIT_MSG_SYNC, 3, 3, 3, PEER(2, 2),
	};
	static const uint8_t operator[] = {
		PEER(0, 4), COLL_CIRCUIT_MSG_REQUEST, 1, 4, 0, 1, 0, 1, PEER(0, 0), 1,
		PEER(0, 4), COLL_CIRCUIT_MSG_PORTS, 1, 0, 1, PEER(0, 4), COLL_CIRCUIT_MSG_DRAIN, 1, 0, 3,
		PEER(0, 4), COLL_CIRCUIT_MSG_RELEASE, 1, 0, 1, PEER(3, 1), 4, 'c', 'r', 'c', 't',
	};

	take(job, sizeof(job), argument);
	take(operator, sizeof(operator), argument);
}
