// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A client's requests, the answers and the notifications. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clients.h"
#include "daemon/common/clock.h"
#include "daemon/common/closer.h"
#include "daemon/common/log.h"
#include "node/capture.h"

/* ---- sending -------------------------------------------------------------- */

/* A client that does not read is disconnected: colld never blocks. */
static void client_send(struct circuit_peer *client, struct coll_circuit_message *message)
{
	message->magic = COLL_CIRCUIT_MAGIC;
	message->version = COLL_CIRCUIT_VERSION;
	if (client->broken)
		return;
	client->account->spent++;
	if (send(client->fd, message, sizeof(*message), MSG_NOSIGNAL | MSG_DONTWAIT) !=
	    sizeof(*message)) {
		client->broken = true;
		shutdown(client->fd, SHUT_RDWR);	/* an event, which ends it */
	}
}

static void client_answer(struct circuit_manager *manager, struct circuit_peer *client,
				  u64 cookie, int error, const char *text)
{
	struct coll_circuit_message message = { .kind = COLL_CIRCUIT_MSG_ANSWER, .cookie = cookie,
						.answer.error = error };

	manager->refused += error != 0;
	snprintf(message.answer.text, sizeof(message.answer.text), "%s", text);
	client_send(client, &message);
}

static void client_copy_name(char *to, const char *name)
{
	snprintf(to, COLL_CIRCUIT_NAME, "%s", name);
}

/* Users name their jobs. Each user's terminal and JSON are to take that. */
static void client_put_holder(char *to, const struct circuit_job *job)
{
	client_copy_name(to, job->name);
	node_make_printable(to);
}

static void client_put_circuit(const struct circuit_manager *manager, u32 number,
			struct coll_circuit_message *message)
{
	const struct coll_circuit *circuit = &manager->circuit[number];
	const u64 now = colld_now();
	u32 lease;

	*message = (struct coll_circuit_message){
		.kind = COLL_CIRCUIT_MSG_CIRCUIT,
		.circuit = { .state = circuit->state, .error = circuit->error,
			     .port = { circuit->port[0], circuit->port[1] },
			     .ns = now > circuit->since ? now - circuit->since : 0 },
	};
	client_copy_name(message->circuit.node, manager->setup.node[circuit->node[0]].name);
	client_copy_name(message->circuit.peer, manager->setup.node[circuit->node[1]].name);
	for (lease = circuit->leases; lease != COLL_CIRCUIT_NONE;
	     lease = manager->lease[lease].next) {
		if (!message->circuit.requests++)
			client_put_holder(message->circuit.holder,
					  &manager->job[manager->lease[lease].holder]);
	}
	if (circuit->error || circuit->state == COLL_CIRCUIT_FAILED)
		snprintf(message->circuit.text, sizeof(message->circuit.text), "%s",
			 manager->why[number]);
}

void circuit_clients_changed(struct circuit_manager *manager, u32 circuit)
{
	struct coll_circuit_message message;
	struct circuit_peer *client;

	for (client = manager->clients->first; client; client = client->next)
		if (client->watches) {
			client_put_circuit(manager, circuit, &message);
			client_send(client, &message);
		}
}

static const char *why_ended(int error)
{
	switch (error) {
	case -ETIMEDOUT:
		return "no port was free in time, or its peer did not request it";
	case -EALREADY:
		return "both ends have completed it";
	case -ENOLINK:
		return "its circuit goes down by itself";
	default:
		return "the switch cannot set up its circuit";
	}
}

