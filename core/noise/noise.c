// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "noise.h"

/* ---- numbers ---------------------------------------------------------------- */

#define ONE	(1ull << 30)	/* fixed point: the results hold nine digits */
#define LN2	744261118ull
#define SQRT2	1518500250ull

/* The i-th number of the sequence `key`: splitmix64 (Steele, Lea, Flood 2014), entered anywhere. */
static u64 noise_draw(u64 key, u64 i)
{
	u64 z = key + (i + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Uniform in [0, below). */
static u64 noise_uniform(u64 random, u64 below)
{
	return mul_u64_u64_shr(random, below, 64);
}

/*
 * -ln(random / 2^64), exponentially distributed with mean ONE, at most 45 ONE.
 * With m the leading bits as a number from 1 to 2, and s = (m - r) / (m + r) for
 * r = sqrt(2): ln(m) = ln(2) / 2 + 2 atanh(s), |s| < 0.172, six terms of it.
 */
static u64 noise_exponential(u64 random)
{
	static const u64 odd[] = { ONE / 11, ONE / 9, ONE / 7, ONE / 5, ONE / 3, ONE };
	u64 m, s, square, atanh = 0, part;
	u32 zeros, i;
	bool above;

	random |= 1;
	zeros = __builtin_clzll(random);
	m = random << zeros >> 3;	/* 2^60 is 1 */
	above = m > SQRT2 << 30;
	s = above ? m - (SQRT2 << 30) : (SQRT2 << 30) - m;
	s = div64_u64(s, (m >> 30) + SQRT2);
	square = s * s >> 30;
	for (i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		atanh = odd[i] + (atanh * square >> 30);
	part = 2 * s * atanh >> 30;
	if (!above)
		return zeros * LN2 + LN2 / 2 + part;
	return zeros * LN2 + LN2 / 2 - (part < LN2 / 2 ? part : LN2 / 2);
}

/* value * e^(power / ONE), at most `most`. */
static u64 noise_grown(u64 value, u64 power, u64 most)
{
	u64 doublings = div64_u64(power, LN2), rest = power - doublings * LN2, factor = ONE;
	u32 k;

	for (k = 12; k; k--)
		factor = ONE + (u32)(rest * factor >> 30) / k;
	value = mul_u64_u64_shr(value, factor, 30);
	return doublings < 63 && value <= most >> doublings ? value << doublings : most;
}

/* ---- lengths ------------------------------------------------------------------ */

/* The least length is mean * (shape - 1) / shape; one in x^shape is x times as long. */
static u64 noise_pareto(const struct coll_noise_model *model, u64 random)
{
	u64 least = div64_u64(model->duration * (model->shape - 1000), model->shape);

	return noise_grown(least, div64_u64(noise_exponential(random) * 1000, model->shape),
			   COLL_NOISE_DURATION_MAX);
}

static u64 random_length(const struct coll_noise_plan *plan, u64 random)
{
	const struct coll_noise_model *model = plan->model;

	switch (model->length) {
	case COLL_NOISE_EXPONENTIAL:
		return mul_u64_u64_shr(model->duration, noise_exponential(random), 30);
	case COLL_NOISE_PARETO:
		return noise_pareto(model, random);
	default:
		return plan->table[noise_uniform(random, plan->spans)].duration;
	}
}

static u64 noise_cut(const struct coll_noise_model *model, u64 duration)
{
	u64 most = model->longest ? model->longest : COLL_NOISE_DURATION_MAX;

	return duration < most ? duration : most;
}

/* ---- cells -------------------------------------------------------------------- */

enum { CROWD = 20 };	/* more events in one cell are rarer than one in 2^64 */

/* Of what a cell draws: first its number of events, then where each is, then how long. */
enum { DRAW_NUMBER, DRAW_PLACE, DRAW_LENGTH = DRAW_PLACE + CROWD };

/* P(k events or fewer) * 2^64, of a Poisson distribution with mean 1. */
static const u64 at_most[CROWD] = {
	0x5e2d58d8b3bcdf1a, 0xbc5ab1b16779be35, 0xeb715e1dc1582dc2, 0xfb23979734a252f1,
	0xff1025f59174dc3d, 0xffd90f3ba4055e19, 0xfffa8b71fc72c913, 0xffff540c0914b3c9,
	0xffffed1f4aa8f120, 0xfffffe216e641462, 0xffffffd4d85d3183, 0xfffffffc6da262b4,
	0xffffffffba12d178, 0xfffffffffb07c64c, 0xffffffffffab8ea5, 0xfffffffffffabe22,
	0xffffffffffffb11a, 0xfffffffffffffba1, 0xffffffffffffffc5, 0xfffffffffffffffd,
};

static u32 noise_crowd(u64 cell_key)
{
	u64 random = noise_draw(cell_key, DRAW_NUMBER);
	u32 events = 0;

	while (events < CROWD && random >= at_most[events])
		events++;
	return events;
}

static u32 cell_events(const struct coll_noise_plan *plan, u64 cell_key)
{
	switch (plan->model->arrival) {
	case COLL_NOISE_PERIODIC:
		return 1;
	case COLL_NOISE_POISSON:
		return noise_crowd(cell_key);
	default:
		return plan->spans;
	}
}

/* How many of these places come before place k; of equal ones, the first. */
static u32 places_before(const u64 *place, u32 places, u32 k)
{
	u32 before = 0, i;

	for (i = 0; i < places; i++)
		before += place[i] < place[k] || (place[i] == place[k] && i < k);
	return before;
}

/* The position of event `index` in its cell of `events`. */
static u64 crowd_place(const struct coll_noise_plan *plan, u64 cell_key, u32 events, u32 index)
{
	u64 place[CROWD];
	u32 k;

	for (k = 0; k < events; k++)
		place[k] = noise_uniform(noise_draw(cell_key, DRAW_PLACE + k), plan->model->period);
	for (k = 0; places_before(place, events, k) != index; k++)
		;
	return place[k];
}

static u64 cell_place(const struct coll_noise_plan *plan, u64 cell_key, u32 events, u32 index)
{
	switch (plan->model->arrival) {
	case COLL_NOISE_PERIODIC:
		return 0;
	case COLL_NOISE_POISSON:
		return crowd_place(plan, cell_key, events, index);
	default:
		return plan->table[index].start;
	}
}

static u64 event_length(const struct coll_noise_plan *plan, u64 cell_key, u32 index)
{
	if (plan->model->arrival == COLL_NOISE_REPLAY)
		return plan->table[index].duration;
	if (plan->model->length == COLL_NOISE_FIXED)
		return plan->model->duration;
	return random_length(plan, noise_draw(cell_key, DRAW_LENGTH + index));
}

/* How many events of the cell start before this place in it. */
static u32 events_before(const struct coll_noise_plan *plan, u64 cell_key, u64 place)
{
	u32 events = cell_events(plan, cell_key), low = 0, high = events;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (cell_place(plan, cell_key, events, middle) < place)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- streams ------------------------------------------------------------------ */

static u64 noise_stagger(const struct coll_noise_model *model, u64 number)
{
	u64 each = div64_u64(model->period, model->streams);
	u64 rest = model->period - each * model->streams;

	number -= div64_u64(number, model->streams) * model->streams;
	return number * each + div64_u64(number * rest, model->streams);
}

struct coll_noise_stream coll_noise_stream(const struct coll_noise_plan *plan, u64 number)
{
	const struct coll_noise_model *model = plan->model;
	bool alone = model->phase == COLL_NOISE_RANDOM;
	u64 seed = noise_draw(model->seed, 0);
	struct coll_noise_stream stream = { .key = noise_draw(seed, alone ? number + 1 : 0) };

	if (model->arrival != COLL_NOISE_POISSON && alone)
		stream.shift = noise_uniform(noise_draw(stream.key, ~0ull), model->period);
	if (model->phase == COLL_NOISE_STAGGERED && noise_stagger(model, number))
		stream.shift = model->period - noise_stagger(model, number);
	coll_noise_seek(plan, &stream, 0);
	return stream;
}

struct coll_noise_span coll_noise_next(const struct coll_noise_plan *plan,
				       struct coll_noise_stream *stream)
{
	u64 cell_key = noise_draw(stream->key, stream->cell);
	u32 events = cell_events(plan, cell_key);
	struct coll_noise_span event;

	while (stream->index >= events) {
		cell_key = noise_draw(stream->key, ++stream->cell);
		events = cell_events(plan, cell_key);
		stream->index = 0;
	}
	event.start = stream->cell * plan->model->period - stream->shift +
		      cell_place(plan, cell_key, events, stream->index);
	event.duration = noise_cut(plan->model, event_length(plan, cell_key, stream->index));
	stream->index++;
	return event;
}

void coll_noise_seek(const struct coll_noise_plan *plan, struct coll_noise_stream *stream, u64 at)
{
	u64 period = plan->model->period, place;

	at += stream->shift;
	stream->cell = div64_u64(at, period);
	place = at - stream->cell * period;
	stream->index = events_before(plan, noise_draw(stream->key, stream->cell), place);
}

/* ---- checking ----------------------------------------------------------------- */

static const char *check_numbers(const struct coll_noise_model *m)
{
	if (m->arrival >= COLL_NOISE_ARRIVALS)
		return "arrival: periodic (0), Poisson (1) or replay (2)";
	if (m->phase >= COLL_NOISE_PHASES)
		return "phase: same (0), random (1) or staggered (2)";
	if (m->length >= COLL_NOISE_LENGTHS)
		return "length: fixed (0), exponential (1), Pareto (2) or table (3)";
	if (m->zero || m->zero2)
		return "padding: must be 0";
	if (m->period < COLL_NOISE_PERIOD_MIN || m->period > COLL_NOISE_PERIOD_MAX)
		return "period: from 1 us to a day";
	if (m->longest > COLL_NOISE_DURATION_MAX)
		return "longest: at most 1000 s, or 0";
	return NULL;
}

static const char *check_pairs(const struct coll_noise_model *m)
{
	if (m->arrival == COLL_NOISE_REPLAY && m->length != COLL_NOISE_TABLE)
		return "length: a replay has those of its table (3)";
	if (m->arrival == COLL_NOISE_POISSON && m->phase == COLL_NOISE_STAGGERED)
		return "phase: Poisson has no period to stagger over: same (0) or random (1)";
	if ((m->phase == COLL_NOISE_STAGGERED) != !!m->streams)
		return m->streams ? "streams: 0 where the phase is not staggered" :
				    "streams: at least 1 where the phase is staggered";
	if (m->length == COLL_NOISE_TABLE && m->duration)
		return "duration: 0 where a table gives the lengths";
	if (m->length != COLL_NOISE_TABLE &&
	    (!m->duration || m->duration > COLL_NOISE_DURATION_MAX))
		return "duration: from 1 ns to 1000 s";
	if (m->length != COLL_NOISE_PARETO && m->shape)
		return "shape: 0 where the length is not Pareto";
	if (m->length == COLL_NOISE_PARETO && (m->shape <= 1000 || m->shape > COLL_NOISE_SHAPE_MAX))
		return "shape: above 1, at most 100";
	return NULL;
}

static const char *check_table(const struct coll_noise_plan *plan)
{
	bool replay = plan->model->arrival == COLL_NOISE_REPLAY;
	u64 start = 0;
	u32 i;

	if (plan->model->length != COLL_NOISE_TABLE)
		return plan->spans ? "table: none where the length is not table" : NULL;
	if (!plan->spans || plan->spans > COLL_NOISE_SPANS_MAX)
		return "table: from 1 to 1048576 entries";
	for (i = 0; i < plan->spans; i++) {
		if (!replay && plan->table[i].start)
			return "table: starts are 0 where it gives lengths only";
		if (plan->table[i].start < start)
			return "table: starts ascend";
		start = plan->table[i].start;
		if (start >= plan->model->period)
			return "table: starts are below the period";
		if (plan->table[i].duration > COLL_NOISE_DURATION_MAX)
			return "table: durations are at most 1000 s";
	}
	return NULL;
}

u64 coll_noise_load(const struct coll_noise_plan *plan)
{
	u64 sum = 0;
	u32 i;

	if (plan->model->length != COLL_NOISE_TABLE)
		return noise_cut(plan->model, plan->model->duration);
	for (i = 0; i < plan->spans; i++)
		sum += noise_cut(plan->model, plan->table[i].duration);
	return plan->model->arrival == COLL_NOISE_REPLAY ? sum : div64_u64(sum, plan->spans);
}

int coll_noise_check(const struct coll_noise_plan *plan, const char **wrong)
{
	*wrong = check_numbers(plan->model);
	if (!*wrong)
		*wrong = check_pairs(plan->model);
	if (!*wrong)
		*wrong = check_table(plan);
	if (!*wrong && coll_noise_load(plan) >
			       div64_u64(plan->model->period * COLL_NOISE_SHARE_MAX, 100))
		*wrong = "duration: the events fill more than 95 % of the time";
	return *wrong ? -EINVAL : 0;
}
