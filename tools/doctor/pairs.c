// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Each host has a child that answers (pairs_answer.c), and tries the others itself: it sends the
 * other's token, which the store gave to all of the job, then some bytes; each is answered with
 * the other's time of day.
 */
#include <errno.h>
#include <netdb.h>
#include <nettle/base16.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "libcoll/base/descriptors.h"
#include "libcoll/base/stream.h"
#include "libcoll/boot/endpoints.h"
#include "libcoll/boot/store.h"
#include "pairs.h"
#include "pairs_answer.h"

/*
 * TCP sends a lost SYN again after 1 s and after 3 s: that much loss is no fault of the way there,
 * nor is a switch port that has just come up.
 */
enum { ADDRESSES_MAX = 4, ADDRESS_BYTES = 64, PINGS = 8, CONNECT_MS = 4000 };

#define PING_NS (3 * COLL_SECOND)	/* for an answer */
/*
 * For all others to say where they are: a login that asks a dead name server first takes 10 s and more.
 * Then for all to have tried, of whom the last one waits as long and then takes its addresses one
 * after another. Both are over within the 60 s that --timeout is, and take less of a shorter one.
 */
#define MEET_NS (20 * COLL_SECOND)
#define END_NS (38 * COLL_SECOND)
#define WHOLE_NS (60 * COLL_SECOND)

/* What the store has of a host. */
struct place {
	char address[ADDRESSES_MAX][ADDRESS_BYTES];	/* numeric; "": no more */
	char port[8];
	unsigned char token[PAIRS_TOKEN];
};

struct pair {
	struct place place;
	int fd, error;
	int tried;		/* the index of its address */
	double rtt_us, offset_us;
};

struct pairs {
	struct coll_store_client *store;
	struct place own;
	int rank, ranks;
	uint64_t timeout;	/* ns */
	struct pair *pair;
	pid_t answers;
};

/* This part of the time that the doctor has in all. */
static uint64_t part_of_time(const struct pairs *pairs, uint64_t ns)
{
	return pairs->timeout < WHOLE_NS ? ns / 1000 * (pairs->timeout / 1000) / (WHOLE_NS / 1000) * 1000 : ns;
}

/* ---- the store --------------------------------------------------------------- */

static int pairs_join(struct pairs *pairs)
{
	const char *secret = getenv("COLL_SECRET"), *job = getenv("COLL_JOB");
	char *list = strdup(getenv("COLL_STORE") ? getenv("COLL_STORE") : ""), *address, *save;
	uint8_t key[COLL_SECRET_BYTES + 1];
	const struct coll_store_identity identity = {
		.rank = pairs->rank, .ranks = pairs->ranks, .job = job, .secret = key,
	};
	struct base16_decode_ctx decode;
	size_t bytes = 0;
	int error = -EINVAL;

	base16_decode_init(&decode);
	if (secret && job && list && strlen(secret) == 2 * COLL_SECRET_BYTES &&
	    base16_decode_update(&decode, &bytes, key, strlen(secret), secret))
		for (address = strtok_r(list, ",", &save); address && error;
		     address = strtok_r(NULL, ",", &save))
			error = coll_store_join(&pairs->store, &identity, address,
						coll_now() + COLL_STORE_TIMEOUT);
	free(list);
	return error;
}

static void own_place(struct place *place, int port)
{
	char line[1024], *text, *save;
	int count = 0;

	snprintf(place->port, sizeof(place->port), "%d", port);
	line[coll_node_addresses(line, 0, sizeof(line))] = '\0';
	for (text = strtok_r(line, " ", &save); text && count < ADDRESSES_MAX;
	     text = strtok_r(NULL, " ", &save))
		snprintf(place->address[count++], ADDRESS_BYTES, "%s", text);
	if (!count)
		strcpy(place->address[0], "127.0.0.1");
}

static const char *pairs_key(char text[32], const char *what, int rank)
{
	snprintf(text, 32, "doctor/%s/%d", what, rank);
	return text;
}

/* Texts end, whatever another version has put there. */
static void place_terminate(struct place *place)
{
	int i;

	for (i = 0; i < ADDRESSES_MAX; i++)
		place->address[i][ADDRESS_BYTES - 1] = '\0';
	place->port[sizeof(place->port) - 1] = '\0';
}

