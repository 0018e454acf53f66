// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What an algorithm refuses, what it costs, and which one is chosen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "algo/common/levels.h"
#include "algo/tuning.h"

static void unsuitable_calls_are_refused(void **state)
{
	const u64 counts[2] = { 3, 4 }, displs[2] = { 0, 4 };
	struct coll_call call = { .ranks = 2, .element = 8, .commutative = true, .count = 1 << 20,
				  .send_counts = counts, .send_displs = displs,
				  .recv_counts = counts, .recv_displs = displs };
	const struct coll_algo *bruck = coll_algo_find(COLL_ALLTOALLV, "bruck");
	const struct coll_algo *chain = coll_algo_find(COLL_BCAST, "chain");
	const struct coll_algo *binomial = coll_algo_find(COLL_GATHERV, "binomial");
	struct coll_tuning tuning = COLL_TUNING_UNSET;

	(void)state;
	assert_non_null(coll_algo_refuses(bruck, &call, &tuning));
	tuning.bound = 3;	/* less than a block that only two ranks know */
	assert_null(coll_algo_refuses(bruck, &call, &tuning));
	tuning.bound = COLL_UNSET - 1;
	assert_non_null(coll_algo_refuses(bruck, &call, &tuning));

	assert_null(coll_algo_refuses(chain, &call, &tuning));
	tuning.segment = 0;
	assert_non_null(coll_algo_refuses(chain, &call, &tuning));
	tuning.segment = 8;
	assert_non_null(coll_algo_refuses(chain, &call, &tuning));
	tuning.segment = 4096;
	assert_null(coll_algo_refuses(chain, &call, &tuning));

	assert_non_null(coll_algo_refuses(binomial, &call, &tuning));
	call.counts = counts;
	assert_null(coll_algo_refuses(binomial, &call, &tuning));
}

/* The choice must not depend on arguments that only some ranks have. */
static void all_ranks_choose_alike(void **state)
{
	const struct coll_machine machine = { .alpha = 0 };
	const u64 counts[4] = { 1 << 20, 1, 2, 3 };
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_call call = { .collective = COLL_GATHERV, .ranks = 4, .element = 1,
				  .commutative = true, .count = 3 };
	const struct coll_algo *elsewhere = coll_algo_choose(&call, &tuning, &machine);

	(void)state;
	call.counts = counts;
	call.count = counts[0];
	assert_non_null(elsewhere);
	assert_ptr_equal(coll_algo_choose(&call, &tuning, &machine), elsewhere);
}

/* Gives a call of up to 64 ranks its levels. */
static void levels_of(struct coll_call *call, const u32 *cluster)
{
	static u64 memory[1 << 12];
	static struct coll_levels levels;
	u32 node[64], i;
	const u32 *const of[COLL_LEVELS_MAX] = { [COLL_LEVEL_NODE] = node, [COLL_LEVEL_CLUSTER] = cluster };

	assert_true(coll_levels_bytes(call->ranks) <= sizeof(memory));
	for (i = 0; i < call->ranks; i++)
		node[i] = i / 4;
	coll_levels_make(of, call->ranks, memory, &levels);
	call->level = levels.count ? levels.level : NULL;
	call->levels = levels.count;
}

static void nodes_of_four(struct coll_call *call)
{
	levels_of(call, NULL);
}

/* Of two of these nodes each. */
static void clusters_of_eight(struct coll_call *call)
{
	static u32 cluster[64];
	u32 i;

	for (i = 0; i < call->ranks; i++)
		cluster[i] = i / 8;
	levels_of(call, cluster);
	call->cluster = cluster;
	call->clusters = call->ranks / 8;
}

