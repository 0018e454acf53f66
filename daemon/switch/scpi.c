// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Polatis' SCPI over TCP, which DiCon speaks too: commands of the tree
 * :OXC:SWITch:CONNect; only queries are answered. Ports of one side are 1..N, those of the
 * other N+1..2N. The result of a command is read back from the list of connections.
 *
 * Public documents do not say what the texts of errors are, and whether *OPC? waits for the
 * mirrors. So errors are taken as SCPI-99 has them, and are only shown.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/common/clock.h"
#include "switch.h"

enum { LINE_MAX_BYTES = 32768, ERRORS_MAX = 32 };

struct scpi {
	char host[256], port[16];
	int fd;				/* -1: not connected */
	char buffer[LINE_MAX_BYTES];	/* received behind the latest line */
	size_t used;
	char said[SWITCH_WHY];		/* the latest error of the switch's queue */
};

/* ---- lines ---------------------------------------------------------------- */

static void hang_up(struct scpi *scpi)
{
	if (scpi->fd >= 0)
		close(scpi->fd);
	scpi->fd = -1;
	scpi->used = 0;
}

static int switch_scpi_dial(struct switch_device *s, char *why)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct scpi *scpi = s->state;
	struct addrinfo *list, *a;
	const struct timeval patience = { s->timeout / 1000000000, s->timeout / 1000 % 1000000 };
	int error = getaddrinfo(scpi->host, scpi->port, &hints, &list), one = 1;

	if (error) {
		snprintf(why, SWITCH_WHY, "%.80s: %s", scpi->host, gai_strerror(error));
		return -EHOSTUNREACH;
	}
	error = -EHOSTUNREACH;
	for (a = list; a && scpi->fd < 0; a = a->ai_next) {
		scpi->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		/* SO_SNDTIMEO limits connect() too. */
		setsockopt(scpi->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		setsockopt(scpi->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (scpi->fd >= 0 && connect(scpi->fd, a->ai_addr, a->ai_addrlen)) {
			error = -errno;
			hang_up(scpi);
		}
	}
	freeaddrinfo(list);
	if (scpi->fd >= 0)
		return 0;
	snprintf(why, SWITCH_WHY, "%.80s:%s: %s", scpi->host, scpi->port, strerror(-error));
	return error;
}

/* Bytes; 0: the end; -errno: -ETIMEDOUT at `until`, however many came before. */
static ssize_t scpi_receive(struct scpi *scpi, u64 until)
{
	ssize_t got;

	do {
		const u64 now = colld_now();
		struct pollfd fd = { scpi->fd, POLLIN, 0 };

		got = now < until ? poll(&fd, 1, (until - now) / 1000000 + 1) : 0;
		if (!got)
			return -ETIMEDOUT;
		if (got > 0)
			got = recv(scpi->fd, scpi->buffer + scpi->used, sizeof(scpi->buffer) - scpi->used,
				   MSG_DONTWAIT);
	} while (got < 0 && (errno == EINTR || errno == EAGAIN));
	return got < 0 ? -errno : got;
}

/* The next line without its newline; -errno closes the connection. One timeout is for all of the line. */
static int read_line(struct switch_device *s, char *line, size_t bytes)
{
	const u64 until = colld_now() + s->timeout;
	struct scpi *scpi = s->state;

	for (;;) {
		char *end = memchr(scpi->buffer, '\n', scpi->used);
		ssize_t got;

		if (end) {
			const size_t length = end - scpi->buffer;

			snprintf(line, bytes, "%.*s", (int)length, scpi->buffer);
			line[strcspn(line, "\r")] = 0;
			scpi->used -= length + 1;
			memmove(scpi->buffer, end + 1, scpi->used);
			return 0;
		}
		got = scpi->used == sizeof(scpi->buffer) ? 0 : scpi_receive(scpi, until);
		if (got <= 0) {
			hang_up(scpi);
			return got ? got : -ECONNRESET;
		}
		scpi->used += got;
	}
}

static int switch_scpi_put(struct switch_device *s, const char *text)
{
	struct scpi *scpi = s->state;
	const size_t length = strlen(text);
	size_t sent = 0;

	while (sent < length) {
		const ssize_t got = send(scpi->fd, text + sent, length - sent, MSG_NOSIGNAL);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			hang_up(scpi);
			return -ECONNRESET;
		}
		sent += got;
	}
	return 0;
}

static int switch_scpi_ask(struct switch_device *s, const char *question, char *answer,
			   size_t bytes)
{
	const int error = switch_scpi_put(s, question);

	return error ? error : read_line(s, answer, bytes);
}

/* ---- lists of ports ------------------------------------------------------- */

/* Parses "(@1,2,3)" at *text and moves *text behind it. The number of ports; -1: malformed. */
static int parse_list(const char **text, u32 *port, u32 max)
{
	const char *at = strstr(*text, "(@");
	int count = 0;
	char *rest;

	if (!at)
		return -1;
	at += 2;
	while (*at && *at != ')' && count < (int)max) {
		port[count] = strtoul(at, &rest, 10);
		if (rest == at)
			return -1;
		count++;
		at = rest + (*rest == ',');
	}
	*text = at;
	return *at == ')' ? count : -1;
}

