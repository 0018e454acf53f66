// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What comes over the store's connections. As its server: peers send hellos, proofs and requests,
 * right ones and any bytes, and nobody becomes a member without the proof. As a rank: the server's
 * answers are any bytes, behind its proof too. And sealed values: one that is not as it was sealed
 * is refused.
 */
#include <endian.h>
#include <errno.h>

#include "libcoll/base/clock.h"
#include "libcoll/boot/store_server.h"
#include "libcoll/boot/store_value.h"
#include "fuzz.h"
#include "sockets.h"

enum { RANKS = 3, PEERS = 4, STEPS_MAX = 64, RAW_MAX = 255 };

static const uint8_t secret[COLL_SECRET_BYTES] = "the secret of this test's job";

/* ---- the server ------------------------------------------------------------ */

static struct peer {
	struct coll_store_connection *c;
	bool proven;
} peer[PEERS];

enum step {
	STEP_RAW, STEP_HELLO, STEP_PROOF, STEP_REQUEST, STEP_END, STEP_TIME_OUT, STEPS,
};

static void connect_peer(struct coll_store *store, struct peer *p)
{
	struct coll_store_connection *c = calloc(1, sizeof(*c));

	fuzz_must(c != NULL, "out of memory");
	c->fd = sockets_make();
	c->rank = -1;
	c->deadline = COLL_FOREVER;
	strcpy(c->from, "here");
	store->connection[store->connections++] = c;
	*p = (struct peer){ c, false };
}

static struct coll_store_hello hello_of(uint32_t rank, uint32_t ranks)
{
	struct coll_store_hello hello = { .rank = htole32(rank), .ranks = htole32(ranks),
					  .job = "test" };

	memcpy(hello.magic, STORE_MAGIC, STORE_MAGIC_BYTES);
	return hello;
}

static void send_hello(struct fuzz_input *in, const struct peer *p)
{
	const uint8_t rank = fuzz_byte(in), ranks = fuzz_byte(in) % 16 ? RANKS : RANKS + 1;
	struct coll_store_hello hello = hello_of(rank, ranks);

	hello.process = fuzz_byte(in) % 2;
	sockets_feed(p->c->fd, &hello, sizeof(hello));
}

static void send_proof(const struct coll_store *store, struct peer *p)
{
	struct coll_proof proof;

	coll_proof_make(&proof, &p->c->challenge.challenge, store->key, &p->c->hello,
			sizeof(p->c->hello));
	sockets_feed(p->c->fd, &proof, sizeof(proof));
	p->proven = true;
}

/* The lengths are those of what follows, or nearly. */
static void send_request(struct fuzz_input *in, const struct peer *p)
{
	static const uint8_t zeros[STORE_REQUEST_MAX];
	struct coll_store_request request;
	uint8_t lengths[3];
	const uint8_t *text;
	size_t bytes;

	fuzz_copy(in, lengths, sizeof(lengths));
	request = (struct coll_store_request){
		.verb = htole32(lengths[0] % 8),
		.key_bytes = htole32(lengths[1] % (COLL_BOOT_KEY_MAX + 2)),
		.value_bytes = htole32(lengths[2] == 255 ? STORE_VALUE_MAX : lengths[2] % 32),
		.wait_ms = htole32(fuzz_byte(in)),
	};
	bytes = le32toh(request.key_bytes) + le32toh(request.value_bytes);
	sockets_feed(p->c->fd, &request, sizeof(request));
	if (lengths[2] == 255) {
		sockets_feed(p->c->fd, zeros, bytes);
	} else {
		bytes = fuzz_some(in, &text, bytes);
		sockets_feed(p->c->fd, text, bytes);
	}
}

/* As when the socket is readable, until it has been read. */
static void serve(struct coll_store *store, struct coll_store_connection *c)
{
	size_t before;

	do {
		before = sockets_unread(c->fd);
		coll_store_flush(store, c);
		if (!coll_store_closed(c) && !c->waits && c->out_sent == c->out_bytes)
			coll_store_read(store, c);
		coll_store_watch(store, c);
	} while (!coll_store_closed(c) && sockets_unread(c->fd) != before);
}

static void store_step(struct coll_store *store, struct fuzz_input *in)
{
	const uint8_t what = fuzz_byte(in);
	struct peer *p = &peer[what / STEPS % PEERS];
	const uint8_t *raw;
	size_t bytes;

	if (coll_store_closed(p->c))
		return;
	switch ((enum step)(what % STEPS)) {
	case STEP_HELLO:
		send_hello(in, p);
		break;
	case STEP_PROOF:
		send_proof(store, p);
		break;
	case STEP_REQUEST:
		send_request(in, p);
		break;
	case STEP_END:
		sockets_end(p->c->fd);
		break;
	case STEP_TIME_OUT:
		if (p->c->waits || p->c->rank < 0)
			coll_store_time_out(store, p->c);
		break;
	default:
		bytes = fuzz_some(in, &raw, fuzz_byte(in) % RAW_MAX);
		sockets_feed(p->c->fd, raw, bytes);
	}
	if (!coll_store_closed(p->c))
		serve(store, p->c);
}

static void try_server(struct fuzz_input *in)
{
	static struct coll_store *store;	/* static: it is seen after a crash */
	int steps, i;

	sockets_begin();
	fuzz_must(!coll_store_open(&store, sockets_make(), RANKS, "test", secret), "no store");
	store->refused = 1;	/* told already */
	store->connection = calloc(PEERS, sizeof(*store->connection));
	for (i = 0; i < PEERS; i++)
		connect_peer(store, &peer[i]);
	for (steps = 0; in->bytes && steps < STEPS_MAX; steps++)
		store_step(store, in);
	for (i = 0; i < PEERS; i++)
		fuzz_must(peer[i].c->rank < 0 || peer[i].proven, "a member without a proof");
	fuzz_must(store->table.bytes <= STORE_BYTES_MAX, "it keeps too much");
	fuzz_must(coll_store_present(store) <= RANKS, "more ranks than there are");
	coll_store_close(store);
}

