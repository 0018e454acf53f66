// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nettle/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/port.h"
#include "libcoll/base/record.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/inject.h"
#include "seal.h"

enum { OUT_RECORDS = 8, OUT_BYTES = OUT_RECORDS * COLL_RECORD_MAX };

#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#ifndef SOL_TLS
#define SOL_TLS 282
#endif

struct coll_seal {
	const struct coll_socket_ops *plain;	/* the owner's */
	struct coll_record_stream sends, receives;
	uint8_t *out;			/* records on their way */
	uint32_t at, end;		/* of them in `out` */
	uint32_t taken;			/* plain bytes in them that the owner thinks unsent */
	bool cut;			/* injected: not all of them are sent at once */
	uint32_t got;			/* bytes of `in` */
	bool nested;			/* the owner gets plain bytes right now */
	bool ended;			/* the engine has closed the socket */
	bool broken;			/* what came was not sealed by the peer */
	uint8_t in[COLL_RECORD_MAX];	/* the record that is being received */
};

/* ---- keys ------------------------------------------------------------------ */

/* All inputs are of fixed length. The nonces of both sides are in hello and challenge. */
static void seal_derive(uint8_t *to, size_t bytes, const char label[8],
			const uint8_t key[COLL_KEY_BYTES], const struct coll_hello *hello,
			const struct coll_challenge *challenge)
{
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, COLL_KEY_BYTES, key);
	hmac_sha256_update(&hmac, 8, (const uint8_t *)label);
	hmac_sha256_update(&hmac, sizeof(*challenge), (const uint8_t *)challenge);
	hmac_sha256_update(&hmac, sizeof(*hello), (const uint8_t *)hello);
	hmac_sha256_digest(&hmac, bytes, to);
}

static void seal_secrets(struct coll_record_secret *forth, struct coll_record_secret *back,
			 const uint8_t key[COLL_KEY_BYTES], const struct coll_hello *hello,
			 const struct coll_challenge *challenge)
{
	seal_derive(forth->key, sizeof(forth->key), "forthke", key, hello, challenge);
	seal_derive(forth->iv, sizeof(forth->iv), "forthiv", key, hello, challenge);
	seal_derive(back->key, sizeof(back->key), "back ke", key, hello, challenge);
	seal_derive(back->iv, sizeof(back->iv), "back iv", key, hello, challenge);
}

/* ---- by the kernel --------------------------------------------------------- */

static int kernel_seal(int fd, int direction, const struct coll_record_secret *secret)
{
	struct tls12_crypto_info_aes_gcm_256 info = {
		.info = { .version = TLS_1_3_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_256 },
	};
	int error;

	memcpy(info.key, secret->key, sizeof(info.key));
	memcpy(info.salt, secret->iv, sizeof(info.salt));
	memcpy(info.iv, secret->iv + sizeof(info.salt), sizeof(info.iv));
	error = setsockopt(fd, SOL_TLS, direction, &info, sizeof(info)) ? -errno : 0;
	explicit_bzero(&info, sizeof(info));
	return error;
}

/* 1: the kernel does not; nothing has changed. -errno: half of it does. */
static int seal_by_kernel(int fd, const struct coll_record_secret *sends,
			  const struct coll_record_secret *receives)
{
	if (setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) ||
	    kernel_seal(fd, TLS_TX, sends))
		return 1;
	return kernel_seal(fd, TLS_RX, receives);
}

/* ---- begin and end --------------------------------------------------------- */

static int seal_new(const struct coll_record_secret *sends,
		    const struct coll_record_secret *receives, struct coll_seal **made)
{
	struct coll_seal *seal = calloc(1, sizeof(*seal));

	if (seal)
		seal->out = malloc(OUT_BYTES);
	if (!seal || !seal->out) {
		free(seal);
		return -ENOMEM;
	}
	coll_record_begin(&seal->sends, sends);
	coll_record_begin(&seal->receives, receives);
	*made = seal;
	return 0;
}

