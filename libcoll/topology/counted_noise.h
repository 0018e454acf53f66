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

/*
 * Of messages, by what exchanges tell: of so many so many were late, by `excess` in all; their usual time in all
 * is `usual`. At least one was late.
 */
struct coll_noise_rate coll_counted_link_noise(double late, double exchanges, double usual, double excess);

/* By more than events of a number by chance differ, twice their deviation. */
bool coll_counted_changed(double before, double now, double events);

/*
 * Whether events go on at the rate as known, or at an eighth of it at most: a sequential test (CUSUM).
 * Each exchange without an event is evidence for the end, each with one against it. So an end is found
 * within 800 exchanges, or, of events in fewer than one of 100, 8 times as many as there were for one;
 * and a late message afterwards, which a machine has at times, does not begin that anew. Of a thousand
 * events and more one is followed by so long a pause by chance.
 *
 * event: of this exchange; events: in memory, of so many exchanges.
 */
void coll_counted_look(struct coll_late_quiet *quiet, bool event, double events, double exchanges);
bool coll_counted_ended(const struct coll_late_quiet *quiet);

#endif
