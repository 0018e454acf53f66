// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * fake_switch [PORTS [LOG]]: a simulated optical switch: one crossbar of PORTS (16) ports
 * behind two front ends, SCPI and RESTCONF, with fault injection. It prints
 * "SCPI-PORT HTTP-PORT" and serves until its stdin ends. It writes each path that comes or
 * goes to the file LOG, "up IN OUT" or "down IN", and each refused one, "no IN OUT".
 *
 * Its answers follow public clients of Polatis switches where these show them: the grammar,
 * the empty answer to commands, the lists, 201, 204, 404 and 409. Assumed: the error numbers
 * (SCPI-99's), that `add` on a port in use fails as a whole, and that *OPC? answers when the
 * mirrors stand still.
 *
 * Faults are injected over the SCPI port, for either front end:
 *	:fake:slow MS		each change takes MS
 *	:fake:stuck PORT	this port has failed: it connects nothing. 0: none
 *	:fake:drip MS		SCPI: each byte of an answer takes MS. 0: none
 *	:fake:pad BYTES		RESTCONF: so many blanks end the list of paths. 0: none
 *	:fake:drop N		the N-th path from now on is lost at once
 *	:fake:hangup N		the N-th request from now on loses its connection, half done
 *	:fake:pair IN,OUT	another client connects these, OUT from 1
 *	:fake:cut IN		another client removes the path
 *	:fake:mark N		writes "mark N" to the log
 *	:fake:most?		the largest number of paths at any time
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORTS_MAX = 64, ERRORS_MAX = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int leads[PORTS_MAX + 1];	/* 1..ports, or 0 */
static int ports = 16;
static FILE *journal;			/* of what it did, or NULL */
static int slow, stuck, drip, pad, drop, hangup, paths, most;
static const char *queue[ERRORS_MAX];	/* of SCPI errors */
static int errors;

/* ---- the crossbar: under the lock ---------------------------------------- */

static void complain(const char *text)
{
	if (errors < ERRORS_MAX)
		queue[errors++] = text;
}

static void note(const char *what, int in, int out)
{
	if (!journal)
		return;
	fprintf(journal, out ? "%s %d %d\n" : "%s %d\n", what, in, out);
	fflush(journal);
}

/* The port that leads to that side's port, or 0. */
static int led_by(int out)
{
	int in;

	for (in = 1; in <= ports; in++)
		if (leads[in] == out)
			return in;
	return 0;
}

static const char *why_not(int in, int out)
{
	if (in < 1 || in > ports || out < 1 || out > ports)
		return "-222,\"Data out of range\"";
	if (leads[in] == out)
		return NULL;
	if (leads[in] || led_by(out))
		return "-221,\"Settings conflict; port in use\"";
	if (stuck && (in == stuck || out == stuck))
		return "-240,\"Hardware error\"";
	return NULL;
}

static const char *may_join(int in, int out)
{
	const char *wrong = why_not(in, out);

	if (wrong)
		note("no", in, out);
	return wrong;
}

static void join_ports(int in, int out)
{
	if (!leads[in])
		paths++;
	if (leads[in] != out)
		note("up", in, out);
	leads[in] = out;
	most = paths > most ? paths : most;
	if (drop && !--drop) {
		note("down", in, 0);
		leads[in] = 0;
		paths--;
	}
}

static bool part_ports(int in)
{
	if (!leads[in])
		return false;
	note("down", in, 0);
	leads[in] = 0;
	paths--;
	return true;
}

/* The mirrors move; the next request waits. */
static void move(void)
{
	if (slow)
		usleep(slow * 1000);
}

/* ---- SCPI ---------------------------------------------------------------- */

static int read_list(char **text, int *port)
{
	char *at = strstr(*text, "(@"), *rest;
	int count = 0;

	if (!at)
		return -1;
	for (at += 2; *at && *at != ')' && count < 2 * ports; at = rest + (*rest == ',')) {
		port[count] = strtol(at, &rest, 10);
		if (rest == at)
			return -1;
		count++;
	}
	*text = at;
	return *at == ')' ? count : -1;
}

static void change(char *list, bool up)
{
	int in[2 * PORTS_MAX], out[2 * PORTS_MAX], i;
	const int ins = read_list(&list, in), outs = read_list(&list, out);
	const char *wrong = NULL;

	if (ins < 0 || ins != outs) {
		complain("-104,\"Data type error\"");
		return;
	}
	for (i = 0; up && i < ins && !wrong; i++)
		wrong = may_join(in[i], out[i] - ports);
	if (wrong) {
		complain(wrong);
		return;
	}
	for (i = 0; i < ins; i++) {
		if (up)
			join_ports(in[i], out[i] - ports);
		else if (in[i] < 1 || in[i] > ports || leads[in[i]] != out[i] - ports ||
			 !part_ports(in[i]))
			complain("-221,\"Settings conflict; not connected\"");
	}
	move();
}

static void put_state(FILE *to)
{
	int in, side;

	for (side = 0; side < 2; side++) {
		const char *comma = "";

		fprintf(to, side ? ",(@" : "(@");
		for (in = 1; in <= ports; in++)
			if (leads[in]) {
				fprintf(to, "%s%d", comma, side ? leads[in] + ports : in);
				comma = ",";
			}
		fprintf(to, ")");
	}
	fprintf(to, "\r\n");
}

static void put_ports(char *list, FILE *to)
{
	int port[2 * PORTS_MAX], i;
	const int count = read_list(&list, port);

	fprintf(to, "(");
	for (i = 0; i < count; i++)
		fprintf(to, "%s%c", i ? "," : "", stuck && (port[i] == stuck ||
			port[i] == stuck + ports) ? 'F' : 'E');
	fprintf(to, ")\r\n");
}

static void fake(char *what, FILE *to)
{
	int a = 0, b = 0;
	char word[16] = "";

	sscanf(what, "%15[a-z] %d,%d", word, &a, &b);
	if (!strcmp(word, "slow"))
		slow = a;
	else if (!strcmp(word, "stuck"))
		stuck = a;
	else if (!strcmp(word, "drip"))
		drip = a;
	else if (!strcmp(word, "pad"))
		pad = a;
	else if (!strcmp(word, "drop"))
		drop = a;
	else if (!strcmp(word, "hangup"))
		hangup = a;
	else if (!strcmp(word, "cut"))
		part_ports(a);
	else if (!strcmp(word, "pair"))
		join_ports(a, b);
	else if (!strcmp(word, "mark")) {
		note("mark", a, 0);
		fprintf(to, "marked\r\n");
	} else if (!strcmp(word, "most"))
		fprintf(to, "%d\r\n", most);
}

static void execute(char *command, FILE *to)
{
	command += strspn(command, " ");
	if (!strncasecmp(command, "*cls", 4)) {
		errors = 0;
	} else if (!strncasecmp(command, "*opc?", 5)) {
		fprintf(to, "1\r\n");
	} else if (!strncasecmp(command, "*idn?", 5)) {
		fprintf(to, "Polatis,FAKE-16x16,000001,6.5\r\n");
	} else if (!strncasecmp(command, ":syst:err?", 10)) {
		fprintf(to, "%s\r\n", errors ? queue[0] : "0,\"No error\"");
		if (errors)
			memmove(queue, queue + 1, --errors * sizeof(*queue));
	} else if (!strncasecmp(command, ":oxc:swit:size?", 15)) {
		fprintf(to, "%d,%d\r\n", ports, ports);
	} else if (!strncasecmp(command, ":oxc:swit:conn:stat?", 20)) {
		put_state(to);
	} else if (!strncasecmp(command, ":oxc:swit:conn:add ", 19)) {
		change(command + 19, true);
	} else if (!strncasecmp(command, ":oxc:swit:conn:sub ", 19)) {
		change(command + 19, false);
	} else if (!strncasecmp(command, ":oxc:swit:port:stat? ", 21)) {
		put_ports(command + 21, to);
	} else if (!strncasecmp(command, ":fake:", 6)) {
		fake(command + 6, to);
	} else {
		complain("-113,\"Undefined header\"");
	}
}

/* False: the connection is to end here. */
static bool serve_line(char *line, FILE *to)
{
	const bool ordering = !strncmp(line, ":fake:", 6);
	char *save, *command;
	bool goes_on = true;

	pthread_mutex_lock(&lock);
	if (hangup && !ordering && !--hangup)
		goes_on = false;
	for (command = strtok_r(line, ";", &save); command; command = strtok_r(NULL, ";", &save))
		execute(command, to);
	pthread_mutex_unlock(&lock);
	return goes_on;
}

/* Not what is answered to the test. */
static bool send_answer(int fd, const char *answer, size_t bytes, bool ordering)
{
	size_t at, step = drip && !ordering ? 1 : bytes;

	for (at = 0; at < bytes; at += step) {
		if (drip && !ordering)
			usleep(drip * 1000);
		if (send(fd, answer + at, step, MSG_NOSIGNAL) < 0)
			return false;
	}
	return true;
}

static void *serve_scpi(void *argument)
{
	const int fd = (long)argument;
	FILE *from = fdopen(fd, "r");
	char line[65536];

	while (from && fgets(line, sizeof(line), from)) {
		char *answer = NULL;
		size_t bytes = 0;
		FILE *to = open_memstream(&answer, &bytes);
		bool goes_on, ordering = !strncmp(line, ":fake:", 6);

		line[strcspn(line, "\r\n")] = 0;
		goes_on = serve_line(line, to);
		fclose(to);
		goes_on = goes_on && send_answer(fd, answer, bytes, ordering);
		free(answer);
		if (!goes_on)
			break;
	}
	if (from)
		fclose(from);
	return NULL;
}

static void *accept_scpi(void *argument)
{
	const int listener = (long)argument;
	pthread_t thread;
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0)
		if (!pthread_create(&thread, NULL, serve_scpi, (void *)(long)fd))
			pthread_detach(thread);
	return NULL;
}

