/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Schedules as text, JSON, DOT and GOAL. User space only. Printing needs a schedule
 * that has passed coll_check(). Parsing takes hostile input; a schedule that it
 * returns has passed coll_check().
 *
 *	schedule rank 1 of 4 in 8 out 8 scratch 72
 *	   0 recv    8 scratch+0 from 0 slot 0
 *	   1 send    8 in+0 to 0 slot 0
 *	   2 reduce  8 scratch+64 = scratch+0 sum in+0 double after 0
 *	   3 copy    8 out+0 = scratch+64 after 2 1
 *	   4 send    8 scratch+64 to 3 slot 0 after any of 0 2 optional unless 0
 *	   5 connect to 2
 *	   6 join after 3 5
 *
 * `join` is a copy of no bytes. The header ends with `element N` where there
 * are opaque elements. Parsing what was printed gives the same schedule back,
 * byte for byte (but for peers that no op names; no builder makes those).
 */
#ifndef COLL_TEXT_H
#define COLL_TEXT_H

#include <stdio.h>

#include "schedule.h"

/* An error of parsing, and its line. */
struct coll_text_error {
	u32 line;		/* from 1; 0: of no line */
	char reason[160];
};

/* All printing functions return 0, or -EIO if writing failed. */
int coll_text_print(const struct coll_schedule *s, FILE *to);
/* One op as a line of the above, without its index and the line's end. */
void coll_text_print_op(const struct coll_schedule *s, u32 op, FILE *to);
int coll_json_print(const struct coll_schedule *s, FILE *to);

/*
 * A drawing of `count` ranks' schedules: ops of one rank in a box, waits as
 * arrows (dashed: any; dotted: unless), messages between the ranks given.
 */
int coll_dot_print(const struct coll_schedule *const *s, u32 count, FILE *to);

/*
 * All ranks' schedules, in the order of ranks, as a GOAL program for
 * LogGOPSim. A message's tag is its slot. A reduce is a calculation of
 * `reduce_ns` per byte; copies and circuits take no time. A message of 0 bytes
 * is written as one of 1 byte: both carry no byte time there, and 0 would be
 * charged minus one byte. -EOPNOTSUPP, and the op in *error, for *any* waits
 * and optional ops, which GOAL has not; -EINVAL for missing ranks or a cost
 * that is no number of nanoseconds.
 */
int coll_goal_print(const struct coll_schedule *const *s, u32 count, double reduce_ns, FILE *to,
		    struct coll_text_error *error);

/*
 * *s is allocated: free() it. -EINVAL with *error filled in; -E2BIG beyond a
 * limit of the format; -ENOMEM.
 */
int coll_text_parse(const char *text, size_t bytes, struct coll_schedule **s,
		    struct coll_text_error *error);
int coll_json_parse(const char *text, size_t bytes, struct coll_schedule **s,
		    struct coll_text_error *error);

#endif
