// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* coll circuit: shows and controls colld's circuit manager. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/circuit/circuit.h"
#include "core/noise/text.h"
#include "libcoll/base/clock.h"
#include "libcoll/base/stream.h"
#include "tools/common/arguments.h"
#include "circuit_socket.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "tools/common/palette.h"
#include "tools/common/whole.h"

struct asked {
	const char *socket, *svg;
	bool json, ahead;
	double wait, span;
	int fd;
};

/* ---- the daemon's socket ------------------------------------------------- */

static int connect_daemon(struct asked *asked)
{
	asked->fd = circuit_socket(asked->socket);
	if (asked->fd >= 0)
		return COMMAND_OK;
	if (asked->fd == -ENAMETOOLONG) {
		fprintf(stderr, "coll circuit: --socket; valid: a path of at most %d bytes\n",
			CIRCUIT_SOCKET_MAX);
		return COMMAND_USAGE;
	}
	fprintf(stderr, "coll circuit: %s: %s (is colld --circuits running?)\n", asked->socket,
		strerror(-asked->fd));
	return COMMAND_ERROR;
}

static bool send_request(const struct asked *asked, struct coll_circuit_message *m)
{
	m->magic = COLL_CIRCUIT_MAGIC;
	m->version = COLL_CIRCUIT_VERSION;
	m->cookie = 1;
	return send(asked->fd, m, sizeof(*m), MSG_NOSIGNAL) == sizeof(*m);
}

#define MESSAGE_NS (10 * COLL_SECOND)	/* for the rest of a message that has begun */

/* 1: a message; 0: none within the time in ms; -1: colld has ended, or stands still amid one. */
static int circuit_receive(const struct asked *asked, struct coll_circuit_message *m, int ms)
{
	struct pollfd fd = { asked->fd, POLLIN, 0 };
	const int ready = poll(&fd, 1, ms);

	if (ready <= 0)
		return ready < 0 && errno != EINTR ? -1 : 0;
	return !coll_stream_receive(asked->fd, m, sizeof(*m), coll_now() + MESSAGE_NS) &&
	       m->magic == COLL_CIRCUIT_MAGIC ? 1 : -1;
}

/* Sends; passes messages that precede the answer to the caller. */
static int circuit_request(struct asked *asked, struct coll_circuit_message *m,
			   void (*each)(const struct coll_circuit_message *m, void *data),
			   void *data)
{
	enum { PATIENCE_MS = 10000 };

	if (!send_request(asked, m) )
		goto gone;
	for (;;) {
		if (circuit_receive(asked, m, PATIENCE_MS) <= 0)
			goto gone;
		if (m->kind == COLL_CIRCUIT_MSG_ANSWER)
			break;
		if (each)
			each(m, data);
	}
	if (!m->answer.error)
		return COMMAND_OK;
	fprintf(stderr, "coll circuit: %s: %s\n", strerror(-m->answer.error), m->answer.text);
	return COMMAND_ERROR;
gone:
	fprintf(stderr, "coll circuit: colld does not answer\n");
	return COMMAND_ERROR;
}

static bool name_to(char *to, const char *what, const char *name)
{
	_Static_assert(COLL_CIRCUIT_NAME == 64, "the words below");

	if (!*name || strlen(name) >= COLL_CIRCUIT_NAME)
		return argument_refuse("circuit", what, name, "a node's name of 1 to 63 bytes");
	strcpy(to, name);
	return true;
}

/* ---- show ---------------------------------------------------------------- */

static const char *state_name(const struct coll_circuit_message *m)
{
	return m->circuit.state < COLL_CIRCUIT_STATES ?
		       coll_circuit_state_names[m->circuit.state] : "?";
}

