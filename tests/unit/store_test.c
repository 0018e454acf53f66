// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The store: what it promises to friends, and what unauthenticated peers cannot do to it.
 * Length: all of it is about one server, reached by the same few helpers.
 */
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "libcoll/boot/store.h"
#include "libcoll/boot/store_server.h"
#include "libcoll/boot/store_wire.h"

enum { RANKS = 5 };

static const uint8_t secret[COLL_SECRET_BYTES] = "the secret of this test's job";

struct server {
	struct coll_store *store;
	char address[COLL_STORE_ADDRESS_MAX];
	pthread_t thread;
	atomic_bool stop;
};

static uint64_t in_ms(unsigned int ms)
{
	return coll_now() + ms * 1000000ull;
}

static void *serve(void *argument)
{
	struct server *server = argument;

	while (!server->stop)
		coll_store_poll(server->store, 10);
	return NULL;
}

static void server_start_at(struct server *server, const char *address)
{
	int fd;

	assert_int_equal(coll_store_listen(address, &fd), 0);
	assert_int_equal(coll_store_address(fd, server->address, sizeof(server->address)), 0);
	assert_int_equal(coll_store_open(&server->store, fd, RANKS, "test", secret), 0);
	server->stop = false;
	pthread_create(&server->thread, NULL, serve, server);
}

static int server_start(void **state)
{
	struct server *server = calloc(1, sizeof(*server));

	*state = server;
	server_start_at(server, "127.0.0.1:0");
	return 0;
}

static void server_halt(struct server *server)
{
	server->stop = true;
	pthread_join(server->thread, NULL);
}

static int server_stop(void **state)
{
	struct server *server = *state;

	server_halt(server);
	coll_store_close(server->store);
	free(server);
	return 0;
}

static struct coll_store_identity rank_of_job(int rank)
{
	return (struct coll_store_identity){ .rank = rank, .ranks = RANKS, .job = "test",
					.secret = secret };
}

static struct coll_store_client *join(struct server *server, int rank)
{
	struct coll_store_identity identity = rank_of_job(rank);
	struct coll_store_client *client = NULL;

	assert_int_equal(coll_store_join(&client, &identity, server->address, in_ms(5000)), 0);
	return client;
}

static void assert_value(struct coll_store_client *client, const char *key, const char *want)
{
	char value[STORE_VALUE_MAX];
	size_t bytes = sizeof(value);

	assert_int_equal(coll_store_get(client, key, value, &bytes, in_ms(5000)), 0);
	assert_int_equal(bytes, strlen(want));
	assert_memory_equal(value, want, bytes);
}

static void what_is_put_is_got(void **state)
{
	struct coll_store_client *a = join(*state, 0), *b = join(*state, 1);
	char small[2];
	size_t bytes = sizeof(small);

	assert_int_equal(coll_store_put(a, "key", "value", 5), 0);
	assert_value(b, "key", "value");
	assert_int_equal(coll_store_put(b, "key", "value", 5), 0);
	assert_int_equal(coll_store_put(b, "key", "other", 5), -EEXIST);
	assert_value(a, "key", "value");
	assert_int_equal(coll_store_put(a, "empty", "", 0), 0);
	assert_value(b, "empty", "");
	assert_int_equal(coll_store_get(b, "key", small, &bytes, in_ms(5000)), -EMSGSIZE);
	assert_int_equal(bytes, 5);
	assert_value(b, "key", "value");
	coll_store_leave(a);
	coll_store_leave(b);
}

static void what_is_forgotten_may_be_put_again(void **state)
{
	struct coll_store_client *a = join(*state, 0), *b = join(*state, 1);
	char value[8];
	size_t bytes = sizeof(value);

	assert_int_equal(coll_store_put(a, "key", "value", 5), 0);
	assert_int_equal(coll_store_put(a, "other", "stays", 5), 0);
	assert_int_equal(coll_store_forget(b, "key"), 0);
	assert_int_equal(coll_store_forget(b, "none"), 0);
	assert_int_equal(coll_store_forget(b, ""), -EINVAL);
	assert_int_equal(coll_store_get(a, "key", value, &bytes, in_ms(10)), -ETIMEDOUT);
	assert_int_equal(coll_store_put(b, "key", "again", 5), 0);
	assert_value(a, "key", "again");
	assert_value(a, "other", "stays");
	coll_store_leave(a);
	coll_store_leave(b);
}

