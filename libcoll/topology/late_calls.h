/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Noise of links by the calls that late messages held up (exec/delays.h). It counts where samples are hardly ever
 * late: calls are short, and delays long beside them. A call that was held up counts as one late message of all that
 * its ranks received, so what follows is what samples of all calls would tell: h of the messages are late, by E on
 * average.
 *
 * All calls are looked at, so some are held up on any machine. Noise is what takes a part of the time.
 */
#ifndef COLL_TOPOLOGY_LATE_CALLS_H
#define COLL_TOPOLOGY_LATE_CALLS_H

#include "libcoll/exec/samples.h"

/* What was found so far counts by this part. */
void coll_late_calls_fade(struct coll_late_calls *calls, double keep);

/* Adds what a survey found; `late`: so were its samples. */
void coll_late_calls_add(struct coll_late_calls *calls, const struct coll_samples_found *found, bool late);

/*
 * Whether late messages have ended: since the latest survey with more than an eighth of those before, eight were to be
 * expected. Where calls do not wait for late messages, those that come after them count.
 */
bool coll_late_calls_ended(const struct coll_late_calls *calls);

/* Noise by them, where messages usually take so many seconds; rate 0: none. */
struct coll_noise_rate coll_late_calls_noise(const struct coll_late_calls *calls, double usual);

#endif
