// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* collnoise nodes: the nodes of an allocation side by side, from captures or measured now. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "allocation.h"
#include "commands.h"
#include "formats.h"
#include "launcher.h"
#include "node/units.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "tools/common/whole.h"
#include "view.h"

struct nodes {
	const char *hosts, *ssh, *plot;
	u64 duration, timeout;
	u32 launcher;			/* enum noise_launcher */
	bool json;
};

static const char *const usage[] = {
	"usage: collnoise nodes CAPTURE CAPTURE ... [OPTION ...]",
	"       collnoise nodes --hosts NAME,... [OPTION ...] [-- OPTION of collnoise measure ...]",
	"       collnoise nodes --launcher srun [OPTION ...] [-- OPTION of collnoise measure ...]",
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
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct nodes, json) },
	{ "plot", 0, "FILE.svg", "draw a picture", OPTION_SVG(struct nodes, plot) },
	{ "hosts", 0, "LIST", "measure on these hosts, with commas between; n[1-4] is n1,n2,n3,n4",
	  OPTION_TEXT(struct nodes, hosts), .group = "measured now",
	  .otherwise = "with srun: all nodes of the allocation" },
	{ "launcher", 0, "NAME", "what starts the measurement there; auto is srun in an allocation of "
	  "Slurm, but not in its prolog, else ssh", OPTION_WORD(struct nodes, launcher, noise_launcher_names),
	  .preset = "auto" },
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

/* Names into `a`. */
static bool name_nodes(struct noise_allocation *a, const struct noise_nodelist *list)
{
	u32 i;

	if (noise_allocation_init(a, list->count))
		return false;
	for (i = 0; i < list->count; i++) {
		a->node[i].name = strdup(list->name[i]);
		if (!a->node[i].name)
			return false;
	}
	return true;
}

static struct noise_node *node_named(struct noise_allocation *a, const char *name, size_t length)
{
	u32 i;

	for (i = 0; i < a->nodes; i++)
		if (strlen(a->node[i].name) == length && !memcmp(a->node[i].name, name, length))
			return &a->node[i];
	return NULL;
}

/* The line that says which node the text is of, after what a prolog of the task may have printed. */
static char *node_line(char *text)
{
	while (strncmp(text, NOISE_NODE_LINE, strlen(NOISE_NODE_LINE))) {
		text += strcspn(text, "\n");
		if (!*text++)
			return NULL;
	}
	return text + strlen(NOISE_NODE_LINE);
}

/* Under srun a line says which node it is; another launcher keeps the order of names. */
static struct noise_node *node_of_text(struct noise_allocation *a, const struct nodes *n, u32 number,
				       char **text)
{
	struct noise_node *node;
	char *name;
	size_t length;

	if (n->launcher != NOISE_LAUNCHER_SRUN)
		return &a->node[number];
	name = node_line(*text);
	if (!name) {
		fprintf(stderr, "collnoise nodes: task %u of srun does not say on which node it is\n", number);
		return NULL;
	}
	length = strcspn(name, "\n");
	node = node_named(a, name, length);
	if (!node)
		fprintf(stderr, "collnoise nodes: '%.*s' has measured, which is not among the nodes\n",
			(int)length, name);
	*text = name + length + (name[length] == '\n');
	return node;
}

/* said[i]: the name of the node whose text `i` was. */
static bool has_said(const struct noise_node *node, char *const *said, u32 texts)
{
	u32 i;

	for (i = 0; i < texts; i++)
		if (said[i] == node->name) {
			fprintf(stderr, "collnoise nodes: %s: a second measurement came: it is not used\n",
				node->name);
			return true;
		}
	return false;
}

static void take_text(struct noise_node *node, const char *text)
{
	json_error_t error;
	json_t *json = json_loads(text, 0, &error);

	if (!json)
		fprintf(stderr, "collnoise nodes: %s: no measurement came: %s\n", node->name, error.text);
	else if (!noise_node_read(node, json))
		fprintf(stderr, "collnoise nodes: %s: no measurement came: its CPUs were never "
			"free in that time\n", node->name);
	json_decref(json);
}

static void take_texts(const struct nodes *n, struct noise_allocation *a, char **texts)
{
	u32 i;

	for (i = 0; i < a->nodes; i++) {
		char *text = texts[i], *whole = text;
		struct noise_node *node = text ? node_of_text(a, n, i, &text) : NULL;

		if (node && (!*text || has_said(node, texts, i)))
			node = NULL;
		if (node)
			take_text(node, text);
		free(whole);
		texts[i] = node ? node->name : NULL;
	}
}

