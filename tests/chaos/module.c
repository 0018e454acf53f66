// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* coll.ko goes and comes: each tick of the round it is asked to unload, or loaded again. */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "round.h"

enum { UNLOAD_MS = 5000 };	/* a job that has ended uses it no more by then */

bool module_unload(void)
{
	return !syscall(SYS_delete_module, "coll", O_NONBLOCK);
}

int module_load(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	int error = fd < 0 || syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return error == -EEXIST ? 0 : error;
}

bool module_is_free(void)
{
	int i;

	for (i = 0; i < UNLOAD_MS; i++) {
		if (module_unload() || errno == ENOENT)
			return true;
		usleep(1000);
	}
	return false;
}
