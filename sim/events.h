/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The general path: core/step.c steps each rank's schedule, and a calendar is the event
 * queue. The rules are in docs/guide/simulator.md.
 */
#ifndef COLL_SIM_EVENTS_H
#define COLL_SIM_EVENTS_H

#include "bytes.h"
#include "log.h"
#include "machine.h"
#include "program.h"

/* Memory for runs of one program, one at a time; reusable. */
struct sim_events;

int events_new(const struct sim_program *program, struct sim_events **events);
void events_free(struct sim_events *events);
u64 events_bytes(const struct sim_program *program);

/* Other results of a run; each may be NULL. */
struct sim_extras {
	sim_time *finish;	/* gets every rank's time */
	struct sim_bytes *bytes;	/* payloads are sent */
	struct sim_log *log;	/* log of each op */
};

int events_run(struct sim_events *events, const struct sim_machine *machine,
	       struct sim_outcome *outcome, const struct sim_extras *extras);

#endif