/* texts[i]: the name of the node whose text this was, or NULL. */
static void name_silent(const struct noise_allocation *a, char *const *said)
{
	u32 i, k;

	for (i = 0; i < a->nodes; i++) {
		for (k = 0; k < a->nodes && said[k] != a->node[i].name; k++)
			;
		if (k == a->nodes)
			fprintf(stderr, "collnoise nodes: %s: no measurement came: it printed nothing\n",
				a->node[i].name);
	}
}

/* The nodes as they were given: of --hosts, or else of the allocation of Slurm. */
static const char *list_text(const struct nodes *n)
{
	return n->hosts ? n->hosts : getenv("SLURM_JOB_NODELIST");
}

static bool measure_nodes(const struct nodes *n, struct noise_allocation *a,
			  const struct noise_nodelist *list, char **extra, int extras)
{
	const struct noise_launch launch = {
		.launcher = n->launcher, .nodes = list, .list = list_text(n), .ssh = n->ssh, .duration = n->duration,
		.grace = n->timeout, .extra = extra, .extras = extras,
	};
	char **texts = calloc(a->nodes, sizeof(*texts));
	const bool started = texts && noise_launch(&launch, texts);

	if (started) {
		take_texts(n, a, texts);
		name_silent(a, texts);
	}
	free(texts);
	return started;
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

/* Those of --hosts, or else of the allocation of Slurm. */
static int read_names(const struct nodes *n, struct noise_nodelist *list)
{
	const char *allocated = list_text(n);

	if (n->hosts && noise_nodelist_read(list, n->hosts))
		return COMMAND_OK;
	if (n->hosts)
		fprintf(stderr, "collnoise nodes: --hosts '%s'; valid: names with commas between, or "
			"n[1-4,7], at most %d\n", n->hosts, NODELIST_MAX);
	else if (!allocated)
		fprintf(stderr, "collnoise nodes: --launcher srun: there is no allocation of Slurm "
			"(SLURM_JOB_NODELIST is not set); valid: in salloc or sbatch, or with --hosts\n");
	else if (noise_nodelist_read(list, allocated))
		return COMMAND_OK;
	else
		fprintf(stderr, "collnoise nodes: SLURM_JOB_NODELIST '%s'; valid: names as Slurm lists "
			"them, n[1-4,7]\n", allocated);
	return COMMAND_USAGE;
}

static int nodes_there(const struct nodes *n, char **extra, int extras)
{
	struct noise_allocation a = { 0 };
	struct noise_nodelist list = { 0 };
	int status = read_names(n, &list);

	if (status)
		return status;
	status = COMMAND_ERROR;
	if (!name_nodes(&a, &list))
		fprintf(stderr, "collnoise nodes: there is no memory\n");
	else if (measure_nodes(n, &a, &list, extra, extras))
		status = nodes_report(n, &a);
	noise_allocation_free(&a);
	noise_nodelist_free(&list);
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

/*
 * Without captures and hosts: only where it is said, or where an allocation says which. No capture's name
 * begins as an option of collnoise measure does. `first` may be NULL.
 */
static bool is_measured_now(const struct nodes *n, u32 asked, const char *first)
{
	return n->hosts || asked != NOISE_LAUNCHER_AUTO ||
	       (n->launcher == NOISE_LAUNCHER_SRUN && (!first || (*first == '-' && first[1])));
}

static const char *why_refused(const struct nodes *n, u32 asked)
{
	if (asked == NOISE_LAUNCHER_SRUN && n->ssh)
		return "--ssh goes with --launcher ssh, not with srun";
	if (asked == NOISE_LAUNCHER_SSH && !n->hosts)
		return "--launcher ssh needs --hosts";
	return NULL;
}

int noise_nodes(int argc, char **argv)
{
	struct nodes n = { .json = false };
	const char *why;
	u32 asked;

	if (!options_read(&noise_nodes_options, argc, argv, &n))
		return COMMAND_USAGE;
	asked = n.launcher;
	n.launcher = noise_launcher_of(asked, n.ssh);
	why = why_refused(&n, asked);
	if (why) {
		fprintf(stderr, "collnoise nodes: %s\n", why);
		return COMMAND_USAGE;
	}
	if (!whole_possible("nodes", n.plot))
		return COMMAND_ERROR;
	if (is_measured_now(&n, asked, argv[optind]))
		return nodes_there(&n, argv + optind, argc - optind);
	if (argc - optind < 2) {
		fprintf(stderr, "collnoise nodes: needs the captures of two nodes at least, or --hosts, "
			"or an allocation of Slurm\n");
		return COMMAND_USAGE;
	}
	return nodes_captured(&n, argv + optind, argc - optind);
}