/* Each predicted cost is a plausible time, and the choice follows the size. */
static void costs_are_times_and_the_choice_follows_the_size(void **state)
{
	const struct coll_machine machine = { .alpha = 20e-6, .overhead = 3e-6,
					      .beta = 0.25e-9, .gamma = 0.1e-9 };
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_call call = { .collective = COLL_BCAST, .ranks = 16, .element = 1,
				  .commutative = true };
	const struct coll_algo *few, *small, *large;
	const struct coll_algo *const *algo;
	u32 ranks;

	(void)state;
	tuning.bound = 8;
	for (algo = coll_algos; *algo; algo++)
		for (ranks = 1; ranks <= 40; ranks += 3) {
			struct coll_call any = { .collective = (*algo)->collective, .ranks = ranks,
						 .element = 8, .count = 100 };
			double seconds;

			any.commutative = true;
			nodes_of_four(&any);
			if ((*algo)->levels && coll_algo_refuses(*algo, &any, &tuning))
				continue;
			seconds = (*algo)->cost(&any, &tuning, &machine);
			if ((*algo)->collective <= COLL_ALLTOALLV)
				assert_true(ranks == 1 ? seconds < 1e-6 :
							 seconds > 1e-6 && seconds < 1);
		}
	call.count = 8;
	few = coll_algo_choose(&call, &tuning, &machine);
	call.ranks = 64;
	small = coll_algo_choose(&call, &tuning, &machine);
	call.count = 64 << 20;
	large = coll_algo_choose(&call, &tuning, &machine);
	assert_string_equal(few->name, "linear");
	assert_string_equal(small->name, "binomial");
	assert_string_equal(large->name, "circulant");
}

/*
 * Eight ranks on two cores: the cost is at least the work of all ranks, and few messages beat
 * few rounds. A smaller gap per byte at the sender favours the linear broadcast.
 */
static void shared_cores_favour_fewer_messages(void **state)
{
	struct coll_machine machine = { .alpha = 10e-6, .overhead = 2e-6, .beta = 0.25e-9,
					.byte_gap = 0.25e-9, .gamma = 0.1e-9 };
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_call call = { .collective = COLL_BARRIER, .ranks = 8, .element = 1,
				  .commutative = true };
	const struct coll_algo *butterfly = coll_algo_find(COLL_BARRIER, "butterfly");
	const double apart = butterfly->cost(&call, &tuning, &machine);

	(void)state;
	assert_string_equal(coll_algo_choose(&call, &tuning, &machine)->name, "one-shot");
	machine.crowding = 4;
	assert_true(butterfly->cost(&call, &tuning, &machine) >= 4 * apart);
	assert_string_equal(coll_algo_choose(&call, &tuning, &machine)->name, "linear");
	call.collective = COLL_BCAST;
	call.count = 16384;
	machine.copied = true;
	assert_string_equal(coll_algo_choose(&call, &tuning, &machine)->name, "binomial");
	machine.byte_gap /= 2;
	assert_string_equal(coll_algo_choose(&call, &tuning, &machine)->name, "linear");
	/* Of four on two cores, 6 messages and not 12. */
	machine.crowding = 2;
	call.collective = COLL_BARRIER;
	call.ranks = 4;
	call.count = 0;
	assert_string_equal(coll_algo_choose(&call, &tuning, &machine)->name, "linear");
	call.collective = COLL_ALLREDUCE;
	call.element = 8;
	call.count = 1;
	assert_string_equal(coll_algo_choose(&call, &tuning, &machine)->name, "linear");
}

static double flat_seconds(const struct coll_call *call, const char *name,
			   const struct coll_machine *machine)
{
	const struct coll_tuning tuning = COLL_TUNING_UNSET;

	return coll_flat_cost(coll_algo_find(call->collective, name), call, &tuning, machine);
}

/*
 * Four nodes of four ranks on cores that all share: a message between nodes is work of 4 o, so few leaders are
 * better than lanes of all ranks, unless each rank has a core.
 */
