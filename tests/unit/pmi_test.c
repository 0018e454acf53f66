// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * A rank at a launcher that speaks PMI-1 on PMI_FD: what it takes from it, and the errors in words.
 * Each test is a process of its own, as PMI is once in a process.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "libcoll/base/clock.h"
#include "libcoll/boot/job.h"

#define HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

enum { ANSWERS_MAX = 8 };

/* A launcher in its own thread: its answers in turn; after the last it closes the connection. */
struct launcher {
	int fd;
	const char *answer[ANSWERS_MAX];
	char heard[ANSWERS_MAX][256];
};

static void *launch(void *argument)
{
	struct launcher *launcher = argument;
	ssize_t got;
	int i;

	for (i = 0; i < ANSWERS_MAX && launcher->answer[i]; i++) {
		got = recv(launcher->fd, launcher->heard[i], sizeof(launcher->heard[i]) - 1, 0);
		if (got <= 0)
			break;
		send(launcher->fd, launcher->answer[i], strlen(launcher->answer[i]), MSG_NOSIGNAL);
	}
	if (i && launcher->answer[i - 1][0])
		shutdown(launcher->fd, SHUT_RDWR);
	return NULL;
}

struct meeting {
	struct launcher launcher;
	struct coll_boot boot;
	struct coll_boot_job job;
	char why[400];
	int error;
};

/* Rank 1 of 2 meets the others, with this patience. */
static void meet(struct meeting *m, unsigned int ms)
{
	const struct coll_boot_reason why = { m->why, sizeof(m->why) };
	char number[16];
	pthread_t thread;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	m->launcher.fd = fds[1];
	snprintf(number, sizeof(number), "%d", fds[0]);
	setenv("PMI_FD", number, 1);
	m->boot = (struct coll_boot){ .rank = 1, .ranks = 2 };
	m->job = (struct coll_boot_job){ .rank = 1, .ranks = 2 };
	pthread_create(&thread, NULL, launch, &m->launcher);
	m->error = coll_boot_pmi_meet(&m->boot, &m->job, coll_now() + ms * 1000000ull, &why);
	shutdown(fds[0], SHUT_WR);
	pthread_join(thread, NULL);
}

