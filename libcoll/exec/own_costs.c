// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
#include <stdlib.h>
#include <string.h>

#include "core/reduce.h"
#include "libcoll/base/clock.h"
#include "libcoll/base/fit.h"
#include "own_costs.h"
#include "samples.h"

enum {
	CLOCK_LOOKS = 8,
	CODE_SHIFT = 15,		/* of a float, whose sign is plus: 8 bits of its fraction are left */
	CODE_BITS = 16,
	CODES = 4,			/* of a word */
	/* Which a socket's buffer has space for, and which are no more than its header to it. */
	SOCKET_TAKES = SPECULATIVE_MAX,
};

static const double own_seconds_most = 1000;
static const double usual_gap_inside = 0.1e-9;

static uint32_t clock_price(void)
{
	uint64_t least = UINT32_MAX, before = coll_now();
	int i;

	for (i = 0; i < CLOCK_LOOKS; i++) {
		const uint64_t now = coll_now();

		if (now - before < least)
			least = now - before;
		before = now;
	}
	return least;
}

void coll_own_init(struct coll_own_costs *own)
{
	memset(own, 0, sizeof(*own));
	own->clock_ns = clock_price();
}

/* ---- a sampled run ------------------------------------------------------------ */

static void own_run_begins(struct coll_own_costs *own, uint32_t run)
{
	if (own->run == run)
		return;
	own->run = run;
	own->bursts = own->takes = own->reductions = 0;
}

/* Seconds between two looks at the clock. */
static double own_seconds(const struct coll_own_costs *own, uint64_t ns)
{
	return ns > own->clock_ns ? (ns - own->clock_ns) * 1e-9 : 1e-9;
}

static void messages_add(struct coll_own_messages *messages, const struct coll_own_message *one)
{
	messages->latest[messages->count++ % OWN_SENDS] = *one;
}

void coll_own_sent(struct coll_own_costs *own, uint32_t run, enum coll_link_class class, uint64_t bytes,
		   uint64_t ns)
{
	own_run_begins(own, run);
	own->burst.spoilt = true;	/* its time has this one's */
	if (class >= COLL_CLASS_WAN || own->burst.left || own->bursts >= OWN_A_RUN)
		return;
	own->bursts++;
	messages_add(&own->send[coll_class_level(class)],
		     &(struct coll_own_message){ .run = run, .bytes = bytes, .seconds = own_seconds(own, ns) });
}

void coll_own_took(struct coll_own_costs *own, uint32_t run, enum coll_link_class class, uint64_t bytes,
		   uint64_t ns)
{
	own_run_begins(own, run);
	if (class < COLL_CLASS_WAN && own->takes++ < OWN_A_RUN)
		messages_add(&own->take[coll_class_level(class)],
			     &(struct coll_own_message){ .run = run, .bytes = bytes, .seconds = own_seconds(own, ns) });
}

bool coll_own_queued(struct coll_own_costs *own, uint32_t run, enum coll_link_class class, uint64_t bytes,
		     struct coll_own_time time)
{
	const enum coll_level_kind level = coll_class_level(class);
	struct coll_own_burst *burst = &own->burst;

	own_run_begins(own, run);
	if (!burst->left) {
		if (own->bursts >= OWN_A_RUN)
			return false;
		own->bursts++;
		*burst = (struct coll_own_burst){ .since = time, .run = run, .level = level,
						  .spoilt = time.blocked > 0 };	/* the reader is late */
	}
	if (burst->run != run) {	/* two runs are under way */
		burst->spoilt = true;
		return true;
	}
	burst->spoilt |= burst->level != level || class >= COLL_CLASS_WAN;
	burst->sends++;
	burst->left++;
	burst->bytes += bytes;
	return true;
}

bool coll_own_gone(struct coll_own_costs *own, uint32_t run, struct coll_own_time time)
{
	struct coll_own_burst *burst = &own->burst;
	struct coll_own_message send = { .run = run };

	if (!burst->left || burst->run != run)
		return !burst->left;
	if (--burst->left)
		return false;
	burst->spoilt |= time.grants != burst->since.grants;	/* a reader was late */
	send.bytes = (double)burst->bytes / burst->sends;
	send.seconds = own_seconds(own, time.now - burst->since.now) / burst->sends;
	/* Its end is one look, which io_uring takes: for a message that had gone before. */
	send.waited = time.looks - burst->since.looks > 1 || time.recvs != burst->since.recvs;
	if (!burst->spoilt && (!send.waited || (burst->level == COLL_LEVEL_CLUSTER && send.bytes > SOCKET_TAKES)))
		messages_add(&own->send[burst->level], &send);
	return true;
}

