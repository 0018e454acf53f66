// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Handshakes of links. Accepting: peers say hellos and prove themselves, or send any bytes; no
 * connection is a link's without the proof. Connecting: the peer's published line and its answer
 * are any bytes; the connection is handed over only to a peer that has proved itself.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "libcoll/engine/memory.h"
#include "libcoll/transport/arrival.h"
#include "libcoll/transport/connect.h"
#include "libcoll/transport/listen.h"
#include "libcoll/transport/seal.h"
#include "tests/lib/two_sides.h"
#include "fuzz.h"
#include "sockets.h"

enum { PEERS = 4, STEPS_MAX = 32, WORLD = 0 };

static struct coll_context *context;		/* of side 1 */

static int published(struct coll_boot *boot, const char *key, const void *value, size_t bytes)
{
	(void)boot;
	(void)key;
	(void)value;
	(void)bytes;
	return 0;
}

static const struct coll_boot_ops boot_ops = { .name = "fuzz", .put = published };

/* ---- accepting ------------------------------------------------------------------ */

static struct peer {
	int fd;			/* -1: not connected */
	struct coll_hello hello;
	struct coll_challenge challenge;
	size_t heard;		/* bytes of the challenge */
	bool proven;
} peer[PEERS];

enum step { STEP_RAW, STEP_HELLO, STEP_PROOF, STEP_END, STEP_CHECK, STEPS };

static void hear(int fd, const void *data, size_t bytes)
{
	int i;

	for (i = 0; i < PEERS; i++)
		if (peer[i].fd == fd && bytes <= sizeof(peer[i].challenge) - peer[i].heard) {
			memcpy((uint8_t *)&peer[i].challenge + peer[i].heard, data, bytes);
			peer[i].heard += bytes;
		}
}

/* Only some of the fields are any: or no hello is taken. */
static void say_hello(struct fuzz_input *in, struct peer *p)
{
	struct coll_hello *hello = &p->hello;
	const uint8_t group = fuzz_byte(in), which = fuzz_byte(in);

	*hello = (struct coll_hello){
		.magic = COLL_WIRE_MAGIC,
		.version = COLL_WIRE_VERSION,
		.group = group % 4 ? 9 + group % 8 : 0,
		.to = 1,
	};
	hello->streams = fuzz_byte(in) % 8 ? 0 : group;
	hello->stream = hello->streams ? fuzz_byte(in) : 0;
	memcpy(hello->process, context->process, sizeof(hello->process));
	if (which < sizeof(*hello))
		((uint8_t *)hello)[which] ^= fuzz_byte(in);
	sockets_feed(p->fd, hello, sizeof(*hello));
}

static void prove(struct peer *p)
{
	struct coll_proof proof;

	coll_proof_make(&proof, &p->challenge, context->key, &p->hello, sizeof(p->hello));
	sockets_feed(p->fd, &proof, sizeof(proof));
	p->proven = p->heard == sizeof(p->challenge);
}

static void connect_peer(struct peer *p)
{
	const int fd = sockets_connect();

	*p = (struct peer){ .fd = fd };
	if (fd >= 0)
		sides_ready(1, context->listener[0].fd, POLLIN);
}

/* What an engine would report: descriptors with bytes, or with an end. */
static void serve_pending(void)
{
	size_t before;
	int i, rounds;

	for (i = 0; i < PEERS; i++)
		for (rounds = 0; rounds < 4 && peer[i].fd >= 0; rounds++) {
			before = sockets_unread(peer[i].fd);
			sides_ready(1, peer[i].fd, POLLIN);
			if (sockets_unread(peer[i].fd) == before)
				break;
		}
}

static void accept_step(struct fuzz_input *in)
{
	const uint8_t what = fuzz_byte(in);
	struct peer *p = &peer[what / STEPS % PEERS];
	const uint8_t *raw;
	size_t bytes;

	if (p->fd < 0)
		connect_peer(p);
	if (p->fd < 0 || !sockets_is_open(p->fd))
		return;
	switch ((enum step)(what % STEPS)) {
	case STEP_HELLO:
		say_hello(in, p);
		break;
	case STEP_PROOF:
		prove(p);
		break;
	case STEP_END:
		sockets_end(p->fd);
		break;
	case STEP_CHECK:
		coll_listen_check(context);
		break;
	default:
		bytes = fuzz_some(in, &raw, fuzz_byte(in));
		sockets_feed(p->fd, raw, bytes);
	}
	serve_pending();
}

