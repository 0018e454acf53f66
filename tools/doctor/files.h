/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Small files of /proc, /sys and cgroups, below a root. */
#ifndef COLL_DOCTOR_FILES_H
#define COLL_DOCTOR_FILES_H

#include <stddef.h>

#include "core/port.h"

enum { DOCTOR_PATH = 4096 };

/* The first line. False, and "": it is empty or cannot be read. */
bool doctor_file_line(const char *root, char *text, size_t bytes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The first number of the file; -1: none. */
long long doctor_file_number(const char *root, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The number behind a word at the start of a line, such as "MemTotal:"; -1: none. */
long long doctor_file_entry(const char *root, const char *path, const char *word);
bool doctor_file_exists(const char *root, const char *path);
/* Whether a process has this name. */
bool doctor_task_named(const char *root, const char *name);

/* The cgroup of this process in one controller's hierarchy, v2 or v1. */
struct doctor_cgroup {
	const char *root;
	char mount[DOCTOR_PATH / 4], path[DOCTOR_PATH / 2];
	bool unified;		/* v2 */
};

bool doctor_cgroup_find(struct doctor_cgroup *cgroup, const char *root, const char *controller);
/* Its parent; false: it was the topmost. */
bool doctor_cgroup_up(struct doctor_cgroup *cgroup);
bool doctor_cgroup_line(const struct doctor_cgroup *cgroup, const char *file, char *text,
			size_t bytes);
/* The file's path, for a shell's single quotes; "": it is longer, or has a quote. */
void doctor_cgroup_name(const struct doctor_cgroup *cgroup, const char *file, char *text, size_t bytes);
long long doctor_cgroup_number(const struct doctor_cgroup *cgroup, const char *file);
long long doctor_cgroup_entry(const struct doctor_cgroup *cgroup, const char *file,
			      const char *word);

#endif
