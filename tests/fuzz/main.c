// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 *	X_fuzz [RUNS [SEED]]	mutates the target's seeds that many times
 *	X_fuzz --seeds DIR	writes the seeds as files, for libFuzzer
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/mutate.h"
#include "tests/lib/schedules.h"
#include "fuzz.h"

struct seeds {
	struct seed seed[4096];
	size_t count;
};

static void keep_seed(const void *data, size_t bytes, void *argument)
{
	struct seeds *seeds = argument;
	struct seed *seed = &seeds->seed[seeds->count];

	if (seeds->count == sizeof(seeds->seed) / sizeof(*seeds->seed))
		return;
	seed->data = malloc(bytes + !bytes);
	fuzz_must(seed->data != NULL, "out of memory");
	memcpy(seed->data, data, bytes);
	seed->bytes = bytes;
	seeds->count++;
}

static void write_seed(const void *data, size_t bytes, void *argument)
{
	static unsigned int number;
	char name[4096];
	FILE *to;

	snprintf(name, sizeof(name), "%s/seed-%u", (const char *)argument, number++);
	to = fopen(name, "w");
	fuzz_must(to && fwrite(data, 1, bytes, to) == bytes && !fclose(to), name);
}

static size_t below(u64 *random, size_t limit)
{
	return limit ? random_next(random) % limit : 0;
}

static void run(const struct seeds *seeds, u64 *random)
{
	const struct seed *seed = &seeds->seed[below(random, seeds->count)];
	const size_t room = seed->bytes + 64;
	uint8_t *data = malloc(room);
	size_t bytes = seed->bytes, changes = below(random, 4);

	fuzz_must(data != NULL, "out of memory");
	memcpy(data, seed->data, bytes);
	while (changes--)
		bytes = mutate(data, bytes, room, &seeds->seed[below(random, seeds->count)],
			       random);
	LLVMFuzzerTestOneInput(data, bytes);
	free(data);
}

int main(int argc, char **argv)
{
	static struct seeds seeds;
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000, i;
	u64 random = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	if (argc == 3 && !strcmp(argv[1], "--seeds")) {
		fuzz_seeds(write_seed, argv[2]);
		return 0;
	}
	fuzz_seeds(keep_seed, &seeds);
	fuzz_must(seeds.count > 0, "no seeds");
	for (i = 0; i < runs; i++)
		run(&seeds, &random);
	for (i = 0; i < seeds.count; i++)
		free(seeds.seed[i].data);
	printf("%s: %lu inputs made of %zu seeds\n", argv[0], runs, seeds.count);
	return 0;
}
