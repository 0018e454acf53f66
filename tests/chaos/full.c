// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* A small tmpfs, filled to its last block, in a mount namespace of the campaign's own. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "round.h"

bool full_begin(void)
{
	return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static void full_path(char path[100], const char *folder, const char *name)
{
	snprintf(path, 100, "%s/full%s", folder, name);
}

int full_mount(const char *folder)
{
	static const char block[4096];
	char path[100];
	int fd;

	full_path(path, folder, "");
	if (mkdir(path, 0700) || mount("coll-chaos", path, "tmpfs", 0, "size=64k,nr_inodes=3"))
		return -errno;
	full_path(path, folder, "/filler");
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	while (write(fd, block, sizeof(block)) > 0)
		;
	close(fd);
	return 0;
}

void full_unmount(const char *folder)
{
	char path[100];

	full_path(path, folder, "");
	umount2(path, MNT_DETACH);
}
