/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The kernel's own trace during a measurement: events in a tracefs instance of its own, which does
 * not disturb other tracing, as with rtla's -e.
 */
#ifndef COLL_NOISE_TRACE_H
#define COLL_NOISE_TRACE_H

#include <stdbool.h>
#include <stdio.h>

#include "node/capture.h"

enum { NOISE_TRACE_EVENTS = 16 };

struct noise_trace {
	const char *file;		/* the file; NULL: none */
	struct noise_trace_event {
		const char *name;	/* "sched:sched_switch", or all events of a system: "irq" */
		const char *filter, *trigger;	/* NULL: none */
	} event[NOISE_TRACE_EVENTS];
	int events;
	char folder[80];		/* the instance; "": none */
	int held;			/* a file of it, so that no other one removes it */
};

/* Starts tracing the events, and removes instances of those that were killed. Errors are reported on stderr. 0 or -errno. */
int noise_trace_begin(struct noise_trace *trace, const char *command);
/* Stops tracing and keeps the trace. */
void noise_trace_stop(const struct noise_trace *trace);
/*
 * Writes all events of the capture and then the kernel's, in the format of the osnoise tracer, on
 * CLOCK_MONOTONIC. 0 or -errno.
 */
int noise_trace_write(const struct noise_trace *trace, struct node_capture *capture,
		      const char *command);
/* Removes the instance. */
void noise_trace_end(struct noise_trace *trace);

/* Moves this process and its children into a cgroup. Errors are reported on stderr. 0 or -errno. */
int noise_cgroup_enter(const char *cgroup, const char *command);

#endif
