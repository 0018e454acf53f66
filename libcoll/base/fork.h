/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A child of fork() has the memory and the descriptors of its parent, but not its connections:
 * what it did to them would come as from the parent. This tells the two apart without a
 * system call, also where the child was made by clone().
 */
#ifndef COLL_FORK_H
#define COLL_FORK_H

#include <stdbool.h>

/* A mark that is set in this process, and not in its forked children. NULL: no memory. */
volatile bool *coll_fork_mark(void);
void coll_fork_unmark(volatile bool *mark);

#endif