static json_t *circuit_json(const struct coll_circuit_message *m)
{
	json_t *circuit = json_pack("{s:s, s:s, s:s, s:i, s:I}", "node", m->circuit.node, "peer",
				    m->circuit.peer, "state", state_name(m), "requests",
				    (int)m->circuit.requests, "ns", (json_int_t)m->circuit.ns);

	if (m->circuit.port[0] != COLL_CIRCUIT_NO_PORT)
		json_object_set_new(circuit, "port",
				    json_pack("[i,i]", m->circuit.port[0], m->circuit.port[1]));
	if (m->circuit.holder[0])
		json_object_set_new(circuit, "holder", json_string(m->circuit.holder));
	if (m->circuit.text[0])
		json_object_set_new(circuit, "why", json_string(m->circuit.text));
	return circuit;
}

static json_t *status_json(const struct coll_circuit_message *m)
{
	const struct { const char *name; u64 value; } figures[] = {
		{ "setups", m->status.setups }, { "failures", m->status.failures },
		{ "lost", m->status.lost }, { "drift", m->status.drift },
		{ "revoked", m->status.revoked }, { "queue_ns", m->status.queue_ns },
		{ "switch_ns", m->status.switch_ns }, { "lock_ns", m->status.lock_ns },
		{ "notify_ns", m->status.notify_ns }, { "delay_ns", m->status.delay_ns },
		{ "delay_p90_ns", m->status.delay_p90_ns },
	};
	json_t *status = json_pack("{s:s, s:i}", "driver", m->status.driver, "limit",
				   (int)m->status.limit);
	size_t i;

	for (i = 0; i < sizeof(figures) / sizeof(*figures); i++)
		json_object_set_new(status, figures[i].name, json_integer(figures[i].value));
	return status;
}

static void keep_json(const struct coll_circuit_message *m, void *data)
{
	json_t *root = data;

	switch (m->kind) {
	case COLL_CIRCUIT_MSG_NODE:
		json_array_append_new(json_object_get(root, "nodes"),
			json_pack("{s:s, s:i, s:I}", "node", m->node.name, "ports",
				  (int)m->node.ports, "taken", (json_int_t)m->node.taken));
		break;
	case COLL_CIRCUIT_MSG_HOLDER:
		json_array_append_new(json_object_get(root, "holders"),
			json_pack("{s:s, s:I, s:i, s:I, s:I}", "holder", m->holder.name,
				  "user", (json_int_t)m->holder.user,
				  "priority", (int)m->holder.priority, "requests",
				  (json_int_t)m->holder.requests, "port_ns",
				  (json_int_t)m->holder.port_ns));
		break;
	case COLL_CIRCUIT_MSG_CIRCUIT:
		json_array_append_new(json_object_get(root, "circuits"), circuit_json(m));
		break;
	case COLL_CIRCUIT_MSG_SWITCH:
		json_object_set_new(root, "switch", status_json(m));
		break;
	}
}

static void print_circuit(const char *node, const char *peer, const char *state, json_t *circuit)
{
	json_t *port = json_object_get(circuit, "port");
	const char *holder = json_string_value(json_object_get(circuit, "holder"));
	const char *why = json_string_value(json_object_get(circuit, "why"));
	char ports[32] = "-";

	if (port)
		snprintf(ports, sizeof(ports), "%d-%d",
			 (int)json_integer_value(json_array_get(port, 0)),
			 (int)json_integer_value(json_array_get(port, 1)));
	printf("%-16s %-16s %-7s %-9s %8d  %s%s%s\n", node, peer, ports, state,
	       (int)json_integer_value(json_object_get(circuit, "requests")), holder ? holder : "",
	       why ? " # " : "", why ? why : "");
}

static double circuit_ms(json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key)) / 1e6;
}

