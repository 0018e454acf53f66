/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* CPUs and priorities of threads. Sets of CPUs: "3", "0-1,4", or "others". */
#ifndef COLL_CPUS_H
#define COLL_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Parses a set. "others": online CPUs outside this process's binding, to which pinning
 * moves housekeeping. -EINVAL: malformed; -ENODEV: empty.
 */
int coll_cpus_parse(const char *text, cpu_set_t *cpus);

/* Total idle time of these CPUs, or of those that this thread may use (""); 0: not known. */
uint64_t coll_cpus_idle_ns(const char *text);

/* Binds the calling thread. */
int coll_cpus_bind(const char *text);

/* A thread's priority as text: "fifo:50" or "nice:-5". */
struct coll_priority {
	bool fifo;
	int value;		/* 1 ... 99, or a nice value, -20 ... 19 */
};

/* -EINVAL: malformed. */
int coll_priority_parse(const char *text, struct coll_priority *priority);
/* Sets it for the calling thread. -EPERM, -EACCES: not permitted. */
int coll_priority_take(const char *text);

#endif
