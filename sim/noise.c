// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <math.h>
#include <stdlib.h>

#include "noise.h"

const char *const sim_semantics_names[SIM_SEMANTICS] = {
	[SIM_EVENT] = "event",
	[SIM_OCCUPANCY] = "occupancy",
	[SIM_GOAL] = "goal",
};

enum {
	NS = 1000,		/* picoseconds */
	CUT = 100,		/* mean lengths, for models without `longest` */
};

/* Virtual time 0 on the clock of the plans: noise has started long before. */
#define EPOCH (1ull << 47)

/* ---- sources ----------------------------------------------------------------- */

const char *noise_refuses(const struct sim_noise *noise)
{
	const struct coll_noise_plan plan = { &noise->model, noise->table, noise->spans };
	const char *wrong;

	if (!noise->model.period)
		return NULL;
	return coll_noise_check(&plan, &wrong) ? wrong : NULL;
}

double noise_share(const struct sim_noise *noise)
{
	const struct coll_noise_plan plan = { &noise->model, noise->table, noise->spans };

	return noise->model.period ? (double)coll_noise_load(&plan) / noise->model.period : 0;
}

static u64 longest_of(const struct sim_noise_source *source)
{
	u64 longest = 0;
	u32 i;

	if (source->model.length == COLL_NOISE_FIXED)
		longest = source->model.duration;
	for (i = 0; i < source->plan.spans; i++)
		if (longest < source->plan.table[i].duration)
			longest = source->plan.table[i].duration;
	return longest ? longest : CUT * source->model.duration;
}

static void source_init(struct sim_noise_source *source, const struct sim_noise *of, u64 seed)
{
	*source = (struct sim_noise_source){
		.model = of->model,
		.plan = { &source->model, of->table, of->spans },
		.period = of->model.period * NS,
		.per_period = 1.0 / (of->model.period * NS),
		.duration = of->model.duration * NS,
	};
	source->model.seed ^= seed;
	source->origin = random_below(random_mix(source->model.seed), source->period);
	if (!source->model.longest || source->model.longest > longest_of(source))
		source->model.longest = longest_of(source);
	source->longest = source->model.longest * NS;
	if (source->duration > source->longest)
		source->duration = source->longest;
}

void noise_init(struct sim_noise_sources *noise, const struct sim_noise *of, u32 count,
		enum sim_semantics semantics, u64 seed)
{
	noise->semantics = semantics;
	noise->noisy = NULL;
	for (noise->sources = 0; noise->sources < count && of[noise->sources].model.period;
	     noise->sources++)
		source_init(&noise->source[noise->sources], &of[noise->sources],
			    random_at(seed, noise->sources));
}

/* ---- streams ------------------------------------------------------------------- */

/*
 * A plan's times are whole nanoseconds; virtual time is finer. So random streams are also shifted
 * by a fraction of a nanosecond, and a plan that all ranks share starts at a random time.
 */
static sim_time shift_of(const struct sim_noise_source *source,
			 const struct coll_noise_stream *stream)
{
	if (source->model.phase == COLL_NOISE_RANDOM)
		return random_mix(stream->key) % NS;
	return source->origin;
}

sim_time noise_phase(const struct sim_noise_source *source, u64 number)
{
	const struct coll_noise_stream stream = coll_noise_stream(&source->plan, number);

	sim_time phase = (EPOCH + stream.shift) % source->model.period * NS;

	return (phase + shift_of(source, &stream)) % source->period;
}

sim_time *noise_phases(const struct sim_noise_sources *noise, u32 count)
{
	sim_time *phases;
	u32 i;

	if (!noise_is_periodic(noise) || noise->noisy)
		return NULL;
	phases = malloc(count * sizeof(*phases));
	for (i = 0; phases && i < count; i++)
		phases[i] = noise_phase(noise->source, i);
	return phases;
}

/* Walks the events of a stream in order of their start. */
struct noise_walk {
	const struct sim_noise_source *source;
	struct coll_noise_stream stream;
	sim_time shift;		/* from virtual time to the plan's */
};

/* All events from the first that starts at or after `from`, and possibly one before it. */
static void walk_init(struct noise_walk *walk, const struct sim_noise_source *source, u64 number,
		      sim_time from)
{
	walk->source = source;
	walk->stream = coll_noise_stream(&source->plan, number);
	walk->shift = EPOCH * NS + shift_of(source, &walk->stream);
	coll_noise_seek(&source->plan, &walk->stream, (from + walk->shift) / NS);
}

static struct coll_noise_span walk_next(struct noise_walk *walk)
{
	return coll_noise_next(&walk->source->plan, &walk->stream);
}

/* ---- ops under noise ------------------------------------------------------------- */

static struct sim_noise_event event_of(const struct noise_walk *walk, struct coll_noise_span span)
{
	return (struct sim_noise_event){ (sim_time)(span.start * NS) - walk->shift,
					 span.duration * NS };
}

struct sim_noise_event noise_next(const struct sim_noise_sources *noise, u64 stream, sim_time x)
{
	struct sim_noise_event first = { .start = SIM_NEVER };
	struct noise_walk walk;
	u32 i;

