/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Looks at the ranks of a job on this node while they run, from outside: what they do, and who had
 * their cores when they were ready to run (struct coll_flight_observed). It reads /proc and a few
 * bytes of each rank's page; the ranks do nothing for it.
 *
 * Each 100 ms, or less often, it looks what each rank does; each 500 ms, or less often, at all
 * threads of the node. It pauses for so long that the looks take at most 0.3 % of one core, but
 * for 0.2 s at the begin.
 */
#ifndef COLL_OBSERVE_H
#define COLL_OBSERVE_H

#include "libcoll/flight/find.h"

struct observer;

/* NULL: no memory. Nothing has been looked at yet. */
struct observer *observer_open(const char *job);
/* Looks, if it is time; returns when it is again (coll_now()). */
uint64_t observer_look(struct observer *observer);
/* Looks at all once more: what is given then is of all the time. */
void observer_end(struct observer *observer);
/* Puts what was observed into the records of these ranks. */
void observer_give(const struct observer *observer, struct coll_flight_set *set);
/* Writes it into a report's folder, for who makes the report. -errno. */
int observer_write(struct observer *observer, const char *folder);
void observer_close(struct observer *observer);

#endif
