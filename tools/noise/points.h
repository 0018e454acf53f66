/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* The events of a capture as points of a picture: where they are too many, a point is several. */
#ifndef COLL_NOISE_POINTS_H
#define COLL_NOISE_POINTS_H

#include "node/capture.h"

enum { NOISE_POINTS_MAX = 12000 };

/* Events of one cause, near each other in time and of like length: the longest stands for them. */
struct noise_point {
	u64 start, duration;
	u64 total;		/* ns, of all of them */
	u32 events;
	u16 cpu;
	u8 cause;
};

struct noise_points {
	struct noise_point *point;
	u32 points;
	bool merged;		/* some stand for several events */
	u64 begin, end;		/* ns from the epoch: what was watched */
};

/* 0 or -ENOMEM. */
int noise_points(const struct node_capture *capture, struct noise_points *points);
void noise_points_free(struct noise_points *points);

/* The time that events took in cells of the watched time, rows of CPUs. */
struct noise_heat {
	u32 columns, rows;
	u32 cpus_a_row;		/* index of the first CPU: row * cpus_a_row */
	double *share;		/* [row * columns + column], of the CPUs' time */
};

int noise_heat(const struct node_capture *capture, u64 begin, u64 end, struct noise_heat *heat);
void noise_heat_free(struct noise_heat *heat);

#endif
