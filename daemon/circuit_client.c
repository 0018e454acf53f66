// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "circuit.h"
#include "colld.h"

enum { CLIENTS_MAX = 4096, SEND_BYTES = 8 << 20, READ_MESSAGES = 8 };

struct circuit_client {
	struct circuit_client *next;
	int fd;
	u32 holder, node;	/* COLL_CIRCUIT_NONE: did not say hello */
	bool watches, broken;
	size_t got;
	struct coll_circuit_message message[READ_MESSAGES];
};

/* ---- sending ------------------------------------------------------------- */

/* Who does not read is let go: nobody waits for it. */
static void send_message(struct circuit_client *client, struct coll_circuit_message *message)
{
	message->magic = COLL_CIRCUIT_MAGIC;
	message->version = COLL_CIRCUIT_VERSION;
	if (!client->broken && send(client->fd, message, sizeof(*message),
				    MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(*message)) {
		client->broken = true;
		shutdown(client->fd, SHUT_RDWR);	/* comes back as its end */
	}
}

static void circuit_client_answer(struct colld_circuits *circuits, struct circuit_client *client,
				  u64 cookie, int error, const char *text)
{
	struct coll_circuit_message message = { .kind = COLL_CIRCUIT_MSG_ANSWER, .cookie = cookie,
						.answer.error = error };

	circuits->refused += error != 0;
	snprintf(message.answer.text, sizeof(message.answer.text), "%s", text);
	send_message(client, &message);
}

static void copy_name(char *to, const char *name)
{
	snprintf(to, COLL_CIRCUIT_NAME, "%s", name);
}

static void put_circuit(const struct colld_circuits *circuits, u32 number,
			struct coll_circuit_message *message)
{
	const struct coll_circuit *circuit = &circuits->circuit[number];
	const u64 now = switch_now();
	u32 lease;

	*message = (struct coll_circuit_message){
		.kind = COLL_CIRCUIT_MSG_CIRCUIT,
		.circuit = { .state = circuit->state, .error = circuit->error,
			     .port = { circuit->port[0], circuit->port[1] },
			     .ns = now > circuit->since ? now - circuit->since : 0 },
	};
	copy_name(message->circuit.node, circuits->setup.node[circuit->node[0]].name);
	copy_name(message->circuit.peer, circuits->setup.node[circuit->node[1]].name);
	for (lease = circuit->leases; lease != COLL_CIRCUIT_NONE;
	     lease = circuits->lease[lease].next) {
		if (!message->circuit.requests++)
			copy_name(message->circuit.holder,
				  circuits->job[circuits->lease[lease].holder].name);
	}
	if (circuit->error || circuit->state == COLL_CIRCUIT_FAILED)
		snprintf(message->circuit.text, sizeof(message->circuit.text), "%s",
			 circuits->why[number]);
}

void circuit_clients_changed(struct colld_circuits *circuits, u32 circuit)
{
	struct coll_circuit_message message;
	struct circuit_client *client;

	for (client = circuits->clients; client; client = client->next)
		if (client->watches) {
			put_circuit(circuits, circuit, &message);
			send_message(client, &message);
		}
}

static const char *why_over(int error)
{
	switch (error) {
	case -ETIMEDOUT:
		return "no port was free in time, or its peer did not ask";
	case -EALREADY:
		return "both ends have had it";
	case -ENOLINK:
		return "its circuit goes dark by itself";
	default:
		return "the switch cannot set up its circuit";
	}
}

void circuit_client_tell(struct colld_circuits *circuits, struct circuit_client *client,
			 const struct coll_circuit_notification *told)
{
	static const u16 kinds[] = {
		[COLL_CIRCUIT_NOTIFY_UP] = COLL_CIRCUIT_MSG_UP,
		[COLL_CIRCUIT_NOTIFY_DRAINING] = COLL_CIRCUIT_MSG_DRAINING,
		[COLL_CIRCUIT_NOTIFY_DOWN] = COLL_CIRCUIT_MSG_DOWN,
		[COLL_CIRCUIT_NOTIFY_ENDED] = COLL_CIRCUIT_MSG_FAILED,
	};
	const bool switchs_fault = told->error != -ETIMEDOUT && told->error != -EALREADY;
	struct coll_circuit_message message = {
		.kind = kinds[told->kind], .cookie = told->cookie,
		.lease = { .ns = told->time, .error = told->error },
	};

	if (told->kind == COLL_CIRCUIT_NOTIFY_ENDED)
		snprintf(message.lease.text, sizeof(message.lease.text), "%.60s%s%.90s",
			 why_over(told->error), switchs_fault ? ": " : "",
			 switchs_fault ? circuits->why[told->circuit] : "");
	send_message(client, &message);
}

/* ---- requests ------------------------------------------------------------ */

static u32 find_job(struct colld_circuits *circuits, const char *name, u32 priority)
{
	u32 i;

	for (i = 0; i < CIRCUIT_HOLDERS_MAX; i++)
		if (circuits->job[i].clients && !strcmp(circuits->job[i].name, name))
			break;
	if (i == CIRCUIT_HOLDERS_MAX) {
		i = coll_circuit_add_holder(&circuits->c, priority);
		if (i == COLL_CIRCUIT_NONE)
			return i;
		copy_name(circuits->job[i].name, name);
	}
	circuits->job[i].clients++;
	return i;
}

static void circuit_client_hello(struct colld_circuits *circuits, struct circuit_client *client,
				 const struct coll_circuit_message *m)
{
	if (client->holder != COLL_CIRCUIT_NONE || !m->hello.holder[0]) {
		circuit_client_answer(circuits, client, m->cookie, -EINVAL,
				      client->holder == COLL_CIRCUIT_NONE
					      ? "hello: no name of a job"
					      : "hello: it was said before");
		return;
	}
	client->node = coll_circuits_node(circuits, m->hello.node);
	if (client->node == COLL_CIRCUIT_NONE) {
		char text[COLL_CIRCUIT_TEXT];

		snprintf(text, sizeof(text), "node '%s' has no ports at the switch: not in colld's "
			 "file", m->hello.node);
		circuit_client_answer(circuits, client, m->cookie, -ENOENT, text);
		return;
	}
	client->holder = find_job(circuits, m->hello.holder, m->hello.priority);
	circuit_client_answer(circuits, client, m->cookie,
			      client->holder == COLL_CIRCUIT_NONE ? -ENOSPC : 0,
			      client->holder == COLL_CIRCUIT_NONE ? "too many jobs" : "");
}

static u32 find_lease(const struct colld_circuits *circuits, const struct circuit_client *client,
		      u64 cookie)
{
	u32 i;

	for (i = 0; i < circuits->c.leased; i++)
		if (circuits->owner[i] == client && circuits->lease[i].cookie == cookie)
			return i;
	return COLL_CIRCUIT_NONE;
}

/* The operator's: nobody's in particular. */
static void want_standing(struct colld_circuits *circuits, struct circuit_client *client,
			  const struct coll_circuit_message *m)
{
	const u32 node = coll_circuits_node(circuits, m->request.node),
		  peer = coll_circuits_node(circuits, m->request.peer);
	u32 lease;
	int error;

	if (circuits->operator == COLL_CIRCUIT_NONE)
		circuits->operator = find_job(circuits, "operator", 0);
	error = coll_circuit_request(&circuits->c, switch_now(), circuits->operator, node, peer,
				     COLL_CIRCUIT_ONE_SIDED |
				     (m->request.flags & COLL_CIRCUIT_AHEAD),
				     0, COLL_CIRCUIT_FOREVER, 0, &lease);
	circuit_client_answer(circuits, client, m->cookie, error,
			      error == -EINVAL ? "two different nodes of colld's file are needed"
			      : error	       ? "too many wants"
					       : "");
}

static void release_standing(struct colld_circuits *circuits, struct circuit_client *client,
			     const struct coll_circuit_message *m)
{
	const u32 node = coll_circuits_node(circuits, m->pair.node),
		  peer = coll_circuits_node(circuits, m->pair.peer);
	const u32 circuit = node == COLL_CIRCUIT_NONE || peer == COLL_CIRCUIT_NONE ?
			    COLL_CIRCUIT_NONE : coll_circuit_find(&circuits->c, node, peer);
	u32 i, released = 0;

	for (i = 0; circuit != COLL_CIRCUIT_NONE && i < circuits->c.leased; i++)
		if (circuits->lease[i].used && circuits->lease[i].circuit == circuit &&
		    circuits->lease[i].holder == circuits->operator) {
			coll_circuit_release(&circuits->c, switch_now(), i);
			released++;
		}
	circuit_client_answer(circuits, client, m->cookie, released ? 0 : -ENOENT,
			      released ? "" : "the operator has not asked for this circuit");
}

static void circuit_client_want(struct colld_circuits *circuits, struct circuit_client *client,
				const struct coll_circuit_message *m)
{
	const u32 peer = coll_circuits_node(circuits, m->request.peer);
	const u64 timeout = m->request.timeout_ns;
	const u64 now = switch_now();
	char text[COLL_CIRCUIT_TEXT] = "";
	u32 lease;
	int error;

	if (client->holder == COLL_CIRCUIT_NONE) {
		circuit_client_answer(circuits, client, m->cookie, -EPROTO, "say hello first");
		return;
	}
	if (peer == COLL_CIRCUIT_NONE || peer == client->node) {
		snprintf(text, sizeof(text), "peer '%s' is %s", m->request.peer,
			 peer == client->node ? "this node itself" : "not in colld's file");
		circuit_client_answer(circuits, client, m->cookie, -ENOENT, text);
		return;
	}
	if (find_lease(circuits, client, m->cookie) != COLL_CIRCUIT_NONE) {
		circuit_client_answer(circuits, client, m->cookie, -EEXIST,
				      "this cookie is in use");
		return;
	}
	error = coll_circuit_request(
		&circuits->c, now, client->holder, client->node, peer, m->request.flags,
		m->request.session,
		timeout < COLL_CIRCUIT_FOREVER - now ? now + timeout : COLL_CIRCUIT_FOREVER,
		m->cookie, &lease);
	if (!error)
		circuits->owner[lease] = client;
	if (error || !(m->request.flags & COLL_CIRCUIT_QUIET))
		circuit_client_answer(circuits, client, m->cookie, error,
				      error ? "too many wants" : "");
}

static void circuit_client_release(struct colld_circuits *circuits, struct circuit_client *client,
				   u64 cookie)
{
	const u32 lease = find_lease(circuits, client, cookie);

	if (lease == COLL_CIRCUIT_NONE)
		return;		/* it was over by itself, and the news are on their way */
	circuits->owner[lease] = NULL;
	coll_circuit_release(&circuits->c, switch_now(), lease);
}

static void circuit_client_show(struct colld_circuits *circuits, struct circuit_client *client)
{
	struct coll_circuit_message m;
	u32 i;

	for (i = 0; i < circuits->setup.nodes; i++) {
		m = (struct coll_circuit_message){
			.kind = COLL_CIRCUIT_MSG_NODE,
			.node.ports = __builtin_popcountll(circuits->node[i].ports),
			.node.taken = __builtin_popcountll(circuits->node[i].taken),
		};
		copy_name(m.node.name, circuits->setup.node[i].name);
		send_message(client, &m);
	}
	for (i = 0; i < CIRCUIT_HOLDERS_MAX; i++) {
		if (!circuits->job[i].clients)
			continue;
		m = (struct coll_circuit_message){
			.kind = COLL_CIRCUIT_MSG_HOLDER,
			.holder.priority = circuits->holder[i].priority,
			.holder.requests = circuits->holder[i].requests,
			.holder.port_ns = circuits->holder[i].used,
		};
		copy_name(m.holder.name, circuits->job[i].name);
		send_message(client, &m);
	}
	for (i = 0; i < circuits->c.made; i++) {
		put_circuit(circuits, i, &m);
		if (m.circuit.state != COLL_CIRCUIT_DOWN || m.circuit.requests)
			send_message(client, &m);
	}
	m = (struct coll_circuit_message){ .kind = COLL_CIRCUIT_MSG_SWITCH,
		.status = {
			.limit = circuits->setup.policy.limit,
			.setups = circuits->c.setups, .failures = circuits->c.failures,
			.lost = circuits->c.lost, .drift = circuits->drift,
			.revoked = circuits->c.revoked,
			.queue_ns = circuits_sampled(circuits, CIRCUIT_DELAY_QUEUE),
			.switch_ns = circuits_sampled(circuits, CIRCUIT_DELAY_SWITCH),
			.lock_ns = circuits_sampled(circuits, CIRCUIT_DELAY_LOCK),
			.notify_ns = circuits_sampled(circuits, CIRCUIT_DELAY_NOTIFY),
			.delay_ns = circuits_sampled(circuits, CIRCUIT_DELAY_ALL),
			.delay_p90_ns = circuits_sampled(circuits, CIRCUIT_DELAY_P90),
		} };
	snprintf(m.status.driver, sizeof(m.status.driver), "%s %.120s", circuits->setup.driver,
		 strcmp(circuits->setup.driver, "restconf") ? circuits->setup.argument : "");
	send_message(client, &m);
}

static void set_ports(struct colld_circuits *circuits, struct circuit_client *client,
		      const struct coll_circuit_message *m)
{
	const u32 node = coll_circuits_node(circuits, m->node.name);
	char text[COLL_CIRCUIT_TEXT];

	if (node == COLL_CIRCUIT_NONE || m->node.ports > circuits->setup.node[node].ports) {
		if (node == COLL_CIRCUIT_NONE)
			snprintf(text, sizeof(text), "node '%s' is not in colld's file",
				 m->node.name);
		else
			snprintf(text, sizeof(text), "ports: from 0 to %u, which node '%s' has",
				 circuits->setup.node[node].ports, m->node.name);
		circuit_client_answer(circuits, client, m->cookie, -EINVAL, text);
		return;
	}
	coll_circuit_set_ports(&circuits->c, switch_now(), node,
			       m->node.ports == 64 ? ~0ull : (1ull << m->node.ports) - 1);
	circuit_client_answer(circuits, client, m->cookie, 0, "");
}

static void circuit_client_drain(struct colld_circuits *circuits, struct circuit_client *client,
				 const struct coll_circuit_message *m)
{
	const u32 node = coll_circuits_node(circuits, m->pair.node);
	const bool all = !m->pair.peer[0];
	const u32 peer = all ? COLL_CIRCUIT_NONE : coll_circuits_node(circuits, m->pair.peer);
	u32 i;

	if (node == COLL_CIRCUIT_NONE || (!all && peer == COLL_CIRCUIT_NONE)) {
		circuit_client_answer(circuits, client, m->cookie, -ENOENT,
				      "a node that is not in colld's file");
		return;
	}
	for (i = 0; i < circuits->c.made; i++) {
		const u32 *end = circuits->circuit[i].node;

		if ((end[0] == node && (all || end[1] == peer)) ||
		    (end[1] == node && (all || end[0] == peer)))
			coll_circuit_drain(&circuits->c, switch_now(), i);
	}
	circuit_client_answer(circuits, client, m->cookie, 0, "");
}

/* Who manages the node for others: root, and who colld runs as. */
static bool may_manage(const struct circuit_client *client)
{
	struct ucred who = { .uid = ~0u };
	socklen_t bytes = sizeof(who);

	getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes);
	return !who.uid || who.uid == geteuid();
}

