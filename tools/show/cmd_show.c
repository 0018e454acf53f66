// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* coll show: its options, and what they ask for. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "show.h"
#include "tools/common/arguments.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "tools/launch/launch_hosts.h"

#define DAY (86400 * COLL_SECOND)

static bool show_read_hosts(const struct option_table *table, const struct option_entry *option,
			    void *settings, const char *text)
{
	struct show *show = settings;

	return !hosts_parse(text, &show->remote.hosts, &show->remote.hosts_count, &show->slots) ||
	       option_refuse(table, option, text, "name[:ranks] with commas between");
}

static const struct option_entry show_entries[] = {
	{ "hosts", 0, "LIST", "hosts to ask, as NAME,..., by the remote shell", .read = show_read_hosts },
	{ "ssh", 0, "COMMAND", "remote shell", OPTION_TEXT(struct show, remote.ssh),
	  .preset = "ssh -T -o BatchMode=yes" },
	{ "coll", 0, "PATH", "path of coll on the hosts", OPTION_TEXT(struct show, remote.coll),
	  .otherwise = "its path here" },
	{ "watch", 'w', "T", "look again every T, until interrupted",
	  OPTION_TIME(struct show, watch, "s", COLL_SECOND / 10, DAY) },
	{ "over", 0, "T", "exit code 2 if a rank waits longer than T in a call",
	  OPTION_TIME(struct show, over, "s", 1, DAY) },
	{ "trace", 0, NULL, "print the latest events as a Chrome trace (JSON)",
	  OPTION_FORMAT(struct show, trace) },
	{ "dump", 0, "FOLDER", "write the ranks' flight records to files",
	  OPTION_TEXT(struct show, dump) },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct show, json) },
	{ "metrics", 0, NULL, "print OpenMetrics, for Prometheus", OPTION_FORMAT(struct show, metrics) },
	{ "raw", 0, NULL, "used by coll show itself", OPTION_FLAG(struct show, raw), .hidden = true },
	{ NULL },
};

static const char *const usage[] = {
	"usage: coll show [OPTION ...]",
	"       coll show [OPTION ...] JOB",
	"       coll show [OPTION ...] FILE ...",
	"",
	"Shows the jobs of this user on this node; of one job, or of the flight records in FILEs,",
	"who waits for whom and the first cause. Nothing is asked of the ranks: they may be stopped.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0; 1 if there is no such job; 2 after a wrong option, or for --over.",
	NULL,
};

const struct option_table cmd_show_options = {
	.command = "show",
	.usage = usage,
	.closing = closing,
	.list = { show_entries },
	.arguments = OPTIONS_ANY,
};

/* ---- one look ------------------------------------------------------------------------ */

static int print_json(const struct coll_flight_set *set)
{
	json_t *jobs = json_array(), *root = json_pack("{s:o}", "jobs", jobs);
	size_t first, end;
	int err;

	for (first = 0; first < set->count; first = end) {
		end = coll_flight_job_end(set, first);
		json_array_append_new(jobs, show_json(&(struct coll_flight_job){ set->seen + first,
						      end - first }));
	}
	err = json_dumpf(root, stdout, JSON_INDENT(2)) ? COMMAND_ERROR : COMMAND_OK;
	printf("\n");
	json_decref(root);
	return err;
}

static bool any_over(const struct coll_flight_set *set, uint64_t over)
{
	uint64_t since;
	size_t i;

	for (i = 0; i < set->count; i++)
		if (coll_flight_oldest(set->seen[i]) && coll_flight_inside(set->seen[i], &since) &&
		    set->seen[i]->time > since + over)
			return true;
	return false;
}

static int print_jobs(const struct show *show, const struct coll_flight_set *set)
{
	const bool one = show->job || show->files;
	size_t first, end;
	int err = COMMAND_OK;

	if (show->json)
		return print_json(set);
	if (show->metrics)
		return show_metrics(set);
	if (!one && !show->trace) {
		show_list(set);
		return COMMAND_OK;
	}
	for (first = 0; first < set->count && !err; first = end) {
		const struct coll_flight_job job = { set->seen + first,
			(end = coll_flight_job_end(set, first)) - first };

		if (show->trace)
			err = show_trace(&job);
		else
			show_job(&job);
	}
	return err;
}

static int tell_none(const struct show *show, const struct coll_flight_set *set)
{
	fprintf(stderr, "coll show: no job '%s' of this user is here; coll show lists those that are",
		show->job);
	if (set->foreign)
		fprintf(stderr, " (%u ranks have another version of libcoll)", set->foreign);
	fprintf(stderr, "\n");
	return COMMAND_ERROR;
}

static int show_once(const struct show *show)
{
	struct coll_flight_set set = { .count = 0 };
	int err = show_gather(show, &set);

	/* Of hosts that did not answer stderr has told; the others' ranks are shown. */
	if (show->raw)
		err = err ? err : show_raw(&set);
	else if (show->job && !set.count)
		err = err ? err : tell_none(show, &set);
	else if (show->dump)
		err = err ? err : show_dump(show, &set);
	else if (!err || set.count) {
		const int printed = print_jobs(show, &set);

		err = err ? err : printed;
	}
	if (!err && show->over && any_over(&set, show->over))
		err = COMMAND_USAGE;
	coll_flight_free(&set);
	return err;
}

static int show_again_and_again(const struct show *show)
{
	const struct timespec pause = { show->watch / COLL_SECOND, show->watch % COLL_SECOND };
	int err;

	for (;;) {
		if (isatty(STDOUT_FILENO) && !show->json)
			printf("\033[H\033[2J");
		err = show_once(show);
		if (err || fflush(stdout))
			return err ? err : COMMAND_ERROR;
		nanosleep(&pause, NULL);
	}
}

/* ---- the command line ------------------------------------------------------------------ */

static int show_check_arguments(struct show *show, int count, char **arguments)
{
	const int err = show_take_arguments(show, count, arguments);

	if (!err && show->trace && !show->job && !show->files) {
		fprintf(stderr, "coll show: --trace needs a job, or files\n");
		return COMMAND_USAGE;
	}
	return err;
}

int cmd_show(int argc, char **argv)
{
	static char self[4096];
	struct show show = { .command = "show" };
	int err = options_read(&cmd_show_options, argc, argv, &show) ? COMMAND_OK : COMMAND_USAGE;

	if (!err)
		err = show_check_arguments(&show, argc - optind, argv + optind);
	if (!err && !show.remote.coll && readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
		show.remote.coll = self;
	if (!err)
		err = show.watch ? show_again_and_again(&show) : show_once(&show);
	free(show.remote.hosts);
	return err;
}
