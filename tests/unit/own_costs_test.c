// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * What a rank's own sends and reductions take: planted numbers come out of noise, what was not sending
 * says nothing, and of all ranks those count that most of them tell.
 *
 * Length: one property of a send, a slot or a sum a test.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/exec/own_costs.h"
#include "libcoll/topology/drift.h"

enum { RUNS = 64, BRIEF = 8, LONG = 4096, RANKS = 8 };

static const double overhead = 300, gap = 0.1, wire = 8;	/* ns, and ns a byte */

static struct coll_own_costs own;
static struct coll_machine machine;
static struct coll_costs costs;
static uint64_t state;

static uint64_t random_below(uint64_t bound)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % bound;
}

static void begin(void)
{
	state = 11;
	coll_own_init(&own);
	own.clock_ns = 0;
	memset(&machine, 0, sizeof(machine));
	memset(&costs, 0, sizeof(costs));
}

static void assert_near(double value, double wanted, double part)
{
	if (!(fabs(value / wanted - 1) <= part))
		fail_msg("%g is not within %g of %g", value, part, wanted);
}

/* What a send takes; one in three is held up, for a while that no other is. */
static uint64_t send_ns(double bytes, double per_byte)
{
	const uint64_t ns = lround(overhead + bytes * per_byte);

	return random_below(3) ? ns + random_below(ns / 20) : ns + 1000 + random_below(1000000);
}

/* ---- sends ---------------------------------------------------------------------- */

static void sends(enum coll_link_class class, uint64_t longest, double per_byte)
{
	uint32_t run;

	for (run = 0; run < RUNS; run++) {
		const uint64_t bytes = run % 2 ? longest : BRIEF;

		coll_own_sent(&own, run, class, bytes, send_ns(bytes, per_byte));
	}
}

static void a_line_comes_out_of_noise(void **unused)
{
	struct coll_own_found found;

	(void)unused;
	begin();
	sends(COLL_CLASS_NODE, LONG, gap);
	found = coll_own_fit(&own, &machine, 0);
	assert_near(found.overhead[COLL_LEVEL_NODE], overhead * 1e-9, 0.1);
	assert_near(found.byte_gap[COLL_LEVEL_NODE], gap * 1e-9, 0.1);
	assert_true(found.overhead[COLL_LEVEL_DOMAIN] <= 0 && found.overhead[COLL_LEVEL_CLUSTER] <= 0);
}

/* The clock is looked at meanwhile. */
static void the_clocks_price_is_left_out(void **unused)
{
	uint32_t run;

	(void)unused;
	begin();
	own.clock_ns = 40;
	for (run = 0; run < RUNS; run++)
		coll_own_sent(&own, run, COLL_CLASS_NODE, BRIEF, 340);
	assert_near(coll_own_fit(&own, &machine, 0).overhead[COLL_LEVEL_NODE], overhead * 1e-9, 0.01);
}

/* Nor does one size tell the gap, nor long messages the overhead; seven sends tell nothing. */
static void what_sends_do_not_tell_is_not_known(void **unused)
{
	struct coll_own_found found;
	uint32_t run;

	(void)unused;
	begin();
	machine.inside[COLL_LEVEL_NODE].byte_gap = gap * 1e-9;
	for (run = 0; run < OWN_LEAST - 1; run++)
		coll_own_sent(&own, run, COLL_CLASS_NODE, 64, 300 + 64 * gap);
	assert_true(coll_own_fit(&own, &machine, 0).overhead[COLL_LEVEL_NODE] <= 0);
	coll_own_sent(&own, run, COLL_CLASS_NODE, 64, 300 + 64 * gap);
	found = coll_own_fit(&own, &machine, 0);
	assert_near(found.overhead[COLL_LEVEL_NODE], overhead * 1e-9, 0.01);
	assert_true(found.byte_gap[COLL_LEVEL_NODE] <= 0);
	begin();
	machine.inside[COLL_LEVEL_NODE].byte_gap = gap * 1e-9;
	for (run = 0; run < RUNS; run++)
		coll_own_sent(&own, run, COLL_CLASS_NODE, 1 << 20, 300 + (1 << 20) * gap);
	assert_true(coll_own_fit(&own, &machine, 0).overhead[COLL_LEVEL_NODE] <= 0);
}

