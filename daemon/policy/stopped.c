// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stopped.h"

int colld_stopped_open(struct colld_stopped *stopped, const char *state, const char *name)
{
	const int length = snprintf(stopped->lock, sizeof(stopped->lock), "%s/%s.lock", state, name);

	if (length >= (int)sizeof(stopped->lock))
		return -ENAMETOOLONG;
	snprintf(stopped->path, sizeof(stopped->path), "%s/%s", state, name);
	stopped->state = state;
	return 0;
}

bool colld_stopped_any(const struct colld_stopped *stopped)
{
	return !access(stopped->path, F_OK) || errno != ENOENT;
}

int colld_stopped_lock(const struct colld_stopped *stopped)
{
	int fd;

	mkdir(stopped->state, 0755);
	fd = open(stopped->lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	while (fd >= 0 && flock(fd, LOCK_EX) && errno == EINTR)
		;
	return fd;
}

void colld_stopped_unlock(int lock)
{
	if (lock >= 0)
		close(lock);
}

/* ---- lines ------------------------------------------------------------------ */

/* Each that is not resumed is written to `rest`. Returns the latest of their errors. */
static int stopped_resume_each(FILE *from, FILE *rest, int (*resume)(const char *what, void *data), void *data)
{
	char *line = NULL;
	size_t room = 0;
	int status = 0;

	while (getline(&line, &room, from) > 0) {
		int error;

		line[strcspn(line, "\n")] = 0;
		error = *line ? resume(line, data) : 0;
		if (error)
			fprintf(rest, "%s\n", line);
		status = error ? error : status;
	}
	free(line);
	return status;
}

/* All of it, or nothing: what comes behind the begin of a line would be read as its end. */
static int stopped_write(const char *path, const char *how, const char *text)
{
	FILE *to = fopen(path, how);
	struct stat before;
	int error;

	if (!to)
		return -errno;
	error = fstat(fileno(to), &before) ? -errno : 0;
	if (error) {
		fclose(to);
		return error;
	}
	fputs(text, to);
	error = fflush(to) || fsync(fileno(to)) ? -errno : 0;
	if (fclose(to) && !error)
		error = -errno;
	if (error && truncate(path, before.st_size))
		return -errno;
	return error;
}

/* Whole, or as it was: where it cannot be written more than is needed is resumed again, and nothing less. */
static int stopped_replace(const struct colld_stopped *stopped, const char *text)
{
	char part[sizeof(stopped->path) + 8];
	int error;

	if (!*text)
		return unlink(stopped->path) && errno != ENOENT ? -errno : 0;
	snprintf(part, sizeof(part), "%s.part", stopped->path);
	error = stopped_write(part, "we", text);
	if (!error && !rename(part, stopped->path))
		return 0;
	error = error ? error : -errno;
	unlink(part);
	return error;
}

/* ---- what is done with them --------------------------------------------------- */

/* 1, 0 or -errno. */
static int stopped_has(const struct colld_stopped *stopped, const char *what)
{
	FILE *from = fopen(stopped->path, "re");
	int found = from || errno == ENOENT ? 0 : -errno;
	char *line = NULL;
	size_t room = 0;

	while (from && !found && getline(&line, &room, from) > 0) {
		line[strcspn(line, "\n")] = 0;
		found = !strcmp(line, what);
	}
	free(line);
	if (from)
		fclose(from);
	return found;
}

int colld_stopped_add(const struct colld_stopped *stopped, const char *what)
{
	const int found = stopped_has(stopped, what);
	char line[1024];

	if (found)
		return found < 0 ? found : 0;
	if (snprintf(line, sizeof(line), "%s\n", what) >= (int)sizeof(line))
		return -ENAMETOOLONG;
	return stopped_write(stopped->path, "ae", line);
}

/* A line that was not read, or has no memory, is not known to be resumed: then the file stays. */
static int stopped_resume_all(const struct colld_stopped *stopped, FILE *from,
			      int (*resume)(const char *what, void *data), void *data)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *rest = open_memstream(&text, &bytes);
	const int status = rest ? stopped_resume_each(from, rest, resume, data) : -ENOMEM;
	int error = rest && fclose(rest) ? -ENOMEM : feof(from) ? 0 : -EIO;

	if (rest && !error)
		error = stopped_replace(stopped, text);
	free(text);
	return status ? status : error;
}

int colld_stopped_resume(const struct colld_stopped *stopped, int (*resume)(const char *what, void *data),
			 void *data)
{
	int lock, status;
	FILE *from;

	/* As nearly always: no lock is made where nothing was ever stopped. */
	if (!colld_stopped_any(stopped))
		return 0;
	lock = colld_stopped_lock(stopped);
	from = fopen(stopped->path, "re");
	status = from ? stopped_resume_all(stopped, from, resume, data) : errno == ENOENT ? 0 : -errno;
	if (from)
		fclose(from);
	colld_stopped_unlock(lock);
	return status;
}