static void sizes_are_bounded(void **state)
{
	struct coll_store_client *a = join(*state, 0);
	char key[COLL_BOOT_KEY_MAX + 2], value[STORE_VALUE_MAX + 1];
	size_t bytes = sizeof(value);

	memset(value, 'v', sizeof(value));
	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	assert_int_equal(coll_store_put(a, key, "v", 1), -EINVAL);
	assert_int_equal(coll_store_get(a, key, value, &bytes, in_ms(100)), -EINVAL);
	assert_int_equal(coll_store_put(a, "", "v", 1), -EINVAL);
	assert_int_equal(coll_store_put(a, "k", value, sizeof(value)), -EINVAL);
	key[sizeof(key) - 2] = '\0';
	assert_int_equal(coll_store_put(a, key, value, STORE_VALUE_MAX), 0);
	assert_int_equal(coll_store_get(a, key, value, &bytes, in_ms(5000)), 0);
	assert_int_equal(bytes, STORE_VALUE_MAX);
	coll_store_leave(a);
}

static void *put_later(void *argument)
{
	struct coll_store_client *client = argument;

	usleep(100000);
	assert_int_equal(coll_store_put(client, "late", "value", 5), 0);
	return NULL;
}

static void get_waits_for_put(void **state)
{
	struct coll_store_client *a = join(*state, 0), *b = join(*state, 1);
	pthread_t thread;

	pthread_create(&thread, NULL, put_later, a);
	assert_value(b, "late", "value");
	pthread_join(thread, NULL);
	coll_store_leave(a);
	coll_store_leave(b);
}

static void get_ends_at_its_deadline(void **state)
{
	struct coll_store_client *a = join(*state, 0);
	char value[8];
	size_t bytes = sizeof(value);
	uint64_t start = coll_now();

	assert_int_equal(coll_store_get(a, "never", value, &bytes, in_ms(400)), -ETIMEDOUT);
	assert_in_range(coll_now() - start, COLL_SECOND / 4, 10 * COLL_SECOND);
	assert_int_equal(coll_store_get(a, "never", value, &bytes, coll_now()), -ETIMEDOUT);
	assert_int_equal(coll_store_put(a, "never", "now", 3), 0);
	assert_value(a, "never", "now");
	coll_store_leave(a);
}

/* It gets no CPU for longer than a rank waits for an answer; what it answers then is not lost on it. */
static void a_server_that_stood_still_is_asked_again(void **state)
{
	struct server *server = *state;
	struct coll_store_client *client = join(server, 1);
	char value[8];
	size_t bytes = sizeof(value);
	int i;

	assert_int_equal(coll_store_put(client, "first", "1", 1), 0);
	server_halt(server);
	assert_int_equal(coll_store_get(client, "first", value, &bytes, in_ms(10)), -ETIMEDOUT);
	server->stop = false;
	pthread_create(&server->thread, NULL, serve, server);
	for (i = 0; i < 3; i++) {
		assert_int_equal(coll_store_put(client, "second", "22", 2), 0);
		assert_value(client, "second", "22");
		assert_value(client, "first", "1");
	}
	bytes = sizeof(value);
	assert_int_equal(coll_store_get(client, "none", value, &bytes, in_ms(10)), -ETIMEDOUT);
	assert_value(client, "second", "22");
	coll_store_leave(client);
}