static void old_sends_do_not_count(void **unused)
{
	(void)unused;
	begin();
	sends(COLL_CLASS_NODE, LONG, gap);
	assert_true(coll_own_fit(&own, &machine, RUNS - OWN_LEAST + 1).overhead[COLL_LEVEL_NODE] <= 0);
}

/* More of one run tell nothing more, and cost. */
static void of_a_run_a_few_are_looked_at(void **unused)
{
	uint32_t i;

	(void)unused;
	begin();
	for (i = 0; i < 3 * OWN_A_RUN; i++)
		coll_own_sent(&own, 5, COLL_CLASS_NODE, BRIEF, 300);
	assert_int_equal(own.send[COLL_LEVEL_NODE].count, OWN_A_RUN);
	for (i = 0; i < 3 * OWN_A_RUN; i++)
		coll_own_reduced(&own, 5, LONG, 300);
	assert_int_equal(own.sums, OWN_A_RUN);
	coll_own_sent(&own, 6, COLL_CLASS_NODE, BRIEF, 300);
	assert_int_equal(own.send[COLL_LEVEL_NODE].count, OWN_A_RUN + 1);
}

/* Algorithms count it at both ends. */
static void the_longer_end_is_the_overhead(void **unused)
{
	uint32_t run;

	(void)unused;
	begin();
	for (run = 0; run < RUNS; run++)
		coll_own_took(&own, run, COLL_CLASS_NODE, BRIEF, 2 * overhead);
	assert_near(coll_own_fit(&own, &machine, 0).overhead[COLL_LEVEL_NODE], 2e-9 * overhead, 0.01);
	sends(COLL_CLASS_NODE, LONG, gap);
	assert_near(coll_own_fit(&own, &machine, 0).overhead[COLL_LEVEL_NODE], 2e-9 * overhead, 0.01);
	assert_near(coll_own_fit(&own, &machine, 0).byte_gap[COLL_LEVEL_NODE], gap * 1e-9, 0.1);
	for (run = 0; run < RUNS; run++)
		coll_own_took(&own, run, COLL_CLASS_NODE, BRIEF, overhead / 2);
	assert_near(coll_own_fit(&own, &machine, 0).overhead[COLL_LEVEL_NODE], overhead * 1e-9, 0.1);
}

/* ---- bursts ---------------------------------------------------------------------- */

static const struct coll_own_time then = { 1000000, 70, 9, 0, 0 };

/* So many messages are queued at once, and go one after the other. */
static void burst(uint32_t run, enum coll_link_class class, uint32_t count, uint64_t bytes, uint64_t ns,
		  uint64_t looks)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		assert_true(coll_own_queued(&own, run, class, bytes, then));
	for (i = 1; i <= count; i++)
		assert_true(coll_own_gone(&own, run, (struct coll_own_time){ then.now + i * ns, then.looks + looks,
									     then.recvs, 0, 0 }) == (i == count));
}

static void a_burst_is_as_many_sends(void **unused)
{
	struct coll_own_found found;
	uint32_t run;

	(void)unused;
	begin();
	for (run = 0; run < RUNS; run++) {
		const uint64_t bytes = run % 2 ? LONG : BRIEF;

		burst(run, COLL_CLASS_NODE, 1 + run % 3, bytes, overhead + bytes * gap, run % 2);
	}
	found = coll_own_fit(&own, &machine, 0);
	assert_near(found.overhead[COLL_LEVEL_NODE], overhead * 1e-9, 0.01);
	assert_near(found.byte_gap[COLL_LEVEL_NODE], gap * 1e-9, 0.01);
}

