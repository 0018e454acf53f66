// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "samples.h"

/* A receiver that waited for less than this part of the latency was late itself. */
enum { WAITED_PART = 4, PAIRS_LEAST = 16, PAIRS_MOST = 1 << 30 };

/* Of both messages: no noise is longer. */
static const int64_t exchange_ns_most = 2000 * 1000000000ll;

/* ---- what all ranks compute alike ------------------------------------------------- */

uint64_t coll_samples_mix(uint64_t value)
{
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ value >> 27) * 0x94d049bb133111ebull;
	return value ^ value >> 31;
}

/* Names an exchange of a run: the same on both ranks. */
static uint64_t exchange_name(uint32_t run, uint32_t a, uint32_t b)
{
	const uint64_t pair = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;

	return coll_samples_mix(coll_samples_mix(pair) + run);
}

/* No division by a number that is not known here. */
_Static_assert(!(SAMPLE_RARELY & (SAMPLE_RARELY - 1)) && !(SAMPLE_OFTEN & (SAMPLE_OFTEN - 1)),
	       "`every` is a power of two");

/* The number of the `every` runs that have this one. */
static uint32_t runs_of(const struct coll_samples *samples, uint32_t run)
{
	return run >> __builtin_ctz(samples->every);
}

/* One run of each `every`, at no fixed place: a program may repeat itself. */
static uint32_t sampled_of(const struct coll_samples *samples, uint32_t block)
{
	return block * samples->every + (coll_samples_mix(block) & (samples->every - 1));
}

/* The first sampled one from this one on. */
static uint32_t drawn_from(const struct coll_samples *samples, uint32_t run)
{
	const uint32_t block = runs_of(samples, run), drawn = sampled_of(samples, block);

	return drawn >= run ? drawn : sampled_of(samples, block + 1);
}

static bool is_sampled(const struct coll_samples *samples, uint32_t run)
{
	return run == sampled_of(samples, runs_of(samples, run));
}

static uint32_t cell_of(const struct coll_samples *samples, uint32_t run)
{
	return runs_of(samples, run) % SAMPLE_CELLS;
}

/* ---- sampling ---------------------------------------------------------------------- */

static void samples_clear(struct coll_samples *samples)
{
	memset(samples->open, 0, sizeof(samples->open));
	memset(samples->run, 0, sizeof(samples->run));
	memset(samples->cell, 0, sizeof(samples->cell));
}

void coll_samples_pace(struct coll_samples *samples, uint32_t every, uint32_t run)
{
	if (samples->every == every)
		return;
	samples->every = every;
	samples->drawn = drawn_from(samples, run);
	samples_clear(samples);
}

/* At first as many pairs are expected as a butterfly has. */
void coll_samples_init(struct coll_samples *samples, uint32_t rank, uint32_t ranks)
{
	uint32_t rounds = 0;

	memset(samples, 0, sizeof(*samples));
	while (1ull << rounds < ranks)
		rounds++;
	samples->rank = rank;
	samples->ranks = ranks;
	coll_samples_pace(samples, SAMPLE_OFTEN, 0);	/* the first calls are soon over */
	samples->pairs = (uint64_t)ranks * rounds / 2;
	if (!samples->pairs)
		samples->pairs = 1;
}

/* What was drawn before may have been a run of the library's own. */
bool coll_samples_begin_drawn(struct coll_samples *samples, uint32_t run)
{
	const uint32_t cell = cell_of(samples, run);

	samples->drawn = drawn_from(samples, run);
	if (run != samples->drawn)
		return false;
	samples->drawn = drawn_from(samples, run + 1);
	memset(&samples->cell[cell], 0, sizeof(samples->cell[cell]));
	samples->cell[cell].begun = 1;
	samples->run[cell] = run;
	return true;
}

bool coll_samples_draw(const struct coll_samples *samples, uint32_t run, uint32_t peer)
{
	return !(exchange_name(run, samples->rank, peer) % samples->pairs);
}

