// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ending.h"
#include "libcoll/flight/report_file.h"

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

char *run_ending_open(struct run_ending *ending, const char *file)
{
	char *variable = NULL;

	ending->file = ending_path(file);
	if (!ending->file || asprintf(&variable, "COLL_REPORT=%s", ending->file) < 0) {
		fprintf(stderr, "coll run: --report '%s': %s; valid: the path of a file, of at most 255 "
			"bytes\n", file, strerror(errno));
		return NULL;
	}
	/* One of an earlier job is not taken for this one's. */
	unlink(ending->file);
	return variable;
}

static void make_report(struct run_ending *ending, const char *folder)
{
	int error = coll_flight_report_gather(&ending->seen, folder);

	if (!error && ending->seen.count)
		error = coll_flight_report_write(&ending->seen, ending->file);
	if (error)
		fprintf(stderr, "coll run: --report: cannot write %s: %s; the records are in %s\n",
			ending->file, strerror(-error), folder);
	else if (!ending->seen.count)
		fprintf(stderr, "coll run: --report: no rank has left a record; valid: a program that "
			"calls coll_open() and coll_close()\n");
	else
		coll_flight_report_clear(folder);
}

void run_ending_told(void *argument, const char *job, bool over)
{
	struct run_ending *ending = argument;
	char folder[PATH_MAX];

	if (!over)
		coll_flight_find(&ending->seen, job);
	else if (access(ending->file, F_OK) &&
		 !coll_flight_report_folder(ending->file, job, folder, sizeof(folder)))
		make_report(ending, folder);
}

void run_ending_close(struct run_ending *ending)
{
	free(ending->file);
	coll_flight_free(&ending->seen);
}