static void print_tables(json_t *root)
{
	json_t *s = json_object_get(root, "switch"), *each;
	size_t i;

	printf("%-16s %5s %5s\n", "NODE", "PORTS", "TAKEN");
	json_array_foreach(json_object_get(root, "nodes"), i, each)
		printf("%-16s %5d %5d\n", json_string_value(json_object_get(each, "node")),
		       (int)json_integer_value(json_object_get(each, "ports")),
		       (int)json_integer_value(json_object_get(each, "taken")));
	printf("\n%-16s %-16s %-7s %-9s %8s  %s\n", "NODE", "PEER", "PORTS", "STATE", "REQUESTS",
	       "HOLDER");
	json_array_foreach(json_object_get(root, "circuits"), i, each)
		print_circuit(json_string_value(json_object_get(each, "node")),
			      json_string_value(json_object_get(each, "peer")),
			      json_string_value(json_object_get(each, "state")), each);
	printf("\n%-32s %8s %8s %8s %14s\n", "HOLDER", "USER", "PRIORITY", "REQUESTS",
	       "PORT SECONDS");
	json_array_foreach(json_object_get(root, "holders"), i, each)
		printf("%-32s %8lld %8d %8d %14.3f\n",
		       json_string_value(json_object_get(each, "holder")),
		       json_integer_value(json_object_get(each, "user")),
		       (int)json_integer_value(json_object_get(each, "priority")),
		       (int)json_integer_value(json_object_get(each, "requests")),
		       circuit_ms(each, "port_ns") / 1e3);
	printf("\nswitch: %s\nset up %d, failures %d, lost %d, drift %d, revoked %d\n",
	       json_string_value(json_object_get(s, "driver")),
	       (int)json_integer_value(json_object_get(s, "setups")),
	       (int)json_integer_value(json_object_get(s, "failures")),
	       (int)json_integer_value(json_object_get(s, "lost")),
	       (int)json_integer_value(json_object_get(s, "drift")),
	       (int)json_integer_value(json_object_get(s, "revoked")));
	printf("reconfiguration delay: %.3f ms = queue %.3f + switch %.3f + lock %.3f + notify "
	       "%.3f (medians); 90th percentile %.3f ms\n",
	       circuit_ms(s, "delay_ns"), circuit_ms(s, "queue_ns"), circuit_ms(s, "switch_ns"),
	       circuit_ms(s, "lock_ns"), circuit_ms(s, "notify_ns"), circuit_ms(s, "delay_p90_ns"));
}

/* ---- the port map -------------------------------------------------------- */

static u32 index_of(json_t *nodes, const char *name)
{
	json_t *node;
	size_t i;

	json_array_foreach(nodes, i, node)
		if (!strcmp(json_string_value(json_object_get(node, "node")), name))
			return i;
	return 0;
}

/* Nodes on a circle, and a line for each circuit with its ports at both ends. */
static void circuit_draw(FILE *to, json_t *root, const char *path)
{
	static const char *const colours[] = { "rule", "series5", "series2", "good", "series4",
					       "bad" };
	json_t *nodes = json_object_get(root, "nodes"), *each;
	const size_t count = json_array_size(nodes);
	size_t i, state;

	fprintf(to, "%sset terminal svg size 640,640 enhanced background paper\nset output '%s'\n"
		"unset border; unset tics; unset key\nset size ratio -1\n"
		"set xrange [-1.35:1.35]; set yrange [-1.35:1.35]\n", palette_gp, path);
	for (state = COLL_CIRCUIT_REQUESTED; state < COLL_CIRCUIT_STATES; state++)
		fprintf(to, "set label '%s' at graph 0.02,%f tc rgb %s\n",
			coll_circuit_state_names[state], 1.0 - 0.035 * state, colours[state]);
	json_array_foreach(json_object_get(root, "circuits"), i, each) {
		const char *name = json_string_value(json_object_get(each, "state"));
		const double a = 2 * M_PI / count *
			index_of(nodes, json_string_value(json_object_get(each, "node")));
		const double b = 2 * M_PI / count *
			index_of(nodes, json_string_value(json_object_get(each, "peer")));
		json_t *port = json_object_get(each, "port");

		for (state = 0; strcmp(coll_circuit_state_names[state], name); state++)
			;
		fprintf(to, "set arrow from %f,%f to %f,%f nohead lw 2 dt %d lc rgb %s\n", sin(a),
			cos(a), sin(b), cos(b), state == COLL_CIRCUIT_UP ? 1 : 2, colours[state]);
		if (port)
			fprintf(to, "set label '%d' at %f,%f center front font ',9'\n"
				"set label '%d' at %f,%f center front font ',9'\n",
				(int)json_integer_value(json_array_get(port, 0)),
				0.85 * sin(a) + 0.15 * sin(b), 0.85 * cos(a) + 0.15 * cos(b),
				(int)json_integer_value(json_array_get(port, 1)),
				0.15 * sin(a) + 0.85 * sin(b), 0.15 * cos(a) + 0.85 * cos(b));
	}
	json_array_foreach(nodes, i, each)
		fprintf(to, "set label \"%s\\n%d/%d\" at %f,%f center front noenhanced\n",
			json_string_value(json_object_get(each, "node")),
			(int)json_integer_value(json_object_get(each, "taken")),
			(int)json_integer_value(json_object_get(each, "ports")),
			1.18 * sin(2 * M_PI * i / count), 1.18 * cos(2 * M_PI * i / count));
	fprintf(to, "plot '-' using 1:2 with points pt 7 ps 1.5 lc rgb ink\n");
	for (i = 0; i < count; i++)
		fprintf(to, "%f %f\n", sin(2 * M_PI * i / count), cos(2 * M_PI * i / count));
	fprintf(to, "e\n");
}

