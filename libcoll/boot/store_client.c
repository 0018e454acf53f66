// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A rank's side of the store: one request at a time, each with a deadline. */
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "libcoll/base/stream.h"
#include "store.h"
#include "store_wire.h"

/* Time for the server's answer, even beyond the deadline. */
#define ANSWER_NS (2 * COLL_SECOND)
/* ... to a put, which it gives at once. */
#define PUT_NS (30 * COLL_SECOND)

struct coll_store_client {
	int fd;
	int error; /* why the connection is unusable; returned by every later call */
	uint64_t put_ns;
	/*
	 * The answer that is awaited, or was not awaited to its end: the next request reads that first.
	 * A server that gets no CPU for some seconds is no dead one.
	 */
	bool owed;
	size_t got;
	uint8_t reply[STORE_REPLY_MAX];
};

static uint64_t store_client_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int connect_to(const struct addrinfo *to, uint64_t deadline)
{
	int fd, err, one = 1;

	fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = coll_stream_connect(fd, to->ai_addr, to->ai_addrlen, deadline);
	if (err) {
		close(fd);
		return err;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static int connect_any(const char *address, uint64_t deadline)
{
	struct addrinfo *found, *to;
	int fd;

	fd = coll_store_resolve(address, false, &found);
	if (fd)
		return fd;
	fd = -ECONNREFUSED;
	for (to = found; to && fd < 0; to = to->ai_next)
		fd = connect_to(to, deadline);
	freeaddrinfo(found);
	return fd;
}

static bool fill_hello(struct coll_store_hello *hello, const struct coll_store_identity *identity)
{
	memset(hello, 0, sizeof(*hello));
	memcpy(hello->magic, STORE_MAGIC, STORE_MAGIC_BYTES);
	hello->rank = htole32(identity->rank);
	hello->ranks = htole32(identity->ranks);
	hello->process = htole32(getpid());
	strncpy(hello->job, identity->job, sizeof(hello->job) - 1);
	return coll_nonce_make(hello->nonce, sizeof(hello->nonce));
}

/* Both sides prove themselves. -EACCES: the store has another secret; -EBADMSG: it is none. */
static int store_client_prove(int fd, const struct coll_store_identity *identity, uint64_t soon)
{
	struct coll_store_challenge challenge;
	struct coll_store_hello hello;
	uint8_t key[COLL_KEY_BYTES];
	struct coll_proof proof;
	int err;

	if (!fill_hello(&hello, identity))
		return -EIO;
	err = coll_stream_send(fd, &hello, sizeof(hello), soon);
	if (!err)
		err = coll_stream_receive(fd, &challenge, sizeof(challenge), soon);
	if (err)
		return err;
	if (memcmp(challenge.magic, STORE_MAGIC, STORE_MAGIC_BYTES))
		return -EBADMSG;
	coll_store_key(key, identity->secret);
	if (!coll_challenge_verify(&challenge.challenge, key, &hello, sizeof(hello)))
		return -EACCES;
	coll_proof_make(&proof, &challenge.challenge, key, &hello, sizeof(hello));
	return coll_stream_send(fd, &proof, sizeof(proof), soon);
}

static int store_client_introduce(int fd, const struct coll_store_identity *identity,
				  uint64_t deadline)
{
	uint64_t soon = store_client_earlier(deadline, coll_now() + COLL_STORE_TIMEOUT);
	struct coll_store_welcome welcome;
	int err;

	err = store_client_prove(fd, identity, soon);
	if (!err)
		err = coll_stream_receive(fd, &welcome, sizeof(welcome), deadline);
	if (err)
		return err;
	err = (int32_t)le32toh(welcome.status);
	return !err || err == -EPROTO || err == -EEXIST || err == -EACCES ? err : -EBADMSG;
}

static uint64_t put_time(uint64_t timeout)
{
	if (!timeout || timeout > PUT_NS)
		return PUT_NS;
	return timeout < ANSWER_NS ? ANSWER_NS : timeout;
}

int coll_store_join(struct coll_store_client **client, const struct coll_store_identity *identity,
		    const char *address, uint64_t deadline)
{
	int fd, err;

	fd = connect_any(address, store_client_earlier(deadline, coll_now() + COLL_STORE_TIMEOUT));
	if (fd < 0)
		return fd;
	err = store_client_introduce(fd, identity, deadline);
	*client = err ? NULL : malloc(sizeof(**client));
	if (!*client) {
		close(fd);
		return err ? err : -ENOMEM;
	}
	(*client)->fd = fd;
	(*client)->error = 0;
	(*client)->put_ns = put_time(identity->timeout);
	(*client)->owed = false;
	return 0;
}

static int send_request(struct coll_store_client *client, enum coll_store_verb verb,
			const char *key, const void *value, size_t bytes, uint64_t deadline,
			uint32_t wait_ms)
{
	uint8_t wire[STORE_REQUEST_MAX];
	size_t key_bytes = strlen(key);
	struct coll_store_request request = {
		.verb = htole32(verb),
		.key_bytes = htole32(key_bytes),
		.value_bytes = htole32(bytes),
		.wait_ms = htole32(wait_ms),
	};

	memcpy(wire, &request, sizeof(request));
	memcpy(wire + sizeof(request), key, key_bytes);
	if (bytes)
		memcpy(wire + sizeof(request) + key_bytes, value, bytes);
	return coll_stream_send(client->fd, wire, sizeof(request) + key_bytes + bytes, deadline);
}

/* Bytes of the reply's value, once its head is here. */
static size_t reply_bytes(const struct coll_store_client *client, int *status)
{
	struct coll_store_reply reply;

	memcpy(&reply, client->reply, sizeof(reply));
	*status = (int32_t)le32toh(reply.status);
	return le32toh(reply.bytes);
}

/* Reads on until so many bytes of the reply are here. -ETIMEDOUT: the rest is still to come. */
static int reply_fill(struct coll_store_client *client, size_t bytes, uint64_t deadline)
{
	return coll_stream_receive_rest(client->fd, client->reply, bytes, &client->got, deadline);
}

/* The awaited reply, whole, in client->reply. */
static int reply_await(struct coll_store_client *client, uint64_t deadline)
{
	int err = reply_fill(client, sizeof(struct coll_store_reply), deadline), status;
	size_t bytes = err ? 0 : reply_bytes(client, &status);

	if (bytes > STORE_VALUE_MAX)
		err = -EBADMSG;
	if (!err)
		err = reply_fill(client, sizeof(struct coll_store_reply) + bytes, deadline);
	if (err && err != -ETIMEDOUT)
		client->error = err;
	if (!err)
		client->owed = false;
	return err;
}

/* Sends a request, when the answer to the one before has come. */
static int store_client_request(struct coll_store_client *client, enum coll_store_verb verb,
				const char *key, const void *value, size_t bytes,
				uint64_t deadline, uint32_t wait_ms)
{
	int err = client->error;

	if (!err && client->owed)
		err = reply_await(client, deadline);
	if (err)
		return err;
	err = send_request(client, verb, key, value, bytes, deadline, wait_ms);
	if (err)
		return client->error = err;
	client->owed = true;
	client->got = 0;
	return 0;
}

static int recv_reply(struct coll_store_client *client, void *value, size_t *bytes,
		      uint64_t deadline)
{
	size_t capacity = *bytes;
	int err = reply_await(client, deadline), status;

	if (err)
		return err;
	*bytes = reply_bytes(client, &status);
	if (*bytes && capacity)		/* else there may be no memory for it */
		memcpy(value, client->reply + sizeof(struct coll_store_reply),
		       *bytes < capacity ? *bytes : capacity);
	return status ? status : *bytes > capacity ? -EMSGSIZE : 0;
}

/* The server times out a little earlier than this rank, so its answer still arrives. */
static uint32_t server_wait(uint64_t deadline)
{
	uint32_t ms = coll_ms_until(deadline);

	return ms - (ms < 4000 ? ms / 8 : 500);
}

static int store_client_ask(struct coll_store_client *client, enum coll_store_verb verb,
			    const char *key, void *value, size_t *bytes, uint64_t deadline)
{
	uint64_t soon = coll_now() + ANSWER_NS;
	uint32_t wait_ms = server_wait(deadline);
	int err;

	if (deadline < soon)
		deadline = soon;
	err = store_client_request(client, verb, key, NULL, 0, deadline, wait_ms);
	return err ? err : recv_reply(client, value, bytes, deadline);
}

int coll_store_all(struct coll_store_client *client, char *missing, size_t bytes,
		   uint64_t deadline)
{
	size_t got = bytes - 1;
	int err = store_client_ask(client, STORE_ALL, "", missing, &got, deadline);

	missing[err == -ETIMEDOUT && !client->owed && got < bytes ? got : 0] = '\0';
	return err;
}

static bool key_fits(const char *key)
{
	size_t bytes = strnlen(key, COLL_BOOT_KEY_MAX + 1);

	return bytes && bytes <= COLL_BOOT_KEY_MAX;
}

int coll_store_put(struct coll_store_client *client, const char *key, const void *value,
		   size_t bytes)
{
	const uint64_t deadline = coll_now() + client->put_ns;
	size_t none = 0;
	int err;

	if (!key_fits(key) || bytes > STORE_VALUE_MAX)
		return -EINVAL;
	err = store_client_request(client, STORE_PUT, key, value, bytes, deadline, 0);
	if (!err)
		err = recv_reply(client, NULL, &none, deadline);
	if (err == -ETIMEDOUT)
		client->error = err;
	return err;
}

/* The answer has no news: the next request reads it. */
int coll_store_forget(struct coll_store_client *client, const char *key)
{
	return key_fits(key) ? store_client_request(client, STORE_FORGET, key, NULL, 0, coll_now() + client->put_ns, 0) :
			       -EINVAL;
}

int coll_store_get(struct coll_store_client *client, const char *key, void *value,
		   size_t *bytes, uint64_t deadline)
{
	return key_fits(key) ? store_client_ask(client, STORE_GET, key, value, bytes, deadline)
			     : -EINVAL;
}

void coll_store_leave(struct coll_store_client *client)
{
	if (!client)
		return;
	if (!client->error)
		send_request(client, STORE_LEAVE, "", NULL, 0, coll_now() + COLL_SECOND, 0);
	close(client->fd);
	free(client);
}
