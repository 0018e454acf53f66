// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The connections: accepted within limits, disconnected. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clients.h"
#include "daemon/common/clock.h"
#include "daemon/common/closer.h"
#include "daemon/common/local.h"
#include "daemon/common/log.h"
#include "daemon/common/subuid.h"

enum {
	CLIENTS_MAX = 4096,
	LARGE_MAX = 16,			/* of a user: with a long queue, of which the kernel takes 16 MB */
	LARGE_ALL = 64,			/* of all users */
	DESCRIPTORS_KEPT = 64,		/* for the switch, the metrics, the kernel */
	PAUSE_NS = 100000000,
	SEND_BYTES = 256 << 10,
	SEND_LARGE_BYTES = 8 << 20,
	BUDGET_NS = 10000000,		/* in this time ... */
	BUDGET_MESSAGES = 256,		/* ... so many messages of a user, at a few us each */
};

/* ---- limits --------------------------------------------------------------- */

static void set_queue(const struct circuit_peer *client, int bytes)
{
	if (setsockopt(client->fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(client->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

/* One whose list has been read, and that hears of no changes, needs the long queue no more. */
static bool is_done_with_list(const struct circuit_peer *client)
{
	int left;

	return client->large && !client->watches && !ioctl(client->fd, SIOCOUTQ, &left) && !left;
}

static void reclaim_queues(struct circuit_manager *manager)
{
	struct circuit_peer *client;

	for (client = manager->clients->first; client; client = client->next)
		if (is_done_with_list(client)) {
			client->large = false;
			set_queue(client, SEND_BYTES);
		}
}

bool circuit_client_enlarge(struct circuit_manager *manager, struct circuit_peer *client)
{
	const struct circuit_peer *other;
	u32 large = 0, all = 0;

	reclaim_queues(manager);
	for (other = manager->clients->first; other; other = other->next) {
		all += other->large;
		large += other->counts_as == client->counts_as && other->large;
	}
	if (client->large)
		return true;
	if (client->user && (large >= LARGE_MAX || !circuit_manager_share_left(client->counts_as, large, all, LARGE_ALL)))
		return false;
	client->large = true;
	set_queue(client, SEND_LARGE_BYTES);
	return true;
}

/* A connection that keeps nothing for its user: no job, no list of changes. */
static bool is_idle(const struct circuit_peer *client)
{
	return client->user && client->holder == COLL_CIRCUIT_NONE && !client->watches;
}

enum { CROWDS = 256 };

/* What the clients are, seen from one user, or all that count as it. */
struct census {
	u32 all, users, busy, users_busy;
	struct circuit_peer *idle;	/* the oldest of the user that has the most */
};

static struct census take_census(const struct circuit_clients *clients, uid_t user)
{
	u32 idle[CROWDS] = { 0 }, most = 0;
	struct census census = { 0 };
	struct circuit_peer *client;

	for (client = clients->first; client; client = client->next) {
		const u32 crowd = client->counts_as % CROWDS;

		census.all++;
		census.users += client->counts_as == user;
		if (!is_idle(client)) {
			census.busy++;
			census.users_busy += client->counts_as == user;
		} else if (++idle[crowd] > most) {
			most = idle[crowd];
		}
	}
	for (client = clients->first; client && most; client = client->next)
		if (is_idle(client) && idle[client->counts_as % CROWDS] == most)
			census.idle = client;
	return census;
}

/* A flood must not fill the log, nor wait for whoever reads it. */
void circuit_client_count_dropped(struct circuit_clients *clients, enum circuit_drop why, uid_t user)
{
	static const char *const text[CIRCUIT_DROPS] = {
		[CIRCUIT_DROP_LIMIT] = "has too many connections to the socket: further ones are dropped",
		[CIRCUIT_DROP_PROTOCOL] = "speaks another protocol to the socket: disconnected",
		[CIRCUIT_DROP_DESCRIPTORS] = "passes descriptors to the socket: disconnected",
	};

	if (!clients->dropped[why]++)
		colld_log(LOG_WARNING, "user %u %s (logged once)", user, text[why]);
}

/*
 * Whether the user may have one more. Idle connections, whosever they are, count only while there
 * is space for them: one is dropped then.
 */
static bool client_admit(struct circuit_manager *manager, uid_t user)
{
	struct circuit_clients *clients = manager->clients;
	const uid_t counted = colld_subuid_counts_as(user);
	const struct census census = take_census(clients, counted);

	if (circuit_manager_share_left(counted, census.users, census.all, clients->max))
		return true;
	circuit_client_count_dropped(clients, CIRCUIT_DROP_LIMIT, user);
	if (!census.idle || !circuit_manager_share_left(counted, census.users_busy, census.busy,
							clients->max))
		return false;
	circuit_client_disconnect(manager, census.idle);
	return true;
}

/* ---- a user's budget ------------------------------------------------------ */

static bool account_has_left(struct circuit_account *account)
{
	const u64 times = (colld_now() - account->since) / BUDGET_NS;

	account->since += times * BUDGET_NS;
	account->spent -= times < account->spent / BUDGET_MESSAGES ? times * BUDGET_MESSAGES :
								     account->spent * (times > 0);
	return !account->user || account->spent < BUDGET_MESSAGES;
}

/* The user's, made if it is new. To connect again gives no messages: debts are kept. */
static struct circuit_account *account_join(struct circuit_clients *clients, uid_t user)
{
	struct circuit_account **slot = &clients->account, *account, *found = NULL;

	while ((account = *slot)) {
		account_has_left(account);
		if (account->user == user)
			found = account;
		if (account->user == user || account->clients || account->spent) {
			slot = &account->next;
		} else {
			*slot = account->next;
			free(account);
		}
	}
	if (!found) {
		found = calloc(1, sizeof(*found));
		if (!found)
			return NULL;
		found->user = user;
		found->since = colld_now();
		*slot = found;
	}
	found->clients++;
	return found;
}

static void account_leave(struct circuit_account *account)
{
	coll_assert(account->clients);
	account->clients--;
}

static void accounts_free(struct circuit_clients *clients)
{
	while (clients->account) {
		struct circuit_account *account = clients->account;

		clients->account = account->next;
		free(account);
	}
}

static void set_refill(const struct circuit_clients *clients)
{
	const struct itimerspec soon = { .it_value = { .tv_nsec = BUDGET_NS } };

	timerfd_settime(clients->refill, 0, &soon, NULL);
}

bool circuit_client_may_read(struct circuit_manager *manager, struct circuit_peer *client)
{
	if (account_has_left(client->account))
		return true;
	client->held = true;
	/* Removed: the end of a connection would be reported without pause. */
	epoll_ctl(manager->clients->epoll, EPOLL_CTL_DEL, client->fd, NULL);
	set_refill(manager->clients);
	return false;
}

void circuit_clients_refill(struct circuit_manager *manager)
{
	const struct circuit_clients *clients = manager->clients;
	struct circuit_peer *client;
	bool held = false;
	u64 expired;

	if (read(clients->refill, &expired, sizeof(expired)) < 0)
		return;
	for (client = clients->first; client; client = client->next) {
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };

		if (client->held && account_has_left(client->account))
			client->held = epoll_ctl(clients->epoll, EPOLL_CTL_ADD, client->fd,
						 &event) != 0;
		held |= client->held;
	}
	if (held)
		set_refill(clients);
}

/* ---- accepting ------------------------------------------------------------ */

static void listen_for(struct circuit_clients *clients, struct circuit_manager *manager, u32 events)
{
	struct epoll_event event = { .events = events, .data.ptr = &manager->clients };

	epoll_ctl(clients->epoll, EPOLL_CTL_MOD, clients->listener, &event);
}

/* The connection stays where it is, and would be reported again at once. */
static void pause_accepting(struct circuit_manager *manager)
{
	const struct itimerspec soon = { .it_value = { .tv_nsec = PAUSE_NS } };

	listen_for(manager->clients, manager, 0);
	timerfd_settime(manager->clients->pause, 0, &soon, NULL);
}

void circuit_clients_resume(struct circuit_manager *manager)
{
	u64 expired;

	if (read(manager->clients->pause, &expired, sizeof(expired)) > 0)
		listen_for(manager->clients, manager, EPOLLIN);
}

struct circuit_peer *circuit_client_new(struct circuit_clients *clients, int fd, uid_t user)
{
	struct circuit_peer *client = calloc(1, sizeof(*client));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };

	if (client)
		client->account = account_join(clients, colld_subuid_counts_as(user));
	if (!client || !client->account || epoll_ctl(clients->epoll, EPOLL_CTL_ADD, fd, &event)) {
		if (client && client->account)
			account_leave(client->account);
		free(client);
		return NULL;
	}
	/* Urgent bytes come in order, with what is attached to them. */
	setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &(int){ 1 }, sizeof(int));
	client->account->spent++;	/* to connect again and again is not for nothing either */
	client->fd = fd;
	client->user = user;
	client->counts_as = client->account->user;
	client->holder = client->node = COLL_CIRCUIT_NONE;
	client->next = clients->first;
	clients->first = client;
	return client;
}

void circuit_clients_accept(struct circuit_manager *manager)
{
	struct circuit_clients *clients = manager->clients;
	const int fd = accept4(clients->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const uid_t user = fd < 0 ? 0 : colld_local_user(fd);
	struct circuit_peer *client = NULL;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			pause_accepting(manager);
		return;
	}
	colld_subuid_read(COLLD_SUBUID);
	if (client_admit(manager, user))
		client = circuit_client_new(clients, fd, user);
	if (client)
		set_queue(client, SEND_BYTES);
	else
		closer_close(fd);
}

void circuit_client_disconnect(struct circuit_manager *manager, struct circuit_peer *client)
{
	struct circuit_peer **slot = &manager->clients->first;
	u32 i;

	for (i = 0; i < manager->core.leased; i++)
		if (manager->owner[i].client == client)
			circuit_manager_release(manager, i);
	if (client->holder != COLL_CIRCUIT_NONE)
		circuit_manager_leave(manager, client->holder);
	account_leave(client->account);
	while (*slot != client)
		slot = &(*slot)->next;
	*slot = client->next;
	epoll_ctl(manager->clients->epoll, EPOLL_CTL_DEL, client->fd, NULL);
	closer_close(client->fd);
	free(client);
}

/* ---- the socket ----------------------------------------------------------- */

int circuit_clients_fd(const struct circuit_manager *manager)
{
	return manager->clients->listener;
}

int circuit_clients_pause_fd(const struct circuit_manager *manager)
{
	return manager->clients->pause;
}

int circuit_clients_refill_fd(const struct circuit_manager *manager)
{
	return manager->clients->refill;
}

/* The number of connections that leaves descriptors for everything else. */
static u32 clients_max(void)
{
	struct rlimit limit = { .rlim_cur = 0 };

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= CLIENTS_MAX + DESCRIPTORS_KEPT)
		return CLIENTS_MAX;
	return limit.rlim_cur > 2 * DESCRIPTORS_KEPT ? limit.rlim_cur - DESCRIPTORS_KEPT :
						       DESCRIPTORS_KEPT;
}

int circuit_clients_open(struct circuit_manager *manager, int epoll)
{
	struct circuit_clients *clients = calloc(1, sizeof(*clients));
	int fd;

	if (!clients)
		return -ENOMEM;
	clients->epoll = epoll;
	clients->listener = -1;
	clients->max = clients_max();
	clients->pause = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	clients->refill = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	manager->clients = clients;
	if (clients->pause < 0 || clients->refill < 0)
		return -errno;
	/* Descriptors that peers send client_receive() receives and drops. */
	fd = colld_local_listen(manager->setup.socket);
	if (fd < 0)
		return fd;
	clients->listener = fd;
	return 0;
}

void circuit_clients_close(struct circuit_manager *manager)
{
	struct circuit_clients *clients = manager->clients;

	if (!clients)
		return;
	while (clients->first) {
		struct circuit_peer *client = clients->first;

		clients->first = client->next;
		closer_close(client->fd);
		free(client);
	}
	if (clients->listener >= 0) {
		unlink(manager->setup.socket);
		close(clients->listener);
	}
	if (clients->pause >= 0)
		close(clients->pause);
	if (clients->refill >= 0)
		close(clients->refill);
	accounts_free(clients);
	free(clients);
	manager->clients = NULL;
}
