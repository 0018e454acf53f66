// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * How links come about. Every process listens; it publishes in the store
 *
 *	addr/<rank in the job> = "<node> <port> <address> <address> ..."
 *
 * and whoever needs a link to a higher rank looks that up and connects: over
 * loopback when the node (machine and network namespace) is the same, else over
 * the addresses in turn, so that links spread over a node's rails. A hello with
 * a proof of the job's secret introduces the connection; who cannot prove it is
 * turned away and harms nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nettle/hmac.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arbiter.h"
#include "libcoll/engine/engine.h"
#include "link.h"
#include "libcoll/boot/places.h"
#include "stream.h"

enum {
	BACKLOG = 4096,
	STRANGERS_MAX = 4096,
	STRANGER_PATIENCE_S = 10,
	LISTEN_PAUSE_NS = 100000000,
};

/* An accepted connection that has not been attached to a link yet. */
struct stranger {
	struct stranger *next;
	struct coll_context *context;
	struct coll_watch watch;
	uint64_t since;
	uint32_t got;
	struct coll_hello hello;
};

/* ---- hello -------------------------------------------------------------- */

static void hello_prove(const struct coll_context *context, const struct coll_hello *hello,
			uint8_t proof[COLL_PROOF_BYTES])
{
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, COLL_SECRET_BYTES, context->boot->secret);
	hmac_sha256_update(&hmac, offsetof(struct coll_hello, proof), (const uint8_t *)hello);
	hmac_sha256_digest(&hmac, COLL_PROOF_BYTES, proof);
}

static bool hello_proven(const struct coll_context *context, const struct coll_hello *hello)
{
	uint8_t proof[COLL_PROOF_BYTES], difference = 0;
	int i;

	hello_prove(context, hello, proof);
	for (i = 0; i < COLL_PROOF_BYTES; i++)	/* in constant time */
		difference |= proof[i] ^ hello->proof[i];
	return !difference && hello->magic == COLL_WIRE_MAGIC &&
	       hello->version == COLL_WIRE_VERSION && hello->streams <= WAN_STREAMS_MAX &&
	       hello->stream <= hello->streams;
}

/* ---- sockets ------------------------------------------------------------ */

static void set_congestion(int fd, const char *name)
{
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, strlen(name));
}

/*
 * A TCP socket that is not paced. Loopback has no congestion, and pacing against it costs
 * timers; and a connection that began with bbr is paced for good, whatever follows. So all
 * begin with reno; those that leave the machine take the system's when they are up.
 */
static int socket_unpaced(struct coll_context *context, int family)
{
	const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t bytes = sizeof(context->usual_congestion);

	if (fd < 0)
		return -errno;
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, context->usual_congestion, &bytes);
	set_congestion(fd, "reno");
	return fd;
}

/* Whether the peer is on this very machine, by its address. */
static bool peer_is_local(int fd)
{
	struct sockaddr_storage peer;
	socklen_t bytes = sizeof(peer);
	const struct sockaddr_in *v4 = (struct sockaddr_in *)&peer;
	const struct in6_addr *v6 = &((struct sockaddr_in6 *)&peer)->sin6_addr;

	if (getpeername(fd, (struct sockaddr *)&peer, &bytes))
		return false;
	if (peer.ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	if (IN6_IS_ADDR_V4MAPPED(v6))
		return v6->s6_addr[12] == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(v6);
}

static void socket_tune(const struct coll_context *context, int fd)
{
	const struct coll_options *options = &context->options;
	const int one = 1, bytes = options->buffer_bytes;
	const unsigned int patience_ms = options->deadline_ns / 1000000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof(patience_ms));
	if (options->congestion[0])
		set_congestion(fd, options->congestion);
	if (bytes) {
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	}
}

