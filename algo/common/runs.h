/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * "8+8": ranks by runs, as options name nodes and clusters. A + at the end repeats the last size
 * until all ranks are in a run: "64+" is runs of 64, of which the last may be shorter.
 */
#ifndef COLL_RUNS_H
#define COLL_RUNS_H

#include "core/port.h"

/*
 * Writes each rank's run, from 0 on, to number[]. Returns what follows the text: its end or a '/'.
 * NULL: it is not runs of `ranks` ranks together.
 */
const char *coll_runs_read(const char *text, u32 *number, u32 ranks);

/* "4+4/2+2+2+2": of nodes, and perhaps of domains. False: it is not, and node[] is undefined. */
bool coll_runs_read_levels(const char *text, u32 *node, u32 *domain, u32 ranks);

#endif
