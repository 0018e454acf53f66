// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Paper 1's rule for the redundant butterfly, by a program of its own that shares nothing with
 * the simulator: with e(i, r) the time when rank r has reduced i times,
 *
 *	e(i + 1, r) = reduce(max(e(i, r), e(i, partner) + message))
 *	result(r) = min(e(K, r), result(partner of exchange j) + message), j = 1 .. T
 *
 * so a rank that was handed the result still makes all its exchanges, and what comes first
 * counts. Each message and reduction takes the length of those events longer that begin within
 * it. Ours must not be slower. For a table row, with standard errors:
 *
 *	sim_paper_test RANKS T ALPHA PERIOD DURATION RUNS
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/sim_job.h"

enum { RUNS_MAX = 1000, EXCHANGES_MAX = 24 };

/* 8 bytes, 1 GB/s, reductions at 10 GB/s. */
static const double bytes_time = 8e-9, work = 8e-10;

struct paper {
	uint32_t exchanges, redundancy;
	double alpha, period, duration;
};

struct spread {
	double mean, error;	/* of the mean */
};

static struct spread spread_of(const double *time, uint32_t runs)
{
	struct spread spread = { 0 };
	double squares = 0;
	uint32_t i;

	for (i = 0; i < runs; i++)
		spread.mean += time[i] / runs;
	for (i = 0; i < runs; i++)
		squares += pow(time[i] - spread.mean, 2);
	spread.error = sqrt(squares / (runs - 1) / runs);
	return spread;
}

/* ---- the paper's rule ------------------------------------------------------------------- */

static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

/* In (0, 1), of three numbers. */
static double uniform(uint64_t run, uint64_t rank, uint64_t which)
{
	return (mixed(mixed(mixed(run + 1) + rank) * 31 + which) >> 11) * 0x1p-53 + 0x1p-54;
}

/* A message: the link's events that begin meanwhile are Poisson. */
static double paper_message(const struct paper *p, uint64_t run, uint32_t to, uint32_t which)
{
	const double way = p->alpha + bytes_time, mean = way / p->period;
	double chance = exp(-mean), rest = uniform(run, to, which) - chance;
	uint32_t events = 0;

	for (; rest > 0 && events < 50; rest -= chance)
		chance *= mean / ++events;
	return way + events * p->duration;
}

/* A reduction that begins then: the rank's events are periodic, from a random phase on. */
static double paper_reduced(const struct paper *p, uint64_t run, uint32_t rank, double begin)
{
	const double phase = uniform(run, rank, 999) * p->period;
	const double since = fmod(begin + phase, p->period);

	return begin + work + (since + work >= p->period ? p->duration : 0);
}

/* Result(r) by the partners' until none comes earlier. */
static void paper_redundant(const struct paper *p, uint64_t run, double *result)
{
	const uint32_t ranks = 1u << p->exchanges;
	int earlier;
	uint32_t r, j;

	do {
		earlier = 0;
		for (r = 0; r < ranks; r++)
			for (j = 0; j < p->redundancy; j++) {
				const double sent = result[r ^ 1u << j];

				if (sent + p->alpha + bytes_time >= result[r] ||
				    sent + paper_message(p, run, r, 100 + j) >= result[r])
					continue;
				result[r] = sent + paper_message(p, run, r, 100 + j);
				earlier = 1;
			}
	} while (earlier);
}

static double paper_run(const struct paper *p, uint64_t run, double *now, double *next)
{
	const uint32_t ranks = 1u << p->exchanges;
	double last = 0;
	uint32_t i, r;

	memset(now, 0, ranks * sizeof(*now));
	for (i = 0; i < p->exchanges; i++) {
		double *other = now;

		for (r = 0; r < ranks; r++)
			next[r] = paper_reduced(p, run, r,
						fmax(now[r], now[r ^ 1u << i] +
							     paper_message(p, run, r, i)));
		now = next;
		next = other;
	}
	paper_redundant(p, run, now);
	for (r = 0; r < ranks; r++)
		last = fmax(last, now[r]);
	return last;
}

