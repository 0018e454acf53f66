/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/*
 * The parts of coll sim flit.
 *
 *	cmd_flit.c	the command: the proof, the runs
 *	options.c	its options
 *	input.c		programs: traces from files, schedules
 *	output.c	tables, CSV, JSON
 */
#ifndef COLL_SIM_FLIT_H
#define COLL_SIM_FLIT_H

#include "algo/common/algo.h"
#include "flit/sweep.h"

enum { FLIT_VALUES_MAX = 256, FLIT_SEEDS_MAX = 1000 };

/* One run for each seed, policy and value of the axis. */
struct flit_plan {
	struct flit_net net;
	struct flit_config base;
	const char *machine;		/* the preset's name */
	enum flit_policy policy[FLIT_POLICIES];
	u32 policies;
	const char *axis;		/* "rate", "data", "rounds", "bytes" */
	double value[FLIT_VALUES_MAX];
	u32 values, seeds;
	struct flit_config *config;	/* [policy][value][seed] */
	struct flit_result *result;
	struct flit_proof proof;
	bool proved;
};

static inline struct flit_result *flit_results(const struct flit_plan *plan, u32 policy, u32 value)
{
	return &plan->result[(policy * plan->values + value) * plan->seeds];
}

/* ---- input.c ------------------------------------------------------------- */

/* Lines "CYCLE FROM TO FLITS"; # begins a comment. False: stderr has the reason. */
bool flit_read_trace(const char *name, u32 nodes, struct flit_work *work);

/* A collective by its names, as on the command line. */
struct flit_collective {
	const char *collective, *algorithm, *place;
	u32 ranks;
};

/* Emits every rank's schedule for `bytes`; places ranks. False: stderr has the reason. */
bool flit_emit(const struct flit_collective *collective, u64 bytes, u32 nodes, u64 seed,
	       struct flit_work *work);
void flit_input_free(struct flit_work *work);

/* ---- output.c ------------------------------------------------------------ */

void flit_print_table(const struct flit_plan *plan);
void flit_print_csv(const struct flit_plan *plan);
void flit_print_json(const struct flit_plan *plan);
/* The links over time, and the distribution of latencies: means over the seeds. */
bool flit_write_series(const struct flit_plan *plan, const char *name);
bool flit_write_distribution(const struct flit_plan *plan, const char *name);

#endif