/* What a client sends is hostile: each name ends inside its field. */
static void end_names(struct coll_circuit_message *m)
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

static bool needs_root(const struct coll_circuit_message *m)
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

static void circuit_client_take(struct colld_circuits *circuits, struct circuit_client *client,
				struct coll_circuit_message *m)
{
	end_names(m);
	if (needs_root(m) && !may_manage(client)) {
		circuit_client_answer(circuits, client, m->cookie, -EPERM, "only root may do that");
		return;
	}
	switch (m->kind) {
	case COLL_CIRCUIT_MSG_HELLO:
		if (m->hello.priority && !may_manage(client))
			circuit_client_answer(circuits, client, m->cookie, -EPERM,
					      "only root has priority");
		else
			circuit_client_hello(circuits, client, m);
		break;
	case COLL_CIRCUIT_MSG_REQUEST:
		if (m->request.flags & COLL_CIRCUIT_STANDING && m->request.node[0])
			want_standing(circuits, client, m);
		else
			circuit_client_want(circuits, client, m);
		break;
	case COLL_CIRCUIT_MSG_RELEASE:
		if (m->pair.node[0])
			release_standing(circuits, client, m);
		else
			circuit_client_release(circuits, client, m->cookie);
		break;
	case COLL_CIRCUIT_MSG_SHOW:
		circuit_client_show(circuits, client);
		circuit_client_answer(circuits, client, m->cookie, 0, "");
		break;
	case COLL_CIRCUIT_MSG_WATCH:
		client->watches = true;
		circuit_client_answer(circuits, client, m->cookie, 0, "");
		break;
	case COLL_CIRCUIT_MSG_PORTS:
		set_ports(circuits, client, m);
		break;
	case COLL_CIRCUIT_MSG_DRAIN:
		circuit_client_drain(circuits, client, m);
		break;
	case COLL_CIRCUIT_MSG_SYNC:
		circuits_follow(circuits);
		circuit_client_answer(circuits, client, m->cookie, 0, "");
		break;
	default:
		circuit_client_answer(circuits, client, m->cookie, -EINVAL, "no such request");
	}
}