static struct spread paper_spread(const struct paper *p, uint32_t runs)
{
	double *times = malloc(sizeof(double) << (p->exchanges + 1)), time[RUNS_MAX];
	uint32_t i;

	assert_non_null(times);
	for (i = 0; i < runs; i++)
		time[i] = paper_run(p, i, times, times + (1u << p->exchanges));
	free(times);
	return spread_of(time, runs);
}

/* ---- ours ------------------------------------------------------------------------------- */

static struct spread our_spread(const struct paper *p, uint32_t runs)
{
	static struct job_setting setting;
	struct sim_job job = job_named(&setting, COLL_ALLREDUCE, "butterfly-redundant",
				       1u << p->exchanges, 1);
	struct sim_model model = { .costs = SIM_COSTS(p->alpha, 1e-9, 1e-10) };
	struct sim_outcome *outcome = calloc(runs, sizeof(*outcome));
	double time[RUNS_MAX];
	struct sim *sim;
	uint32_t i;

	model.os[0] = sim_periodic(p->period, p->duration);
	model.link = sim_poisson(1 / p->period, p->duration);
	job.tuning.redundancy = p->redundancy;
	sim = job_open(&job);
	assert_non_null(outcome);
	assert_int_equal(sim_repeat(sim, &model, 11, runs, 2, SIM_ANY_PATH, outcome, NULL, NULL),
			 0);
	for (i = 0; i < runs; i++)
		time[i] = sim_seconds(outcome[i].finish);
	sim_close(sim);
	free(outcome);
	return spread_of(time, runs);
}

/* Standard errors by which ours takes longer. */
static double slower(const struct paper *p, uint32_t runs)
{
	const struct spread paper = paper_spread(p, runs), ours = our_spread(p, runs);

	printf("# %u ranks, T = %u, alpha %g us, %g us every %g us: paper's rule %.2f +- %.2f us, "
	       "ours %.2f +- %.2f us\n", 1u << p->exchanges, p->redundancy, p->alpha * 1e6,
	       p->duration * 1e6, p->period * 1e6, paper.mean * 1e6, paper.error * 1e6,
	       ours.mean * 1e6, ours.error * 1e6);
	return (ours.mean - paper.mean) / hypot(paper.error, ours.error);
}

static void without_redundancy_both_are_the_butterfly(void **state)
{
	static const struct paper cases[] = { { 8, 0, 1e-7, 1e-3, 1e-5 }, { 12, 0, 1e-7, 1e-3, 1e-5 },
					      { 10, 0, 3e-7, 5e-4, 2e-5 } };
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_true(fabs(slower(&cases[i], 200)) < 4);
}

static void the_redundant_butterfly_is_no_slower_than_the_papers(void **state)
{
	static const struct paper cases[] = {
		{ 12, 1, 1e-7, 1e-3, 1e-5 }, { 13, 1, 3e-7, 5e-4, 2e-5 }, { 13, 2, 3e-7, 5e-4, 2e-5 },
		{ 14, 1, 1e-7, 1e-3, 1e-5 }, { 14, 2, 1e-7, 1e-3, 1e-5 }, { 15, 1, 1e-7, 1e-3, 1e-5 },
		{ 10, 4, 3e-7, 5e-4, 2e-5 },
	};
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_true(slower(&cases[i], 30) < 3);
}

static int print_row(char **argument)
{
	const struct paper p = { log2(strtoul(argument[1], NULL, 10)), strtoul(argument[2], NULL, 10),
				 strtod(argument[3], NULL), strtod(argument[4], NULL),
				 strtod(argument[5], NULL) };
	const uint32_t runs = strtoul(argument[6], NULL, 10);

	if (p.exchanges > EXCHANGES_MAX || p.redundancy > p.exchanges || runs < 2 || runs > RUNS_MAX)
		return 2;
	slower(&p, runs);
	return 0;
}

int main(int arguments, char **argument)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_redundancy_both_are_the_butterfly),
		cmocka_unit_test(the_redundant_butterfly_is_no_slower_than_the_papers),
	};

	if (arguments == 7)
		return print_row(argument);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
