// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The flit-level simulator: exact where there is a formula, and sound everywhere. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "flit/policy.h"
#include "flit/sweep.h"
#include "tests/lib/schedules.h"

static struct flit_net net;
static struct flit_result result;

/* A configuration on `name`; the network is freed with forget(). */
static struct flit_config make(const char *name, enum flit_routing routing,
			       const struct flit_machine *machine)
{
	struct flit_config config = { .net = &net, .machine = *machine, .length = 16,
				      .cycles = 20000, .seed = 1, .bin = 10, .hot = 16, .hot_step = 1 };
	char why[256] = "";

	if (flit_net_make(&net, name, why, sizeof(why)) ||
	    flit_route_make(&config.route, &net, routing, machine->vcs, false, why, sizeof(why)))
		fail_msg("%s: %s", name, why);
	return config;
}

static void forget(void)
{
	flit_net_free(&net);
}

/* ---- a message alone ------------------------------------------------------ */

static void check_alone(const char *name, enum flit_routing routing,
			const struct flit_machine *machine, u32 step)
{
	struct flit_config config = make(name, routing, machine);
	u32 from, to;

	config.pattern = FLIT_TRACE;
	config.cycles = 1000000;
	for (from = 0; from < net.nodes; from += step)
		for (to = 0; to < net.nodes; to += step) {
			struct flit_message message = { 7, from, to, 5 + to % 13 };
			u64 want = flit_zero_load(&config, from, to, message.flits);

			config.work.trace = &message;
			config.work.messages = 1;
			config.policy = (from + to) % FLIT_POLICIES;
			assert_int_equal(flit_run(&config, &result), 0);
			assert_int_equal(result.all.messages, 1);
			if (result.all.least != want || result.all.most != want)
				fail_msg("%s, %u to %u: %u cycles, and the formula says %llu", name,
					 from, to, result.all.least, (unsigned long long)want);
		}
	forget();
}

static void zero_load_latency_is_the_formula(void **state)
{
	struct flit_machine full = flit_thesis, two = flit_booksim;

	(void)state;
	full.credit = 0;
	two.buffer = 6;
	check_alone("mesh:4x3", FLIT_DOR, &flit_thesis, 1);
	check_alone("mesh:4x3", FLIT_DOR, &flit_booksim, 1);
	check_alone("mesh:4x3", FLIT_NORTH_LAST, &full, 1);
	check_alone("mesh:3x3x2", FLIT_ADAPTIVE, &full, 1);
	check_alone("mesh:16x16", FLIT_DOR, &flit_booksim, 23);
	check_alone("torus:5x4", FLIT_DOR, &two, 1);
	check_alone("torus:3x3x3", FLIT_DOR, &flit_thesis, 2);
	check_alone("tesh:1,2,0", FLIT_ROUTE_TESH, &flit_thesis, 1);
	check_alone("tesh:1,3,0", FLIT_ROUTE_TESH, &full, 5);
	check_alone("tesh:2,2,1", FLIT_ROUTE_TESH, &flit_booksim, 19);
	check_alone("tesh:2,2,0", FLIT_ROUTE_TESH, &flit_thesis, 17);
}

/* BookSim's own minima: 4 cycles a router, 2 at the ends, a cycle a later flit. */
static void zero_load_latency_equals_booksim(void **state)
{
	struct flit_config config = make("mesh:16x16", FLIT_DOR, &flit_booksim);

	(void)state;
	assert_int_equal(flit_zero_load(&config, 0, 0, 16), 21);
	assert_int_equal(flit_zero_load(&config, 0, 2, 16), 29);
	forget();
}

/* ---- TESH(2,2,0) as in the thesis' figures 6.1 and 6.2 --------------------- */

