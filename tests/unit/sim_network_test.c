// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Links that many flows share: max-min sharing with SimGrid's numbers, and TCP's congestion
 * with the optimum of paper 2.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/build.h"
#include "sim/trunk.h"
#include "tests/unit/sim_job.h"

/* Rank i of `pairs` sends `bytes * (i + 1 or 1)` to rank i + 32. */
static struct sim *open_pairs(struct coll_schedule **s, u32 pairs, u64 bytes, bool growing)
{
	char why[100] = "";
	struct sim *sim = NULL;
	u32 r;

	for (r = 0; r < 64; r++) {
		struct coll_build b;
		void *memory = malloc(4096);
		const u64 n = bytes * (growing ? r % 32 + 1 : 1);

		coll_build_init(&b, memory, 4096, r, 64);
		coll_build_buffers(&b, 64 * bytes, 64 * bytes);
		if (r % 32 < pairs && r < 32)
			coll_emit_send(&b, r + 32, COLL_ADDRESS(COLL_IN, 0), n);
		else if (r % 32 < pairs)
			coll_emit_recv(&b, r - 32, COLL_ADDRESS(COLL_OUT, 0), n);
		assert_int_equal(coll_build_finish(&b, &s[r]), 0);
	}
	if (sim_open_schedules((const struct coll_schedule *const *)s, 64, &sim, why, sizeof(why)))
		fail_msg("%s", why);
	return sim;
}

static void pairs_by(const struct sim_model *model, u32 pairs, u64 bytes, bool growing, sim_time *finish)
{
	struct coll_schedule *s[64];
	struct sim *sim = open_pairs(s, pairs, bytes, growing);
	struct sim_outcome outcome;
	u32 r;

	assert_int_equal(sim_run(sim, model, 1, SIM_LEVELS, &outcome, finish), -EOPNOTSUPP);
	assert_int_equal(sim_run(sim, model, 1, SIM_ANY_PATH, &outcome, finish), 0);
	sim_close(sim);
	for (r = 0; r < 64; r++)
		free(s[r]);
}

static void pairs_across(u32 pairs, u64 bytes, bool growing, const struct sim_network *network,
			 sim_time *finish)
{
	const struct sim_model model = { .costs = SIM_COSTS(0, 0, 0), .network = network };

	pairs_by(&model, pairs, bytes, growing, finish);
}

static struct sim_network two_clusters(u32 *area, struct sim_link *link, struct sim_link wan)
{
	u32 r;

	for (r = 0; r < 64; r++)
		area[r] = r / 32;
	link[0] = link[3] = (struct sim_link){ .alpha = 1e-6, .beta = wan.beta };
	link[1] = link[2] = wan;
	return (struct sim_network){ .areas = 2, .area = area, .link = link };
}

/* Ends of 10 Gbit/s, a trunk of 10 Gbit/s, 10.002 ms: SimGrid's max-min sharing. */
static void flows_share_a_trunk_as_in_simgrid(void **state)
{
	static const struct {
		u32 pairs;
		sim_time us;
	} equal[] = { { 1, 11002 }, { 4, 14002 }, { 16, 26002 }, { 32, 42002 } };
	static const sim_time growing[] = { 14002, 17002, 19002, 20002 };
	struct sim_network network;
	struct sim_link link[4];
	u32 area[64], i, r;
	sim_time finish[64];

	(void)state;
	network = two_clusters(area, link, (struct sim_link){ .alpha = 10.002e-3, .beta = 0.8e-9,
							      .trunk = 0.8e-9 });
	for (i = 0; i < 4; i++) {
		pairs_across(equal[i].pairs, 1250000, false, &network, finish);
		for (r = 0; r < equal[i].pairs; r++)
			assert_true(llabs(finish[32 + r] - equal[i].us * US) <= NS);
	}
	pairs_across(4, 1250000, true, &network, finish);
	for (r = 0; r < 4; r++)
		assert_true(llabs(finish[32 + r] - growing[r] * US) <= NS);
}

/* 10 ms to ask and 10 ms back; then the sender is done when its last byte has left, on a trunk when it is there. */
static void a_rendezvous_ends_by_its_link(void **state)
{
	static const struct {
		u32 pairs;
		double trunk;
		sim_time us;
	} some[] = { { 1, 0, 21000 }, { 4, 0, 21000 }, { 1, 0.8e-9, 31000 }, { 4, 0.8e-9, 34000 } };
	struct sim_model model = { .costs = SIM_COSTS(1e-6, 1e-10, 0) };
	struct sim_network network;
	struct sim_link link[4];
	sim_time finish[64];
	u32 area[64], i, r;

	(void)state;
	model.costs.eager = 1000;
	model.network = &network;
	for (i = 0; i < 4; i++) {
		network = two_clusters(area, link, (struct sim_link){ .alpha = 10e-3, .beta = 0.8e-9,
								      .trunk = some[i].trunk });
		pairs_by(&model, some[i].pairs, 1250000, false, finish);
		for (r = 0; r < some[i].pairs; r++) {
			assert_true(llabs(finish[r] - some[i].us * US) <= NS);
			assert_true(llabs(finish[32 + r] - (some[i].us + (some[i].trunk > 0 ? 0 : 10000)) * US) <= NS);
		}
	}
}

/* Seconds to send 32 pieces across, `at_once` at a time, each at the speed of its NIC. */
static double seconds_across(u32 at_once, double loss)
{
	struct sim_trunk trunk;
	u64 name;
	u32 left = 32 - at_once, i;

	trunk_init(&trunk, 8e-9, 0.8e-9, loss);
	for (i = 0; i < at_once; i++)
		assert_int_equal(trunk_add(&trunk, (struct sim_flow){ 1e6, 0, i }), 0);
	while (trunk_next(&trunk) != SIM_NEVER)
		if (trunk_step(&trunk, &name) && left) {
			left--;
			assert_int_equal(
				trunk_add(&trunk, (struct sim_flow){ 1e6, trunk.now, name }), 0);
		}
	trunk_free(&trunk);
	return sim_seconds(trunk.now);
}

/* Paper 2: 8 of 1, 2, 4, 8, 16, 32 links are best for 10 Gbit/s and NICs of 1 Gbit/s. */
static void congestion_has_its_optimum_at_8_links(void **state)
{
	u32 n;

	(void)state;
	for (n = 1; n <= 32; n *= 2)
		if (n != 8)
			assert_true(seconds_across(8, SIM_TCP_LOSS) <
				    seconds_across(n, SIM_TCP_LOSS));
	assert_true(seconds_across(16, 0.41) < seconds_across(8, 0.41));
	assert_true(seconds_across(16, 0.43) > seconds_across(8, 0.43));
	/* Without congestion n is what counts: 32 / n pieces one after the other. */
	for (n = 1; n <= 8; n *= 2)
		assert_true(fabs(seconds_across(n, 1) - 32.0 / n * 8e-3) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_share_a_trunk_as_in_simgrid),
		cmocka_unit_test(a_rendezvous_ends_by_its_link),
		cmocka_unit_test(congestion_has_its_optimum_at_8_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