static bool anybody_proved(void)
{
	int i;

	for (i = 0; i < PEERS; i++)
		if (peer[i].proven)
			return true;
	return false;
}

static void try_accepting(struct fuzz_input *in)
{
	const struct coll_mux *before = context->muxes;
	int steps, i;

	context->boot->ops = &boot_ops;
	context->boot->ranks = context->boot->local_ranks = SIDES;
	fuzz_must(!coll_listen(context), "it does not listen");
	for (i = 0; i < PEERS; i++)
		peer[i].fd = -1;
	sockets_sent = hear;
	for (steps = 0; in->bytes && steps < STEPS_MAX; steps++)
		accept_step(in);
	fuzz_must(anybody_proved() || (context->muxes == before && !context->arrivals),
		  "a connection without a proof");
	sockets_sent = NULL;
	coll_listen_stop(context);
}

/* ---- connecting ------------------------------------------------------------------ */

static struct {
	bool proves, proved, handed_over;
	struct fuzz_input *in;
} attempt_state;

/* To a hello: the right challenge, or any bytes. */
static void answer_hello(int fd, const void *data, size_t bytes)
{
	struct coll_challenge challenge;
	const uint8_t *raw;

	if (bytes != sizeof(struct coll_hello))
		return;
	attempt_state.proved = fuzz_byte(attempt_state.in) % 4;
	if (attempt_state.proved) {
		coll_challenge_make(&challenge, context->key, data, bytes);
		sockets_feed(fd, &challenge, sizeof(challenge));
		return;
	}
	bytes = fuzz_some(attempt_state.in, &raw, fuzz_byte(attempt_state.in) % 80);
	sockets_feed(fd, raw, bytes);
	sockets_end(fd);
}

static int is_connected(struct coll_connect *attempt, const struct coll_connected *connected)
{
	(void)attempt;
	fuzz_must(attempt_state.proved, "handed over to a peer without a proof");
	attempt_state.handed_over = true;
	close(connected->fd);
	coll_memory_free(connected->memory);
	coll_seal_free(connected->seal);
	return 0;
}

static void has_failed(struct coll_connect *attempt, int error)
{
	(void)attempt;
	fuzz_must(error < 0, "failed without an error");
}

static void try_connecting(struct fuzz_input *in)
{
	static char line[COLL_BOOT_VALUE_MAX + 1], *lines[SIDES] = { line, line };
	struct coll_connect attempt = {
		.context = context, .world = WORLD, .connected = is_connected, .failed = has_failed,
	};
	char **kept = context->published;
	const uint8_t *text;
	const size_t bytes = fuzz_some(in, &text, 16 * (size_t)fuzz_byte(in));
	bool shares;
	int rounds;

	memcpy(line, text, bytes);
	line[bytes] = 0;
	context->published = lines;
	attempt_state.in = in;
	sockets_sent = answer_hello;
	coll_connect_shares(context, WORLD, &shares);
	if (!coll_connect_begin(&attempt))
		for (rounds = 0; rounds < 8 && attempt.watch.armed; rounds++)
			sides_ready(1, attempt.watch.fd, rounds % 2 ? POLLIN : POLLOUT);
	sockets_sent = NULL;
	coll_connect_abandon(&attempt);
	context->published = kept;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz_input in = { data, bytes };
	const uint8_t which = fuzz_byte(&in);

	sockets_begin();
	sides_begin(false);
	context = &side[1].context;
	context->counters.refused = 1;		/* told already */
	if (which % 4)
		try_accepting(&in);
	else
		try_connecting(&in);
	sides_end();
	return 0;
}

#define PEER(number, step) ((number) * STEPS + (step))

void fuzz_seeds(take_seed *take, void *argument)
{
	static const uint8_t accepts[] = {
		1, PEER(0, STEP_HELLO), 0, 255, 1, PEER(0, STEP_PROOF), PEER(1, STEP_HELLO), 1, 255, 1,
		PEER(1, STEP_PROOF), PEER(2, STEP_HELLO), 2, 255, 1, PEER(2, STEP_END),
		PEER(3, STEP_RAW), 4, 'l', 'i', 'n', 'k', PEER(0, STEP_CHECK),
	};
	static const uint8_t connects[] =
		"\0\10node 00112233445566778899aabbccddeeff 12@34 shared 4711 10.0.0.1 fe80::1        "
		"                                                 \1\0\40";

	take(accepts, sizeof(accepts), argument);
	take(connects, sizeof(connects), argument);
}