static void tesh_has_the_thesis_topology(void **state)
{
	struct flit_config config = make("tesh:2,2,0", FLIT_ROUTE_TESH, &flit_thesis);
	u32 i, seen = 0;

	(void)state;
	(void)config;
	assert_int_equal(net.nodes, 256);
	assert_int_equal(net.outer, 32);
	assert_int_equal(net.between, 16 * 48 + 32);
	for (i = 0; i < net.between + net.nodes; i++) {
		const struct flit_link *l = &net.link[i];
		u32 up = flit_digit(&net, l->from, 2, true);
		u32 right = flit_digit(&net, l->from, 2, false);

		if (l->direction != FLIT_OUTER)
			continue;
		seen++;
		assert_int_equal(l->from % 16, l->vertical ? 0 : 3);
		assert_int_equal(l->to % 16, l->vertical ? 0 : 3);
		assert_int_equal(flit_digit(&net, l->to, 2, true),
				 l->vertical ? (up + 1) % 4 : up);
		assert_int_equal(flit_digit(&net, l->to, 2, false),
				 l->vertical ? right : (right + 1) % 4);
	}
	assert_int_equal(seen, 32);
	/* (1,1)(2,1) to (0,3)(1,2): up 3 modules, right 2: 3 + 3, 3 + 2, then 1 + 1 */
	assert_int_equal(flit_distance(&net, 5 * 16 + 9, 3 * 16 + 6), 3 + 3 + 3 + 2 + 2);
	forget();
}

/* ---- nothing is lost, nothing depends on anything but the seed ------------- */

static void check_kept(const char *name, enum flit_routing routing,
		       const struct flit_machine *machine, double rate)
{
	struct flit_config config = make(name, routing, machine);
	u32 policy;

	config.rate = rate;
	config.cycles = 1500;
	for (policy = 0; policy < FLIT_POLICIES; policy++) {
		struct flit_result again;

		config.policy = policy;
		assert_int_equal(flit_run(&config, &result), 0);
		assert_true(result.arrived > 500);
		assert_int_equal(result.sent, result.arrived + result.inside);
		assert_int_equal(flit_run(&config, &again), 0);
		again.seconds = result.seconds;
		assert_memory_equal(&again, &result, sizeof(result));
	}
	config.seed++;
	flit_run(&config, &result);
	forget();
}

static void flits_are_conserved(void **state)
{
	struct flit_machine at_once = flit_thesis, eight = flit_thesis, slow = flit_booksim;

	(void)state;
	at_once.credit = 0;
	eight.vcs = 8;
	eight.eject_vcs = 3;
	slow.route = 2;
	slow.one_port = false;
	check_kept("mesh:8x8", FLIT_DOR, &flit_booksim, 0.01);
	check_kept("mesh:8x8", FLIT_NORTH_LAST, &at_once, 0.02);
	check_kept("mesh:4x4x4", FLIT_ADAPTIVE, &flit_thesis, 0.03);
	check_kept("torus:6x6", FLIT_DOR, &slow, 0.03);
	check_kept("torus:8x8", FLIT_ADAPTIVE, &eight, 0.03);
	check_kept("tesh:2,2,0", FLIT_ROUTE_TESH, &at_once, 0.002);
	check_kept("tesh:2,2,0", FLIT_ROUTE_TESH, &flit_thesis, 0.002);
	check_kept("tesh:2,2,0", FLIT_ADAPTIVE, &eight, 0.002);
}

static void workers_change_nothing(void **state)
{
	struct flit_config config[6];
	struct flit_result *one, *three;
	u32 i;

	(void)state;
	config[0] = make("tesh:1,2,0", FLIT_ROUTE_TESH, &flit_thesis);
	config[0].rate = 0.01;
	config[0].cycles = 2000;
	for (i = 1; i < 6; i++) {
		config[i] = config[0];
		config[i].seed = i;
	}
	one = flit_sweep(config, 6, 1, NULL);
	three = flit_sweep(config, 6, 3, NULL);
	for (i = 0; i < 6; i++) {
		assert_int_equal(one[i].error, 0);
		three[i].seconds = one[i].seconds;
		assert_memory_equal(&one[i], &three[i], sizeof(*one));
	}
	flit_sweep_free(one, 6);
	flit_sweep_free(three, 6);
	forget();
}

/* ---- deadlock --------------------------------------------------------------- */

