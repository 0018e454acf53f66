// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libcoll/base/clock.h"
#include "report.h"
#include "observation.h"
#include "report_file.h"

#define RECORD_END	".flight"
#define REPORT_BEGIN	"job "
#define OBSERVED_END	".observed"
#define BESIDE_END	".new"
#define CLAIM		"made"		/* in the folder: somebody makes the report */

#define BLURRED		(10 * COLL_SECOND)	/* hosts' clocks */
#define CLAIM_KEPT	(300 * COLL_SECOND)	/* longer than a report of COLL_FLIGHT_REPORT_RANKS takes */

enum { TRIES = 3 };			/* to leave a record in a folder that others remove */

int coll_flight_report_folder(const char *file, const char *job, char *folder, size_t bytes)
{
	if (snprintf(folder, bytes, "%s.%s", file, job) >= (int)bytes)
		return -ENAMETOOLONG;
	coll_flight_make_plain(folder + strlen(file) + 1);
	return 0;
}

/* Others may write to where it is, so it may be theirs, or a link to one of this user's. -errno. */
static int open_folder(const char *path)
{
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat folder;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &folder) && folder.st_uid == geteuid() && !(folder.st_mode & 022))
		return fd;
	close(fd);
	return -EPERM;
}

static DIR *list_folder(const char *path, int *error)
{
	const int fd = open_folder(path);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);

	*error = fd < 0 ? fd : entries ? 0 : -errno;
	if (fd >= 0 && !entries)
		close(fd);
	return entries;
}

/* What the names of all of a job's files begin with. */
enum { NAME_BEGIN = sizeof(((struct coll_flight_page *)0)->job) + 8 };

static void name_begin(char begin[NAME_BEGIN], const char *job)
{
	snprintf(begin, NAME_BEGIN, "coll-%s-", job);
	coll_flight_make_plain(begin);
}

/* The rank of coll-JOB-RANK.flight, COLL_FLIGHT_NO_RANK: it is no such name. */
static uint32_t rank_of_record(const char *name, const char *job)
{
	char begin[NAME_BEGIN], *end;
	unsigned long rank;

	name_begin(begin, job);
	if (strncmp(name, begin, strlen(begin)) || name[strlen(begin)] < '0' ||
	    name[strlen(begin)] > '9')
		return COLL_FLIGHT_NO_RANK;
	rank = strtoul(name + strlen(begin), &end, 10);
	return strcmp(end, RECORD_END) || rank > COLL_FLIGHT_NO_RANK ? COLL_FLIGHT_NO_RANK : rank;
}

static bool is_of_observer(const char *name, const char *job, const char *end)
{
	const size_t length = strlen(name), of_end = strlen(end);
	char begin[NAME_BEGIN];

	name_begin(begin, job);
	return !strncmp(name, begin, strlen(begin)) && length > of_end &&
	       !strcmp(name + length - of_end, end);
}

static bool is_observed(const char *name, const char *job)
{
	return is_of_observer(name, job, OBSERVED_END);
}

/* ... or what an observer that was killed has left of one. */
static bool was_observed(const char *name, const char *job)
{
	return is_of_observer(name, job, OBSERVED_END) ||
	       is_of_observer(name, job, OBSERVED_END BESIDE_END);
}

/* The name that it has, and the one until it is whole. */
static int observed_names(const char *job, char name[NAME_MAX + 1], char beside[NAME_MAX + 1])
{
	char begin[NAME_BEGIN], host[64];

	name_begin(begin, job);
	if (gethostname(host, sizeof(host)))
		return -errno;
	host[sizeof(host) - 1] = 0;
	coll_flight_make_plain(host);
	return snprintf(name, NAME_MAX + 1, "%s%s-%d" OBSERVED_END, begin, host, getpid()) <=
		       NAME_MAX &&
	       snprintf(beside, NAME_MAX + 1, "%s" BESIDE_END, name) <= NAME_MAX ? 0 : -ENAMETOOLONG;
}

/* What somebody put there is removed: it may be a link, or a FIFO that nobody reads. -errno. */
static int write_observed(int folder, const char *beside, const struct coll_flight_observation *one,
			  uint32_t count)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	const size_t bytes = count * sizeof(*one);
	ssize_t written;
	int fd;

	unlinkat(folder, beside, 0);
	fd = openat(folder, beside, flags, 0600);
	if (fd < 0)
		return -errno;
	written = write(fd, one, bytes);
	if (close(fd) || written < 0)
		return -errno;
	return written == (ssize_t)bytes ? 0 : -ENOSPC;
}

