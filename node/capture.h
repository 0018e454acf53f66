/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A capture in memory, and as the file of uapi/coll_noise.h. */
#ifndef COLL_NODE_CAPTURE_H
#define COLL_NODE_CAPTURE_H

#include <stdio.h>

#include "core/text.h"
#include "uapi/coll_noise.h"

/* The counts are in the header. All memory is the capture's. */
struct node_capture {
	struct coll_noise_capture head;
	struct coll_noise_cpu *cpu;
	struct coll_noise_source *source;
	struct coll_noise_event *event;
};

/* Empty, of this host and kernel. */
void node_capture_init(struct node_capture *capture);
void node_capture_free(struct node_capture *capture);

/* Room is made as needed; `zero` fields may be left unset. 0 or -ENOMEM. */
int node_capture_add_cpu(struct node_capture *capture, const struct coll_noise_cpu *cpu);
int node_capture_add_source(struct node_capture *capture, const struct coll_noise_source *source);
int node_capture_add_event(struct node_capture *capture, u64 start, u64 duration, u32 cpu,
			   enum coll_noise_cause cause, u32 source);

/* 1 + the index of the source with this cause, number and name; added if it is new. */
int node_capture_source(struct node_capture *capture, enum coll_noise_cause cause, u32 number,
			const char *name, u32 *source);

/*
 * Puts CPUs and events in order and counts them. CPUs that events name but nobody
 * added are added, watched from the first event's start to the last one's end.
 */
int node_capture_finish(struct node_capture *capture);

/* The events of the index-th CPU. */
const struct coll_noise_event *node_capture_events(const struct node_capture *capture, u32 index);

int node_capture_write(const struct node_capture *capture, FILE *to);
/* `data` is hostile. -EINVAL with error->reason; -ENOMEM. */
int node_capture_parse(const void *data, size_t bytes, struct node_capture *capture,
		       struct coll_text_error *error);

const char *node_cause_name(u32 cause);

/*
 * Names are of processes, which choose them, and of files: what is not a printable character
 * becomes '?', so that terminals, JSON, pages and comments of a shell can take them.
 */
void node_make_printable(char *text);

#endif
