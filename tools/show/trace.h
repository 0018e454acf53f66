/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Between the files of the trace: events.c decodes and matches, trace.c prints. */
#ifndef COLL_SHOW_TRACE_H
#define COLL_SHOW_TRACE_H

#include <stdbool.h>

#include "libcoll/flight/clocks.h"
#include "show.h"

/* An event of a rank's ring. */
struct trace_event {
	uint64_t time;			/* ns, of its host's clock */
	uint64_t group;			/* id */
	uint32_t kind, entry, run, peer, which;
};

/* All that the ring still has, the oldest first. Returns how many; *events is to be freed. */
size_t trace_events(const struct coll_flight_seen *seen, struct trace_event **events);

/* Matched by group, run, ranks and slot. Returns how many; *messages is to be freed. */
size_t trace_messages(const struct coll_flight_job *job, struct coll_flight_message **messages);

#endif
