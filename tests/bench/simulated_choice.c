// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * simulated_choice [-m RANKS] [-l SIZE] [-a]
 *
 * What the choice of an algorithm loses to the best one, simulated: each collective, 8 B to 1 MB,
 * 2 to RANKS ranks (256), on a network of 20 us (2 us of them at each end), 4 GB/s, 10 GB/s reduced,
 * without noise. The choice is the library's own, by the same numbers; its competitors are all algorithms
 * of the collective with the options that each chooses for itself. With -l the ranks are on nodes of SIZE,
 * which share a NIC and have usual memory inside, and links between nodes have 50 us to 10 ms
 * and 0.1 to 5 Gbit/s. Prints the cells where the
 * choice takes over 1.1 of the best one's time, or with -a all, and what becomes of them together.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algo/common/levels.h"
#include "sim/sim.h"

static const double overhead = 2e-6, reduce_time = 0.1e-9;
static const double tolerated = 1.1;

/* The latency has the overheads of both ends. */
static const struct link_kind {
	const char *name;
	double alpha, beta;
} usual_link = { "20us/32G", 20e-6, 0.25e-9 }, node_links[] = {
	{ "50us/100M", 50e-6, 80e-9 }, { "50us/1G", 50e-6, 8e-9 }, { "50us/5G", 50e-6, 1.6e-9 },
	{ "1ms/100M", 1e-3, 80e-9 }, { "1ms/1G", 1e-3, 8e-9 }, { "1ms/5G", 1e-3, 1.6e-9 },
	{ "10ms/100M", 10e-3, 80e-9 }, { "10ms/1G", 10e-3, 8e-9 }, { "10ms/5G", 10e-3, 1.6e-9 },
};

static const u32 rank_counts[] = { 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 128, 192, 256, 384, 512,
				   768, 1024 };
static const u64 sizes[] = { 8, 1 << 10, 16 << 10, 64 << 10, 1 << 20 };
static const enum coll_collective collectives[] = {
	COLL_BARRIER, COLL_BCAST, COLL_REDUCE, COLL_ALLREDUCE, COLL_GATHER, COLL_SCATTER,
	COLL_ALLGATHER, COLL_REDUCE_SCATTER_BLOCK, COLL_ALLTOALL, COLL_SCAN, COLL_EXSCAN,
};

enum { LONGEST = 256 << 20 };	/* bytes of all blocks of a rank */

enum { RANKS_MAX = 1024 };

static struct coll_machine machine;
static struct sim_model model;

/* Where -l is given. */
static u32 node_size, node_of[RANKS_MAX];
static struct sim_nodes nodes;
static struct coll_levels levels;
static void *levels_memory;

static void machine_set(const struct link_kind *link)
{
	u32 kind;

	machine = (struct coll_machine){
		.alpha = link->alpha,
		.overhead = overhead,
		.beta = link->beta,
		.byte_gap = link->beta,
		.gamma = reduce_time,
		.crowding = 0.5,
	};
	model = (struct sim_model){
		.costs = {
			.alpha = link->alpha - 2 * overhead,
			.beta = link->beta,
			.gamma = reduce_time,
			.copy = reduce_time,
			.send = overhead,
			.recv = overhead,
			.redundant = overhead,
			.nic = link->beta,
			.eager = SIM_ALWAYS_EAGER,
		},
		.nodes = node_size ? &nodes : NULL,
	};
	for (kind = 0; kind < COLL_LEVEL_CLUSTER; kind++) {
		machine.inside[kind] = coll_inside_cost(&machine, kind);
		nodes.inside[kind] = machine.inside[kind];
		nodes.inside[kind].alpha -= 2 * nodes.inside[kind].overhead;
	}
}

