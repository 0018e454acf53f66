// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Connections that are accepted and nobody's yet (libcoll/transport/pending.h), and how many are
 * accepted at a time. A fake engine reports what a test says.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/link/link.h"
#include "libcoll/transport/channel.h"
#include "libcoll/transport/listen.h"
#include "libcoll/transport/pending.h"
#include "libcoll/transport/shared_memory.h"

enum { MANY = 100, AT_A_TIME = 16, PENDING_MAX = 4096, NOBODY = 65534,
       OF_A_RANK = 1 + 16 + 8 };

static struct coll_context context;
static struct coll_boot boot;
static int strangers[MANY];

/* ---- below: an engine; above: a store ----------------------------------------------- */

static struct coll_watch *latest;	/* that the engine was given */
static int unwatched;

static int fake_watch(struct coll_engine *engine, struct coll_watch *watch, int events)
{
	(void)events;
	latest = watch;
	watch->engine = engine;
	watch->armed = true;
	return 0;
}

static void fake_unwatch(struct coll_engine *engine, struct coll_watch *watch)
{
	(void)engine;
	assert_true(fcntl(watch->fd, F_GETFD) >= 0);	/* epoll cannot remove one that is closed */
	watch->armed = false;
	unwatched++;
}

static int fake_attach(struct coll_socket *socket)
{
	(void)socket;
	return 0;
}

static void fake_detach(struct coll_socket *socket)
{
	close(socket->fd);
	socket->ops->detached(socket);
}

static const struct coll_engine_ops engine = { .name = "fake", .watch = fake_watch,
					       .unwatch = fake_unwatch, .attach = fake_attach,
					       .detach = fake_detach };

static void ready(struct coll_watch *watch)
{
	assert_true(watch->armed);
	watch->armed = false;
	watch->ready(watch, POLLIN);
}

static int fake_put(struct coll_boot *of, const char *key, const void *value, size_t bytes)
{
	(void)of;
	(void)key;
	(void)value;
	(void)bytes;
	return 0;
}

static const struct coll_boot_ops store = { .name = "fake", .put = fake_put };

static int begin(void **state)
{
	(void)state;
	memset(&context, 0, sizeof(context));
	boot = (struct coll_boot){ .ops = &store, .rank = 1, .ranks = 2, .local_ranks = 2 };
	context.boot = &boot;
	context.engine = (struct coll_engine){ .ops = &engine, .next_check = COLL_FOREVER,
					       .counters = &context.counters };
	strcpy(context.options.memory, "auto");
	strcpy(context.options.protect, "proof");
	assert_int_equal(coll_listen(&context), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	coll_muxes_close(&context);
	assert_null(context.muxes);
	coll_listen_stop(&context);
	assert_int_equal(context.pending_count, 0);
	assert_int_equal(context.silent, 0);
	return 0;
}

/* A connection to a listener of the context. */
static int connect_to(const struct coll_watch *listener)
{
	struct sockaddr_storage address;
	socklen_t bytes = sizeof(address);
	int fd;

	assert_int_equal(getsockname(listener->fd, (struct sockaddr *)&address, &bytes), 0);
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, bytes), 0);
	return fd;
}

/* Silent ones beyond a number are refused for the next. */
static uint64_t accepted(void)
{
	return context.pending_count + context.counters.refused;
}

/* ---- tests --------------------------------------------------------------------------- */

/* Somebody may connect without end: the engine goes on between. */
static void few_are_accepted_at_a_time(void **state)
{
	uint64_t before;
	uint32_t which;
	int i;

	for (which = 0; which < 2; which++) {
		struct coll_watch *listener = &context.listener[which];

		end(state);
		begin(state);
		assert_int_equal(context.listeners, 2);
		for (i = 0; i < MANY; i++)
			strangers[i] = connect_to(listener);
		while (accepted() < MANY) {
			before = accepted();
			ready(listener);
			assert_in_range(accepted() - before, 1, AT_A_TIME);
			assert_int_equal(listener->armed, !context.listen_again);
			coll_listen_check(&context);
			assert_true(listener->armed);
		}
		ready(listener);		/* there are no more */
		assert_true(listener->armed);
		assert_int_equal(context.listen_again, 0);
		for (i = 0; i < MANY; i++)
			close(strangers[i]);
	}
}

static struct coll_watch *local_listener(void)
{
	assert_true(context.listens_locally);
	return &context.listener[context.listeners - 1];
}

