// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The server of the store. One thread, no call that blocks. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "store.h"
#include "store_table.h"
#include "store_wire.h"

/* A peer has this long to prove that it belongs to the job. */
#define HELLO_NS (5 * COLL_SECOND)
/* When out of file descriptors, how long not to accept. */
#define PAUSE_NS (COLL_SECOND / 10)

/* Unauthenticated peers at once: so many, and two for each rank. */
enum { UNAUTHENTICATED_MAX = 64 };

struct coll_store_connection {
	int fd;				/* -1: closed, to be freed at the end of this poll */
	int rank;			/* -1: not authenticated yet */
	uint32_t stay;
	enum coll_store_verb waits;	/* STORE_GET or STORE_ALL, or 0 */
	uint32_t watched;		/* epoll events asked for */
	uint64_t deadline;		/* of its hello or its wait */
	uint32_t in_bytes, out_bytes, out_sent;
	struct coll_store_greeting greeting;
	uint8_t in[STORE_REQUEST_MAX];
	uint8_t out[STORE_REPLY_MAX];
	char from[INET6_ADDRSTRLEN + 16];
};

/* One rank's comings and goings. */
struct coll_store_member {
	uint32_t joins, leaves;		/* leaves: those with a good-bye */
	uint32_t present;		/* connections now */
	uint32_t process;		/* whose they are */
};

struct coll_store {
	int listen_fd, epoll_fd, timer_fd;
	int ranks;
	char job[STORE_JOB_BYTES];
	uint8_t secret[COLL_SECRET_BYTES];
	struct coll_store_member *member;
	struct coll_store_connection **connection;	/* oldest first */
	int connections, capacity;
	uint64_t pause_until;		/* not accepting; 0: accepting */
	uint64_t refused;
	struct coll_store_table table;
};

static const char listen_mark, timer_mark;	/* what an epoll event is about */

/* ---- the listening socket ------------------------------------------------ */