/* A put has no deadline of its own: it has that of the job. */
static void a_server_that_stands_still_holds_no_put(void **state)
{
	struct coll_store_identity identity = rank_of_job(0);
	struct server *server = *state;
	struct coll_store_client *client;
	uint64_t start;

	identity.timeout = COLL_SECOND;
	assert_int_equal(coll_store_join(&client, &identity, server->address, in_ms(5000)), 0);
	server_halt(server);
	start = coll_now();
	assert_int_equal(coll_store_put(client, "key", "value", 5), -ETIMEDOUT);
	assert_in_range(coll_now() - start, COLL_SECOND, 20 * COLL_SECOND);
	server->stop = false;
	pthread_create(&server->thread, NULL, serve, server);
	assert_int_equal(coll_store_put(client, "other", "value", 5), -ETIMEDOUT);
	coll_store_leave(client);
}

static void who_is_missing_is_named(void **state)
{
	struct coll_store_client *a = join(*state, 0), *c = join(*state, 2), *rest[3];
	char missing[64];

	assert_int_equal(coll_store_all(a, missing, sizeof(missing), in_ms(300)), -ETIMEDOUT);
	assert_string_equal(missing, "1, 3-4");
	rest[0] = join(*state, 1);
	rest[1] = join(*state, 3);
	rest[2] = join(*state, 4);
	assert_int_equal(coll_store_all(a, missing, sizeof(missing), in_ms(5000)), 0);
	assert_string_equal(missing, "");
	coll_store_leave(a);
	coll_store_leave(c);
	coll_store_leave(rest[0]);
	coll_store_leave(rest[1]);
	coll_store_leave(rest[2]);
}

static void a_second_stay_has_its_own_keys(void **state)
{
	struct coll_store_client *a = join(*state, 0), *b = join(*state, 1), *again;

	assert_int_equal(coll_store_put(a, "key", "first", 5), 0);
	again = join(*state, 0);
	assert_int_equal(coll_store_put(again, "key", "second", 6), 0);
	assert_value(b, "key", "first");
	assert_value(again, "key", "second");
	coll_store_leave(a);
	coll_store_leave(b);
	coll_store_leave(again);
}

/* A program may open contexts without end. What the first ranks put is there until the last have left. */
static void an_ended_stay_holds_no_memory(void **state)
{
	struct server *server = *state;
	struct coll_store_client *client[RANKS], *next;
	int rank;

	for (rank = 0; rank < RANKS; rank++)
		client[rank] = join(server, rank);
	next = join(server, 0);
	for (rank = 0; rank < RANKS - 1; rank++) {
		assert_int_equal(coll_store_put(client[rank], "key", "value", 5), 0);
		coll_store_leave(client[rank]);
	}
	assert_int_equal(coll_store_put(next, "key", "other", 5), 0);
	assert_value(client[RANKS - 1], "key", "value");
	server_halt(server);
	assert_int_equal(server->store->table.bytes, 2 * (sizeof(struct coll_store_entry) + 8));
	coll_store_leave(client[RANKS - 1]);
	for (rank = 0; rank < 10; rank++)
		coll_store_poll(server->store, 10);
	assert_int_equal(server->store->table.bytes, sizeof(struct coll_store_entry) + 8);
	server->stop = false;
	pthread_create(&server->thread, NULL, serve, server);
	assert_value(next, "key", "other");
	coll_store_leave(next);
}

static void the_server_knows_when_all_have_left(void **state)
{
	struct server *server = *state;
	struct coll_store_client *client[RANKS];
	int rank;

	for (rank = 0; rank < RANKS; rank++)
		client[rank] = join(server, rank);
	coll_store_leave(client[0]);
	usleep(100000);
	server_halt(server);
	assert_true(coll_store_left(server->store, 0));
	assert_false(coll_store_left(server->store, 1));
	assert_int_equal(coll_store_present(server->store), RANKS - 1);
	server->stop = false;
	pthread_create(&server->thread, NULL, serve, server);
	for (rank = 1; rank < RANKS; rank++)
		coll_store_leave(client[rank]);
	usleep(100000);
	server_halt(server);
	assert_true(coll_store_met(server->store));
	assert_int_equal(coll_store_present(server->store), 0);
	server->stop = false;
	pthread_create(&server->thread, NULL, serve, server);
}

static int try_join(struct server *server, const struct coll_store_identity *identity)
{
	struct coll_store_client *client = NULL;
	int err = coll_store_join(&client, identity, server->address, in_ms(5000));

	coll_store_leave(client);
	return err;
}

