// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* coll report: its options, and the jobs that it reports of. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "node/observe/observe.h"
#include "node/report/report.h"
#include "tools/common/arguments.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "tools/common/whole.h"
#include "tools/launch/launch_hosts.h"
#include "tools/show/show.h"

struct report_settings {
	struct show show;
	const char *html;		/* a file, or NULL */
	uint64_t watch;			/* ns to look at the ranks from outside; 0: not at all */
};

static bool report_read_hosts(const struct option_table *table, const struct option_entry *option,
			      void *settings, const char *text)
{
	struct show *show = &((struct report_settings *)settings)->show;

	return !hosts_parse(text, &show->remote.hosts, &show->remote.hosts_count, &show->slots) ||
	       option_refuse(table, option, text, "name[:ranks] with commas between");
}

static const struct option_entry report_entries[] = {
	{ "hosts", 0, "LIST", "hosts to ask, as NAME,..., by the remote shell", .read = report_read_hosts },
	{ "ssh", 0, "COMMAND", "remote shell", OPTION_TEXT(struct report_settings, show.remote.ssh),
	  .preset = "ssh -T -o BatchMode=yes" },
	{ "coll", 0, "PATH", "path of coll on the hosts",
	  OPTION_TEXT(struct report_settings, show.remote.coll), .otherwise = "its path here" },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct report_settings, show.json) },
	{ "watch", 0, "T", "look at the ranks of this node for so long first, to name causes",
	  OPTION_TIME(struct report_settings, watch, "s", 0, 3600 * COLL_SECOND), .preset = "0s" },
	{ "html", 0, "FILE", "write a page for a browser to FILE",
	  OPTION_TEXT(struct report_settings, html) },
	{ NULL },
};

static const char *const usage[] = {
	"usage: coll report [OPTION ...] JOB",
	"       coll report [OPTION ...] FILE ...",
	"",
	"What the collectives of a job cost, and what causes it: of a job that runs, from outside, or",
	"from flight records in FILEs.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0; 1 if there is no such job, or a file cannot be read; 2 after a wrong option.",
	NULL,
};

const struct option_table cmd_report_options = {
	.command = "report",
	.usage = usage,
	.closing = closing,
	.list = { report_entries },
	.arguments = OPTIONS_ANY,
};

static int print_json(const struct coll_flight_report *report, const struct coll_flight_job *job)
{
	json_t *json = node_report_json(report, job);
	const int error = !json || json_dumpf(json, stdout, JSON_INDENT(2));

	printf("\n");
	json_decref(json);
	return error ? COMMAND_ERROR : COMMAND_OK;
}

static int write_page(const struct coll_flight_report *report, const struct coll_flight_job *job,
		      const char *path)
{
	struct whole_file page;
	int error = whole_open(&page, path);

	if (!error) {
		node_report_page(report, job, page.to);
		error = whole_close(&page);
	}
	if (!error)
		return COMMAND_OK;
	fprintf(stderr, "coll report: --html: cannot write %s: %s; valid: the path of a file\n", path,
		strerror(-error));
	return COMMAND_ERROR;
}

static int report_job(const struct report_settings *settings, const struct coll_flight_job *job)
{
	struct coll_flight_report report;
	int error = coll_flight_report_make(&report, job), err = COMMAND_OK;

	if (error) {
		fprintf(stderr, "coll report: job %s: %s\n", job->seen[0]->page.job,
			error == -EPROTO ? "its records contradict each other, or have times of more than "
			"100 years; valid: those of one job, as it has left them" : strerror(-error));
		return COMMAND_ERROR;
	}
	if (settings->html)
		err = write_page(&report, job, settings->html);
	if (settings->show.json)
		err = err ? err : print_json(&report, job);
	else if (!settings->html)
		coll_flight_report_print(&report, job, stdout);
	coll_flight_report_free(&report);
	return err;
}

static bool job_is_here(const char *job)
{
	struct coll_flight_set set = { .count = 0 };
	const bool here = !coll_flight_find(&set, job) && set.count;

	coll_flight_free(&set);
	return here;
}

