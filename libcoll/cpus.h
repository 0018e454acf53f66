/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Sets of CPUs as people write them: "3", "0-1,4", or "others". */
#ifndef COLL_CPUS_H
#define COLL_CPUS_H

#include <sched.h>
#include <stdint.h>

/*
 * Reads one; "others": those that are online and that this process is not bound
 * to, where pinning left the housekeeping. -EINVAL: no such text; -ENODEV: an
 * empty set.
 */
int cpus_parse(const char *text, cpu_set_t *cpus);

/* How long CPUs that this thread may use were idle, all together; 0: not known. */
uint64_t cpus_idle_ns(void);

/* Binds the calling thread. */
int cpus_bind(const char *text);

#endif