void coll_own_disturb(struct coll_own_costs *own)
{
	own->burst.spoilt = true;
}

void coll_own_reduced(struct coll_own_costs *own, uint32_t run, uint64_t bytes, uint64_t ns)
{
	own_run_begins(own, run);
	if (own->reductions++ < OWN_A_RUN)
		own->sum[own->sums++ % OWN_SUMS] =
			(struct coll_own_sum){ run, own_seconds(own, ns) / bytes };
}

/* ---- fits ------------------------------------------------------------------------ */

double coll_own_gamma(size_t bytes, uint32_t rounds)
{
	double *values = calloc(2, bytes), *seconds = calloc(rounds, sizeof(*seconds)), gamma = 0;
	uint32_t i;

	for (i = 0; i < rounds && values && seconds; i++) {
		const uint64_t start = coll_now();

		coll_reduce_local(COLL_DOUBLE, COLL_SUM, values, values, values + bytes / sizeof(*values), bytes);
		seconds[i] = (coll_now() - start) * 1e-9;
	}
	if (values && seconds)
		gamma = coll_fit_quartile(seconds, rounds) / bytes;
	free(values);
	free(seconds);
	return gamma;
}

static bool own_is_recent(uint32_t run, uint32_t recent)
{
	return (int32_t)(run - recent) >= 0;
}

static double own_gamma(const struct coll_own_costs *own, uint32_t recent)
{
	const uint32_t kept = own->sums < OWN_SUMS ? own->sums : OWN_SUMS;
	double per_byte[OWN_SUMS];
	uint32_t known = 0, i;

	for (i = 0; i < kept; i++)
		if (own_is_recent(own->sum[i].run, recent))
			per_byte[known++] = own->sum[i].per_byte;
	return known < OWN_LEAST ? 0 : coll_fit_quartile(per_byte, known);
}

/* The gap in use, and what it is where that is not known. */
static double gap_in_use(const struct coll_machine *machine, enum coll_level_kind level)
{
	return level == COLL_LEVEL_CLUSTER ? machine->byte_gap : machine->inside[level].byte_gap;
}

static double gap_or_usual(const struct coll_machine *machine, enum coll_level_kind level)
{
	const double gap = gap_in_use(machine, level);
	const double beta = level == COLL_LEVEL_CLUSTER ? machine->beta : machine->inside[level].beta;

	return gap > 0 ? gap : beta > 0 ? beta : level == COLL_LEVEL_CLUSTER ? COLL_USUAL_BETA : usual_gap_inside;
}

/* The recent ones. Returns their number. */
static uint32_t own_recent(const struct coll_own_messages *messages, uint32_t recent,
			   struct coll_own_message one[OWN_SENDS])
{
	const uint32_t kept = messages->count < OWN_SENDS ? messages->count : OWN_SENDS;
	uint32_t known = 0, i;

	for (i = 0; i < kept; i++)
		if (own_is_recent(messages->latest[i].run, recent))
			one[known++] = messages->latest[i];
	return known;
}

/* Whether most of the longest sends waited. */
static bool longest_waited(const struct coll_own_message *send, uint32_t known)
{
	double longest = 0;
	uint32_t waited = 0, all = 0, i;

	for (i = 0; i < known; i++)
		if (send[i].bytes > longest)
			longest = send[i].bytes;
	for (i = 0; i < known; i++)
		if (2 * send[i].bytes > longest) {
			all++;
			waited += send[i].waited;
		}
	return 2 * waited > all;
}

/* A line through them; false: they tell none. Sorts what it makes of them, which is in `sample`. */
static bool own_line(const struct coll_own_message *one, uint32_t known, struct coll_fit_sample sample[OWN_SENDS],
		     struct coll_fit_line *line)
{
	uint32_t i;

	for (i = 0; i < known; i++)
		sample[i] = (struct coll_fit_sample){ one[i].bytes, one[i].seconds };
	return known >= OWN_LEAST && coll_fit_line(sample, known, line);
}

