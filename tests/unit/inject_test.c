// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* Specifications of what to inject are read or refused; plans repeat and hold. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libcoll/engine/inject.h"

#define MS 1000000ull

static struct coll_inject_config config;
static char why[200];

static struct coll_inject_spec *parsed(const char *text)
{
	int error = coll_inject_parse(&config, text, why, sizeof(why));

	if (error)
		fail_msg("%s: %s", text, why);
	return &config.spec[0];
}

static void forms_are_read(void **state)
{
	struct coll_inject_spec *spec = parsed("os:periodic:period=10ms,duration=1ms");

	(void)state;
	assert_int_equal(spec->kind, INJECT_OS);
	assert_int_equal(spec->noise.model.period, 10 * MS);
	assert_int_equal(spec->noise.model.duration, MS);
	assert_int_equal(spec->noise.model.phase, COLL_NOISE_RANDOM);
	assert_int_equal(spec->how, INJECT_SLEEP);
	assert_true(spec->rank == INJECT_EVERY_RANK);
	assert_int_equal(config.seed, 1);

	spec = parsed("link:poisson:rate=100,duration=2ms,model=occupancy;seed=7;"
		      "kill:rank=3,after=20;short:probability=0.5;drop:after=9;"
		      "os:poisson:rate=10,duration=1ms,how=spin,rank=2");
	assert_int_equal(config.seed, 7);
	assert_int_equal(config.count, 5);
	assert_int_equal(spec[0].kind, INJECT_LINK);
	assert_int_equal(spec[0].model, INJECT_OCCUPANCY);
	assert_int_equal(spec[0].noise.model.period, 10 * MS);
	assert_int_equal(spec[0].noise.model.seed, 7);
	assert_int_equal(spec[1].kind, INJECT_KILL);
	assert_int_equal(spec[1].rank, 3);
	assert_int_equal(spec[1].after, 20);
	assert_true(spec[2].probability == 0.5);
	assert_int_equal(spec[3].after, 9);
	assert_int_equal(spec[4].how, INJECT_SPIN);
	assert_int_equal(spec[4].rank, 2);
	assert_true(spec[0].from == INJECT_EVERY_RANK);

	spec = parsed("link:poisson:rate=100,duration=2ms,from=4,rank=2");
	assert_int_equal(spec->from, 4);
	assert_int_equal(spec->rank, 2);

	parsed("off");
	assert_int_equal(config.count, 0);
	parsed("");
	assert_int_equal(config.count, 0);
}

static void refused(const char *text, const char *reason)
{
	assert_int_equal(coll_inject_parse(&config, text, why, sizeof(why)), -EINVAL);
	if (!strstr(why, reason))
		fail_msg("'%s' should be refused with '%s', but: %s", text, reason, why);
}

static void errors_say_what_is_valid(void **state)
{
	(void)state;
	refused("nonsense", "os:periodic, os:poisson, os:replay, link:periodic");
	refused("os", "inject 'os': valid: os:periodic");
	refused("os:poison:rate=1,duration=1ms", "'poison' is not periodic, poisson or replay");
	refused("os:poisson:rate=100", "needs duration");
	refused("link:poisson", "needs period or rate");
	refused("link:poisson:rate=100,duration=2ms,how=spin",
		"link has no 'how'; valid: model, rank, from, period, rate");
	refused("link:poisson:rate=100,duration=2ms,from=x", "from 'x' is not a rank");
	refused("os:poisson:rate=100,duration=2ms,from=1", "os has no 'from'");
	refused("link:poisson:rate=0,duration=2ms", "rate '0' is not events a second");
	refused("link:poisson:rate=1e9,duration=2ms", "to 1000000");
	refused("os:periodic:period=1ms,duration=1ms", "more than 95 %");
	refused("os:poisson:rate=1000,duration=1ms", "more than 95 %");
	refused("short:probability=2", "a number from 0 to 1");
	refused("short:probability", "a number from 0 to 1");
	refused("kill:after=2", "needs rank");
	refused("kill:rank=-1,after=2", "rank '-1' is not a rank");
	refused("seed=x", "whole number");
	refused("os:replay:/nonexistent/trace", "cannot read /nonexistent/trace");
	refused("drop:after=1;drop:after=1;drop:after=1;drop:after=1;drop:after=1;drop:after=1;"
		"drop:after=1;drop:after=1;drop:after=1;drop:after=1;drop:after=1;drop:after=1;"
		"drop:after=1;drop:after=1;drop:after=1;drop:after=1;drop:after=1",
		"more than 16");
}

