// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "points.h"

enum { COLUMNS = 1024, ROWS_A_DECADE = 24, ROWS = 11 * ROWS_A_DECADE };

static void find_span(const struct node_capture *capture, u64 *begin, u64 *end)
{
	u32 c;

	*begin = UINT64_MAX;
	*end = 0;
	for (c = 0; c < capture->head.cpus; c++) {
		const struct coll_noise_cpu *cpu = &capture->cpu[c];
		const struct coll_noise_event *event = node_capture_events(capture, c);
		const struct coll_noise_event *last = cpu->events ? &event[cpu->events - 1] : NULL;
		const u64 watched = cpu->first + cpu->watched;

		*begin = cpu->first < *begin ? cpu->first : *begin;
		if (last)
			*begin = event->start < *begin ? event->start : *begin;
		*end = watched > *end ? watched : *end;
		if (last && last->start + last->duration > *end)
			*end = last->start + last->duration;
	}
	if (*end <= *begin) {
		*begin = *begin == UINT64_MAX ? 0 : *begin;
		*end = *begin + 1;
	}
}

static void points_add(struct noise_point *point, const struct coll_noise_event *event)
{
	if (event->duration >= point->duration) {
		point->start = event->start;
		point->duration = event->duration;
		point->cpu = event->cpu;
	}
	point->cause = event->cause;
	point->total += event->duration;
	point->events++;
}

/* cell[]: 1 + the index of its point. False: there are too many. */
static bool points_merge(const struct node_capture *capture, struct noise_points *p, u32 columns,
			 u32 *cell)
{
	const double span = p->end - p->begin;
	u64 i;

	memset(cell, 0, (size_t)COLL_NOISE_CAUSES * ROWS * COLUMNS * sizeof(*cell));
	p->points = 0;
	for (i = 0; i < capture->head.events; i++) {
		const struct coll_noise_event *event = &capture->event[i];
		const u32 column = fmin((event->start - p->begin) / span * columns, columns - 1);
		const u32 row = fmin(log10(event->duration + 1.) * ROWS_A_DECADE, ROWS - 1);
		u32 *at = &cell[((size_t)event->cause * ROWS + row) * COLUMNS + column];

		if (!*at) {
			if (p->points == NOISE_POINTS_MAX)
				return false;
			p->point[p->points] = (struct noise_point){ 0 };
			*at = ++p->points;
		}
		points_add(&p->point[*at - 1], event);
	}
	return true;
}

int noise_points(const struct node_capture *capture, struct noise_points *p)
{
	u32 *cell, columns = COLUMNS;
	u64 i;

	*p = (struct noise_points){ .merged = capture->head.events > NOISE_POINTS_MAX };
	find_span(capture, &p->begin, &p->end);
	p->point = calloc(NOISE_POINTS_MAX, sizeof(*p->point));
	if (!p->point)
		return -ENOMEM;
	for (i = 0; !p->merged && i < capture->head.events; i++)
		points_add(&p->point[p->points++], &capture->event[i]);
	if (!p->merged)
		return 0;
	cell = malloc((size_t)COLL_NOISE_CAUSES * ROWS * COLUMNS * sizeof(*cell));
	if (!cell) {
		noise_points_free(p);
		return -ENOMEM;
	}
	/* One column always fits: as many points as causes and rows. */
	while (!points_merge(capture, p, columns, cell))
		columns /= 2;
	free(cell);
	return 0;
}

void noise_points_free(struct noise_points *points)
{
	free(points->point);
	*points = (struct noise_points){ 0 };
}

/* ---- heat --------------------------------------------------------------------------------- */

enum { HEAT_COLUMNS = 160, HEAT_ROWS = 128 };

/* A long event belongs to all columns that it lasts through. */
static void heat_add(const struct coll_noise_event *event, u64 begin, double width, u32 columns,
		     double *row)
{
	double from = (event->start - begin) / width;
	const double end = fmin(from + event->duration / width, columns);
	u32 column = from;

	for (; column < columns && from < end; column++) {
		const double edge = fmin(column + 1, end);

		row[column] += edge - from;
		from = edge;
	}
}

int noise_heat(const struct node_capture *capture, u64 begin, u64 end, struct noise_heat *heat)
{
	const u32 cpus = capture->head.cpus;
	u32 c, i;
	u64 e;

	*heat = (struct noise_heat){ .columns = HEAT_COLUMNS,
				     .cpus_a_row = (cpus + HEAT_ROWS - 1) / HEAT_ROWS };
	heat->rows = cpus ? (cpus + heat->cpus_a_row - 1) / heat->cpus_a_row : 0;
	heat->share = calloc((size_t)heat->rows * heat->columns + 1, sizeof(*heat->share));
	if (!heat->share)
		return -ENOMEM;
	for (c = 0; c < cpus; c++) {
		const struct coll_noise_event *event = node_capture_events(capture, c);
		double *row = &heat->share[(size_t)(c / heat->cpus_a_row) * heat->columns];

		for (e = 0; e < capture->cpu[c].events; e++)
			heat_add(&event[e], begin, (double)(end - begin) / heat->columns,
				 heat->columns, row);
	}
	for (i = 0; i < heat->rows * heat->columns; i++) {
		const u32 first = i / heat->columns * heat->cpus_a_row;
		const u32 here = cpus - first < heat->cpus_a_row ? cpus - first : heat->cpus_a_row;

		heat->share[i] = fmin(heat->share[i] / here, 1);
	}
	return 0;
}

void noise_heat_free(struct noise_heat *heat)
{
	free(heat->share);
	*heat = (struct noise_heat){ 0 };
}