/* What a long fat way needs: it is not known before who the peer is. */
static void link_tune_far(const struct coll_link *link)
{
	const struct coll_options *options = &link->group->context->options;
	const unsigned long pace = options->wan_pacing;
	const int bytes = options->wan_buffer_bytes, first = TC_PRIO_INTERACTIVE;
	const unsigned int unsent = coll_arbiter_chunk(link);

	if (!coll_link_is_far(link))
		return;
	if (options->wan_congestion[0])
		set_congestion(link->socket.fd, options->wan_congestion);
	/* What the kernel has taken nobody can overtake. */
	setsockopt(link->socket.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
	/* Before others where this host queues, those of other processes as well. */
	if (!strcmp(options->link_policy, "occupancy-hier"))
		setsockopt(link->socket.fd, SOL_SOCKET, SO_PRIORITY, &first, sizeof(first));
	if (pace)
		setsockopt(link->socket.fd, SOL_SOCKET, SO_MAX_PACING_RATE, &pace, sizeof(pace));
	if (bytes) {
		setsockopt(link->socket.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
		setsockopt(link->socket.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	}
}

/* The link's own connection, with so many streams to come, or one of these. */
static int link_attach(struct coll_link *link, int fd, uint32_t streams)
{
	struct coll_context *context = link->group->context;
	socklen_t bytes = sizeof(context->congestion);
	int error = link->number ? 0 : coll_streams_make(link, streams);

	if (error)
		return error;
	link->local = peer_is_local(fd);
	if (!context->options.congestion[0] && !link->local)
		set_congestion(fd, context->usual_congestion);
	link->socket.fd = fd;
	link_tune_far(link);
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, context->congestion, &bytes);
	error = context->engine.ops->attach(&link->socket);
	if (error) {
		link->socket.fd = -1;
		return error;
	}
	coll_link_set_state(link, LINK_UP);
	link->attached = true;
	coll_arbiter_look(link->whole);
	if (link->number) {
		context->counters.streams++;
		coll_link_touch(link);
		return 0;
	}
	context->counters.links++;
	return coll_link_events(link->group)->up(link);
}

/* ---- connecting --------------------------------------------------------- */

struct address {
	struct sockaddr_storage socket;
	socklen_t bytes;
};

static int address_parse(struct address *address, const char *text, uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address->socket;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address->socket;

	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		address->bytes = sizeof(*v4);
		return 0;
	}
	if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		address->bytes = sizeof(*v6);
		return 0;
	}
	return -EINVAL;
}

/* The attempt-th address from a published line; -ENOENT when all were tried. */
static int address_choose(const struct coll_link *link, char *line, struct address *address)
{
	const struct coll_group *group = link->group;
	char *save, *node = strtok_r(line, " ", &save), *port = strtok_r(NULL, " ", &save);
	char *texts[32], *text;
	uint32_t count = 0;

	while ((text = strtok_r(NULL, " ", &save)) && count < 32)
		texts[count++] = text;
	if (!node || !port)
		return -EPROTO;
	if (!strcmp(node, group->context->node) && !group->context->options.address[0]) {
		if (link->attempts > 0)
			return -ENOENT;
		return address_parse(address, "127.0.0.1", atoi(port));
	}
	if (link->attempts >= count)
		return -ENOENT;
	text = texts[(group->rank + link->rank + link->number + link->attempts) % count];
	return address_parse(address, text, atoi(port));
}

static int link_try_next(struct coll_link *link);

/* How many streams a link has that we make. */
static uint32_t streams_wanted(const struct coll_link *link)
{
	const uint32_t streams = link->group->context->streams;

	return coll_link_is_far(link) && streams > 1 ? streams : 0;
}

/* A fresh socket's buffer always takes this little. */
static bool link_say_hello(const struct coll_link *link, int fd)
{
	const struct coll_group *group = link->group;
	struct coll_hello hello = {
		.magic = COLL_WIRE_MAGIC,
		.version = COLL_WIRE_VERSION,
		.streams = streams_wanted(link),
		.stream = link->number,
		.from = group->rank,
		.to = link->rank,
		.group = group->id,
	};

	hello_prove(group->context, &hello, hello.proof);
	return send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello);
}

/* Connected or not: says hello, or tries the next address. */
static void link_connected(struct coll_watch *watch, int events)
{
	struct coll_link *link = watch->owner;
	int error = 0;
	socklen_t bytes = sizeof(error);
	uint32_t i;

	(void)events;
	getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
	if (!error && link_say_hello(link, watch->fd) &&
	    !link_attach(link, watch->fd, streams_wanted(link))) {
		for (i = 0; i < link->streams && link->state == LINK_UP; i++)
			coll_link_open(&link->stream[i]);
		return;
	}
	close(watch->fd);
	watch->fd = -1;
	error = link_try_next(link);
	if (error)
		coll_link_lost(link, error);
}

/* What the peer has published. Its streams' connections need not ask again. */
static int link_where(struct coll_link *link, char line[COLL_BOOT_VALUE_MAX + 1])
{
	struct coll_link *whole = link->whole;
	size_t bytes = COLL_BOOT_VALUE_MAX;
	char key[32];
	int error;

	if (whole->where) {
		strcpy(line, whole->where);
		return 0;
	}
	snprintf(key, sizeof(key), "addr/%u", link->group->world[link->rank]);
	error = coll_boot_get(link->group->context->boot, key, line, &bytes,
			      coll_now() + link->group->options.deadline_ns);
	if (error)
		return error;
	line[bytes] = 0;
	if (streams_wanted(whole))
		whole->where = strdup(line);
	return 0;
}

