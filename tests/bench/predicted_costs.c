// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * predicted_costs [-c COLLECTIVE] [-b BYTES] [-n NODES] [-e RANKS] [-f FILE] [KEY=VALUE ...]
 *
 * What each algorithm of a call is predicted to take where nodes of RANKS (4) share cores, NODES of them (4), beside the
 * messages that it sends: a vector, or a block of each rank, of BYTES (8); COLLECTIVE allreduce. Costs by the names of the library's
 * options (alpha=5us, node_beta=0.4ns, ...), or by a file as `coll tune` writes it; crowding=8: ranks per core.
 *
 * predicted	us, with the tuning that the library would choose; * is its choice
 * alone	the same if each rank had a core
 * work		us of all cores by the formula: of wires nothing but what cores do for them
 * counted	the same by the schedules' messages, bytes, sums and copies, each at its cost
 *
 * Where work and counted differ, a formula counts other messages than its algorithm sends; tests/bench/lab_cores.sh
 * measures the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algo/common/levels.h"
#include "algo/tuning.h"

enum { RANKS_MAX = 1024, SCHEDULE_BYTES = 64 << 20 };

static struct coll_machine machine = { .crowding = 8 };

static const struct cost_key {
	const char *name;
	double *value;
} cost_keys[] = {
	{ "alpha", &machine.alpha },
	{ "overhead", &machine.overhead },
	{ "beta", &machine.beta },
	{ "byte_gap", &machine.byte_gap },
	{ "byte_work", &machine.byte_work },
	{ "gamma", &machine.gamma },
	{ "crowding", &machine.crowding },
	{ "node_alpha", &machine.inside[COLL_LEVEL_NODE].alpha },
	{ "node_overhead", &machine.inside[COLL_LEVEL_NODE].overhead },
	{ "node_beta", &machine.inside[COLL_LEVEL_NODE].beta },
	{ "node_byte_gap", &machine.inside[COLL_LEVEL_NODE].byte_gap },
};

/* What all ranks' schedules have. */
struct counted {
	u32 inside, between;
	double bytes_inside, bytes_between, reduced;	/* ... or copied */
};

static double unit_of(const char *unit)
{
	return !strcmp(unit, "ns") ? 1e-9 : !strcmp(unit, "us") ? 1e-6 : !strcmp(unit, "ms") ? 1e-3 : 1;
}

/* "alpha=5us", "alpha = 5us # ...", "# crowding = 8"; false: no cost. */
static bool cost_read(const char *text)
{
	char name[40], unit[8] = "";
	double value;
	size_t i;

	text += strspn(text, "# ");
	if (sscanf(text, "%39[a-z_] = %lf%7[a-z]", name, &value, unit) < 2)
		return false;
	for (i = 0; i < sizeof(cost_keys) / sizeof(*cost_keys); i++)
		if (!strcmp(cost_keys[i].name, name)) {
			*cost_keys[i].value = value * unit_of(unit);
			return true;
		}
	return false;
}

static bool costs_read(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[400];

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		cost_read(line);
	fclose(file);
	return true;
}

static bool collective_read(const char *name, enum coll_collective *collective)
{
	u32 i;

	for (i = 0; i < COLL_COLLECTIVES; i++)
		if (!strcmp(coll_collective_names[i], name)) {
			*collective = i;
			return true;
		}
	return false;
}

static void count_op(const struct coll_schedule *s, const struct coll_op *op, u32 each, struct counted *sum)
{
	if (op->kind == COLL_OP_REDUCE || op->kind == COLL_OP_COPY)
		sum->reduced += op->bytes;
	if (op->kind != COLL_OP_SEND)
		return;
	if (coll_peers(s)[op->peer].rank / each == s->rank / each) {
		sum->inside++;
		sum->bytes_inside += op->bytes;
	} else {
		sum->between++;
		sum->bytes_between += op->bytes;
	}
}

/* False: a schedule is too large. */
static bool count_all(const struct coll_algo *algo, struct coll_call call, const struct coll_tuning *tuning, u32 each,
		      void *memory, struct counted *sum)
{
	struct coll_schedule *s;
	u32 i;

	*sum = (struct counted){ 0 };
	for (call.rank = 0; call.rank < call.ranks; call.rank++) {
		if (coll_algo_emit(algo, &call, tuning, memory, SCHEDULE_BYTES, &s))
			return false;
		for (i = 0; i < s->ops; i++)
			count_op(s, &coll_ops(s)[i], each, sum);
	}
	return true;
}

/* One core for all ranks, and wires that take nothing: time is the work of all. */
static struct coll_machine machine_of_cores(u32 ranks)
{
	struct coll_machine work = coll_machine_or_usual(&machine);

	if (work.byte_work <= 0)
		work.byte_work = work.beta < COLL_USUAL_BETA ? work.beta : COLL_USUAL_BETA;
	work.inside[COLL_LEVEL_NODE] = coll_inside_cost(&work, COLL_LEVEL_NODE);
	work.alpha = coll_wire_work(&work);
	work.beta = work.byte_gap = 1e-18;	/* 0 is unknown */
	work.core_delay = 1e-18;
	work.crowding = ranks;
	return work;
}

