/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * What calls cost, in the flight page: sums of all runs, and the times of some (uapi/coll_flight.h).
 * A run that is not timed pays for one comparison an op and a few additions at its end. One that
 * is timed looks at the clock for its first message to and from each peer.
 */
#ifndef COLL_FLIGHT_TIMED_H
#define COLL_FLIGHT_TIMED_H

#include "flight.h"

/*
 * How often the kernel is asked at most how long this thread had no core: it takes some us. Where runs take
 * so long that this does not matter, looks that were not made are kept, as many as the runs of a block take.
 */
enum { COLL_FLIGHT_DELAY_LOOK_NS = 1000000, COLL_FLIGHT_DELAY_LONG_NS = 50000 };

/* Runs are drawn in blocks of so many: why a rank came late to one may be seen in the one before. */
enum { COLL_FLIGHT_BLOCK = 4, COLL_FLIGHT_DELAY_LOOKS = 2 * COLL_FLIGHT_BLOCK };

/* The level that a run draws: n or more with a probability of 2^-n. The same on all ranks. */
static inline uint32_t coll_flight_draw(uint64_t group, uint32_t number)
{
	uint64_t value = group * 0x9e3779b97f4a7c15ull + number / COLL_FLIGHT_BLOCK + 1;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ value >> 27) * 0x94d049bb133111ebull;
	value ^= value >> 31;
	return value ? __builtin_ctzll(value) : 64;
}

/*
 * A run begins. Returns one more than its entry if it is timed, else 0. The entry is given away
 * when the level rises: then what follows does nothing.
 */
uint32_t coll_flight_timed_begin(struct coll_flight *flight, uint64_t group, uint32_t number,
				 uint64_t now);

/* The entry of a timed run, or NULL: it has lost it. `timed`: from coll_flight_timed_begin(). */
struct coll_flight_timed *coll_flight_timed_of(const struct coll_flight *flight, uint32_t timed,
					       uint64_t group, uint32_t number);

/*
 * With this rank of the job: the first message is queued; the first receive has started; its message turns out to be
 * here already; it has its message. The second of each is ignored.
 */
void coll_flight_timed_sent(struct coll_flight_timed *run, uint32_t peer, uint64_t now);
void coll_flight_timed_posted(struct coll_flight_timed *run, uint32_t peer, uint64_t now);
void coll_flight_timed_found(struct coll_flight_timed *run, uint32_t peer, uint64_t now);
void coll_flight_timed_arrived(struct coll_flight_timed *run, uint32_t peer, uint64_t now);

/* It has ended well. */
void coll_flight_timed_end(struct coll_flight *flight, struct coll_flight_timed *run, uint64_t now);

/* The rank leaves the job: its record ends here. By the thread that makes progress. */
void coll_flight_left(struct coll_flight *flight, uint64_t now);

/* Adds a run that has ended well. */
static inline void coll_flight_sum_add(struct coll_flight_sum *sum, uint64_t ns)
{
	ns += !ns;
	sum->runs++;
	sum->ns += ns;
	if (ns < sum->shortest || !sum->shortest)
		sum->shortest = ns;
}

/* ... and those of another sum. */
void coll_flight_sum_join(struct coll_flight_sum *sum, const struct coll_flight_sum *other);

#endif
