/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A thread that measures or injects on one CPU: its CPU, memory and policy, in this order. */
#ifndef COLL_NOISE_THREAD_H
#define COLL_NOISE_THREAD_H

#include "policy.h"

/* Both act on the calling thread. 0 or -errno; *what: what failed, for noise_thread_refuse(). */
int noise_thread_bind(u32 cpu, const char **what);
int noise_thread_schedule(const struct noise_policy *policy, const char **what);

/* Memory with all its pages present, since page faults would be noise; munmap() it. Or NULL. */
void *noise_thread_memory(u64 count, size_t size);

/* Reports on stderr what failed on a CPU; returns `error`. */
int noise_thread_refuse(const char *command, u32 cpu, const char *what, int error);

#endif
