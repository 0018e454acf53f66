// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Work that begins while the rank is free takes its own time plus all events that it meets.
 * Counted in free time only, these are the events in a window as long as the work. So the
 * time is constant between the points where an event enters or leaves the window. Work that
 * begins inside an event first waits for the rest of the event, which is uniformly
 * distributed.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stretch.h"

enum { STEPS_WANTED = 1 << 18, PIECES_MIN = 2, PIECES_MAX = 64 };

/* The events of a recording, merged; `place` is in free time. */
struct stretch_recording {
	double *place, *duration, *before;	/* before[i]: durations of events 0 .. i - 1 */
	u32 events;
	double free, watched;
};

static int recording_init(struct stretch_recording *r, const struct coll_noise_span *event,
			  u32 events, u64 watched)
{
	double taken = 0, end = 0;
	u32 i;

	*r = (struct stretch_recording){ .watched = watched };
	r->place = malloc(3 * ((size_t)events + 1) * sizeof(double));
	if (!r->place)
		return -ENOMEM;
	r->duration = r->place + events + 1;
	r->before = r->duration + events + 1;
	for (i = 0; i < events; i++) {
		const double start = event[i].start, last = start + event[i].duration;

		if (start > watched)
			return -EINVAL;
		if (r->events && start <= end) {
			const double more = last > end ? last - end : 0;

			r->duration[r->events - 1] += more;
			taken += more;
		} else if (event[i].duration) {
			r->place[r->events] = start - taken;
			r->duration[r->events] = event[i].duration;
			r->before[r->events++] = taken;
			taken += event[i].duration;
		}
		end = last > end ? last : end;
	}
	r->before[r->events] = taken;
	r->free = watched - taken;
	return r->free > 0 ? 0 : -EINVAL;
}

/* Total length of the events before this place, including whole repetitions. */
static double taken_before(const struct stretch_recording *r, double place)
{
	const double rounds = floor(place / r->free), rest = place - rounds * r->free;
	u32 low = 0, high = r->events;

	while (low < high) {
		const u32 middle = (low + high) / 2;

		if (r->place[middle] < rest)
			low = middle + 1;
		else
			high = middle;
	}
	return rounds * r->before[r->events] + r->before[low];
}

static void add_step(struct sim_stretch *stretch, double time, double weight)
{
	if (weight > 0)
		stretch->step[stretch->steps++] = (struct stretch_step){ time, weight };
}

static int stretch_ascending(const void *left, const void *right)
{
	const double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* Work that begins in free time. */
static int add_free(struct sim_stretch *stretch, const struct stretch_recording *r, double work)
{
	double *edge = malloc((2 * (size_t)r->events + 2) * sizeof(*edge));
	u32 edges = 0, i;

	if (!edge)
		return -ENOMEM;
	edge[edges++] = 0;
	edge[edges++] = r->free;
	for (i = 0; i < r->events; i++) {
		const double enters = fmod(r->place[i] - work, r->free);

		edge[edges++] = r->place[i];
		edge[edges++] = enters < 0 ? enters + r->free : enters;
	}
	qsort(edge, edges, sizeof(*edge), stretch_ascending);
	for (i = 0; i + 1 < edges; i++) {
		const double middle = (edge[i] + edge[i + 1]) / 2;

		add_step(stretch,
			 work + taken_before(r, middle + work) - taken_before(r, middle),
			 edge[i + 1] - edge[i]);
	}
	free(edge);
	return 0;
}

/*
 * Work that begins inside an event, weighted by how often events begin while a rank waits. Waits
 * are few and long rather than many and short, so the rest of the event is uniformly distributed.
 */
static void add_rests(struct sim_stretch *stretch, const struct stretch_recording *r, double work,
		      double wait, u32 pieces)
{
	u32 i, k;

	for (i = 0; i < r->events; i++) {
		/* The event itself is not met again. */
		const double after = nextafter(r->place[i], INFINITY);
		const double clear = work + taken_before(r, r->place[i] + work) -
				     taken_before(r, after);

		for (k = 0; k < pieces; k++)
			add_step(stretch, fmax(clear, work) + r->duration[i] * (k + 0.5) / pieces,
				 fmin(r->duration[i], wait) / pieces);
	}
}

static u32 pieces_for(const struct sim_stretch *stretch, u32 events)
{
	const u32 wanted = stretch->wanted ? stretch->wanted : STEPS_WANTED;
	const u32 pieces = events ? wanted / events : PIECES_MAX;

	return pieces < PIECES_MIN ? PIECES_MIN : pieces > PIECES_MAX ? PIECES_MAX : pieces;
}

int stretch_add(struct sim_stretch *stretch, const struct coll_noise_span *event, u32 events,
		u64 watched, double work, double wait)
{
	const u32 pieces = pieces_for(stretch, events);
	const u64 capacity = stretch->steps + (u64)events * (pieces + 2) + 2;
	struct stretch_step *step;
	struct stretch_recording r;
	int error = recording_init(&r, event, events, watched);

	if (!error && capacity > stretch->capacity) {
		step = realloc(stretch->step, capacity * sizeof(*step));
		if (step) {
			stretch->step = step;
			stretch->capacity = capacity;
		} else {
			error = -ENOMEM;
		}
	}
	if (!error)
		error = add_free(stretch, &r, work);
	if (!error)
		add_rests(stretch, &r, work, wait, pieces);
	free(r.place);
	return error;
}

static int by_time(const void *left, const void *right)
{
	const struct stretch_step *a = left, *b = right;

	return (a->time > b->time) - (a->time < b->time);
}

void stretch_finish(struct sim_stretch *stretch)
{
	qsort(stretch->step, stretch->steps, sizeof(*stretch->step), by_time);
}

void stretch_free(struct sim_stretch *stretch)
{
	free(stretch->step);
	*stretch = (struct sim_stretch){ 0 };
}

/* From the largest value down: the small probabilities there keep their precision. */
double stretch_mean(const struct sim_stretch *stretch, double ranks)
{
	double above = 0, all = 0, below = 1, mean = 0;
	u64 i;

	for (i = 0; i < stretch->steps; i++)
		all += stretch->step[i].weight;
	for (i = stretch->steps; i-- > 0;) {
		double next;

		above += stretch->step[i].weight / all;
		next = i && above < 1 ? exp(ranks * log1p(-above)) : 0;
		mean += stretch->step[i].time * (below - next);
		below = next;
	}
	return mean;
}

double stretch_quantile(const struct sim_stretch *stretch, double ranks, double share)
{
	/* All are below it with probability `share`: one is above it with this. */
	const double most = -expm1(log(share) / ranks);
	double above = 0, all = 0;
	u64 i;

	for (i = 0; i < stretch->steps; i++)
		all += stretch->step[i].weight;
	for (i = stretch->steps; i-- > 0;) {
		above += stretch->step[i].weight / all;
		if (above > most)
			return stretch->step[i].time;
	}
	return stretch->steps ? stretch->step[0].time : 0;
}