bool coll_samples_want(const struct coll_samples *samples, uint32_t run, uint32_t peer)
{
	return is_sampled(samples, run) && samples->run[cell_of(samples, run)] == run &&
	       coll_samples_draw(samples, run, peer);
}

/* NULL: it has ended, or too many have begun since. */
static struct coll_sample_open *exchange_find(struct coll_samples *samples, uint32_t run,
					      uint32_t peer)
{
	struct coll_sample_open *open;

	for (open = samples->open; open < samples->open + SAMPLE_OPEN; open++)
		if (open->used && open->run == run && open->peer == peer)
			return open;
	return NULL;
}

/* A new one takes the place of the oldest. */
static struct coll_sample_open *exchange_of(struct coll_samples *samples, uint32_t run,
					    uint32_t peer)
{
	struct coll_sample_open *open = exchange_find(samples, run, peer);

	if (open)
		return open;
	open = &samples->open[samples->next++ % SAMPLE_OPEN];
	*open = (struct coll_sample_open){ .run = run, .peer = peer, .used = true };
	return open;
}

static uint64_t sample_part(uint64_t ns)
{
	return ns < INT32_MAX ? ns : INT32_MAX;
}

/* What it waited; it answered if what it has received was not what kept it from sending. */
static uint64_t sample_waited(const struct coll_sample_open *open)
{
	const uint64_t waited = open->waited;
	const bool answered = open->sent > open->arrived + waited + SAMPLE_ANSWER_NS;

	return waited | (answered ? SAMPLE_ANSWERED : 0);
}

/* Adds this rank's half once it is known. */
static void exchange_end(struct coll_samples *samples, struct coll_sample_open *open)
{
	const bool lower = samples->rank < open->peer;
	const uint32_t index = cell_of(samples, open->run);
	struct coll_sample_cell *cell = &samples->cell[index];
	uint64_t tag;

	if (!open->sent || !open->arrived)
		return;
	open->used = false;
	if (open->sent_bytes != open->arrived_bytes || samples->run[index] != open->run)
		return;
	tag = (exchange_name(open->run, samples->rank, open->peer) ^
	       coll_samples_mix(open->sent_bytes)) >> 8;
	cell->ns += (int64_t)(open->arrived - open->sent);
	cell->waited += sample_waited(open) << (lower ? 0 : 32);
	cell->held += open->held << (lower ? 0 : 32);
	cell->away += open->away << (lower ? 0 : 32);
	cell->ranks += (uint64_t)samples->rank << (lower ? 0 : 32);
	if (lower) {
		cell->bytes += open->sent_bytes | (uint64_t)open->class << SAMPLE_CLASS_SHIFT;
		cell->run += open->run;
	}
	cell->tag += lower ? tag : SAMPLE_PAIR - tag;
}

void coll_samples_sent(struct coll_samples *samples, uint32_t run, uint32_t peer,
		       enum coll_link_class class, uint64_t bytes, uint64_t now)
{
	struct coll_sample_open *open = exchange_of(samples, run, peer);

	open->class = class;
	open->sent_bytes = bytes;
	open->sent = now;
	exchange_end(samples, open);
}

void coll_samples_kept(struct coll_samples *samples, uint32_t run, uint32_t peer,
		       struct coll_sample_time time)
{
	exchange_of(samples, run, peer)->posted = 0;
	coll_samples_posted(samples, run, peer, time);
}

void coll_samples_posted(struct coll_samples *samples, uint32_t run, uint32_t peer,
			 struct coll_sample_time time)
{
	struct coll_sample_open *open = exchange_of(samples, run, peer);

	if (open->posted)		/* who has waited in order goes on in the engine's turns */
		return;
	open->posted = time.now;
	open->held = time.held;
	open->away = time.away;
	open->looks = time.looks;
	open->thread = time.thread;
}

/* What an account has grown by, at most this. One that runs backwards has not. */
static uint64_t time_part(uint64_t grown, uint64_t most)
{
	return (int64_t)grown < 0 ? 0 : grown < most ? grown : most;
}

