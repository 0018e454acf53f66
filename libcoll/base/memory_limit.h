/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#ifndef COLL_MEMORY_LIMIT_H
#define COLL_MEMORY_LIMIT_H

#include <stdint.h>

/*
 * Bytes that the memory cgroups of this process have left, with the page cache that would go. To
 * exceed a limit is a SIGKILL, also for shared memory that a system call allocates: ask before.
 * UINT64_MAX: there is no limit, or none that can be read.
 */
uint64_t coll_memory_limit_left(void);

/* The same by the files of these folders, for tests: as /proc/self/cgroup, as /sys/fs/cgroup. */
uint64_t coll_memory_limit_left_by(const char *cgroups, const char *mount);

/* Bytes that the machine can give without swapping; UINT64_MAX: it does not say. */
uint64_t coll_memory_available(void);

#endif
