// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* coll doctor: what of a node helps or hurts, what it costs, and how to change it. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "hosts.h"
#include "libcoll/base/clock.h"
#include "probe.h"
#include "report.h"
#include "tools/common/arguments.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "tools/launch/launch_hosts.h"

enum { FAIL_NEVER = DOCTOR_LEVELS };

struct doctor_settings {
	struct launch launch;
	const char *explain;
	bool quick, json, metrics, all, list, agent;
	u32 fail_at;			/* index of fail_names */
	struct doctor_path path;
	bool wanted[DOCTOR_CHECKS_MAX];
	bool some;			/* of the checks, not all */
};

static const char *const fail_names[] = { "note", "slow", "fail", "never", NULL };

static bool doctor_read_hosts(const struct option_table *table, const struct option_entry *option,
			      void *settings, const char *text)
{
	struct launch *launch = &((struct doctor_settings *)settings)->launch;

	return !hosts_parse(text, &launch->hosts, &launch->hosts_count, &launch->all) ||
	       option_refuse(table, option, text, "names with commas between");
}

/* Bits per second, as 10G. */
static bool doctor_read_rate(const struct option_table *table, const struct option_entry *option,
			     void *settings, const char *text)
{
	struct doctor_settings *s = settings;
	char *unit;
	const double number = strtod(text, &unit);
	const double times = !*unit ? 1 : !strcmp(unit, "M") ? 1e6 : !strcmp(unit, "G") ? 1e9 : 0;

	if (unit == text || !(number * times >= 8 && number * times <= 1e15))	/* nor "nan" */
		return option_refuse(table, option, text, "bits per second with M or G, such as 25G");
	s->path.rate = number * times / 8;
	return true;
}

static const struct option_entry doctor_entries[] = {
	{ "quick", 'q', NULL, "measure nothing: only read settings",
	  OPTION_FLAG(struct doctor_settings, quick) },
	{ "all", 'a', NULL, "also show what is good", OPTION_FLAG(struct doctor_settings, all) },
	{ "fail-at", 0, "LEVEL", "exit with 2 if something is as bad as that",
	  OPTION_WORD(struct doctor_settings, fail_at, fail_names), .preset = "fail" },
	{ "explain", 'e', "CHECK", "print what a check looks at, what it costs, what to do",
	  OPTION_TEXT(struct doctor_settings, explain), .one_of = OPTION_OF_FORMATS },
	{ "list", 'l', NULL, "list the checks", OPTION_FORMAT(struct doctor_settings, list) },
	{ "rate", 0, "RATE", "bits per second between nodes, for socket buffers",
	  .read = doctor_read_rate, .otherwise = "of the fastest interface, else 10G" },
	{ "rtt", 0, "T", "time there and back between nodes, for socket buffers",
	  OPTION_TIME(struct doctor_settings, path.rtt, "us", 1, 100 * COLL_SECOND),
	  .otherwise = "0.1ms" },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct doctor_settings, json),
	  .group = "output" },
	{ "metrics", 0, NULL, "print OpenMetrics", OPTION_FORMAT(struct doctor_settings, metrics) },
	{ "hosts", 0, "LIST", "these hosts, by a remote shell, with commas between",
	  .read = doctor_read_hosts, .group = "many nodes" },
	{ "ssh", 0, "COMMAND", "remote shell", OPTION_TEXT(struct doctor_settings, launch.ssh),
	  .preset = "ssh -T -o BatchMode=yes" },
	{ "coll", 0, "PATH", "path of coll on the hosts",
	  OPTION_TEXT(struct doctor_settings, launch.coll), .otherwise = "its path here" },
	{ "timeout", 't', "T", "end after this time with what has come",
	  OPTION_TIME(struct doctor_settings, launch.timeout, "s", COLL_SECOND, 3600 * COLL_SECOND),
	  .preset = "60s" },
	{ "agent", 0, NULL, "used by coll doctor itself",
	  OPTION_FLAG(struct doctor_settings, agent), .hidden = true },
	{ NULL },
};

static const char *const usage[] = {
	"usage: coll doctor [OPTION ...] [CHECK ...]",
	"       coll doctor --hosts NAME,... [OPTION ...] [CHECK ...]",
	"",
	"Says what of this node, or of several, helps or hurts collectives, what it costs, and how",
	"to change it. Changes nothing, and needs no privileges.",
	NULL,
};

