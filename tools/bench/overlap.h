/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * coll bench overlap: nonblocking collectives beside a matrix-vector product, by mode of progress.
 *
 *	cmd_overlap.c		the command: options, one job per mode
 *	overlap_rank.c		a rank of a job
 *	overlap_report.c	table, JSON, picture
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
	OVERLAP_BLOCKING,	/* blocking collective, then the product */
	OVERLAP_NONE,		/* start and wait, then the product */
	OVERLAP_TEST,		/* start, the product with calls in between, wait */
	OVERLAP_NOTEST,		/* start, the product, wait */
	OVERLAP_START,		/* of the case before: until all collectives had started */
	OVERLAP_PRODUCT,	/* the product's own time in it */
	OVERLAP_TAKEN,		/* part of that which other tasks ran on its CPU */
	OVERLAP_TAKEN_ALONE,	/* the same for the product alone */
	OVERLAP_CASES,
};
extern const char *const overlap_cases[OVERLAP_CASES];

/* CPU that progress runs on. */
enum overlap_place {
	OVERLAP_SHARED,		/* the rank's CPU */
	OVERLAP_OWN,		/* a CPU without computation */
	OVERLAP_KERNEL,		/* that one for progress in the kernel, else the rank's */
	OVERLAP_PLACES,
};

extern const char *const overlap_places[OVERLAP_PLACES + 1];

struct overlap_options {
	enum coll_collective collective;
	const char *algo;
	int ranks, threads, flight;
	uint64_t bytes, matrix, rows, calls, iterations, rounds;
	uint64_t pace;			/* bytes per second of a link; 0: not limited */
	bool mode[OVERLAP_MODES];
	enum overlap_place place;
	char inject[512];
	bool json;
	const char *plot;
};

/* ---- a rank --------------------------------------------------------------------- */

/*
 * Measures with the mode that the environment names. Rank 0 writes the samples as JSON to
 * `result`. Returns the exit code.
 */
int overlap_rank(const struct overlap_options *options, const char *result);

/*
 * Number of CPUs that compute; *compute: the n-th of them, *progress: the last of all. 0: too few.
 */
int overlap_cpus(enum overlap_place place, int n, int *compute, int *progress);

/* ---- the report ------------------------------------------------------------------ */

/* One mode: the samples of all rounds, or why there are none. */
struct overlap_mode {
	const char *name;
	char problem[300], explanation[700];
	double *sample[OVERLAP_CASES];	/* us, from the first rank's start to the last one's end */
	size_t samples;
	uint64_t wrong;
	double idle_call;		/* ns of coll_progress() without a run, in the last round */
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
