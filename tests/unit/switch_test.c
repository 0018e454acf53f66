// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The drivers of real switches against one that is none, under every fault that it knows:
 * in the end the circuits are right, or there is an error in words.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/common/clock.h"
#include "daemon/switch/worker.h"

#define MS 1000000ull
#define UP	COLL_CIRCUIT_ORDER_UP
#define DOWN	COLL_CIRCUIT_ORDER_DOWN

static struct { pid_t pid; int in, scpi, http, control; } fake;
static struct switch_device s;
static const char *driver;

/* ---- the switch that is none --------------------------------------------- */

static void start_fake(void)
{
	const char *build = getenv("BUILD");
	int in[2], out[2];
	char path[512], text[64] = "";
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	snprintf(path, sizeof(path), "%s/tests/circuit/fake_switch", build ? build : "build");
	assert_int_equal(pipe(in) | pipe(out), 0);
	fake.pid = fork();
	if (!fake.pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	fake.in = in[1];
	assert_true(read(out[0], text, sizeof(text) - 1) > 0);
	close(out[0]);
	assert_int_equal(sscanf(text, "%d %d", &fake.scpi, &fake.http), 2);
	fake.control = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_port = htons(fake.scpi);
	assert_int_equal(connect(fake.control, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void stop_fake(void)
{
	close(fake.control);
	close(fake.in);
	waitpid(fake.pid, NULL, 0);
}

/* Orders a fault; the answer to a question says that it was taken. */
static void order_fault(const char *what, int a, int b)
{
	char text[80];

	snprintf(text, sizeof(text), ":fake:%s %d,%d\n:fake:most?\n", what, a, b);
	assert_int_equal(write(fake.control, text, strlen(text)), strlen(text));
	assert_true(read(fake.control, text, sizeof(text)) > 0);
}

/* ---- the driver ---------------------------------------------------------- */

static void open_driver(u64 timeout)
{
	char argument[100], why[SWITCH_WHY] = "";

	s = (struct switch_device){ .ops = switch_find(driver), .timeout = timeout };
	if (!strcmp(driver, "scpi"))
		snprintf(argument, sizeof(argument), "127.0.0.1:%d", fake.scpi);
	else
		snprintf(argument, sizeof(argument), "http://admin:root@127.0.0.1:%d ports=16",
			 fake.http);
	if (s.ops->open(&s, argument, why))
		fail_msg("%s", why);
	assert_int_equal(s.ports, 16);
}

static struct switch_order order_of(enum coll_circuit_order_kind what, u32 a, u32 b)
{
	return (struct switch_order){ .what = what, .port = { a, b } };
}

/* "1>2 2>1 ...", as the switch has it. */
static const char *state(void)
{
	static char text[400];
	struct switch_path path[64];
	char why[SWITCH_WHY] = "";
	u32 leads[17] = { 0 }, port;
	int paths = s.ops->read(&s, path, 64, why), i;

	assert_true(paths >= 0);
	for (i = 0; i < paths; i++)
		leads[path[i].in] = path[i].out;
	text[0] = 0;
	for (port = 1; port <= 16; port++)
		if (leads[port])
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u>%u",
				 *text ? " " : "", port, leads[port]);
	return text;
}

static void finish(void)
{
	s.ops->close(&s);
	stop_fake();
}

/* ---- each fault ---------------------------------------------------------- */

static void no_fault(void)
{
	struct switch_order up[] = { order_of(UP, 1, 2), order_of(UP, 3, 9) };
	struct switch_order change[] = { order_of(DOWN, 1, 2), order_of(UP, 2, 4) };
	struct switch_order again = order_of(UP, 3, 9), gone = order_of(DOWN, 1, 2);

	start_fake();
	open_driver(2000 * MS);
	assert_string_equal(state(), "");
	s.ops->change(&s, up, 2);
	assert_int_equal(up[0].error | up[1].error, 0);
	assert_string_equal(state(), "1>2 2>1 3>9 9>3");
	s.ops->change(&s, change, 2);	/* what is freed is used in the same batch */
	assert_int_equal(change[0].error | change[1].error, 0);
	assert_string_equal(state(), "2>4 3>9 4>2 9>3");
	s.ops->change(&s, &again, 1);	/* it is so already */
	s.ops->change(&s, &gone, 1);
	assert_int_equal(again.error | gone.error, 0);
	assert_int_equal(s.ops->remove(&s, (struct switch_path){ 3, 9 }), 0);
	assert_string_equal(state(), "2>4 4>2 9>3");
	finish();
}

static void busy_port(void)
{
	struct switch_order up[] = { order_of(UP, 3, 5), order_of(UP, 6, 7) };

	start_fake();
	open_driver(2000 * MS);
	order_fault("pair", 3, 9);
	s.ops->change(&s, up, 2);
	assert_int_equal(up[0].error, -EBUSY);
	assert_non_null(strstr(up[0].why, "use"));
	assert_int_equal(up[1].error, 0);	/* one that cannot be spoils no other */
	assert_non_null(strstr(state(), "6>7 7>6"));
	up[0].what = DOWN;			/* what is half done can be taken back */
	s.ops->change(&s, up, 1);
	assert_int_equal(up[0].error, 0);
	assert_null(strstr(state(), ">5"));
	finish();
}

static void stuck_port(void)
{
	struct switch_order up[] = { order_of(UP, 4, 8), order_of(UP, 1, 2) };

	start_fake();
	open_driver(2000 * MS);
	order_fault("stuck", 4, 0);
	s.ops->change(&s, up, 2);
	assert_true(up[0].error < 0 && *up[0].why);
	assert_int_equal(up[1].error, 0);
	assert_string_equal(state(), "1>2 2>1");
	order_fault("stuck", 0, 0);
	s.ops->change(&s, up, 1);
	assert_int_equal(up[0].error, 0);
	finish();
}

static void slow(void)
{
	struct switch_order up = order_of(UP, 1, 2), other = order_of(UP, 3, 4);

	start_fake();
	open_driver(400 * MS);
	order_fault("slow", 1500, 0);
	s.ops->change(&s, &up, 1);
	assert_true(up.error < 0 && *up.why);	/* it ends, and says so */
	usleep(4000000);			/* whatever is under way comes to its end */
	order_fault("slow", 0, 0);
	s.ops->change(&s, &up, 1);
	assert_int_equal(up.error, 0);
	order_fault("slow", 20, 0);
	s.ops->change(&s, &other, 1);
	assert_int_equal(other.error, 0);
	assert_string_equal(state(), "1>2 2>1 3>4 4>3");
	finish();
}

static void dropped(void)
{
	struct switch_order up = order_of(UP, 1, 2), down = order_of(DOWN, 1, 2);

	start_fake();
	open_driver(2000 * MS);
	order_fault("drop", 2, 0);
	s.ops->change(&s, &up, 1);
	assert_int_equal(up.error, -EIO);	/* it confirmed the order and has not executed it */
	assert_true(*up.why);
	s.ops->change(&s, &down, 1);
	assert_int_equal(down.error, 0);
	s.ops->change(&s, &up, 1);
	assert_int_equal(up.error, 0);
	finish();
}

static void hung_up(void)
{
	u32 request;

	for (request = 1; request <= 4; request++) {
		struct switch_order up[] = { order_of(UP, 1, 2), order_of(UP, 3, 4) };

		start_fake();
		open_driver(2000 * MS);
		order_fault("hangup", request, 0);
		s.ops->change(&s, up, 2);
		/* Done after all, or an error; and the next time it is done. */
		s.ops->change(&s, up, 2);
		assert_int_equal(up[0].error | up[1].error, 0);
		assert_string_equal(state(), "1>2 2>1 3>4 4>3");
		finish();
	}
}

/* Each order that is not answered takes the timeout: the others are not tried. */
static void silent(void)
{
	struct switch_order up[7];
	u64 begun;
	u32 i;

	for (i = 0; i < 7; i++)
		up[i] = order_of(UP, 2 * i + 1, 2 * i + 2);
	start_fake();
	open_driver(400 * MS);
	order_fault("slow", 2500, 0);
	begun = colld_now();
	s.ops->change(&s, up, 7);
	assert_true(colld_now() - begun < 2000 * MS);
	for (i = 0; i < 7; i++)
		assert_true(up[i].error < 0 && *up[i].why);
	finish();
}

/* However many bytes come meanwhile. */
static void a_line_of_scpi_has_one_timeout(void **unused)
{
	struct switch_path path[16];
	char why[SWITCH_WHY] = "";
	u64 begun;

	(void)unused;
	driver = "scpi";
	start_fake();
	open_driver(500 * MS);
	order_fault("drip", 200, 0);
	begun = colld_now();
	assert_int_equal(s.ops->read(&s, path, 16, why), -ETIMEDOUT);
	assert_true(colld_now() - begun < 1500 * MS);
	order_fault("drip", 0, 0);
	assert_string_equal(state(), "");
	finish();
}

static bool await(struct switch_worker *worker, int kind, struct switch_event *event)
{
	const u64 end = colld_now() + 10000 * MS;

	while (colld_now() < end) {
		struct pollfd fd = { switch_worker_fd(worker), POLLIN, 0 };

		while (switch_worker_event(worker, event))
			if ((int)event->kind == kind)
				return true;
		poll(&fd, 1, 100);
	}
	return false;
}

/* Changes by others are found, reported and undone; the connection may be lost meanwhile. */
static void somebody_else(void)
{
	struct switch_order up = order_of(UP, 1, 2);
	struct switch_worker *worker;
	struct switch_event event;

	start_fake();
	open_driver(2000 * MS);
	assert_int_equal(switch_worker_start(&worker, &s, 100 * MS), 0);
	up.circuit = 7;
	assert_int_equal(switch_worker_give(worker, &up), 0);
	assert_true(await(worker, SWITCH_BEGUN, &event));
	assert_true(await(worker, SWITCH_DONE, &event));
	assert_int_equal(event.order.error, 0);
	assert_int_equal(event.order.circuit, 7);
	assert_true(event.order.given <= event.order.begun &&
		    event.order.begun <= event.order.moved);
	order_fault("pair", 10, 11);
	assert_true(await(worker, SWITCH_DRIFT, &event));
	assert_int_equal(event.order.port[0], 10);
	assert_int_equal(event.order.port[1], 11);
	order_fault("hangup", 1, 0);
	order_fault("cut", 1, 0);
	assert_true(await(worker, SWITCH_LOST, &event));
	assert_in_range(event.order.port[0], 1, 2);
	switch_worker_stop(worker);
	assert_null(strstr(state(), "10>"));
	finish();
}

/* The switch answers when asked for its paths, and then no more: each removal would take a timeout. */
static void silent_after_the_list(void)
{
	struct switch_order none = { .what = COLL_CIRCUIT_NO_ORDER };
	struct switch_worker *worker;
	struct switch_event event;
	u64 begun;
	int port;

	start_fake();
	open_driver(500 * MS);
	for (port = 1; port < 16; port += 2) {
		order_fault("pair", port, port + 1);
		order_fault("pair", port + 1, port);
	}
	order_fault("slow", 3000, 0);
	assert_int_equal(switch_worker_start(&worker, &s, 10 * MS), 0);
	assert_int_equal(switch_worker_give(worker, &none), 0);
	assert_true(await(worker, SWITCH_DRIFT, &event));
	begun = colld_now();
	switch_worker_stop(worker);
	assert_in_range(colld_now() - begun, 0, 3000 * MS);
	finish();
}

static void a_long_answer_is_an_error(void **unused)
{
	struct switch_path path[64];
	char why[SWITCH_WHY] = "";

	(void)unused;
	driver = "restconf";
	start_fake();
	open_driver(2000 * MS);
	order_fault("pair", 1, 2);
	order_fault("pad", 100000, 0);
	assert_int_equal(s.ops->read(&s, path, 64, why), 1);
	order_fault("pad", 2000000, 0);
	assert_int_equal(s.ops->read(&s, path, 64, why), -EMSGSIZE);
	assert_non_null(strstr(why, "longer than 1 MB"));
	finish();
}

static void all_of(const char *name)
{
	driver = name;
	no_fault();
	busy_port();
	stuck_port();
	slow();
	silent();
	dropped();
	hung_up();
	somebody_else();
	silent_after_the_list();
}

static void scpi_switches_connect_fail_and_reconnect(void **unused)
{
	(void)unused;
	all_of("scpi");
}

static void restconf_switches_connect_fail_and_reconnect(void **unused)
{
	(void)unused;
	all_of("restconf");
}

static void an_absent_switch_is_an_error_in_words(void **unused)
{
	char why[SWITCH_WHY] = "";

	(void)unused;
	s = (struct switch_device){ .ops = switch_find("scpi"), .timeout = 500 * MS };
	assert_true(s.ops->open(&s, "127.0.0.1:1", why) < 0);
	assert_non_null(strstr(why, "127.0.0.1:1: "));
	s.ops->close(&s);
	assert_true(s.ops->open(&s, "[::1]:1", why) < 0);
	assert_non_null(strstr(why, "::1:1: "));	/* not that there is no such name */
	s.ops->close(&s);
	s = (struct switch_device){ .ops = switch_find("restconf"), .timeout = 500 * MS };
	assert_int_equal(s.ops->open(&s, "http://127.0.0.1:1", why), -EINVAL);
	assert_non_null(strstr(why, "ports=N"));
	s.ops->close(&s);
	assert_true(s.ops->open(&s, "http://127.0.0.1:1 ports=16", why) < 0);
	s.ops->close(&s);
	assert_null(switch_find("pigeon"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_of_scpi_has_one_timeout),
		cmocka_unit_test(a_long_answer_is_an_error),
		cmocka_unit_test(scpi_switches_connect_fail_and_reconnect), cmocka_unit_test(restconf_switches_connect_fail_and_reconnect), cmocka_unit_test(an_absent_switch_is_an_error_in_words),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