/* The test goes on in a child; its failures are the child's exit code. */
static void in_a_process(void (*test)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		test();
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void must(int holds, int line, const char *why)
{
	if (holds)
		return;
	fprintf(stderr, "line %d: %s\n", line, why);
	_exit(1);
}
#define MUST(holds) must(!!(holds), __LINE__, m.why)

#define HELLO "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n", \
	      "cmd=my_kvsname kvsname=kvs_7\n"

static void good_launcher(void)
{
	struct meeting m = { .launcher.answer = {
		HELLO, "cmd=barrier_out\n",
		"cmd=get_result rc=0 value=10.0.0.1:4711,[fe80::1]:4712/" HEX "\n" } };

	meet(&m, 5000);
	MUST(!m.error);
	MUST(!strcmp(m.job.store[0], "10.0.0.1:4711") && !strcmp(m.job.store[1], "[fe80::1]:4712"));
	MUST(m.boot.secret[1] == 1 && m.boot.secret[31] == 0x1f && m.job.served);
	MUST(m.boot.secret_carried);		/* to a rank of several nodes */
	MUST(!strncmp(m.launcher.heard[0], "cmd=init pmi_version=1", 22));
	MUST(strstr(m.launcher.heard[3], "cmd=get kvsname=kvs_7 key=coll.store.0"));
}

/* With COLL_SECRET on all ranks no secret is on its way, where it can be read. */
static void secret_of_the_environment(void)
{
	struct meeting m = { .why = "the secret is that of the environment" };
	const struct coll_boot_reason why = { m.why, sizeof(m.why) };
	char text[BOOTSTRAP_ADDRESS_MAX];

	m.job.has_secret = true;
	m.job.rank = 3;
	m.boot.secret[0] = 7;
	strcpy(text, "10.0.0.1:4711/");
	MUST(!coll_bootstrap_address_read(&m.boot, &m.job, text, &why));
	MUST(m.boot.secret[0] == 7 && !m.boot.secret_carried);
	strcpy(text, "10.0.0.1:4711/" HEX);
	MUST(coll_bootstrap_address_read(&m.boot, &m.job, text, &why) == -EINVAL);
	MUST(strstr(m.why, "COLL_SECRET is set on rank 3 and not on rank 0"));
	m.job.has_secret = false;
	strcpy(text, "10.0.0.1:4711/");
	MUST(coll_bootstrap_address_read(&m.boot, &m.job, text, &why) == -EINVAL);
	MUST(strstr(m.why, "COLL_SECRET is set on rank 0 and not on rank 3"));
}

static void a_set_secret_is_not_carried(void **state)
{
	(void)state;
	in_a_process(secret_of_the_environment);
}

static void the_address_comes_through_pmi(void **state)
{
	(void)state;
	in_a_process(good_launcher);
}

/* A secret must be whole: what follows a short one is not part of it. */
static void wrong_address(void)
{
	static const char *const values[] = {
		"10.0.0.1:4711", "10.0.0.1:4711/00", "10.0.0.1:4711/0x0x0x0x0x0x0x0x0x0x0x0x0x0x0x0x"
		"0x0x0x0x0x0x0x0x0x0x0x0x0x0x0x0x", "10.0.0.1/" HEX, "/" HEX, "[::1:5/" HEX,
		"a:1,a:1,a:1,a:1,a:1/" HEX,
	};
	const struct coll_boot_reason silent = { NULL, 0 };
	struct meeting m = { .why = "an address is taken" };
	char text[BOOTSTRAP_ADDRESS_MAX];
	size_t i;

	for (i = 0; i < sizeof(values) / sizeof(*values); i++) {
		strcpy(text, values[i]);
		MUST(coll_bootstrap_address_read(&m.boot, &m.job, text, &silent) == -EPROTO);
	}
}

static void a_wrong_address_is_refused(void **state)
{
	(void)state;
	in_a_process(wrong_address);
}

static void closing_launcher(void)
{
	struct meeting m = { .launcher.answer = { HELLO } };

	meet(&m, 5000);
	MUST(m.error == -ECONNRESET && strstr(m.why, "has closed PMI"));
	m.why[0] = '\0';
	meet(&m, 5000);		/* once lost it stays lost: a late answer may come */
	MUST(m.error == -ECONNRESET && strstr(m.why, "lost earlier"));
	m.job.rank = m.boot.rank = 0;	/* nor does rank 0 serve a store then, which nobody would find */
	setenv("COLL_STORE_PROGRAM", "/nowhere", 1);
	m.why[0] = '\0';
	MUST(coll_boot_pmi_meet(&m.boot, &m.job, coll_now() + COLL_SECOND,
				&(struct coll_boot_reason){ m.why, sizeof(m.why) }) == -ECONNRESET);
	MUST(strstr(m.why, "lost earlier"));
}

static void a_closed_connection_is_named_and_stays_lost(void **state)
{
	(void)state;
	in_a_process(closing_launcher);
}

static void silent_launcher(void)
{
	struct meeting m = { .launcher.answer = { HELLO, "" } };
	const uint64_t begin = coll_now();

	meet(&m, 100);
	MUST(m.error == -ETIMEDOUT && strstr(m.why, "not all of the 2 ranks reached"));
	MUST(coll_now() - begin < 60 * COLL_SECOND);
}

static void missing_ranks_are_an_error_by_the_deadline(void **state)
{
	(void)state;
	in_a_process(silent_launcher);
}

static void refusing_launcher(void)
{
	struct meeting m = { .launcher.answer = { HELLO, "cmd=barrier_out\n",
						  "cmd=get_result rc=1 msg=key_not_found\n" } };

	meet(&m, 5000);
	MUST(m.error == -EPROTO && strstr(m.why, "violates PMI-1"));
}

static void other_answer(void)
{
	struct meeting m = { .launcher.answer = { "cmd=response_to_initialize rc=0\n" } };

	meet(&m, 5000);
	MUST(m.error == -EPROTO);
}

static void no_name(void)
{
	struct meeting m = { .launcher.answer = {
		"cmd=response_to_init rc=0\n", "cmd=my_kvsname rc=0\n" } };

	meet(&m, 5000);
	MUST(m.error == -EPROTO);
}

static void what_is_no_pmi_is_refused(void **state)
{
	(void)state;
	in_a_process(refusing_launcher);
	in_a_process(other_answer);
	in_a_process(no_name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_address_comes_through_pmi),
		cmocka_unit_test(a_set_secret_is_not_carried),
		cmocka_unit_test(a_wrong_address_is_refused),
		cmocka_unit_test(a_closed_connection_is_named_and_stays_lost),
		cmocka_unit_test(missing_ranks_are_an_error_by_the_deadline),
		cmocka_unit_test(what_is_no_pmi_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
