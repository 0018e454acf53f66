/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Which tasks have to be looked at, time and again, without a look at all of them: the kernel
 * gives numbers in order, so new tasks have the numbers since the last look. What old tasks have
 * become is seen by a sweep that reads a sixtieth of them, 16 at least, with each look.
 *
 * It costs a read of /proc/loadavg and of /proc/stat, about 40 us for each new task, twice, and
 * 25 us for each task of the sweep: 10,000 tasks and looks every 5 s: 1 ms a second.
 */
#ifndef COLL_NODE_SCAN_H
#define COLL_NODE_SCAN_H

#include <dirent.h>

#include "task.h"

struct node_scan {
	bool begun;
	u32 last;			/* the latest number that was given */
	u64 forks;			/* since boot: so many numbers were given at least */
	u32 *young, youngs;		/* seen once: they may exec, or change their user, yet */
	u32 *gone, gones;		/* of those of the look before: they have ended */
	u32 *hidden, hiddens;		/* given, and not to be seen yet, or no more */
	DIR *sweep;			/* where it is; NULL: at the beginning */
	u32 swept, tasks;		/* in this round; in the whole of the last */
};

/*
 * New tasks, those that were new at the last look, the next of the sweep, and `beside` them their
 * processes and this process, with its ancestors, or with `ancestors` those of all: 64 generations
 * of them. *round: the sweep has seen all that were there when it began. The first look is at all
 * tasks, as is each where numbers say nothing, and that after a failure. 0 or -ENOMEM.
 */
int node_scan_look(struct node_scan *scan, struct node_tasks *tasks, bool ancestors, bool *round);
/* Whether nothing has this number. What cannot be read for want of descriptors is there. */
bool node_scan_is_gone(u32 tid);
void node_scan_close(struct node_scan *scan);

#endif
