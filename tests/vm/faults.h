/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Memory that is not there, on kernels that can (debug and kcsan of tests/vm/built): the
 * kernel's own allocations, and its copies from and to user space, fail.
 */
#ifndef COLL_TESTS_VM_FAULTS_H
#define COLL_TESTS_VM_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether this kernel can; from then on quietly, and whatever the size and the context. */
bool faults_possible(void);

/*
 * From now on so many of 1000 allocations (`copies`: and copies) of marked tasks fail, by chance;
 * 0: none does. A task that a marked one makes is marked too.
 */
void faults_of_marked(unsigned int per_mille, bool copies);
/* How many have failed since that was told. */
long faults_count(void);

/* From now on, or no more. 0 or -errno. */
int faults_mark_self(bool marked);
/* Each task whose name starts like this: how many they were. */
int faults_mark(const char *name);

#endif