/* The rank looked for messages meanwhile: its socket was full, or nobody told it that they had gone. */
static void who_waits_does_not_send(void **unused)
{
	(void)unused;
	begin();
	burst(0, COLL_CLASS_NODE, 2, 1 << 20, 300, 2);
	burst(1, COLL_CLASS_CLUSTER, 2, BRIEF, 300, 2);
	assert_int_equal(own.send[COLL_LEVEL_NODE].count + own.send[COLL_LEVEL_CLUSTER].count, 0);
	burst(2, COLL_CLASS_CLUSTER, 2, 1 << 20, 300, 2);
	assert_int_equal(own.send[COLL_LEVEL_CLUSTER].count, 1);
	assert_true(own.send[COLL_LEVEL_CLUSTER].latest[0].waited);
}

/* Another message has arrived; another kind of work was done; links of two classes; another run's messages. */
static void what_else_was_done_spoils_a_burst(void **unused)
{
	(void)unused;
	begin();
	coll_own_queued(&own, 0, COLL_CLASS_NODE, BRIEF, then);
	assert_true(coll_own_gone(&own, 0, (struct coll_own_time){ then.now + 300, then.looks, then.recvs + 1, 0, 0 }));
	coll_own_queued(&own, 1, COLL_CLASS_NODE, BRIEF, then);
	coll_own_disturb(&own);
	assert_true(coll_own_gone(&own, 1, then));
	coll_own_queued(&own, 2, COLL_CLASS_NODE, BRIEF, then);
	coll_own_queued(&own, 2, COLL_CLASS_CLUSTER, BRIEF, then);
	assert_false(coll_own_gone(&own, 2, then));
	assert_true(coll_own_gone(&own, 2, then));
	coll_own_queued(&own, 3, COLL_CLASS_NODE, BRIEF, then);
	assert_true(coll_own_queued(&own, 4, COLL_CLASS_NODE, BRIEF, then));
	assert_false(coll_own_gone(&own, 4, then));
	assert_true(coll_own_gone(&own, 3, then));
	coll_own_queued(&own, 5, COLL_CLASS_WAN, BRIEF, then);
	assert_true(coll_own_gone(&own, 5, then));
	coll_own_queued(&own, 5, COLL_CLASS_CLUSTER, 1 << 20, then);	/* its reader was late */
	assert_true(coll_own_gone(&own, 5, (struct coll_own_time){ then.now + 300, then.looks + 5, then.recvs, 1, 0 }));
	assert_int_equal(own.send[COLL_LEVEL_NODE].count + own.send[COLL_LEVEL_CLUSTER].count, 0);
	burst(6, COLL_CLASS_NODE, 1, BRIEF, 300, 0);
	assert_int_equal(own.send[COLL_LEVEL_NODE].count, 1);
}

/* It waited before the burst began, so that no further wait is counted; its grant comes while the burst is under way. */
static void a_reader_that_is_late_already_spoils_a_burst(void **unused)
{
	const struct coll_own_time late = { then.now, then.looks, then.recvs, 3, 1 };
	const struct coll_own_time granted = { then.now + 300, then.looks + 5, then.recvs, 3, 0 };

	(void)unused;
	begin();
	coll_own_queued(&own, 0, COLL_CLASS_CLUSTER, 1 << 20, late);
	assert_true(coll_own_gone(&own, 0, granted));
	assert_int_equal(own.send[COLL_LEVEL_CLUSTER].count, 0);
	coll_own_queued(&own, 1, COLL_CLASS_CLUSTER, 1 << 20, granted);
	assert_true(coll_own_gone(&own, 1, (struct coll_own_time){ granted.now + 300, granted.looks + 5, granted.recvs, 3, 0 }));
	assert_int_equal(own.send[COLL_LEVEL_CLUSTER].count, 1);
}

