/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Where and how urgently threads run. Sets of CPUs: "3", "0-1,4", or "others". */
#ifndef COLL_CPUS_H
#define COLL_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Reads one; "others": those that are online and that this process is not bound
 * to, where pinning left the housekeeping. -EINVAL: no such text; -ENODEV: an
 * empty set.
 */
int coll_cpus_parse(const char *text, cpu_set_t *cpus);

/* How long these CPUs, or those that this thread may use (""), were idle; 0: not known. */
uint64_t coll_cpus_idle_ns(const char *text);

/* Binds the calling thread. */
int coll_cpus_bind(const char *text);

/* How urgent a thread is, as people write it: "fifo:50", or "nice:-5". */
struct coll_priority {
	bool fifo;
	int value;		/* 1 ... 99, or a nice value, -20 ... 19 */
};

/* -EINVAL: no such text. */
int coll_priority_parse(const char *text, struct coll_priority *priority);
/* For the calling thread. -EPERM, -EACCES: it has no right to that. */
int coll_priority_take(const char *text);

#endif
