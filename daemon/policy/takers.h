/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* What took the cores of ranks in the time since the latest judgement, added up by process. */
#ifndef COLL_DAEMON_TAKERS_H
#define COLL_DAEMON_TAKERS_H

#include "node/observe/observe.h"

enum { COLLD_TAKERS = 64 };

struct colld_taker {
	u32 pid;
	u32 rank, cpu;		/* from whom, the latest */
	u64 ns;
	char job[64];
	char name[64];		/* nothing that a terminal or a shell obeys */
};

struct colld_takers {
	struct colld_taker taker[COLLD_TAKERS];
	u32 count;
};

/* Where there is no room it is instead of the one that took least, if that took less. */
void colld_takers_add(struct colld_takers *takers, const struct observer_taken *taken);
/* The largest first. */
void colld_takers_sort(struct colld_takers *takers);

#endif
