/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The output of many ranks on one descriptor, line by line: lines of different ranks never mix. A
 * slow reader slows the ranks, not the launcher.
 */
#ifndef COLL_OUTPUT_H
#define COLL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* A descriptor that lines go to. */
struct output_sink {
	int fd;
	char *data;		/* not yet written */
	size_t bytes, capacity;
	bool inside_line;	/* the last byte written did not end a line */
	int error;		/* -errno of the first write that failed: no more is written; 0: none */
};

/* One stream of one rank. */
struct output_source {
	int fd;			/* -1: ended */
	int rank;		/* -1: the lines have their prefixes already */
	struct output_sink *sink;
	char *line;		/* begun, not ended */
	size_t bytes, capacity;
};

/* Whether the sources of this sink should be read. */
bool output_wanted(const struct output_sink *sink);

/*
 * Reads what is available and forwards whole lines; closes the source at end of file, or if nobody reads
 * the sink any more. What cannot be written for another reason is lost, and the rank goes on.
 */
void output_read(struct output_source *source);

/* Writes what fits without blocking. Call when fd polls writable; may set sink->error. */
void output_write(struct output_sink *sink);

/* Forwards a line without an end, and closes. */
void output_end(struct output_source *source);

#endif
