/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * While jobs of coll-job run: what is found to take the cores of their ranks is told, or moved to the
 * housekeeping CPUs or held back, and put back afterwards.
 */
#ifndef COLL_DAEMON_ACT_H
#define COLL_DAEMON_ACT_H

#include <stdio.h>

#include "node/rules.h"

struct colld_acts;

/*
 * The rules are the caller's and outlive it. `locked`: it has act_deed_lock(), without which these only advise,
 * and has recovered what an earlier colld did: `state`/acts has a folder a process. A second process undoes all
 * when this one dies: where that cannot be begun nothing is done. `watch`: the part of ranks' CPUs that coll.ko's
 * counting may cost. 0 or -errno: then it does nothing.
 */
int colld_acts_open(struct colld_acts **acts, const struct node_rules *rules, const char *state, bool locked,
		    double watch);
/* Readable when colld_acts_progress() is due; -1: mode off. Without jobs nothing wakes it. */
int colld_acts_fd(const struct colld_acts *acts);
void colld_acts_progress(struct colld_acts *acts);
/* In any mode, time and again: undoes what could not be undone before. Else it costs a look in a folder in 5 s. */
void colld_acts_finish(struct colld_acts *acts);
/* Puts all back. */
void colld_acts_close(struct colld_acts *acts);
void colld_acts_metrics(const struct colld_acts *acts, FILE *to);

#endif