static void shared_cores_favour_leaders(void **state)
{
	struct coll_machine machine = { .alpha = 1e-3, .overhead = 20e-6, .beta = 8e-9, .byte_gap = 8e-9,
					.gamma = 0.1e-9 };
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_call call = { .ranks = 16, .element = 8, .commutative = true };
	const struct coll_algo *lanes, *leader;
	int i;

	(void)state;
	nodes_of_four(&call);
	for (i = 0; i < 2; i++) {
		call.collective = i ? COLL_SCAN : COLL_ALLTOALL;
		call.count = i ? 2048 : 128;
		lanes = coll_algo_find(call.collective, "lanes");
		leader = coll_algo_find(call.collective, "leader");
		machine.crowding = 0;
		assert_true(coll_algo_predict(lanes, &call, &tuning, &machine) <
			    1.01 * coll_algo_predict(leader, &call, &tuning, &machine));
		machine.crowding = 8;
		assert_true(coll_algo_predict(lanes, &call, &tuning, &machine) >
			    1.2 * coll_algo_predict(leader, &call, &tuning, &machine));
		assert_string_equal(coll_algo_choose(&call, &tuning, &machine)->name, "leader");
	}
}

/* Where memory is slower, leaders, that hand each byte on twice, lose to all messages at once. */
static double leader_to_linear(const struct coll_call *call, const struct coll_machine *machine)
{
	const struct coll_tuning tuning = COLL_TUNING_UNSET;

	return coll_algo_find(call->collective, "leader")->cost(call, &tuning, machine) /
	       flat_seconds(call, "linear", machine);
}

/* Four nodes of four ranks on two cores, links of 1 Gbit/s: by leaders each byte of an alltoall is copied twice more. */
static void a_bytes_work_counts_on_shared_cores(void **state)
{
	struct coll_machine machine = { .alpha = 13e-6, .overhead = 9e-6, .beta = 8e-9, .byte_gap = 8e-9,
					.gamma = 0.04e-9, .crowding = 8 };
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_call call = { .collective = COLL_ALLTOALL, .ranks = 16, .element = 8, .commutative = true,
				  .count = 4096 };
	double usual;

	(void)state;
	nodes_of_four(&call);
	usual = leader_to_linear(&call, &machine);
	machine.inside[COLL_LEVEL_NODE].beta = 1.1e-9;
	assert_true(leader_to_linear(&call, &machine) > 1.2 * usual);
	assert_string_equal(coll_algo_choose(&call, &tuning, &machine)->name, "linear");
	/* Twelve of fifteen blocks leave the node: 8 ranks of a core for each of these bytes, and half of a rank's own way. */
	machine.inside[COLL_LEVEL_NODE].beta = 0;
	machine.byte_work = 5.25e-9;
	usual = flat_seconds(&call, "pairwise", &machine);
	machine.byte_work = 10.25e-9;
	assert_float_equal(flat_seconds(&call, "pairwise", &machine), usual + 12 * 32768 * 8.5 * 5e-9, 1e-6);
	/* Around a ring four of sixteen messages leave a node. */
	call.collective = COLL_REDUCE_SCATTER_BLOCK;
	machine.byte_work = 0;
	usual = flat_seconds(&call, "ring", &machine);
	machine.byte_work = 5.25e-9;
	assert_true(flat_seconds(&call, "ring", &machine) < usual + 15 * 32768 * 8 * 5e-9 / 4);
	machine.crowding = 1;
	usual = flat_seconds(&call, "ring", &machine);
	machine.byte_work = 0;
	assert_float_equal(flat_seconds(&call, "ring", &machine), usual, 1e-12);
}

