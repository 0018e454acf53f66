// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "copy_costs.h"

enum {
	PER = 20,			/* costs are of 2^PER bytes */
	FIRST_PIECE = 32 << 10,		/* of a ring: before it is written nothing can be read */
	FIRST = 8,			/* messages by turns: the first of either way meet cold caches */
	/*
	 * The other way is tried once in so many messages, times the ratio of both: up to the
	 * greatest ratio all trials together cost less than 1 / 64 of the time.
	 */
	TRIAL = 64,
	RATIO_MAX = 16,
};

uint32_t coll_copy_octave(uint64_t bytes)
{
	uint32_t octave = 0;

	while (octave < COLL_COPY_OCTAVES - 1 && bytes >> octave >= 2 * COLL_COPY_LEAST)
		octave++;
	return octave;
}

void coll_copy_met(uint32_t *cost, uint64_t ns, uint64_t bytes)
{
	const uint64_t before = __atomic_load_n(cost, __ATOMIC_RELAXED), most = UINT32_MAX >> 1;
	uint64_t met = ns >> (64 - PER) ? most : (ns << PER) / bytes;

	if (before && met > before)
		met = before + ((met < 2 * before ? met : 2 * before) - before + 3) / 4;
	else if (before)
		met = (before + met) / 2;
	__atomic_store_n(cost, met > most ? most : met ? met : 1, __ATOMIC_RELAXED);
}

/* Through the ring, with what the writer does before the reader's clock begins, or, busy, in its stead. */
static uint64_t ring_cost(const struct coll_copy_writer *writer, const struct coll_copy_reader *reader,
			  uint64_t bytes, bool busy)
{
	const uint32_t octave = coll_copy_octave(bytes);
	const uint64_t out = __atomic_load_n(&reader->ring[busy][octave], __ATOMIC_RELAXED);
	const uint64_t in = writer->in[octave];

	if (!out)
		return 0;
	return out + (busy || bytes <= FIRST_PIECE ? in : in / (bytes / FIRST_PIECE));
}

/* How many messages one way is taken before the other is tried. */
static uint32_t trial_after(uint64_t ring, uint64_t read)
{
	const uint64_t more = ring > read ? ring : read, less = ring > read ? read : ring;

	return TRIAL * (less && more / less < RATIO_MAX ? (uint32_t)(more / less) : RATIO_MAX);
}

bool coll_copy_reads(struct coll_copy_writer *writer, const struct coll_copy_reader *reader,
		     uint64_t bytes, bool busy)
{
	const uint32_t octave = coll_copy_octave(bytes);
	const uint64_t ring = ring_cost(writer, reader, bytes, busy);
	const uint64_t read = writer->read[busy][octave];
	const bool reads = !ring || !read ? read : read < ring;
	uint32_t *since = &writer->since[busy][octave];

	if (writer->first[busy][octave] < FIRST)
		return !(writer->first[busy][octave]++ % 2);
	if (*since >= trial_after(ring, read)) {
		*since = 0;
		return !reads;
	}
	++*since;
	return reads;
}
