// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The model that chooses T against the simulator: what it loses to the best T
 * that a scan finds (its regret), over ranks, sizes, noise, latency and both
 * semantics. REGRET_RANKS=16384 REGRET_RUNS=20: a larger grid, for the docs;
 * COLL_TEST_LITTLE=1: a smaller one.
 * CSV behind "#", a line a point.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "algo/redundancy/redundancy.h"
#include "sim/sim.h"

enum { T_LIST = 6 };
static const u32 t_list[T_LIST] = { 1, 2, 3, 4, 5, 6 };

struct noise_case {
	const char *name;
	double os_period, os_duration, link_rate, link_duration;
};

static const struct noise_case noises[] = {
	{ "ranks and links, 1 kHz x 10 us", 1e-3, 10e-6, 1000, 10e-6 },
	{ "links only, 1 kHz x 10 us", 0, 0, 1000, 10e-6 },
	{ "ranks only, 100 Hz x 100 us", 10e-3, 100e-6, 0, 0 },
	{ "ranks and links, 1 kHz x 1 us", 1e-3, 1e-6, 1000, 1e-6 },
	{ "none", 0, 0, 0, 0 },
};

struct point {
	u32 ranks;
	u64 bytes;
	double alpha, overhead;
	enum sim_semantics semantics;
	const struct noise_case *noise;
};

static struct coll_call call_of(const struct point *p)
{
	return (struct coll_call){
		.collective = COLL_ALLREDUCE, .ranks = p->ranks, .type = COLL_DOUBLE,
		.reduction = COLL_SUM, .element = 8, .commutative = true, .count = p->bytes / 8,
	};
}

static struct sim_model model_of(const struct point *p)
{
	struct sim_model model = { .costs = SIM_COSTS(p->alpha, 1e-9, 1e-10),
				   .semantics = p->semantics };

	model.costs.redundant = p->overhead;
	model.costs.nic = 1e-9;
	if (p->noise->os_period > 0)
		model.os[0] = sim_periodic(p->noise->os_period, p->noise->os_duration);
	if (p->noise->link_rate > 0)
		model.link = sim_poisson(p->noise->link_rate, p->noise->link_duration);
	return model;
}

static struct coll_machine machine_of(const struct point *p)
{
	struct coll_machine m = { .alpha = p->alpha, .overhead = p->overhead, .beta = 1e-9,
				  .gamma = 1e-10, .noise_event = p->semantics == SIM_EVENT };

	if (p->noise->os_period > 0)
		m.noise[0] = (struct coll_noise_rate){ 1 / p->noise->os_period,
						       p->noise->os_duration };
	m.link_noise = (struct coll_noise_rate){ p->noise->link_rate, p->noise->link_duration };
	return m;
}

/* Mean seconds of `runs` runs; each variant sees the same noise. */
static double mean_of(const struct point *p, struct coll_redundancy with, u32 runs)
{
	const char *name = !with.exchanges ? "butterfly" :
			   with.relays	   ? "butterfly-relayed" : "butterfly-redundant";
	struct sim_job job = { coll_algo_find(COLL_ALLREDUCE, name), call_of(p),
			       COLL_TUNING_UNSET };
	struct sim_model model = model_of(p);
	struct sim_outcome outcome;
	char why[160];
	struct sim *sim;
	double sum = 0;
	u32 i;

	job.tuning.redundancy = with.exchanges;
	job.tuning.relays = with.relays;
	assert_int_equal(sim_open(&job, &sim, why, sizeof(why)), 0);
	for (i = 0; i < runs; i++) {
		assert_int_equal(sim_run(sim, &model, sim_seed(7, i), SIM_ANY_PATH, &outcome, NULL),
				 0);
		sum += sim_seconds(outcome.finish);
	}
	sim_close(sim);
	return sum / runs;
}

struct regret {
	double sum, most, plain;	/* plain: of always taking the butterfly */
	u32 points;
};

static void scan(const struct point *p, u32 runs, u32 most_relays, struct regret *regret)
{
	const struct coll_call call = call_of(p);
	const struct coll_machine m = machine_of(p);
	const struct coll_redundancy chosen = coll_redundancy_best(&call, most_relays, &m);
	const double plain = mean_of(p, (struct coll_redundancy){ 0, 0 }, runs);
	struct coll_redundancy best = { 0, 0 }, with;
	double least = plain, got = chosen.exchanges ? 0 : plain, lost;
	u32 i;

	for (with.relays = 0; with.relays <= most_relays; with.relays++)
		for (i = 0; i < T_LIST; i++) {
			double time;

			with.exchanges = t_list[i];
			if (with.exchanges > log2_floor(p->ranks))
				break;
			time = mean_of(p, with, runs);
			if (time < least) {
				least = time;
				best = with;
			}
			if (with.exchanges == chosen.exchanges && with.relays == chosen.relays)
				got = time;
		}
	if (got <= 0)
		got = mean_of(p, chosen, runs);
	lost = got / least - 1;
	printf("# %u,%llu,%g,%g,%s,%s,%u,%u,%u,%u,%.4g,%.4g,%.4g,%.4g,%.1f%%\n", p->ranks,
	       (unsigned long long)p->bytes, p->alpha, p->overhead,
	       sim_semantics_names[p->semantics], p->noise->name, chosen.exchanges, chosen.relays,
	       best.exchanges, best.relays, plain * 1e6, got * 1e6, least * 1e6,
	       (coll_redundancy_cost(&call, chosen, &m) +
		coll_redundancy_delay(&call, chosen, &m)) *
		       1e6,
	       lost * 100);
	regret->sum += lost;
	regret->plain += plain / least - 1;
	regret->points++;
	if (lost > regret->most)
		regret->most = lost;
}