/* Begins with the next address of the peer. */
static int link_try_next(struct coll_link *link)
{
	struct coll_context *context = link->group->context;
	char line[COLL_BOOT_VALUE_MAX + 1];
	struct address address;
	int error, fd;

	error = link_where(link, line);
	if (error)
		return error;
	for (;;) {
		char copy[sizeof(line)];

		strcpy(copy, line);
		error = address_choose(link, copy, &address);
		if (error)
			return error == -ENOENT ? -EHOSTUNREACH : error;
		link->attempts++;
		fd = socket_unpaced(context, address.socket.ss_family);
		if (fd < 0)
			return fd;
		socket_tune(context, fd);
		if (!connect(fd, (struct sockaddr *)&address.socket, address.bytes) ||
		    errno == EINPROGRESS)
			break;
		close(fd);
	}
	link->connecting = (struct coll_watch){ .ready = link_connected, .owner = link, .fd = fd };
	error = coll_engine_watch(&context->engine, &link->connecting, POLLOUT);
	if (error)
		close(fd);
	return error;
}

void coll_link_init(struct coll_link *link, struct coll_group *group, uint32_t rank)
{
	*link = (struct coll_link){ .group = group, .rank = rank, .whole = link,
				    .socket = { .ops = &coll_link_socket_ops,
						.engine = &group->context->engine,
						.fd = -1 },
				    .suspect = COLL_NONE };
	link->queue_end = link->urgent_end = &link->queue;
	link->kept_end = &link->kept;
	group->open_links++;
}

struct coll_link *coll_link_get(struct coll_group *group, uint32_t rank)
{
	struct coll_link *link = group->links[rank];

	if (link)
		return link;
	link = calloc(1, sizeof(*link));
	if (!link)
		return NULL;
	coll_link_init(link, group, rank);
	group->links[rank] = link;
	return link;
}

void coll_link_open(struct coll_link *link)
{
	int error;

	if (link->state != LINK_IDLE || link->rank < link->group->rank)
		return;
	coll_link_set_state(link, LINK_CONNECTING);
	error = link_try_next(link);
	if (error)
		coll_link_lost(link, error);
}

void coll_link_abandon_connect(struct coll_link *link)
{
	struct coll_context *context = link->group->context;

	if (!link->connecting.armed)
		return;
	coll_engine_unwatch(&context->engine, &link->connecting);
	if (link->number)	/* connected since: the other side shall know who that was */
		link_say_hello(link, link->connecting.fd);
	close(link->connecting.fd);
	link->connecting.fd = -1;
}

/* ---- listening ---------------------------------------------------------- */

static void stranger_remove(struct stranger *stranger)
{
	struct stranger **slot = &stranger->context->strangers;

	while (*slot != stranger)
		slot = &(*slot)->next;
	*slot = stranger->next;
	stranger->context->strangers_count--;
	if (stranger->watch.armed)
		coll_engine_unwatch(&stranger->context->engine, &stranger->watch);
	free(stranger);
}

static void stranger_refuse(struct stranger *stranger, const char *reason)
{
	char text[INET6_ADDRSTRLEN] = "?";
	struct sockaddr_storage from;
	socklen_t bytes = sizeof(from);

	if (!getpeername(stranger->watch.fd, (struct sockaddr *)&from, &bytes))
		inet_ntop(from.ss_family,
			  from.ss_family == AF_INET ?
				  (void *)&((struct sockaddr_in *)&from)->sin_addr :
				  (void *)&((struct sockaddr_in6 *)&from)->sin6_addr,
			  text, sizeof(text));
	fprintf(stderr, "coll: refused a connection from %s: %s\n", text, reason);
	close(stranger->watch.fd);
	stranger_remove(stranger);
}

/* Comes too late, to a group that has failed: hears of it, and who is to blame. */
static void stranger_tell_failure(struct stranger *stranger, const struct coll_group *group)
{
	const struct coll_header news = coll_link_events(group)->news(group);

	/* A fresh socket's buffer always takes this little. */
	if (send(stranger->watch.fd, &news, sizeof(news), MSG_NOSIGNAL) < 0)
		fprintf(stderr, "coll: cannot tell rank %u that its group has failed: %s\n",
			stranger->hello.from, strerror(errno));
	close(stranger->watch.fd);
	stranger_remove(stranger);
}

