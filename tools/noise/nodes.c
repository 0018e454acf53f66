// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* collnoise nodes: the nodes of an allocation side by side, from captures or measured now. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocation.h"
#include "commands.h"
#include "formats.h"
#include "node/units.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "view.h"

enum { HOSTS_MAX = 4096, TEXT_MAX = 16 << 20 };	/* of what one host may print */

struct nodes {
	const char *hosts, *ssh, *plot;
	u64 duration, timeout;
	bool json;
};

static const char *const usage[] = {
	"usage: collnoise nodes CAPTURE CAPTURE ... [OPTION ...]",
	"       collnoise nodes --hosts NAME,... [OPTION ...] [-- OPTION of collnoise measure ...]",
	"",
	"Puts the noise of several nodes side by side, and names those that differ from the others,",
	"with the cause. The captures are of one node each, in any format of collnoise import; or the",
	"nodes measure now, all at once.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0; 1 for an error, such as a host from which nothing came; 2 if a node differs from",
	"the others, or for wrong options. So a prolog script can refuse an allocation.",
	NULL,
};

static const struct option_entry nodes_entries[] = {
	{ "json", 0, NULL, "print JSON", OPTION_FLAG(struct nodes, json) },
	{ "plot", 0, "FILE.svg", "draw a picture", OPTION_SVG(struct nodes, plot) },
	{ "hosts", 0, "LIST", "measure on these hosts, by a remote shell, with commas between",
	  OPTION_TEXT(struct nodes, hosts), .group = "measured now" },
	{ "duration", 'd', "T", "how long",
	  OPTION_TIME(struct nodes, duration, "s", NODE_MS, 86400 * NODE_S), .preset = "10s" },
	{ "ssh", 0, "COMMAND", "remote shell", OPTION_TEXT(struct nodes, ssh),
	  .otherwise = "ssh -T -o BatchMode=yes" },
	{ "timeout", 't', "T", "end so long after the duration, with what has come",
	  OPTION_TIME(struct nodes, timeout, "s", NODE_S, 3600 * NODE_S), .preset = "60s" },
	{ NULL },
};

const struct option_table noise_nodes_options = {
	.command = "nodes",
	.usage = usage,
	.closing = closing,
	.list = { nodes_entries },
	.arguments = OPTIONS_ANY,
};

/* ---- captures ---------------------------------------------------------------------------- */

/* The host's name, where the capture has it and no earlier one does; else the file's. */
static char *capture_name(const struct noise_allocation *a, u32 at, const char *host,
			  const char *path)
{
	u32 i;

	for (i = 0; i < at && strcmp(a->node[i].name, host); i++)
		;
	return strdup(*host && i == at ? host : path);
}

static bool read_capture(struct noise_allocation *a, u32 at, const char *path)
{
	const struct noise_import any = { .format = NOISE_GUESS };
	struct node_capture capture = { 0 };
	struct noise_view view = { 0 };
	json_t *json = NULL;
	bool good;

	if (!noise_load("nodes", path, &any, &capture) && !noise_view_init(&view, &capture))
		json = noise_view_json(&view);
	a->node[at].name = capture_name(a, at, capture.head.host, path);
	good = json && a->node[at].name && noise_node_read(&a->node[at], json);
	if (json && !good)
		fprintf(stderr, "collnoise nodes: %s: nothing was watched\n", path);
	json_decref(json);
	noise_view_free(&view);
	node_capture_free(&capture);
	return good;
}

static bool read_captures(struct noise_allocation *a, char **paths)
{
	bool good = true;
	u32 i;

	for (i = 0; i < a->nodes && good; i++)
		good = read_capture(a, i, paths[i]);
	return good;
}

/* ---- hosts -------------------------------------------------------------------------------- */

/* What a host has printed so far. */
struct host_text {
	char *text;
	size_t bytes;
};

/* Names into `a`; false: the list has none, or one that is no name. */
static bool read_hosts(struct noise_allocation *a, const char *list)
{
	u32 i, count = 1;
	const char *at;
	size_t length;

	for (at = list; *at; at++)
		count += *at == ',';
	if (count > HOSTS_MAX || noise_allocation_init(a, count))
		return false;
	for (i = 0, at = list; i < count; i++, at += length + 1) {
		length = strcspn(at, ",");
		if (!length || memchr(at, ':', length) || memchr(at, '\'', length))
			return false;
		a->node[i].name = strndup(at, length);
		if (!a->node[i].name)
			return false;
	}
	return true;
}

/* A program of this name in the folder of this one. */
static bool beside_self(const char *name, char path[PATH_MAX])
{
	const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	if (length <= 0)
		return false;
	path[length] = 0;
	slash = strrchr(path, '/');
	return slash && (size_t)snprintf(slash + 1, PATH_MAX - (slash + 1 - path), "%s", name) <
			(size_t)(PATH_MAX - (slash + 1 - path));
}

/* Nothing of a host's text moves the cursor here. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (!isprint((unsigned char)*text) && *text != '\n')
			*text = '?';
}

/* "[RANK] line": the line belongs to that host. Others are passed on. */
static void take_line(struct host_text *hosts, u32 count, char *line)
{
	char *end = NULL;
	const unsigned long rank = *line == '[' ? strtoul(line + 1, &end, 10) : count;
	struct host_text *host = rank < count ? &hosts[rank] : NULL;
	size_t bytes;
	char *more;

	make_printable(line);
	if (!host || strncmp(end, "] ", 2)) {
		fprintf(stderr, "collnoise nodes: a host printed: %s", line);
		return;
	}
	bytes = strlen(end + 2);
	more = host->bytes + bytes < TEXT_MAX ? realloc(host->text, host->bytes + bytes + 1) : NULL;
	if (!more)
		return;
	memcpy(more + host->bytes, end + 2, bytes + 1);
	host->text = more;
	host->bytes += bytes;
}