/* Phases inside nodes of four are four messages in a row of a rank, up and down; what is across is not counted there. */
static void levels_count_each_phase_once(void **state)
{
	struct coll_machine machine = { .alpha = 1e-3, .overhead = 1e-7, .beta = 8e-9, .byte_gap = 8e-9, .gamma = 1e-12,
					.inside = { [COLL_LEVEL_NODE] = { .alpha = 2e-6, .overhead = 1e-8, .beta = 1e-12 } } };
	const struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_call call = { .ranks = 16, .element = 8, .commutative = true, .count = 1 };
	const enum coll_collective four[] = { COLL_ALLREDUCE, COLL_SCAN, COLL_BARRIER };
	double before, more;
	size_t i;

	(void)state;
	nodes_of_four(&call);
	for (i = 0; i < sizeof(four) / sizeof(*four); i++) {
		const struct coll_algo *leader = coll_algo_find(four[i], "leader");

		call.collective = four[i];
		call.count = four[i] != COLL_BARRIER;
		machine.inside[COLL_LEVEL_NODE].alpha = 2e-6;
		before = leader->cost(&call, &tuning, &machine);
		machine.inside[COLL_LEVEL_NODE].alpha = 12e-6;
		more = leader->cost(&call, &tuning, &machine) - before;
		assert_float_equal(more * 1e6, 40, 0.5);
	}
}

/* Of a tree's messages three of fifteen leave four nodes, whatever part of its longest way they are. */
static void few_messages_of_a_tree_are_far(void **state)
{
	struct coll_machine machine = { .alpha = 10e-6, .overhead = 2e-6, .beta = 8e-9, .byte_gap = 8e-9, .gamma = 0.1e-9,
					.byte_work = 8e-9, .crowding = 8 };
	struct coll_call call = { .collective = COLL_BCAST, .ranks = 16, .element = 1, .commutative = true,
				  .count = 1 << 18 };
	double before, more;

	(void)state;
	nodes_of_four(&call);
	before = flat_seconds(&call, "binomial", &machine);
	machine.byte_work = 16e-9;
	more = flat_seconds(&call, "binomial", &machine) - before;
	/* Each on one of two cores: 1.5 of these bytes; some of what is on the longest way the wire hides. */
	assert_true(more > 1.0 * call.count * 8e-9 && more < 2.0 * call.count * 8e-9);
}

/* As on sixteen ranks of two cores over 1 Gbit/s (docs/results/choice.md). */
static const struct coll_machine lan = { .alpha = 5.1e-6, .overhead = 3.5e-6, .beta = 7e-9, .byte_gap = 7e-9,
					 .byte_work = 7e-9, .gamma = 0.028e-9, .crowding = 8,
					 .inside = { [COLL_LEVEL_NODE] = { .beta = 0.4e-9 } } };

/* Each further message in a row waits for its receiver to have the core, so a scan from rank to rank is slow. */
static void messages_wait_for_cores(void **state)
{
	const struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_call call = { .collective = COLL_SCAN, .ranks = 16, .element = 8, .commutative = true, .count = 1 };
	struct coll_machine machine = lan;
	double apart;

	(void)state;
	nodes_of_four(&call);
	assert_string_equal(coll_algo_choose(&call, &tuning, &machine)->name, "leader");
	assert_true(flat_seconds(&call, "linear", &machine) > 15 * 8e-6);
	machine.crowding = 1;
	apart = flat_seconds(&call, "linear", &machine);
	machine.core_delay = 1;		/* only of cores that are shared */
	assert_float_equal(flat_seconds(&call, "linear", &machine), apart, 1e-12);
}

/* The NIC sends one lane's bytes while the cores work for another lane; a leader's wait for each other. */
static void wires_are_busy_while_cores_are(void **state)
{
	const struct coll_algo *lanes = coll_algo_find(COLL_ALLREDUCE, "lanes");
	struct coll_tuning tuning = COLL_TUNING_UNSET, whole = COLL_TUNING_UNSET;
	struct coll_call call = { .collective = COLL_BCAST, .ranks = 16, .element = 8, .commutative = true,
				  .count = 1 << 15 };
	struct coll_machine faster = lan;
	double less;

	(void)state;
	nodes_of_four(&call);
	assert_string_equal(coll_algo_choose(&call, &tuning, &lan)->name, "lanes");
	call.collective = COLL_ALLREDUCE;
	assert_true(coll_algo_predict(coll_algo_find(COLL_ALLREDUCE, "leader"), &call, &tuning, &lan) >
		    1.1 * coll_algo_predict(lanes, &call, &tuning, &lan));
	/* A node's NIC carries 1.5 vectors, of which one lane in four waits for it. */
	whole.segment = 1 << 18;
	faster.beta = faster.byte_gap = lan.beta / 2;
	less = lanes->cost(&call, &whole, &lan) - lanes->cost(&call, &whole, &faster);
	assert_true(less > 0.8 * 1.5 * (1 << 18) * faster.beta / 4 && less < 1.2 * 1.5 * (1 << 18) * faster.beta / 4);
	call.count = 4096;
	call.collective = COLL_ALLGATHER;
	assert_string_equal(coll_algo_choose(&call, &tuning, &lan)->name, "lanes");
	call.collective = COLL_ALLTOALL;
	assert_string_equal(coll_algo_choose(&call, &tuning, &lan)->name, "linear");
}