/* As part of a link that has its own connection already; else it waits for that. */
static void stranger_introduce_stream(struct stranger *stranger, struct coll_group *group)
{
	const struct coll_hello *hello = &stranger->hello;
	struct coll_link *link = group->links[hello->from], *stream;

	if (!group->freed && (!link || link->state == LINK_IDLE))
		return;
	if (!link || link->state == LINK_CLOSED) {	/* it was late */
		close(stranger->watch.fd);
		stranger_remove(stranger);
		return;
	}
	stream = hello->stream <= link->streams ? &link->stream[hello->stream - 1] : NULL;
	if (!stream || stream->state != LINK_IDLE) {
		stranger_refuse(stranger, "that rank has no such stream");
		return;
	}
	if (link_attach(stream, stranger->watch.fd, 0)) {
		close(stranger->watch.fd);
		coll_link_lost(stream, -ENOMEM);
	}
	stranger_remove(stranger);
}

/* Gives an introduced connection to its link, if its group exists already. */
static void stranger_introduce(struct stranger *stranger)
{
	const struct coll_hello *hello = &stranger->hello;
	struct coll_context *context = stranger->context;
	struct coll_group *group;
	struct coll_link *link;
	int error;

	for (group = context->groups; group; group = group->next)
		if (group->id == hello->group)
			break;
	if (!group)
		return;		/* coll_listen_adopt() comes back to it */
	if (hello->to != group->rank || hello->from >= group->rank) {
		stranger_refuse(stranger, "its ranks are not ours");
		return;
	}
	if (group->state != GROUP_OK) {
		stranger_tell_failure(stranger, group);
		return;
	}
	if (hello->stream) {
		stranger_introduce_stream(stranger, group);
		return;
	}
	/* A freed group takes only what it still has something to say to. */
	link = group->freed ? group->links[hello->from] : coll_link_get(group, hello->from);
	if (group->freed && (!link || link->state != LINK_IDLE)) {
		close(stranger->watch.fd);
		stranger_remove(stranger);
		return;
	}
	if (!link || link->state != LINK_IDLE) {
		stranger_refuse(stranger, "that rank is connected already");
		return;
	}
	error = link_attach(link, stranger->watch.fd, hello->streams);
	if (error) {
		close(stranger->watch.fd);
		coll_link_lost(link, error);
	}
	stranger_remove(stranger);
}

/* Those of a group that have said hello: links first, then their streams. */
static void strangers_introduce(struct coll_context *context, uint64_t group)
{
	struct stranger *stranger, *next;
	int streams;

	for (streams = 0; streams < 2; streams++)
		for (stranger = context->strangers; stranger; stranger = next) {
			next = stranger->next;
			if (stranger->got == sizeof(stranger->hello) &&
			    stranger->hello.group == group && !stranger->hello.stream == !streams)
				stranger_introduce(stranger);
		}
}

static void stranger_read(struct coll_watch *watch, int events)
{
	struct stranger *stranger = watch->owner;
	struct coll_context *context = stranger->context;
	uint8_t *to = (uint8_t *)&stranger->hello + stranger->got;
	ssize_t got = recv(watch->fd, to, sizeof(stranger->hello) - stranger->got, MSG_DONTWAIT);

	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		got = 0;
	else if (got <= 0) {
		stranger_refuse(stranger, "it said no hello");
		return;
	}
	stranger->got += got;
	if (stranger->got < sizeof(stranger->hello))
		coll_engine_watch(&context->engine, watch, POLLIN);
	else if (!hello_proven(context, &stranger->hello))
		stranger_refuse(stranger, "it is no rank of this job");
	else
		strangers_introduce(context, stranger->hello.group);
}

void coll_listen_check(struct coll_context *context)
{
	uint64_t now = coll_now();
	struct stranger *stranger, *next;

	if (context->listen_again && now >= context->listen_again) {
		context->listen_again = 0;
		coll_engine_watch(&context->engine, &context->listener, POLLIN);
	}
	for (stranger = context->strangers; stranger; stranger = next) {
		next = stranger->next;
		if (stranger->got < sizeof(stranger->hello) &&
		    now - stranger->since > STRANGER_PATIENCE_S * COLL_SECOND)
			stranger_refuse(stranger, "it said no hello in time");
	}
}

/* The connection stays where it is, and would be reported again at once. */
static void listen_pause(struct coll_context *context, uint64_t now, int error)
{
	if (!context->listen_error)
		fprintf(stderr, "coll: cannot accept connections: %s\n", strerror(error));
	context->listen_error = -error;
	context->listen_again = now + LISTEN_PAUSE_NS;
}

