/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Noise in integers. The question is: when does an op end that starts now and needs so long?
 * Nothing is remembered between calls: events are a function of seed, stream (a rank or a
 * message) and time, so each path may ask in its own order.
 */
#ifndef COLL_SIM_NOISE_H
#define COLL_SIM_NOISE_H

#include "core/noise/noise.h"
#include "random.h"
#include "sim.h"

struct sim_noise_source {
	struct coll_noise_model model;
	struct coll_noise_plan plan;	/* refers to the model above: not to be copied */
	sim_time period;
	double per_period;	/* 1 / period */
	sim_time duration, longest;
	sim_time origin;	/* when the plan began, if not random for each stream */
};

struct sim_noise_sources {
	enum sim_semantics semantics;
	u32 sources;
	struct sim_noise_source source[SIM_SOURCES_MAX];
	const bool *noisy;	/* per stream, or NULL: all are */
};

/* Why the noise is invalid, in words; NULL: it is valid. */
const char *noise_refuses(const struct sim_noise *noise);

/* The share of time that valid noise takes. */
double noise_share(const struct sim_noise *noise);

void noise_init(struct sim_noise_sources *noise, const struct sim_noise *of, u32 count,
		enum sim_semantics semantics, u64 seed);

/* Remainder of x >= 0, without a division. */
static inline sim_time noise_modulo(sim_time x, sim_time period, double per_period)
{
	sim_time rest = x - (sim_time)((double)x * per_period) * period;

	if (rest < 0)
		rest += period;
	return rest >= period ? rest - period : rest;
}

/*
 * Phase of a PERIODIC source for this stream at time 0: an event begins whenever time + phase is a
 * multiple of the period.
 */
sim_time noise_phase(const struct sim_noise_source *source, u64 stream);

/* A periodic source with events of equal length, `event` semantics. */
static inline sim_time noise_periodic_event(const struct sim_noise_source *source, sim_time phase,
					    sim_time start, sim_time length)
{
	sim_time inside, next;

	if (!length)
		return start;
	inside = noise_modulo(start + phase, source->period, source->per_period);
	next = inside ? source->period - inside : 0;
	if (next >= length)
		return start + length;
	return start + length + (1 + (length - 1 - next) / source->period) * source->duration;
}

/* The same, `occupancy` semantics. */
static inline sim_time noise_periodic_occupancy(const struct sim_noise_source *source,
						sim_time phase, sim_time start, sim_time length)
{
	sim_time inside = noise_modulo(start + phase, source->period, source->per_period);
	sim_time quiet = source->period - source->duration, left;

	if (inside < source->duration) {
		start += source->duration - inside;
		inside = source->duration;
	}
	left = source->period - inside;
	if (length <= left)
		return start + length;
	return start + length + (1 + (length - left - 1) / quiet) * source->duration;
}

/* One such source only: the end of an op depends on its phase. */
static inline bool noise_is_periodic(const struct sim_noise_sources *noise)
{
	return noise->sources == 1 && noise->source[0].model.arrival == COLL_NOISE_PERIODIC &&
	       noise->source[0].model.length == COLL_NOISE_FIXED && noise->semantics != SIM_GOAL;
}

static inline sim_time noise_end_periodic(const struct sim_noise_sources *noise, sim_time phase,
					  sim_time start, sim_time length)
{
	return noise->semantics == SIM_EVENT ?
		       noise_periodic_event(noise->source, phase, start, length) :
		       noise_periodic_occupancy(noise->source, phase, start, length);
}

/* Any noise; slower. */
sim_time noise_end_any(const struct sim_noise_sources *noise, u64 stream, sim_time start,
		       sim_time length);

/* The first event of any source that ends after `time`: its start says whether that is in it. */
struct sim_noise_event {
	sim_time start, duration;
};
struct sim_noise_event noise_next(const struct sim_noise_sources *noise, u64 stream, sim_time time);

/* When an op of the stream ends that starts at `start` and needs `length`. */
static inline sim_time noise_end(const struct sim_noise_sources *noise, u64 stream, sim_time start,
				 sim_time length)
{
	if (!noise->sources || (noise->noisy && !noise->noisy[stream]))
		return start + length;
	if (noise_is_periodic(noise))
		return noise_end_periodic(noise, noise_phase(noise->source, stream), start, length);
	return noise_end_any(noise, stream, start, length);
}

/*
 * The phases of streams 0 to count - 1, for many calls; NULL: the noise has none or not all have
 * noise, or no memory: use noise_end(). free() it.
 */
sim_time *noise_phases(const struct sim_noise_sources *noise, u32 count);

static inline sim_time noise_end_at(const struct sim_noise_sources *noise, const sim_time *phases,
				    u32 stream, sim_time start, sim_time length)
{
	if (phases)
		return noise_end_periodic(noise, phases[stream], start, length);
	return noise_end(noise, stream, start, length);
}

/*
 * Noise of messages: each has its own stream. With Poisson noise most messages meet no event,
 * which one comparison with `quiet` decides.
 */
struct sim_wire {
	sim_time length;	/* of the latency */
	u64 quiet;		/* a stream below it: no event */
};

struct sim_wire noise_wire(const struct sim_noise_sources *noise, sim_time length);
sim_time noise_late(const struct sim_noise_sources *noise, u64 stream, struct sim_wire wire);

/* Latency of a message on this wire. */
static inline sim_time noise_travel(const struct sim_noise_sources *noise, u64 stream,
				    struct sim_wire wire)
{
	if (!noise->sources || stream < wire.quiet)
		return wire.length;
	return noise_late(noise, stream, wire);
}

/* The stream of a message: `key` of the run, and its name in the schedules. */
static inline u64 noise_message(u64 key, u32 from, u32 to, u32 slot)
{
	return random_at(key ^ slot, (u64)from << 24 | to);
}

#endif