int coll_flight_report_observe(const char *folder, const char *job,
			       const struct coll_flight_observation *one, uint32_t count)
{
	char name[NAME_MAX + 1], beside[NAME_MAX + 1];
	const int fd = open_folder(folder);
	int error = fd < 0 ? fd : observed_names(job, name, beside);

	if (!error)
		error = write_observed(fd, beside, one, count);
	if (!error && renameat(fd, beside, fd, name))
		error = -errno;
	if (fd >= 0) {
		if (error && error != -ENAMETOOLONG)
			unlinkat(fd, beside, 0);
		close(fd);
	}
	return error;
}

/* ---- records ------------------------------------------------------------- */

static bool read_record(int fd, struct coll_flight_seen *seen, const char *job)
{
	return read(fd, seen, sizeof(*seen)) == sizeof(*seen) &&
	       seen->magic == COLL_FLIGHT_MAGIC &&
	       !strncmp(seen->page.job, job, sizeof(seen->page.job));
}

/*
 * Whether it was left after `since`, CLOCK_REALTIME. A scheduler starts a job again under its name, and
 * then there are the records that the ranks have left of which another one was killed.
 */
static bool is_since(uint64_t realtime, uint64_t since)
{
	return realtime + BLURRED >= since;
}

static bool record_is_since(int folder, const char *name, uint64_t since)
{
	const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	const off_t at = offsetof(struct coll_flight_seen, realtime);
	uint64_t realtime;
	bool is;

	if (fd < 0)
		return false;
	is = pread(fd, &realtime, sizeof(realtime), at) == sizeof(realtime) && is_since(realtime, since);
	close(fd);
	return is;
}

/* Whether it is a record of this job, which is then in `seen`. */
static bool find_record(int folder, const char *name, const char *job,
			struct coll_flight_seen *seen)
{
	bool is;
	int fd;

	if (rank_of_record(name, job) == COLL_FLIGHT_NO_RANK)
		return false;
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	is = read_record(fd, seen, job);
	close(fd);
	return is;
}

/* When the records are there. */
static void gather_observed(struct coll_flight_set *set, const char *folder, const char *job)
{
	int error;
	DIR *entries = list_folder(folder, &error);
	struct dirent *entry;

	while (entries && (entry = readdir(entries)))
		if (is_observed(entry->d_name, job))
			coll_flight_observation_read(set, dirfd(entries), entry->d_name, job);
	if (entries)
		closedir(entries);
}

int coll_flight_report_gather(struct coll_flight_set *set, const char *file, const char *job,
			      uint64_t since)
{
	struct coll_flight_seen *seen = malloc(sizeof(*seen));
	DIR *entries = NULL;
	struct dirent *entry;
	char folder[PATH_MAX];
	int error = coll_flight_report_folder(file, job, folder, sizeof(folder));

	if (!seen)
		error = -ENOMEM;
	if (!error)
		entries = list_folder(folder, &error);
	while (entries && !error && (entry = readdir(entries)))
		if (find_record(dirfd(entries), entry->d_name, job, seen) && is_since(seen->realtime, since) &&
		    coll_flight_add(set, seen, sizeof(*seen)) == -ENOMEM)
			error = -ENOMEM;	/* a broken one is left out */
	if (entries)
		closedir(entries);
	free(seen);
	coll_flight_sort(set);
	if (!error)
		gather_observed(set, folder, job);
	return error == -ENOENT ? 0 : error;
}

/* The claim goes last: until then nobody else makes a report of what is left. */
void coll_flight_report_clear(const char *file, const char *job)
{
	struct coll_flight_seen *seen = malloc(sizeof(*seen));
	DIR *entries = NULL;
	struct dirent *entry;
	char folder[PATH_MAX];
	int error = coll_flight_report_folder(file, job, folder, sizeof(folder));

	if (seen && !error)
		entries = list_folder(folder, &error);
	while (entries && (entry = readdir(entries)))
		if (find_record(dirfd(entries), entry->d_name, job, seen) ||
		    was_observed(entry->d_name, job))
			unlinkat(dirfd(entries), entry->d_name, 0);
	if (entries) {
		unlinkat(dirfd(entries), CLAIM, 0);
		closedir(entries);
		rmdir(folder);
	}
	free(seen);
}