/* Between nodes a copy into a socket is not the wire's time: that tells itself where messages fill the socket. */
static void the_wires_gap_is_not_the_cores(void **unused)
{
	const uint64_t bytes = 1 << 20;
	struct coll_own_found found;
	uint32_t run;

	(void)unused;
	begin();
	machine.byte_gap = wire * 1e-9;
	sends(COLL_CLASS_CLUSTER, LONG, gap);
	found = coll_own_fit(&own, &machine, 0);
	assert_near(found.overhead[COLL_LEVEL_CLUSTER], overhead * 1e-9, 0.1);
	assert_true(found.byte_gap[COLL_LEVEL_CLUSTER] <= 0);
	machine.byte_gap = gap * 0.5e-9;	/* no wire takes less than the core */
	assert_near(coll_own_fit(&own, &machine, 0).byte_gap[COLL_LEVEL_CLUSTER], gap * 1e-9, 0.1);
	begin();
	machine.byte_gap = gap * 1e-9;
	for (run = 0; run < RUNS; run++)
		if (run % 2)
			burst(run, COLL_CLASS_CLUSTER, 1, bytes, overhead + bytes * wire, 5);
		else
			burst(run, COLL_CLASS_CLUSTER, 1, BRIEF, overhead, 0);
	assert_near(coll_own_fit(&own, &machine, 0).byte_gap[COLL_LEVEL_CLUSTER], wire * 1e-9, 0.01);
}

/* ---- reductions -------------------------------------------------------------------- */

static void reductions_tell_gamma(void **unused)
{
	uint32_t run;

	(void)unused;
	begin();
	for (run = 0; run < OWN_LEAST - 1; run++)
		coll_own_reduced(&own, run, 10000, 1000);
	assert_true(coll_own_fit(&own, &machine, 0).gamma <= 0);
	for (; run < RUNS; run++)
		coll_own_reduced(&own, run, 10000, random_below(2) ? 1000 : 1000000);
	assert_near(coll_own_fit(&own, &machine, 0).gamma, 0.1e-9, 0.01);
	assert_true(coll_own_gamma(8192, 8) > 0 && coll_own_gamma(8192, 8) < 1e-6);
}

/* ---- slots ------------------------------------------------------------------------- */

static void a_slot_keeps_what_it_is_given(void **unused)
{
	const struct coll_own_found mine = { .overhead = { 1e-9, 2.345e-6, 999 }, .byte_gap = { 0, 7e-12, 1e-3 },
					     .gamma = 0.0842e-9 };
	struct coll_own_slot slot = coll_own_write(&mine), two = slot;
	struct coll_own_found found;
	int level;

	(void)unused;
	assert_true(coll_own_read(&slot, &found));
	for (level = 0; level < COLL_LEVELS_MAX; level++) {
		assert_near(found.overhead[level], mine.overhead[level], 0.005);
		if (mine.byte_gap[level] > 0)
			assert_near(found.byte_gap[level], mine.byte_gap[level], 0.005);
	}
	assert_true(found.byte_gap[0] <= 0);
	assert_near(found.gamma, mine.gamma, 0.005);
	two.word[0] += slot.word[0];
	two.word[1] += slot.word[1];
	assert_false(coll_own_read(&two, &found));
	memset(&two, 0, sizeof(two));
	assert_false(coll_own_read(&two, &found));
}

/* A rank may say anything: infinite, no number, longer than any message. */
static void no_number_is_not_known(void **unused)
{
	const struct coll_own_found none = { .gamma = -1, .overhead = { 1e9, NAN, INFINITY } };
	struct coll_own_slot slot = { { 1ull << 48 | 0xffffff00fe00, ~0ull } };
	struct coll_own_found found;
	int class;

	(void)unused;
	for (class = 0; class < 2; class++) {
		int i;

		assert_true(coll_own_read(&slot, &found));
		for (i = 0; i < COLL_LEVELS_MAX; i++)
			assert_true(found.overhead[i] <= 0 && found.byte_gap[i] <= 0);
		assert_true(found.gamma <= 0);
		slot = coll_own_write(&none);
	}
}

