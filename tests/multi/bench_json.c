// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * bench_json COLLECTIVE RANKS SIZES ALGORITHMS ITERATIONS: whether what coll
 * bench --json says, on standard input, is whole and makes sense.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void expect(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	failures++;
}

static double real(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_number(value)) {
		fprintf(stderr, "no number %s\n", key);
		failures++;
	}
	return json_number_value(value);
}

static void check_figures(const json_t *object)
{
	static const char *const ascending[] = { "min_us", "p50_us", "p90_us", "p99_us", "p999_us",
						 "max_us" };
	double last = 0, mean = real(object, "mean_us");
	int i;

	for (i = 0; i < 6; i++) {
		double value = real(object, ascending[i]);

		expect(value > 0 && value >= last, "percentiles are not in order");
		last = value;
	}
	expect(mean >= real(object, "min_us") && mean <= real(object, "max_us"),
	       "the mean is outside of the samples");
}

static void check_algorithm(const json_t *object, int iterations, size_t index)
{
	const json_t *ratio = json_object_get(object, "ratio");
	const json_t *counters = json_object_get(object, "counters");

	expect(json_is_string(json_object_get(object, "algorithm")), "no algorithm");
	expect(real(object, "iterations") == iterations, "wrong number of iterations");
	expect(real(object, "wrong") == 0, "wrong results");
	check_figures(object);
	check_figures(json_object_get(object, "mean_over_ranks"));
	expect(index ? real(ratio, "mean") > 0 : real(ratio, "mean") == 1, "ratio");
	expect(real(counters, "sends") >= 1 && real(counters, "enters") >= 0, "counters");
	expect(real(counters, "allocations") == 0, "a run allocated memory");
}

int main(int argc, char **argv)
{
	json_t *all = json_loadf(stdin, 0, NULL), *results = json_object_get(all, "results");
	const json_t *result, *algo;
	const char *collective = json_string_value(json_object_get(all, "collective"));
	size_t i, j;

	if (argc != 6)
		return 2;
	expect(collective && !strcmp(collective, argv[1]), "another collective");
	expect(real(all, "ranks") == atoi(argv[2]), "another number of ranks");
	expect(real(all, "cores") >= 1, "no cores");
	expect(json_array_size(results) == (size_t)atoi(argv[3]), "another number of sizes");
	json_array_foreach(results, i, result) {
		const json_t *algos = json_object_get(result, "algorithms");

		expect(real(result, "size") > 0, "no size");
		expect(json_array_size(algos) == (size_t)atoi(argv[4]),
		       "another number of algorithms");
		json_array_foreach(algos, j, algo)
			check_algorithm(algo, atoi(argv[5]), j);
	}
	json_decref(all);
	return failures > 0;
}
