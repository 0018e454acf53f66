/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A daemon: a process on one CPU that works in bursts of 20 ms when it is told to, before all others, and then
 * says how long it did: by the clock on the wall, and by its own, which the kernel
 * keeps of what it ran, from one switch of threads to another. Both have in them
 * what interrupted it.
 */
#ifndef COLL_TESTS_VM_KNOWN_H
#define COLL_TESTS_VM_KNOWN_H

#include <stdint.h>
#include <sys/types.h>

struct known {
	pid_t pid;
	int orders, answers;
	uint64_t own;	/* its own clock's, of its last work */
};

/* It has the name, and this CPU. */
struct known known_begin(int cpu, const char *name);
/* Works, and returns how long by the clock on the wall: without the 2 ms of sleep after each burst. */
uint64_t known_work(struct known *daemon, int bursts);
void known_end(struct known *daemon);

#endif