/* "(@1,2),(@17,18)", or pair by pair "(@1),(@17);(@2),(@18)". */
static int parse_paths(const char *text, u32 ports, struct switch_path *path, u32 max)
{
	u32 in[SWITCH_PORTS_MAX], out[SWITCH_PORTS_MAX], paths = 0;
	int ins, outs, i;

	while (strstr(text, "(@")) {
		ins = parse_list(&text, in, SWITCH_PORTS_MAX);
		outs = parse_list(&text, out, SWITCH_PORTS_MAX);
		if (ins < 0 || ins != outs)
			return -EPROTO;
		for (i = 0; i < ins && paths < max; i++, paths++)
			path[paths] = (struct switch_path){ in[i],
				out[i] > ports ? out[i] - ports : out[i] };
	}
	return paths;
}

static int read_paths(struct switch_device *s, struct switch_path *path, u32 max)
{
	static char line[LINE_MAX_BYTES];
	const int error = switch_scpi_ask(s, ":oxc:swit:conn:stat?\n", line, sizeof(line));

	return error ? error : parse_paths(line, s->ports, path, max);
}

/* ---- orders --------------------------------------------------------------- */

/* Both ways of these circuits, as "(@...),(@...)". */
static void put_list(const struct switch_device *s, const struct switch_order *order, u32 orders,
		     enum coll_circuit_order_kind what, char *text, size_t bytes)
{
	size_t used = 0;
	u32 side, i, end;

	for (side = 0; side < 2; side++) {
		bool first = true;

		used += snprintf(text + used, bytes - used, side ? "),(@" : "(@");
		for (i = 0; i < orders; i++)
			for (end = 0; end < 2 && order[i].what == what && used + 16 < bytes;
			     end++) {
				used += snprintf(
					text + used, bytes - used, "%s%u", first ? "" : ",",
					side ? order[i].port[!end] + s->ports : order[i].port[end]);
				first = false;
			}
	}
	snprintf(text + used, bytes - used, ")");
}

/* Sends one command for all orders of a kind, and empties the switch's error queue. */
static int switch_scpi_command(struct switch_device *s, const struct switch_order *order,
			       u32 orders, enum coll_circuit_order_kind what)
{
	static char text[LINE_MAX_BYTES], list[LINE_MAX_BYTES - 64];
	struct scpi *scpi = s->state;
	char line[256];
	int error, i;

	put_list(s, order, orders, what, list, sizeof(list));
	snprintf(text, sizeof(text), "*cls;:oxc:swit:conn:%s %s;*opc?\n",
		 what == COLL_CIRCUIT_ORDER_UP ? "add" : "sub", list);
	error = switch_scpi_ask(s, text, line, sizeof(line));
	for (i = 0; !error && i < ERRORS_MAX; i++) {
		error = switch_scpi_ask(s, ":syst:err?\n", line, sizeof(line));
		if (error || !atoi(line))
			break;
		snprintf(scpi->said, sizeof(scpi->said), "%.150s", line);
	}
	return error;
}

/* Why it is not connected: the switch reports a failed port. */
static void find_reason(struct switch_device *s, struct switch_order *order)
{
	struct scpi *scpi = s->state;
	char question[80], line[256];
	u32 end;

	order->error = -EIO;
	for (end = 0; end < 2; end++) {
		snprintf(question, sizeof(question), ":oxc:swit:port:stat? (@%u,%u)\n",
			 order->port[end], order->port[end] + s->ports);
		if (scpi->fd >= 0 && !switch_scpi_ask(s, question, line, sizeof(line)) &&
		    strpbrk(line, "FD")) {
			snprintf(order->why, SWITCH_WHY, "port %u of the switch is %s",
				 order->port[end], strchr(line, 'F') ? "out of order" : "disabled");
			return;
		}
	}
	if (strstr(scpi->said, "use") || strstr(scpi->said, "busy"))
		order->error = -EBUSY;
	snprintf(order->why, SWITCH_WHY, "the switch has not connected ports %u and %u: %.80s",
		 order->port[0], order->port[1], *scpi->said ? scpi->said : "it does not say why");
}

/* The result of each order, from the list of connections. */
static int switch_scpi_judge(struct switch_device *s, struct switch_order *order, u32 orders,
			     u32 *missing)
{
	static struct switch_path path[SWITCH_PORTS_MAX];
	const int paths = read_paths(s, path, SWITCH_PORTS_MAX);
	u32 i;

	*missing = 0;
	for (i = 0; paths >= 0 && i < orders; i++) {
		const bool there = switch_has_path(path, paths, order[i].port[0], order[i].port[1]);
		const bool back = switch_has_path(path, paths, order[i].port[1], order[i].port[0]);
		const bool good =
			order[i].what == COLL_CIRCUIT_ORDER_UP ? there && back : !there && !back;

		order[i].error = good ? 0 : -EIO;
		*missing += !good;
		if (good)
			order[i].moved = colld_now();
	}
	return paths < 0 ? paths : 0;
}

