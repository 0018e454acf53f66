// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/noise/text.h"
#include "daemon/common/host.h"
#include "node/units.h"
#include "options.h"

/* ---- values --------------------------------------------------------------- */

static bool read_policy(struct colld_options *options, char *text)
{
	options->policy = text;
	return true;
}

static bool read_circuits(struct colld_options *options, char *text)
{
	options->circuits = text;
	return true;
}

static bool read_state(struct colld_options *options, char *text)
{
	options->state = text;
	return true;
}

static bool read_interval(struct colld_options *options, char *text)
{
	if (coll_text_time(text, NODE_S, &options->interval) &&
	    options->interval >= 10 * NODE_MS && options->interval <= 3600 * NODE_S)
		return true;
	fprintf(stderr, "colld: --interval '%s'; valid: a time from 10ms to 1h\n", text);
	return false;
}

static bool read_metrics(struct colld_options *options, char *text)
{
	char *colon = strrchr(text, ':'), *rest;
	const char *port = colon ? colon + 1 : text;
	struct in_addr address;

	options->port = strtol(port, &rest, 10);
	if (colon)
		*colon = 0;
	if (rest == port || *rest || options->port < 0 || options->port > 65535 ||
	    (colon && inet_pton(AF_INET, text, &address) != 1)) {
		if (colon)
			*colon = ':';
		fprintf(stderr, "colld: --metrics '%s'; valid: PORT or ADDRESS:PORT, such as "
			"127.0.0.1:9469\n", text);
		return false;
	}
	if (colon)
		options->address = text;
	return true;
}

static bool read_reports(struct colld_options *options, char *text)
{
	static const char *const names[] = { "off", "owner", "anybody" };
	u32 i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(text, names[i])) {
			options->reports = i;
			return true;
		}
	fprintf(stderr, "colld: --reports '%s'; valid: off, owner or anybody\n", text);
	return false;
}

static bool read_host_names(struct colld_options *options, char *text)
{
	options->host_names = text;
	if (colld_host_are_names(text))
		return true;
	fprintf(stderr, "colld: --host-names '%s'; valid: names with commas between them, such as "
		"n5.cluster.example,monitor.example\n", text);
	return false;
}

static bool read_keep(struct colld_options *options, char *text)
{
	(void)text;
	return options->keep = true;
}

static bool read_act(struct colld_options *options, char *text)
{
	options->act_given = node_act_mode_read(text, &options->act);
	if (!options->act_given)
		fprintf(stderr, "colld: --act '%s'; valid: off, advise, act or hold\n", text);
	return options->act_given;
}

static bool read_watch_cost(struct colld_options *options, char *text)
{
	if (node_share_read(text, &options->watch_cost))
		return true;
	fprintf(stderr, "colld: --watch-cost '%s'; valid: 0 to 100%%, such as 1%%\n", text);
	return false;
}

static bool read_check(struct colld_options *options, char *text)
{
	(void)text;
	return options->check = true;
}

static bool read_status(struct colld_options *options, char *text)
{
	(void)text;
	return options->status = true;
}

static bool read_json(struct colld_options *options, char *text)
{
	(void)text;
	return options->json = true;
}

/* ---- the table ------------------------------------------------------------ */

