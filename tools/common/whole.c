// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arguments.h"
#include "printed.h"
#include "whole.h"

/* A link stays one: the file that it names is replaced. False: it is something else than a file. */
static bool whole_resolve(struct whole_file *file, const char *path)
{
	struct stat found;

	if (!realpath(path, file->path))
		snprintf(file->path, sizeof(file->path), "%s", path);
	return stat(path, &found) || S_ISREG(found.st_mode);
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

int whole_open(struct whole_file *file, const char *path)
{
	file->beside[0] = 0;
	if (!whole_resolve(file, path))
		file->to = fopen(path, "we");
	else if (snprintf(file->beside, sizeof(file->beside), "%s.%d", file->path, (int)getpid()) >=
		 (int)sizeof(file->beside))
		return -ENAMETOOLONG;
	else
		file->to = fopen(file->beside, "wxe");
	return file->to ? 0 : -errno;
}

int whole_close(struct whole_file *file)
{
	int error = printed_error(file->to);

	if (fclose(file->to) && !error)
		error = -errno;
	if (!*file->beside)
		return error;
	if (!error && rename(file->beside, file->path))
		error = -errno;
	if (error)
		unlink(file->beside);
	return error;
}
