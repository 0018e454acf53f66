// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * simulated_choice [-m RANKS] [-a]
 *
 * What the choice of an algorithm loses to the best one, simulated: each collective, 8 B to 1 MB,
 * 2 to RANKS ranks (256), on a network of 20 us (2 us of them at each end), 4 GB/s, 10 GB/s reduced,
 * without noise. The choice is the library's own, by the same numbers; its competitors are all algorithms
 * of the collective with the options that each chooses for itself. Prints the cells where the
 * choice takes over 1.1 of the best one's time, or with -a all, and what becomes of them together.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algo/common/algo.h"
#include "sim/sim.h"

static const double latency = 16e-6, overhead = 2e-6, byte_time = 0.25e-9, reduce_time = 0.1e-9;
static const double tolerated = 1.1;

static const u32 rank_counts[] = { 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 128, 192, 256, 384, 512,
				   768, 1024 };
static const u64 sizes[] = { 8, 1 << 10, 16 << 10, 64 << 10, 1 << 20 };
static const enum coll_collective collectives[] = {
	COLL_BARRIER, COLL_BCAST, COLL_REDUCE, COLL_ALLREDUCE, COLL_GATHER, COLL_SCATTER,
	COLL_ALLGATHER, COLL_REDUCE_SCATTER_BLOCK, COLL_ALLTOALL, COLL_SCAN, COLL_EXSCAN,
};

enum { LONGEST = 256 << 20 };	/* bytes of all blocks of a rank */

static const struct coll_machine machine = {
	.alpha = latency + 2 * overhead,
	.overhead = overhead,
	.beta = byte_time,
	.byte_gap = byte_time,
	.gamma = reduce_time,
	.crowding = 0.5,
};

static const struct sim_model model = {
	.costs = {
		.alpha = latency,
		.beta = byte_time,
		.gamma = reduce_time,
		.copy = reduce_time,
		.send = overhead,
		.recv = overhead,
		.redundant = overhead,
		.nic = byte_time,
		.eager = SIM_ALWAYS_EAGER,
	},
};

static struct sums {
	u32 cells, within;
	double logs, worst;
} all;

static bool has_blocks(enum coll_collective collective)
{
	return collective == COLL_GATHER || collective == COLL_SCATTER ||
	       collective == COLL_ALLGATHER || collective == COLL_ALLTOALL ||
	       collective == COLL_REDUCE_SCATTER_BLOCK;
}

static struct coll_call call_of(enum coll_collective collective, u32 ranks, u64 bytes)
{
	return (struct coll_call){
		.collective = collective,
		.ranks = ranks,
		.type = COLL_DOUBLE,
		.reduction = COLL_SUM,
		.element = 8,
		.commutative = true,
		.count = collective == COLL_BARRIER ? 0 : bytes / 8,
	};
}

/* Seconds; 0: it does not do such calls. */
static double simulate(const struct coll_algo *algo, const struct coll_call *call)
{
	struct sim_job job = { algo, *call, COLL_TUNING_UNSET };
	struct sim_outcome outcome;
	struct sim *sim;
	char why[200];
	int error;

	if (coll_algo_refuses(algo, call, &job.tuning))
		return 0;
	coll_tuning_choose(algo, call, &machine, &job.tuning);
	if (coll_algo_refuses(algo, call, &job.tuning) ||
	    sim_open(&job, &sim, why, sizeof(why)))
		return 0;
	error = sim_run(sim, &model, 1, SIM_ANY_PATH, &outcome, NULL);
	sim_close(sim);
	return error ? 0 : sim_seconds(outcome.finish);
}

static void cell_print(const struct coll_call *call, u64 bytes, const struct coll_algo *chosen,
		       const struct coll_algo *best, double seconds, double least)
{
	printf("%-22s %5u %8llu  %-20s %11.1f  %-20s %11.1f  %5.2f\n",
	       coll_collective_names[call->collective], call->ranks, (unsigned long long)bytes,
	       chosen->name, seconds * 1e6, best->name, least * 1e6, seconds / least);
}

static void cell(enum coll_collective collective, u32 ranks, u64 bytes, bool print_all)
{
	const struct coll_tuning unset = COLL_TUNING_UNSET;
	const struct coll_call call = call_of(collective, ranks, bytes);
	const struct coll_algo *chosen = coll_algo_choose(&call, &unset, &machine), *best = chosen;
	const double seconds = simulate(chosen, &call);
	double least = seconds, other;
	size_t i;

	for (i = 0; coll_algos[i]; i++) {
		if (coll_algos[i]->collective != collective || coll_algos[i] == chosen)
			continue;
		other = simulate(coll_algos[i], &call);
		if (other > 0 && other < least) {
			least = other;
			best = coll_algos[i];
		}
	}
	if (!(seconds > 0))
		return;
	all.cells++;
	all.within += seconds <= tolerated * least;
	all.logs += log(seconds / least);
	all.worst = fmax(all.worst, seconds / least);
	if (print_all || seconds > tolerated * least)
		cell_print(&call, bytes, chosen, best, seconds, least);
}

static void cells(enum coll_collective collective, u32 most, bool print_all)
{
	size_t r, b;

	for (r = 0; r < sizeof(rank_counts) / sizeof(*rank_counts); r++)
		for (b = 0; b < sizeof(sizes) / sizeof(*sizes); b++) {
			if (rank_counts[r] > most || (collective == COLL_BARRIER && b) ||
			    (has_blocks(collective) && sizes[b] * rank_counts[r] > LONGEST))
				continue;
			cell(collective, rank_counts[r], sizes[b], print_all);
		}
}

int main(int argc, char **argv)
{
	u32 most = 256;
	bool print_all = false;
	int option;
	size_t i;

	while ((option = getopt(argc, argv, "m:a")) != -1) {
		if (option == 'm')
			most = strtoul(optarg, NULL, 10);
		else if (option == 'a')
			print_all = true;
		else
			return 2;
	}
	if (optind != argc || most < 2 || most > 1024) {
		fprintf(stderr, "usage: simulated_choice [-m RANKS] [-a]    RANKS: 2 to 1024\n");
		return 2;
	}
	printf("%-22s %5s %8s  %-20s %11s  %-20s %11s  %5s\n", "collective", "ranks", "bytes", "choice",
	       "us", "best", "us", "ratio");
	for (i = 0; i < sizeof(collectives) / sizeof(*collectives); i++)
		cells(collectives[i], most, print_all);
	printf("%u cells, %u (%.0f %%) within 1.1 of the best, geometric mean %.3f, worst %.2f\n",
	       all.cells, all.within, 100.0 * all.within / all.cells, exp(all.logs / all.cells),
	       all.worst);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