static void who_does_not_belong_is_refused(void **state)
{
	static const uint8_t guess[COLL_SECRET_BYTES] = "a guess";
	struct coll_store_identity identity = rank_of_job(1);

	identity.secret = guess;
	assert_int_equal(try_join(*state, &identity), -EACCES);
	identity = rank_of_job(1);
	identity.job = "another";
	assert_int_equal(try_join(*state, &identity), -EACCES);
	identity = rank_of_job(1);
	identity.ranks = RANKS + 1;
	assert_int_equal(try_join(*state, &identity), -EPROTO);
	identity = rank_of_job(RANKS);
	assert_int_equal(try_join(*state, &identity), -EPROTO);
	identity = rank_of_job(1);
	assert_int_equal(try_join(*state, &identity), 0);
}

static void two_processes_are_not_one_rank(void **state)
{
	struct coll_store_client *a = join(*state, 1);
	struct coll_store_identity identity = rank_of_job(1);
	int status;

	if (!fork())
		_exit(try_join(*state, &identity) == -EEXIST ? 0 : 1);
	wait(&status);
	assert_int_equal(status, 0);
	coll_store_leave(a);
}

/* Many contexts a process are many connections a rank: none takes another's place. */
static void a_rank_may_be_here_often(void **state)
{
	struct coll_store_client *client[4 * RANKS + 100];
	const int count = sizeof(client) / sizeof(*client);
	int i;

	for (i = 0; i < count; i++)
		client[i] = join(*state, i % RANKS);
	assert_int_equal(coll_store_put(client[0], "key", "value", 5), 0);
	for (i = 0; i < RANKS; i++)	/* those of the same stay */
		assert_value(client[i], "key", "value");
	for (i = 0; i < count; i++)
		coll_store_leave(client[i]);
}

/* ---- unauthenticated peers ------------------------------------------------ */

static int plain_connect(const struct server *server)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons(atoi(strrchr(server->address, ':') + 1));
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void silent_peers_block_nobody(void **state)
{
	int fd[200], i;
	struct coll_store_client *a;

	for (i = 0; i < 200; i++)
		fd[i] = plain_connect(*state);
	a = join(*state, 0);
	assert_int_equal(coll_store_put(a, "key", "value", 5), 0);
	assert_value(a, "key", "value");
	coll_store_leave(a);
	for (i = 0; i < 200; i++)
		close(fd[i]);
}

static void slow_peers_are_refused(void **state)
{
	struct timeval timeout = { .tv_sec = 10 };
	int fd = plain_connect(*state);
	uint64_t start = coll_now();
	char byte;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	assert_int_equal(send(fd, STORE_MAGIC, 3, 0), 3);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	assert_in_range(coll_now() - start, 4 * COLL_SECOND, 9 * COLL_SECOND);
	close(fd);
}

/* A connection before its proof. */
struct half {
	int fd;
	struct coll_store_hello hello;
	struct coll_store_challenge challenge;
};

static void half_hello(struct half *half, int rank)
{
	half->hello = (struct coll_store_hello){ .rank = htole32(rank), .ranks = htole32(RANKS),
						 .process = htole32(getpid()), .job = "test" };
	memcpy(half->hello.magic, STORE_MAGIC, STORE_MAGIC_BYTES);
	assert_int_equal(send(half->fd, &half->hello, sizeof(half->hello), 0),
			 sizeof(half->hello));
}

static void half_prove(struct half *half)
{
	struct coll_store_welcome welcome;
	uint8_t key[COLL_KEY_BYTES];
	struct coll_proof proof;

	coll_store_key(key, secret);
	coll_proof_make(&proof, &half->challenge.challenge, key, &half->hello,
			sizeof(half->hello));
	assert_int_equal(send(half->fd, &proof, sizeof(proof), MSG_NOSIGNAL), sizeof(proof));
	assert_int_equal(recv(half->fd, &welcome, sizeof(welcome), MSG_WAITALL), sizeof(welcome));
	assert_int_equal(welcome.status, 0);
}