static void take_texts(struct noise_allocation *a, struct host_text *hosts)
{
	u32 i;

	for (i = 0; i < a->nodes; i++) {
		json_error_t error = { .text = "it printed nothing" };
		json_t *json = hosts[i].text ? json_loads(hosts[i].text, 0, &error) : NULL;

		if (!json || !noise_node_read(&a->node[i], json))
			fprintf(stderr, "collnoise nodes: %s: no measurement came: %s\n",
				a->node[i].name, json ? "its CPUs were never free in that time" :
				       error.text);
		json_decref(json);
		free(hosts[i].text);
	}
}

/* coll run with collnoise measure on each host. NULL: there is no memory, or no coll. */
static char **make_command(const struct nodes *n, char **extra, int extras)
{
	static char coll[PATH_MAX], noise[PATH_MAX], timeout[32], duration[32];
	const char *const words[] = {
		coll, "run", "--hosts", n->hosts, "--keep-going", "--prefix", "--quiet", "--bind",
		"none", "--timeout", timeout, "--ssh", n->ssh, "--", noise, "measure", "--quiet",
		"--json", "--duration", duration,
	};
	char **argv = calloc(sizeof(words) / sizeof(*words) + extras + 1, sizeof(*argv));
	size_t i, count = 0;

	if (!argv || !beside_self("coll", coll) || !beside_self("collnoise", noise)) {
		free(argv);
		return NULL;
	}
	snprintf(duration, sizeof(duration), "%lluns", (unsigned long long)n->duration);
	snprintf(timeout, sizeof(timeout), "%lluns", (unsigned long long)(n->duration + n->timeout));
	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (n->ssh || (words[i] != n->ssh && strcmp(words[i], "--ssh")))
			argv[count++] = (char *)words[i];
	for (i = 0; i < (size_t)extras; i++)
		argv[count++] = extra[i];
	return argv;
}

/* Starts it; its output can be read from the result. */
static FILE *start_command(char **argv, pid_t *child)
{
	posix_spawn_file_actions_t actions;
	int fd[2], error;
	FILE *from;

	if (pipe2(fd, O_CLOEXEC))
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd[1], STDOUT_FILENO);
	error = posix_spawn(child, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fd[1]);
	from = error ? NULL : fdopen(fd[0], "r");
	if (!from) {
		close(fd[0]);
		if (!error)		/* its output has no reader: it ends */
			waitpid(*child, NULL, 0);
		errno = error ? error : ENOMEM;
	}
	return from;
}

static bool measure_hosts(const struct nodes *n, struct noise_allocation *a, char **extra,
			  int extras)
{
	struct host_text *hosts = calloc(a->nodes, sizeof(*hosts));
	char **argv = make_command(n, extra, extras);
	FILE *from = NULL;
	char *line = NULL;
	size_t capacity = 0;
	pid_t child = 0;

	fflush(NULL);
	if (hosts && argv)
		from = start_command(argv, &child);
	if (!from) {
		fprintf(stderr, "collnoise nodes: cannot start %s: %s\n", argv ? argv[0] : "coll",
			strerror(errno));
	} else {
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "%u hosts measure for %g s\n", a->nodes, n->duration / 1e9);
		while (getline(&line, &capacity, from) > 0)
			take_line(hosts, a->nodes, line);
		fclose(from);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
		take_texts(a, hosts);
	}
	free(line);
	free(argv);
	free(hosts);
	return from;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int nodes_report(const struct nodes *n, struct noise_allocation *a)
{
	noise_allocation_judge(a);
	if (n->json)
		noise_json_print(noise_allocation_json(a), stdout);
	else
		noise_allocation_print(a, stdout);
	if (n->plot && a->came && noise_allocation_draw(a, n->plot))
		return COMMAND_ERROR;
	if (a->came < a->nodes)
		return COMMAND_ERROR;
	return a->outliers ? COMMAND_USAGE : COMMAND_OK;
}

static int nodes_there(const struct nodes *n, char **extra, int extras)
{
	struct noise_allocation a = { 0 };
	int status = COMMAND_ERROR;

	if (!read_hosts(&a, n->hosts)) {
		fprintf(stderr, "collnoise nodes: --hosts '%s'; valid: names with commas between, at "
			"most %d\n", n->hosts, HOSTS_MAX);
		status = COMMAND_USAGE;
	} else if (measure_hosts(n, &a, extra, extras)) {
		status = nodes_report(n, &a);
	}
	noise_allocation_free(&a);
	return status;
}

static int nodes_captured(const struct nodes *n, char **paths, int count)
{
	struct noise_allocation a = { 0 };
	int status = COMMAND_ERROR;

	if (noise_allocation_init(&a, count))
		fprintf(stderr, "collnoise nodes: there is no memory\n");
	else if (read_captures(&a, paths))
		status = nodes_report(n, &a);
	noise_allocation_free(&a);
	return status;
}

int noise_nodes(int argc, char **argv)
{
	struct nodes n = { .json = false };

	if (!options_read(&noise_nodes_options, argc, argv, &n))
		return COMMAND_USAGE;
	if (n.hosts)
		return nodes_there(&n, argv + optind, argc - optind);
	if (argc - optind < 2) {
		fprintf(stderr, "collnoise nodes: needs the captures of two nodes at least, or --hosts\n");
		return COMMAND_USAGE;
	}
	return nodes_captured(&n, argv + optind, argc - optind);
}
