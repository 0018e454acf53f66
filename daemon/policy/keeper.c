// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper.h"

/*
 * Of the files of its parent it needs none but that end of its pipe. Those of other keepers' pipes would keep
 * these from seeing that the parent has ended. Returns which it is now.
 */
static int keep_only(int end)
{
	enum { END = 3 };

	if (end != END && dup2(end, END) < 0)
		return end;
	closefrom(END + 1);
	return END;
}

/* Waits for the end of the parent, or its word that all is undone. */
static void keeper_run(int end, void (*undo)(void *), void *data)
{
	ssize_t got;
	char byte;

	setsid();
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_NAME, "colld-keeper");
	end = keep_only(end);
	do
		got = read(end, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		undo(data);
	_exit(0);
}

int keeper_start(struct keeper *keeper, void (*undo)(void *), void *data)
{
	int ends[2];

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
	keeper_run(ends[0], undo, data);
	return 0;
}

void keeper_leave(struct keeper *keeper)
{
	if (keeper->pipe >= 0)
		close(keeper->pipe);
	*keeper = KEEPER_NONE;
}

void keeper_end(struct keeper *keeper)
{
	ssize_t told;

	if (keeper->pipe < 0)
		return;
	/* Where it cannot be told, it undoes once more. */
	told = write(keeper->pipe, "", 1);
	(void)told;
	close(keeper->pipe);
	waitpid(keeper->pid, NULL, 0);
	*keeper = KEEPER_NONE;
}
