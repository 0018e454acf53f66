/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * coll bench overlap: nonblocking collectives beside a matrix-vector product, by
 * every way of progress. What is measured (cmd_bench_overlap.c), a rank of a job
 * with one way of progress (overlap_rank.c), and what is told (overlap_report.c).
 */
#ifndef COLL_OVERLAP_H
#define COLL_OVERLAP_H

#include <jansson.h>

#include "bench.h"

enum { OVERLAP_MODES = 5, OVERLAP_FLIGHT_MAX = 64 };
extern const char *const overlap_modes[OVERLAP_MODES + 1];

enum overlap_case {
	OVERLAP_COMPUTE,	/* the product alone */
	OVERLAP_PURE,		/* start and wait, no product */
	OVERLAP_BLOCKING,	/* blocking, then the product */
	OVERLAP_NONE,		/* start and wait, then the product */
	OVERLAP_TEST,		/* start, the product with calls in between, wait */
	OVERLAP_NOTEST,		/* start, the product, wait */
	OVERLAP_START,		/* of the one before: until all collectives had started */
	OVERLAP_PRODUCT,	/* and the product's own time */
	OVERLAP_TAKEN,		/* of that, what others ran on its CPU */
	OVERLAP_TAKEN_ALONE,	/* the same where the product is alone */
	OVERLAP_CASES,
};
extern const char *const overlap_cases[OVERLAP_CASES];

/* Where progress runs. */
enum overlap_place {
	OVERLAP_SHARED,		/* on the rank's CPU */
	OVERLAP_OWN,		/* on one where nobody computes */
	OVERLAP_KERNEL,		/* there if it is the kernel's, else on the rank's */
	OVERLAP_PLACES,
};

extern const char *const overlap_places[OVERLAP_PLACES + 1];

struct overlap_options {
	enum coll_collective collective;
	const char *algo;
	int ranks, threads, flight;
	uint64_t bytes, matrix, rows, calls, iterations, rounds;
	uint64_t pace;			/* bytes a second of a link; 0: as fast as it goes */
	bool mode[OVERLAP_MODES];
	enum overlap_place place;
	char inject[512];
	bool json;
	const char *plot;
};

/* ---- a rank --------------------------------------------------------------------- */

/*
 * Measures with the mode that the environment names. Rank 0 writes what came out as
 * JSON to `result`. Exit code.
 */
int overlap_rank(const struct overlap_options *options, const char *result);

/* How many CPUs compute here, the n-th of them, and the last of all; 0: there are too few. */
int overlap_cpus(enum overlap_place place, int n, int *compute, int *progress);

/* ---- the report ------------------------------------------------------------------ */

/* One mode: all samples of all rounds, or why there are none. */
struct overlap_mode {
	const char *name;
	char problem[300], explanation[700];
	double *sample[OVERLAP_CASES];	/* us, from the first rank's begin to the last one's end */
	size_t samples;
	uint64_t wrong;
	double idle_call;		/* ns of a call when nothing is in flight; the last round's */
};

struct overlap_report {
	const struct overlap_options *options;
	struct overlap_mode mode[OVERLAP_MODES];
	uint64_t rows;
};

void overlap_print_table(struct overlap_report *report);
void overlap_print_json(struct overlap_report *report);
int overlap_plot(struct overlap_report *report);

/* coll bench overlap; argv[0] is "overlap". */
int cmd_bench_overlap(int argc, char **argv);

#endif
