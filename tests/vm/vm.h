/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * For programs that run in the test machine: as root, coll.ko loaded, nothing
 * else there. They print their checks with vm_ok() and end with vm_end().
 */
#ifndef COLL_TESTS_VM_H
#define COLL_TESTS_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One check, one line. Its value is `good`. */
bool vm_ok(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Equal, or both are printed. */
bool vm_is(long long got, long long wanted, const char *what);
/* `text` contains `part`, or it is printed. */
bool vm_says(const char *text, const char *part, const char *what);
/* A check that cannot be made here, and why. */
void vm_skip(const char *what, const char *why);
void vm_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* return vm_end(): 0 if all was good. */
int vm_end(void);

/* Any module of this machine's: 0 or -errno. */
int vm_insert(const char *path, const char *parameters);
/* coll.ko, with $COLL_MODULE if no parameters are given: 0 or -errno. Unloading waits up to two seconds for who still holds it. */
int vm_load(const char *parameters);
int vm_unload(void);

/* A small file: 0 or -errno; the text ends with a zero. */
int vm_read(const char *path, char *text, size_t bytes);
int vm_write(const char *path, const char *text);
/* A number in it, the one behind `name`; 0 if it is not there. */
long long vm_number(const char *path, const char *name);

/* The threads of all processes whose names begin so: their number, of which `most` are in `tids`. */
int vm_threads(const char *begins, pid_t *tids, int most);

/* Whether it becomes true, within twenty seconds, or more on a kernel that checks itself. */
#define VM_COMES(condition) ({ \
	int tries = 4000 * vm_slowness(); \
	while (!(condition) && --tries) \
		vm_sleep_ms(5); \
	tries > 0; \
})

/* What is free of the machine's memory, in KiB, half a second from now. */
long vm_available_kib(void);
/* A check that as much is free now, but for what checks of memory keep back. */
bool vm_comes_back(long available_kib);

/* The pages that somebody on this machine has pinned. */
long long vm_pinned_pages(void);

/* How many times longer all may take on this kernel: those that check themselves are slow. */
int vm_slowness(void);

uint64_t vm_now(void);			/* CLOCK_MONOTONIC, ns */
void vm_sleep_ms(unsigned int ms);
int vm_cpus(void);			/* online */
int vm_run_on(int cpu);			/* this thread, from now on */
int vm_cpu_online(int cpu, bool online);
void vm_loopback_up(void);

#endif
