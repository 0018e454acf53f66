// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Latencies from clocks that differ, of ranks that are late, out of tables that are only added up;
 * and costs that follow them.
 *
 * Length: one table of cells, and all that ranks may do to it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/exec/samples.h"
#include "libcoll/topology/drift.h"

enum { RANKS_MAX = 16, RUNS = 480, BRIEF = 8, LONG = 65536 };

static const double alpha = 20000, beta = 0.8;	/* ns */

static struct coll_samples all[RANKS_MAX];
static uint64_t offset[RANKS_MAX];		/* of each rank's clock */
static struct coll_sample_cell sum[SAMPLE_CELLS];
static struct coll_sample sample[SAMPLE_CELLS];
static uint64_t state;

static uint64_t random_below(uint64_t bound)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % bound;
}

static void begin(uint32_t ranks)
{
	uint32_t rank;

	state = 7;
	for (rank = 0; rank < ranks; rank++) {
		coll_samples_init(&all[rank], rank, ranks);
		offset[rank] = random_below(1ull << 31) << 20;
	}
}

/* What a rank does with a peer in a run, at these times of nobody's clock. */
struct part {
	uint64_t sent, posted, arrived;
};

static struct coll_sample_time at(uint64_t now)
{
	return (struct coll_sample_time){ .now = now, .looks = now };	/* it looks all the time */
}