static void half_read_challenge(struct half *half)
{
	assert_int_equal(recv(half->fd, &half->challenge, sizeof(half->challenge), MSG_WAITALL),
			 sizeof(half->challenge));
}

/* A connection that has proven the secret, to be misused. */
static int member_connect(struct server *server, int rank)
{
	struct half half = { .fd = plain_connect(server) };

	half_hello(&half, rank);
	half_read_challenge(&half);
	half_prove(&half);
	return half.fd;
}

/* More than the store keeps; it has seen them all when this returns. */
enum { CROWD = 300 };

static void crowd_connect(struct server *server, struct half crowd[CROWD], bool hello)
{
	int i;

	for (i = 0; i < CROWD; i++) {
		crowd[i].fd = plain_connect(server);
		if (hello)
			half_hello(&crowd[i], 1);
	}
	coll_store_leave(join(server, 1));
}

static void crowd_close(struct half crowd[CROWD])
{
	int i;

	for (i = 0; i < CROWD; i++)
		close(crowd[i].fd);
}

static void a_handshake_outlives_silent_peers(void **state)
{
	static struct half crowd[CROWD];
	struct half half = { .fd = plain_connect(*state) };

	half_hello(&half, 0);
	half_read_challenge(&half);
	crowd_connect(*state, crowd, false);
	half_prove(&half);
	close(half.fd);
	crowd_close(crowd);
}

static void a_connection_outlives_peers_that_only_say_hello(void **state)
{
	static struct half crowd[CROWD];
	struct half half = { .fd = plain_connect(*state) };

	crowd_connect(*state, crowd, true);
	half_hello(&half, 0);
	half_read_challenge(&half);
	half_prove(&half);
	close(half.fd);
	crowd_close(crowd);
}

static bool server_hangs_up(int fd)
{
	struct timeval timeout = { .tv_sec = 3 };
	char byte;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	return recv(fd, &byte, 1, 0) == 0 || errno == ECONNRESET;
}

static void malformed_requests_end_their_connection(void **state)
{
	static const struct coll_store_request bad[] = {
		{ .verb = 0 },
		{ .verb = STORE_VERBS },
		{ .verb = UINT32_MAX },
		{ .verb = STORE_PUT },
		{ .verb = STORE_PUT, .key_bytes = COLL_BOOT_KEY_MAX + 1 },
		{ .verb = STORE_PUT, .key_bytes = UINT32_MAX },
		{ .verb = STORE_PUT, .key_bytes = 1, .value_bytes = STORE_VALUE_MAX + 1 },
		{ .verb = STORE_PUT, .key_bytes = 1, .value_bytes = UINT32_MAX },
		{ .verb = STORE_GET },
		{ .verb = STORE_GET, .key_bytes = 1, .value_bytes = 1 },
		{ .verb = STORE_ALL, .key_bytes = 1 },
		{ .verb = STORE_LEAVE, .value_bytes = 1 },
	};
	struct coll_store_client *a = join(*state, 0);
	size_t i;
	int fd;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		fd = member_connect(*state, 1);
		assert_int_equal(send(fd, &bad[i], sizeof(bad[i]), 0), sizeof(bad[i]));
		assert_true(server_hangs_up(fd));
		close(fd);
	}
	assert_int_equal(coll_store_put(a, "key", "value", 5), 0);
	assert_value(a, "key", "value");
	coll_store_leave(a);
}

