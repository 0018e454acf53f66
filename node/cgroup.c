// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"

char *node_cgroup_path(__u64 id)
{
	static const char root[] = "/sys/fs/cgroup";
	enum { KERNFS = 0xfe };		/* FILEID_KERNFS */
	char name[64], path[4096];
	struct file_handle *handle = malloc(sizeof(*handle) + sizeof(id));
	int top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	ssize_t bytes = -1;

	if (handle && top >= 0) {
		handle->handle_bytes = sizeof(id);
		handle->handle_type = KERNFS;
		memcpy(handle->f_handle, &id, sizeof(id));
		fd = open_by_handle_at(top, handle, O_RDONLY | O_CLOEXEC);
	}
	if (fd >= 0) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		bytes = readlink(name, path, sizeof(path) - 1);
		close(fd);
	}
	if (top >= 0)
		close(top);
	free(handle);
	if (bytes < (ssize_t)strlen(root) || strncmp(path, root, strlen(root)))
		return NULL;
	path[bytes] = '\0';
	return strdup(path[strlen(root)] ? path + strlen(root) : "/");
}
