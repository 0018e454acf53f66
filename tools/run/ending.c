// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ending.h"
#include "libcoll/base/clock.h"
#include "libcoll/flight/report_file.h"
#include "node/observe/observe.h"

enum { WRITE_NS = 500000000 };	/* between two writings of what was observed */

/* The ranks may have other folders. */
static char *ending_path(const char *file)
{
	char folder[PATH_MAX], *path = NULL;

	if (*file == '/')
		return strdup(file);
	if (!getcwd(folder, sizeof(folder)) || asprintf(&path, "%s/%s", folder, file) < 0)
		return NULL;
	return path;
}

/* The folder may be written to, and what has the name already is a report. -errno. */
static int ending_check(const char *file)
{
	char *folder = strdup(file);
	int error = folder ? 0 : -ENOMEM;

	if (!error && access(dirname(folder), W_OK | X_OK))
		error = -errno;
	free(folder);
	return error ? error : coll_flight_report_check(file);
}

char *run_ending_open(struct run_ending *ending, const char *file)
{
	char *variable = NULL;
	int error;

	ending->file = ending_path(file);
	error = ending->file ? ending_check(ending->file) : -errno;
	if (!error && asprintf(&variable, "COLL_REPORT=%s", ending->file) < 0)
		error = -ENOMEM;
	if (error) {
		fprintf(stderr, "coll run: --report '%s': %s; valid: the path of a file, of at most 255 "
			"bytes, that is not there or is an earlier report, in a folder that may be "
			"written to\n", file, error == -EEXIST ?
			"it or its .flight is there and is no report" : strerror(-error));
		return NULL;
	}
	if (stat(ending->file, &ending->before))
		ending->before.st_ino = 0;
	return variable;
}

/* The ranks have made it: it is not the one that was there. */
static bool is_made(const struct run_ending *ending)
{
	const struct stat *before = &ending->before;
	struct stat now;

	return !stat(ending->file, &now) &&
	       (now.st_ino != before->st_ino || now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
		now.st_mtim.tv_nsec != before->st_mtim.tv_nsec);
}

/* Of a report that the ranks have made at last there may be left what was observed: no record. */
static void make_report(struct run_ending *ending, const char *job)
{
	int error = coll_flight_report_gather(&ending->seen, ending->file, job, 0);

	if (!error && ending->seen.count)
		error = coll_flight_report_write(&ending->seen, ending->file);
	if (error)
		fprintf(stderr, "coll run: --report: cannot write %s: %s; the records are in %s.%s\n",
			ending->file, strerror(-error), ending->file, job);
	else if (!ending->seen.count && !is_made(ending))
		fprintf(stderr, "coll run: --report: no rank has left a record; valid: a program that "
			"calls coll_open() and coll_close()\n");
	if (!error)
		coll_flight_report_clear(ending->file, job);
}

/* A rank that left after the report was made has left its record in the folder. */
void run_ending_told(void *argument, const char *job, bool over)
{
	struct run_ending *ending = argument;
	char folder[PATH_MAX];

	if (!over)
		coll_flight_find(&ending->seen, job);
	else if (!is_made(ending) ||
		 (!coll_flight_report_folder(ending->file, job, folder, sizeof(folder)) &&
		  !access(folder, F_OK)))
		make_report(ending, job);
}

/* ---- while it runs --------------------------------------------------------- */

/* The folder is made once: when it is gone, so is the need for it. */
static bool looking_open(struct run_looking *looking, const char *job, const char *folder)
{
	if (looking->observer)
		return true;
	looking->observer = node_observer_open(job);
	return looking->observer && (!mkdir(folder, 0700) || errno == EEXIST);
}

uint64_t run_looking_on(void *argument, const char *job)
{
	struct run_looking *looking = argument;
	char folder[PATH_MAX];
	uint64_t again;

	if (coll_flight_report_folder(looking->file, job, folder, sizeof(folder)) ||
	    !looking_open(looking, job, folder))
		return COLL_FOREVER;
	again = node_observer_look(looking->observer);
	if (coll_now() < looking->write_at)
		return again;
	looking->write_at = coll_now() + WRITE_NS;
	return node_observer_write(looking->observer, folder) ? COLL_FOREVER : again;
}

void run_looking_close(struct run_looking *looking)
{
	node_observer_close(looking->observer);
}

void run_ending_close(struct run_ending *ending)
{
	free(ending->file);
	coll_flight_free(&ending->seen);
}
