// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
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
	char path[NODE_TASK_CGROUP + 64], text[1024], *at;

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

static void add_level(struct node_limit *limit, u64 *most, const char *const *mounts,
		      const char *cgroup)
{
	u64 ns = 0;

	while (*mounts && !read_throttled(*mounts, cgroup, &ns))
		mounts++;
	limit->throttled += ns;
	if (ns <= *most)
		return;
	*most = ns;
	snprintf(limit->cgroup, sizeof(limit->cgroup), "%s", cgroup);
}

/* The root has no limit. */
static void add_levels(struct node_limit *limit, const char *const *mounts, const char *cgroup)
{
	char path[NODE_TASK_CGROUP], *slash;
	u64 most = 0;

	if (strlen(cgroup) >= sizeof(path))
		return;
	strcpy(path, cgroup);
	while ((slash = strrchr(path, '/')) && path[1]) {
		add_level(limit, &most, mounts, path);
		*slash = 0;
	}
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
	char path[64], text[4096], *save, *line;

	*limit = (struct node_limit){ .throttled = 0 };
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
