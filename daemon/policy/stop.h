/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Stops daemons while a job runs. */
#ifndef COLL_DAEMON_STOP_H
#define COLL_DAEMON_STOP_H

#include <stdio.h>

#include "node/rules.h"

struct colld_stops;

/* A colld and its second process have died and left something stopped, or that colld is another one, which lives. */
bool colld_stops_left(const char *state);
/* Resumes it: when no other colld has this state. What fails is logged, and is for the next one. */
void colld_stops_recover(const char *state);

/*
 * A job runs while its file is in the folder `jobs` of `state`: until then cgroups are
 * frozen and units stopped. All are resumed afterwards, and when this process ends or dies. What a former one
 * has left is resumed at once.
 */
int colld_stops_open(struct colld_stops **stops, const struct node_rules *rules,
		     const char *state);
/* Readable when a job has begun or ended; -1: the policy stops nothing. */
int colld_stops_fd(const struct colld_stops *stops);
/* Then, and at an interval: what could not be resumed, or what was not known, is tried again. */
void colld_stops_progress(struct colld_stops *stops);
/* What cannot be resumed now the next colld resumes. */
void colld_stops_close(struct colld_stops *stops);
void colld_stops_metrics(const struct colld_stops *stops, FILE *to);

#endif
