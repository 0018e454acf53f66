/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The output of many ranks on one descriptor, line by line: lines of different
 * ranks never mix. A reader that is slow slows the ranks, not the launcher.
 */
#ifndef COLL_OUTPUT_H
#define COLL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* Where lines go. */
struct output_sink {
	int fd;
	char *data;		/* not yet written */
	size_t bytes, room;
	bool inside_line;	/* what was written last was not a line's end */
	bool broken;		/* nobody reads any more */
};

/* Where they come from: one stream of one rank. */
struct output_source {
	int fd;			/* -1: ended */
	int rank;		/* -1: its lines have their prefixes already */
	struct output_sink *sink;
	char *line;		/* begun, not ended */
	size_t bytes, room;
};

/* More is wanted from the sources of this sink. */
bool output_wanted(const struct output_sink *sink);

/* Reads what is there and hands on whole lines; closes the source at its end. */
void output_take(struct output_source *source);

/* Writes as much as goes without blocking. Call when fd polls writable. */
void output_give(struct output_sink *sink);

/* Hands on a line that was begun, and closes. */
void output_end(struct output_source *source);

#endif
