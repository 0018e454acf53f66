// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"
#include "report_file.h"

#define RECORD_END	".flight"
#define CLAIM		"made"		/* in the folder: somebody makes the report */

/* A job's name comes from outside: as a part of a file's name it gets plain characters only. */
int coll_flight_report_folder(const char *file, const char *job, char *folder, size_t bytes)
{
	const size_t at = strlen(file) + 1;
	size_t i;

	if (snprintf(folder, bytes, "%s.%s", file, job) >= (int)bytes)
		return -ENAMETOOLONG;
	for (i = at; folder[i]; i++)
		if (folder[i] <= ' ' || folder[i] == '/' || folder[i] == 0x7f)
			folder[i] = '_';
	return 0;
}

static bool is_record(const char *name)
{
	const size_t length = strlen(name), end = strlen(RECORD_END);

	return length > end && !strcmp(name + length - end, RECORD_END);
}

/* Of coll-JOB-RANK.flight. */
static uint32_t rank_of_record(const char *name)
{
	const char *dash = strrchr(name, '-');

	return dash ? strtoul(dash + 1, NULL, 10) : COLL_FLIGHT_NO_RANK;
}

/* ---- records ------------------------------------------------------------- */

static int add_record(struct coll_flight_set *set, int folder, const char *name,
		      struct coll_flight_seen *seen)
{
	const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	const ssize_t got = fd < 0 ? -1 : read(fd, seen, sizeof(*seen));

	if (fd >= 0)
		close(fd);
	if (got < 0)
		return -errno;
	return coll_flight_add(set, seen, got);
}

int coll_flight_report_gather(struct coll_flight_set *set, const char *folder)
{
	DIR *entries = opendir(folder);
	struct coll_flight_seen *seen = malloc(sizeof(*seen));
	struct dirent *entry;
	int error = seen ? 0 : -ENOMEM;

	if (!entries && !error)
		error = errno == ENOENT ? 0 : -errno;
	while (entries && !error && (entry = readdir(entries)))
		if (is_record(entry->d_name))
			error = add_record(set, dirfd(entries), entry->d_name, seen);
	if (entries)
		closedir(entries);
	free(seen);
	coll_flight_sort(set);
	return error;
}

void coll_flight_report_clear(const char *folder)
{
	DIR *entries = opendir(folder);
	struct dirent *entry;

	while (entries && (entry = readdir(entries)))
		if (is_record(entry->d_name) || !strcmp(entry->d_name, CLAIM))
			unlinkat(dirfd(entries), entry->d_name, 0);
	if (entries)
		closedir(entries);
	rmdir(folder);
}

/* ---- the report ------------------------------------------------------------ */

static FILE *open_beside(const char *path, char *beside, size_t bytes)
{
	int fd;

	if (snprintf(beside, bytes, "%s.%d", path, (int)getpid()) >= (int)bytes) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	unlink(beside);
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

/* A file is the whole one or the one before. */
static int write_whole(const char *path, const struct coll_flight_job *job,
		       int (*write)(const struct coll_flight_job *job, FILE *to))
{
	char beside[PATH_MAX];
	FILE *to = open_beside(path, beside, sizeof(beside));
	int error = to ? write(job, to) : -errno;

	if (!to)
		return error;
	if (fflush(to) && !error)
		error = -errno;
	fclose(to);
	if (!error && rename(beside, path))
		error = -errno;
	if (error)
		unlink(beside);
	return error;
}

static int write_report(const struct coll_flight_job *job, FILE *to)
{
	struct coll_flight_report report;
	int error = coll_flight_report_make(&report, job);

	if (error)
		return error;
	coll_flight_report_print(&report, job, to);
	coll_flight_report_free(&report);
	return 0;
}

static int write_records(const struct coll_flight_job *job, FILE *to)
{
	size_t i;

	for (i = 0; i < job->count; i++)
		if (fwrite(job->seen[i], sizeof(*job->seen[i]), 1, to) != 1)
			return -EIO;
	return 0;
}

int coll_flight_report_write(struct coll_flight_set *set, const char *file)
{
	const struct coll_flight_job job = { set->seen, set->count };
	char records[PATH_MAX];
	int error;

	if (snprintf(records, sizeof(records), "%s" RECORD_END, file) >= (int)sizeof(records))
		return -ENAMETOOLONG;
	error = write_whole(records, &job, write_records);
	return error ? error : write_whole(file, &job, write_report);
}

/* ---- a rank leaves ------------------------------------------------------------ */

/* How many records there are, and the lowest one's rank. */
static uint32_t count_records(const char *folder, uint32_t *lowest)
{
	DIR *entries = opendir(folder);
	struct dirent *entry;
	uint32_t count = 0;

	*lowest = COLL_FLIGHT_NO_RANK;
	while (entries && (entry = readdir(entries))) {
		const uint32_t rank = is_record(entry->d_name) ? rank_of_record(entry->d_name) :
								 COLL_FLIGHT_NO_RANK;

		count += is_record(entry->d_name);
		if (rank < *lowest)
			*lowest = rank;
	}
	if (entries)
		closedir(entries);
	return count;
}

/* Two ranks may both see the last record. */
static bool is_claimed(const char *folder)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/" CLAIM, folder) >= (int)sizeof(path))
		return true;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return true;
	close(fd);
	return false;
}

static int report_from(const char *folder, const char *file)
{
	struct coll_flight_set set = { .count = 0 };
	int error = coll_flight_report_gather(&set, folder);

	if (!error && set.count)
		error = coll_flight_report_write(&set, file);
	coll_flight_free(&set);
	if (!error)
		coll_flight_report_clear(folder);
	return error;
}

int coll_flight_report_record(const struct coll_flight *flight, const char *file)
{
	char folder[PATH_MAX];
	int error = coll_flight_report_folder(file, flight->page->job, folder, sizeof(folder));

	if (error)
		return error;
	if (mkdir(folder, 0700) && errno != EEXIST)
		return -errno;
	return coll_flight_dump(flight, folder);
}

int coll_flight_report_leave(const struct coll_flight *flight, const char *file, bool failed)
{
	const struct coll_flight_page *page = flight->page;
	int error = coll_flight_report_record(flight, file);
	char folder[PATH_MAX];
	uint32_t count, lowest;

	if (error || page->ranks > COLL_FLIGHT_REPORT_RANKS)
		return error;
	coll_flight_report_folder(file, page->job, folder, sizeof(folder));
	count = count_records(folder, &lowest);
	if ((count < page->ranks && !(failed && page->rank == lowest)) || is_claimed(folder))
		return 0;
	return report_from(folder, file);
}