/* ---- RESTCONF ------------------------------------------------------------ */

#define PATHS "/api/data/optical-switch:cross-connects"

struct upload {
	char body[4096];
	size_t bytes;
};

static enum MHD_Result reply(struct MHD_Connection *connection, int status, char *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		text ? strlen(text) : 0, text ? text : (void *)"",
		text ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	MHD_add_response_header(response, "Content-Type", "application/yang-data+json");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, int status, const char *text)
{
	json_t *body = json_pack("{s:{s:[{s:s}]}}", "ietf-restconf:errors", "error",
				 "error-message", text);
	char *said = json_dumps(body, 0);

	json_decref(body);
	return reply(connection, status, said);
}

static enum MHD_Result get_paths(struct MHD_Connection *connection)
{
	json_t *list = json_array(), *body;
	char *text;
	int in;

	for (in = 1; in <= ports; in++)
		if (leads[in])
			json_array_append_new(list, json_pack("{s:i, s:i}", "ingress", in, "egress",
							      leads[in] + ports));
	if (!json_array_size(list)) {
		json_decref(list);
		return reply(connection, 204, NULL);
	}
	body = json_pack("{s:{s:o}}", "optical-switch:cross-connects", "pair", list);
	text = json_dumps(body, 0);
	json_decref(body);
	if (pad) {
		const size_t bytes = strlen(text);

		text = realloc(text, bytes + pad + 1);
		memset(text + bytes, ' ', pad);
		text[bytes + pad] = 0;
	}
	return reply(connection, 200, text);
}

