// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core_wait.h"

void coll_core_wait_close(struct coll_core_wait *wait)
{
	if (wait->thread && wait->fd >= 0)
		close(wait->fd);
	wait->thread = 0;
}

/* The second of the file's numbers; the first is how long the thread has run. */
uint64_t coll_core_wait_now(struct coll_core_wait *wait)
{
	const pid_t thread = gettid();
	char text[64], *after;
	ssize_t bytes;

	if (wait->thread != thread) {
		coll_core_wait_close(wait);
		wait->thread = thread;
		wait->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	}
	if (wait->fd < 0)
		return 0;
	bytes = pread(wait->fd, text, sizeof(text) - 1, 0);
	if (bytes <= 0)
		return 0;
	text[bytes] = 0;
	strtoull(text, &after, 10);
	return strtoull(after, NULL, 10);
}