static void every_slot_has_one_rank(void **unused)
{
	static const uint32_t sizes[] = { 1, 2, 15, 16, 17, 31, 33, 100, 1000 };
	uint32_t i, rank, call, first = 0, others = 0;

	(void)unused;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (call = 256; call < 260; call++) {
			uint32_t ranks_of[OWN_SLOTS] = { 0 }, slot;

			for (rank = 0; rank < sizes[i]; rank++) {
				slot = coll_own_slot_of(rank, sizes[i], call);
				assert_true(slot == COLL_NONE || slot < OWN_SLOTS);
				if (slot != COLL_NONE)
					ranks_of[slot]++;
				if (sizes[i] == 1000 && !slot && call == 256)
					first = rank;
				others += sizes[i] == 1000 && !slot && rank != first;
			}
			for (slot = 0; slot < OWN_SLOTS; slot++)
				assert_int_equal(ranks_of[slot], slot < sizes[i]);
		}
	assert_true(others);		/* another call asks other ranks */
}

/* ---- of all ranks ------------------------------------------------------------------ */

static struct coll_own_found told[OWN_KEPT * OWN_SLOTS];

static const struct coll_samples_found *all_tell(uint32_t owns, uint32_t ranks, uint32_t call)
{
	static struct coll_samples_found found;

	found = (struct coll_samples_found){ .call = call, .ranks = ranks, .own = told, .owns = owns };
	return &found;
}

/* Of a node, from a start that was wrong. */
static void measured(double o, double g, double a_byte)
{
	struct coll_class_cost *node = &costs.of[COLL_CLASS_NODE];
	uint32_t i;

	begin();
	machine.inside[COLL_LEVEL_NODE] = node->cost = (struct coll_level_cost){ 2e-6, o, 0.2e-9, g };
	machine.gamma = costs.gamma = a_byte;
	for (i = 0; i < OWN_KEPT * OWN_SLOTS; i++)
		told[i] = (struct coll_own_found){ .overhead = { 0, 300e-9, 0 }, .byte_gap = { 0, 0.1e-9, 0 },
						   .gamma = 0.1e-9 };
}

static void most_ranks_decide(void **unused)
{
	const struct coll_level_cost *node = &machine.inside[COLL_LEVEL_NODE];

	(void)unused;
	measured(1.9e-6, 0.01e-9, 5e-9);
	told[2].overhead[COLL_LEVEL_NODE] = told[2].byte_gap[COLL_LEVEL_NODE] = 1e-3;
	told[0].gamma = told[1].gamma = told[6].gamma = 1e-3;
	told[3].overhead[COLL_LEVEL_NODE] = 1e-12;
	assert_true(coll_drift(&machine, &costs, all_tell(RANKS, RANKS, 512)));
	assert_near(node->overhead, 300e-9, 1e-9);
	assert_near(node->byte_gap, 0.1e-9, 1e-9);
	assert_near(machine.gamma, 0.1e-9, 1e-9);
	assert_int_equal(costs.of[COLL_CLASS_NODE].overhead_drift.call, 512);
	assert_int_equal(costs.of[COLL_CLASS_NODE].gap_drift.samples, RANKS);
	assert_int_equal(costs.gamma_drift.samples, RANKS);
	/* They are the measured ones still, and nothing has changed since. */
	assert_false(coll_drift(&machine, &costs, all_tell(RANKS, RANKS, 768)));
}

static void what_is_given_or_near_stays(void **unused)
{
	const struct coll_level_cost *node = &machine.inside[COLL_LEVEL_NODE];

	(void)unused;
	measured(270e-9, 0.09e-9, 0.12e-9);
	assert_false(coll_drift(&machine, &costs, all_tell(RANKS, RANKS, 512)));
	measured(1.9e-6, 0.01e-9, 5e-9);
	machine.inside[COLL_LEVEL_NODE].overhead = 1e-6;	/* by an option */
	machine.inside[COLL_LEVEL_NODE].byte_gap = 1e-12;
	machine.gamma = 3e-9;
	assert_false(coll_drift(&machine, &costs, all_tell(RANKS, RANKS, 512)));
	assert_near(node->overhead, 1e-6, 0);
	assert_near(machine.gamma, 3e-9, 0);
}