int coll_seal_make(struct coll_context *context, int fd, const struct coll_hello *hello,
		   const struct coll_challenge *challenge, bool connects, struct coll_seal **seal)
{
	struct coll_record_secret secret[2];
	int error;

	*seal = NULL;
	if (strcmp(context->options.protect, "seal"))
		return 0;
	seal_secrets(&secret[!connects], &secret[connects], context->key, hello, challenge);
	error = seal_by_kernel(fd, &secret[0], &secret[1]);
	context->counters.sealed++;
	context->counters.sealed_by_kernel += !error;
	if (error > 0)
		error = seal_new(&secret[0], &secret[1], seal);
	explicit_bzero(secret, sizeof(secret));
	return error;
}

void coll_seal_free(struct coll_seal *seal)
{
	if (!seal)
		return;
	free(seal->out);
	explicit_bzero(seal, sizeof(*seal));
	free(seal);
}

void coll_seal_send(struct coll_seal *seal, int fd, const void *data, size_t bytes)
{
	uint8_t record[COLL_RECORD_MAX];

	if (!seal) {
		send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
		return;
	}
	coll_assert(bytes <= COLL_RECORD_PLAIN_MAX);
	memcpy(record + COLL_RECORD_HEADER, data, bytes);
	send(fd, record, coll_record_seal(&seal->sends, record, bytes),
	     MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool coll_seal_is_pending(const struct coll_socket *socket)
{
	return socket->seal && socket->seal->at < socket->seal->end;
}

/* ---- sending --------------------------------------------------------------- */

static bool seal_wants_send(struct coll_socket *socket)
{
	const bool wants = socket->seal->plain->wants_send(socket);

	return coll_seal_is_pending(socket) ? !socket->sending && !socket->paused : wants;
}

/* Seals at most one record of these entries; returns how many plain bytes. */
static uint32_t seal_one(struct coll_seal *seal, struct iovec **iov, int *count)
{
	uint8_t *record = seal->out + seal->end, *to = record + COLL_RECORD_HEADER;
	uint32_t plain = 0;

	while (*count && plain < COLL_RECORD_PLAIN_MAX) {
		const uint64_t room = COLL_RECORD_PLAIN_MAX - plain;
		const uint64_t part = (*iov)->iov_len < room ? (*iov)->iov_len : room;

		memcpy(to + plain, (*iov)->iov_base, part);
		plain += part;
		(*iov)->iov_base = (uint8_t *)(*iov)->iov_base + part;
		(*iov)->iov_len -= part;
		if (!(*iov)->iov_len) {
			++*iov;
			--*count;
		}
	}
	if (plain)
		seal->end += coll_record_seal(&seal->sends, record, plain);
	return plain;
}

/* Seals what the owner sends next. */
static void seal_fill(struct coll_socket *socket)
{
	struct coll_seal *seal = socket->seal;
	struct iovec entries[COLL_SEND_IOV_MAX], *iov = entries;
	int count = seal->plain->send_iov(socket, entries, COLL_SEND_IOV_MAX), records;

	seal->at = seal->end = 0;
	for (records = 0; records < OUT_RECORDS && count; records++)
		seal->taken += seal_one(seal, &iov, &count);
}

static int seal_send_iov(struct coll_socket *socket, struct iovec *iov, int max)
{
	struct coll_seal *seal = socket->seal;

	coll_assert(max > 0);
	if (seal->at == seal->end)
		seal_fill(socket);
	iov[0] = (struct iovec){ seal->out + seal->at, seal->end - seal->at };
	return coll_short_io_clip(socket->engine->short_io, iov, 1, &seal->cut);
}

static bool seal_sends_quietly(const struct coll_socket *socket)
{
	return !socket->seal->cut && socket->seal->plain->sends_quietly(socket);
}

/*
 * What is sealed has its place in the stream and has been copied: for the owner it has gone, also
 * if the socket took a part only. When it has taken the rest, the owner is told of 0 bytes.
 */
static void seal_sent(struct coll_socket *socket, ssize_t result)
{
	struct coll_seal *seal = socket->seal;
	const uint32_t taken = seal->taken;

	seal->taken = 0;
	if (result < 0) {
		seal->at = seal->end = 0;
		seal->plain->sent(socket, result);
		return;
	}
	seal->at += result;
	if (seal->at < seal->end)
		coll_socket_touch(socket);
	seal->plain->sent(socket, taken);
}

/* ---- receiving ------------------------------------------------------------- */

static bool seal_wants_recv(const struct coll_socket *socket)
{
	return socket->seal->plain->wants_recv(socket);
}

static int seal_recv_iov(struct coll_socket *socket, struct iovec *iov, bool *whole)
{
	(void)socket;
	(void)iov;
	*whole = false;
	return 0;
}

/* Adds bytes to the record; returns how many. *whole: it is complete. -EBADMSG. */
static ssize_t seal_collect(struct coll_seal *seal, const uint8_t *data, size_t bytes, bool *whole)
{
	size_t size = COLL_RECORD_HEADER, part;
	int error = 0;

	if (seal->got >= COLL_RECORD_HEADER)
		error = coll_record_size(seal->in, &size);
	if (error)
		return error;
	part = size - seal->got < bytes ? size - seal->got : bytes;
	memcpy(seal->in + seal->got, data, part);
	seal->got += part;
	*whole = size > COLL_RECORD_HEADER && seal->got == size;
	return part;
}

/* Gives the owner what is in these bytes of records. Returns whether it got anything. */
static bool seal_deliver(struct coll_socket *socket, const uint8_t *data, size_t bytes)
{
	struct coll_seal *seal = socket->seal;
	bool any = false;

	while (bytes && !seal->ended) {
		bool whole = false;
		size_t plain = 0;
		ssize_t part = seal_collect(seal, data, bytes, &whole);

		if (part >= 0 && whole &&
		    coll_record_open(&seal->receives, seal->in, seal->got, &plain))
			part = -EBADMSG;
		if (part < 0) {
			seal->broken = true;
			seal->plain->received_in(socket, NULL, part);
			return true;
		}
		data += part;
		bytes -= part;
		if (!whole)
			continue;
		seal->got = 0;
		any = true;
		seal->plain->received_in(socket, seal->in + COLL_RECORD_HEADER, plain);
	}
	return any;
}

static void seal_received_in(struct coll_socket *socket, const uint8_t *data, ssize_t result)
{
	struct coll_seal *seal = socket->seal;

	if (result <= 0 || seal->broken) {
		seal->plain->received_in(socket, NULL, result <= 0 ? result : -EBADMSG);
		return;
	}
	seal->nested = true;
	if (!seal_deliver(socket, data, result))
		seal->plain->received_none(socket);
	seal->nested = false;
	if (seal->ended)
		coll_seal_free(seal);
}

static void seal_received(struct coll_socket *socket, ssize_t result)
{
	coll_assert(result <= 0);	/* all bytes come to the engine's buffers */
	seal_received_in(socket, NULL, result);
}

static void seal_received_none(struct coll_socket *socket)
{
	socket->seal->plain->received_none(socket);
}

/* ---- the socket ------------------------------------------------------------ */

void coll_seal_take_back(struct coll_socket *socket)
{
	if (!socket->seal)
		return;
	socket->ops = socket->seal->plain;
	socket->seal = NULL;
}

static void seal_detached(struct coll_socket *socket)
{
	struct coll_seal *seal = socket->seal;

	coll_seal_take_back(socket);
	seal->ended = true;
	if (!seal->nested)
		coll_seal_free(seal);
	socket->ops->detached(socket);
}

static const struct coll_socket_ops seal_ops = {
	.wants_send = seal_wants_send,
	.send_iov = seal_send_iov,
	.sends_quietly = seal_sends_quietly,
	.sent = seal_sent,
	.wants_recv = seal_wants_recv,
	.recv_iov = seal_recv_iov,
	.received = seal_received,
	.received_in = seal_received_in,
	.received_none = seal_received_none,
	.detached = seal_detached,
};

void coll_seal_attach(struct coll_seal *seal, struct coll_socket *socket)
{
	if (!seal)
		return;
	seal->plain = socket->ops;
	socket->seal = seal;
	socket->ops = &seal_ops;
}
