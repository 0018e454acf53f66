/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * coll bench.
 *
 *	cmd_bench.c	the command: options, starting the ranks
 *	rank.c		the measuring loop of one rank
 *	call.c		one call with its data, and the check of its result
 *	figures.c	percentiles
 *	report.c, plot.c	tables, JSON, CSV; a picture
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
	BENCH_VARIANTS = 2,	/* inputs, in turn: the check sees an old result */
};

struct bench_options {
	enum coll_collective collective;
	int ranks;
	char *algorithms;		/* as given, or NULL */
	char *algo[BENCH_ALGOS_MAX];
	uint64_t size[BENCH_SIZES_MAX];	/* bytes of the vector, or of each block */
	int algos, sizes;
	int type, op;
	char inject[512];		/* "": by the environment */
	uint64_t seed;			/* bytes of an element; COLL_UNSET: not given */
	const char *engine;
	uint64_t iterations;		/* 0: as many as fit into `seconds` */
	double seconds;			/* per size, all algorithms together */
	uint64_t warmup;
	uint64_t pause;			/* ns that the ranks sleep before each call */
	bool json, csv, counters, check;
	bool allocated;	/* buffers are memory of coll_alloc() */
	bool clock;	/* ranks start at an agreed time, not when they leave a barrier */
	const char *plot;
	const char *samples;		/* file for the slowest rank's times, or NULL */
	const char *base;		/* the same for calls without injection, which alternate */
};

/* ---- one call (call.c) ------------------------------------------------------ */

struct bench_data {
	enum coll_collective collective;
	int type, op, root, rank, ranks;
	size_t count;			/* elements of the vector, or of each block */
	void *in[BENCH_VARIANTS], *expected[BENCH_VARIANTS], *out;
	size_t out_bytes;		/* received by this rank */
	size_t *counts, *displs;	/* equal blocks, for the v forms */
	struct coll_context *context;	/* whose coll_alloc() gives the buffers; NULL: malloc() */
};

bool bench_reduces(enum coll_collective collective);
void bench_data_make(struct bench_data *data);
void bench_data_free(struct bench_data *data);
/* Before a call: fills the output with wrong values, or with the input if in place. */
void bench_data_prepare(struct bench_data *data, int variant);
int bench_data_call(struct bench_data *data, int variant, struct coll_group *group);
/* The same, nonblocking. */
int bench_data_start(struct bench_data *data, int variant, struct coll_group *group,
		     struct coll_run **run);
/* The first byte that differs from the correct result; -1: none. */
ptrdiff_t bench_data_check(const struct bench_data *data, int variant);

/* ---- figures (figures.c) ------------------------------------------------------------ */

/* Microseconds. */
struct bench_figures {
	double mean, p50, p90, p99, p999, max, min;
};

/* Sorts the samples. */
struct bench_figures bench_figures(double *samples, size_t count);

/* What the engine did, per run and rank. */
struct bench_counts {
	double enters, syscalls, sends, sent_bytes, copied_bytes, unexpected, stale,
		allocations, far_sends, far_bytes, exposed_bytes, mapped_bytes, published_bytes, board_sends, streamed;
};

enum { BENCH_COUNTS = sizeof(struct bench_counts) / sizeof(double) };

struct bench_result {
	uint64_t iterations;
	uint64_t wrong;			/* results, on all ranks */
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

/* ---- options (cmd_bench.c) ------------------------------------------------------------ */

/* Works on copies: getopt reorders arguments, and lists are cut up. */
char **bench_copy_arguments(int argc, char **argv);
/* Whether "ALGORITHM" or "ALGORITHM:K=V,..." is one of the collective; if not, says which are. */
bool bench_algo_is_valid(const char *command, enum coll_collective collective, const char *text);

/* ---- reports ------------------------------------------------------------------- */

/* "8", "8K", "1M". Returns `text`. */
const char *bench_size(uint64_t bytes, char text[24]);
void bench_print_table(const struct bench_report *report);
void bench_print_json(const struct bench_report *report);
void bench_print_csv(const struct bench_report *report);
/* Writes options->plot and the gnuplot script beside it. Errors are reported on stderr. */
int bench_plot(const struct bench_report *report);

/* ---- a rank -------------------------------------------------------------------- */

/* Measures as one rank of the job in the environment; rank 0 reports. Returns the exit code. */
int bench_rank(const struct bench_options *options);

#endif