/* Whether there is a process of those that were found to be ranks, or none was found yet. */
static bool ranks_are_left(const struct observer *observer)
{
	uint32_t pid[OBSERVER_RANKS];
	const uint32_t count = node_observer_pids(observer, pid, OBSERVER_RANKS);
	uint32_t i;

	for (i = 0; i < count; i++)
		if (!kill(pid[i], 0) || errno != ESRCH)
			return true;
	return !count;
}

static void watch_until(struct observer *observer, uint64_t until)
{
	while (coll_now() < until && ranks_are_left(observer)) {
		const uint64_t again = node_observer_look(observer), next = again < until ? again : until;
		const uint64_t now = coll_now(), pause = next > now ? next - now : 0;

		nanosleep(&(struct timespec){ pause / COLL_SECOND, pause % COLL_SECOND }, NULL);
	}
	node_observer_end(observer);
}

/*
 * Ranks that end meanwhile are in the report, since the observer keeps their pages. For a job that is not
 * here nobody waits, and there is no observer. 0 or -ENOMEM.
 */
static int report_watch(const struct report_settings *settings, struct observer **observer)
{
	const uint64_t until = coll_now() + settings->watch;

	*observer = NULL;
	if (!settings->watch || !settings->show.job || !job_is_here(settings->show.job))
		return 0;
	*observer = node_observer_open(settings->show.job);
	if (!*observer)
		return -ENOMEM;
	watch_until(*observer, until);
	return 0;
}

static void tell_none(const struct show *show, bool foreign)
{
	char records[PATH_MAX];

	fprintf(stderr, "coll report: no job '%s' of this user is here; coll show lists those that are%s", show->job,
		foreign ? " (some ranks have another version of libcoll: use its coll)" : "");
	snprintf(records, sizeof(records), "%s.flight", show->job);
	if (!access(records, R_OK))
		fprintf(stderr, "; the records of the report %s are in %s", show->job, records);
	fprintf(stderr, "\n");
}

/* Of several jobs in the files the first, in the order of their names. */
static int report_all(const struct report_settings *settings)
{
	struct coll_flight_set set = { .count = 0 };
	struct observer *observer;
	int err;

	if (report_watch(settings, &observer)) {
		fprintf(stderr, "coll report: --watch: there is no memory\n");
		return COMMAND_ERROR;
	}
	err = show_gather(&settings->show, &set);
	if (observer)
		node_observer_give(observer, &set);
	node_observer_close(observer);

	if (!err && !set.count) {
		tell_none(&settings->show, set.foreign);
		err = COMMAND_ERROR;
	}
	if (set.count) {	/* also if a host gave no answer */
		const int reported = report_job(settings, &(struct coll_flight_job){
			set.seen, coll_flight_job_end(&set, 0) });

		err = err ? err : reported;
	}
	coll_flight_free(&set);
	return err;
}

int cmd_report(int argc, char **argv)
{
	static char self[4096];
	struct report_settings settings = { .show = { .command = "report" } };
	struct show *show = &settings.show;
	int err = options_read(&cmd_report_options, argc, argv, &settings) ? COMMAND_OK :
									      COMMAND_USAGE;

	if (!err)
		err = show_take_arguments(show, argc - optind, argv + optind);
	if (!err && !show->job && !show->files) {
		fprintf(stderr, "coll report: the job is missing; valid: one that coll show lists, or "
			"files with flight records\n");
		err = COMMAND_USAGE;
	}
	if (!err && settings.watch && (show->files || show->remote.hosts)) {
		fprintf(stderr, "coll report: --watch goes with a job that runs here, not with %s\n",
			show->files ? "files" : "--hosts");
		err = COMMAND_USAGE;
	}
	if (!err && !show->remote.coll && readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
		show->remote.coll = self;
	if (!err)
		err = !settings.watch || whole_possible("report", settings.html) ? report_all(&settings) :
										   COMMAND_ERROR;
	free(show->remote.hosts);
	return err;
}
