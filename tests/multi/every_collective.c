// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * every_collective [EVERY [FIRST [MOST]]]: one rank of a job that makes every call, in every
 * form, and compares the result with a reference. All ranks run the same list of test
 * cases: every EVERY-th of them beginning with FIRST, of at most MOST elements. Rank 0
 * prints how many there were.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/common/algo.h"
#include "tests/lib/rank.h"
#include "tests/lib/rank_call.h"

enum { ELEMENTS_MAX = 400000 };	/* in all blocks of a call, to limit the time */

struct runner {
	struct coll_context *context;
	struct coll_group *group;
	enum coll_reduction commuting,
		ordered;		/* the library's numbers of the reference's functions */
	size_t every, first, most;	/* which test cases to run */
	size_t passed, test_cases, refused;
};

static bool is_next(struct runner *runner)
{
	return runner->passed++ % runner->every == runner->first;
}

static enum coll_reduction op_of(const struct runner *runner, const struct test_case *test_case)
{
	return test_case->op == REFERENCE_COMMUTING ? runner->commuting :
	       test_case->op == REFERENCE_ORDERED   ? runner->ordered :
						      (enum coll_reduction)test_case->op;
}

/* False if the algorithm refused the call. A refusal must be the same on all ranks. */
static bool run_test_case(struct runner *runner, const struct test_case *test_case)
{
	struct rank_call call;
	int error;

	if (!is_next(runner))
		return true;
	call = rank_call_make(runner->group, op_of(runner, test_case), test_case);
	error = rank_call_execute(&call);
	if (error && error != -EOPNOTSUPP)
		rank_call_fail(&call, coll_last_error(call.group));
	if (!error)
		rank_call_check(&call);
	rank_call_free(&call);
	runner->test_cases++;
	runner->refused += error == -EOPNOTSUPP;
	return !error;
}

/* ---- which test cases ------------------------------------------------------- */

/* The tunings to test the algorithm with, one at a time. */
static const char *const *tunings_of(const struct coll_algo *algo)
{
	static const char *const plain[] = { "", NULL };
	static const char *const redundant[] = { "", ":T=0", ":T=1", ":T=2", ":T=16", NULL };
	static const char *const segments[] = { "", ":segment=64", ":segment=4K", NULL };
	static const char *const bound[] = { ":bound=10000", ":bound=0", ":bound=7", NULL };

	if (!algo->options)
		return plain;
	return strstr(algo->options, "T") ? redundant :
	       strstr(algo->options, "segment") ? segments :
	       strstr(algo->options, "bound") ? bound : plain;
}

static void choose_algo(struct runner *runner, enum coll_collective collective, const char *name)
{
	rank_must(runner->group,
		  coll_group_set(runner->group, coll_collective_names[collective], name));
}

/* Large counts with many ranks and many blocks take too long. */
static bool too_large(const struct runner *runner, const struct test_case *test_case)
{
	const size_t blocks = test_case->collective == COLL_BCAST ||
					      test_case->collective == COLL_REDUCE ||
					      test_case->collective >= COLL_SCAN ||
					      test_case->collective == COLL_ALLREDUCE
				      ? 1
				      : coll_ranks(runner->group);

	return test_case->count * blocks * coll_ranks(runner->group) > ELEMENTS_MAX;
}

/* Algorithms for levels need several nodes: where the test says which ranks these are. */
static bool lacks_levels(const struct coll_algo *algo)
{
	return algo->levels && !getenv("COLL_LEVELS");
}

/* Powers of two only, or of the radix, which is 2 unless the name has another. */
static bool powers_only(const struct coll_algo *algo)
{
	return algo->power_of_two || (algo->collective == COLL_ALLREDUCE && algo->options &&
				      strstr(algo->options, "radix"));
}

