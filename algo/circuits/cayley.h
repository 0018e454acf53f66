/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * A Cayley graph: ranks are the elements of a group, and v has a circuit to v s for each of some
 * generators s. It looks the same from each rank: a path from 0 to g, as a word of generators,
 * leads from any v to v g, and when all ranks use the same words each circuit carries the same.
 * Where circuits are bidirectional, the generators contain their inverses, and k ports are k
 * neighbours: in D steps a graph of about (k-1)^D ranks, where de Bruijn's has (k/2)^D.
 *
 * The group is Z_m x Z_d with (a, b) (c, e) = (a + r^b c, b + e), r^d = 1 mod m. No formula gives
 * the best m, d, r and generators: some hundred are tried, the same on all ranks, in a
 * millisecond.
 */
#ifndef COLL_CAYLEY_H
#define COLL_CAYLEY_H

#include "algo/common/blocks.h"
#include "algo/common/ranks.h"

enum { CAYLEY_RANKS_MAX = 512, CAYLEY_LETTERS_MAX = COLL_PORTS_MAX };

/* Of an element g: the end of its shortest way from 0. */
struct coll_cayley_way {
	u32 parent;		/* g without the last letter */
	u32 order;		/* the i-th element by length of its way */
	u32 power;		/* r^i mod m, of the i-th */
	u16 level;		/* letters */
	u8 letter;		/* the last; number of a generator */
};

struct coll_cayley {
	u32 ranks, m, d, r;
	u32 letters, depth;
	u32 generator[CAYLEY_LETTERS_MAX];
	struct coll_cayley_way *way;	/* per element */
};

/* What coll_cayley_of() needs for each rank, in bytes; and coll_cayley_share(), of one rank or more. */
#define CAYLEY_TABLE_BYTES	(2 * sizeof(struct coll_cayley_way))
#define CAYLEY_SHARED	(CAYLEY_TABLE_BYTES + sizeof(struct coll_cayley))

u32 coll_cayley_product(const struct coll_cayley *g, u32 a, u32 b);
u32 coll_cayley_inverse(const struct coll_cayley *g, u32 a);

/* Generators: option `radix`, else as many as the ports, else 4; at least 2. */
struct coll_cayley coll_cayley_of(u32 ranks, const struct coll_tuning *tuning, void *arena);

/* The same, made once for all ranks: it is call->shared. */
void coll_cayley_share(const struct coll_call *call, const struct coll_tuning *tuning,
		       void *memory);
/* That, where it was made. */
struct coll_cayley coll_cayley_for(const struct coll_call *call, const struct coll_tuning *tuning,
				   void *arena);

/* The letter that a way has at `level`, from 1 on. */
u32 coll_cayley_letter(const struct coll_cayley *g, u32 element, u32 level);

/*
 * In each step, over each letter's circuit: the elements to send, then the elements to
 * receive. An empty list is no message.
 */
struct coll_cayley_walk {
	bool (*goes)(const void *user, u32 element, u32 step, u32 letter);
	void (*send)(void *user, u32 step, u32 letter, u32 elements);
	void (*recv)(void *user, u32 step, u32 letter, u32 elements);
};
void coll_cayley_steps(const struct coll_cayley *g, const struct coll_cayley_walk *walk,
		       void *user);

const char *coll_cayley_refuses(const struct coll_call *call, const struct coll_tuning *tuning);

/* To so many neighbours a rank sends in a step, at most. */
u32 coll_cayley_letters(u32 ranks, const struct coll_tuning *tuning);
/* About how long the longest way is, without looking: with more than three letters that is near. */
u32 coll_cayley_depth(u32 ranks, const struct coll_tuning *tuning);
/*
 * Of walks of all ranks whose bytes take `bytes` seconds: the messages of a step leave one after the
 * other. Where ranks share cores, each of them is work.
 */
double coll_cayley_cost(const struct coll_call *call, const struct coll_tuning *tuning,
			const struct coll_machine *m, double bytes);

#endif