static u32 switch_scpi_count(const struct switch_order *order, u32 orders,
			     enum coll_circuit_order_kind what)
{
	u32 i, found = 0;

	for (i = 0; i < orders; i++)
		found += order[i].what == what;
	return found;
}

static int try_change(struct switch_device *s, struct switch_order *order, u32 orders)
{
	struct scpi *scpi = s->state;
	char why[SWITCH_WHY];
	u32 missing, i;
	int error = scpi->fd < 0 ? switch_scpi_dial(s, why) : 0;

	scpi->said[0] = 0;
	if (!error && switch_scpi_count(order, orders, COLL_CIRCUIT_ORDER_DOWN))
		error = switch_scpi_command(s, order, orders, COLL_CIRCUIT_ORDER_DOWN);
	if (!error && switch_scpi_count(order, orders, COLL_CIRCUIT_ORDER_UP))
		error = switch_scpi_command(s, order, orders, COLL_CIRCUIT_ORDER_UP);
	if (!error)
		error = switch_scpi_judge(s, order, orders, &missing);
	/* One impossible order may have failed the whole command: retries each alone. */
	for (i = 0; !error && missing && orders > 1 && i < orders; i++)
		if (order[i].error) {
			scpi->said[0] = 0;
			error = switch_scpi_command(s, &order[i], 1, order[i].what);
			if (!error)
				error = switch_scpi_judge(s, &order[i], 1, &(u32){ 0 });
			if (!error && order[i].error)
				find_reason(s, &order[i]);
		}
	if (!error && missing && orders == 1)
		find_reason(s, order);
	return error;
}

/* After a lost connection the same command is sent again: it is idempotent. */
static void scpi_change(struct switch_device *s, struct switch_order *order, u32 orders)
{
	int error = try_change(s, order, orders), i;

	if (error)
		error = try_change(s, order, orders);
	for (i = 0; error && i < (int)orders; i++) {
		order[i].error = error;
		snprintf(order[i].why, SWITCH_WHY, "the switch does not answer: %s",
			 strerror(-error));
	}
}

static int scpi_read(struct switch_device *s, struct switch_path *path, u32 max, char *why)
{
	struct scpi *scpi = s->state;
	int paths = 0, tries;

	for (tries = 0; tries < 2; tries++) {
		paths = scpi->fd < 0 ? switch_scpi_dial(s, why) : 0;
		if (!paths)
			paths = read_paths(s, path, max);
		if (paths >= 0)
			return paths;
	}
	if (!*why)
		snprintf(why, SWITCH_WHY, "%s", strerror(-paths));
	return paths;
}

static int scpi_remove(struct switch_device *s, struct switch_path path)
{
	const struct scpi *scpi = s->state;
	char text[100], line[80];

	snprintf(text, sizeof(text), "*cls;:oxc:swit:conn:sub (@%u),(@%u);*opc?\n", path.in,
		 path.out + s->ports);
	return scpi->fd < 0 ? -ENOTCONN : switch_scpi_ask(s, text, line, sizeof(line));
}

/* ---- open, close ---------------------------------------------------------- */

/* HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT */
static void scpi_read_host(struct scpi *scpi, const char *argument)
{
	const bool bracket = *argument == '[';
	const char *host = argument + bracket, *end = bracket ? strchr(host, ']') : strrchr(host, ':');
	const char *rest;

	if (!end)
		end = host + strlen(host);
	rest = end + (bracket && *end);
	snprintf(scpi->host, sizeof(scpi->host), "%.*s", (int)(end - host), host);
	snprintf(scpi->port, sizeof(scpi->port), "%s", *rest == ':' ? rest + 1 : "5025");
}

static int scpi_open(struct switch_device *s, const char *argument, char *why)
{
	struct scpi *scpi = calloc(1, sizeof(*scpi));
	char line[256];
	int error;

	s->state = scpi;
	if (!scpi)
		return -ENOMEM;
	scpi->fd = -1;
	scpi_read_host(scpi, argument);
	if (!scpi->host[0]) {
		snprintf(why, SWITCH_WHY, "whose? HOST[:PORT]");
		return -EINVAL;
	}
	error = switch_scpi_dial(s, why);
	if (!error)
		error = switch_scpi_ask(s, ":oxc:swit:size?\n", line, sizeof(line));
	if (error)
		return error;
	s->ports = strtoul(line, NULL, 10);
	if (s->ports && s->ports <= SWITCH_PORTS_MAX)
		return 0;
	snprintf(why, SWITCH_WHY, "invalid size of the switch: '%.60s'", line);
	return -EPROTO;
}

static void scpi_close(struct switch_device *s)
{
	if (s->state)
		hang_up(s->state);
	free(s->state);
}

const struct switch_ops switch_scpi = {
	.name = "scpi", .valid = "HOST[:PORT]", .open = scpi_open, .close = scpi_close,
	.change = scpi_change, .read = scpi_read, .remove = scpi_remove,
};