void circuit_client_notify(struct circuit_manager *manager, struct circuit_peer *client,
			   const struct coll_circuit_notification *notification)
{
	static const u16 kinds[] = {
		[COLL_CIRCUIT_NOTIFY_UP] = COLL_CIRCUIT_MSG_UP,
		[COLL_CIRCUIT_NOTIFY_DRAINING] = COLL_CIRCUIT_MSG_DRAINING,
		[COLL_CIRCUIT_NOTIFY_DOWN] = COLL_CIRCUIT_MSG_DOWN,
		[COLL_CIRCUIT_NOTIFY_ENDED] = COLL_CIRCUIT_MSG_FAILED,
	};
	const bool switch_failed = notification->error != -ETIMEDOUT &&
				   notification->error != -EALREADY;
	struct coll_circuit_message message = {
		.kind = kinds[notification->kind], .cookie = notification->cookie,
		.lease = { .ns = notification->time, .error = notification->error },
	};

	if (notification->kind == COLL_CIRCUIT_NOTIFY_ENDED)
		snprintf(message.lease.text, sizeof(message.lease.text), "%.60s%s%.90s",
			 why_ended(notification->error), switch_failed ? ": " : "",
			 switch_failed ? manager->why[notification->circuit] : "");
	client_send(client, &message);
}

/* ---- requests ------------------------------------------------------------- */

static void client_hello(struct circuit_manager *manager, struct circuit_peer *client,
				 const struct coll_circuit_message *m)
{
	if (client->holder != COLL_CIRCUIT_NONE || !m->hello.holder[0]) {
		client_answer(manager, client, m->cookie, -EINVAL,
				      client->holder == COLL_CIRCUIT_NONE
					      ? "hello: the name of the job is empty"
					      : "hello: sent twice");
		return;
	}
	client->node = circuit_setup_node(&manager->setup, m->hello.node);
	if (client->node == COLL_CIRCUIT_NONE) {
		char text[COLL_CIRCUIT_TEXT];

		snprintf(text, sizeof(text), "node '%s' has no ports at the switch: it is not in "
			 "colld's file", m->hello.node);
		client_answer(manager, client, m->cookie, -ENOENT, text);
		return;
	}
	client->holder = circuit_manager_join(manager, m->hello.holder, m->hello.key, client->user,
					      m->hello.priority);
	client_answer(manager, client, m->cookie,
			      client->holder == COLL_CIRCUIT_NONE ? -ENOSPC : 0,
			      client->holder == COLL_CIRCUIT_NONE ? "this user has too many jobs" : "");
}

static u32 client_find_lease(const struct circuit_manager *manager,
			     const struct circuit_peer *client, u64 cookie)
{
	u32 i;

	for (i = 0; i < manager->core.leased; i++)
		if (manager->owner[i].client == client && manager->lease[i].cookie == cookie)
			return i;
	return COLL_CIRCUIT_NONE;
}

/* A standing request belongs to the operator, not to the client. */
static void client_stand(struct circuit_manager *manager, struct circuit_peer *client,
			  const struct coll_circuit_message *m)
{
	const u32 node = circuit_setup_node(&manager->setup, m->request.node),
		  peer = circuit_setup_node(&manager->setup, m->request.peer);
	u32 lease;
	int error;

	if (manager->operator == COLL_CIRCUIT_NONE)
		manager->operator = circuit_manager_join(manager, "operator",
							 (u8[COLL_CIRCUIT_KEY]){ 0 }, geteuid(), 0);
	if (manager->operator == COLL_CIRCUIT_NONE) {
		client_answer(manager, client, m->cookie, -ENOSPC, "too many jobs");
		return;
	}
	error = circuit_manager_request(manager, (struct circuit_owner){ CIRCUIT_OWNER_NONE, NULL },
					manager->operator, node, peer, COLL_CIRCUIT_ONE_SIDED |
					(m->request.flags & COLL_CIRCUIT_AHEAD),
					0, COLL_CIRCUIT_FOREVER, 0, &lease);
	client_answer(manager, client, m->cookie, error,
			      error == -EINVAL ? "two different nodes of colld's file are needed"
			      : error	       ? "too many requests"
					       : "");
}

