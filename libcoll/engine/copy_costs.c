// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include "copy_costs.h"

enum {
	PER = 20,			/* costs are of 2^PER bytes */
	/* The writer sees that all is taken so much later: the line of a counter, there and back. */
	TAKEN_NS = 300,
	FIRST_PIECE = 32 << 10,		/* of a ring: before it is written nothing can be read */
	FIRST = 8,			/* messages by turns: the first of either way meet cold caches */
	/*
	 * The other way is tried once in so many messages, times the ratio of both: so all trials
	 * together cost less than 1 / 64 of the time.
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

/* By either way, until the writer has done with the message; 0: not met. */
static struct coll_copy_costs ways_of(const struct coll_copy_writer *writer,
				      const struct coll_copy_reader *reader, uint64_t bytes,
				      bool busy)
{
	const uint32_t octave = coll_copy_octave(bytes);
	const struct coll_copy_costs *of = &reader->of[busy][octave];
	/* What the reader waits for before its clock begins, or a busy writer cannot do meanwhile. */
	const uint64_t before = !busy && bytes > FIRST_PIECE ? FIRST_PIECE : bytes;
	uint64_t ring = __atomic_load_n(&of->ring, __ATOMIC_RELAXED);
	uint64_t read = __atomic_load_n(&of->read, __ATOMIC_RELAXED);

	ring += ring ? writer->in[octave] * before / bytes : 0;
	read += read ? ((uint64_t)TAKEN_NS << PER) / bytes : 0;
	return (struct coll_copy_costs){
		.ring = ring < UINT32_MAX ? ring : UINT32_MAX,
		.read = read < UINT32_MAX ? read : UINT32_MAX,
	};
}

/* How many messages one way is taken before the other is tried. */
static uint32_t trial_after(struct coll_copy_costs ways)
{
	const uint32_t more = ways.ring > ways.read ? ways.ring : ways.read;
	const uint32_t less = ways.ring > ways.read ? ways.read : ways.ring;

	return TRIAL * (more / less < RATIO_MAX ? more / less : RATIO_MAX);
}

bool coll_copy_reads(const struct coll_copy_writer *writer, const struct coll_copy_reader *reader,
		     uint64_t bytes, bool busy)
{
	const struct coll_copy_costs ways = ways_of(writer, reader, bytes, busy);
	const uint32_t octave = coll_copy_octave(bytes);

	if (writer->first[busy][octave] < FIRST)
		return !(writer->first[busy][octave] % 2);
	if (!ways.read || !ways.ring)
		return ways.read;
	return (ways.read < ways.ring) != (writer->since[busy][octave] >= trial_after(ways));
}

void coll_copy_chose(struct coll_copy_writer *writer, const struct coll_copy_reader *reader,
		     uint64_t bytes, bool busy)
{
	const struct coll_copy_costs ways = ways_of(writer, reader, bytes, busy);
	const uint32_t octave = coll_copy_octave(bytes);
	uint32_t *since = &writer->since[busy][octave];

	writer->first[busy][octave] += writer->first[busy][octave] < FIRST;
	*since = !ways.read || !ways.ring || *since >= trial_after(ways) ? 0 : *since + 1;
}