static void check_proof(const char *name, enum flit_routing routing, u32 vcs, bool broken, int want)
{
	struct flit_route route;
	struct flit_proof proof;
	char why[256] = "";
	u32 i;

	assert_int_equal(flit_net_make(&net, name, why, sizeof(why)), 0);
	assert_int_equal(flit_route_make(&route, &net, routing, vcs, broken, why, sizeof(why)), 0);
	assert_int_equal(flit_depend(&route, &proof, why, sizeof(why)), want);
	assert_int_equal(!proof.cycle.count, !want);
	for (i = 0; i + 1 < proof.cycle.count && i + 1 < FLIT_CYCLE_MAX; i++)
		if (net.link[proof.cycle.channel[i].link].direction < FLIT_OUTER)
			assert_int_equal(net.link[proof.cycle.channel[i].link].to,
					 net.link[proof.cycle.channel[i + 1].link].from);
	forget();
}

static void routings_are_free_of_deadlock(void **state)
{
	(void)state;
	check_proof("mesh:6x5", FLIT_DOR, 1, false, 0);
	check_proof("mesh:6x5", FLIT_NORTH_LAST, 1, false, 0);
	check_proof("mesh:4x3x3", FLIT_ADAPTIVE, 2, false, 0);
	check_proof("torus:6x5", FLIT_DOR, 2, false, 0);
	check_proof("torus:5x5", FLIT_ADAPTIVE, 3, false, 0);
	check_proof("tesh:2,2,0", FLIT_ROUTE_TESH, 4, false, 0);
	check_proof("tesh:2,2,0", FLIT_ADAPTIVE, 4, false, 0);
	check_proof("tesh:1,3,0", FLIT_ADAPTIVE, 5, false, 0);
	check_proof("tesh:2,2,1", FLIT_ROUTE_TESH, 3, false, 0);
	check_proof("torus:6x5", FLIT_DOR, 4, true, -EDEADLK);
	check_proof("tesh:2,2,0", FLIT_ROUTE_TESH, 4, true, -EDEADLK);
	check_proof("tesh:2,2,0", FLIT_ADAPTIVE, 4, true, -EDEADLK);
}

/* One class where two are needed: it stops, and says where. */
static void broken_classes_deadlock(void **state)
{
	struct flit_config config = make("tesh:2,2,0", FLIT_ROUTE_TESH, &flit_thesis);
	u32 i;

	(void)state;
	config.route.broken = true;
	config.rate = 0.0016;
	config.cycles = 100000;
	assert_int_equal(flit_run(&config, &result), -EDEADLK);
	assert_true(result.stuck.count >= 2);
	assert_int_equal(result.sent, result.arrived + result.inside);
	for (i = 0; i < result.stuck.count; i++)
		assert_true(result.stuck.channel[i].link < net.links);
	config.route.broken = false;
	config.cycles = 12000;
	assert_int_equal(flit_run(&config, &result), 0);
	forget();
}

/* ---- policies --------------------------------------------------------------- */

static void occupancy_keeps_the_order_of_arrival(void **state)
{
	struct flit_lane lane = { .last = FLIT_NO_VC, .first = 1 << 2 };
	struct flit_vc vc[4] = { { .born = 50 }, { .born = 10 }, { .born = 40 }, { .born = 30 } };
	const u32 order[] = { 3, 0, 2, 1 };
	u32 i;

	(void)state;
	for (i = 0; i < 4; i++)
		flit_order_append(&lane, order[i]);
	assert_int_equal(flit_choose(FLIT_OCCUPANCY, &lane, vc, 0xf), 3);
	assert_int_equal(flit_choose(FLIT_OCCUPANCY, &lane, vc, 0x7), 0);	/* 3 is blocked */
	assert_int_equal(flit_choose(FLIT_OCCUPANCY_HIER, &lane, vc, 0xf), 2);
	assert_int_equal(flit_choose(FLIT_OCCUPANCY_HIER, &lane, vc, 0x3), 0);
	assert_int_equal(flit_choose(FLIT_AGE, &lane, vc, 0xf), 1);
	assert_int_equal(flit_choose(FLIT_AGE, &lane, vc, 0xd), 3);
	lane.turn = 2;
	assert_int_equal(flit_choose(FLIT_RR, &lane, vc, 0xf), 2);
	assert_int_equal(flit_choose(FLIT_RR, &lane, vc, 0x3), 0);
	lane.last = 1;
	assert_int_equal(flit_choose(FLIT_HOLD, &lane, vc, 0xf), 1);
	assert_int_equal(flit_choose(FLIT_HOLD, &lane, vc, 0xd), 2);
	flit_order_remove(&lane, 0);
	assert_int_equal(flit_choose(FLIT_OCCUPANCY, &lane, vc, 0x7), 2);
	flit_order_remove(&lane, 3);
	flit_order_append(&lane, 3);
	assert_int_equal(flit_choose(FLIT_OCCUPANCY, &lane, vc, 0xa), 1);
}