static void listener_ready(struct coll_watch *watch, int events)
{
	struct coll_context *context = watch->owner;
	uint64_t now = coll_now();
	int fd;

	(void)events;
	while ((fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct stranger *stranger = NULL;

		context->listen_error = 0;
		if (context->strangers_count < STRANGERS_MAX)
			stranger = calloc(1, sizeof(*stranger));
		if (!stranger) {
			close(fd);
			continue;
		}
		socket_tune(context, fd);
		stranger->context = context;
		stranger->since = now;
		stranger->watch = (struct coll_watch){ .ready = stranger_read, .owner = stranger,
						  .fd = fd };
		stranger->next = context->strangers;
		context->strangers = stranger;
		context->strangers_count++;
		/* The hello is usually there already. */
		stranger_read(&stranger->watch, 0);
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		listen_pause(context, now, errno);
	else
		coll_engine_watch(&context->engine, watch, POLLIN);
}

void coll_listen_adopt(struct coll_group *group)
{
	strangers_introduce(group->context, group->id);
}

/* IPv6 and IPv4 on one socket where the kernel has IPv6, else IPv4. */
static int listen_any(struct coll_context *context, uint16_t *port)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	const int zero = 0;
	struct sockaddr_storage bound;
	socklen_t bytes = sizeof(bound);
	int fd = socket_unpaced(context, AF_INET6);

	if (fd >= 0) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
		if (bind(fd, (struct sockaddr *)&v6, sizeof(v6))) {
			close(fd);
			fd = -1;
		}
	}
	if (fd < 0) {
		fd = socket_unpaced(context, AF_INET);
		if (fd < 0)
			return fd;
		if (bind(fd, (struct sockaddr *)&v4, sizeof(v4)))
			goto err_close;
	}
	if (listen(fd, BACKLOG) || getsockname(fd, (struct sockaddr *)&bound, &bytes))
		goto err_close;
	*port = ntohs(bound.ss_family == AF_INET ? ((struct sockaddr_in *)&bound)->sin_port :
						   ((struct sockaddr_in6 *)&bound)->sin6_port);
	return fd;

err_close:
	close(fd);
	return -errno;
}

/* This machine's boot and this process's network namespace. */
static void node_name(char *node, size_t bytes)
{
	struct stat namespace = { 0 };
	char boot[40] = "unknown";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (file) {
		if (fscanf(file, "%39s", boot) != 1)
			strcpy(boot, "unknown");
		fclose(file);
	}
	stat("/proc/self/ns/net", &namespace);
	snprintf(node, bytes, "%s:%lu", boot, (unsigned long)namespace.st_ino);
}

/* The addresses that the option names, checked. */
static int list_chosen(const char *chosen, char *line, size_t length, size_t room)
{
	char copy[256], *save, *text;
	struct address address;

	snprintf(copy, sizeof(copy), "%s", chosen);
	for (text = strtok_r(copy, ",", &save); text; text = strtok_r(NULL, ",", &save)) {
		if (address_parse(&address, text, 0))
			return -EINVAL;
		if (length + strlen(text) + 2 < room)
			length += sprintf(line + length, " %s", text);
	}
	return length;
}

int coll_listen(struct coll_context *context)
{
	char key[32], line[COLL_BOOT_VALUE_MAX];
	uint16_t port = 0;
	int fd = listen_any(context, &port), length;

	if (fd < 0)
		return fd;
	node_name(context->node, sizeof(context->node));
	length = snprintf(line, sizeof(line), "%s %u", context->node, port);
	if (context->options.address[0])
		length = list_chosen(context->options.address, line, length, sizeof(line));
	else
		length = coll_node_addresses(line, length, sizeof(line));
	if (length < 0) {
		snprintf(context->error, sizeof(context->error),
			 "option address: '%s' is not a list of IP addresses",
			 context->options.address);
		close(fd);
		return length;
	}
	context->listener =
		(struct coll_watch){ .ready = listener_ready, .owner = context, .fd = fd };
	coll_engine_watch(&context->engine, &context->listener, POLLIN);
	snprintf(key, sizeof(key), "addr/%d", context->boot->rank);
	return coll_boot_put(context->boot, key, line, length);
}

void coll_listen_stop(struct coll_context *context)
{
	while (context->strangers) {
		close(context->strangers->watch.fd);
		stranger_remove(context->strangers);
	}
	if (context->listener.fd >= 0) {
		if (context->listener.armed)
			coll_engine_unwatch(&context->engine, &context->listener);
		close(context->listener.fd);
		context->listener.fd = -1;
	}
}
