/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* A program under construction. Private to program.c and program_match.c. */
#ifndef COLL_SIM_PROGRAM_MAKE_H
#define COLL_SIM_PROGRAM_MAKE_H

#include "emit.h"
#include "program.h"

enum { SAMPLES = 24 };	/* ranks that are checked of a regular algorithm */

/* Needed until all ranks have been read. */
struct sim_program_making {
	struct sim_program *p;
	const struct sim_job *job;
	const struct coll_schedule *const *schedule;	/* all of them; NULL: they are emitted */
	bool exact;
	bool sampled;		/* only some ranks are read */
	u32 width[COLL_LEVELS_MAX], widths;	/* ranks of a level's parts, if they are even */
	struct sim_emit_memory emit_buffer;	/* memory for emission */
	u32 *bucket;		/* hash of a shape -> class + 1, open addressing */
	u32 buckets;
	u64 kept;		/* bytes of shapes */
	char *why;
	size_t why_bytes;
};

/* Writes the reason why there is no program; returns `error`. */
int program_wrong(const struct sim_program_making *m, int error, const char *text);

/* Ranks that differ in typical ways: ends, middles, parities. */
u32 program_sample_rank(u32 i, u32 ranks);

/* Matches each send with its receive. */
int program_match(struct sim_program_making *m);

#endif