static void own_fit_sends(const struct coll_own_costs *own, const struct coll_machine *machine,
			  enum coll_level_kind level, uint32_t recent, struct coll_own_found *found)
{
	struct coll_own_message send[OWN_SENDS];
	const uint32_t known = own_recent(&own->send[level], recent, send);
	const double usual = gap_or_usual(machine, level);
	struct coll_fit_sample sample[OWN_SENDS];
	struct coll_fit_line line = { 0, usual };

	if (!own_line(send, known, sample, &line))
		return;
	if (coll_fit_tells_base(sample, known, &line))
		found->overhead[level] = line.base;
	if (!coll_fit_tells_slope(sample, known, &line) || coll_cost_is_found(line.slope, usual))
		return;
	/* What a core copies is the least that the wire takes. */
	if (level != COLL_LEVEL_CLUSTER || longest_waited(send, known) ||
	    (gap_in_use(machine, level) > 0 && line.slope > gap_in_use(machine, level)))
		found->byte_gap[level] = line.slope;
}

static void own_fit_takes(const struct coll_own_costs *own, const struct coll_machine *machine,
			  enum coll_level_kind level, uint32_t recent, struct coll_own_found *found)
{
	struct coll_own_message take[OWN_SENDS];
	const uint32_t known = own_recent(&own->take[level], recent, take);
	struct coll_fit_sample sample[OWN_SENDS];
	struct coll_fit_line line = { 0, gap_or_usual(machine, level) };

	if (own_line(take, known, sample, &line) && coll_fit_tells_base(sample, known, &line) &&
	    line.base > found->overhead[level])
		found->overhead[level] = line.base;
}

struct coll_own_found coll_own_fit(const struct coll_own_costs *own, const struct coll_machine *machine,
				   uint32_t recent)
{
	struct coll_own_found found = { .gamma = own_gamma(own, recent) };
	enum coll_level_kind level;

	for (level = 0; level < COLL_LEVELS_MAX; level++) {
		own_fit_sends(own, machine, level, recent, &found);
		own_fit_takes(own, machine, level, recent, &found);
	}
	return found;
}

/* ---- slots ----------------------------------------------------------------------- */

uint32_t coll_own_slot_of(uint32_t rank, uint32_t ranks, uint32_t call)
{
	const uint32_t slot = (uint64_t)rank * OWN_SLOTS / ranks;
	uint32_t first, next;

	if (ranks <= OWN_SLOTS)
		return rank;
	first = ((uint64_t)slot * ranks + OWN_SLOTS - 1) / OWN_SLOTS;
	next = ((uint64_t)(slot + 1) * ranks + OWN_SLOTS - 1) / OWN_SLOTS;
	return rank == first + coll_samples_mix((uint64_t)call << 32 | slot) % (next - first) ? slot : COLL_NONE;
}

static uint64_t own_code(double seconds)
{
	const float value = seconds;
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return seconds > 0 && seconds < own_seconds_most ? bits >> CODE_SHIFT : 0;
}

/* No mathematics: all ranks read the same. */
static double own_decode(uint64_t word, uint32_t at)
{
	const uint32_t bits = (uint32_t)(word >> at * CODE_BITS & 0xffff) << CODE_SHIFT;
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value > 0 && value < own_seconds_most ? value : 0;
}

struct coll_own_slot coll_own_write(const struct coll_own_found *found)
{
	struct coll_own_slot slot = { { 1ull << (CODES - 1) * CODE_BITS,
					own_code(found->gamma) << (CODES - 1) * CODE_BITS } };
	uint32_t level;

	_Static_assert((int)COLL_LEVELS_MAX < (int)CODES, "a word has all levels");
	for (level = 0; level < COLL_LEVELS_MAX; level++) {
		slot.word[0] |= own_code(found->overhead[level]) << level * CODE_BITS;
		slot.word[1] |= own_code(found->byte_gap[level]) << level * CODE_BITS;
	}
	return slot;
}

bool coll_own_read(const struct coll_own_slot *slot, struct coll_own_found *found)
{
	uint32_t level;

	for (level = 0; level < COLL_LEVELS_MAX; level++) {
		found->overhead[level] = own_decode(slot->word[0], level);
		found->byte_gap[level] = own_decode(slot->word[1], level);
	}
	found->gamma = own_decode(slot->word[1], CODES - 1);
	return slot->word[0] >> (CODES - 1) * CODE_BITS == 1;
}
