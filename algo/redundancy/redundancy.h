/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Redundant exchanges: how many, where, and how much of the noise remains. The model is derived
 * in docs/guide/choosing-T.md.
 */
#ifndef COLL_REDUNDANCY_H
#define COLL_REDUNDANCY_H

#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

enum {
	REDUNDANCY_RELAYED_T = 3,	/* default T of the relayed butterfly */
	REDUNDANCY_RELAY_EVERY = 5,	/* and a relay after this many exchanges */
};

struct coll_redundancy {
	u32 exchanges;		/* T; 0: the plain butterfly */
	u32 relays;		/* blocks' results are passed on after this many exchanges */
};

/* The k-th of the relays (1 .. relays) comes after this exchange of K: evenly spread. */
static inline u32 redundancy_relay_after(u32 exchanges, struct coll_redundancy with, u32 k)
{
	return exchanges * k / (with.relays + 1);
}

static inline bool redundancy_relays_at(u32 exchanges, struct coll_redundancy with, u32 after)
{
	u32 k;

	for (k = 1; with.exchanges && k <= with.relays; k++)
		if (redundancy_relay_after(exchanges, with, k) == after)
			return true;
	return false;
}

/* T and relays of butterfly-redundant and butterfly-relayed from their options. */
struct coll_redundancy coll_redundancy_of(const struct coll_call *call,
					  const struct coll_tuning *tuning);
struct coll_redundancy coll_redundancy_relayed_of(const struct coll_call *call,
						  const struct coll_tuning *tuning);

/* Seconds without noise. */
double coll_redundancy_cost(const struct coll_call *call, struct coll_redundancy with,
			    const struct coll_machine *m);

/*
 * Mean seconds that noise adds. With T = 0 this is the delay of any algorithm with as many
 * rounds as `exchanges`, which may exceed those of the ranks.
 */
double coll_redundancy_delay(const struct coll_call *call, struct coll_redundancy with,
			     const struct coll_machine *m);

/* The part of it beyond the delay that a single rank's event causes. */
double coll_redundancy_delay_again(const struct coll_call *call, struct coll_redundancy with,
				   const struct coll_machine *m);

/* Replicas of each of so many nodes, which exchange in so many steps. */
struct coll_replicas {
	u32 replicas, nodes, steps;
};

/* Mean seconds that noise adds where these pass on each sum inside their node. */
double coll_replicas_delay(const struct coll_call *call, const struct coll_replicas *with,
			   const struct coll_machine *m);

/*
 * The T, and up to `most_relays` relays, with the least time of noise and messages together;
 * the fewest within 1 %. Without noise, or with two or three ranks: none. Takes some milliseconds
 * for each kind of noise.
 */
struct coll_redundancy coll_redundancy_best(const struct coll_call *call, u32 most_relays,
					    const struct coll_machine *m);

#endif
