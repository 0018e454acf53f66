// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arguments.h"
#include "printed.h"
#include "whole.h"

/* Whether it is what standard output or error go to: what is printed later is to stand in it, too. */
static bool is_printed_to(const struct stat *found)
{
	struct stat printed;
	int fd;

	for (fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (!fstat(fd, &printed) && printed.st_dev == found->st_dev && printed.st_ino == found->st_ino)
			return true;
	return false;
}

/* A link stays one: the file that it names is replaced. False: it is not to be, but written as it is. */
static bool whole_resolve(struct whole_file *file, const char *path)
{
	struct stat found;

	if (!realpath(path, file->path))
		snprintf(file->path, sizeof(file->path), "%s", path);
	if (!stat(path, &found))
		return S_ISREG(found.st_mode) && !is_printed_to(&found);
	return lstat(path, &found);	/* else a link to what is not there */
}

/* 0, or why the file cannot be made or written; a full disk is found later. -errno. */
static int whole_refused(const char *path)
{
	struct stat found;
	char *folder;
	int error = 0;

	if (!stat(path, &found))
		return S_ISDIR(found.st_mode) ? -EISDIR : access(path, W_OK) ? -errno : 0;
	if (errno != ENOENT)
		return -errno;
	folder = strdup(path);
	if (!folder || access(dirname(folder), W_OK | X_OK))
		error = -errno;
	free(folder);
	return error;
}

bool whole_possible(const char *command, const char *path)
{
	const int error = path && strcmp(path, "-") ? whole_refused(path) : 0;

	if (error)
		fprintf(stderr, "%s %s: cannot write %s: %s\n", argument_program, command, path,
			strerror(-error));
	return !error;
}

/* Mode and owner of the file that it is to replace, as far as this process may give them; or those of a new file. */
static void whole_own(int fd, const char *path)
{
	const mode_t mask = umask(0);
	struct stat found;

	umask(mask);
	if (stat(path, &found)) {
		fchmod(fd, 0666 & ~mask);
		return;
	}
	if (fchown(fd, found.st_uid, found.st_gid) && found.st_uid != geteuid())
		found.st_mode &= ~mask;
	fchmod(fd, found.st_mode & 0777);
}

static int whole_open_beside(struct whole_file *file)
{
	int fd;

	if (snprintf(file->beside, sizeof(file->beside), "%s.XXXXXX", file->path) >= (int)sizeof(file->beside))
		return -ENAMETOOLONG;
	fd = mkostemp(file->beside, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	whole_own(fd, file->path);
	file->to = fdopen(fd, "w");
	if (file->to)
		return 0;
	close(fd);
	unlink(file->beside);
	return -ENOMEM;
}

static int whole_open_itself(struct whole_file *file, const char *path)
{
	file->beside[0] = 0;
	file->to = fopen(path, "we");
	return file->to ? 0 : -errno;
}

int whole_open(struct whole_file *file, const char *path)
{
	int error;

	if (!whole_resolve(file, path))
		return whole_open_itself(file, path);
	error = whole_open_beside(file);
	/* In a folder that is not writable a file still may be. */
	return error && !access(path, W_OK) ? whole_open_itself(file, path) : error;
}

/* What cannot be replaced may be written: a file that is mounted, or another user's in /tmp. */
static int whole_copy(const struct whole_file *file)
{
	FILE *from = fopen(file->beside, "re"), *to = from ? fopen(file->path, "we") : NULL;
	int error = to ? 0 : -errno;
	char bytes[4096];
	size_t count;

	while (!error && (count = fread(bytes, 1, sizeof(bytes), from)))
		if (fwrite(bytes, 1, count, to) != count)
			error = -errno;
	if (from)
		fclose(from);
	if (to && fclose(to) && !error)
		error = -errno;
	return error;
}

static int whole_replace(const struct whole_file *file)
{
	int error = rename(file->beside, file->path) ? -errno : 0;

	if (error == -EBUSY || error == -EPERM || error == -EACCES) {
		error = whole_copy(file);
		unlink(file->beside);
	}
	return error;
}

int whole_close(struct whole_file *file)
{
	int error = printed_error(file->to);

	if (fclose(file->to) && !error)
		error = -errno;
	if (!*file->beside)
		return error;
	if (!error)
		return whole_replace(file);
	unlink(file->beside);
	return error;
}
