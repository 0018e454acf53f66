/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The path that can do everything: core/step steps every rank's schedule, a
 * calendar keeps what will happen. The rules are in docs/guide/simulator.md.
 */
#ifndef COLL_SIM_EVENTS_H
#define COLL_SIM_EVENTS_H

#include "bytes.h"
#include "log.h"
#include "machine.h"
#include "program.h"

/* Memory for runs of one program, one at a time; made once, used often. */
struct sim_events;

int events_new(const struct sim_program *program, struct sim_events **events);
void events_free(struct sim_events *events);
u64 events_bytes(const struct sim_program *program);

/* What a run is asked for besides times; each may be NULL. */
struct sim_extras {
	sim_time *finish;	/* gets every rank's time */
	struct sim_bytes *bytes;	/* what is sent is really sent */
	struct sim_log *log;	/* what every op did */
};

int events_run(struct sim_events *events, const struct sim_machine *machine,
	       struct sim_outcome *outcome, const struct sim_extras *extras);

#endif
