/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* Columns: what levels.c makes of a program and levels_run.c runs. Private to those two. */
#ifndef COLL_SIM_LEVELS_COLUMN_H
#define COLL_SIM_LEVELS_COLUMN_H

#include "levels.h"

enum {
	WAITS_MAX = 8,		/* of one op; with more the events path is used */
	MEMBERS_LEAST = 4,	/* a column pays off with this many ranks, on average */
};

struct sim_column {
	u32 class, op;
	u32 users;		/* columns that read its times */
	bool same_waits;	/* as the op with CPU work before it */
	bool last;		/* no op waits for it */
	bool only_sends;	/* only sends wait for it, for which no op waits */
	bool only_work;		/* ops wait for it, and noise can delay all of them */
};

struct sim_levels {
	const struct sim_program *program;
	u32 columns;
	u32 *first;		/* per class: its first column */
	struct sim_column *column;
	u32 *order;		/* columns, each after all that it depends on */
};

static inline const struct coll_op *column_op(const struct sim_levels *levels,
					      const struct sim_column *column)
{
	return &coll_ops(levels->program->class[column->class].schedule)[column->op];
}

#endif