/* ---- the report ------------------------------------------------------------ */

/* What is there begins so, or is empty, or there is nothing: else it is no report. -EEXIST. */
static int may_replace(const char *path, const void *begin, size_t bytes)
{
	char found[16];
	struct stat file;
	ssize_t got;
	int fd;

	if (lstat(path, &file))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(file.st_mode))
		return -EEXIST;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	got = read(fd, found, bytes);
	close(fd);
	return !got || (got == (ssize_t)bytes && !memcmp(found, begin, bytes)) ? 0 : -EEXIST;
}

int coll_flight_report_check(const char *file)
{
	const uint64_t magic = COLL_FLIGHT_MAGIC;
	char records[PATH_MAX];
	int error = may_replace(file, REPORT_BEGIN, strlen(REPORT_BEGIN));

	if (snprintf(records, sizeof(records), "%s" RECORD_END, file) >= (int)sizeof(records))
		return -ENAMETOOLONG;
	return error ? error : may_replace(records, &magic, sizeof(magic));
}

static FILE *open_beside(const char *path, char *beside, size_t bytes)
{
	int fd;

	if (snprintf(beside, bytes, "%s.XXXXXX", path) >= (int)bytes) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	fd = mkostemp(beside, O_CLOEXEC);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

/* 0 or -errno. A stream does not keep why an earlier write failed: for a file it is most likely space. */
static int file_unwritten(FILE *to)
{
	if (fflush(to))
		return -errno;
	return ferror(to) ? -ENOSPC : 0;
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
	if (!error)
		error = file_unwritten(to);
	if (fclose(to) && !error)
		error = -errno;
	return coll_flight_replace(path, beside, error);
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
			return -errno;
	return 0;
}

/* Whether a record of an earlier report is of this job, which may have the name of one before. */
static bool is_of_job(const struct coll_flight_set *set, const struct coll_flight_seen *seen)
{
	const struct coll_flight_page *first = &set->seen[0]->page;
	size_t i;

	if (seen->page.ranks != first->ranks || !is_since(seen->realtime, first->realtime))
		return false;
	for (i = 0; i < set->count; i++)
		if (set->seen[i]->page.rank == seen->page.rank)
			return set->seen[i]->page.opened == seen->page.opened;
	return true;
}

/* The records beside a report that was made before all had left: a later one is of all of them. */
static int add_earlier(struct coll_flight_set *set, const char *records)
{
	const int fd = open(records, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct coll_flight_set earlier = { .count = 0 };
	struct coll_flight_seen *seen = malloc(sizeof(*seen));
	bool same = true;
	int error = seen ? 0 : -ENOMEM;
	size_t i;

	while (fd >= 0 && !error && same && read_record(fd, seen, set->seen[0]->page.job)) {
		same = is_of_job(set, seen);
		if (same && coll_flight_add(&earlier, seen, sizeof(*seen)) == -ENOMEM)
			error = -ENOMEM;
	}
	for (i = 0; same && !error && i < earlier.count; i++)
		if (coll_flight_add(set, earlier.seen[i], sizeof(*seen)) == -ENOMEM)
			error = -ENOMEM;
	if (fd >= 0)
		close(fd);
	coll_flight_free(&earlier);
	free(seen);
	coll_flight_sort(set);
	return error;
}

int coll_flight_report_write(struct coll_flight_set *set, const char *file)
{
	struct coll_flight_job job;
	char records[PATH_MAX];
	int error = coll_flight_report_check(file);

	if (error)
		return error;
	snprintf(records, sizeof(records), "%s" RECORD_END, file);
	error = add_earlier(set, records);
	job = (struct coll_flight_job){ set->seen, set->count };
	if (!error)
		error = write_whole(records, &job, write_records);
	return error ? error : write_whole(file, &job, write_report);
}

/* ---- a rank leaves ------------------------------------------------------------ */

/* How many records there are, and the lowest one's rank. since: 0 is any, by their names alone. */
static uint32_t count_records(int folder, const char *job, uint64_t since, uint32_t *lowest)
{
	const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint32_t count = 0;

	*lowest = COLL_FLIGHT_NO_RANK;
	while (entries && (entry = readdir(entries))) {
		const uint32_t rank = rank_of_record(entry->d_name, job);

		if (rank == COLL_FLIGHT_NO_RANK || (since && !record_is_since(folder, entry->d_name, since)))
			continue;
		count++;
		if (rank < *lowest)
			*lowest = rank;
	}
	if (entries)
		closedir(entries);
	else if (fd >= 0)
		close(fd);
	return count;
}

static bool claim_taken(int folder)
{
	const int fd = openat(folder, CLAIM, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			      0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Whose claim is from before this job, or kept too long, was killed. */
static bool claim_is_stale(int folder, uint64_t since)
{
	struct timespec now;
	struct stat claim;
	uint64_t at;

	if (fstatat(folder, CLAIM, &claim, AT_SYMLINK_NOFOLLOW))
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	at = claim.st_mtim.tv_sec * COLL_SECOND + claim.st_mtim.tv_nsec;
	return at + BLURRED < since || at + CLAIM_KEPT < now.tv_sec * COLL_SECOND + now.tv_nsec;
}

/*
 * Two ranks may both see the last record. If two take a stale claim over, both make the same report, or
 * the second one finds no records.
 */
static bool claim_folder(int folder, uint64_t since)
{
	if (claim_taken(folder))
		return true;
	return claim_is_stale(folder, since) && !unlinkat(folder, CLAIM, 0) && claim_taken(folder);
}

/* Another one may have made the report meanwhile: then there are no records. */
static int report_claimed(int folder, const char *path, const char *file,
			  const struct coll_flight_page *page, uint32_t least)
{
	struct coll_flight_set set = { .count = 0 };
	int error = coll_flight_report_gather(&set, file, page->job, page->realtime);
	const bool enough = set.count && set.count >= least;

	if (!error && enough)
		error = coll_flight_report_write(&set, file);
	coll_flight_free(&set);
	if (!error && enough) {
		coll_flight_report_clear(file, page->job);
	} else {
		unlinkat(folder, CLAIM, 0);
		rmdir(path);
	}
	return error;
}

/* What colld saw of this rank is there before its record is, which may be the last one. */
static void keep_observed(const struct coll_flight *flight, const char *folder)
{
	struct coll_flight_observation one;

	if (coll_flight_observation_of(flight->page, &one))
		coll_flight_report_observe(folder, flight->page->job, &one, 1);
}

/* -ENOENT: the one who made the report has removed the folder meanwhile. */
static int record_in(const struct coll_flight *flight, const char *folder)
{
	int fd;

	if (mkdir(folder, 0700) && errno != EEXIST)
		return -errno;
	fd = open_folder(folder);
	if (fd < 0)
		return fd;
	close(fd);
	keep_observed(flight, folder);
	return coll_flight_dump(flight, folder);
}

int coll_flight_report_record(const struct coll_flight *flight, const char *file)
{
	char folder[PATH_MAX];
	int error = coll_flight_report_folder(file, flight->page->job, folder, sizeof(folder));
	int tries;

	for (tries = 0; !error && tries < TRIES; tries++) {
		error = record_in(flight, folder);
		if (error != -ENOENT)
			return error;
		error = 0;
	}
	return error ? error : -ENOENT;
}

/* The last one's, or the lowest one's that is there if not all will come. Names tell most that it is not theirs. */
static bool is_turn(int folder, const struct coll_flight_page *page, bool failed)
{
	uint32_t count, lowest;

	if (!failed && count_records(folder, page->job, 0, &lowest) < page->ranks)
		return false;
	count = count_records(folder, page->job, page->realtime, &lowest);
	return count >= page->ranks || (failed && page->rank == lowest);
}

int coll_flight_report_leave(const struct coll_flight *flight, const char *file, bool failed)
{
	const struct coll_flight_page *page = flight->page;
	int error = coll_flight_report_record(flight, file), fd;
	char folder[PATH_MAX];

	if (error || page->ranks > COLL_FLIGHT_REPORT_RANKS)
		return error;
	coll_flight_report_folder(file, page->job, folder, sizeof(folder));
	fd = open_folder(folder);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;	/* the report is made */
	if (is_turn(fd, page, failed) && claim_folder(fd, page->realtime))
		error = report_claimed(fd, folder, file, page, failed ? 1 : page->ranks);
	close(fd);
	return error;
}
