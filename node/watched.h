/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What coll.ko's attribution says of a CPU: for who reads it, and for a fake that says so. */
#ifndef COLL_NODE_WATCHED_H
#define COLL_NODE_WATCHED_H

#include "cpus.h"

/* Of one CPU, since its watch began: a summary; or, where is_source, one source. */
struct node_watched {
	u32 cpu;
	bool own, is_source;		/* own: of the reader's own watch */
	bool dear;			/* it counts no more: it took more than its share */
	u64 watched, cost;		/* ns; cost: of the watch itself */
	u64 away;			/* times that the task left for where it is not watched */
	u32 index, number;		/* index: of the source on this CPU; number: tid, interrupt, ... */
	u32 reused;			/* so many others had this index before */
	u8 cause;			/* enum coll_noise_cause */
	const char *name;
	u64 born;			/* of a thread, as struct node_task has it; 0: not known */
	u64 cgroup;			/* a thread's, its number; 0: not known */
	u64 count, total, inclusive;	/* ns without, and with, what interrupted it */
};

/* Each CPU's summary, then its sources in the order of index; CPUs in order. Less than 0: the reading ends. */
typedef int (*node_watch_each)(const struct node_watched *watched, void *argument);

#endif
