// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "node/small_file.h"

enum { CONTENT = 16384 };

static bool file_line(const char *root, char *text, size_t bytes, const char *format, va_list list)
{
	char path[DOCTOR_PATH];
	const size_t length = snprintf(path, sizeof(path), "%s", root);

	*text = 0;
	if (length >= sizeof(path) ||
	    vsnprintf(path + length, sizeof(path) - length, format, list) >=
		    (int)(sizeof(path) - length))
		return false;
	if (!node_read_small(path, text, bytes))
		return false;
	text[strcspn(text, "\n")] = 0;
	return *text;
}

bool doctor_file_line(const char *root, char *text, size_t bytes, const char *format, ...)
{
	va_list list;
	bool there;

	va_start(list, format);
	there = file_line(root, text, bytes, format, list);
	va_end(list);
	return there;
}

static long long number_of(const char *text)
{
	char *end;
	const long long number = strtoll(text, &end, 10);

	return end == text ? -1 : number;
}

long long doctor_file_number(const char *root, const char *format, ...)
{
	char text[64];
	va_list list;
	bool there;

	va_start(list, format);
	there = file_line(root, text, sizeof(text), format, list);
	va_end(list);
	return there ? number_of(text) : -1;
}

long long doctor_file_entry(const char *root, const char *path, const char *word)
{
	const size_t length = strlen(word);
	char whole[DOCTOR_PATH], text[CONTENT], *line;

	if (snprintf(whole, sizeof(whole), "%s%s", root, path) >= (int)sizeof(whole) ||
	    !node_read_small(whole, text, sizeof(text)))
		return -1;
	for (line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, word, length) && isspace((unsigned char)line[length]))
			return number_of(line + length);
	}
	return -1;
}

bool doctor_file_exists(const char *root, const char *path)
{
	char whole[DOCTOR_PATH];

	return snprintf(whole, sizeof(whole), "%s%s", root, path) < (int)sizeof(whole) &&
	       !access(whole, F_OK);
}

bool doctor_task_named(const char *root, const char *name)
{
	char folder[DOCTOR_PATH], comm[64];
	struct dirent *entry;
	bool found = false;
	DIR *list;

	snprintf(folder, sizeof(folder), "%s/proc", root);
	list = opendir(folder);
	while (!found && list && (entry = readdir(list)))
		found = isdigit((unsigned char)*entry->d_name) &&
			doctor_file_line(root, comm, sizeof(comm), "/proc/%s/comm",
					 entry->d_name) &&
			!strcmp(comm, name);
	if (list)
		closedir(list);
	return found;
}

/* ---- cgroups --------------------------------------------------------------- */

/* Whether a list "cpu,cpuacct" has the word. */
static bool list_has(const char *list, size_t length, const char *word)
{
	const size_t bytes = strlen(word);
	const char *at = list;

	while (at < list + length) {
		const size_t part = strcspn(at, ",:");

		if (part == bytes && !strncmp(at, word, bytes))
			return true;
		at += part + 1;
	}
	return false;
}

/* Takes a line "9:cpu,cpuacct:/path" or "0::/path", if it is the controller's. */
static bool take_line(struct doctor_cgroup *cgroup, const char *line, const char *controller)
{
	const char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
	char folder[256];

	if (!path)
		return false;
	list++;
	cgroup->unified = path == list;
	if (!cgroup->unified && !list_has(list, path - list, controller))
		return false;
	snprintf(folder, sizeof(folder), "/sys/fs/cgroup%s%.*s", cgroup->unified ? "" : "/",
		 (int)(path - list), list);
	if (cgroup->unified && doctor_file_exists(cgroup->root, "/sys/fs/cgroup/unified"))
		strcpy(folder, "/sys/fs/cgroup/unified");
	else if (!cgroup->unified && !doctor_file_exists(cgroup->root, folder))
		snprintf(folder, sizeof(folder), "/sys/fs/cgroup/%s", controller);
	snprintf(cgroup->mount, sizeof(cgroup->mount), "%s", folder);
	snprintf(cgroup->path, sizeof(cgroup->path), "%.*s", (int)strcspn(path + 1, "\n"),
		 path + 1);
	return true;
}

/* A v1 hierarchy of the controller goes before v2, which then does not have it. */
bool doctor_cgroup_find(struct doctor_cgroup *cgroup, const char *root, const char *controller)
{
	char whole[DOCTOR_PATH], text[CONTENT], *line, *save;
	struct doctor_cgroup one = { .root = root };
	bool found = false;

	snprintf(whole, sizeof(whole), "%s/proc/self/cgroup", root);
	if (!node_read_small(whole, text, sizeof(text)))
		return false;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!take_line(&one, line, controller) || (found && one.unified))
			continue;
		*cgroup = one;
		found = true;
	}
	return found;
}

bool doctor_cgroup_up(struct doctor_cgroup *cgroup)
{
	char *slash = strrchr(cgroup->path, '/');

	if (!slash || !cgroup->path[1])
		return false;
	slash[slash == cgroup->path] = 0;
	return true;
}

bool doctor_cgroup_line(const struct doctor_cgroup *cgroup, const char *file, char *text,
			size_t bytes)
{
	return doctor_file_line(cgroup->root, text, bytes, "%s%s/%s", cgroup->mount, cgroup->path,
				file);
}

void doctor_cgroup_name(const struct doctor_cgroup *cgroup, const char *file, char *text, size_t bytes)
{
	if (snprintf(text, bytes, "%s%s/%s", cgroup->mount, cgroup->path, file) >= (int)bytes ||
	    strchr(text, '\''))
		*text = 0;
}

long long doctor_cgroup_number(const struct doctor_cgroup *cgroup, const char *file)
{
	char text[64];

	return doctor_cgroup_line(cgroup, file, text, sizeof(text)) ? number_of(text) : -1;
}

long long doctor_cgroup_entry(const struct doctor_cgroup *cgroup, const char *file,
			      const char *word)
{
	char path[DOCTOR_PATH];

	snprintf(path, sizeof(path), "%s%s/%s", cgroup->mount, cgroup->path, file);
	return doctor_file_entry(cgroup->root, path, word);
}