static uint32_t random_next(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/* Half noise, half requests with a bit wrong, in pieces. */
static void send_hostile(int fd, uint32_t *seed)
{
	struct coll_store_request request;
	uint8_t data[512];
	size_t bytes = 1 + random_next(seed) % sizeof(data), i;

	for (i = 0; i < bytes; i++)
		data[i] = random_next(seed);
	if (random_next(seed) % 2) {
		request.verb = htole32(1 + random_next(seed) % 3);
		request.key_bytes = htole32(random_next(seed) % 40);
		request.value_bytes = htole32(random_next(seed) % 300);
		request.wait_ms = htole32(random_next(seed) % 50);
		memcpy(data, &request, sizeof(request));
	}
	send(fd, data, bytes, MSG_NOSIGNAL);
}

static void noise_harms_nobody(void **state)
{
	struct coll_store_client *a = join(*state, 0);
	uint32_t seed = 20250607;
	char key[32];
	int round, piece, fd;

	for (round = 0; round < 300; round++) {
		fd = round % 2 ? member_connect(*state, 1 + round % (RANKS - 1)) :
				 plain_connect(*state);
		for (piece = random_next(&seed) % 4; piece >= 0; piece--)
			send_hostile(fd, &seed);
		if (round % 10 == 0) {
			snprintf(key, sizeof(key), "key/%d", round);
			assert_int_equal(coll_store_put(a, key, key, strlen(key)), 0);
			assert_value(a, key, key);
		}
		close(fd);
	}
	coll_store_leave(a);
}

/* ---- servers that are none ------------------------------------------------ */

struct impostor {
	int fd;
	enum { SILENT, ANOTHER_PROGRAM, WITHOUT_SECRET } kind;
	size_t heard;		/* bytes, besides the hello */
};

static void *impostor_main(void *argument)
{
	struct impostor *impostor = argument;
	struct coll_store_challenge challenge = { .challenge.nonce = { 1 } };
	struct coll_store_welcome welcome = { .status = 0 };
	struct coll_store_hello hello;
	char more[256];
	ssize_t got;
	int fd;

	/* The listening socket does not block. */
	while ((fd = accept(impostor->fd, NULL, NULL)) < 0 && errno == EAGAIN)
		usleep(1000);
	if (impostor->kind == WITHOUT_SECRET)
		memcpy(challenge.magic, STORE_MAGIC, STORE_MAGIC_BYTES);
	recv(fd, &hello, sizeof(hello), MSG_WAITALL);
	if (impostor->kind != SILENT) {
		send(fd, &challenge, sizeof(challenge), MSG_NOSIGNAL);
		send(fd, &welcome, sizeof(welcome), MSG_NOSIGNAL);
	}
	while ((got = recv(fd, more, sizeof(more), 0)) > 0)
		impostor->heard += got;
	close(fd);
	return NULL;
}

static int join_impostor(int kind)
{
	struct impostor impostor = { .kind = kind };
	struct coll_store_identity identity = rank_of_job(0);
	struct coll_store_client *client = NULL;
	char address[COLL_STORE_ADDRESS_MAX];
	pthread_t thread;
	int err;

	assert_int_equal(coll_store_listen("127.0.0.1:0", &impostor.fd), 0);
	assert_int_equal(coll_store_address(impostor.fd, address, sizeof(address)), 0);
	pthread_create(&thread, NULL, impostor_main, &impostor);
	err = coll_store_join(&client, &identity, address, in_ms(600));
	coll_store_leave(client);
	pthread_join(thread, NULL);
	close(impostor.fd);
	assert_int_equal(impostor.heard, 0);
	return err;
}

static void an_impostor_is_not_believed(void **state)
{
	(void)state;
	assert_int_equal(join_impostor(WITHOUT_SECRET), -EACCES);
	assert_int_equal(join_impostor(ANOTHER_PROGRAM), -EBADMSG);
	assert_int_equal(join_impostor(SILENT), -ETIMEDOUT);
}

/* A handshake recorded with one server, replayed to it, and by a client without the secret. */
static void a_recorded_handshake_joins_nothing(void **state)
{
	struct coll_store_hello hello = { .ranks = htole32(RANKS), .process = htole32(getpid()),
					  .job = "test" };
	struct coll_store_challenge challenge;
	uint8_t key[COLL_KEY_BYTES];
	struct coll_proof proof;
	struct server *server = *state;
	int round, fd;

	memcpy(hello.magic, STORE_MAGIC, STORE_MAGIC_BYTES);
	coll_store_key(key, secret);
	for (round = 0; round < 3; round++) {
		struct coll_store_welcome welcome;

		fd = plain_connect(server);
		assert_int_equal(send(fd, &hello, sizeof(hello), 0), sizeof(hello));
		assert_int_equal(recv(fd, &challenge, sizeof(challenge), MSG_WAITALL),
				 sizeof(challenge));
		if (!round)
			coll_proof_make(&proof, &challenge.challenge, key, &hello, sizeof(hello));
		if (round == 2)
			memcpy(proof.bytes, challenge.challenge.proof, sizeof(proof.bytes));
		assert_int_equal(send(fd, &proof, sizeof(proof), 0), sizeof(proof));
		assert_int_equal(recv(fd, &welcome, sizeof(welcome), MSG_WAITALL),
				 round ? 0 : sizeof(welcome));
		close(fd);
	}
	assert_int_equal(coll_store_refused(server->store), 2);
}

/* ---- names ------------------------------------------------------------------ */

static int resolver_says;	/* of names; 0: what it does */

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(__typeof__(real))dlsym(RTLD_NEXT, "getaddrinfo");

	return resolver_says && !(hints->ai_flags & AI_NUMERICHOST) ? resolver_says : real(host, port, hints, found);
}

