// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "freezer.h"

int freezer_find(struct freezer *freezer, const char *cgroup)
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

int freezer_set(const struct freezer *freezer, bool frozen)
{
	const char *word = freezer->version1 ? frozen ? "FROZEN" : "THAWED" : frozen ? "1" : "0";
	const int fd = open(freezer->path, O_WRONLY | O_CLOEXEC);
	const ssize_t written = fd < 0 ? -1 : write(fd, word, strlen(word));
	const int error = errno;

	if (fd >= 0)
		close(fd);
	return written < 0 ? -error : 0;
}

int keeper_start(struct keeper *keeper, void (*undo)(void *), void *data)
{
	int ends[2];
	char byte;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	keeper->pid = fork();
	if (keeper->pid < 0) {
		const int error = errno;

		close(ends[0]);
		close(ends[1]);
		return -error;
	}
	if (keeper->pid) {
		close(ends[0]);
		keeper->pipe = ends[1];
		return 0;
	}
	close(ends[1]);
	setsid();
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_NAME, "colld-keeper");
	while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
		;
	undo(data);
	_exit(0);
}

void keeper_end(struct keeper *keeper)
{
	if (keeper->pipe < 0)
		return;
	close(keeper->pipe);
	waitpid(keeper->pid, NULL, 0);
	*keeper = KEEPER_NONE;
}
