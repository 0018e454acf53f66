/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Between the files of the trace: events.c decodes and matches, clocks.c aligns, trace.c prints. */
#ifndef COLL_SHOW_TRACE_H
#define COLL_SHOW_TRACE_H

#include <stdbool.h>

#include "show.h"

/* An event of a rank's ring. */
struct trace_event {
	uint64_t time;			/* ns, of its host's clock */
	uint64_t group;			/* id */
	uint32_t kind, entry, run, peer, which;
};

/* All that the ring still has, the oldest first. Returns how many; *events is to be freed. */
size_t trace_events(const struct coll_flight_seen *seen, struct trace_event **events);

/* A message that one rank has sent and another has got. */
struct trace_message {
	uint32_t from, to;		/* indices of job->seen */
	uint64_t sent, got;
};

/* Matched by group, run, ranks and slot. Returns how many; *messages is to be freed. */
size_t trace_messages(const struct coll_flight_job *job, struct trace_message **messages);

/* How to read a rank's clock as that of the first rank's host. */
struct trace_clocks {
	int64_t *offset;		/* ns to add, per index of job->seen */
	double error;			/* s: no time is wrong by more, or -1: not known */
	double late;			/* s: by as much a receive was noted before its send */
};

/*
 * Hosts that exchanged messages both ways are aligned by the fastest ones: the error is half of
 * the two together. Others by CLOCK_REALTIME, whose error is not known.
 */
bool trace_align(const struct coll_flight_job *job, const struct trace_message *messages,
		 size_t count, struct trace_clocks *clocks);

#endif