/* Without packets between modules, hierarchical occupancy is occupancy. */
static void hier_equals_occupancy_inside_a_module(void **state)
{
	struct flit_config config = make("mesh:6x6", FLIT_DOR, &flit_thesis);
	struct flit_result other;

	(void)state;
	config.rate = 0.015;
	config.cycles = 4000;
	config.policy = FLIT_OCCUPANCY;
	assert_int_equal(flit_run(&config, &result), 0);
	config.policy = FLIT_OCCUPANCY_HIER;
	assert_int_equal(flit_run(&config, &other), 0);
	assert_memory_equal(&other.all, &result.all, sizeof(other.all));
	forget();
}

/* ---- against BookSim and the thesis ------------------------------------------ */

/* Round robin on BookSim's router: its latencies and its saturation, within 5 %. */
static void latency_curve_equals_booksim(void **state)
{
	static const struct { double offered, latency; } curve[] = {
		{ 0.04, 70.05 }, { 0.12, 92.09 } };	/* 0.12: mean of three seeds */
	struct flit_config config = make("mesh:16x16", FLIT_DOR, &flit_booksim);
	u32 i;

	(void)state;
	config.warmup = 2000;
	config.cycles = 6000;
	config.drain = true;
	for (i = 0; i < 2; i++) {
		config.rate = curve[i].offered / 16;
		assert_int_equal(flit_run(&config, &result), 0);
		assert_true(fabs(result.all.mean / curve[i].latency - 1) < 0.05);
		assert_true(fabs(result.accepted / curve[i].offered - 1) < 0.05);
	}
	config.drain = false;
	config.rate = 0.30 / 16;
	assert_int_equal(flit_run(&config, &result), 0);
	assert_true(fabs(result.accepted / 0.1869 - 1) < 0.05);
	forget();
}

/* Tables 5.2 and 6.2 in ordering: from round robin to occupancy. */
static void check_table(const char *name, enum flit_routing routing, double rate)
{
	struct flit_config config = make(name, routing, &flit_thesis);
	struct flit_result occupancy;
	struct flit_idle a, b;

	config.rate = rate;
	config.interval = 1000;
	config.policy = FLIT_RR;
	assert_int_equal(flit_run(&config, &result), 0);
	config.policy = FLIT_OCCUPANCY;
	assert_int_equal(flit_run(&config, &occupancy), 0);
	a = net.outer ? result.outer_idle : result.idle;
	b = net.outer ? occupancy.outer_idle : occupancy.idle;
	assert_true(net.outer ? occupancy.outer_use > result.outer_use :
				occupancy.use > result.use);
	assert_true(b.blocked < a.blocked);
	assert_true(b.none >= a.none);
	assert_true(b.gap + b.blocked < a.gap + a.blocked);
	assert_true(occupancy.all.mean < result.all.mean);
	assert_true(occupancy.throughput > result.throughput);
	forget();
}

static void thesis_tables_are_reproduced(void **state)
{
	(void)state;
	check_table("mesh:16x16", FLIT_DOR, 0.008);
	check_table("tesh:2,2,0", FLIT_ROUTE_TESH, 0.001);
}

