// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What a client sends to the store's server: a hello, then requests. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "libcoll/base/clock.h"
#include "store_server.h"

/* ---- joining ----------------------------------------------------------- */

static void answer_all(struct coll_store *store)
{
	uint32_t complete = coll_store_stays_complete(store);
	struct coll_store_connection *c;
	int i;

	for (i = 0; i < store->connections; i++) {
		c = store->connection[i];
		if (!coll_store_closed(c) && c->waits == STORE_ALL && c->stay < complete) {
			coll_store_reply(store, c, 0, NULL, 0);
			coll_store_watch(store, c);
		}
	}
}

static int hello_status(const struct coll_store *store, const struct coll_store_hello *hello)
{
	uint32_t rank = le32toh(hello->rank);
	const struct coll_store_member *member;

	if (memcmp(hello->job, store->job, sizeof(hello->job)))
		return -EACCES;
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

static void handle_hello(struct coll_store *store, struct coll_store_connection *c)
{
	struct coll_store_challenge *challenge = &c->challenge;

	memcpy(&c->hello, c->in, sizeof(c->hello));
	memcpy(challenge->magic, STORE_MAGIC, STORE_MAGIC_BYTES);
	if (!coll_challenge_make(&challenge->challenge, store->key, &c->hello, sizeof(c->hello))) {
		coll_store_disconnect(store, c);
		return;
	}
	c->challenged = true;
	coll_store_say(store, c, challenge, sizeof(*challenge), NULL, 0);
}

/* A proven peer may hear why it is refused. */
static void store_welcome(struct coll_store *store, struct coll_store_connection *c)
{
	const struct coll_store_hello *hello = &c->hello;
	const int status = hello_status(store, hello);
	const struct coll_store_welcome welcome = { .status = htole32(status),
						    .ranks = htole32(store->ranks) };

	coll_store_say(store, c, &welcome, sizeof(welcome), NULL, 0);
	if (coll_store_closed(c))		/* it has gone meanwhile: nobody has joined */
		return;
	if (!status)
		become_member(store, c, le32toh(hello->rank), le32toh(hello->process));
	else
		coll_store_refuse(store, c, status == -EACCES ? "another job" :
				  status == -EEXIST ? "its rank is taken" :
						      "another number of ranks");
}

static void take_proof(struct coll_store *store, struct coll_store_connection *c)
{
	struct coll_proof proof;

	memcpy(&proof, c->in, sizeof(proof));
	if (coll_proof_verify(&proof, &c->challenge.challenge, store->key, &c->hello,
			      sizeof(c->hello)))
		store_welcome(store, c);
	else
		coll_store_refuse(store, c, "wrong secret");
}

/* ---- requests ---------------------------------------------------------- */

/* The key of a waiting request is still in c->in. */
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
		coll_store_reply(store, c, 0, store_entry_value(entry), entry->value_bytes);
	return entry;
}

static void answer_gets(struct coll_store *store)
{
	struct coll_store_connection *c;
	int i;

	for (i = 0; i < store->connections; i++) {
		c = store->connection[i];
		if (!coll_store_closed(c) && c->waits == STORE_GET && try_get(store, c))
			coll_store_watch(store, c);
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

void coll_store_time_out(struct coll_store *store, struct coll_store_connection *c)
{
	char text[256];

	if (c->rank < 0)
		coll_store_refuse(store, c, "no proof of the secret in time");
	else if (c->waits == STORE_ALL)
		coll_store_reply(store, c, -ETIMEDOUT, text,
				 missing_ranks(store, c->stay, text, sizeof(text)));
	else
		coll_store_reply(store, c, -ETIMEDOUT, NULL, 0);
}

static void wait_in(struct coll_store_connection *c, enum coll_store_verb verb, uint32_t wait_ms)
{
	c->waits = verb;
	c->deadline = coll_now() + wait_ms * 1000000ull;
}

static void store_leave(struct coll_store *store, struct coll_store_connection *c)
{
	store->member[c->rank].leaves++;
	coll_store_disconnect(store, c);
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
		coll_store_reply(store, c, err, NULL, 0);
		if (!err)
			answer_gets(store);
		break;
	case STORE_GET:
		if (!try_get(store, c))
			wait_in(c, STORE_GET, request->wait_ms);
		break;
	case STORE_ALL:
		if (c->stay < coll_store_stays_complete(store))
			coll_store_reply(store, c, 0, NULL, 0);
		else
			wait_in(c, STORE_ALL, request->wait_ms);
		break;
	case STORE_FORGET:
		coll_store_table_forget(&store->table, c->stay, key, request->key_bytes);
		coll_store_reply(store, c, 0, NULL, 0);
		break;
	case STORE_LEAVE:
		store_leave(store, c);
		break;
	}
}

/* The length of the message that c->in begins with; 0: it is malformed. */
static uint32_t message_bytes(const struct coll_store_connection *c)
{
	uint32_t magic = c->in_bytes < STORE_MAGIC_BYTES ? c->in_bytes : STORE_MAGIC_BYTES;
	struct coll_store_request request;

	if (c->challenged && c->rank < 0)
		return sizeof(struct coll_proof);
	if (c->rank < 0)
		return memcmp(c->in, STORE_MAGIC, magic) ? 0 : sizeof(struct coll_store_hello);
	if (c->in_bytes < sizeof(request))
		return sizeof(request);
	if (!coll_store_request_read(&request, c->in))
		return 0;
	return sizeof(request) + request.key_bytes + request.value_bytes;
}

static void handle_message(struct coll_store *store, struct coll_store_connection *c)
{
	struct coll_store_request request;

	if (c->rank < 0) {
		if (c->challenged)
			take_proof(store, c);
		else
			handle_hello(store, c);
		return;
	}
	coll_store_request_read(&request, c->in);
	store_serve(store, c, &request);
}

/*
 * A client has one request in flight; if it sends more, they are read when this one is
 * answered.
 */
void coll_store_read(struct coll_store *store, struct coll_store_connection *c)
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
			if (c->challenged && c->rank < 0)
				coll_store_refuse(store, c, "wrong secret");
			else
				coll_store_disconnect(store, c);
			return;
		}
		c->in_bytes += n;
		want = message_bytes(c);
		if (!want) {
			coll_store_refuse(store, c, c->rank < 0 ?
					  "it does not speak this protocol" : "malformed request");
			return;
		}
	} while (c->in_bytes < want);
	handle_message(store, c);
}