static void parts_are_no_more_than_the_whole(void **unused)
{
	const struct coll_level_cost *node = &machine.inside[COLL_LEVEL_NODE];
	int i;

	(void)unused;
	measured(0, 0, 0);
	for (i = 0; i < RANKS; i++) {
		told[i].overhead[COLL_LEVEL_NODE] = 9e-6;
		told[i].byte_gap[COLL_LEVEL_NODE] = 9e-9;
	}
	assert_true(coll_drift(&machine, &costs, all_tell(RANKS, RANKS, 512)));
	assert_near(node->overhead, node->alpha, 0);
	assert_near(node->byte_gap, node->beta, 0);
}

/* Messages of one class: 20 us, and 1 ns a byte. */
static const struct coll_samples_found *messages_tell(enum coll_link_class class)
{
	static struct coll_sample sample[2 * OWN_LEAST];
	static struct coll_samples_found found;
	uint32_t i;

	for (i = 0; i < 2 * OWN_LEAST; i++) {
		const uint32_t bytes = i % 2 ? 1 << 20 : BRIEF;

		sample[i] = (struct coll_sample){ .class = class, .bytes = bytes, .ns = 20000 + bytes,
						  .waited = { 20000 + bytes, 20000 + bytes } };
	}
	found = (struct coll_samples_found){ .call = 512, .sample = sample, .samples = 2 * OWN_LEAST };
	return &found;
}

/* Links of a switch have a latency and a byte's time alone: overhead and gap are the NIC's. */
static void costs_go_on_from_a_switch_and_to_it(void **unused)
{
	struct coll_class_cost *cluster = &costs.of[COLL_CLASS_CLUSTER], *below = &costs.of[COLL_CLASS_SWITCH];

	(void)unused;
	begin();
	below->cost = (struct coll_level_cost){ .alpha = 1e-3, .beta = 100e-9 };
	cluster->cost = (struct coll_level_cost){ 1e-3, 10e-6, 100e-9, 50e-9 };
	machine = (struct coll_machine){ .alpha = 1e-3, .overhead = 10e-6, .beta = 100e-9, .byte_gap = 50e-9,
					 .switch_alpha = 1e-3, .switch_beta = 100e-9 };
	assert_true(coll_drift(&machine, &costs, messages_tell(COLL_CLASS_SWITCH)));
	assert_near(machine.switch_alpha, 20e-6, 0.01);
	assert_near(machine.alpha, 20e-6, 0.01);
	assert_near(machine.beta, 1e-9, 0.01);
	assert_near(machine.byte_gap, 0.5e-9, 0.01);
	assert_near(machine.overhead, 10e-6, 1e-9);

	begin();
	below->assumed = true;
	below->cost = (struct coll_level_cost){ .alpha = 1e-3, .beta = 100e-9, .byte_gap = 50e-9 };	/* a pair tells it */
	machine = (struct coll_machine){ .switch_alpha = 1e-3, .switch_beta = 100e-9,
					 .inside = { [COLL_LEVEL_NODE] = { .alpha = 1e-3 } } };
	costs.of[COLL_CLASS_NODE].cost.alpha = 1e-3;
	assert_true(coll_drift(&machine, &costs, messages_tell(COLL_CLASS_NODE)));
	assert_near(machine.switch_alpha, 20e-6, 0.01);
	assert_near(machine.switch_beta, 1e-9, 0.01);
}

/* Beside a usual latency the usual overhead counts, in its proportion. */
static void no_part_is_known_before_the_whole(void **unused)
{
	struct coll_level_cost *node = &machine.inside[COLL_LEVEL_NODE];

	(void)unused;
	measured(0, 0, 0.1e-9);
	node->alpha = 0;
	assert_true(coll_drift(&machine, &costs, all_tell(RANKS, RANKS, 512)));
	assert_true(node->overhead <= 0 && node->byte_gap > 0);
	measured(0, 0, 0.1e-9);
	node->beta = 0;
	assert_true(coll_drift(&machine, &costs, all_tell(RANKS, RANKS, 512)));
	assert_true(node->overhead > 0 && node->byte_gap <= 0);
}

