// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Sealed connections whose records an attacker changes, drops, repeats, moves and adds to: what
 * the receiver gets is the beginning of what was sent, and nothing behind the first change.
 */
#include <errno.h>

#include "libcoll/base/record.h"
#include "libcoll/engine/engine.h"
#include "libcoll/transport/seal.h"
#include "fuzz.h"
#include "sockets.h"

enum { RECORDS_MAX = 12, PLAIN_MAX = 400, WIRE_MAX = RECORDS_MAX * (PLAIN_MAX + 64) + 1024 };

static struct coll_context context;

static uint8_t plain[RECORDS_MAX * PLAIN_MAX], got[2 * WIRE_MAX], wire[WIRE_MAX];
static size_t plain_bytes, plain_taken, got_bytes, wire_bytes;
static ssize_t ended;

/* ---- the owner of the socket ------------------------------------------------ */

static bool owner_wants_send(struct coll_socket *socket)
{
	(void)socket;
	return plain_taken < plain_bytes;
}

static int owner_send_iov(struct coll_socket *socket, struct iovec *iov, int max)
{
	(void)socket;
	(void)max;
	*iov = (struct iovec){ plain + plain_taken, plain_bytes - plain_taken };
	return 1;
}

static bool owner_sends_quietly(const struct coll_socket *socket)
{
	(void)socket;
	return true;
}

static void owner_sent(struct coll_socket *socket, ssize_t result)
{
	(void)socket;
	plain_taken += result;
}

static void owner_received_in(struct coll_socket *socket, const uint8_t *data, ssize_t result)
{
	(void)socket;
	if (result <= 0) {
		ended = result;
		return;
	}
	fuzz_must(got_bytes + result <= sizeof(got), "more was received than was sent");
	memcpy(got + got_bytes, data, result);
	got_bytes += result;
}

static void owner_received_none(struct coll_socket *socket)
{
	(void)socket;
}

static void owner_detached(struct coll_socket *socket)
{
	(void)socket;
}

static const struct coll_socket_ops owner_ops = {
	.wants_send = owner_wants_send,
	.send_iov = owner_send_iov,
	.sends_quietly = owner_sends_quietly,
	.sent = owner_sent,
	.received_in = owner_received_in,
	.received_none = owner_received_none,
	.detached = owner_detached,
};

/* ---- the two ends ------------------------------------------------------------- */

static void open_end(struct coll_socket *socket, bool connects)
{
	static const struct coll_hello hello = { .magic = COLL_WIRE_MAGIC, .nonce = { 1, 2, 3 } };
	static const struct coll_challenge challenge = { .nonce = { 4, 5, 6 } };
	struct coll_seal *seal;

	*socket = (struct coll_socket){ .ops = &owner_ops, .engine = &context.engine };
	fuzz_must(!coll_seal_make(&context, sockets_make(), &hello, &challenge, connects, &seal) &&
		  seal, "no seal");
	coll_seal_attach(seal, socket);
}

/* Sends these bytes as one record or more, and puts them on the wire. */
static void send_plain(struct coll_socket *from, size_t bytes)
{
	struct iovec iov[COLL_SEND_IOV_MAX];

	plain_bytes += bytes;
	while (from->ops->wants_send(from)) {
		from->ops->send_iov(from, iov, COLL_SEND_IOV_MAX);
		fuzz_must(iov->iov_len <= sizeof(wire) - wire_bytes, "the records are too long");
		memcpy(wire + wire_bytes, iov->iov_base, iov->iov_len);
		wire_bytes += iov->iov_len;
		from->ops->sent(from, iov->iov_len);
	}
	coll_socket_untouch(from);
}

/* ---- the attacker ---------------------------------------------------------------- */

enum attack { ATTACK_NONE, ATTACK_BIT, ATTACK_DROP, ATTACK_REPEAT, ATTACK_SWAP, ATTACK_ADD, ATTACKS };

struct record_place {
	size_t at, bytes;
};