static int draw_svg(json_t *root, const char *path)
{
	FILE *gnuplot = strchr(path, '\'') ? NULL : popen("gnuplot", "w");

	if (gnuplot)
		circuit_draw(gnuplot, root, path);
	if (gnuplot && !pclose(gnuplot))
		return COMMAND_OK;
	fprintf(stderr, "coll circuit: no picture at %s: gnuplot is needed\n", path);
	return COMMAND_ERROR;
}

static int circuit_show(struct asked *asked)
{
	json_t *root = json_pack("{s:[], s:[], s:[]}", "nodes", "circuits", "holders");
	struct coll_circuit_message m = { .kind = COLL_CIRCUIT_MSG_SHOW };
	int status = circuit_request(asked, &m, keep_json, root);

	if (!status && asked->svg)
		status = draw_svg(root, asked->svg);
	else if (!status && asked->json)
		status = json_dumpf(root, stdout, JSON_INDENT(2)) ? COMMAND_ERROR : COMMAND_OK;
	else if (!status)
		print_tables(root);
	if (asked->json)
		puts("");
	json_decref(root);
	return status;
}

/* ---- watch and requests -------------------------------------------------- */

static double circuit_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static void print_change(const struct asked *asked, const struct coll_circuit_message *m)
{
	json_t *circuit = circuit_json(m);

	if (asked->json) {
		json_dumpf(circuit, stdout, JSON_COMPACT);
		puts("");
	} else {
		print_circuit(m->circuit.node, m->circuit.peer, state_name(m), circuit);
	}
	fflush(stdout);
	json_decref(circuit);
}

static int circuit_watch(struct asked *asked)
{
	struct coll_circuit_message m = { .kind = COLL_CIRCUIT_MSG_WATCH };
	const double end = asked->span > 0 ? circuit_seconds() + asked->span : INFINITY;
	int status = circuit_request(asked, &m, NULL, NULL), got;

	while (!status && circuit_seconds() < end) {
		got = circuit_receive(
			asked, &m, isfinite(end) ? (int)((end - circuit_seconds()) * 1e3) + 1 : -1);
		if (got < 0) {
			fprintf(stderr, "coll circuit: colld has ended\n");
			status = COMMAND_ERROR;
		}
		if (got > 0 && m.kind == COLL_CIRCUIT_MSG_CIRCUIT)
			print_change(asked, &m);
	}
	return status;
}

static bool is_pair(const struct coll_circuit_message *m, const char *a, const char *b)
{
	return (!strcmp(m->circuit.node, a) && !strcmp(m->circuit.peer, b)) ||
	       (!strcmp(m->circuit.node, b) && !strcmp(m->circuit.peer, a));
}