	for (i = 0; i < noise->sources && (!noise->noisy || noise->noisy[stream]); i++) {
		struct sim_noise_event event;

		walk_init(&walk, &noise->source[i], stream, x - noise->source[i].longest);
		do
			event = event_of(&walk, walk_next(&walk));
		while (event.start + event.duration <= x);
		if (event.start < first.start)
			first = event;
	}
	return first;
}

static sim_time end_occupancy(const struct sim_noise_sources *noise, u64 stream, sim_time now,
			      sim_time left)
{
	for (;;) {
		struct sim_noise_event event = noise_next(noise, stream, now);

		if (event.start > now) {
			if (left <= event.start - now)
				return now + left;
			left -= event.start - now;
		}
		now = event.start + event.duration;
	}
}

/* Durations of the events that start in [start, start + length). */
static sim_time sum_starting(const struct sim_noise_sources *noise, u64 stream, sim_time start,
			     sim_time length)
{
	sim_time sum = 0;
	struct noise_walk walk;
	u32 i;

	for (i = 0; i < noise->sources; i++) {
		struct sim_noise_event event;

		walk_init(&walk, &noise->source[i], stream, start);
		while ((event = event_of(&walk, walk_next(&walk))).start < start + length)
			if (event.start >= start)
				sum += event.duration;
	}
	return sum;
}

/*
 * LogGOPSim's rule: the rest of an event that covers the start, and all events that start later
 * inside.
 */
static sim_time end_goal(const struct sim_noise_sources *noise, u64 stream, sim_time start,
			 sim_time length)
{
	struct sim_noise_event cover = noise_next(noise, stream, start);
	sim_time late = cover.start <= start ? cover.start + cover.duration - start : 0;

	if (length > 1)
		late += sum_starting(noise, stream, start + 1, length - 1);
	return start + length + late;
}

sim_time noise_end_any(const struct sim_noise_sources *noise, u64 stream, sim_time start,
		       sim_time length)
{
	switch (noise->semantics) {
	case SIM_EVENT:
		return length ? start + length + sum_starting(noise, stream, start, length) : start;
	case SIM_OCCUPANCY:
		return end_occupancy(noise, stream, start, length);
	default:
		return end_goal(noise, stream, start, length);
	}
}

/* ---- messages ----------------------------------------------------------------------- */

/* Messages are Poisson-distributed in time; their events have equal lengths. */
static bool is_poisson(const struct sim_noise_sources *noise)
{
	return noise->sources && noise->source[0].model.arrival == COLL_NOISE_POISSON &&
	       noise->source[0].model.length == COLL_NOISE_FIXED &&
	       noise->source[0].model.phase == COLL_NOISE_RANDOM;
}

/* The time before the start in which an event may begin that still matters. */
static sim_time noise_reach(const struct sim_noise_sources *noise)
{
	return noise->semantics == SIM_EVENT ? 0 : noise->source[0].duration;
}

struct sim_wire noise_wire(const struct sim_noise_sources *noise, sim_time length)
{
	struct sim_wire wire = { .length = length };
	double quiet;

	if (is_poisson(noise)) {
		quiet = exp(-noise->source[0].per_period * (noise_reach(noise) + length));
		wire.quiet = quiet < 1 ? (u64)(quiet * 0x1p64) : ~(u64)0;
	}
	return wire;
}

/*
 * What an event at `start` adds to a message that leaves at 0 and is `late` already. By LogGOPSim's
 * rule one that covers the leaving adds its rest, the first of these alone, as in end_goal().
 */
static sim_time late_by(const struct sim_noise_sources *noise, sim_time start, sim_time late)
{
	const sim_time duration = noise->source[0].duration;

	if (noise->semantics == SIM_EVENT || start > 0)
		return duration;
	return late ? 0 : start + duration;
}

/*
 * From event to event. The first gap is drawn from the stream's own name, which was compared with
 * `quiet`; it counts from `noise_reach` before the start.
 */
static sim_time late_poisson(const struct sim_noise_sources *noise, u64 stream,
			     struct sim_wire wire)
{
	const struct sim_noise_source *source = noise->source;
	sim_time now = 0, left = wire.length, start = -noise_reach(noise);
	u64 number = stream, i;

	for (i = 0;; number = random_at(stream, ++i)) {
		start += (sim_time)(-log(random_unit(number)) / source->per_period);
		if (noise->semantics != SIM_OCCUPANCY) {	/* the window does not grow */
			if (start >= wire.length)
				return now + wire.length;
			now += late_by(noise, start, now);
			continue;
		}
		if (start > now) {
			if (left <= start - now)
				return now + left;
			left -= start - now;
			now = start;
		}
		if (start + source->duration > now)
			now = start + source->duration;
	}
}

sim_time noise_late(const struct sim_noise_sources *noise, u64 stream, struct sim_wire wire)
{
	if (is_poisson(noise))
		return late_poisson(noise, stream, wire);
	return noise_end(noise, stream, 0, wire.length);
}