static void client_release_standing(struct circuit_manager *manager, struct circuit_peer *client,
			     const struct coll_circuit_message *m)
{
	const u32 node = circuit_setup_node(&manager->setup, m->pair.node),
		  peer = circuit_setup_node(&manager->setup, m->pair.peer);
	const u32 circuit = node == COLL_CIRCUIT_NONE || peer == COLL_CIRCUIT_NONE ?
			    COLL_CIRCUIT_NONE : coll_circuit_find(&manager->core, node, peer);
	u32 i, released = 0;

	for (i = 0; circuit != COLL_CIRCUIT_NONE && i < manager->core.leased; i++)
		if (manager->lease[i].used && manager->lease[i].circuit == circuit &&
		    manager->lease[i].holder == manager->operator) {
			circuit_manager_release(manager, i);
			released++;
		}
	client_answer(manager, client, m->cookie, released ? 0 : -ENOENT,
			      released ? "" : "the operator has not requested this circuit");
}

static void client_request(struct circuit_manager *manager, struct circuit_peer *client,
				const struct coll_circuit_message *m)
{
	const u32 peer = circuit_setup_node(&manager->setup, m->request.peer);
	char text[COLL_CIRCUIT_TEXT] = "";
	u32 lease;
	int error;

	if (client->holder == COLL_CIRCUIT_NONE) {
		client_answer(manager, client, m->cookie, -EPROTO,
			      "the first message must be HELLO");
		return;
	}
	if (peer == COLL_CIRCUIT_NONE || peer == client->node) {
		snprintf(text, sizeof(text), "peer '%s' is %s", m->request.peer,
			 peer == client->node ? "this node itself" : "not in colld's file");
		client_answer(manager, client, m->cookie, -ENOENT, text);
		return;
	}
	if (client_find_lease(manager, client, m->cookie) != COLL_CIRCUIT_NONE) {
		client_answer(manager, client, m->cookie, -EEXIST,
				      "the cookie is in use");
		return;
	}
	error = circuit_manager_request(manager,
					(struct circuit_owner){ CIRCUIT_OWNER_CLIENT, client },
					client->holder, client->node, peer, m->request.flags,
					m->request.session, m->request.timeout_ns, m->cookie,
					&lease);
	if (error || !(m->request.flags & COLL_CIRCUIT_QUIET))
		client_answer(manager, client, m->cookie, error,
				      error ? "this user has too many requests" : "");
}

static void client_release(struct circuit_manager *manager, struct circuit_peer *client,
				   u64 cookie)
{
	const u32 lease = client_find_lease(manager, client, cookie);

	if (lease == COLL_CIRCUIT_NONE)
		return;		/* it has ended, and the notification is on its way */
	circuit_manager_release(manager, lease);
}

static void client_show(struct circuit_manager *manager, struct circuit_peer *client)
{
	struct coll_circuit_message m;
	u32 i;

	for (i = 0; i < manager->setup.nodes; i++) {
		m = (struct coll_circuit_message){
			.kind = COLL_CIRCUIT_MSG_NODE,
			.node.ports = __builtin_popcountll(manager->node[i].ports),
			.node.taken = __builtin_popcountll(manager->node[i].taken),
		};
		client_copy_name(m.node.name, manager->setup.node[i].name);
		client_send(client, &m);
	}
	for (i = 0; i < CIRCUIT_HOLDERS_MAX; i++) {
		if (!manager->job[i].clients)
			continue;
		m = (struct coll_circuit_message){
			.kind = COLL_CIRCUIT_MSG_HOLDER,
			.holder.priority = manager->holder[i].priority,
			.holder.requests = manager->holder[i].requests,
			.holder.port_ns = manager->holder[i].used,
			.holder.user = manager->job[i].user,
		};
		client_put_holder(m.holder.name, &manager->job[i]);
		client_send(client, &m);
	}
	for (i = 0; i < manager->core.made; i++) {
		client_put_circuit(manager, i, &m);
		if (m.circuit.state != COLL_CIRCUIT_DOWN || m.circuit.requests)
			client_send(client, &m);
	}
	m = (struct coll_circuit_message){ .kind = COLL_CIRCUIT_MSG_SWITCH,
		.status = {
			.limit = manager->setup.policy.limit,
			.setups = manager->core.setups, .failures = manager->core.failures,
			.lost = manager->core.lost, .drift = manager->drift,
			.revoked = manager->core.revoked,
			.queue_ns = circuit_delays_figure(&manager->delays, CIRCUIT_DELAY_QUEUE),
			.switch_ns = circuit_delays_figure(&manager->delays, CIRCUIT_DELAY_SWITCH),
			.lock_ns = circuit_delays_figure(&manager->delays, CIRCUIT_DELAY_LOCK),
			.notify_ns = circuit_delays_figure(&manager->delays, CIRCUIT_DELAY_NOTIFY),
			.delay_ns = circuit_delays_figure(&manager->delays, CIRCUIT_DELAY_ALL),
			.delay_p90_ns = circuit_delays_figure(&manager->delays, CIRCUIT_DELAY_P90),
		} };
	snprintf(m.status.driver, sizeof(m.status.driver), "%s %.120s", manager->setup.driver,
		 circuit_setup_shown(&manager->setup));
	client_send(client, &m);
}