struct found {
	const char *node, *peer;
	bool up;
	char why[COLL_CIRCUIT_TEXT];
};

static void find_up(const struct coll_circuit_message *m, void *data)
{
	struct found *found = data;

	if (m->kind != COLL_CIRCUIT_MSG_CIRCUIT || !is_pair(m, found->node, found->peer))
		return;
	found->up = m->circuit.state == COLL_CIRCUIT_UP;
	snprintf(found->why, sizeof(found->why), "%.100s%s%.40s", state_name(m),
		 m->circuit.text[0] ? ": " : "", m->circuit.text);
}

static int wait_until_up(struct asked *asked, const char *node, const char *peer)
{
	struct found found = { .node = node, .peer = peer };
	const double end = circuit_seconds() + asked->wait;
	struct coll_circuit_message m = { .kind = COLL_CIRCUIT_MSG_WATCH };
	int status = circuit_request(asked, &m, find_up, &found);

	m = (struct coll_circuit_message){ .kind = COLL_CIRCUIT_MSG_SHOW };
	if (!status)
		status = circuit_request(asked, &m, find_up, &found);
	while (!status && !found.up && circuit_seconds() < end) {
		const int got =
			circuit_receive(asked, &m, (int)((end - circuit_seconds()) * 1e3) + 1);

		if (got < 0)
			status = COMMAND_ERROR;
		if (got > 0)
			find_up(&m, &found);
	}
	if (!status && !found.up) {
		fprintf(stderr, "coll circuit: %s - %s is not up after %g s; state: %s\n", node, peer,
			asked->wait, found.why[0] ? found.why : "unknown");
		status = COMMAND_ERROR;
	}
	return status;
}

/* ---- what is asked -------------------------------------------------------- */

static bool pair_make(struct coll_circuit_message *m, int kind, const char *node, const char *peer)
{
	m->kind = kind;
	return name_to(m->pair.node, "NODE", node) && (!peer || name_to(m->pair.peer, "PEER", peer));
}

static bool request_make(struct coll_circuit_message *m, bool ahead, const char *node, const char *peer)
{
	m->kind = COLL_CIRCUIT_MSG_REQUEST;
	m->request.flags = COLL_CIRCUIT_STANDING | (ahead ? COLL_CIRCUIT_AHEAD : 0);
	return name_to(m->request.node, "NODE", node) && name_to(m->request.peer, "PEER", peer);
}

static bool ports_make(struct coll_circuit_message *m, const char *node, const char *number)
{
	u64 value;

	if (!name_to(m->node.name, "NODE", node) ||
	    !argument_number("circuit", "N", number, 0, COLL_CIRCUIT_PORTS_MAX, &value))
		return false;
	m->kind = COLL_CIRCUIT_MSG_PORTS;
	m->node.ports = value;
	return true;
}

/* ---- options ------------------------------------------------------------- */

#define CIRCUIT_TIME(field) OPTION_SECONDS(struct asked, field, 1e-9, 1e9)

static const struct option_entry circuit_entries[] = {
	{ "socket", 0, "PATH", "socket of colld", OPTION_TEXT(struct asked, socket),
	  .preset = COLL_CIRCUIT_SOCKET },
	{ "json", 0, NULL, "print JSON; watch: one object per line",
	  OPTION_FORMAT(struct asked, json) },
	{ "svg", 0, "FILE", "draw the port map with gnuplot", OPTION_TEXT(struct asked, svg),
	  .one_of = OPTION_OF_FORMATS },
	{ "ahead", 0, NULL, "use only ports that no other request needs",
	  OPTION_FLAG(struct asked, ahead) },
	{ "wait", 0, "TIME", "longest wait until the circuit is up", CIRCUIT_TIME(wait),
	  .preset = "10s" },
	{ "for", 0, "TIME", "watch for this time", CIRCUIT_TIME(span),
	  .otherwise = "until interrupted" },
	{ NULL },
};

