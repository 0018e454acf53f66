// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Instead of fault.so where the sanitizers have a malloc of their own: no call fails. */
#include <stdio.h>

#include "fault.h"

void fault_arm(enum fault_kind kind, uint64_t n, uint64_t more, int error)
{
	(void)kind;
	(void)n;
	(void)more;
	(void)error;
}

uint64_t fault_disarm(void)
{
	return 0;
}

uint64_t fault_calls(enum fault_kind kind)
{
	(void)kind;
	return 0;
}

int64_t fault_blocks(void)
{
	return 0;
}

void fault_where(char *text, size_t bytes)
{
	snprintf(text, bytes, "none");
}

void fault_watch_sends(void (*watch)(int fd, const void *data, size_t bytes))
{
	(void)watch;
}

void fault_clocks(int64_t realtime_ns, int64_t monotonic_ns)
{
	(void)realtime_ns;
	(void)monotonic_ns;
}