static const char *const closing[] = {
	"Levels: note (may cost), slow (costs time), fail (jobs fail). Exit code: 0; 1 for an error,",
	"such as a host without a report, or that did not try all others; 2 if something reaches",
	"--fail-at, or for wrong options.",
	NULL,
};

/* For completion; tests/unit/doctor.t compares them with --list. */
static const char *const check_names[] = {
	"io-uring", "memlock", "descriptors", "tasks", "shared-memory", "one-copy", "loopback",
	"ports", "congestion", "idle-restart", "windows", "buffers", "quota", "cpuset", "isolation",
	"smt", "noise", "interrupts", "tick", "steal", "governor", "sleep", "realtime",
	"huge-pages", "numa", "swap", "memory", "clock", "time", "version", "module", "colld",
	"mpi", "container", NULL,
};

const struct option_table cmd_doctor_options = {
	.command = "doctor",
	.usage = usage,
	.closing = closing,
	.list = { doctor_entries },
	.arguments = OPTIONS_ANY,
	.first = check_names,
};

/* ---- this node ------------------------------------------------------------------------ */

static void probe_step(const char *what)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, *what ? "\rmeasuring: %-20s" : "\r%32s\r", what);
}

static void doctor_examine(const struct doctor_settings *settings, struct doctor_report *report)
{
	const char *root = getenv("COLL_DOCTOR_ROOT") ? getenv("COLL_DOCTOR_ROOT") : "";
	struct doctor_facts *facts = calloc(1, sizeof(*facts));

	report->count = 0;
	if (!facts)
		return;
	doctor_read_transport(&facts->transport, root);
	doctor_read_network(&facts->network, root, &settings->path);
	doctor_read_cpus(&facts->cpus, root);
	doctor_read_memory(&facts->memory, root);
	doctor_read_clock(&facts->clock, root);
	doctor_read_software(&facts->software, root);
	doctor_probes_clear(&facts->probe);
	if (!settings->quick)
		doctor_probe(facts, probe_step);
	doctor_report_make(report, facts, settings->some ? settings->wanted : NULL);
	free(facts);
}

static void doctor_dump(json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(json);
}

static int status_of(const struct doctor_settings *settings, enum doctor_level worst)
{
	const enum doctor_level limit = DOCTOR_NOTE + settings->fail_at;

	return limit < DOCTOR_LEVELS && worst >= limit ? COMMAND_USAGE : COMMAND_OK;
}

static int doctor_here(const struct doctor_settings *settings)
{
	struct doctor_report report;
	char name[65] = "";

	gethostname(name, sizeof(name) - 1);
	doctor_examine(settings, &report);
	if (!report.count) {
		fprintf(stderr, "coll doctor: there is no memory\n");
		return COMMAND_ERROR;
	}
	if (settings->agent)
		return doctor_hosts_rank(doctor_report_json(&report, name), settings->launch.timeout);
	if (settings->json)
		doctor_dump(doctor_report_json(&report, name));
	else if (settings->metrics)
		doctor_report_metrics(&report, stdout);
	else
		doctor_report_print(&report, settings->all, stdout);
	return status_of(settings, doctor_report_worst(&report));
}

/* ---- many nodes -------------------------------------------------------------------------- */