/* Counts, roots, forms, in place and not, for one algorithm, in turn. */
static void run_algo(struct runner *runner, const struct coll_algo *algo, const char *name)
{
	const int ranks = coll_ranks(runner->group);
	const size_t counts[] = { 0, 1, ranks - 1, 17, 1000, 5000, 70000 };
	const int roots[] = { 0, ranks - 1, ranks / 2 };
	struct test_case test_case = { .collective = algo->collective,
				       .algo = name,
				       .type = COLL_INT32,
				       .op = algo->ordered ? REFERENCE_ORDERED : COLL_SUM };
	size_t i, variant, served = 0;

	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		test_case.count = counts[i];
		if (test_case.count > runner->most || too_large(runner, &test_case) ||
		    (counts[i] && algo->collective == COLL_BARRIER))
			continue;
		for (variant = 0; variant < 6; variant++) {
			test_case.form = (i + variant) % FORMS;
			test_case.in_place = variant % 2 && algo->collective != COLL_BCAST;
			test_case.root = roots[variant % 3];
			served += run_test_case(runner, &test_case);
			if (test_case.count > 1000 && variant)
				break;
		}
	}
	if (!served && (!powers_only(algo) || !(ranks & (ranks - 1))))
		rank_fail(runner->group, "%s %s served nothing",
			  coll_collective_names[algo->collective], name);
}

static void run_algorithms(struct runner *runner)
{
	const struct coll_algo *const *algo;
	const char *const *tuning;
	char name[64];

	for (algo = coll_algos; *algo; algo++) {
		if (lacks_levels(*algo))
			continue;
		for (tuning = tunings_of(*algo); *tuning; tuning++) {
			snprintf(name, sizeof(name), "%s%s", (*algo)->name, *tuning);
			choose_algo(runner, (*algo)->collective, name);
			run_algo(runner, *algo, name);
		}
		choose_algo(runner, (*algo)->collective, "auto");
	}
}

/* Every type with every reduction that fits it, by the automatic choice. */
static void run_reductions(struct runner *runner, enum coll_collective collective)
{
	static const int user[] = { REFERENCE_COMMUTING, REFERENCE_ORDERED };
	static const int opaque[] = { COLL_OPAQUE(2), COLL_OPAQUE(3), COLL_OPAQUE(24) };
	struct test_case test_case = { .collective = collective, .algo = "auto", .count = 13 };
	size_t i, j;

	for (test_case.type = 0; test_case.type < COLL_TYPES; test_case.type++)
		for (test_case.op = 0; test_case.op < COLL_REDUCTIONS; test_case.op++)
			if (reference_fits(test_case.type, test_case.op))
				run_test_case(runner, &test_case);
	for (j = 0; j < 2; j++) {
		test_case.op = user[j];
		for (test_case.type = 0; test_case.type < COLL_TYPES; test_case.type++)
			run_test_case(runner, &test_case);
		for (i = 0; i < sizeof(opaque) / sizeof(*opaque); i++) {
			test_case.type = opaque[i];
			run_test_case(runner, &test_case);
		}
	}
}

/* Every type with one reduction that fits it, by every algorithm. */
static void run_algo_types(struct runner *runner, const struct coll_algo *algo)
{
	static const int opaque[] = { COLL_OPAQUE(1), COLL_OPAQUE(3), COLL_OPAQUE(100) };
	struct test_case test_case = { .collective = algo->collective,
				       .algo = algo->name,
				       .count = 33 };
	size_t i;

	for (test_case.type = 0; test_case.type < COLL_TYPES; test_case.type++) {
		test_case.op = reference_fits(test_case.type, COLL_SUM) ? COLL_SUM : COLL_MAXLOC;
		run_test_case(runner, &test_case);
	}
	test_case.op = algo->ordered ? REFERENCE_ORDERED : REFERENCE_COMMUTING;
	for (i = 0; i < sizeof(opaque) / sizeof(*opaque); i++) {
		test_case.type = opaque[i];
		run_test_case(runner, &test_case);
	}
}

static void run_types(struct runner *runner)
{
	const struct coll_algo *const *algo;
	enum coll_collective collective;
	char name[64];

	for (collective = COLL_REDUCE; collective < COLL_COLLECTIVES; collective++)
		run_reductions(runner, collective);
	for (algo = coll_algos; *algo; algo++) {
		if ((*algo)->collective == COLL_BARRIER || lacks_levels(*algo))
			continue;
		snprintf(name, sizeof(name), "%s%s", (*algo)->name, *tunings_of(*algo));
		choose_algo(runner, (*algo)->collective, name);
		run_algo_types(runner, *algo);
		choose_algo(runner, (*algo)->collective, "auto");
	}
}