/* Where the others are; who does not say it in time is not there. */
static void learn_places(struct pairs *pairs)
{
	const uint64_t until = coll_now() + part_of_time(pairs, MEET_NS);
	char key[32];
	int i;

	for (i = 0; i < pairs->ranks; i++) {
		struct pair *pair = &pairs->pair[i];
		size_t bytes = sizeof(pair->place);

		pair->fd = -1;
		pair->error = i == pairs->rank ? 0 :
			coll_store_get(pairs->store, pairs_key(key, "place", i), &pair->place,
				       &bytes, until);
		if (!pair->error && i != pairs->rank && bytes != sizeof(pair->place))
			pair->error = -EPROTO;
		place_terminate(&pair->place);
	}
}

/* ---- connecting ----------------------------------------------------------------- */

static void begin_connect(struct pair *pair, const char *address)
{
	const struct addrinfo how = { .ai_socktype = SOCK_STREAM,
				      .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *to;

	pair->error = -EADDRNOTAVAIL;
	if (getaddrinfo(address, pair->place.port, &how, &to))
		return;
	pair->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	pair->error = pair->fd < 0 || (connect(pair->fd, to->ai_addr, to->ai_addrlen) &&
				       errno != EINPROGRESS) ? -errno : -EINPROGRESS;
	freeaddrinfo(to);
}

static void end_connect(struct pair *pair, bool ready)
{
	socklen_t bytes = sizeof(pair->error);

	if (pair->error == -EINPROGRESS) {
		pair->error = ETIMEDOUT;
		if (ready)
			getsockopt(pair->fd, SOL_SOCKET, SO_ERROR, &pair->error, &bytes);
		pair->error = -pair->error;
	}
	if (pair->error && pair->fd >= 0) {
		close(pair->fd);
		pair->fd = -1;
	}
}

/* Waits for `waiting` of them; those that are not there at the end are looked at once more. */
static void await_connects(struct pairs *pairs, struct pollfd *poll_fd, int waiting)
{
	const uint64_t until = coll_now() + CONNECT_MS * 1000000ull;
	int i, left;

	do {
		left = coll_ms_until(until);
		poll(poll_fd, pairs->ranks, left);
		for (i = 0; i < pairs->ranks; i++)
			if (poll_fd[i].fd >= 0 && poll_fd[i].revents) {
				end_connect(&pairs->pair[i], true);
				poll_fd[i].fd = -1;
				waiting--;
			}
	} while (waiting && left);
}

/* All at once, each at its own index-th address. */
static void connect_round(struct pairs *pairs, int index, struct pollfd *poll_fd)
{
	int i, waiting = 0;

	for (i = 0; i < pairs->ranks; i++) {
		struct pair *pair = &pairs->pair[i];

		poll_fd[i] = (struct pollfd){ .fd = -1, .events = POLLOUT };
		if (i == pairs->rank || pair->fd >= 0 || !*pair->place.address[index])
			continue;
		pair->tried = index;
		begin_connect(pair, pair->place.address[index]);
		if (pair->error == -EINPROGRESS) {
			poll_fd[i].fd = pair->fd;
			waiting++;
		}
	}
	if (waiting)
		await_connects(pairs, poll_fd, waiting);
	for (i = 0; i < pairs->ranks; i++)
		if (poll_fd[i].fd >= 0 || (pairs->pair[i].error && pairs->pair[i].fd >= 0))
			end_connect(&pairs->pair[i], false);
}

/* ---- there and back ---------------------------------------------------------------- */

/* 0 or a -errno */
static int pair_ping(struct pair *pair, double *rtt_us, double *offset_us)
{
	const uint64_t before = pairs_time_of_day(), begin = coll_now();
	const uint64_t until = begin + PING_NS;
	uint64_t there, took;
	int error = coll_stream_send(pair->fd, "", 1, until);

	if (!error)
		error = coll_stream_receive(pair->fd, &there, sizeof(there), until);
	if (error)
		return error;
	took = coll_now() - begin;
	*rtt_us = took / 1e3;
	*offset_us = ((double)there - before - took / 2.0) / 1e3;
	return 0;
}

/* The quickest of some tells the offset best. */
static void pair_exchange(struct pair *pair)
{
	double rtt, offset;
	int i;

	pair->rtt_us = -1;
	pair->error = coll_stream_send(pair->fd, pair->place.token, PAIRS_TOKEN,
				       coll_now() + PING_NS);
	for (i = 0; !pair->error && i < PINGS; i++) {
		pair->error = pair_ping(pair, &rtt, &offset);
		if (!pair->error && (pair->rtt_us < 0 || rtt < pair->rtt_us)) {
			pair->rtt_us = rtt;
			pair->offset_us = offset;
		}
	}
	close(pair->fd);
}

static json_t *pair_json(const struct pair *pair, int host)
{
	const char *address = pair->place.address[pair->tried];

	if (pair->error)
		return json_pack("{si ss ss ss}", "host", host, "error", strerror(-pair->error),
				 "address", address, "port", pair->place.port);
	return json_pack("{si ss sf sf}", "host", host, "address", address, "rtt_us", pair->rtt_us,
			 "offset_us", pair->offset_us);
}

/* Until all have tried, or gave up: they need this host's answers. */
static void await_others(struct pairs *pairs)
{
	const uint64_t until = coll_now() + part_of_time(pairs, END_NS);
	char key[32], byte;
	size_t bytes;
	int i;

	coll_store_put(pairs->store, pairs_key(key, "done", pairs->rank), "", 1);
	for (i = 0; i < pairs->ranks; i++) {
		bytes = 1;
		if (*pairs->pair[i].place.port)
			coll_store_get(pairs->store, pairs_key(key, "done", i), &byte, &bytes,
				       until);
	}
}

static json_t *try_all(struct pairs *pairs, struct pollfd *poll_fd)
{
	json_t *list = json_array();
	int i;

	learn_places(pairs);
	for (i = 0; i < ADDRESSES_MAX; i++)
		connect_round(pairs, i, poll_fd);
	for (i = 0; i < pairs->ranks; i++) {
		if (i == pairs->rank || !*pairs->pair[i].place.port)
			continue;
		if (pairs->pair[i].fd >= 0)
			pair_exchange(&pairs->pair[i]);
		json_array_append_new(list, pair_json(&pairs->pair[i], i));
	}
	return json_pack("{so}", "to", list);
}

static bool pairs_meet(struct pairs *pairs, bool (*tell)(json_t *result))
{
	struct pollfd *poll_fd = calloc(pairs->ranks, sizeof(*poll_fd));
	bool told;
	char key[32];
	int port;

	coll_descriptors_raise();
	pairs->pair = calloc(pairs->ranks, sizeof(*pairs->pair));
	pairs->answers = poll_fd && pairs->pair ? pairs_answer(pairs->own.token, &port) : -1;
	if (pairs->answers > 0) {
		own_place(&pairs->own, port);
		coll_store_put(pairs->store, pairs_key(key, "place", pairs->rank), &pairs->own,
			       sizeof(pairs->own));
		told = tell(try_all(pairs, poll_fd));
		await_others(pairs);
	} else {
		told = tell(json_pack("{ss}", "error", "no memory, or no port to listen at"));
	}
	if (pairs->answers > 0) {
		kill(pairs->answers, SIGKILL);
		waitpid(pairs->answers, NULL, 0);
	}
	free(pairs->pair);
	free(poll_fd);
	return told;
}

bool doctor_pairs_try(uint64_t timeout, bool (*tell)(json_t *result))
{
	struct pairs pairs = {
		.rank = getenv("COLL_RANK") ? atoi(getenv("COLL_RANK")) : 0,
		.ranks = getenv("COLL_RANKS") ? atoi(getenv("COLL_RANKS")) : 1,
		.timeout = timeout,
	};
	bool told;
	int error;

	if (pairs.ranks < 2)
		return tell(json_pack("{s[]}", "to"));
	error = pairs_join(&pairs);
	if (error)
		return tell(json_pack("{ss ss}", "store", strerror(-error), "address",
				      getenv("COLL_STORE") ? getenv("COLL_STORE") : ""));
	told = pairs_meet(&pairs, tell);
	coll_store_leave(pairs.store);
	return told;
}