/* One rank for each host. */
static bool prepare_launch(struct launch *launch, char **argv)
{
	static char self[4096];
	int i;

	if (!launch->coll && readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
		launch->coll = self;
	if (!launch->coll || strchr(launch->coll, '\''))
		return argument_refuse_option("doctor", "coll", launch->coll ? launch->coll : "",
					      "a path without '");
	for (i = 0; i < launch->hosts_count; i++)
		launch->hosts[i].first = i, launch->hosts[i].ranks = 1;
	launch->ranks = launch->all = launch->hosts_count;
	launch->grace = COLL_SECOND;
	launch->keep_going = launch->prefix = true;
	launch->bind = LAUNCH_BIND_NONE;
	launch->argv = argv;
	argv[0] = (char *)launch->coll;
	return true;
}

static int hosts_report(const struct doctor_settings *settings, struct doctor_row *rows)
{
	const int count = settings->launch.hosts_count;
	enum doctor_level worst;
	json_t *merged = doctor_merge(rows, count, &worst);
	const bool whole = json_is_true(json_object_get(merged, "whole"));
	int status;

	if (!merged) {
		fprintf(stderr, "coll doctor: there is no memory\n");
		return COMMAND_ERROR;
	}
	if (settings->json) {
		doctor_dump(merged);
	} else {
		doctor_merge_print(merged, settings->all, stdout);
		json_decref(merged);
	}
	status = status_of(settings, worst);
	return whole ? status : COMMAND_ERROR;
}

static int doctor_there(struct doctor_settings *settings, char **checks, int count)
{
	struct launch *launch = &settings->launch;
	char **argv = calloc(count + 9, sizeof(*argv)), rate[40], rtt[40], timeout[40];
	struct doctor_row *rows = calloc(launch->hosts_count, sizeof(*rows));
	int words = 1, i, status = COMMAND_ERROR;

	if (!argv || !rows || settings->metrics) {
		if (settings->metrics)
			fprintf(stderr, "coll doctor: --metrics is of one node; valid with --hosts: "
				"--json\n");
		status = settings->metrics ? COMMAND_USAGE : COMMAND_ERROR;
	} else if (!prepare_launch(launch, argv)) {
		status = COMMAND_USAGE;
	} else {
		argv[words++] = (char *)"doctor";
		argv[words++] = (char *)"--agent";
		if (settings->quick)
			argv[words++] = (char *)"--quick";
		snprintf(rate, sizeof(rate), "--rate=%llu", 8ull * settings->path.rate);
		snprintf(rtt, sizeof(rtt), "--rtt=%lluns", (unsigned long long)settings->path.rtt);
		snprintf(timeout, sizeof(timeout), "--timeout=%lluns", (unsigned long long)launch->timeout);
		argv[words++] = timeout;
		if (settings->path.rate)
			argv[words++] = rate;
		if (settings->path.rtt)
			argv[words++] = rtt;
		for (i = 0; i < count; i++)
			argv[words++] = checks[i];
		if (doctor_hosts_run(launch, rows))
			status = hosts_report(settings, rows);
	}
	for (i = 0; rows && i < launch->hosts_count; i++) {
		json_decref(rows[i].report);
		json_decref(rows[i].pairs);
	}
	free(rows);
	free(argv);
	return status;
}

/* ---- the command --------------------------------------------------------------------------- */

static bool refuse_check(const char *name)
{
	const struct doctor_check *check;
	int i;

	fprintf(stderr, "coll doctor: there is no check '%s'; valid:", name);
	for (i = 0; (check = doctor_check_at(i)); i++)
		fprintf(stderr, " %s", check->name);
	fputc('\n', stderr);
	return false;
}

static bool want_checks(struct doctor_settings *settings, char **names, int count)
{
	const struct doctor_check *check;
	int i, index;

	settings->some = count > 0;
	for (i = 0; i < count; i++) {
		for (index = 0; (check = doctor_check_at(index)); index++)
			if (!strcmp(check->name, names[i]))
				break;
		if (!check)
			return refuse_check(names[i]);
		settings->wanted[index] = true;
	}
	return true;
}

static int doctor_explain(const char *name)
{
	const struct doctor_check *check = doctor_check_named(name);

	if (!check) {
		refuse_check(name);
		return COMMAND_USAGE;
	}
	printf("%s\n", check->name);
	doctor_print_finding(stdout, "", "looks at:", check->looks, check->cost, check->advice);
	doctor_print_finding(stdout, "", "", check->explain, "", "");
	return COMMAND_OK;
}

static int doctor_list(void)
{
	const struct doctor_check *check;
	int i;

	for (i = 0; (check = doctor_check_at(i)); i++)
		printf("%-14s %s\n", check->name, check->looks);
	return COMMAND_OK;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_settings settings = { .some = false };
	int status;

	if (!options_read(&cmd_doctor_options, argc, argv, &settings) ||
	    !want_checks(&settings, argv + optind, argc - optind))
		status = COMMAND_USAGE;
	else if (settings.list)
		status = doctor_list();
	else if (settings.explain)
		status = doctor_explain(settings.explain);
	else if (settings.launch.hosts)
		status = doctor_there(&settings, argv + optind, argc - optind);
	else
		status = doctor_here(&settings);
	free(settings.launch.hosts);
	return status;
}
