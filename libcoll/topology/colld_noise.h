/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Noise of ranks as colld of each node tells it (flight/stolen.h), for a job whose messages do not: where its ranks
 * share cores, what a rank waits for one is the job's own, unless somebody says who had it. A
 * function of what all ranks have, as lateness.h.
 */
#ifndef COLL_TOPOLOGY_COLLD_NOISE_H
#define COLL_TOPOLOGY_COLLD_NOISE_H

#include "libcoll/exec/samples.h"

/* What a survey has of it: new answers count half, with those before; without, it is forgotten after 10 s. */
void coll_colld_noise_take(struct coll_late_colld *colld, const struct coll_samples_found *found);
/* Events a second of a rank, and how long each is; returns how many that is of. 0: none worth a look. */
double coll_colld_noise(const struct coll_late_colld *colld, struct coll_noise_rate *noise);

#endif
