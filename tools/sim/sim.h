/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
/* coll sim: the parsed options, and the results. */
#ifndef COLL_TOOLS_SIM_H
#define COLL_TOOLS_SIM_H

#include <stdio.h>

#include "core/noise/text.h"
#include "algo/common/levels.h"
#include "sim/sim.h"

enum { SIM_ALGOS_MAX = 16, SIM_RANKS_LIST_MAX = 64, SIM_SLOW_MAX = 16, SIM_NOISY_MAX = 16 };

struct sim_choice {
	const struct coll_algo *algo;
	struct coll_tuning tuning;
	bool best;		/* T: the one with the least mean */
};

enum sim_format { SIM_TABLE, SIM_JSON, SIM_CSV };

struct sim_options {
	int collective;
	const char *algorithms;			/* as given, or NULL */
	u32 choices, rank_counts;
	struct sim_choice choice[SIM_ALGOS_MAX];
	struct sim_choice automatic[SIM_RANKS_LIST_MAX];	/* used if none is given above */
	u32 ranks[SIM_RANKS_LIST_MAX];
	u64 size;			/* bytes of the vector, or of a block */
	u32 root;
	struct sim_model model;
	double overhead;		/* s of each end; costs.send and .recv override it */
	const char *os_noise[SIM_SOURCES_MAX], *link_noise;	/* as given */
	struct coll_noise_said said[SIM_SOURCES_MAX + 1];	/* the last: of links */
	u32 os_noises;
	struct sim_some_ranks {
		u32 count, rank[SIM_NOISY_MAX];
	} noisy, bad_links;			/* ranks that it hits, that noise of links hits; none: all */
	u32 runs, threads;
	u64 seed;
	enum sim_path path;
	enum sim_format format;
	bool all_runs;			/* also the time of each run */
	u32 bins;			/* of a histogram; 0: none */
	const char *plot;		/* FILE.svg, or NULL */
	const char *timeline;		/* file for the timeline of the first run, or NULL */
	bool critical_path;		/* print the critical path of the first run */
	bool prove;			/* one run with real bytes */
	bool speed;			/* print the simulator's own time */
	u32 clusters;
	struct sim_link wan;		/* between them */
	const char *levels;		/* as given, or NULL */
	struct coll_level_cost inside[COLL_LEVEL_CLUSTER];	/* see struct sim_nodes */
	/* coll sim replay */
	bool replay;
	char *const *file;
	u32 files;
	bool alike;			/* one rank's trace stands for all */
	double cpu;			/* factor on compute time */
	double unit;			/* seconds per unit of a GOAL calc */
	struct sim_choice chosen[COLL_COLLECTIVES];	/* algo NULL: automatic */
	double delta;			/* of circuits; 0: there are none */
	u32 ports, wavelengths;
	u32 slow_count;
	struct { u32 rank; double factor; } slow[SIM_SLOW_MAX];
};

/* Reads the command line of `coll sim` or `coll sim replay`; false: stderr says what is wrong. */
bool sim_options_read(int argc, char **argv, struct sim_options *options);
void sim_options_free(struct sim_options *options);

/* --- fit.c: whether options fit each other and each number of ranks; false: stderr says what does not --- */
bool sim_options_valid(const struct sim_options *options);

/* Whether clusters and the ranks that options name are there; false: stderr says which is not. */
bool sim_options_fit(const struct sim_options *options, u32 ranks);

/* One algorithm at one number of ranks. */
struct sim_row {
	const struct sim_choice *choice;
	struct coll_tuning tuning;	/* what ran */
	u32 ranks, runs;
	double *time;			/* of each run, in seconds, ascending */
	double mean, deviation, ideal;
	double others;			/* mean time of the last rank without noise */
	double ratio;			/* ratio to the reference's mean; 0: it is the reference */
	const struct sim_row *reference;
	u64 messages, events;		/* of the first run */
	u64 nic_sent, nic_received;	/* of a node, at most; 0 and 0: there are no nodes */
	enum sim_path path;
	u32 scanned;			/* T from 1 to this; 0: none */
	double *scan;			/* mean for each T */
	double cpu;			/* CPU seconds of the runs */
	double again;			/* mean of the best T in runs that did not select it */
};

/* The timeline and the critical path of one run, as options ask. */
bool sim_show_run(const struct sim_options *options, struct sim *sim,
		  const struct sim_model *model, u64 seed);
/* Proves by a run with real bytes that every rank's result is correct. */
bool sim_prove(const struct coll_call *call, struct sim *sim, const struct sim_model *model,
	       u64 seed);

/* The model for `ranks`; its pointers refer to `tables`. */
struct sim_tables {
	double *slowness;
	bool *noisy, *bad_links;
	u32 *area;
	struct sim_link link[64 * 64];
	struct sim_network network;
	u32 *node, *domain;
	struct sim_nodes nodes;
	struct coll_levels levels;	/* none: count is 0 */
	void *level_memory;
};
struct sim_model sim_model_of(const struct sim_options *options, u32 ranks,
			      struct sim_tables *tables);
void sim_tables_free(struct sim_tables *tables);
/* The call with the clusters and levels of the tables. */
void sim_tables_call(const struct sim_options *options, const struct sim_tables *tables,
		     struct coll_call *call);

/* ---- nodes.c: option levels ---- */

bool sim_nodes_wanted(const struct sim_options *options);
/* What the command line left open. */
void sim_nodes_settle(struct sim_options *options);
/* False: stderr says what is wrong. */
bool sim_nodes_valid(const struct sim_options *options, u32 ranks);
void sim_nodes_add(const struct sim_options *options, u32 ranks, struct sim_tables *tables,
		   struct sim_model *model);
void sim_nodes_free(struct sim_tables *tables);
void sim_nodes_machine(const struct sim_options *options, struct coll_machine *machine);

/* Machine parameters for the choice of an algorithm for a call. */
struct coll_machine sim_machine_of(const struct sim_options *options);

/* All runs, and one without noise; `name` is shown with the progress. Errors as sim_run(). */
int sim_measure(struct sim *sim, const struct sim_options *options, const struct sim_model *model,
		const char *name, u64 seed, struct sim_row *row);
/* Reports on stderr why it did not run; false. */
bool sim_explain(const char *name, u32 ranks, int error, const char *why);

/* "12.3 us" */
const char *sim_duration(double seconds, char *text, size_t bytes);
/* ', "NAME": NUMBER' */
void sim_json_number(FILE *to, const char *name, double number);
/* The parameters as JSON: "costs" and "noise". */
void sim_json_model(const struct sim_options *options, FILE *to);
/* Mean, ideal, effect and the distribution of the runs. */
void sim_json_times(const struct sim_row *row, FILE *to);

double sim_row_percentile(const struct sim_row *row, double percent);
void sim_report(const struct sim_options *options, const struct sim_row *row, u32 rows, FILE *to);
/* Draws options->plot; false: stderr has the reason. */
bool sim_plot(const struct sim_options *options, const struct sim_row *row);

#endif