/* ---- a rank ----------------------------------------------------------------- */

/* The server proves itself when the rank says hello. */
static void prove_server(int fd, const void *data, size_t bytes)
{
	struct coll_store_challenge challenge;
	struct coll_store_welcome welcome = { .status = 0, .ranks = htole32(RANKS) };
	uint8_t key[COLL_KEY_BYTES];

	if (bytes != sizeof(struct coll_store_hello))
		return;
	coll_store_key(key, secret);
	memcpy(challenge.magic, STORE_MAGIC, STORE_MAGIC_BYTES);
	coll_challenge_make(&challenge.challenge, key, data, bytes);
	sockets_feed(fd, &challenge, sizeof(challenge));
	sockets_feed(fd, &welcome, sizeof(welcome));
	sockets_sent = NULL;
}

static void try_rank(struct fuzz_input *in)
{
	const struct coll_store_identity identity = { .rank = 1, .ranks = RANKS, .job = "test",
						      .secret = secret };
	const uint8_t how = fuzz_byte(in);
	struct coll_store_client *client;
	char value[64], missing[32];
	size_t bytes = how % 64;
	int error;

	sockets_begin();
	sockets_sent = how % 8 ? prove_server : NULL;
	error = coll_store_join(&client, &identity, "127.0.0.1:4711", 0);
	if (error)
		return;
	sockets_feed(SOCKETS_FIRST, in->data, in->bytes);
	if (how & 64)
		sockets_end(SOCKETS_FIRST);
	coll_store_put(client, "key", "value", 5);
	error = coll_store_get(client, "key", value, &bytes, 0);
	fuzz_must(error || bytes <= how % 64u, "more than there is room for");
	coll_store_all(client, missing, sizeof(missing), 0);
	fuzz_must(memchr(missing, 0, sizeof(missing)) != NULL, "a text without an end");
	coll_store_leave(client);
}

/* ---- sealed values ----------------------------------------------------------- */

static void try_value(struct fuzz_input *in)
{
	uint8_t to[STORE_VALUE_SEALED_MAX], plain[64], *sealed;
	const uint8_t capacity = fuzz_byte(in), bit = fuzz_byte(in), cut = fuzz_byte(in);
	size_t bytes = capacity % sizeof(plain), sealed_bytes, own = in->bytes;
	int made, error;

	if (own > COLL_BOOT_VALUE_MAX)
		return;
	made = coll_store_value_seal(secret, "key", in->data, own, to);
	fuzz_must(made > 0, "a value is not sealed");
	sealed_bytes = cut % 4 ? (size_t)made : (size_t)cut % made;
	sealed = malloc(sealed_bytes + !sealed_bytes);
	memcpy(sealed, to, sealed_bytes);
	if (sealed_bytes)
		sealed[bit / 8 % sealed_bytes] ^= 1u << bit % 8;
	error = coll_store_value_open(secret, "key", sealed, sealed_bytes, plain, &bytes);
	fuzz_must(error == -EBADMSG, "a changed value is opened");
	free(sealed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz_input in = { data, bytes };
	const uint8_t which = fuzz_byte(&in);

	if (which % 8 == 6)
		try_value(&in);
	else if (which % 8 == 7)
		try_rank(&in);
	else
		try_server(&in);
	return 0;
}

#define PEER(number, step) ((number) * STEPS + (step))

void fuzz_seeds(take_seed *take, void *argument)
{
	static const uint8_t joins[] = {
		0, PEER(0, STEP_HELLO), 0, 1, 0, PEER(0, STEP_PROOF), 0,
		PEER(1, STEP_HELLO), 1, 1, 0, PEER(1, STEP_PROOF), 0,
		PEER(0, STEP_REQUEST), STORE_GET, 3, 0, 9, 'k', 'e', 'y',
		PEER(1, STEP_REQUEST), STORE_PUT, 3, 5, 0, 'k', 'e', 'y', 'v', 'a', 'l', 'u', 'e',
		PEER(1, STEP_REQUEST), STORE_PUT, 3, 1, 0, 'k', 'e', 'y', 'x',
		PEER(0, STEP_REQUEST), STORE_ALL, 0, 0, 9, PEER(0, STEP_TIME_OUT),
		PEER(2, STEP_HELLO), 2, 1, 0, PEER(2, STEP_PROOF), 0,
		PEER(1, STEP_REQUEST), STORE_ALL, 0, 0, 9,
		PEER(1, STEP_REQUEST), STORE_LEAVE, 0, 0, 0, PEER(0, STEP_END),
	};
	static const uint8_t refused[] = {
		0, PEER(0, STEP_HELLO), 9, 0, 0, PEER(0, STEP_PROOF), PEER(1, STEP_RAW), 8, 'c', 'o',
		'l', 'l', 's', 't', 'o', '3', PEER(1, STEP_END), PEER(2, STEP_TIME_OUT),
	};
	static const uint8_t replies[] = {
		7, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 'v', 'a', 'l', 'u', 'e',
		0x92, 0xff, 0xff, 0xff, 3, 0, 0, 0, '0', ',', '2',
	};
	static const uint8_t value[] = { 6, 40, 13, 0, 'v', 'a', 'l', 'u', 'e' };

	take(joins, sizeof(joins), argument);
	take(refused, sizeof(refused), argument);
	take(replies, sizeof(replies), argument);
	take(value, sizeof(value), argument);
}