/* As a child, whose status is the errno of its attempt to send a descriptor. */
static void send_a_descriptor_as(uid_t user)
{
	int fd;

	if (setresuid(user, user, user))
		_exit(255);
	fd = connect_to(local_listener());
	_exit(coll_send_with_descriptor(fd, "x", 1, STDIN_FILENO) == 1 ? 0 : errno);
}

/* What another user sends would be this process's to close, which may take any time. */
static void another_user_is_refused(void **state)
{
	int status;
	pid_t child;

	(void)state;
	if (geteuid())
		skip();			/* only root can be another user */
	child = fork();
	if (!child)
		send_a_descriptor_as(NOBODY);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (coll_connection_accepts_descriptors(local_listener()->fd, false))
		assert_int_equal(WEXITSTATUS(status), EPERM);
	ready(local_listener());
	assert_int_equal(context.pending_count, 0);
	assert_int_equal(context.counters.refused, 1);
}

static void other_users_do_not_learn_the_process(void **state)
{
	static const uint8_t other_key[COLL_KEY_BYTES] = { 1 };
	struct coll_address address, other;
	char text[2 * COLL_PROCESS_BYTES + 1] = "";
	struct sockaddr_un bound;
	socklen_t bytes = sizeof(bound);
	int i;

	(void)state;
	for (i = 0; i < COLL_PROCESS_BYTES; i++)
		sprintf(text + 2 * i, "%02x", context.process[i]);
	assert_int_equal(getsockname(local_listener()->fd, (struct sockaddr *)&bound, &bytes), 0);
	assert_null(memmem(&bound, bytes, text, strlen(text)));
	coll_local_address(&address, context.key, context.process);
	assert_int_equal(bytes, address.bytes);
	assert_memory_equal(&bound, &address.socket, bytes);
	coll_local_address(&other, other_key, context.process);
	assert_memory_not_equal(&other.socket, &address.socket, bytes);
}

/* A rank's hello, as somebody without the secret can say it, too. */
static struct coll_hello hello_of(uint32_t rank)
{
	struct coll_hello hello = { .magic = COLL_WIRE_MAGIC, .version = COLL_WIRE_VERSION,
				    .from = rank, .to = boot.rank };

	memcpy(hello.process, context.process, sizeof(hello.process));
	return hello;
}

/* A connection that has said this hello; returns the other end. */
static int connect_and_say(struct coll_hello hello)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	coll_connection_accepts_descriptors(fds[1], false);
	assert_int_equal(send(fds[0], &hello, sizeof(hello), 0), sizeof(hello));
	coll_pending_add(&context, fds[1], coll_now());
	return fds[0];
}

static int connect_and_say_hello(void)
{
	return connect_and_say(hello_of(0));
}

/* What has no meaning yet is 0: a later version may give it one. */
static void a_reserved_field_is_zero(void **state)
{
	struct coll_hello hello = hello_of(0);
	int fd;

	(void)state;
	hello.zero = 1;
	fd = connect_and_say(hello);
	assert_int_equal(context.pending_count, 0);
	assert_int_equal(context.counters.refused, 1);
	close(fd);
}

static struct coll_challenge challenge_to(int fd)
{
	struct coll_challenge challenge;

	assert_int_equal(recv(fd, &challenge, sizeof(challenge), MSG_DONTWAIT), sizeof(challenge));
	return challenge;
}

static void assert_challenged(int fd)
{
	challenge_to(fd);
}

/* A connection that has proved the secret, as this rank of the job. Returns the other end. */
static int connect_as(uint32_t rank)
{
	const struct coll_hello hello = hello_of(rank);
	const int fd = connect_and_say(hello);
	const struct coll_challenge challenge = challenge_to(fd);
	struct coll_proof proof;

	coll_proof_make(&proof, &challenge, context.key, &hello, sizeof(hello));
	assert_int_equal(send(fd, &proof, sizeof(proof), 0), sizeof(proof));
	ready(latest);
	assert_int_equal(context.pending_count, 0);
	return fd;
}

static void a_descriptor_comes_with_the_proof_only(void **state)
{
	int fds[2], fd;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	if (!coll_connection_accepts_descriptors(fds[1], false))
		skip();			/* Linux before 6.16 */
	coll_pending_add(&context, fds[1], coll_now());
	assert_int_equal(coll_send_with_descriptor(fds[0], "x", 1, STDIN_FILENO), -1);
	assert_int_equal(errno, EPERM);
	fd = connect_and_say_hello();
	assert_challenged(fd);
	assert_int_equal(coll_send_with_descriptor(fd, "x", 1, STDIN_FILENO), 1);
	close(fd);
	close(fds[0]);
}

