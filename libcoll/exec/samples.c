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

/* One run of each SAMPLE_EVERY, at no fixed place: a program may repeat itself. */
static bool is_sampled(uint32_t run)
{
	return run % SAMPLE_EVERY == samples_mix(run / SAMPLE_EVERY) % SAMPLE_EVERY;
}

static struct coll_sample_cell *cells_of(struct coll_samples *samples, uint32_t run)
{
	return samples->cell[run / SAMPLE_EVERY % SAMPLE_CELLS];
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
	samples->pairs = (uint64_t)ranks * rounds / 2;
	if (!samples->pairs)
		samples->pairs = 1;
}

bool coll_samples_begin(struct coll_samples *samples, uint32_t run)
{
	if (!is_sampled(run))
		return false;
	memset(cells_of(samples, run), 0, sizeof(samples->cell[0]));
	return true;
}

bool coll_samples_draw(const struct coll_samples *samples, uint32_t run, uint32_t peer)
{
	return !(exchange_name(run, samples->rank, peer) % samples->pairs);
}

/* A new one takes the place of the oldest. */
static struct coll_sample_open *exchange_of(struct coll_samples *samples, uint32_t run, uint32_t peer)
{
	struct coll_sample_open *open;

	for (open = samples->open; open < samples->open + SAMPLE_OPEN; open++)
		if (open->used && open->run == run && open->peer == peer)
			return open;
	open = &samples->open[samples->next++ % SAMPLE_OPEN];
	*open = (struct coll_sample_open){ .run = run, .peer = peer, .used = true };
	return open;
}

/* Adds this rank's half once it is known. */
static void exchange_end(struct coll_samples *samples, struct coll_sample_open *open)
{
	const bool lower = samples->rank < open->peer;
	struct coll_sample_cell *cell;
	uint64_t waited, tag;

	if (!open->sent || !open->arrived)
		return;
	open->used = false;
	if (open->sent_bytes != open->arrived_bytes)
		return;
	cell = &cells_of(samples, open->run)[open->class];
	waited = open->arrived - open->posted;
	if (waited > INT32_MAX)
		waited = INT32_MAX;
	tag = (exchange_name(open->run, samples->rank, open->peer) ^
	       samples_mix(open->sent_bytes)) >> 8;
	cell->ns += (int64_t)(open->arrived - open->sent);
	cell->waited += lower ? waited : waited << 32;
	cell->bytes += lower ? open->sent_bytes : 0;
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

void coll_samples_posted(struct coll_samples *samples, uint32_t run, uint32_t peer, uint64_t now)
{
	exchange_of(samples, run, peer)->posted = now;
}

void coll_samples_arrived(struct coll_samples *samples, uint32_t run, uint32_t peer,
			  enum coll_link_class class, uint64_t bytes, uint64_t now)
{
	struct coll_sample_open *open = exchange_of(samples, run, peer);

	if (!open->posted)	/* not any more: too many are open */
		open->posted = now;
	open->class = class;
	open->arrived_bytes = bytes;
	open->arrived = now;
	exchange_end(samples, open);
}

/* ---- the sum ------------------------------------------------------------------------ */

/* Neither message waited for its receiver. */
static bool cell_is_good(const struct coll_sample_cell *cell)
{
	const int64_t least = cell->ns / 2 / WAITED_PART;

	return cell->ns > 0 && (uint32_t)cell->waited >= least &&
	       (int64_t)(cell->waited >> 32) >= least;
}

uint32_t coll_samples_collect(struct coll_samples *samples, const struct coll_sample_cell *sum,
			      struct coll_sample sample[SAMPLE_CELLS * COLL_CLASSES])
{
	uint32_t found = 0, met = 0, drawn = 0, i;	/* drawn: also one half alone */

	for (i = 0; i < SAMPLE_CELLS * COLL_CLASSES; i++) {
		drawn += sum[i].tag && sum[i].tag <= SAMPLE_PAIR;
		met += sum[i].tag > SAMPLE_PAIR;
		if (sum[i].tag == SAMPLE_PAIR && cell_is_good(&sum[i]))
			sample[found++] = (struct coll_sample){
				.class = i % COLL_CLASSES,
				.bytes = sum[i].bytes,
				.ns = sum[i].ns / 2,
			};
	}
	if (drawn + met < SAMPLE_CELLS / 2 && samples->pairs > 1)
		samples->pairs /= 2;
	else if (met > 2 * drawn)
		samples->pairs *= samples->pairs < PAIRS_MOST ? 2 : 1;	/* a rank may lie */
	return found;
}