/* Segments of which cores do all the work do not overlap there: they only are more messages. */
static void work_does_not_overlap_with_work(void **state)
{
	struct coll_machine machine = { .alpha = 20e-6, .overhead = 5e-6, .beta = 1e-9, .byte_gap = 1e-9,
					.gamma = 0.04e-9, .byte_work = 2e-9,
					.inside = { [COLL_LEVEL_NODE] = { .beta = 1e-9 } } };
	struct coll_tuning whole = COLL_TUNING_UNSET, cut = COLL_TUNING_UNSET;
	struct coll_call call = { .collective = COLL_ALLREDUCE, .ranks = 16, .element = 8, .commutative = true,
				  .count = 1 << 15 };
	const struct coll_algo *leader = coll_algo_find(COLL_ALLREDUCE, "leader");

	(void)state;
	nodes_of_four(&call);
	whole.segment = 1 << 18;
	cut.segment = 1 << 15;
	assert_true(leader->cost(&call, &cut, &machine) < leader->cost(&call, &whole, &machine));
	machine.crowding = 8;
	assert_true(leader->cost(&call, &cut, &machine) > 0.95 * leader->cost(&call, &whole, &machine));
}

/* Two clusters of two nodes of four, over 50 ms: further segments are messages, and no further latencies. */
static void segments_between_clusters_cost_messages(void **state)
{
	struct coll_machine machine = { .alpha = 50e-6, .overhead = 2e-6, .beta = 8e-9, .byte_gap = 8e-9,
					.gamma = 0.1e-9, .byte_work = 2e-9, .wan_alpha = 50e-3, .wan_beta = 8e-9,
					.congestion = 0.5 };
	struct coll_tuning whole = COLL_TUNING_UNSET, cut = COLL_TUNING_UNSET;
	struct coll_call call = { .collective = COLL_ALLREDUCE, .ranks = 16, .element = 8, .commutative = true,
				  .count = 1 << 15 };
	static const char *const names[] = { "leader", "lanes" };
	u32 i;

	(void)state;
	clusters_of_eight(&call);
	whole.segment = 1 << 18;
	cut.segment = 1 << 15;
	whole.lanes = cut.lanes = 2;
	for (i = 0; i < 4; i++) {
		const struct coll_algo *algo = coll_algo_find(COLL_ALLREDUCE, names[i % 2]);
		double seconds, more;

		machine.crowding = i < 2 ? 1 : 8;
		seconds = algo->cost(&call, &whole, &machine);
		more = algo->cost(&call, &cut, &machine) - seconds;
		assert_true(seconds > 50e-3 && seconds < 200e-3);
		assert_true(more > -10e-3 && more < 10e-3);	/* false also where it is no number */
	}
}

/* Machines of which a byte's time is not known do not make it infinite. */
static void a_wan_between_free_links_is_its_own_rate(void **state)
{
	const struct coll_machine machine = { .wan_beta = 2e-9, .congestion = 1 };

	(void)state;
	assert_float_equal(coll_across_beta(&machine, 4) * 1e9, 2, 1e-9);
}