static void play(uint32_t run, uint32_t rank, uint32_t peer, uint64_t bytes,
		 const struct part *part)
{
	struct coll_samples *samples = &all[rank];

	if (!coll_samples_draw(samples, run, peer))
		return;
	coll_samples_posted(samples, run, peer, at(part->posted + offset[rank]));
	if (part->sent < part->arrived)
		coll_samples_sent(samples, run, peer, COLL_CLASS_CLUSTER, bytes,
				  part->sent + offset[rank]);
	coll_samples_arrived(samples, run, peer, COLL_CLASS_CLUSTER, bytes,
			     at(part->arrived + offset[rank]));
	if (part->sent >= part->arrived)
		coll_samples_sent(samples, run, peer, COLL_CLASS_CLUSTER, bytes,
				  part->sent + offset[rank]);
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Both send at once and receive when the message is there, and they are. */
static void exchange(uint32_t run, uint32_t a, uint32_t b, uint64_t bytes, uint64_t at_a,
		     uint64_t at_b, uint64_t late)
{
	const uint64_t ns = alpha + beta * bytes + late;

	play(run, a, b, bytes, &(struct part){ at_a, at_a, later(at_a, at_b + ns) });
	play(run, b, a, bytes, &(struct part){ at_b, at_b, later(at_b, at_a + ns) });
}

static bool begins(uint32_t ranks, uint32_t run)
{
	bool sampled = false;
	uint32_t rank;

	for (rank = 0; rank < ranks; rank++) {
		const bool here = coll_samples_begin(&all[rank], run);

		assert_true(!rank || here == sampled);
		sampled = here;
	}
	return sampled;
}

/* Those whose messages did not wait for their receivers come first. */
static uint32_t good_ones(uint32_t found)
{
	uint32_t good = 0, i;

	for (i = 0; i < found; i++)
		if (coll_sample_is_good(&sample[i]))
			sample[good++] = sample[i];
	return good;
}

static uint32_t collect(uint32_t ranks)
{
	uint32_t rank, i, found = 0;

	memset(sum, 0, sizeof(sum));
	for (rank = 0; rank < ranks; rank++)
		for (i = 0; i < SAMPLE_CELLS; i++) {
			const struct coll_sample_cell *cell = &all[rank].cell[i];

			sum[i].ns += cell->ns;
			sum[i].waited += cell->waited;
			sum[i].held += cell->held;
			sum[i].away += cell->away;
			sum[i].ranks += cell->ranks;
			sum[i].bytes += cell->bytes;
			sum[i].tag += cell->tag;
			sum[i].run += cell->run;
			sum[i].begun += cell->begun;
		}
	for (rank = 0; rank < ranks; rank++) {
		found = coll_samples_collect(&all[rank], sum, sample);
		assert_int_equal(all[rank].pairs, all[0].pairs);
	}
	return good_ones(found);
}

/* Of a butterfly, every pair; each rank begins up to `skew` later than the first. */
static void butterflies(uint32_t ranks, uint32_t first, uint64_t skew)
{
	uint32_t run, rank, bit;

	for (run = first; run < first + RUNS; run++) {
		uint64_t at[RANKS_MAX];

		if (!begins(ranks, run))
			continue;
		for (bit = 1; bit < ranks; bit *= 2) {
			for (rank = 0; rank < ranks; rank++)
				at[rank] = 1000000 + random_below(skew + 1);
			for (rank = 0; rank < ranks; rank++)
				if (!(rank & bit))
					exchange(run, rank, rank | bit, BRIEF, at[rank], at[rank | bit], 0);
		}
	}
}

static void assert_exact(uint32_t found)
{
	uint32_t i;

	for (i = 0; i < found; i++) {
		assert_int_equal(sample[i].class, COLL_CLASS_CLUSTER);
		assert_int_equal(sample[i].bytes, BRIEF);
		assert_in_range(sample[i].ns, alpha, alpha + beta * BRIEF + 1);
		assert_true(sample[i].rank[0] < sample[i].rank[1]);
	}
}

static void clocks_and_skew_cancel(void **unused)
{
	uint32_t found;

	(void)unused;
	begin(2);
	butterflies(2, 0, alpha / 2);
	found = collect(2);
	assert_int_equal(found, RUNS / SAMPLE_OFTEN);
	assert_exact(found);
}

static void a_late_receiver_is_left_out(void **unused)
{
	uint32_t run;

	(void)unused;
	begin(2);
	for (run = 0; run < RUNS; run++)
		if (begins(2, run))
			exchange(run, 0, 1, BRIEF, 1000000, 1000000 + 30 * alpha, 0);
	assert_int_equal(collect(2), 0);
}

/* Up and down a tree: the root sends when it has received, after any time. */
static void an_answer_is_as_good_as_an_exchange(void **unused)
{
	uint32_t run, found;

	(void)unused;
	begin(2);
	for (run = 0; run < RUNS; run++) {
		const uint64_t up = 1000000 + alpha, down = up + random_below(1000000);

		if (!begins(2, run))
			continue;
		play(run, 0, 1, BRIEF, &(struct part){ down, 1000000, up });
		play(run, 1, 0, BRIEF, &(struct part){ 1000000, 1000000, down + alpha });
	}
	found = collect(2);
	assert_int_equal(found, RUNS / SAMPLE_OFTEN);
	assert_exact(found);
}

/* The lottery draws about one pair a run; pairs that meet are told. */
static void of_many_pairs_some_are_sampled(void **unused)
{
	uint32_t found;

	(void)unused;
	begin(RANKS_MAX);
	butterflies(RANKS_MAX, 0, alpha / 2);
	found = collect(RANKS_MAX);
	assert_in_range(found, RUNS / SAMPLE_OFTEN / 6, RUNS / SAMPLE_OFTEN);
	assert_exact(found);
}

/* Of few pairs more are drawn, the same on all ranks. */
static void the_lottery_adapts(void **unused)
{
	uint32_t first = 0, before, run, round, found = 0;

	(void)unused;
	begin(RANKS_MAX);
	before = all[0].pairs;
	for (round = 0; round < 6; round++, first += RUNS) {
		for (run = first; run < first + RUNS; run++)
			if (begins(RANKS_MAX, run))
				exchange(run, 2, 5, BRIEF, 1000000, 1000000, 0);
		found = collect(RANKS_MAX);
	}
	assert_true(all[0].pairs < before / 4);
	assert_true(found > SAMPLE_CELLS / 3);
	assert_exact(found);
}

/* An old run's cells are not added to a new one's. */
static void old_runs_are_forgotten(void **unused)
{
	uint32_t run;

	(void)unused;
	begin(2);
	butterflies(2, 0, 0);
	for (run = RUNS; run < RUNS + SAMPLE_CELLS * SAMPLE_OFTEN; run++)
		begins(2, run);
	assert_int_equal(collect(2), 0);
}

/* The exchange of a run, whose first message arrives at rank 1 when `until` more runs have begun. */
static uint32_t arrives_after(uint32_t until, uint64_t ns)
{
	uint32_t run = 0;

	begin(2);
	while (!begins(2, run))
		run++;
	coll_samples_posted(&all[0], run, 1, at(1000000));
	coll_samples_posted(&all[1], run, 0, at(1000000));
	coll_samples_sent(&all[0], run, 1, COLL_CLASS_NODE, BRIEF, 1000000);
	coll_samples_sent(&all[1], run, 0, COLL_CLASS_NODE, BRIEF, 1000000);
	coll_samples_arrived(&all[0], run, 1, COLL_CLASS_NODE, BRIEF, at(1000000 + alpha));
	for (until += run; ++run <= until;)
		begins(2, run);
	for (run = 0; !coll_samples_want(&all[1], run, 0) && run < until; run++)
		;
	coll_samples_arrived(&all[1], run, 0, COLL_CLASS_NODE, BRIEF, at(1000000 + ns));
	return collect(2);
}

/* Its run has ended; the table has it still. */
static void a_message_after_its_run_counts(void **unused)
{
	(void)unused;
	assert_int_equal(arrives_after(100, 30 * alpha), 0);	/* one of them waited for less */
	assert_int_equal(sample[0].ns, 31 * alpha / 2);
	assert_int_equal(sample[0].class, COLL_CLASS_NODE);
	assert_int_equal(sample[0].waited[1], 30 * alpha);
	sample[0].ns = 0;
	arrives_after((SAMPLE_CELLS + 1) * SAMPLE_OFTEN, 30 * alpha);
	assert_int_equal(sample[0].ns, 0);
}

/* One that was injected to be late is told when that is known; when it is due no more. */
static void a_message_is_told_once(void **unused)
{
	uint32_t run = 0, i;

	(void)unused;
	begin(2);
	while (!begins(2, run))
		run++;
	for (i = 0; i < 2; i++)
		coll_samples_posted(&all[i], run, !i, at(1000000));
	for (i = 0; i < 2; i++)
		coll_samples_arrived(&all[i], run, !i, COLL_CLASS_NODE, BRIEF, at(1000000 + alpha));
	coll_samples_arrived(&all[0], run, 1, COLL_CLASS_NODE, BRIEF, at(9000000));
	for (i = 0; i < 2; i++)
		coll_samples_sent(&all[i], run, !i, COLL_CLASS_NODE, BRIEF, 1000000);
	coll_samples_arrived(&all[0], run, 1, COLL_CLASS_NODE, BRIEF, at(9000000));
	assert_int_equal(collect(2), 1);
	assert_int_equal(sample[0].ns, alpha);
}

/* What each rank did while it waited, and which of them only answered. */
static void what_ranks_did_is_told(void **unused)
{
	uint32_t run = 0;

	(void)unused;
	begin(2);
	while (!begins(2, run))
		run++;
	coll_samples_posted(&all[0], run, 1, (struct coll_sample_time){ 1000000, 500, 70, 4, 1 });
	coll_samples_posted(&all[1], run, 0, (struct coll_sample_time){ 1000000, 10, 20, 4, 1 });
	coll_samples_sent(&all[1], run, 0, COLL_CLASS_NODE, BRIEF, 1000000);
	coll_samples_arrived(&all[0], run, 1, COLL_CLASS_NODE, BRIEF,
			     (struct coll_sample_time){ 1020000, 600, 100, 6, 1 });
	coll_samples_sent(&all[0], run, 1, COLL_CLASS_NODE, BRIEF, 1500000);
	coll_samples_arrived(&all[1], run, 0, COLL_CLASS_NODE, BRIEF,
			     (struct coll_sample_time){ 1520000, 10, 21, 6, 1 });
	assert_int_equal(collect(2), 1);
	assert_int_equal(sample[0].ns, 20000);
	assert_int_equal(sample[0].held[0], 100);
	assert_int_equal(sample[0].held[1], 0);
	assert_int_equal(sample[0].away[0], 30);
	assert_int_equal(sample[0].away[1], 1);
	assert_true(sample[0].answered[0] && !sample[0].answered[1]);
	assert_int_equal(sample[0].waited[0], 20000);
	assert_int_equal(sample[0].waited[1], 520000);
	assert_int_equal(sample[0].rank[1], 1);
}

/* ---- all ranks find the same ------------------------------------------------------- */

/* A rank that has begun other runs since, in the kernel or not yet, has its cells for others. */
static void a_sum_tells_all_ranks_the_same(void **unused)
{
	static struct coll_sample other[SAMPLE_CELLS];
	uint32_t run, found, i;

	(void)unused;
	begin(2);
	butterflies(2, 0, alpha / 2);
	collect(2);
	for (run = RUNS; run < 2 * RUNS; run++)
		coll_samples_begin(&all[1], run);
	found = coll_samples_collect(&all[0], sum, sample);
	assert_int_equal(found, RUNS / SAMPLE_OFTEN);
	assert_int_equal(coll_samples_collect(&all[1], sum, other), found);
	assert_int_equal(all[0].pairs, all[1].pairs);
	assert_memory_equal(sample, other, found * sizeof(*sample));
	for (i = 0; i < found; i++)
		assert_true(sample[i].run < RUNS);
}

/* Of one cell, which is spoilt. */
static uint32_t found_with(void (*spoil)(struct coll_sample_cell *cell))
{
	begin(2);
	butterflies(2, 0, alpha / 2);
	collect(2);
	spoil(&sum[5]);
	return coll_samples_collect(&all[0], sum, sample);
}

static void spoil_rank(struct coll_sample_cell *cell)
{
	cell->ranks = 2ull << 32;	/* there are two ranks */
}

static void spoil_ranks(struct coll_sample_cell *cell)
{
	cell->ranks = 1ull << 32 | 1;
}

static void spoil_held(struct coll_sample_cell *cell)
{
	cell->held = 1ull << 30;
}

static void spoil_away(struct coll_sample_cell *cell)
{
	cell->away = ~0ull;
}

static void spoil_time(struct coll_sample_cell *cell)
{
	cell->ns = 1;
}

static void spoil_long(struct coll_sample_cell *cell)
{
	cell->ns = INT64_MAX;
}

static void spoil_class(struct coll_sample_cell *cell)
{
	cell->bytes = ~0ull;
}

static void spoil_run(struct coll_sample_cell *cell)
{
	cell->run = 1ull << 32;
}

static void spoil_nothing(struct coll_sample_cell *cell)
{
	cell->bytes += 0;
}

static void what_no_ranks_add_up_to_is_left_out(void **unused)
{
	static void (*const spoils[])(struct coll_sample_cell *cell) = {
		spoil_rank, spoil_ranks, spoil_held, spoil_away,
		spoil_time, spoil_long,	 spoil_class, spoil_run,
	};
	size_t i;

	(void)unused;
	assert_int_equal(found_with(spoil_nothing), SAMPLE_CELLS);
	for (i = 0; i < sizeof(spoils) / sizeof(*spoils); i++)
		assert_int_equal(found_with(spoils[i]), SAMPLE_CELLS - 1);
}

/* ---- what a rank did meanwhile -------------------------------------------------------- */

static const struct coll_sample_time posted_then = { 1000000, 500, 70, 4, 1 };

/* An exchange of two ranks, one of which has this message at this time. Returns what is found. */
static uint32_t arrived_then(struct coll_sample_time time)
{
	uint32_t run = 0, i;

	begin(2);
	while (!begins(2, run))
		run++;
	for (i = 0; i < 2; i++) {
		coll_samples_posted(&all[i], run, !i, posted_then);
		coll_samples_sent(&all[i], run, !i, COLL_CLASS_NODE, BRIEF, 1000000);
	}
	coll_samples_arrived(&all[0], run, 1, COLL_CLASS_NODE, BRIEF, time);
	coll_samples_arrived(&all[1], run, 0, COLL_CLASS_NODE, BRIEF,
			     (struct coll_sample_time){ 1000000 + alpha, 500, 70, 9, 1 });
	return collect(2);
}

/* It lay there: whatever was done before the first look is no wait. */
static void what_the_first_look_finds_was_there(void **unused)
{
	(void)unused;
	assert_int_equal(arrived_then((struct coll_sample_time){ 1000000 + alpha, 500, 70, 6, 1 }), 1);
	assert_int_equal(sample[0].waited[0], alpha);
	assert_int_equal(arrived_then((struct coll_sample_time){ 1000000 + alpha, 500, 70, 5, 1 }), 0);
	assert_int_equal(sample[0].waited[0], 0);
	assert_int_equal(arrived_then((struct coll_sample_time){ 1000000 + alpha, 500, 70, 4, 1 }), 0);
}

/* The account of a core is a thread's: of two, there is no difference. */
static void a_half_of_two_threads_is_dropped(void **unused)
{
	(void)unused;
	memset(sample, 0, sizeof(sample));
	assert_int_equal(arrived_then((struct coll_sample_time){ 1000000 + alpha, 900, 70, 9, 2 }), 0);
	assert_int_equal(sample[0].ns, 0);
}

/* Clocks of different kinds: no part of a wait is longer than it. */
static void parts_of_a_wait_are_no_longer(void **unused)
{
	(void)unused;
	arrived_then((struct coll_sample_time){ 1000000 + alpha, 500 + alpha - 9, 70 + alpha, 9, 1 });
	assert_int_equal(sample[0].held[0], alpha - 9);
	assert_int_equal(sample[0].away[0], 9);
	arrived_then((struct coll_sample_time){ 1000000 + alpha, 400, 60, 9, 1 });
	assert_int_equal(sample[0].held[0], 0);
	assert_int_equal(sample[0].away[0], 0);
}

/* ---- costs that follow ---------------------------------------------------------- */

/* Messages of both sizes; of `part` of 16 both latencies are long. */
static uint32_t traffic(uint32_t part)
{
	uint32_t run;

	begin(2);
	for (run = 0; run < RUNS; run++)
		if (begins(2, run))
			exchange(run, 0, 1, run / SAMPLE_OFTEN % 2 ? LONG : BRIEF, 1000000,
				 1000000 + random_below(5000),
				 random_below(16) < part ? random_below(1000000) : 0);
	return collect(2);
}

static void assert_near(double value, double wanted, double part)
{
	if (fabs(value / wanted - 1) > part)
		fail_msg("%g is not within %g of %g", value, part, wanted);
}

static struct coll_machine machine;
static struct coll_costs costs;

static void measured(double alpha_s, double beta_s)
{
	struct coll_level_cost *found = &costs.of[COLL_CLASS_CLUSTER].cost;

	memset(&machine, 0, sizeof(machine));
	memset(&costs, 0, sizeof(costs));
	found->alpha = machine.alpha = alpha_s;
	found->beta = machine.beta = beta_s;
	found->overhead = machine.overhead = alpha_s / 2;
}

static const struct coll_samples_found *before(uint32_t call, uint32_t samples)
{
	static struct coll_samples_found found;

	found = (struct coll_samples_found){ .sample = sample, .samples = samples, .call = call };
	return &found;
}

static void costs_follow(void **unused)
{
	const uint32_t found = traffic(3);

	(void)unused;
	measured(1e-3, 100e-9);
	assert_true(coll_drift(&machine, &costs, before(256, found)));
	assert_near(machine.alpha, 1e-9 * alpha, 0.1);
	assert_near(machine.beta, 1e-9 * beta, 0.1);
	assert_near(costs.of[COLL_CLASS_CLUSTER].cost.alpha, machine.alpha, 0);
	assert_int_equal(costs.of[COLL_CLASS_CLUSTER].alpha_drift.call, 256);
	assert_true(machine.overhead <= machine.alpha);
	/* They are the measured ones still, and nothing has changed since. */
	assert_false(coll_drift(&machine, &costs, before(512, found)));
	assert_int_equal(costs.of[COLL_CLASS_CLUSTER].alpha_drift.call, 256);
}

static void what_is_given_or_near_stays(void **unused)
{
	const uint32_t found = traffic(0);

	(void)unused;
	measured(1.1e-9 * alpha, 0.9e-9 * beta);
	assert_false(coll_drift(&machine, &costs, before(256, found)));
	measured(1e-3, 1e-9 * beta);
	machine.alpha = 2e-3;
	assert_false(coll_drift(&machine, &costs, before(256, found)));
	assert_near(machine.alpha, 2e-3, 0);
}

/* Short messages do not tell the time of a byte, nor long ones the latency; seven tell nothing. */
static void what_messages_do_not_tell_stays(void **unused)
{
	uint32_t i;

	(void)unused;
	for (i = 0; i < 8; i++)
		sample[i] = (struct coll_sample){ .class = COLL_CLASS_CLUSTER,
						  .bytes = i % 2 ? 1024 : 8,
						  .ns = i % 2 ? 25000 : 20000,
						  .waited = { 25000, 25000 } };
	measured(1e-3, 1e-9);
	assert_false(coll_drift(&machine, &costs, before(256, 7)));
	assert_true(coll_drift(&machine, &costs, before(256, 8)));
	assert_near(machine.alpha, 20e-6, 0.01);
	assert_near(machine.beta, 1e-9, 0);
	for (i = 0; i < 8; i++)
		sample[i].bytes = 1 << 20, sample[i].ns = sample[i].waited[0] = sample[i].waited[1] =
			1060000;
	measured(1e-3, 1e-9);
	assert_false(coll_drift(&machine, &costs, before(256, 8)));
}

/* Long messages, which a byte's time that was given explains alone: they still took no longer than this. */
static void no_latency_is_longer_than_a_message(void **unused)
{
	uint32_t i;

	(void)unused;
	for (i = 0; i < 8; i++)
		sample[i] = (struct coll_sample){ .class = COLL_CLASS_CLUSTER, .bytes = 8192,
						  .ns = i % 2 ? 60000 : 5000000, .waited = { 5000000, 5000000 } };
	measured(16e-3, 1e-6);
	assert_true(coll_drift(&machine, &costs, before(256, 8)));
	assert_near(machine.alpha, 60e-6, 0.01);
	assert_near(machine.beta, 1e-6, 0);
	assert_false(coll_drift(&machine, &costs, before(512, 8)));
	measured(10e-6, 1e-6);
	assert_false(coll_drift(&machine, &costs, before(256, 8)));
	measured(16e-3, 1e-6);
	assert_false(coll_drift(&machine, &costs, before(256, 7)));
}

/* On one node the costs of all links are those of the node. */
static void what_was_taken_over_goes_along(void **unused)
{
	const uint32_t found = traffic(0);
	uint32_t i;

	(void)unused;
	for (i = 0; i < found; i++)
		sample[i].class = COLL_CLASS_NODE;
	measured(0, 0);
	machine.alpha = machine.inside[COLL_LEVEL_NODE].alpha = 1e-3;
	costs.of[COLL_CLASS_NODE].cost.alpha = 1e-3;
	assert_true(coll_drift(&machine, &costs, before(256, found)));
	assert_near(machine.inside[COLL_LEVEL_NODE].alpha, 1e-9 * alpha, 0.1);
	assert_near(machine.alpha, machine.inside[COLL_LEVEL_NODE].alpha, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_and_skew_cancel),
		cmocka_unit_test(a_late_receiver_is_left_out),
		cmocka_unit_test(an_answer_is_as_good_as_an_exchange),
		cmocka_unit_test(of_many_pairs_some_are_sampled),
		cmocka_unit_test(the_lottery_adapts),
		cmocka_unit_test(old_runs_are_forgotten),
		cmocka_unit_test(a_message_after_its_run_counts),
		cmocka_unit_test(a_message_is_told_once),
		cmocka_unit_test(what_ranks_did_is_told),
		cmocka_unit_test(a_sum_tells_all_ranks_the_same),
		cmocka_unit_test(what_no_ranks_add_up_to_is_left_out),
		cmocka_unit_test(what_the_first_look_finds_was_there),
		cmocka_unit_test(a_half_of_two_threads_is_dropped),
		cmocka_unit_test(parts_of_a_wait_are_no_longer),
		cmocka_unit_test(costs_follow),
		cmocka_unit_test(what_is_given_or_near_stays),
		cmocka_unit_test(what_messages_do_not_tell_stays),
		cmocka_unit_test(no_latency_is_longer_than_a_message),
		cmocka_unit_test(what_was_taken_over_goes_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
