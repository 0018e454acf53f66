// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A connection that this process makes to one of its node (libcoll/transport/connect.h), and offers memory
 * on: the peer takes it, or does not, or lies. And one to another node, which has several addresses. A fake
 * engine reports what a test says.
 */
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/base/descriptors.h"
#include "libcoll/base/handshake.h"
#include "libcoll/engine/engine.h"
#include "libcoll/engine/memory.h"
#include "libcoll/transport/connect.h"
#include "libcoll/transport/seal.h"
#include "libcoll/transport/shared_memory.h"
#include "fake_engine.h"

enum { PEER = 1 };

static struct coll_context context;
static struct coll_boot boot = { .ranks = 2, .local_ranks = 2 };
static struct coll_connect attempt;
static char line[160], *published[2] = { line, line };
static int peer_listens, peer;
static int connections, failures;
static struct coll_memory *shared;	/* of the connection that was made; NULL: none */

/* ---- below: an engine; above: an owner ----------------------------------------------- */

static void ready(int events)
{
	assert_true(attempt.watch.armed);
	attempt.watch.armed = false;
	attempt.watch.ready(&attempt.watch, events);
}

static int connected(struct coll_connect *of, const struct coll_connected *made)
{
	(void)of;
	connections++;
	shared = made->memory;
	close(made->fd);
	coll_seal_free(made->seal);
	return 0;
}

static void failed(struct coll_connect *of, int error)
{
	(void)of;
	(void)error;
	failures++;
}

/* ---- a peer ---------------------------------------------------------------------------- */

static int begin(void **state)
{
	static const uint8_t process[COLL_PROCESS_BYTES] = { 0x11 };
	struct coll_address address;

	(void)state;
	memset(&context, 0, sizeof(context));
	context.boot = &boot;
	context.engine = (struct coll_engine){ .ops = &fake_engine_ops, .counters = &context.counters };
	context.listens_locally = true;
	context.published = published;
	strcpy(context.node, "node");
	strcpy(context.options.protect, "proof");
	snprintf(line, sizeof(line), "node 11%0*d 1@1 memory 1", 2 * COLL_PROCESS_BYTES - 2, 0);
	coll_local_address(&address, context.key, process);
	peer_listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(peer_listens, (struct sockaddr *)&address.socket, address.bytes), 0);
	assert_int_equal(listen(peer_listens, 1), 0);
	connections = failures = 0;
	shared = NULL;
	attempt = (struct coll_connect){ .context = &context, .world = PEER, .hello = { .to = PEER },
					 .connected = connected, .failed = failed };
	return 0;
}

static int end(void **state)
{
	(void)state;
	coll_connect_abandon(&attempt);
	assert_int_equal(attempt.memory_file, -1);
	assert_null(attempt.memory);
	coll_memory_free(shared);
	close(peer);
	close(peer_listens);
	return 0;
}

/* The peer challenges, and gets the proof; returns the descriptor that came with it. */
static int offered(void)
{
	struct coll_hello hello;
	struct coll_challenge challenge;
	struct coll_proof proof;
	int fd = -1;

	assert_int_equal(coll_connect_begin(&attempt), 0);
	peer = accept(peer_listens, NULL, NULL);
	assert_true(peer >= 0);
	ready(POLLOUT);
	assert_int_equal(recv(peer, &hello, sizeof(hello), 0), sizeof(hello));
	coll_connection_accepts_descriptors(peer, true);
	assert_true(coll_challenge_make(&challenge, context.key, &hello, sizeof(hello)));
	assert_int_equal(send(peer, &challenge, sizeof(challenge), 0), sizeof(challenge));
	ready(POLLIN);
	assert_int_equal(coll_recv_with_descriptor(peer, &proof, sizeof(proof), &fd), sizeof(proof));
	assert_true(coll_proof_verify(&proof, &challenge, context.key, &hello, sizeof(hello)));
	assert_true(fd >= 0);
	return fd;
}

static void peer_answers(uint8_t taken)
{
	assert_int_equal(send(peer, &taken, 1, 0), 1);
	ready(POLLIN);
}

/* ---- tests ----------------------------------------------------------------------------- */

static void what_is_taken_is_used(void **state)
{
	struct coll_memory *of_the_peer = coll_shared_memory_take(offered());

	(void)state;
	assert_non_null(of_the_peer);
	peer_answers(1);
	assert_int_equal(connections, 1);
	assert_non_null(shared);
	coll_memory_free(of_the_peer);
}

static void what_is_not_taken_is_not(void **state)
{
	(void)state;
	close(offered());
	peer_answers(0);
	assert_int_equal(connections, 1);
	assert_null(shared);
}

/* Who could take pages out of it later gets the bytes over TCP. */
static void who_says_so_without_a_seal_is_left(void **state)
{
	const int fd = offered();

	(void)state;
	peer_answers(1);
	close(fd);
	assert_int_equal(connections, 0);
	assert_int_equal(failures, 0);
	assert_true(attempt.watch.armed);
	assert_false(coll_connection_is_unix(attempt.watch.fd));
	assert_int_equal(attempt.error, -EPROTO);
}

/* ---- several addresses ----------------------------------------------------------------- */

/* The peer is on another node, with two addresses. Returns a socket that listens at both. */
static int peer_is_far(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t bytes = sizeof(any);

	assert_int_equal(bind(listener, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(listener, 2), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&any, &bytes), 0);
	snprintf(line, sizeof(line), "other 11%0*d 1@1 shared %u 127.0.0.2 127.0.0.1", 2 * COLL_PROCESS_BYTES - 2, 0,
		 ntohs(any.sin_port));
	return listener;
}

/* Milliseconds. */
static int patience(void)
{
	socklen_t bytes = sizeof(int);
	int ms = -1;

	assert_int_equal(getsockopt(attempt.watch.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &bytes), 0);
	return ms;
}

static void what_does_not_answer_is_left_soon_for_another(void **state)
{
	const int listener = peer_is_far();

	(void)state;
	context.options.deadline_ns = 60 * COLL_SECOND;
	assert_int_equal(coll_connect_begin(&attempt), 0);
	assert_int_equal(patience(), 3000);
	ready(POLLOUT);
	assert_int_equal(patience(), 60000);		/* it is there: now it may take its time */
	peer = accept(listener, NULL, NULL);
	close(peer);
	peer = -1;
	for (attempt.again = 3; attempt.attempts < 2;)
		ready(POLLIN);
	assert_int_equal(patience(), 60000);		/* the last one */
	close(listener);
}

static void a_year_is_no_moment(void **state)
{
	const int listener = peer_is_far();

	(void)state;
	context.options.deadline_ns = COLL_DEADLINE_MAX;
	assert_int_equal(coll_connect_begin(&attempt), 0);
	ready(POLLOUT);
	assert_int_equal(patience(), INT_MAX);
	close(listener);
}

#define connect_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		connect_test(what_is_taken_is_used),
		connect_test(what_is_not_taken_is_not),
		connect_test(who_says_so_without_a_seal_is_left),
		connect_test(what_does_not_answer_is_left_soon_for_another),
		connect_test(a_year_is_no_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