/* Of many ranks three may be the bad ones; of few there are no others. */
static void few_of_many_tell_nothing(void **unused)
{
	(void)unused;
	measured(1.9e-6, 0.01e-9, 5e-9);
	assert_false(coll_drift(&machine, &costs, all_tell(3, OWN_SLOTS + 1, 512)));
	assert_true(coll_drift(&machine, &costs, all_tell(4, OWN_SLOTS + 1, 512)));
	measured(1.9e-6, 0.01e-9, 5e-9);
	assert_true(coll_drift(&machine, &costs, all_tell(1, 2, 512)));
}

/* On one node the costs of all links are those of the node. */
static void what_was_taken_over_goes_along(void **unused)
{
	struct coll_class_cost *all = &costs.of[COLL_CLASS_CLUSTER];

	(void)unused;
	measured(1.9e-6, 0.01e-9, 5e-9);
	all->assumed = true;
	machine.alpha = all->cost.alpha = 10e-6;
	machine.beta = all->cost.beta = 0.8e-9;
	machine.byte_gap = all->cost.byte_gap = 0.4e-9;
	assert_true(coll_drift(&machine, &costs, all_tell(RANKS, RANKS, 512)));
	assert_near(machine.overhead, 300e-9, 1e-9);
	assert_near(machine.byte_gap, 0.1e-9, 1e-9);
	measured(1.9e-6, 0.01e-9, 5e-9);
	machine.overhead = 3e-6;	/* by an option */
	assert_true(coll_drift(&machine, &costs, all_tell(RANKS, RANKS, 512)));
	assert_near(machine.overhead, 3e-6, 0);
}

/* Also where a part was too long for a latency that has just fallen. */
static void parts_go_along_with_the_whole(void **unused)
{
	struct coll_sample sample[8];
	struct coll_samples_found found;
	int i;

	(void)unused;
	for (i = 0; i < 8; i++)
		sample[i] = (struct coll_sample){ .class = COLL_CLASS_NODE, .bytes = 8, .ns = 1000,
						  .waited = { 1000, 1000 } };
	measured(10e-3, 0, 0.1e-9);
	machine.inside[COLL_LEVEL_NODE].alpha = costs.of[COLL_CLASS_NODE].cost.alpha = 10e-3;
	machine.alpha = machine.overhead = 10e-3;	/* of the node */
	costs.of[COLL_CLASS_CLUSTER].assumed = true;
	found = *all_tell(0, RANKS, 512);
	found.sample = sample;
	found.samples = 8;
	assert_true(coll_drift(&machine, &costs, &found));
	assert_near(machine.alpha, 1e-6, 0.01);
	assert_near(machine.overhead, 1e-6, 0.01);
	assert_true(coll_drift(&machine, &costs, all_tell(RANKS, RANKS, 768)));
	assert_near(machine.overhead, 300e-9, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_comes_out_of_noise),
		cmocka_unit_test(the_clocks_price_is_left_out),
		cmocka_unit_test(what_sends_do_not_tell_is_not_known),
		cmocka_unit_test(old_sends_do_not_count),
		cmocka_unit_test(of_a_run_a_few_are_looked_at),
		cmocka_unit_test(the_longer_end_is_the_overhead),
		cmocka_unit_test(a_burst_is_as_many_sends),
		cmocka_unit_test(who_waits_does_not_send),
		cmocka_unit_test(what_else_was_done_spoils_a_burst),
		cmocka_unit_test(a_reader_that_is_late_already_spoils_a_burst),
		cmocka_unit_test(the_wires_gap_is_not_the_cores),
		cmocka_unit_test(reductions_tell_gamma),
		cmocka_unit_test(a_slot_keeps_what_it_is_given),
		cmocka_unit_test(no_number_is_not_known),
		cmocka_unit_test(every_slot_has_one_rank),
		cmocka_unit_test(most_ranks_decide),
		cmocka_unit_test(what_is_given_or_near_stays),
		cmocka_unit_test(parts_are_no_more_than_the_whole),
		cmocka_unit_test(no_part_is_known_before_the_whole),
		cmocka_unit_test(costs_go_on_from_a_switch_and_to_it),
		cmocka_unit_test(few_of_many_tell_nothing),
		cmocka_unit_test(what_was_taken_over_goes_along),
		cmocka_unit_test(parts_go_along_with_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