static enum MHD_Result post_path(struct MHD_Connection *connection, const char *text)
{
	json_t *body = json_loads(text, 0, NULL);
	json_t *pair = json_array_get(json_object_get(body, "optical-switch:pair"), 0);
	const int in = json_integer_value(json_object_get(pair, "ingress"));
	const int out = json_integer_value(json_object_get(pair, "egress")) - ports;
	const char *wrong = may_join(in, out);

	json_decref(body);
	if (wrong)
		return refuse(connection, strstr(wrong, "in use") ? 409 : 400, strchr(wrong, '"'));
	join_ports(in, out);
	move();
	return reply(connection, 201, NULL);
}

static enum MHD_Result serve(struct MHD_Connection *connection, const char *url,
			     const char *method, const char *body)
{
	char *name = NULL, *word = NULL;
	bool good;

	name = MHD_basic_auth_get_username_password(connection, &word);
	good = name && word && !strcmp(name, "admin") && !strcmp(word, "root");
	MHD_free(name);
	MHD_free(word);
	if (!good)
		return refuse(connection, 401, "who are you?");
	if (!strcmp(url, "/api"))
		return reply(connection, 200, NULL);
	if (!strcmp(url, PATHS) && !strcmp(method, "GET"))
		return get_paths(connection);
	if (!strcmp(url, PATHS) && !strcmp(method, "POST"))
		return post_path(connection, body);
	if (!strncmp(url, PATHS "/pair=", strlen(PATHS) + 6) && !strcmp(method, "DELETE")) {
		const int in = atoi(url + strlen(PATHS) + 6);

		if (in < 1 || in > ports || !part_ports(in))
			return refuse(connection, 404, "no such patch");
		move();
		return reply(connection, 204, NULL);
	}
	return refuse(connection, 404, "no such resource");
}

static enum MHD_Result answer(void *data, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **state)
{
	struct upload *kept = *state;
	enum MHD_Result result;
	bool goes_on = true;

	(void)data;
	(void)version;
	if (!kept) {
		*state = calloc(1, sizeof(*kept));
		return *state ? MHD_YES : MHD_NO;
	}
	if (*upload_bytes) {
		if (kept->bytes + *upload_bytes >= sizeof(kept->body))
			return MHD_NO;
		memcpy(kept->body + kept->bytes, upload, *upload_bytes);
		kept->bytes += *upload_bytes;
		*upload_bytes = 0;
		return MHD_YES;
	}
	pthread_mutex_lock(&lock);
	if (hangup && !--hangup)
		goes_on = false;
	result = serve(connection, url, method, kept->body);
	pthread_mutex_unlock(&lock);
	return goes_on ? result : MHD_NO;
}

static void forget(void *data, struct MHD_Connection *connection, void **state,
		   enum MHD_RequestTerminationCode code)
{
	(void)data;
	(void)connection;
	(void)code;
	free(*state);
	*state = NULL;
}

/* ---- both ---------------------------------------------------------------- */

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);
	const int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in http = address;
	struct MHD_Daemon *daemon;
	pthread_t thread;
	char byte;

	if (argc > 1)
		ports = atoi(argv[1]);
	if (argc > 2)
		journal = fopen(argv[2], "w");
	if (ports < 1 || ports > PORTS_MAX || (argc > 2 && !journal))
		return 2;
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&address, &bytes))
		return 1;
	daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer, NULL,
				  MHD_OPTION_SOCK_ADDR, &http, MHD_OPTION_NOTIFY_COMPLETED, forget,
				  NULL, MHD_OPTION_END);
	if (!daemon || pthread_create(&thread, NULL, accept_scpi, (void *)(long)listener))
		return 1;
	printf("%d %d\n", ntohs(address.sin_port),
	       MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	MHD_stop_daemon(daemon);
	return 0;
}
