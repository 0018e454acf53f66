// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Switches that answer anything: lines of SCPI, and statuses and bodies of RESTCONF. The driver
 * reports each order as done or with an error and its reason, and no more paths than there is
 * room for. The input's answers have a zero byte between two.
 */
#include <errno.h>

#include "daemon/switch/switch.h"
#include "fuzz.h"
#include "sockets.h"

enum { ORDERS = 3, PATHS = 20 };

extern const struct switch_ops switch_scpi, switch_restconf;

static struct fuzz_input answers;

static size_t next_answer(const uint8_t **text)
{
	const uint8_t *end = answers.bytes ? memchr(answers.data, 0, answers.bytes) : NULL;
	const size_t bytes = end ? (size_t)(end - answers.data) : answers.bytes;

	fuzz_some(&answers, text, bytes);
	if (end)
		fuzz_byte(&answers);
	return bytes;
}

/* ---- SCPI: each line that the driver sends gets an answer ------------------------------ */

static void answer_line(int fd, const void *data, size_t bytes)
{
	const uint8_t *text;

	(void)data;
	(void)bytes;
	bytes = next_answer(&text);
	sockets_feed(fd, text, bytes);
	if (!answers.bytes)
		sockets_end(fd);
}

/* ---- RESTCONF: in place of libcurl ------------------------------------------------------- */

enum { OPTION_WRITE_TO = 10001, OPTION_WRITE = 20011 };	/* of curl.h, by their numbers */

static size_t (*write_body)(char *data, size_t size, size_t count, void *to);
static void *write_to;
static char curl;
static long status;

void *curl_easy_init(void);
void *curl_easy_init(void)
{
	return &curl;
}

int curl_easy_setopt(void *handle, int option, ...);
int curl_easy_setopt(void *handle, int option, ...)
{
	__builtin_va_list list;

	(void)handle;
	__builtin_va_start(list, option);
	if (option == OPTION_WRITE)
		write_body = __builtin_va_arg(list, void *);
	else if (option == OPTION_WRITE_TO)
		write_to = __builtin_va_arg(list, void *);
	__builtin_va_end(list);
	return 0;
}

/* The answer's first byte: its status, or a failure of the connection. The body has two parts. */
int curl_easy_perform(void *handle);
int curl_easy_perform(void *handle)
{
	static const long statuses[] = { 200, 200, 200, 201, 204, 401, 404, 409, 500 };
	enum { STATUSES = sizeof(statuses) / sizeof(*statuses) };
	const uint8_t *text;
	const size_t bytes = next_answer(&text), half = bytes / 2;
	const uint8_t first = bytes ? *text - ' ' : 0;

	(void)handle;
	if (!bytes || first % 16 >= STATUSES)
		return 1 + first % 60;
	status = statuses[first % 16];
	if (bytes > 1)
		write_body((char *)text + 1, 1, half, write_to);
	if (bytes - 1 > half)
		write_body((char *)text + 1 + half, bytes - 1 - half, 1, write_to);
	return 0;
}

int curl_easy_getinfo(void *handle, int info, ...);
int curl_easy_getinfo(void *handle, int info, ...)
{
	__builtin_va_list list;

	(void)handle;
	__builtin_va_start(list, info);
	*__builtin_va_arg(list, long *) = status;
	__builtin_va_end(list);
	return 0;
}

const char *curl_easy_strerror(int code);
const char *curl_easy_strerror(int code)
{
	(void)code;
	return "no connection";
}

void curl_easy_cleanup(void *handle);
void curl_easy_cleanup(void *handle)
{
	(void)handle;
}

void *curl_slist_append(void *list, const char *text);
void *curl_slist_append(void *list, const char *text)
{
	(void)list;
	(void)text;
	return &curl;
}

void curl_slist_free_all(void *list);
void curl_slist_free_all(void *list)
{
	(void)list;
}

/* ---- what colld does ------------------------------------------------------------------ */

static void check_orders(const struct switch_order *order)
{
	int i;

	for (i = 0; i < ORDERS; i++) {
		fuzz_must(order[i].error <= 0, "an order has a positive error");
		fuzz_must(memchr(order[i].why, 0, SWITCH_WHY) != NULL, "a reason without an end");
		fuzz_must(!order[i].error || order[i].why[0], "an error without a reason");
	}
}

static void try_switch(const struct switch_ops *ops, const char *argument)
{
	struct switch_device s = { .ops = ops, .timeout = 1000000 };
	struct switch_order order[ORDERS] = {
		{ .what = COLL_CIRCUIT_ORDER_UP, .port = { 1, 2 } },
		{ .what = COLL_CIRCUIT_ORDER_DOWN, .port = { 3, 4 } },
		{ .what = COLL_CIRCUIT_ORDER_UP, .port = { 3, 5 } },
	};
	struct switch_path path[PATHS];
	char why[SWITCH_WHY] = "";
	int paths;

	if (!ops->open(&s, argument, why)) {
		ops->change(&s, order, ORDERS);
		check_orders(order);
		paths = ops->read(&s, path, PATHS, why);
		fuzz_must(paths <= PATHS, "more paths than there is room for");
		if (paths > 0)
			ops->remove(&s, path[paths - 1]);
	}
	fuzz_must(memchr(why, 0, sizeof(why)) != NULL, "a reason without an end");
	ops->close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	answers = (struct fuzz_input){ data, bytes };
	sockets_begin();
	sockets_sent = answer_line;
	if (fuzz_byte(&answers) % 2)
		try_switch(&switch_scpi, "127.0.0.1:5025");
	else
		try_switch(&switch_restconf, "http://switch:8008 ports=16");
	return 0;
}

void fuzz_seeds(take_seed *take, void *argument)
{
	static const char scpi[] =
		"\1" "16,16\n\0" "1\n\0" "0,\"No error\"\n\0" "1\n\0" "-200,\"port in use\"\n\0" "0\n\0"
		"(@1,2),(@18,17)\n\0" "1\n\0" "0\n\0" "(@3),(@21);(@5),(@19)\n\0" "F,D\n\0"
		"(@1,2),(@18,17)\n\0" "1\n";
#define PAIRS "{\"optical-switch:cross-connects\":{\"pair\":[{\"ingress\":1,\"egress\":18},"        \
	      "{\"ingress\":2,\"egress\":17},{\"ingress\":3,\"egress\":20}]}}"
	static const char restconf[] =
		"\2" " {}\0" " " PAIRS "\0" "#\0" "'{\"ietf-restconf:errors\":{\"error\":[{\"error-message\":"
		"\"in use\"}]}}\0" "$\0" "/\0" " " PAIRS "\0" " " PAIRS "\0" "&";

	take(scpi, sizeof(scpi) - 1, argument);
	take(restconf, sizeof(restconf) - 1, argument);
}
