/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * coll bench: what is measured (options), one call with its data and the check
 * of its result (bench_call.c), the loop of one rank (bench_rank.c), figures
 * (bench_figures.c), and how they are told (bench_report.c, bench_plot.c).
 */
#ifndef COLL_BENCH_H
#define COLL_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcoll/coll.h"
#include "algo/common/algo.h"

enum {
	BENCH_ALGOS_MAX = 16,
	BENCH_SIZES_MAX = 32,
	BENCH_VARIANTS = 2,	/* inputs, in turn: a result left over is seen */
};

struct bench_options {
	enum coll_collective collective;
	int ranks;
	char *algorithms;		/* as given, or NULL */
	char *algo[BENCH_ALGOS_MAX];
	uint64_t size[BENCH_SIZES_MAX];	/* bytes of the vector, or of each block */
	int algos, sizes;
	int type, op;
	char inject[512];		/* "": as the environment says */
	uint64_t seed;			/* of it; COLL_UNSET: not given */
	const char *engine;
	uint64_t iterations;		/* 0: as many as fit into `seconds` */
	double seconds;			/* per size, all algorithms together */
	uint64_t warmup;
	uint64_t pause;			/* ns before each call, in which the ranks sleep */
	bool json, csv, counters, check;
	bool clock;	/* ranks begin by the clock, not when they leave a barrier */
	const char *plot;
	const char *samples;		/* file of the slowest rank's times, or NULL */
	const char *base;		/* the same of calls without injection, in turn */
};

/* ---- one call (bench_call.c) --------------------------------------------------- */

struct bench_data {
	enum coll_collective collective;
	int type, op, root, rank, ranks;
	size_t count;			/* elements of the vector, or of each block */
	void *in[BENCH_VARIANTS], *expected[BENCH_VARIANTS], *out;
	size_t out_bytes;		/* that this rank gets */
	size_t *counts, *displs;	/* equal blocks, for the v forms */
};

bool bench_reduces(enum coll_collective collective);
void bench_data_make(struct bench_data *data);
void bench_data_free(struct bench_data *data);
/* Before a call: the output is made wrong everywhere, or the input put into it. */
void bench_data_prepare(struct bench_data *data, int variant);
int bench_data_call(struct bench_data *data, int variant, struct coll_group *group);
/* The same, nonblocking. */
int bench_data_start(struct bench_data *data, int variant, struct coll_group *group,
		     struct coll_run **run);
/* Where the result differs from what it should be; -1: nowhere. */
ptrdiff_t bench_data_check(const struct bench_data *data, int variant);

/* ---- figures (bench_figures.c) ----------------------------------------------------- */

/* Microseconds. */
struct bench_figures {
	double mean, p50, p90, p99, p999, max, min;
};

/* Sorts the samples. */
struct bench_figures bench_figures(double *samples, size_t count);

/* What the engine did per run and rank. */
struct bench_counts {
	double enters, syscalls, sends, sent_bytes, copied_bytes, unexpected, stale,
		allocations, far_sends, far_bytes, streamed;
};

enum { BENCH_COUNTS = sizeof(struct bench_counts) / sizeof(double) };

struct bench_result {
	uint64_t iterations;
	uint64_t wrong;			/* results, over all ranks */
	struct bench_figures slowest;	/* of the slowest rank of each iteration */
	struct bench_figures ranks;	/* of the mean over the ranks of each iteration */
	struct bench_counts counts;
};

/* Where and how it was measured. */
struct bench_setting {
	int ranks, cores;
	char engine[16], congestion[32], kernel[144], wait[64];
	char inject[512];		/* "": nothing */
};

struct bench_report {
	const struct bench_options *options;
	struct bench_setting setting;
	struct bench_result (*result)[BENCH_ALGOS_MAX];	/* [size][algo] */
};

/* ---- reading options (cmd_bench.c) ------------------------------------------------- */

/* getopt reorders what it reads, and reading cuts lists up: both on a copy. */
char **bench_copy_arguments(int argc, char **argv);

/* ---- telling ------------------------------------------------------------------- */

/* "8", "8K", "1M". Returns `text`. */
const char *bench_size(uint64_t bytes, char text[24]);
void bench_print_table(const struct bench_report *report);
void bench_print_json(const struct bench_report *report);
void bench_print_csv(const struct bench_report *report);
/* Writes options->plot and the gnuplot script beside it. 0, or it said why not. */
int bench_plot(const struct bench_report *report);

/* ---- a rank -------------------------------------------------------------------- */

/* Measures as one rank of the job in the environment; rank 0 reports. Exit code. */
int bench_rank(const struct bench_options *options);

#endif