static const struct colld_option {
	const char *name;
	const char *argument;		/* NULL: it is a flag */
	const char *help;
	bool (*read)(struct colld_options *options, char *text);
} table[] = {
	{ "policy", "FILE", "the policy (default /etc/coll/policy; optional with --circuits or\n"
	  "--reports); SIGHUP reads it again", read_policy },
	{ "circuits", "FILE", "nodes, their ports, and the switch whose circuits are managed",
	  read_circuits },
	{ "state", "DIR", "folder of the state (default /run/coll)", read_state },
	{ "interval", "T", "time between scans for new tasks and interrupts, 10ms to 1h\n"
	  "(default 5s)", read_interval },
	{ "metrics", "[A:]PORT", "Prometheus metrics at http://A:PORT/metrics (default\n"
	  "127.0.0.1:9469; 0: none)", read_metrics },
	{ "reports", "WHO", "what running jobs lose is told to nobody (off, the default), to a job's\n"
	  "owner and root by DIR/reports (owner), or also at http://A:PORT/jobs\n"
	  "to whoever reaches it (anybody)", read_reports },
	{ "host-names", "A,B", "more names of this node, by which browsers may ask for reports of jobs",
	  read_host_names },
	{ "act", "MODE", "what takes a job's cores is left (off), named (advise), moved away\n"
	  "until the job ends (act), or held back while collectives run (hold);\n"
	  "instead of the policy's", read_act },
	{ "watch-cost", "P%", "coll.ko counts what takes the cores of jobs' ranks, as long as that\n"
	  "costs at most this part of them (default 1%; 0: colld estimates it from\n"
	  "/proc, as without the module)", read_watch_cost },
	{ "keep", NULL, "do not move tasks and interrupts back at the end", read_keep },
	{ "status", NULL, "only print what the colld that runs moves and holds back for jobs", read_status },
	{ "json", NULL, "with --status: as JSON", read_json },
	{ "check", NULL, "only check the files, and report the first error", read_check },
};

enum { OPTIONS = sizeof(table) / sizeof(table[0]), HELP_COLUMN = 18 };

static void print_help(void)
{
	const struct colld_option *option;
	const char *line, *end;
	char left[32];

	puts("usage: colld [OPTION ...]\n\n"
	     "Enforces a node's policy (which tasks run on which CPUs, and when), and manages the\n"
	     "circuits of an optical switch.\n");
	for (option = table; option < table + OPTIONS; option++) {
		snprintf(left, sizeof(left), "--%s%s%s", option->name, option->argument ? " " : "",
			 option->argument ? option->argument : "");
		for (line = option->help; line; line = *end ? end + 1 : NULL) {
			end = line + strcspn(line, "\n");
			printf("      %-*s %.*s\n", HELP_COLUMN, left, (int)(end - line), line);
			*left = 0;
		}
	}
}

static void print_refused(int key, const char *text)
{
	const struct colld_option *option;

	if (key == ':') {
		fprintf(stderr, "colld: option '%s' lacks its value; --help lists the options\n",
			text);
		return;
	}
	fprintf(stderr, "colld: no option '%s'; valid:", text);
	for (option = table; option < table + OPTIONS; option++)
		fprintf(stderr, " --%s", option->name);
	fprintf(stderr, " --help\n");
}

bool colld_options_read(int argc, char **argv, struct colld_options *options)
{
	struct option forms[OPTIONS + 2] = { { "help", no_argument, NULL, 'h' } };
	int key, i;

	for (i = 0; i < OPTIONS; i++)
		forms[i + 1] = (struct option){
			table[i].name, table[i].argument ? required_argument : no_argument, NULL,
			256 + i };
	opterr = 0;
	while ((key = getopt_long(argc, argv, ":h", forms, NULL)) != -1) {
		if (key == 'h') {
			print_help();
			exit(0);
		}
		if (key < 256) {
			print_refused(key, argv[optind - 1]);
			return false;
		}
		if (!table[key - 256].read(options, optarg))
			return false;
	}
	if (options->reports == COLLD_REPORTS_ANYBODY && !options->port) {
		fprintf(stderr, "colld: --reports anybody needs an address; valid: --metrics with a port, or "
			"--reports owner\n");
		return false;
	}
	if (options->json && !options->status) {
		fprintf(stderr, "colld: --json is the form of --status; valid: --status --json\n");
		return false;
	}
	if (optind < argc)
		fprintf(stderr, "colld: unexpected argument '%s'; valid: options only\n",
			argv[optind]);
	return optind == argc;
}