static void algo_print(const struct coll_algo *algo, const struct coll_call *call, u32 each, void *memory, bool chosen)
{
	const struct coll_machine work = machine_of_cores(call->ranks);
	const struct coll_level_cost inside = work.inside[COLL_LEVEL_NODE];
	struct coll_tuning tuning = COLL_TUNING_UNSET, tuning_alone = tuning;
	struct coll_machine alone = machine;
	char options[200], name[240];
	struct counted n;

	alone.crowding = 0;
	coll_tuning_choose(algo, call, &machine, &tuning);
	coll_tuning_choose(algo, call, &alone, &tuning_alone);
	if (!count_all(algo, *call, &tuning, each, memory, &n))
		return;
	coll_tuning_print(&tuning, options, sizeof(options));
	snprintf(name, sizeof(name), "%s%s%s%s", chosen ? "*" : "", algo->name, *options ? ":" : "", options);
	printf("%-44s %10.1f %10.1f %10.1f %10.1f  %6u %7u %9.3f %9.3f %9.3f\n", name,
	       1e6 * coll_algo_predict(algo, call, &tuning, &machine),
	       1e6 * coll_algo_predict(algo, call, &tuning_alone, &alone), 1e6 * coll_algo_predict(algo, call, &tuning, &work),
	       1e6 * (n.inside * inside.alpha + n.bytes_inside * inside.beta + n.between * work.alpha +
		      n.bytes_between * work.byte_work + n.reduced * work.gamma),
	       n.inside, n.between, n.bytes_inside / 1e6, n.bytes_between / 1e6, n.reduced / 1e6);
}

static int call_print(const struct coll_call *call, u32 each)
{
	const struct coll_tuning unset = COLL_TUNING_UNSET;
	const struct coll_algo *best = coll_algo_choose(call, &unset, &machine), *const *algo;
	void *memory = malloc(SCHEDULE_BYTES);

	if (!memory)
		return 1;
	printf("%-44s %10s %10s %10s %10s  %6s %7s %9s %9s %9s\n", "algorithm", "predicted", "alone", "work", "counted",
	       "inside", "between", "MB inside", "between", "sums");
	for (algo = coll_algos; *algo; algo++)
		if ((*algo)->collective == call->collective && !(*algo)->baseline && !(*algo)->clusters &&
		    !coll_algo_refuses(*algo, call, &unset))
			algo_print(*algo, call, each, memory, *algo == best);
	free(memory);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}

static int usage(const char *what)
{
	fprintf(stderr, "predicted_costs: %s\nusage: predicted_costs [-c COLLECTIVE] [-b BYTES] [-n NODES] [-e RANKS] [-f FILE] "
		"[KEY=VALUE ...]    NODES and RANKS: 2 at least, %d ranks in all\n", what, RANKS_MAX);
	return 2;
}

int main(int argc, char **argv)
{
	static u32 node_of[RANKS_MAX];
	const u32 *const of[COLL_LEVELS_MAX] = { [COLL_LEVEL_NODE] = node_of };
	struct coll_call call = { .collective = COLL_ALLREDUCE, .type = COLL_DOUBLE, .reduction = COLL_SUM, .element = 8,
				  .commutative = true };
	unsigned long nodes = 4, each = 4, bytes = 8;
	struct coll_levels levels;
	int option, error;
	void *memory;
	u32 i;

	while ((option = getopt(argc, argv, "c:b:n:e:f:")) != -1) {
		if (option == 'c' && !collective_read(optarg, &call.collective))
			return usage("-c: no such collective");
		if (option == 'f' && !costs_read(optarg))
			return usage("-f: no such file");
		if (option == '?')
			return usage("no such option");
		bytes = option == 'b' ? strtoul(optarg, NULL, 10) : bytes;
		nodes = option == 'n' ? strtoul(optarg, NULL, 10) : nodes;
		each = option == 'e' ? strtoul(optarg, NULL, 10) : each;
	}
	for (; optind < argc; optind++)
		if (!cost_read(argv[optind]))
			return usage("a cost is KEY=VALUE: alpha=5us, byte_work=7ns, crowding=8");
	if (nodes < 2 || nodes > RANKS_MAX || each < 2 || each > RANKS_MAX || nodes * each > RANKS_MAX)
		return usage("wrong number of nodes or ranks");
	call.ranks = nodes * each;
	call.count = call.collective == COLL_BARRIER ? 0 : bytes / call.element;
	for (i = 0; i < call.ranks; i++)
		node_of[i] = i / each;
	memory = malloc(coll_levels_bytes(call.ranks));
	if (!memory)
		return 1;
	coll_levels_make(of, call.ranks, memory, &levels);
	call.level = levels.count ? levels.level : NULL;
	call.levels = levels.count;
	error = call_print(&call, each);
	free(memory);
	return error;
}