/* ---- the same bits on all ranks ------------------------------------------- */

static uint32_t noise_next(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Numbers whose sum depends on the order of the additions: of any size and sign. */
static void put_noise(int type, void *data, size_t count, int rank)
{
	uint32_t state = rank * 7919 + type;
	size_t i;

	for (i = 0; i < count; i++) {
		const double fraction = noise_next(&state) / 8388608.0 - 1;
		const int shift = noise_next(&state) % (type == COLL_FP16 ? 10 : 40);
		const double value = fraction * (1ull << shift);

		if (type == COLL_DOUBLE)
			((double *)data)[i] = value;
		else if (type == COLL_FLOAT)
			((float *)data)[i] = value;
		else
			((_Float16 *)data)[i] = value;
	}
}

static void compare_bits(struct runner *runner, const char *name, int type, size_t count)
{
	const size_t bytes = count * reference_bytes(type);
	const int ranks = coll_ranks(runner->group);
	uint8_t *in = malloc(bytes + 1), *out = malloc(bytes + 1), *all = malloc(bytes * ranks + 1);
	int i, error;

	put_noise(type, in, count, coll_rank(runner->group));
	error = coll_allreduce(in, out, count, type, COLL_SUM, runner->group);
	runner->refused += error == -EOPNOTSUPP;
	if (error != -EOPNOTSUPP)
		rank_must(runner->group, error);
	rank_must(runner->group, coll_allgather(out, all, bytes, COLL_UINT8, runner->group));
	for (i = 0; i < ranks && !error; i++)
		if (memcmp(out, all + i * bytes, bytes))
			rank_fail(runner->group,
				  "allreduce %s, sum of %zu %s: rank %d has other bits", name,
				  count, reference_type_name(type), i);
	free(in);
	free(out);
	free(all);
	runner->test_cases++;
}

static void run_bits(struct runner *runner)
{
	static const size_t counts[] = { 1, 7, 64, 1001, 4999 };
	static const int types[] = { COLL_DOUBLE, COLL_FLOAT, COLL_FP16 };
	const struct coll_algo *const *algo;
	const char *const *tuning;
	char name[64];
	size_t i;

	for (algo = coll_algos; *algo; algo++) {
		if ((*algo)->collective != COLL_ALLREDUCE || lacks_levels(*algo))
			continue;
		for (tuning = tunings_of(*algo); *tuning; tuning++) {
			snprintf(name, sizeof(name), "%s%s", (*algo)->name, *tuning);
			choose_algo(runner, COLL_ALLREDUCE, name);
			for (i = 0; i < 15; i++)
				if (is_next(runner))
					compare_bits(runner, name, types[i % 3], counts[i / 3]);
		}
	}
	choose_algo(runner, COLL_ALLREDUCE, "auto");
}

/* ---- main --------------------------------------------------------------- */

static void print_section(const struct runner *runner, const char *section)
{
	if (!coll_rank(runner->group))
		printf("%s: %zu test cases, %zu refused\n", section, runner->test_cases,
		       runner->refused);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(struct runner *runner);
	} sections[] = {
		{ "algorithms", run_algorithms },
		{ "types", run_types },
		{ "bits", run_bits },
	};
	struct runner runner = { .context = rank_open(NULL) };
	size_t i;

	runner.every = argc > 1 ? atoi(argv[1]) : 1;
	runner.first = argc > 2 ? atoi(argv[2]) % runner.every : 0;
	runner.most = argc > 3 ? strtoul(argv[3], NULL, 10) : SIZE_MAX;
	runner.group = coll_world(runner.context);
	rank_must(runner.group, coll_op_create(runner.context, reference_commuting, NULL, 1,
					       &runner.commuting));
	rank_must(runner.group, coll_op_create(runner.context, reference_ordered, NULL, 0,
					       &runner.ordered));
	for (i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		runner.test_cases = 0;
		runner.refused = 0;
		sections[i].run(&runner);
		print_section(&runner, sections[i].name);
	}
	coll_close(runner.context);
	return 0;
}