static void same_seed_same_plan(void **state)
{
	static const char *const specs[] = {
		"link:poisson:rate=100,duration=2ms", "os:periodic:period=10ms,duration=1ms",
	};
	struct coll_inject_plan a, b, other_seed, other_stream;
	struct coll_inject_spec reseeded;
	unsigned int i;
	int k, equal = 0;

	(void)state;
	for (i = 0; i < 2; i++) {
		const struct coll_inject_spec *spec = parsed(specs[i]);

		reseeded = *spec;
		reseeded.noise.model.seed++;
		coll_inject_plan_init(&a, spec, 3, 5000);
		coll_inject_plan_init(&b, spec, 3, 5000);
		coll_inject_plan_init(&other_seed, &reseeded, 3, 5000);
		coll_inject_plan_init(&other_stream, spec, 4, 5000);
		for (k = 0; k < 10000; k++) {
			uint64_t start = coll_inject_plan_next(&a).start;

			assert_true(start == coll_inject_plan_next(&b).start);
			equal += start == coll_inject_plan_next(&other_seed).start;
			equal += start == coll_inject_plan_next(&other_stream).start;
		}
	}
	assert_in_range(equal, 0, 10);
}

static void periods_have_phases(void **state)
{
	const struct coll_inject_spec *spec;
	struct coll_inject_plan a, b;
	uint64_t start;

	(void)state;
	spec = parsed("os:periodic:period=10ms,duration=1ms,phase=same");
	coll_inject_plan_init(&a, spec, 0, 123 * MS - 1);
	coll_inject_plan_init(&b, spec, 1, 456 * MS + 1);
	assert_int_equal(coll_inject_plan_next(&a).start, 130 * MS);
	assert_int_equal(coll_inject_plan_next(&a).start, 140 * MS);
	assert_int_equal(coll_inject_plan_next(&b).start, 460 * MS);

	spec = parsed("os:periodic:period=10ms,duration=1ms");
	coll_inject_plan_init(&a, spec, 0, 120 * MS);
	coll_inject_plan_init(&b, spec, 1, 120 * MS);
	start = coll_inject_plan_next(&a).start;
	assert_in_range(start, 120 * MS, 130 * MS);
	assert_int_equal(coll_inject_plan_next(&a).start, start + 10 * MS);
	assert_true(coll_inject_plan_next(&b).start != start);
}

/* A plan that begins amid an event is in it; strikes are of what begins later. */
static void events_are_under_way_when_a_plan_begins(void **state)
{
	const struct coll_inject_spec *spec = parsed("link:periodic:period=10ms,duration=8ms,phase=same");
	struct coll_inject_plan plan;

	(void)state;
	coll_inject_plan_init(&plan, spec, 0, 105 * MS);
	assert_int_equal(coll_inject_plan_busy(&plan, 105 * MS), 108 * MS);
	assert_int_equal(coll_inject_plan_busy(&plan, 109 * MS), 0);
	assert_int_equal(coll_inject_plan_busy(&plan, 110 * MS), 118 * MS);
	coll_inject_plan_init(&plan, spec, 0, 105 * MS);
	assert_int_equal(coll_inject_plan_strikes(&plan, 105 * MS, 112 * MS), 8 * MS);
	coll_inject_plan_init(&plan, spec, 0, 5 * MS);
	assert_int_equal(coll_inject_plan_busy(&plan, 5 * MS), 8 * MS);
}

static void busy_and_strikes(void **state)
{
	struct coll_inject_plan plan;

	(void)state;
	coll_inject_plan_init(&plan, parsed("os:periodic:period=10ms,duration=1ms,phase=same"), 0,
			      100 * MS);
	assert_int_equal(coll_inject_plan_busy(&plan, 100 * MS), 101 * MS);
	assert_int_equal(coll_inject_plan_busy(&plan, 101 * MS - 1), 101 * MS);
	assert_int_equal(coll_inject_plan_busy(&plan, 101 * MS), 0);
	assert_int_equal(coll_inject_plan_busy(&plan, 109 * MS), 0);
	assert_int_equal(coll_inject_plan_busy(&plan, 5000 * MS + 5), 5001 * MS);
	assert_int_equal(coll_inject_plan_strikes(&plan, 5000 * MS + 5, 5009 * MS), 0);
	assert_int_equal(coll_inject_plan_strikes(&plan, 5009 * MS, 5010 * MS), MS);
	assert_int_equal(coll_inject_plan_strikes(&plan, 5010 * MS, 5040 * MS), 3 * MS);
	/* Those passed in between do not count. */
	assert_int_equal(coll_inject_plan_strikes(&plan, 5065 * MS, 5075 * MS), MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms_are_read),
		cmocka_unit_test(errors_say_what_is_valid),
		cmocka_unit_test(same_seed_same_plan),
		cmocka_unit_test(periods_have_phases),
		cmocka_unit_test(events_are_under_way_when_a_plan_begins),
		cmocka_unit_test(busy_and_strikes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
