// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "freezer.h"
#include "small_file.h"

int node_freezer_find(struct node_freezer *freezer, const char *cgroup)
{
	static const char *const places[] = {
		"/sys/fs/cgroup%s/cgroup.freeze",
		"/sys/fs/cgroup/unified%s/cgroup.freeze",
		"/sys/fs/cgroup/freezer%s/freezer.state",
	};
	int i;

	for (i = 0; i < 3; i++) {
		int length;

		freezer->version1 = i == 2;
		/* The formats are the three above. */
		length = snprintf(freezer->path, sizeof(freezer->path), places[i], cgroup);
		if (length < (int)sizeof(freezer->path) && !access(freezer->path, W_OK))
			return 0;
	}
	return -ENOENT;
}

int node_freezer_get(const struct node_freezer *freezer, bool *frozen)
{
	char word[16];

	errno = 0;
	if (!node_read_small(freezer->path, word, sizeof(word)))
		return errno ? -errno : -ENODEV;
	/* Version 1: FREEZING, until all tasks have noticed. */
	*frozen = *word == '1' || *word == 'F';
	return 0;
}

static void freezer_group(const struct node_freezer *freezer, char *path, size_t bytes)
{
	snprintf(path, bytes, "%.*s", (int)(strrchr(freezer->path, '/') - freezer->path), freezer->path);
}

/* A folder in it is a cgroup, which would be frozen with it. */
static bool has_folder(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	bool found = !folder;

	while (!found && (entry = readdir(folder)))
		found = entry->d_type == DT_DIR && *entry->d_name != '.';
	if (folder)
		closedir(folder);
	return found;
}

int node_freezer_members(const struct node_freezer *freezer, u32 *pid, u32 room)
{
	char path[sizeof(freezer->path) + 16];
	u32 one, count = 0;
	FILE *from;

	freezer_group(freezer, path, sizeof(path));
	if (has_folder(path))
		return -EBUSY;
	strcat(path, "/cgroup.procs");
	from = fopen(path, "re");
	if (!from)
		return -errno;
	while (count < room && fscanf(from, "%u", &one) == 1)
		pid[count++] = one;
	one = ferror(from) || (count == room && fscanf(from, "%u", &one) == 1);
	fclose(from);
	return one ? -E2BIG : (int)count;
}

int node_freezer_set(const struct node_freezer *freezer, bool frozen)
{
	const char *word = freezer->version1 ? frozen ? "FROZEN" : "THAWED" : frozen ? "1" : "0";

	return node_write_small(freezer->path, word);
}

int node_freezer_thaw(const char *cgroup)
{
	struct node_freezer freezer;
	int error = node_freezer_find(&freezer, cgroup);

	if (!error)
		error = node_freezer_set(&freezer, false);
	return error == -ENOENT || error == -ENODEV ? 0 : error;
}