static void client_set_ports(struct circuit_manager *manager, struct circuit_peer *client,
		      const struct coll_circuit_message *m)
{
	const u32 node = circuit_setup_node(&manager->setup, m->node.name);
	char text[COLL_CIRCUIT_TEXT];

	if (node == COLL_CIRCUIT_NONE || m->node.ports > manager->setup.node[node].ports) {
		if (node == COLL_CIRCUIT_NONE)
			snprintf(text, sizeof(text), "node '%s' is not in colld's file",
				 m->node.name);
		else
			snprintf(text, sizeof(text), "ports: from 0 to %u, which node '%s' has",
				 manager->setup.node[node].ports, m->node.name);
		client_answer(manager, client, m->cookie, -EINVAL, text);
		return;
	}
	circuit_manager_set_ports(manager, node, m->node.ports);
	client_answer(manager, client, m->cookie, 0, "");
}

static void client_drain(struct circuit_manager *manager, struct circuit_peer *client,
				 const struct coll_circuit_message *m)
{
	const u32 node = circuit_setup_node(&manager->setup, m->pair.node);
	const bool all = !m->pair.peer[0];
	const u32 peer = all ? COLL_CIRCUIT_NONE :
			 circuit_setup_node(&manager->setup, m->pair.peer);
	u32 i;

	if (node == COLL_CIRCUIT_NONE || (!all && peer == COLL_CIRCUIT_NONE)) {
		client_answer(manager, client, m->cookie, -ENOENT,
				      "the node or the peer is not in colld's file");
		return;
	}
	for (i = 0; i < manager->core.made; i++) {
		const u32 *end = manager->circuit[i].node;

		if ((end[0] == node && (all || end[1] == peer)) ||
		    (end[1] == node && (all || end[0] == peer)))
			coll_circuit_drain(&manager->core, colld_now(), i);
	}
	client_answer(manager, client, m->cookie, 0, "");
}

/* Root, and the user that colld runs as, may change what others have. */
static bool client_may_manage(const struct circuit_peer *client)
{
	return !client->user || client->user == geteuid();
}

/* A list of all circuits needs a long queue of messages, which is the kernel's memory. */
static bool client_refuse_list(struct circuit_manager *manager, struct circuit_peer *client,
			       u64 cookie)
{
	if (circuit_client_enlarge(manager, client))
		return false;
	client_answer(manager, client, cookie, -EBUSY, "too many clients read lists of all "
		      "circuits; valid: 16 of a user, or of its subordinate numbers, at a time, 60 of all");
	return true;
}

/* The message is hostile: ends each name inside its field. */
static void client_end_names(struct coll_circuit_message *m)
{
	switch (m->kind) {
	case COLL_CIRCUIT_MSG_HELLO:
		m->hello.holder[COLL_CIRCUIT_NAME - 1] = m->hello.node[COLL_CIRCUIT_NAME - 1] = 0;
		break;
	case COLL_CIRCUIT_MSG_REQUEST:
		m->request.node[COLL_CIRCUIT_NAME - 1] = m->request.peer[COLL_CIRCUIT_NAME - 1] = 0;
		break;
	case COLL_CIRCUIT_MSG_PORTS:
		m->node.name[COLL_CIRCUIT_NAME - 1] = 0;
		break;
	default:
		m->pair.node[COLL_CIRCUIT_NAME - 1] = m->pair.peer[COLL_CIRCUIT_NAME - 1] = 0;
	}
}

