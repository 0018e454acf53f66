/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * When noise comes and how long it stays: a plan (a model of uapi/coll_noise.h
 * and its table) gives every stream (a CPU, a rank) an endless sequence of
 * events in order of start. Integers only, so the same plan has the same events
 * on every machine, in the kernel and in the simulator.
 *
 * A stream is no recording and no state of a generator: each event is computed
 * from its place, so a stream can be entered anywhere. Time is cut into cells of
 * one period. A cell holds one event (periodic), the table (replay), or a number
 * of events that is Poisson distributed, with mean 1, at places that are uniform:
 * together that is a Poisson process.
 *
 * Events may overlap; the injector or simulator merges them. Times are
 * nanoseconds from the plan's epoch, below 2^63.
 *
 * Cost: some 10 ns an event, 40 where starts are random, 20 more for an
 * exponential length and 70 for a Pareto one; to enter, one division more (and,
 * for a replay, the logarithm of the table's size in comparisons).
 */
#ifndef COLL_CORE_NOISE_H
#define COLL_CORE_NOISE_H

#include "core/port.h"
#include "uapi/coll_noise.h"

/* The caller keeps model and table. Read-only: serves any number of streams at once. */
struct coll_noise_plan {
	const struct coll_noise_model *model;
	const struct coll_noise_span *table;
	u32 spans;
};

/*
 * 0, or -EINVAL and in *wrong the first field that is not valid with what would
 * be: "period: from 1000 ns to a day". Model and table may be hostile; all other
 * functions here take a plan that has passed.
 */
int coll_noise_check(const struct coll_noise_plan *plan, const char **wrong);

/* Mean ns of noise in one period; where `longest` cuts random lengths, it is less. */
u64 coll_noise_load(const struct coll_noise_plan *plan);

/*
 * One stream, about to give event `index` of `cell`. Periodic events are at the
 * times t with (t + shift) % period == 0.
 */
struct coll_noise_stream {
	u64 key;
	u64 shift;
	u64 cell;
	u32 index;
};

/* Stream `number`, about to give its first event at or after 0. */
struct coll_noise_stream coll_noise_stream(const struct coll_noise_plan *plan, u64 number);

/* The event it was about to give; it goes on to the one after that. */
struct coll_noise_span coll_noise_next(const struct coll_noise_plan *plan,
				       struct coll_noise_stream *stream);

/* Forth or back, to the first event that starts at or after `at`. */
void coll_noise_seek(const struct coll_noise_plan *plan, struct coll_noise_stream *stream, u64 at);

#endif