/* A name may be known, or a server of names be well, later; what is written so is an address in any case. */
static void a_resolver_that_fails_does_not_make_an_address_malformed(void **state)
{
	static const int says[][2] = { { EAI_NONAME, -ENOENT }, { EAI_AGAIN, -EAGAIN }, { EAI_FAIL, -EAGAIN },
				       { EAI_SYSTEM, -EAGAIN }, { EAI_ADDRFAMILY, -ENOENT },
				       { EAI_MEMORY, -ENOMEM } };
	struct addrinfo *found;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(says) / sizeof(*says); i++) {
		resolver_says = says[i][0];
		assert_int_equal(coll_store_resolve("node17:4711", false, &found), says[i][1]);
	}
	resolver_says = 0;
	assert_int_equal(coll_store_resolve("node17", false, &found), -EINVAL);
}

static void it_serves_ipv6(void **state)
{
	struct server server;
	struct coll_store_client *a;
	int fd;

	(void)state;
	if (coll_store_listen("[::1]:0", &fd)) {
		print_message("no IPv6 here: skipped\n");
		skip();
	}
	close(fd);
	server_start_at(&server, "[::1]:0");
	assert_int_equal(server.address[0], '[');
	a = join(&server, 0);
	assert_int_equal(coll_store_put(a, "key", "value", 5), 0);
	assert_value(a, "key", "value");
	coll_store_leave(a);
	server_halt(&server);
	coll_store_close(server.store);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, server_start, server_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SERVER(what_is_put_is_got),
		WITH_SERVER(what_is_forgotten_may_be_put_again),
		WITH_SERVER(sizes_are_bounded),
		WITH_SERVER(get_waits_for_put),
		WITH_SERVER(get_ends_at_its_deadline),
		WITH_SERVER(a_server_that_stood_still_is_asked_again),
		WITH_SERVER(a_server_that_stands_still_holds_no_put),
		WITH_SERVER(who_is_missing_is_named),
		WITH_SERVER(a_second_stay_has_its_own_keys),
		WITH_SERVER(the_server_knows_when_all_have_left),
		WITH_SERVER(an_ended_stay_holds_no_memory),
		WITH_SERVER(who_does_not_belong_is_refused),
		WITH_SERVER(two_processes_are_not_one_rank),
		WITH_SERVER(a_rank_may_be_here_often),
		WITH_SERVER(silent_peers_block_nobody),
		WITH_SERVER(a_handshake_outlives_silent_peers),
		WITH_SERVER(a_connection_outlives_peers_that_only_say_hello),
		WITH_SERVER(slow_peers_are_refused),
		WITH_SERVER(malformed_requests_end_their_connection),
		WITH_SERVER(noise_harms_nobody),
		cmocka_unit_test(an_impostor_is_not_believed),
		cmocka_unit_test_setup_teardown(a_recorded_handshake_joins_nothing, server_start,
						server_stop),
		cmocka_unit_test(it_serves_ipv6),
		cmocka_unit_test(a_resolver_that_fails_does_not_make_an_address_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