static void drop_bytes(size_t at, size_t bytes)
{
	memmove(wire + at, wire + at + bytes, wire_bytes - at - bytes);
	wire_bytes -= bytes;
}

static void add_bytes(size_t at, const void *data, size_t bytes)
{
	static uint8_t copy[WIRE_MAX];

	if (bytes > sizeof(wire) - wire_bytes)
		return;
	memcpy(copy, data, bytes);
	memmove(wire + at + bytes, wire + at, wire_bytes - at);
	memcpy(wire + at, copy, bytes);
	wire_bytes += bytes;
}

/* Whether it changes a byte; every attack on a whole record does. */
static bool attack(struct fuzz_input *in, const struct record_place *record, int records)
{
	const uint8_t what = fuzz_byte(in), which = fuzz_byte(in), bit = fuzz_byte(in);
	const struct record_place *one = &record[which % records];
	const uint8_t *raw;
	size_t bytes;

	switch ((enum attack)(what % ATTACKS)) {
	case ATTACK_BIT:
		wire[(which * 256u + bit) % wire_bytes] ^= 1u << what / ATTACKS % 8;
		return true;
	case ATTACK_DROP:
		drop_bytes(one->at, one->bytes);
		return true;
	case ATTACK_REPEAT:
		add_bytes(one->at, wire + one->at, one->bytes);
		return true;
	case ATTACK_SWAP:
		if (which % records == records - 1)
			return false;
		add_bytes(one->at, wire + one[1].at, one[1].bytes);
		drop_bytes(one->at + one->bytes + one[1].bytes, one[1].bytes);
		return true;
	case ATTACK_ADD:
		bytes = fuzz_some(in, &raw, bit);
		add_bytes(one->at, raw, bytes);
		return bytes;
	default:
		return false;
	}
}

static void receive_wire(struct coll_socket *to, size_t part)
{
	size_t at;

	for (at = 0; at < wire_bytes && !ended; at += part) {
		part = part < wire_bytes - at ? part : wire_bytes - at;
		to->ops->received_in(to, wire + at, part);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz_input in = { data, bytes };
	const uint8_t records = fuzz_byte(&in) % RECORDS_MAX + 1, part = fuzz_byte(&in);
	struct record_place record[RECORDS_MAX];
	static uint8_t before[WIRE_MAX];
	struct coll_socket from, to;
	size_t bytes_before;
	int i;

	sockets_begin();
	plain_bytes = plain_taken = got_bytes = wire_bytes = 0;
	ended = 0;
	strcpy(context.options.protect, "seal");
	open_end(&from, true);
	open_end(&to, false);
	for (i = 0; i < records; i++) {
		record[i].at = wire_bytes;
		send_plain(&from, fuzz_byte(&in) * PLAIN_MAX / 256 + 1);
		record[i].bytes = wire_bytes - record[i].at;
	}
	memcpy(before, wire, wire_bytes);
	bytes_before = wire_bytes;
	for (i = 0; i < 3 && wire_bytes == bytes_before; i++)
		attack(&in, record, records);
	receive_wire(&to, part + 1);
	fuzz_must(got_bytes <= plain_bytes && !memcmp(got, plain, got_bytes),
		  "what was changed is received");
	if (wire_bytes >= bytes_before && !memcmp(wire, before, bytes_before))
		fuzz_must(got_bytes == plain_bytes, "what was not changed is not received");
	else
		fuzz_must(got_bytes < plain_bytes, "a change is not noticed");
	to.ops->detached(&to);
	from.ops->detached(&from);
	return 0;
}

void fuzz_seeds(take_seed *take, void *argument)
{
	uint8_t what, seed[16] = { 3, 40, 9, 200, 0, 90 };

	for (what = 0; what < sizeof(plain) / PLAIN_MAX; what++)
		memset(plain + what * PLAIN_MAX, what + 1, PLAIN_MAX);
	for (what = ATTACK_NONE; what < ATTACKS; what++) {
		seed[6] = what;
		seed[7] = 1;
		seed[8] = 4;
		take(seed, sizeof(seed), argument);
	}
}
