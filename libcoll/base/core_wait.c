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

bool coll_core_wait_open(struct coll_core_wait *wait)
{
	coll_core_wait_close(wait);
	wait->thread = gettid();
	wait->accounts++;
	wait->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	return wait->fd >= 0;
}

/* The second of the file's numbers; the first is how long the thread has run. */
static bool account_read(const struct coll_core_wait *wait, uint64_t *ns)
{
	char text[64], *after;
	ssize_t bytes = wait->fd < 0 ? -1 : pread(wait->fd, text, sizeof(text) - 1, 0);

	if (bytes <= 0)
		return false;
	text[bytes] = 0;
	strtoull(text, &after, 10);
	*ns = strtoull(after, NULL, 10);
	return true;
}

/* A file that was opened and cannot be read is of a thread that has ended, and had this one's id. */
uint64_t coll_core_wait_now(struct coll_core_wait *wait)
{
	uint64_t ns = 0;

	if (wait->thread != gettid())
		coll_core_wait_open(wait);
	if (account_read(wait, &ns) || wait->fd < 0)
		return ns;
	coll_core_wait_open(wait);
	if (!account_read(wait, &ns) && wait->fd >= 0) {
		close(wait->fd);
		wait->fd = -1;
	}
	return ns;
}

bool coll_core_wait_has(struct coll_core_wait *wait)
{
	coll_core_wait_now(wait);
	return wait->fd >= 0;
}