/* ---- programs ----------------------------------------------------------------- */

static void run_schedules(const char *name, struct coll_schedule *const *s, u32 ranks, void *argument)
{
	struct flit_config *config = argument;
	u32 place[64], i;

	for (i = 0; i < ranks; i++)
		place[i] = (i * 5) % 16;
	config->work = (struct flit_work){ .schedule = (const struct coll_schedule *const *)s,
					   .ranks = ranks, .place = place, .flit_bytes = 8,
					   .rounds = 2, .reduce = 0.25, .copy = 0.125 };
	if (flit_run(config, &result))
		fail_msg("%s, %u ranks: error %d", name, ranks, result.error);
	assert_int_equal(result.inside, 0);
	assert_true(ranks == 1 || result.finish_last > 0);
	assert_in_range(result.cycles, result.finish_last, result.finish_last + 1000);
}

static void every_collective_ends(void **state)
{
	struct flit_config config = make("mesh:4x4", FLIT_DOR, &flit_thesis);

	(void)state;
	config.pattern = FLIT_SCHEDULE;
	config.cycles = 10000000;
	assert_true(each_collective(6, run_schedules, &config) > 100);
	forget();
}

static void programs_end(void **state)
{
	struct flit_config config = make("tesh:2,2,0", FLIT_ROUTE_TESH, &flit_thesis);

	(void)state;
	config.cycles = 10000000;
	config.pattern = FLIT_FFT;
	config.work = (struct flit_work){ .data = 1, .butterfly = 220, .setup = 120,
					  .address = 120, .per_datum = 16 };
	assert_int_equal(flit_run(&config, &result), 0);
	assert_int_equal(result.all.messages, 8 * 256);
	assert_true(result.finish_first > 8 * 460);
	config.pattern = FLIT_FOUR;
	config.work = (struct flit_work){ .rounds = 3 };
	config.length = 64;
	assert_int_equal(flit_run(&config, &result), 0);
	assert_int_equal(result.all.messages, 3 * 4 * 256);
	assert_int_equal(result.inside, 0);
	config.work.jitter = 100000;	/* all neighbours' messages come before a PE begins */
	assert_int_equal(flit_run(&config, &result), 0);
	assert_int_equal(result.all.messages, 3 * 4 * 256);
	forget();
}

/* One message, in the middle of long silence. */
static void samples_are_taken_in_silence(void **state)
{
	struct flit_message message[] = { { 5000, 0, 1, 16 }, { 123456, 0, 1, 16 } };
	struct flit_config config = make("mesh:4x4", FLIT_DOR, &flit_thesis);
	u32 i;

	(void)state;
	config.pattern = FLIT_TRACE;
	config.work.trace = message;
	config.work.messages = 2;
	config.cycles = 200000;
	config.warmup = 1000;
	config.interval = 1000;
	assert_int_equal(flit_run(&config, &result), 0);
	assert_int_equal(result.points, 123);
	for (i = 0; i < result.points; i++)
		assert_true((result.point[i].used > 0) == (i == 5));
	assert_true(fabs(result.throughput - 44. / (result.cycles - 1000)) < 1e-12);
	forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zero_load_latency_is_the_formula),
		cmocka_unit_test(zero_load_latency_equals_booksim),
		cmocka_unit_test(tesh_has_the_thesis_topology),
		cmocka_unit_test(flits_are_conserved),
		cmocka_unit_test(workers_change_nothing),
		cmocka_unit_test(routings_are_free_of_deadlock),
		cmocka_unit_test(broken_classes_deadlock),
		cmocka_unit_test(occupancy_keeps_the_order_of_arrival),
		cmocka_unit_test(hier_equals_occupancy_inside_a_module),
		cmocka_unit_test(latency_curve_equals_booksim),
		cmocka_unit_test(thesis_tables_are_reproduced),
		cmocka_unit_test(every_collective_ends),
		cmocka_unit_test(programs_end),
		cmocka_unit_test(samples_are_taken_in_silence),
	};

	return cmocka_run_group_tests_name("flit", tests, NULL, NULL);
}
