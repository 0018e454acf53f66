// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The server of the store. One thread, no call that blocks. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "libcoll/base/log.h"
#include "store_server.h"

/* A peer has this long to prove that it belongs to the job. */
#define HELLO_NS (5 * COLL_SECOND)
/* Time without accepting when out of file descriptors. */
#define PAUSE_NS (COLL_SECOND / 10)

/* Maximum of unauthenticated peers at once: this many, and two for each rank. */
enum { UNAUTHENTICATED_MAX = 64 };

static const char listen_mark, timer_mark;	/* marks of epoll events */

/* ---- the listening socket ---------------------------------------------- */

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
	static const int families[] = { AF_INET6, AF_INET };	/* IPv6 may serve both */
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

int coll_store_listen_anywhere(bool one_node, int *fd)
{
	static const char *const addresses[][2] = {
		{ "[::]:0", "0.0.0.0:0" },	/* the first serves both, if there is IPv6 */
		{ "127.0.0.1:0", "[::1]:0" },
	};

	return coll_store_listen(addresses[one_node][0], fd) ?
	       coll_store_listen(addresses[one_node][1], fd) : 0;
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

/* ---- accepting --------------------------------------------------------- */

static void name_peer(struct coll_store_connection *c, const struct sockaddr *peer, socklen_t bytes)
{
	char host[INET6_ADDRSTRLEN], port[8];

	if (getnameinfo(peer, bytes, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(c->from, sizeof(c->from), "somewhere");
	else
		snprintf(c->from, sizeof(c->from), "%s port %s",
			 strncmp(host, "::ffff:", 7) ? host : host + 7, port);
}

/* Authenticated connections are not counted: one rank may have many contexts. */
static bool too_many_unauthenticated(const struct coll_store *store)
{
	int count = 0, i;

	for (i = 0; i < store->connections; i++)
		count += !coll_store_closed(store->connection[i]) && store->connection[i]->rank < 0;
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

/* Closes an unauthenticated connection, so that another fits. */
static bool drop_unauthenticated(struct coll_store *store)
{
	struct coll_store_connection *c = coll_store_crowded(store);

	if (c)
		coll_store_refuse(store, c, "too many unauthenticated peers");
	return c;
}

static void listen_for(struct coll_store *store, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = (void *)&listen_mark };

	epoll_ctl(store->epoll_fd, EPOLL_CTL_MOD, store->listen_fd, &event);
}

/* Nobody else knows why ranks do not join. */
static void pause_accepting(struct coll_store *store, int lack)
{
	if (!store->told_lack)
		coll_log_by_environment(COLL_LOG_ERROR, "store of job %s: %s: it has %d connections of %d ranks, and "
					"accepts no more for now (ulimit -Hn is the most descriptors)", store->job,
					strerror(lack), store->connections, store->ranks);
	store->told_lack = true;
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
	coll_store_source(c->source, peer);
	store->connection[store->connections++] = c;
	coll_store_watch(store, c);
}

/* One a poll, so that the others are served between two that come. */
static void accept_one(struct coll_store *store)
{
	struct sockaddr_storage peer;
	socklen_t bytes = sizeof(peer);
	int fd, lack;

	if (too_many_unauthenticated(store))
		drop_unauthenticated(store);
	fd = accept4(store->listen_fd, (struct sockaddr *)&peer, &bytes,
		     SOCK_CLOEXEC | SOCK_NONBLOCK);
	lack = errno;
	if (fd >= 0)
		greet_connection(store, fd, (struct sockaddr *)&peer, bytes);
	else if ((lack == EMFILE || lack == ENFILE || lack == ENOBUFS || lack == ENOMEM) &&
		 !drop_unauthenticated(store))
		pause_accepting(store, lack);
}

/* ---- polling ----------------------------------------------------------- */

static void connection_event(struct coll_store *store, struct coll_store_connection *c,
			     uint32_t events)
{
	if (coll_store_closed(c))
		return;
	if (c->waits && events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		coll_store_disconnect(store, c);
		return;
	}
	coll_store_flush(store, c);
	if (!coll_store_closed(c) && !c->waits && c->out_sent == c->out_bytes)
		coll_store_read(store, c);
	coll_store_watch(store, c);
}

static void store_expire(struct coll_store *store)
{
	uint64_t now = coll_now();
	struct coll_store_connection *c;
	int i;

	for (i = 0; i < store->connections; i++) {
		c = store->connection[i];
		if (coll_store_closed(c) || c->deadline > now)
			continue;
		coll_store_time_out(store, c);
		coll_store_watch(store, c);
	}
	if (store->pause_until && store->pause_until <= now)
		resume_accepting(store);
}

static void free_closed(struct coll_store *store)
{
	int i, kept = 0;

	for (i = 0; i < store->connections; i++) {
		if (coll_store_closed(store->connection[i]))
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
	coll_store_key(s->key, secret);
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
	return coll_store_stays_complete(store);
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

bool coll_store_here_as(const struct coll_store *store, int rank, uint32_t process)
{
	return coll_store_here(store, rank) && store->member[rank].process == process;
}

bool coll_store_is_well(const struct coll_store *store, int rank)
{
	const struct coll_store_member *member = &store->member[rank];

	return member->joins && member->joins == member->leaves + member->present;
}

uint64_t coll_store_refused(const struct coll_store *store)
{
	return __atomic_load_n(&store->refused, __ATOMIC_RELAXED);
}

void coll_store_close(struct coll_store *store)
{
	int i;

	if (!store)
		return;
	for (i = 0; i < store->connections; i++)
		coll_store_disconnect(store, store->connection[i]);
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
