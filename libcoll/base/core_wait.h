/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * For how long a thread could have run and had no core, by the kernel's own account
 * (/proc/thread-self/schedstat). Where the kernel keeps none it is 0. A look takes 1 to 2 us.
 */
#ifndef COLL_CORE_WAIT_H
#define COLL_CORE_WAIT_H

#include <stdint.h>
#include <sys/types.h>

/* Begin with zeros. The descriptor is of the thread that looked last. */
struct coll_core_wait {
	pid_t thread;			/* 0: none yet */
	int fd;				/* -1: there is no account */
};

/* Of the calling thread, ns since it began. */
uint64_t coll_core_wait_now(struct coll_core_wait *wait);
void coll_core_wait_close(struct coll_core_wait *wait);

#endif