/*
 * 256 KB over 10 ms and 100 Mbit/s: the first ranks of a scan send for both rounds at once, and connections share
 * the NIC, so rounds of lanes are no shorter than a pipeline.
 */
static void long_rounds_share_a_nic(void **state)
{
	const struct coll_machine machine = { .alpha = 10e-3, .overhead = 10e-6, .beta = 80e-9, .byte_gap = 80e-9,
					      .gamma = 0.1e-9 };
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_call call = { .collective = COLL_SCAN, .ranks = 16, .element = 8, .commutative = true,
				  .count = 1 << 15 };

	(void)state;
	nodes_of_four(&call);
	assert_string_equal(coll_algo_choose(&call, &tuning, &machine)->name, "linear");
	call.count = 1 << 11;
	assert_string_not_equal(coll_algo_choose(&call, &tuning, &machine)->name, "linear");
}

/*
 * Between nodes with a link of 1 ms: over one rank a result goes there and back; where ranks share
 * cores, these are free for others while a message is under way.
 */
static void far_links_delay_and_do_not_work(void **state)
{
	struct coll_machine machine = { .alpha = 1e-3, .overhead = 2e-6, .beta = 8e-9, .byte_gap = 8e-9,
					.gamma = 0.1e-9 };
	const struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_call call = { .collective = COLL_ALLREDUCE, .ranks = 8, .element = 8,
				  .commutative = true, .count = 1 };
	double seconds;

	(void)state;
	nodes_of_four(&call);
	assert_true(flat_seconds(&call, "linear", &machine) >= 2e-3);
	assert_true(flat_seconds(&call, "butterfly", &machine) < 1.1e-3);
	assert_string_not_equal(coll_algo_choose(&call, &tuning, &machine)->name, "linear");
	machine.crowding = 4;
	seconds = flat_seconds(&call, "butterfly", &machine);
	assert_true(seconds > 1e-3 && seconds < 1.3e-3);

	/* Four nodes of four know of each other after one step. */
	machine.crowding = 1;
	call = (struct coll_call){ .collective = COLL_BARRIER, .ranks = 16, .element = 8, .commutative = true };
	nodes_of_four(&call);
	assert_string_equal(coll_algo_choose(&call, &tuning, &machine)->name, "lanes");

	/* Halves go inside the nodes first: a quarter of the vector leaves them, by each of four ranks. */
	machine.crowding = 0;
	call.collective = COLL_ALLREDUCE;
	call.ranks = 8;
	call.count = 1 << 20;
	nodes_of_four(&call);
	seconds = flat_seconds(&call, "rabenseifner", &machine);
	assert_true(seconds > 0.067 && seconds < 0.075);
}

/*
 * A graph of four neighbours has fewer steps than a butterfly only among few ranks, and four
 * messages in each: where a message takes its ends 2 of 20 us, it is slower (simulated: 16 to 47 %).
 */
static void messages_of_a_step_follow_each_other(void **state)
{
	const struct coll_machine machine = { .alpha = 20e-6, .overhead = 2e-6, .beta = 0.25e-9,
					      .gamma = 0.1e-9 };
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct coll_call call = { .collective = COLL_ALLREDUCE, .element = 8, .commutative = true,
				  .count = 1 };

	(void)state;
	for (call.ranks = 32; call.ranks <= 4096; call.ranks *= 2)
		assert_string_equal(coll_algo_choose(&call, &tuning, &machine)->name, "butterfly");
}

static const char *across_of(const struct coll_call *call, const char *name, const struct coll_machine *machine,
			     double *seconds)
{
	const struct coll_algo *algo = coll_algo_find(call->collective, name);
	struct coll_tuning tuning = COLL_TUNING_UNSET;

	coll_tuning_choose(algo, call, machine, &tuning);
	*seconds = coll_algo_predict(algo, call, &tuning, machine);
	return tuning.across == COLL_UNSET ? "usual" : coll_across_names[tuning.across];
}

