/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * Simulated calls of an allreduce under each choice of an algorithm, and what a few pairs of ranks
 * would have sampled of them. For online_choice.c.
 */
#ifndef COLL_BENCH_SIMULATED_CALLS_H
#define COLL_BENCH_SIMULATED_CALLS_H

#include "sim/random.h"
#include "sim/sim.h"

enum {
	CHOICES_MAX = 64,
	BYTES = 8,
};

enum kind { QUIET, NOISY, KINDS };

/* What one rank of an exchange knows; ns of its clock, 0: it did not happen. */
struct half {
	uint64_t sent, posted, arrived, held;
	bool waited; /* its message was not there yet */
};

struct exchange {
	u32 rank[2];
	struct half half[2];
};

/* A simulated call. */
struct measured {
	double seconds;
	struct exchange *exchange; /* bench.kept of them */
};

struct choice {
	const struct coll_algo *algo;
	struct coll_tuning tuning;
	struct measured *run[KINDS];
	double mean[KINDS];
};

struct bench {
	u32 ranks, exchanges, runs[KINDS], choices;
	u32 kept;    /* exchanges of a simulated call whose times are kept */
	struct sim_model model[KINDS];
	struct choice choice[CHOICES_MAX];
	bool *watched;
};

/* Ends the program with exit code 1. */
void bench_fail(const char *what, const char *why) __attribute__((noreturn));

/* The same numbers on every machine. */
static inline u64 bench_random(u64 *state)
{
	return *state = random_mix(*state + 0x9e3779b97f4a7c15ull);
}

struct coll_call bench_call(const struct bench *b);

/* Its number; a new one is added. */
u32 choice_of(struct bench *b, const struct coll_algo *algo, const struct coll_tuning *tuning);

/* Its simulated calls, on first use; then `mean` is known. */
const struct measured *choice_runs(const struct bench *b, struct choice *c, enum kind kind);

#endif