/* Nodes for so many ranks. False: these are no whole nodes, or a single one. */
static bool nodes_set(u32 ranks)
{
	const u32 *const of[COLL_LEVELS_MAX] = { [COLL_LEVEL_NODE] = node_of };
	u32 i;

	if (!node_size)
		return true;
	if (ranks % node_size || ranks == node_size)
		return false;
	for (i = 0; i < ranks; i++)
		node_of[i] = i / node_size;
	nodes.nodes = ranks / node_size;
	nodes.node = node_of;
	coll_levels_make(of, ranks, levels_memory, &levels);
	return true;
}

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
		.level = node_size ? levels.level : NULL,
		.levels = node_size ? levels.count : 0,
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

static void cell_print(const char *link, const struct coll_call *call, u64 bytes, const struct coll_algo *chosen,
		       const struct coll_algo *best, double seconds, double least)
{
	printf("%-10s %-22s %5u %8llu  %-20s %11.1f  %-20s %11.1f  %5.2f\n", link,
	       coll_collective_names[call->collective], call->ranks, (unsigned long long)bytes,
	       chosen->name, seconds * 1e6, best->name, least * 1e6, seconds / least);
}

static void cell(const char *link, enum coll_collective collective, u32 ranks, u64 bytes, bool print_all)
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
		cell_print(link, &call, bytes, chosen, best, seconds, least);
}

static void cells(const struct link_kind *link, enum coll_collective collective, u32 most, bool print_all)
{
	size_t r, b;

	machine_set(link);
	for (r = 0; r < sizeof(rank_counts) / sizeof(*rank_counts); r++)
		for (b = 0; b < sizeof(sizes) / sizeof(*sizes); b++) {
			if (rank_counts[r] > most || (collective == COLL_BARRIER && b) ||
			    (has_blocks(collective) && sizes[b] * rank_counts[r] > LONGEST) ||
			    !nodes_set(rank_counts[r]))
				continue;
			cell(link->name, collective, rank_counts[r], sizes[b], print_all);
		}
}

int main(int argc, char **argv)
{
	const size_t links = sizeof(node_links) / sizeof(*node_links);
	u32 most = 256;
	bool print_all = false;
	int option;
	size_t i, k;

	while ((option = getopt(argc, argv, "m:l:a")) != -1) {
		if (option == 'm')
			most = strtoul(optarg, NULL, 10);
		else if (option == 'l')
			node_size = strtoul(optarg, NULL, 10);
		else if (option == 'a')
			print_all = true;
		else
			return 2;
		if (option == 'l' && (node_size < 2 || node_size > RANKS_MAX / 2)) {
			fprintf(stderr, "simulated_choice: -l %s; valid: 2 to %d ranks of a node\n",
				optarg, RANKS_MAX / 2);
			return 2;
		}
	}
	if (optind != argc || most < 2 || most > RANKS_MAX) {
		fprintf(stderr, "usage: simulated_choice [-m RANKS] [-l SIZE] [-a]    RANKS: 2 to %d\n",
			RANKS_MAX);
		return 2;
	}
	levels_memory = malloc(coll_levels_bytes(RANKS_MAX));
	if (!levels_memory)
		return 1;
	printf("%-10s %-22s %5s %8s  %-20s %11s  %-20s %11s  %5s\n", "link", "collective", "ranks",
	       "bytes", "choice", "us", "best", "us", "ratio");
	for (i = 0; i < sizeof(collectives) / sizeof(*collectives); i++)
		for (k = 0; k < (node_size ? links : 1); k++)
			cells(node_size ? &node_links[k] : &usual_link, collectives[i], most, print_all);
	free(levels_memory);
	if (!all.cells) {
		fprintf(stderr, "simulated_choice: no number of ranks up to %u makes nodes of %u\n", most,
			node_size);
		return 1;
	}
	printf("%u cells, %u (%.0f %%) within 1.1 of the best, geometric mean %.3f, worst %.2f\n",
	       all.cells, all.within, 100.0 * all.within / all.cells, exp(all.logs / all.cells),
	       all.worst);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
