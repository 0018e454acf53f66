// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <string.h>

#include "samples.h"

/* A receiver that waited for less than this part of the latency was late itself. */
enum { WAITED_PART = 4, PAIRS_MOST = 1 << 30 };

/* ---- what all ranks compute alike ------------------------------------------------- */

static uint64_t samples_mix(uint64_t value)
{
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ value >> 27) * 0x94d049bb133111ebull;
	return value ^ value >> 31;
}

/* Names an exchange of a run: the same on both ranks. */
static uint64_t exchange_name(uint32_t run, uint32_t a, uint32_t b)
{
	const uint64_t pair = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;

	return samples_mix(samples_mix(pair) + run);
}

/* One run of each `every`, at no fixed place: a program may repeat itself. */
static bool is_sampled(const struct coll_samples *samples, uint32_t run)
{
	return run % samples->every == samples_mix(run / samples->every) % samples->every;
}

static uint32_t cell_of(const struct coll_samples *samples, uint32_t run)
{
	return run / samples->every % SAMPLE_CELLS;
}

/* ---- sampling ---------------------------------------------------------------------- */

/* At first as many pairs are expected as a butterfly has. */
void coll_samples_init(struct coll_samples *samples, uint32_t rank, uint32_t ranks)
{
	uint32_t rounds = 0;

	memset(samples, 0, sizeof(*samples));
	while (1ull << rounds < ranks)
		rounds++;
	samples->rank = rank;
	samples->every = SAMPLE_OFTEN;	/* the first calls are soon over */
	samples->pairs = (uint64_t)ranks * rounds / 2;
	if (!samples->pairs)
		samples->pairs = 1;
}

bool coll_samples_begin(struct coll_samples *samples, uint32_t run)
{
	const uint32_t cell = cell_of(samples, run);

	if (!is_sampled(samples, run))
		return false;
	memset(&samples->cell[cell], 0, sizeof(samples->cell[cell]));
	samples->run[cell] = run;
	samples->begun += samples->begun < SAMPLE_CELLS;
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
	const uint64_t waited = open->arrived - open->posted;
	const bool answered = open->sent > open->arrived + waited + SAMPLE_ANSWER_NS;

	return sample_part(waited) | (answered ? SAMPLE_ANSWERED : 0);
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
	       samples_mix(open->sent_bytes)) >> 8;
	cell->ns += (int64_t)(open->arrived - open->sent);
	cell->waited += sample_waited(open) << (lower ? 0 : 32);
	cell->held += sample_part(open->held) << (lower ? 0 : 32);
	cell->away += sample_part(open->away) << (lower ? 0 : 32);
	cell->ranks += (uint64_t)samples->rank << (lower ? 0 : 32);
	if (lower)
		cell->bytes += open->sent_bytes | (uint64_t)open->class << SAMPLE_CLASS_SHIFT;
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

void coll_samples_posted(struct coll_samples *samples, uint32_t run, uint32_t peer,
			 struct coll_sample_time time)
{
	struct coll_sample_open *open = exchange_of(samples, run, peer);

	open->posted = time.now;
	open->held = time.held;
	open->away = time.away;
}

/* One that was injected to be late is told twice: when that is known, and when it is due. */
void coll_samples_arrived(struct coll_samples *samples, uint32_t run, uint32_t peer,
			  enum coll_link_class class, uint64_t bytes, struct coll_sample_time time)
{
	struct coll_sample_open *open = exchange_find(samples, run, peer);

	if (!open || !open->posted || open->arrived)
		return;
	open->class = class;
	open->arrived_bytes = bytes;
	open->arrived = time.now;
	open->held = time.held > open->held ? time.held - open->held : 0;
	open->away = time.away - open->away;
	exchange_end(samples, open);
}

/* ---- the sum ------------------------------------------------------------------------ */

bool coll_sample_is_good(const struct coll_sample *sample)
{
	const uint64_t least = sample->ns / WAITED_PART;

	return sample->waited[0] >= least && sample->waited[1] >= least;
}

uint32_t coll_samples_collect(struct coll_samples *samples, const struct coll_sample_cell *sum,
			      struct coll_sample sample[SAMPLE_CELLS])
{
	uint32_t found = 0, met = 0, drawn = 0, i;	/* drawn: also one half alone */

	for (i = 0; i < SAMPLE_CELLS; i++) {
		const enum coll_link_class class = sum[i].bytes >> SAMPLE_CLASS_SHIFT;

		drawn += sum[i].tag && sum[i].tag <= SAMPLE_PAIR;
		met += sum[i].tag > SAMPLE_PAIR;
		if (sum[i].tag == SAMPLE_PAIR && sum[i].ns > 0 && class < COLL_CLASSES)
			sample[found++] = (struct coll_sample){
				.class = class,
				.run = samples->run[i],
				.rank = { (uint32_t)sum[i].ranks, sum[i].ranks >> 32 },
				.bytes = sum[i].bytes & ((1ull << SAMPLE_CLASS_SHIFT) - 1),
				.ns = sum[i].ns / 2,
				.waited = { sum[i].waited % SAMPLE_ANSWERED,
					    (sum[i].waited >> 32) % SAMPLE_ANSWERED },
				.answered = { sum[i].waited & SAMPLE_ANSWERED,
					      sum[i].waited >> 32 & SAMPLE_ANSWERED },
				.held = { (uint32_t)sum[i].held, sum[i].held >> 32 },
				.away = { (uint32_t)sum[i].away, sum[i].away >> 32 },
			};
	}
	if (drawn + met < samples->begun / 2 && samples->pairs > 1)
		samples->pairs /= 2;
	else if (met > 2 * drawn)
		samples->pairs *= samples->pairs < PAIRS_MOST ? 2 : 1;	/* a rank may lie */
	return found;
}
