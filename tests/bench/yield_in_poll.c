// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Preloaded under an MPI that polls without limit: an empty poll yields the core to another
 * rank. If ranks outnumber cores this makes MPI up to 100 times faster, and the benchmark
 * compares libraries instead of schedulers.
 */
#include <sched.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	int count = syscall(SYS_epoll_pwait, fd, events, max, timeout, NULL, 8);

	if (!count && !timeout)
		sched_yield();
	return count;
}
