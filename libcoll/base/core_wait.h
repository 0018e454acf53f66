/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * For how long a thread could have run and had no core, by the kernel's own account
 * (/proc/thread-self/schedstat). Where the kernel keeps none it is 0. A look takes 1 to 2 us.
 */
#ifndef COLL_CORE_WAIT_H
#define COLL_CORE_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Begin with zeros. The descriptor is of the thread that looked last. */
struct coll_core_wait {
	pid_t thread;			/* 0: none yet */
	int fd;				/* -1: there is no account */
	uint32_t accounts;		/* of threads so far: numbers of two do not compare */
};

/* Of the calling thread, ns since it began. */
uint64_t coll_core_wait_now(struct coll_core_wait *wait);

/* Opens the calling thread's account, as a look does too. Returns whether there is one. */
bool coll_core_wait_open(struct coll_core_wait *wait);

/* Whether the kernel keeps an account of the calling thread. Costs a look. */
bool coll_core_wait_has(struct coll_core_wait *wait);
void coll_core_wait_close(struct coll_core_wait *wait);

#endif