/* Who says hellos without end does not keep the next one out. */
static void the_oldest_without_proof_goes(void **state)
{
	static int hellos[PENDING_MAX + 1];
	struct rlimit limit, files = { 3 * PENDING_MAX, 3 * PENDING_MAX };
	char byte;
	int i;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max > files.rlim_max)
		files.rlim_max = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files))
		skip();			/* too few descriptors for so many */
	for (i = 0; i <= PENDING_MAX; i++)
		hellos[i] = connect_and_say_hello();
	assert_int_equal(context.pending_count, PENDING_MAX);
	assert_int_equal(context.counters.refused, 1);
	for (i = 0; i <= PENDING_MAX; i++)
		assert_challenged(hellos[i]);
	assert_int_equal(recv(hellos[0], &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(recv(hellos[1], &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	for (i = 0; i <= PENDING_MAX; i++)
		close(hellos[i]);
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Else epoll reports it when a child of this process has it, too, and its memory is free. */
static void a_watch_ends_before_its_connection(void **state)
{
	const int fd = connect_and_say_hello();

	(void)state;
	assert_true(latest->armed);
	unwatched = 0;
	coll_pending_check(&context, coll_now() + 3600 * COLL_SECOND);
	assert_int_equal(context.pending_count, 0);
	assert_int_equal(unwatched, 1);
	close(fd);
}

/* A dead rank's hello, said by somebody else, keeps nobody waiting for it. */
static void a_hello_is_no_sign_of_its_rank(void **state)
{
	static const struct coll_proof proof;
	uint32_t world[] = { 0, 1 };
	struct coll_group group = { .context = &context, .id = 1, .world = world, .ranks = 2 };
	struct coll_link link = { .group = &group, .rank = 0 };
	int fd = connect_and_say_hello();

	(void)state;
	assert_int_equal(context.pending_count, 1);
	assert_false(coll_pending_expects(&link));
	assert_int_equal(send(fd, &proof, sizeof(proof), 0), sizeof(proof));
	assert_true(coll_pending_expects(&link));	/* what it says is read next */
	close(fd);
}

/* Nothing but the byte that tells of memory has come. */
static bool is_open(int fd)
{
	uint8_t byte;
	ssize_t got;

	do
		got = recv(fd, &byte, 1, MSG_DONTWAIT);
	while (got > 0);
	return got < 0 && errno == EAGAIN;
}

static int accepted_of(uint32_t rank)
{
	const struct coll_mux *mux;
	int count = 0;

	for (mux = context.muxes; mux; mux = mux->next)
		count += mux->world == rank;
	return count;
}

/* A member proves itself again and again: each connection would have its own descriptor and answers. */
static void a_rank_has_a_number_of_connections_at_most(void **state)
{
	int fds[MANY], i;

	(void)state;
	boot.ranks = 3;
	for (i = 0; i < MANY; i++)
		fds[i] = connect_as(0);
	assert_int_equal(accepted_of(0), OF_A_RANK);
	assert_int_equal(context.counters.refused, MANY - OF_A_RANK);
	assert_true(is_open(fds[OF_A_RANK - 1]));
	assert_false(is_open(fds[OF_A_RANK]));
	close(connect_as(2));			/* others are let in */
	assert_int_equal(accepted_of(2), 1);
	coll_muxes_close(&context);		/* and so is the rank, when its own have ended */
	close(connect_as(0));
	assert_int_equal(accepted_of(0), 1);
	for (i = 0; i < MANY; i++)
		close(fds[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(few_are_accepted_at_a_time, begin, end),
		cmocka_unit_test_setup_teardown(another_user_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(other_users_do_not_learn_the_process, begin, end),
		cmocka_unit_test_setup_teardown(a_descriptor_comes_with_the_proof_only, begin, end),
		cmocka_unit_test_setup_teardown(a_reserved_field_is_zero, begin, end),
		cmocka_unit_test_setup_teardown(the_oldest_without_proof_goes, begin, end),
		cmocka_unit_test_setup_teardown(a_watch_ends_before_its_connection, begin, end),
		cmocka_unit_test_setup_teardown(a_hello_is_no_sign_of_its_rank, begin, end),
		cmocka_unit_test_setup_teardown(a_rank_has_a_number_of_connections_at_most, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
