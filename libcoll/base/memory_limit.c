// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory_limit.h"

/* A hierarchy, as the distributions mount it, and its files. */
static const struct version {
	const char *mount, *limit, *used, *inactive, *active;
} version_1 = { "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ",
		"total_active_file " },
  version_2 = { "", "memory.max", "memory.current", "inactive_file ", "active_file " };

static bool read_text(const char *folder, const char *name, char *text, size_t bytes)
{
	char path[2 * PATH_MAX];
	FILE *file;
	size_t got;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	got = fread(text, 1, bytes - 1, file);
	text[got] = 0;
	fclose(file);
	return got;
}

/* "max" of version 2 is no number. Version 1 says so by one that no machine has. */
static bool read_number(const char *folder, const char *name, uint64_t *number)
{
	char text[32], *end;

	if (!read_text(folder, name, text, sizeof(text)))
		return false;
	*number = strtoull(text, &end, 10);
	return end != text;
}

/* A line of memory.stat: 0 if it is not there. */
static uint64_t stat_number(const char *text, const char *name)
{
	const size_t length = strlen(name);

	while (text && strncmp(text, name, length)) {
		text = strchr(text, '\n');
		text += !!text;
	}
	return text ? strtoull(text + length, NULL, 10) : 0;
}

static uint64_t left_of(const struct version *version, const char *folder)
{
	uint64_t limit, used;
	char text[8192];

	if (!read_number(folder, version->limit, &limit) || limit > LLONG_MAX / 2 ||
	    !read_number(folder, version->used, &used))
		return UINT64_MAX;
	if (read_text(folder, "memory.stat", text, sizeof(text)))
		limit += stat_number(text, version->inactive) + stat_number(text, version->active);
	return limit > used ? limit - used : 0;
}

/* Of all above it, too. In a container some of them are not there, and the mount is its own. */
static uint64_t left_along(const struct version *version, const char *mount, const char *cgroup)
{
	char folder[PATH_MAX];
	uint64_t least = UINT64_MAX;
	const size_t root = snprintf(folder, sizeof(folder), "%s%s", mount, version->mount);

	if (root >= sizeof(folder) || strlen(cgroup) >= sizeof(folder) - root)
		return UINT64_MAX;
	strcpy(folder + root, cgroup);
	for (;;) {
		const uint64_t left = left_of(version, folder);

		if (left < least)
			least = left;
		if (strlen(folder) <= root)
			return least;
		*strrchr(folder, '/') = 0;
	}
}

/* A line is "NUMBER:NAMES:PATH": of version 2 without names. */
static uint64_t left_by_line(const char *line, const char *mount)
{
	const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;

	if (!path || path[1] != '/')
		return UINT64_MAX;
	if (path == names + 1)
		return left_along(&version_2, mount, path + 1);
	return strncmp(names, ":memory:", 8) ? UINT64_MAX :
					       left_along(&version_1, mount, path + 1);
}

uint64_t coll_memory_limit_left_by(const char *cgroups, const char *mount)
{
	FILE *file = fopen(cgroups, "re");
	uint64_t least = UINT64_MAX;
	char line[PATH_MAX];

	while (file && fgets(line, sizeof(line), file)) {
		uint64_t left;

		line[strcspn(line, "\n")] = 0;
		left = left_by_line(line, mount);
		if (left < least)
			least = left;
	}
	if (file)
		fclose(file);
	return least;
}

uint64_t coll_memory_limit_left(void)
{
	return coll_memory_limit_left_by("/proc/self/cgroup", "/sys/fs/cgroup");
}

uint64_t coll_memory_available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kilobytes;
	uint64_t bytes = UINT64_MAX;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1)
			bytes = kilobytes << 10;
	if (file)
		fclose(file);
	return bytes;
}