static bool client_needs_root(const struct coll_circuit_message *m)
{
	switch (m->kind) {
	case COLL_CIRCUIT_MSG_PORTS:
	case COLL_CIRCUIT_MSG_DRAIN:
		return true;
	case COLL_CIRCUIT_MSG_REQUEST:
		return m->request.node[0];
	case COLL_CIRCUIT_MSG_RELEASE:
		return m->pair.node[0];
	default:
		return false;
	}
}

static void client_take(struct circuit_manager *manager, struct circuit_peer *client,
				struct coll_circuit_message *m)
{
	client_end_names(m);
	if (client_needs_root(m) && !client_may_manage(client)) {
		client_answer(manager, client, m->cookie, -EPERM, "only root may do that");
		return;
	}
	switch (m->kind) {
	case COLL_CIRCUIT_MSG_HELLO:
		if (m->hello.priority && !client_may_manage(client))
			client_answer(manager, client, m->cookie, -EPERM,
					      "only root has priority");
		else
			client_hello(manager, client, m);
		break;
	case COLL_CIRCUIT_MSG_REQUEST:
		if (m->request.flags & COLL_CIRCUIT_STANDING && m->request.node[0])
			client_stand(manager, client, m);
		else
			client_request(manager, client, m);
		break;
	case COLL_CIRCUIT_MSG_RELEASE:
		if (m->pair.node[0])
			client_release_standing(manager, client, m);
		else
			client_release(manager, client, m->cookie);
		break;
	case COLL_CIRCUIT_MSG_SHOW:
		if (client_refuse_list(manager, client, m->cookie))
			return;
		client_show(manager, client);
		client_answer(manager, client, m->cookie, 0, "");
		break;
	case COLL_CIRCUIT_MSG_WATCH:
		if (client_refuse_list(manager, client, m->cookie))
			return;
		client->watches = true;
		client_answer(manager, client, m->cookie, 0, "");
		break;
	case COLL_CIRCUIT_MSG_PORTS:
		client_set_ports(manager, client, m);
		break;
	case COLL_CIRCUIT_MSG_DRAIN:
		client_drain(manager, client, m);
		break;
	case COLL_CIRCUIT_MSG_SYNC:
		circuit_manager_follow(manager);
		client_answer(manager, client, m->cookie, 0, "");
		break;
	default:
		client_answer(manager, client, m->cookie, -EINVAL, "no such request");
	}
}

/* ---- reading -------------------------------------------------------------- */

/*
 * The protocol passes no descriptors. Without room for them the kernel would close those that
 * come, in this thread, and such a close can take as long as the client wants.
 */
static ssize_t client_receive(struct circuit_manager *manager, struct circuit_peer *client)
{
	union closer_control control;
	struct iovec data = { (u8 *)client->message + client->got,
			      sizeof(client->message) - client->got };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	const ssize_t got = recvmsg(client->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (got <= 0 || !closer_take(&message))
		return got;
	circuit_client_count_dropped(manager->clients, CIRCUIT_DROP_DESCRIPTORS, client->user);
	return 0;
}

void circuit_client_read(struct circuit_manager *manager, struct circuit_peer *client)
{
	struct coll_circuit_message *m;
	ssize_t got;

	if (!client->broken && !circuit_client_may_read(manager, client))
		return;
	got = client->broken ? 0 : client_receive(manager, client);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		circuit_client_disconnect(manager, client);
		return;
	}
	client->got += got;
	for (m = client->message; client->got >= sizeof(*m) && !client->broken; m++) {
		client->account->spent++;
		if (m->magic != COLL_CIRCUIT_MAGIC || m->version != COLL_CIRCUIT_VERSION) {
			circuit_client_count_dropped(manager->clients, CIRCUIT_DROP_PROTOCOL, client->user);
			circuit_client_disconnect(manager, client);
			return;
		}
		client_take(manager, client, m);
		client->got -= sizeof(*m);
	}
	memmove(client->message, m, client->got);
}