/* ---- connections --------------------------------------------------------- */

static void circuit_client_part(struct colld_circuits *circuits, struct circuit_client *client)
{
	struct circuit_client **slot = &circuits->clients;
	u32 i;

	for (i = 0; i < circuits->c.leased; i++)
		if (circuits->owner[i] == client) {
			circuits->owner[i] = NULL;
			coll_circuit_release(&circuits->c, switch_now(), i);
		}
	if (client->holder != COLL_CIRCUIT_NONE && !--circuits->job[client->holder].clients)
		coll_circuit_remove_holder(&circuits->c, switch_now(), client->holder);
	while (*slot != client)
		slot = &(*slot)->next;
	*slot = client->next;
	close(client->fd);
	free(client);
}

void circuit_client_read(struct colld_circuits *circuits, struct circuit_client *client)
{
	u8 *from = (u8 *)client->message;
	const ssize_t got = recv(client->fd, from + client->got,
				 sizeof(client->message) - client->got, MSG_DONTWAIT);
	struct coll_circuit_message *m;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		circuit_client_part(circuits, client);
		return;
	}
	client->got += got;
	for (m = client->message; client->got >= sizeof(*m); m++) {
		if (m->magic != COLL_CIRCUIT_MAGIC || m->version != COLL_CIRCUIT_VERSION) {
			colld_say(4, "a stranger at the circuits' socket: not our protocol");
			circuit_client_part(circuits, client);
			return;
		}
		circuit_client_take(circuits, client, m);
		client->got -= sizeof(*m);
	}
	memmove(client->message, m, client->got);
}

