// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs.h"

int colld_jobs_open(struct colld_jobs *jobs, const char *state)
{
	const int length = snprintf(jobs->folder, sizeof(jobs->folder), "%s/jobs", state);

	jobs->watch = -1;
	if (length >= (int)sizeof(jobs->folder))
		return -ENAMETOOLONG;
	if ((mkdir(state, 0755) && errno != EEXIST) || (mkdir(jobs->folder, 0755) && errno != EEXIST))
		return -errno;
	jobs->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (jobs->watch < 0 || inotify_add_watch(jobs->watch, jobs->folder, IN_CREATE | IN_DELETE |
						 IN_MOVE | IN_CLOSE_WRITE) < 0)
		return -errno;
	return 0;
}

void colld_jobs_close(struct colld_jobs *jobs)
{
	if (jobs->watch >= 0)
		close(jobs->watch);
	jobs->watch = -1;
}

void colld_jobs_drain(const struct colld_jobs *jobs)
{
	char events[4096] __attribute__((aligned(8)));

	while (read(jobs->watch, events, sizeof(events)) > 0)
		;
}

int colld_jobs_any(const struct colld_jobs *jobs)
{
	DIR *folder = opendir(jobs->folder);
	int any = folder ? 0 : -errno;
	struct dirent *entry;

	while (folder && !any && (entry = readdir(folder)))
		any = *entry->d_name != '.';
	if (folder)
		closedir(folder);
	return any;
}

/* 1; 0: it names no user, or somebody else can write it; -errno: there is no descriptor for it. */
static int read_user(int folder, const char *name, u32 *uid)
{
	const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat file;
	char text[64];
	ssize_t length;

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
	length = !fstat(fd, &file) && S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
		 !(file.st_mode & (S_IWGRP | S_IWOTH)) ? read(fd, text, sizeof(text) - 1) : -1;
	close(fd);
	if (length < 0)
		return 0;
	text[length] = 0;
	return sscanf(text, "uid %u", uid) == 1;
}

static u32 add_user(u32 *uid, u32 count, u32 room, u32 user)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (uid[i] == user)
			return count;
	if (count < room)
		uid[count++] = user;
	return count;
}

int colld_jobs_users(const struct colld_jobs *jobs, u32 *uid, u32 room)
{
	DIR *folder = opendir(jobs->folder);
	struct dirent *entry;
	u32 count = 0, user;
	int status = folder ? 0 : -errno;

	while (status >= 0 && folder && (entry = readdir(folder))) {
		status = *entry->d_name == '.' ? 0 : read_user(dirfd(folder), entry->d_name, &user);
		if (status > 0)
			count = add_user(uid, count, room, user);
	}
	if (folder)
		closedir(folder);
	return status < 0 ? status : (int)count;
}