/* One that was injected to be late is told twice: when that is known, and when it is due. */
void coll_samples_arrived(struct coll_samples *samples, uint32_t run, uint32_t peer,
			  enum coll_link_class class, uint64_t bytes, struct coll_sample_time time)
{
	struct coll_sample_open *open = exchange_find(samples, run, peer);
	uint64_t waited;

	if (!open || !open->posted || open->arrived)
		return;
	open->class = class;
	open->arrived_bytes = bytes;
	open->arrived = time.now;
	waited = sample_part(time.now - open->posted);
	open->held = time_part(time.held - open->held, waited);
	open->away = time_part(time.away - open->away, waited - open->held);
	open->waited = time.looks - open->looks > 1 ? waited : open->held + open->away;
	if (open->thread != time.thread)	/* the account was another thread's */
		open->used = false;
	else
		exchange_end(samples, open);
}

/* ---- the sum ------------------------------------------------------------------------ */

uint32_t coll_sample_waited(const struct coll_sample *sample, int half)
{
	return sample->waited[half] - sample->held[half] - sample->away[half];
}

bool coll_sample_is_good(const struct coll_sample *sample)
{
	const uint64_t least = sample->ns / WAITED_PART;

	return sample->waited[0] >= least && sample->waited[1] >= least;
}

static struct coll_sample sample_of(const struct coll_sample_cell *sum)
{
	return (struct coll_sample){
		.class = sum->bytes >> SAMPLE_CLASS_SHIFT,
		.run = sum->run,
		.rank = { (uint32_t)sum->ranks, sum->ranks >> 32 },
		.bytes = sum->bytes & ((1ull << SAMPLE_CLASS_SHIFT) - 1),
		.ns = sum->ns / 2,
		.waited = { sum->waited % SAMPLE_ANSWERED, (sum->waited >> 32) % SAMPLE_ANSWERED },
		.answered = { sum->waited & SAMPLE_ANSWERED, sum->waited >> 32 & SAMPLE_ANSWERED },
		.held = { (uint32_t)sum->held, sum->held >> 32 },
		.away = { (uint32_t)sum->away, sum->away >> 32 },
	};
}

/* What honest ranks may add up to. */
static bool sample_may_be(const struct coll_samples *samples, const struct coll_sample_cell *sum,
			  const struct coll_sample *sample)
{
	int i;

	if (sum->ns < 2 || sum->ns > exchange_ns_most || sum->run > UINT32_MAX ||
	    sample->class >= COLL_CLASSES || sample->rank[0] >= sample->rank[1] ||
	    sample->rank[1] >= samples->ranks)
		return false;
	for (i = 0; i < 2; i++)
		if ((uint64_t)sample->held[i] + sample->away[i] > sample->waited[i])
			return false;
	return true;
}

/* By so many sampled runs, of which so many had no half, one or two, or several pairs'. */
static void pairs_follow(struct coll_samples *samples, uint32_t begun, uint32_t drawn, uint32_t met)
{
	const uint32_t before = samples->pairs;

	if (begun < PAIRS_LEAST)
		return;
	if (drawn + met < begun / 2 && samples->pairs > 1)
		samples->pairs /= 2;
	else if (met > 2 * drawn)
		samples->pairs *= samples->pairs < PAIRS_MOST ? 2 : 1;	/* a rank may lie */
	if (samples->pairs != before)
		samples_clear(samples);
}

uint32_t coll_samples_collect(struct coll_samples *samples, const struct coll_sample_cell *sum,
			      struct coll_sample sample[SAMPLE_CELLS])
{
	/* drawn: also one half alone */
	uint32_t found = 0, met = 0, drawn = 0, begun = 0, i;

	for (i = 0; i < SAMPLE_CELLS; i++) {
		begun += !!sum[i].begun;
		drawn += sum[i].tag && sum[i].tag <= SAMPLE_PAIR;
		met += sum[i].tag > SAMPLE_PAIR;
		if (sum[i].tag != SAMPLE_PAIR)
			continue;
		sample[found] = sample_of(&sum[i]);
		found += sample_may_be(samples, &sum[i], &sample[found]);
	}
	pairs_follow(samples, begun, drawn, met);
	return found;
}