static const char *const usage[] = {
	"usage: coll circuit show [--json | --svg FILE]",
	"       coll circuit watch [--json] [--for TIME]",
	"       coll circuit request NODE PEER [--ahead] [--wait TIME]",
	"       coll circuit release NODE PEER",
	"       coll circuit drain NODE [PEER]",
	"       coll circuit ports NODE N",
	"",
	"Shows and manages the circuits of an optical switch, through colld --circuits.",
	"",
	"  show      nodes and their ports, circuits, holders, the switch, its reconfiguration "
	"delay",
	"  watch     one line per change",
	"  request   hold a circuit until it is released; waits until the circuit is up",
	"  release   release a requested circuit",
	"  drain     take circuits down after a grace time; requests for them stay",
	"  ports     set the number of ports of a node",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0 ok, 1 an error, 2 wrong usage.",
	NULL,
};

const struct option_table cmd_circuit_options = {
	.command = "circuit",
	.usage = usage,
	.closing = closing,
	.list = { circuit_entries },
	.arguments = OPTIONS_ANY,
};

static const struct what {
	const char *name;
	const char *arguments;
	int least, most;	/* arguments */
} whats[] = {
	{ "show", "none", 0, 0 }, { "watch", "none", 0, 0 }, { "request", "NODE PEER", 2, 2 },
	{ "release", "NODE PEER", 2, 2 }, { "drain", "NODE [PEER]", 1, 2 }, { "ports", "NODE N", 2, 2 },
};
enum { SHOW, WATCH, REQUEST, RELEASE, DRAIN, PORTS, WHATS };

/* Before colld is asked: a wrong argument is wrong without one, too. */
static bool circuit_message(const struct asked *asked, int what, char **argument, int arguments,
			    struct coll_circuit_message *m)
{
	switch (what) {
	case REQUEST:
		return request_make(m, asked->ahead, argument[0], argument[1]);
	case RELEASE:
		return pair_make(m, COLL_CIRCUIT_MSG_RELEASE, argument[0], argument[1]);
	case DRAIN:
		return pair_make(m, COLL_CIRCUIT_MSG_DRAIN, argument[0], arguments > 1 ? argument[1] : NULL);
	case PORTS:
		return ports_make(m, argument[0], argument[1]);
	default:
		return true;
	}
}

static int circuit_act(struct asked *asked, int what, char **argument, int arguments)
{
	struct coll_circuit_message m = { 0 };
	int status;

	if (!circuit_message(asked, what, argument, arguments, &m))
		return COMMAND_USAGE;
	status = whole_possible("circuit", asked->svg) ? connect_daemon(asked) : COMMAND_ERROR;
	if (status)
		return status;
	if (what == SHOW)
		return circuit_show(asked);
	if (what == WATCH)
		return circuit_watch(asked);
	status = circuit_request(asked, &m, NULL, NULL);
	return status || what != REQUEST ? status : wait_until_up(asked, argument[0], argument[1]);
}

int cmd_circuit(int argc, char **argv)
{
	struct asked asked = { .fd = -1 };
	int what, arguments;

	if (!options_read(&cmd_circuit_options, argc, argv, &asked))
		return COMMAND_USAGE;
	if (optind == argc) {
		options_help(&cmd_circuit_options, stderr);
		return COMMAND_USAGE;
	}
	for (what = 0; what < WHATS && strcmp(whats[what].name, argv[optind]); what++)
		;
	arguments = argc - optind - 1;
	if (what < WHATS && arguments >= whats[what].least && arguments <= whats[what].most)
		return circuit_act(&asked, what, argv + optind + 1, arguments);
	if (what == WHATS)
		fprintf(stderr,
			"coll circuit: no '%s'; valid: show, watch, request, release, drain, "
			"ports\n",
			argv[optind]);
	else
		fprintf(stderr, "coll circuit %s: %d arguments; valid: %s\n", argv[optind],
			arguments, whats[what].arguments);
	return COMMAND_USAGE;
}