static u32 number(const char *name, u32 usual)
{
	return getenv(name) ? strtoul(getenv(name), NULL, 10) : usual;
}

static struct regret scan_all(u32 most_relays)
{
	static const double alphas[] = { 1e-7, 1e-6 };
	static const u64 sizes[] = { 8, 1024 };
	const u32 most = number("REGRET_RANKS", getenv("COLL_TEST_LITTLE") ? 64 : 1024);
	const u32 runs = number("REGRET_RUNS", 8);
	struct regret regret = { 0 };
	struct point p;
	size_t i, k, a;

	printf("# ranks,bytes,alpha,overhead,semantics,noise,T,relays,best_T,best_relays,"
	       "butterfly_us,chosen_us,best_us,predicted_us,regret\n");
	for (p.ranks = 64; p.ranks <= most; p.ranks *= 16)
		for (p.semantics = SIM_EVENT; p.semantics <= SIM_OCCUPANCY; p.semantics++)
			for (i = 0; i < sizeof(noises) / sizeof(*noises); i++)
				for (a = 0; a < 2; a++)
					for (k = 0; k < 2; k++) {
						p.noise = &noises[i];
						p.alpha = alphas[a];
						p.bytes = sizes[k];
						p.overhead = p.alpha / 10;
						scan(&p, p.ranks < 256 ? 3 * runs : runs,
						     most_relays, &regret);
					}
	printf("# up to %u relays: mean regret %.1f %%, most %.0f %%; of the butterfly: mean %.0f "
	       "%%\n",
	       most_relays, 100 * regret.sum / regret.points, 100 * regret.most,
	       100 * regret.plain / regret.points);
	return regret;
}

static void the_chosen_t_is_near_the_best(void **state)
{
	const struct regret regret = scan_all(0);

	(void)state;
	assert_true(regret.sum / regret.points < 0.10);
	assert_true(regret.plain > 3 * regret.sum);
}

static void the_chosen_t_and_relays_are_near_the_best(void **state)
{
	const struct regret regret = scan_all(2);

	(void)state;
	assert_true(regret.sum / regret.points < 0.10);
	assert_true(regret.plain > 3 * regret.sum);
}

static void without_noise_there_is_no_redundancy(void **state)
{
	const struct point p = { 4096, 8, 1e-7, 1e-8, SIM_EVENT, &noises[4] };
	const struct coll_call call = call_of(&p);
	const struct coll_machine m = machine_of(&p);

	(void)state;
	assert_int_equal(coll_redundancy_best(&call, 4, &m).exchanges, 0);
	assert_true(coll_redundancy_delay(&call, (struct coll_redundancy){ 0, 0 }, &m) == 0);
}

/* One kind of noise so rare that two events never meet: the chance in closed form. */
static void rare_noise_follows_the_closed_form(void **state)
{
	const struct noise_case rare = { "", 0, 0, 1, 10e-6 };
	const struct point p = { 1024, 8, 1e-6, 0, SIM_EVENT, &rare };
	const struct coll_call call = call_of(&p);
	const struct coll_machine m = machine_of(&p);
	const double messages = 10 * 1024, chance = -expm1(-messages * 1.008e-6);
	const double delay = coll_redundancy_delay(&call, (struct coll_redundancy){ 0, 0 }, &m);

	(void)state;
	assert_true(fabs(delay / (chance * 10e-6) - 1) < 0.02);
	/* One class is hit, never all: what is left is a hop. */
	assert_true(coll_redundancy_delay(&call, (struct coll_redundancy){ 1, 0 }, &m) <
		    0.15 * delay);
}

/* Up to 2^20 ranks, where nearly all are late after each stage: what is left is sums of rounding. */
static void another_redundant_exchange_delays_no_more(void **state)
{
	const struct noise_case rare = { "", 1, 5e-3, 0, 0 };
	struct point p = { 1024, 8, 20e-6, 2e-6, SIM_OCCUPANCY, &rare };
	struct coll_redundancy with, more;
	double rate;

	(void)state;
	for (; p.ranks <= 1 << 20; p.ranks *= 4)
		for (rate = 0.5; rate < 20; rate *= 2)
			for (with.relays = 0; with.relays <= 3; with.relays++)
				for (with.exchanges = 1; with.exchanges < 5; with.exchanges++) {
					const struct coll_call call = call_of(&p);
					struct coll_machine m = machine_of(&p);

					m.noise[0].rate = rate;
					more = with;
					more.exchanges++;
					assert_true(coll_redundancy_delay(&call, with, &m) >
						    0.95 * coll_redundancy_delay(&call, more, &m));
				}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_noise_there_is_no_redundancy),
		cmocka_unit_test(rare_noise_follows_the_closed_form),
		cmocka_unit_test(another_redundant_exchange_delays_no_more),
		cmocka_unit_test(the_chosen_t_is_near_the_best),
		cmocka_unit_test(the_chosen_t_and_relays_are_near_the_best),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
