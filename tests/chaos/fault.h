/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Calls of the C library that fail on request. Programs that are linked with the interposer,
 * fault.so, call its functions instead of the C library's.
 */
#ifndef TESTS_CHAOS_FAULT_H
#define TESTS_CHAOS_FAULT_H

#include <stddef.h>
#include <stdint.h>

enum fault_kind {
	FAULT_MEMORY,		/* malloc and the like: ENOMEM */
	FAULT_DESCRIPTOR,	/* what makes a descriptor, a mapping, a thread, a process */
	FAULT_KINDS,
};

/*
 * The n-th call of the kind from now on, counted from 1 over all threads of this process, fails,
 * and the `more` calls after it. `error` 0: the call's usual one. n 0: none fails.
 */
void fault_arm(enum fault_kind kind, uint64_t n, uint64_t more, int error);

/* No call fails any more. Returns how many have failed since fault_arm(). */
uint64_t fault_disarm(void);

/* Calls of the kind since fault_arm(). */
uint64_t fault_calls(enum fault_kind kind);

/* Blocks of malloc() that have not been freed. */
int64_t fault_blocks(void);

/* Writes "name, from ADDRESS ..." of the first call that failed since fault_arm(). */
void fault_where(char *text, size_t bytes);

/* Called with what send() and sendmsg() are given, before they send it; NULL: nobody. */
void fault_watch_sends(void (*watch)(int fd, const void *data, size_t bytes));

/* Adds this to the clock of the day; and, at once, to the monotonic one. */
void fault_clocks(int64_t realtime_ns, int64_t monotonic_ns);

#endif