static int listen_on(const struct addrinfo *at)
{
	int fd, err, yes = 1, no = 0;

	fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (at->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (!bind(fd, at->ai_addr, at->ai_addrlen) && !listen(fd, SOMAXCONN))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int coll_store_listen(const char *address, int *fd)
{
	static const int families[] = { AF_INET6, AF_INET };	/* the first may serve both */
	struct addrinfo *found, *at;
	int err, i;

	err = coll_store_resolve(address, true, &found);
	if (err)
		return err;
	err = -EADDRNOTAVAIL;
	for (i = 0; i < 2 && err < 0; i++)
		for (at = found; at && err < 0 && err != -EADDRINUSE; at = at->ai_next)
			if (at->ai_family == families[i])
				err = listen_on(at);
	freeaddrinfo(found);
	if (err < 0)
		return err;
	*fd = err;
	return 0;
}

int coll_store_address(int fd, char *address, size_t bytes)
{
	struct sockaddr_storage bound;
	socklen_t bound_bytes = sizeof(bound);
	char host[INET6_ADDRSTRLEN], port[8];
	bool six;

	if (getsockname(fd, (struct sockaddr *)&bound, &bound_bytes))
		return -errno;
	if (getnameinfo((struct sockaddr *)&bound, bound_bytes, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		return -EINVAL;
	if (!strcmp(host, "0.0.0.0"))
		strcpy(host, "127.0.0.1");
	else if (!strcmp(host, "::"))
		strcpy(host, "::1");
	six = strchr(host, ':');
	return snprintf(address, bytes, six ? "[%s]:%s" : "%s:%s", host, port) < (int)bytes ?
	       0 : -EINVAL;
}

/* ---- connections --------------------------------------------------------- */

static bool store_closed(const struct coll_store_connection *c)
{
	return c->fd < 0;
}

static void connection_close(struct coll_store *store, struct coll_store_connection *c)
{
	if (store_closed(c))
		return;
	if (c->rank >= 0)
		store->member[c->rank].present--;
	close(c->fd);
	c->fd = -1;
}

/* The first is told, the rest is counted: a port scan must not flood the log. */
static void store_refuse(struct coll_store *store, struct coll_store_connection *c,
			 const char *reason)
{
	if (!store->refused++)
		fprintf(stderr, "coll: store of job %s: refused a connection from %s: %s "
			"(told once)\n", store->job, c->from, reason);
	connection_close(store, c);
}

/* Watches for what can be dealt with, so that epoll does not report the rest. */
static void connection_watch(struct coll_store *store, struct coll_store_connection *c)
{
	uint32_t events = c->out_sent < c->out_bytes ? EPOLLOUT : c->waits ? EPOLLRDHUP : EPOLLIN;
	struct epoll_event event = { .events = events, .data.ptr = c };

	if (store_closed(c) || c->watched == events)
		return;
	if (epoll_ctl(store->epoll_fd, c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &event))
		connection_close(store, c);
	c->watched = events;
}

static void store_flush(struct coll_store *store, struct coll_store_connection *c)
{
	ssize_t n;

	while (!store_closed(c) && c->out_sent < c->out_bytes) {
		n = send(c->fd, c->out + c->out_sent, c->out_bytes - c->out_sent,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0)
			c->out_sent += n;
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			connection_close(store, c);
	}
}

static void store_say(struct coll_store *store, struct coll_store_connection *c, const void *head,
		      size_t head_bytes, const void *body, size_t body_bytes)
{
	memcpy(c->out, head, head_bytes);
	if (body_bytes)
		memcpy(c->out + head_bytes, body, body_bytes);
	c->out_bytes = head_bytes + body_bytes;
	c->out_sent = 0;
	c->in_bytes = 0;	/* what this answers is dealt with */
	store_flush(store, c);
}

static void store_send_reply(struct coll_store *store, struct coll_store_connection *c, int status,
			     const void *value, uint32_t bytes)
{
	struct coll_store_reply head = { .status = htole32(status), .bytes = htole32(bytes) };

	c->waits = 0;
	c->deadline = COLL_FOREVER;
	store_say(store, c, &head, sizeof(head), value, bytes);
}

/* ---- joining ------------------------------------------------------------- */

/* The stay that every rank has begun is the smallest number of joins. */
static uint32_t stays_complete(const struct coll_store *store)
{
	uint32_t least = UINT32_MAX;
	int i;

	for (i = 0; i < store->ranks; i++)
		if (store->member[i].joins < least)
			least = store->member[i].joins;
	return least;
}

static void answer_all(struct coll_store *store)
{
	uint32_t complete = stays_complete(store);
	struct coll_store_connection *c;
	int i;

	for (i = 0; i < store->connections; i++) {
		c = store->connection[i];
		if (!store_closed(c) && c->waits == STORE_ALL && c->stay < complete) {
			store_send_reply(store, c, 0, NULL, 0);
			connection_watch(store, c);
		}
	}
}

static int hello_status(const struct coll_store *store, const struct coll_store_hello *hello)
{
	uint32_t rank = le32toh(hello->rank);
	const struct coll_store_member *member;

	if (le32toh(hello->ranks) != (uint32_t)store->ranks || rank >= (uint32_t)store->ranks)
		return -EPROTO;
	member = &store->member[rank];
	return member->present && member->process != le32toh(hello->process) ? -EEXIST : 0;
}

static void become_member(struct coll_store *store, struct coll_store_connection *c, uint32_t rank,
			  uint32_t process)
{
	struct coll_store_member *member = &store->member[rank];

	c->rank = rank;
	c->stay = member->joins++;
	c->deadline = COLL_FOREVER;
	member->process = process;
	member->present++;
	answer_all(store);
}

static void take_hello(struct coll_store *store, struct coll_store_connection *c)
{
	struct coll_store_welcome welcome = { .ranks = htole32(store->ranks) };
	uint8_t proof[STORE_PROOF_BYTES];
	struct coll_store_hello hello;
	int status = -EACCES;

	memcpy(&hello, c->in, sizeof(hello));
	coll_store_prove(proof, STORE_CLIENT, store->secret, &c->greeting, &hello);
	if (coll_store_proof_equal(proof, hello.proof) &&
	    !memcmp(hello.job, store->job, sizeof(hello.job))) {
		status = hello_status(store, &hello);
		coll_store_prove(welcome.proof, STORE_SERVER, store->secret, &c->greeting, &hello);
	}
	welcome.status = htole32(status);
	store_say(store, c, &welcome, sizeof(welcome), NULL, 0);
	if (!status)
		become_member(store, c, le32toh(hello.rank), le32toh(hello.process));
	else if (status == -EACCES)
		store_refuse(store, c, "wrong secret or job");
	else
		store_refuse(store, c, status == -EEXIST ? "its rank is taken" :
			      "another number of ranks");
}

/* ---- requests ------------------------------------------------------------ */

/* The key of a request that waits is still in c->in. */
static const uint8_t *key_of(const struct coll_store_connection *c, uint32_t *bytes)
{
	struct coll_store_request request;

	memcpy(&request, c->in, sizeof(request));
	*bytes = le32toh(request.key_bytes);
	return c->in + sizeof(request);
}

static bool try_get(struct coll_store *store, struct coll_store_connection *c)
{
	const struct coll_store_entry *entry;
	const uint8_t *key;
	uint32_t bytes;

	key = key_of(c, &bytes);
	entry = coll_store_table_find(&store->table, c->stay, key, bytes);
	if (entry)
		store_send_reply(store, c, 0, store_entry_value(entry), entry->value_bytes);
	return entry;
}

static void answer_gets(struct coll_store *store)
{
	struct coll_store_connection *c;
	int i;

	for (i = 0; i < store->connections; i++) {
		c = store->connection[i];
		if (!store_closed(c) && c->waits == STORE_GET && try_get(store, c))
			connection_watch(store, c);
	}
}

static size_t append_range(char *text, size_t at, size_t bytes, int first, int last)
{
	const char *comma = at ? ", " : "";
	int n;

	n = first == last ? snprintf(text + at, bytes - at, "%s%d", comma, first) :
			    snprintf(text + at, bytes - at, "%s%d-%d", comma, first, last);
	return at + n < bytes ? at + n : at;
}

/* "3, 5-7" */
static size_t missing_ranks(const struct coll_store *store, uint32_t stay, char *text,
			    size_t bytes)
{
	size_t at = 0;
	int first, i;

	for (i = 0; i < store->ranks; i++) {
		if (store->member[i].joins > stay)
			continue;
		for (first = i; i + 1 < store->ranks && store->member[i + 1].joins <= stay; i++)
			;
		at = append_range(text, at, bytes, first, i);
	}
	return at;
}

static void give_up(struct coll_store *store, struct coll_store_connection *c)
{
	char text[256];

	if (c->rank < 0)
		store_refuse(store, c, "no proof of the secret in time");
	else if (c->waits == STORE_ALL)
		store_send_reply(store, c, -ETIMEDOUT, text,
				 missing_ranks(store, c->stay, text, sizeof(text)));
	else
		store_send_reply(store, c, -ETIMEDOUT, NULL, 0);
}

static void wait_in(struct coll_store_connection *c, enum coll_store_verb verb, uint32_t wait_ms)
{
	c->waits = verb;
	c->deadline = coll_now() + wait_ms * 1000000ull;
}

static void store_leave(struct coll_store *store, struct coll_store_connection *c)
{
	store->member[c->rank].leaves++;
	connection_close(store, c);
}

static void store_serve(struct coll_store *store, struct coll_store_connection *c,
			const struct coll_store_request *request)
{
	const uint8_t *key = c->in + sizeof(*request);
	int err;

	switch (request->verb) {
	case STORE_PUT:
		err = coll_store_table_put(&store->table, c->stay, key, request->key_bytes,
					   key + request->key_bytes, request->value_bytes);
		store_send_reply(store, c, err, NULL, 0);
		if (!err)
			answer_gets(store);
		break;
	case STORE_GET:
		if (!try_get(store, c))
			wait_in(c, STORE_GET, request->wait_ms);
		break;
	case STORE_ALL:
		if (c->stay < stays_complete(store))
			store_send_reply(store, c, 0, NULL, 0);
		else
			wait_in(c, STORE_ALL, request->wait_ms);
		break;
	case STORE_LEAVE:
		store_leave(store, c);
		break;
	}
}

/* How many bytes the message begun in c->in has in all; 0: it is malformed. */
static uint32_t message_bytes(const struct coll_store_connection *c)
{
	uint32_t magic = c->in_bytes < STORE_MAGIC_BYTES ? c->in_bytes : STORE_MAGIC_BYTES;
	struct coll_store_request request;

	if (c->rank < 0)
		return memcmp(c->in, STORE_MAGIC, magic) ? 0 : sizeof(struct coll_store_hello);
	if (c->in_bytes < sizeof(request))
		return sizeof(request);
	if (!coll_store_request_read(&request, c->in))
		return 0;
	return sizeof(request) + request.key_bytes + request.value_bytes;
}

static void take_message(struct coll_store *store, struct coll_store_connection *c)
{
	struct coll_store_request request;

	if (c->rank < 0) {
		take_hello(store, c);
		return;
	}
	coll_store_request_read(&request, c->in);
	store_serve(store, c, &request);
}

/*
 * Reads up to the end of one message and takes it. A client has one request in
 * flight; one that sends more finds them read when it has been answered.
 */
static void read_message(struct coll_store *store, struct coll_store_connection *c)
{
	uint32_t want;
	ssize_t n;

	do {
		want = message_bytes(c);
		n = recv(c->fd, c->in + c->in_bytes, want - c->in_bytes, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			connection_close(store, c);
			return;
		}
		c->in_bytes += n;
		want = message_bytes(c);
		if (!want) {
			store_refuse(store, c, c->rank < 0 ? "it does not speak our language" :
						       "malformed request");
			return;
		}
	} while (c->in_bytes < want);
	take_message(store, c);
}

static void connection_event(struct coll_store *store, struct coll_store_connection *c,
			     uint32_t events)
{
	if (store_closed(c))
		return;
	if (c->waits && events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		connection_close(store, c);
		return;
	}
	store_flush(store, c);
	if (!store_closed(c) && !c->waits && c->out_sent == c->out_bytes)
		read_message(store, c);
	connection_watch(store, c);
}

/* ---- accepting ----------------------------------------------------------- */

static void name_peer(struct coll_store_connection *c, const struct sockaddr *peer, socklen_t bytes)
{
	char host[INET6_ADDRSTRLEN], port[8];

	if (getnameinfo(peer, bytes, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(c->from, sizeof(c->from), "somewhere");
	else
		snprintf(c->from, sizeof(c->from), "%s port %s", host, port);
}

/* Who belongs to the job is not counted: a rank may be here with many contexts. */
static bool too_many_unauthenticated(const struct coll_store *store)
{
	int count = 0, i;

	for (i = 0; i < store->connections; i++)
		count += !store_closed(store->connection[i]) && store->connection[i]->rank < 0;
	return count >= 2 * store->ranks + UNAUTHENTICATED_MAX;
}

static bool ensure_capacity(struct coll_store *store)
{
	const int capacity = store->capacity ? 2 * store->capacity : UNAUTHENTICATED_MAX;
	struct coll_store_connection **grown;

	if (store->connections < store->capacity)
		return true;
	grown = realloc(store->connection, capacity * sizeof(*grown));
	if (!grown)
		return false;
	store->connection = grown;
	store->capacity = capacity;
	return true;
}

/* Closes the oldest unauthenticated connection, so that another fits. */
static bool drop_unauthenticated(struct coll_store *store)
{
	int i;

	for (i = 0; i < store->connections; i++)
		if (!store_closed(store->connection[i]) && store->connection[i]->rank < 0) {
			store_refuse(store, store->connection[i], "too many unauthenticated peers");
			return true;
		}
	return false;
}

static void listen_for(struct coll_store *store, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = (void *)&listen_mark };

	epoll_ctl(store->epoll_fd, EPOLL_CTL_MOD, store->listen_fd, &event);
}

static void pause_accepting(struct coll_store *store)
{
	store->pause_until = coll_now() + PAUSE_NS;
	listen_for(store, 0);
}

static void resume_accepting(struct coll_store *store)
{
	store->pause_until = 0;
	listen_for(store, EPOLLIN);
}

static void greet_connection(struct coll_store *store, int fd, const struct sockaddr *peer,
			     socklen_t peer_bytes)
{
	struct coll_store_connection *c = ensure_capacity(store) ? calloc(1, sizeof(*c)) : NULL;
	int one = 1;

	if (!c) {
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->fd = fd;
	c->rank = -1;
	c->deadline = coll_now() + HELLO_NS;
	name_peer(c, peer, peer_bytes);
	store->connection[store->connections++] = c;
	memcpy(c->greeting.magic, STORE_MAGIC, STORE_MAGIC_BYTES);
	if (getrandom(c->greeting.nonce, STORE_NONCE_BYTES, 0) != STORE_NONCE_BYTES) {
		connection_close(store, c);
		return;
	}
	store_say(store, c, &c->greeting, sizeof(c->greeting), NULL, 0);
	connection_watch(store, c);
}

/* One a poll, so that the others are served between two that come. */
static void accept_one(struct coll_store *store)
{
	struct sockaddr_storage peer;
	socklen_t bytes = sizeof(peer);
	int fd;

	if (too_many_unauthenticated(store))
		drop_unauthenticated(store);
	fd = accept4(store->listen_fd, (struct sockaddr *)&peer, &bytes,
		     SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		greet_connection(store, fd, (struct sockaddr *)&peer, bytes);
	else if ((errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) &&
		 !drop_unauthenticated(store))
		pause_accepting(store);
}

/* ---- turning ------------------------------------------------------------- */

static void store_expire(struct coll_store *store)
{
	uint64_t now = coll_now();
	struct coll_store_connection *c;
	int i;

	for (i = 0; i < store->connections; i++) {
		c = store->connection[i];
		if (store_closed(c) || c->deadline > now)
			continue;
		give_up(store, c);
		connection_watch(store, c);
	}
	if (store->pause_until && store->pause_until <= now)
		resume_accepting(store);
}

static void free_closed(struct coll_store *store)
{
	int i, kept = 0;

	for (i = 0; i < store->connections; i++) {
		if (store_closed(store->connection[i]))
			free(store->connection[i]);
		else
			store->connection[kept++] = store->connection[i];
	}
	store->connections = kept;
}

/* The timer makes the epoll descriptor readable when the next deadline is due. */
static void set_timer(struct coll_store *store)
{
	uint64_t next = store->pause_until ? store->pause_until : COLL_FOREVER;
	struct itimerspec timer = { .it_interval = { 0 } };
	int i;

	for (i = 0; i < store->connections; i++)
		if (store->connection[i]->deadline < next)
			next = store->connection[i]->deadline;
	if (next != COLL_FOREVER) {
		timer.it_value.tv_sec = next / COLL_SECOND;
		timer.it_value.tv_nsec = next % COLL_SECOND;
	}
	timerfd_settime(store->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

int coll_store_poll(struct coll_store *store, int timeout_ms)
{
	struct epoll_event event[64];
	uint64_t ticks;
	int n, i;

	n = epoll_wait(store->epoll_fd, event, 64, timeout_ms);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (i = 0; i < n; i++) {
		if (event[i].data.ptr == &listen_mark)
			accept_one(store);
		else if (event[i].data.ptr != &timer_mark)
			connection_event(store, event[i].data.ptr, event[i].events);
		else if (read(store->timer_fd, &ticks, sizeof(ticks)) < 0 && errno != EAGAIN)
			return -errno;
	}
	store_expire(store);
	free_closed(store);
	set_timer(store);
	return 0;
}

static int store_watch(struct coll_store *store, int fd, const void *mark)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = (void *)mark };

	return epoll_ctl(store->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_descriptors(struct coll_store *store)
{
	int err;

	store->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	store->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (store->epoll_fd < 0 || store->timer_fd < 0)
		return -errno;
	err = store_watch(store, store->listen_fd, &listen_mark);
	return err ? err : store_watch(store, store->timer_fd, &timer_mark);
}

int coll_store_open(struct coll_store **store, int fd, int ranks, const char *job,
		    const uint8_t secret[COLL_SECRET_BYTES])
{
	struct coll_store *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->listen_fd = fd;
	s->epoll_fd = s->timer_fd = -1;
	s->ranks = ranks;
	strncpy(s->job, job, sizeof(s->job) - 1);
	memcpy(s->secret, secret, COLL_SECRET_BYTES);
	s->member = calloc(ranks, sizeof(*s->member));
	if (s->member)
		err = open_descriptors(s);
	if (err) {
		coll_store_close(s);
		return err;
	}
	*store = s;
	return 0;
}

int coll_store_fd(const struct coll_store *store)
{
	return store->epoll_fd;
}

int coll_store_present(const struct coll_store *store)
{
	int i, present = 0;

	for (i = 0; i < store->ranks; i++)
		present += !!store->member[i].present;
	return present;
}

bool coll_store_met(const struct coll_store *store)
{
	return stays_complete(store);
}

bool coll_store_here(const struct coll_store *store, int rank)
{
	return store->member[rank].present;
}

bool coll_store_left(const struct coll_store *store, int rank)
{
	const struct coll_store_member *member = &store->member[rank];

	return member->joins && !member->present && member->leaves == member->joins;
}

uint64_t coll_store_refused(const struct coll_store *store)
{
	return store->refused;
}

void coll_store_close(struct coll_store *store)
{
	int i;

	if (!store)
		return;
	for (i = 0; i < store->connections; i++)
		connection_close(store, store->connection[i]);
	free_closed(store);
	coll_store_table_free(&store->table);
	close(store->listen_fd);
	if (store->epoll_fd >= 0)
		close(store->epoll_fd);
	if (store->timer_fd >= 0)
		close(store->timer_fd);
	free(store->connection);
	free(store->member);
	free(store);
}