void circuit_clients_accept(struct colld_circuits *circuits)
{
	const int fd = accept4(circuits->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct circuit_client *client, *other;
	const int bytes = SEND_BYTES;
	struct epoll_event event = { .events = EPOLLIN };
	u32 count = 0;

	if (fd < 0)
		return;
	for (other = circuits->clients; other; other = other->next)
		count++;
	client = count < CLIENTS_MAX ? calloc(1, sizeof(*client)) : NULL;
	event.data.ptr = client;
	if (!client || epoll_ctl(circuits->epoll, EPOLL_CTL_ADD, fd, &event)) {
		free(client);
		close(fd);
		return;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	client->fd = fd;
	client->holder = client->node = COLL_CIRCUIT_NONE;
	client->next = circuits->clients;
	circuits->clients = client;
}

int circuit_clients_open(struct colld_circuits *circuits)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *slash;
	int error = 0;

	strcpy(address.sun_path, circuits->setup.socket);
	slash = strrchr(address.sun_path, '/');
	if (slash && slash != address.sun_path) {
		*slash = 0;
		mkdir(address.sun_path, 0755);
		*slash = '/';
	}
	/* A socket that nobody listens to is left over. */
	if (!connect(probe, (struct sockaddr *)&address, sizeof(address)))
		error = -EADDRINUSE;
	else
		unlink(address.sun_path);
	close(probe);
	if (!error && (bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
		       chmod(address.sun_path, 0666) || listen(fd, 128)))
		error = -errno;
	if (error) {
		colld_say(3, "socket %s: %s", address.sun_path, strerror(-error));
		close(fd);
		return error;
	}
	circuits->listener = fd;
	return 0;
}

void circuit_clients_close(struct colld_circuits *circuits)
{
	while (circuits->clients) {
		struct circuit_client *client = circuits->clients;

		circuits->clients = client->next;
		close(client->fd);
		free(client);
	}
	if (circuits->listener >= 0) {
		unlink(circuits->setup.socket);
		close(circuits->listener);
	}
}
