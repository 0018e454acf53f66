// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit.h"
#include "small_file.h"

/* Where the hierarchies are mounted, as the distributions do it. */
static const char *const mounts_v2[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified", NULL };
static const char *const mounts_v1[] = { "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", NULL };

/* ns of one cgroup's cpu.stat: throttled_usec of v2, throttled_time of v1. false: no such file. */
static bool read_throttled(const char *mount, const char *cgroup, u64 *ns)
{
	char path[PATH_MAX + 64], text[1024], *at;

	snprintf(path, sizeof(path), "%s%s/cpu.stat", mount, cgroup);
	if (!node_read_small(path, text, sizeof(text)))
		return false;
	*ns = 0;
	at = strstr(text, "throttled_usec ");
	if (at)
		*ns = 1000 * strtoull(at + strlen("throttled_usec "), NULL, 10);
	at = strstr(text, "throttled_time ");
	if (at)
		*ns = strtoull(at + strlen("throttled_time "), NULL, 10);
	return true;
}

/* FNV-1a. */
static u64 key_of(const char *text)
{
	u64 key = 0xcbf29ce484222325ULL;

	while (*text)
		key = (key ^ (unsigned char)*text++) * 0x100000001b3ULL;
	return key;
}

static void add_level(struct node_limit *limit, const char *const *mounts, const char *cgroup)
{
	const size_t length = strlen(cgroup), room = NODE_TASK_CGROUP - 1;
	struct node_limit_level *level = &limit->level[limit->levels];
	u64 ns = 0;

	while (*mounts && !read_throttled(*mounts, cgroup, &ns))
		mounts++;
	if (!*mounts || limit->levels == NODE_LIMIT_LEVELS)
		return;
	limit->levels++;
	level->throttled = ns;
	level->key = key_of(cgroup);
	snprintf(level->cgroup, sizeof(level->cgroup), "%s",
		 !length ? "/" : length > room ? cgroup + length - room : cgroup);
}

/* The machine's root has no limit; that of a namespace may have one. */
static void add_levels(struct node_limit *limit, const char *const *mounts, const char *cgroup)
{
	char path[PATH_MAX], *slash;

	if (strlen(cgroup) >= sizeof(path))
		return;
	strcpy(path, cgroup);
	while ((slash = strrchr(path, '/')) && path[1]) {
		add_level(limit, mounts, path);
		*slash = 0;
	}
	add_level(limit, mounts, "");
}

/* Whether "cpu" is among the names of a hierarchy of v1. */
static bool has_cpu(const char *names)
{
	const size_t length = strcspn(names, ":");
	const char *at = names;

	while (at < names + length) {
		const size_t word = strcspn(at, ",:");

		if (word == 3 && !strncmp(at, "cpu", 3))
			return true;
		at += word + 1;
	}
	return false;
}

void node_limit_read(u32 pid, struct node_limit *limit)
{
	char path[64], text[4 * PATH_MAX], *save, *line;

	limit->levels = 0;
	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	if (!node_read_small(path, text, sizeof(text)))
		return;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *names = strchr(line, ':'),
			   *cgroup = names ? strchr(names + 1, ':') : NULL;

		if (!cgroup)
			continue;
		if (cgroup == names + 1)
			add_levels(limit, mounts_v2, cgroup + 1);
		else if (has_cpu(names + 1))
			add_levels(limit, mounts_v1, cgroup + 1);
	}
}

static const struct node_limit_level *find_level(const struct node_limit *limit, u64 key)
{
	u32 i;

	for (i = 0; i < limit->levels; i++)
		if (limit->level[i].key == key)
			return &limit->level[i];
	return NULL;
}

const struct node_limit_level *node_limit_most(const struct node_limit *before,
					       const struct node_limit *now, u64 *ns)
{
	const struct node_limit_level *most = NULL;
	u32 i;

	*ns = 0;
	for (i = 0; i < now->levels; i++) {
		const struct node_limit_level *was = find_level(before, now->level[i].key);

		if (!was || now->level[i].throttled <= was->throttled ||
		    now->level[i].throttled - was->throttled <= *ns)
			continue;
		*ns = now->level[i].throttled - was->throttled;
		most = &now->level[i];
	}
	return most;
}

bool node_limit_has(const struct node_limit *limit, const struct node_limit_level *level)
{
	return find_level(limit, level->key);
}
