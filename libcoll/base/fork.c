// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <sys/mman.h>
#include <unistd.h>

#include "fork.h"

/* A page of its own, which the kernel clears in a child. */
volatile bool *coll_fork_mark(void)
{
	const size_t bytes = sysconf(_SC_PAGESIZE);
	bool *mark = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mark == MAP_FAILED)
		return NULL;
	madvise(mark, bytes, MADV_WIPEONFORK);
	*mark = true;
	return mark;
}

void coll_fork_unmark(volatile bool *mark)
{
	if (mark)
		munmap((void *)mark, sysconf(_SC_PAGESIZE));
}
