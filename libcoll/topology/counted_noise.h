/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Noise that was counted, as numbers that all ranks have alike and that options would take. */
#ifndef COLL_TOPOLOGY_COUNTED_NOISE_H
#define COLL_TOPOLOGY_COUNTED_NOISE_H

#include "libcoll/base/costs.h"

enum { COUNTED_SECONDS_MOST = 1000 };	/* of an event, as options take it */

/* Ranks with another libm, whose sums differ by a bit, are to choose alike. */
double coll_counted_round(double value);

/* What options take, and no more than all the time. Of no numbers there is no noise. */
struct coll_noise_rate coll_counted_noise(double rate, double duration);

/* By more than events of a number by chance differ, twice their deviation. */
bool coll_counted_changed(double before, double now, double events);

#endif