/* Four nodes of four: one way where latency counts, neighbours where bytes do; not by what only some ranks know. */
static void the_algorithm_between_nodes_follows_the_costs(void **state)
{
	const struct coll_machine machine = { .alpha = 10e-3, .overhead = 2e-6, .beta = 80e-9,
					      .byte_gap = 80e-9, .gamma = 0.1e-9 };
	const u64 counts[16] = { 1 << 20 }, displs[16] = { 0 };
	struct coll_call call = { .collective = COLL_BCAST, .ranks = 16, .element = 8,
				  .commutative = true, .count = 1 };
	struct coll_tuning binomial = COLL_TUNING_UNSET, butterfly = COLL_TUNING_UNSET;
	double seconds, usual;

	(void)state;
	nodes_of_four(&call);
	assert_string_equal(across_of(&call, "leader", &machine, &seconds), "linear");
	assert_true(seconds > 10e-3 && seconds < 10.2e-3);
	assert_int_equal(coll_tuning_parse(NULL, "across=binomial", &binomial, NULL, 0), 0);
	assert_int_equal(coll_tuning_parse(NULL, "across=butterfly", &butterfly, NULL, 0), 0);
	usual = coll_algo_predict(coll_algo_find(COLL_BCAST, "leader"), &call, &binomial, &machine);
	assert_true(usual > 20e-3 && usual < 20.2e-3);

	call.count = 1 << 20;	/* 8 MB, which take 0.67 s over a link */
	assert_string_equal(across_of(&call, "lanes", &machine, &seconds), "chain");
	assert_true(seconds > 0.67 && seconds < 0.8);

	/* Four lanes of 4 KB each: while one is under way the NIC sends the next. */
	call = (struct coll_call){ .collective = COLL_ALLREDUCE, .ranks = 16, .element = 8,
				   .commutative = true, .count = 2048 };
	nodes_of_four(&call);
	seconds = coll_algo_predict(coll_algo_find(COLL_ALLREDUCE, "lanes"), &call, &butterfly, &machine);
	assert_true(seconds > 21.5e-3 && seconds < 22e-3);
	seconds = coll_algo_predict(coll_algo_find(COLL_ALLREDUCE, "leader"), &call, &butterfly, &machine);
	assert_true(seconds > 22.5e-3 && seconds < 23e-3);
	/* All nodes send to all at once. */
	assert_string_equal(across_of(&call, "lanes", &machine, &seconds), "one-shot");
	assert_true(seconds > 13.5e-3 && seconds < 14.5e-3);

	call = (struct coll_call){ .collective = COLL_GATHERV, .ranks = 16, .element = 1,
				   .commutative = true, .count = 3, .counts = counts, .displs = displs };
	nodes_of_four(&call);
	assert_string_equal(across_of(&call, "leader", &machine, &seconds), "usual");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unsuitable_calls_are_refused),
		cmocka_unit_test(all_ranks_choose_alike),
		cmocka_unit_test(the_algorithm_between_nodes_follows_the_costs),
		cmocka_unit_test(messages_of_a_step_follow_each_other),
		cmocka_unit_test(far_links_delay_and_do_not_work),
		cmocka_unit_test(costs_are_times_and_the_choice_follows_the_size),
		cmocka_unit_test(shared_cores_favour_fewer_messages),
		cmocka_unit_test(shared_cores_favour_leaders),
		cmocka_unit_test(long_rounds_share_a_nic),
		cmocka_unit_test(a_bytes_work_counts_on_shared_cores),
		cmocka_unit_test(levels_count_each_phase_once),
		cmocka_unit_test(few_messages_of_a_tree_are_far),
		cmocka_unit_test(messages_wait_for_cores),
		cmocka_unit_test(wires_are_busy_while_cores_are),
		cmocka_unit_test(work_does_not_overlap_with_work),
		cmocka_unit_test(segments_between_clusters_cost_messages),
		cmocka_unit_test(a_wan_between_free_links_is_its_own_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
