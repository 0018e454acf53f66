/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The kernel's own trace beside a measurement: events of tracefs in an instance of
 * their own, which others' tracing does not notice, as rtla's -e has them.
 */
#ifndef COLL_NOISE_TRACE_H
#define COLL_NOISE_TRACE_H

#include <stdbool.h>
#include <stdio.h>

#include "node/capture.h"

enum { NOISE_TRACE_EVENTS = 16 };

struct noise_trace {
	const char *file;		/* where to; NULL: nowhere */
	struct noise_trace_event {
		const char *name;	/* "sched:sched_switch", or all of a system: "irq" */
		const char *filter, *trigger;	/* NULL: none */
	} event[NOISE_TRACE_EVENTS];
	int events;
	char folder[80];		/* the instance; "": none */
};

/* The events asked for are traced from here on; what is refused is said. 0 or -errno. */
int noise_trace_begin(struct noise_trace *trace, const char *command);
/* And no longer, but kept. */
void noise_trace_stop(const struct noise_trace *trace);
/*
 * All of the capture's events and then the kernel's into the file, in the osnoise
 * tracer's words, on CLOCK_MONOTONIC. 0 or -errno.
 */
int noise_trace_write(const struct noise_trace *trace, struct noise_capture *capture,
		      const char *command);
/* The instance is gone. */
void noise_trace_end(struct noise_trace *trace);

/* Itself and what it starts, into a cgroup by its path; what is refused is said. 0 or -errno. */
int noise_cgroup_enter(const char *cgroup, const char *command);

#endif
