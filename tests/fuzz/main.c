// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 *	X_fuzz [RUNS [SEED]]	mutates the target's seeds and its corpus that many times
 *	X_fuzz --file FILE...	tries these inputs: a crash again
 *	X_fuzz --seeds DIR	writes the seeds as files, for libFuzzer
 *	X_fuzz --corpus RUNS	fuzzes, and writes a small corpus that runs the same blocks
 *
 * The corpus is tests/fuzz/corpus/X: the name of each file is a hash of the input. The input
 * that failed is left beside the program, in crash-X. In objects that count blocks (coverage.h) an input that runs
 * new ones is mutated further.
 */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coverage.h"
#include "tests/lib/mutate.h"
#include "tests/lib/schedules.h"
#include "fuzz.h"

enum {
	SEEDS_MAX = 1 << 16,
	INPUT_MAX = 1 << 16,
	CORPUS_FILES = 40,		/* of one target, in the tree */
	CORPUS_FILE_BYTES = 2048,
	HANG_SECONDS = 60,
};

static struct {
	struct seed seed[SEEDS_MAX];
	size_t count, written;		/* written: by fuzz_seeds() and in the corpus */
} seeds;

static char target[64];			/* "wire" of wire_fuzz */
static char folder[200] = ".";
static const uint8_t *input;		/* that is being tried */
static size_t input_bytes;
static unsigned long tried;

/* ---- what failed ----------------------------------------------------------- */

static void keep_failed(void)
{
	char name[280];
	FILE *to;

	snprintf(name, sizeof(name), "%.200s/crash-%s", folder, target);
	to = input ? fopen(name, "w") : NULL;
	if (!to)
		return;
	fwrite(input, 1, input_bytes, to);
	fclose(to);
	fprintf(stderr, "fuzz: after %lu inputs; the input is in %s\n", tried, name);
	input = NULL;
}

static void is_aborted(int signal_number)
{
	keep_failed();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

/* An input takes microseconds. */
static void look_for_hang(int signal_number)
{
	static unsigned long before = ULONG_MAX;

	(void)signal_number;
	fuzz_must(tried != before, "an input does not end");
	before = tried;
	alarm(HANG_SECONDS);
}

/* The sanitizers' runtime has it; the driver works without. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void watch_for_failure(void)
{
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(keep_failed);
	signal(SIGABRT, is_aborted);
	signal(SIGALRM, look_for_hang);
	alarm(HANG_SECONDS);
}

/* ---- inputs ----------------------------------------------------------------- */

static void keep_seed(const void *data, size_t bytes, void *argument)
{
	struct seed *seed = &seeds.seed[seeds.count];

	(void)argument;
	if (seeds.count == SEEDS_MAX)
		return;
	seed->data = malloc(bytes + !bytes);
	fuzz_must(seed->data != NULL, "out of memory");
	memcpy(seed->data, data, bytes);
	seed->bytes = bytes;
	seeds.count++;
}

static void keep_file(const char *name)
{
	static uint8_t data[INPUT_MAX];
	FILE *from = fopen(name, "r");

	fuzz_must(from != NULL, name);
	keep_seed(data, fread(data, 1, sizeof(data), from), NULL);
	fclose(from);
}

static int is_input(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void corpus_name(char *name, size_t bytes, const char *file)
{
	snprintf(name, bytes, "tests/fuzz/corpus/%s/%s", target, file);
}

static void remove_file(const char *name)
{
	unlink(name);
}

static void each_in_corpus(void (*visit)(const char *name))
{
	char name[512];
	struct dirent **entry;
	int count, i;

	corpus_name(name, sizeof(name), "");
	count = scandir(name, &entry, is_input, alphasort);
	for (i = 0; i < count; i++) {
		corpus_name(name, sizeof(name), entry[i]->d_name);
		visit(name);
		free(entry[i]);
	}
	if (count >= 0)
		free(entry);
}

static void write_input(const char *name, const void *data, size_t bytes)
{
	FILE *to = fopen(name, "w");

	fuzz_must(to && fwrite(data, 1, bytes, to) == bytes && !fclose(to), name);
}

static void write_seed(const void *data, size_t bytes, void *argument)
{
	static unsigned int number;
	char name[4096];

	snprintf(name, sizeof(name), "%s/seed-%u", (const char *)argument, number++);
	write_input(name, data, bytes);
}

/* ---- fuzzing ---------------------------------------------------------------- */

static size_t below(u64 *random, size_t limit)
{
	return limit ? random_next(random) % limit : 0;
}

/* Whether it runs code that no input before did. */
static bool run_input(const uint8_t *data, size_t bytes)
{
	input = data;
	input_bytes = bytes;
	tried++;
	coverage_begin();
	LLVMFuzzerTestOneInput(data, bytes);
	input = NULL;
	return coverage_is_new();
}

/* The latest inputs have found something: every other time one of them. */
static const struct seed *choose_seed(u64 *random)
{
	const size_t latest = seeds.count > 64 && below(random, 2) ? 64 : seeds.count;

	return &seeds.seed[seeds.count - 1 - below(random, latest)];
}

static void run_mutated(u64 *random)
{
	const struct seed *seed = choose_seed(random);
	const size_t room = seed->bytes + 64;
	uint8_t *data = malloc(room);
	size_t bytes = seed->bytes, changes = below(random, 4);

	fuzz_must(data != NULL, "out of memory");
	memcpy(data, seed->data, bytes);
	while (changes--)
		bytes = mutate(data, bytes, room, &seeds.seed[below(random, seeds.count)],
			       random);
	if (run_input(data, bytes) && bytes <= INPUT_MAX)
		keep_seed(data, bytes, NULL);
	free(data);
}

static void fuzz(unsigned long runs, u64 random)
{
	size_t i;

	fuzz_seeds(keep_seed, NULL);
	each_in_corpus(keep_file);
	fuzz_must(seeds.count > 0, "no seeds");
	seeds.written = seeds.count;
	for (i = 0; i < seeds.written; i++)
		run_input(seeds.seed[i].data, seeds.seed[i].bytes);
	while (tried < runs)
		run_mutated(&random);
	printf("%s: %lu inputs made of %zu seeds", target, tried, seeds.written);
	if (coverage_blocks())
		printf(", %u blocks run, %zu inputs found new ones", coverage_blocks(),
		       seeds.count - seeds.written);
	printf("\n");
}

/* ---- the corpus in the tree -------------------------------------------------- */

static int shorter(const void *a, const void *b)
{
	const struct seed *const *one = a, *const *other = b;

	return ((*one)->bytes > (*other)->bytes) - ((*one)->bytes < (*other)->bytes);
}

static unsigned long long hash_of(const struct seed *seed)
{
	unsigned long long hash = 14695981039346656037ull;
	size_t i;

	for (i = 0; i < seed->bytes; i++)
		hash = (hash ^ seed->data[i]) * 1099511628211ull;
	return hash;
}

/* The shortest inputs, each of which runs blocks that those before it do not. */
static void write_corpus(unsigned long runs)
{
	const struct seed **sorted;
	char file[32], name[512];
	size_t i, files = 0;

	fuzz(runs, 1);
	sorted = calloc(seeds.count, sizeof(*sorted));
	fuzz_must(sorted != NULL, "out of memory");
	for (i = 0; i < seeds.count; i++)
		sorted[i] = &seeds.seed[i];
	qsort(sorted, seeds.count, sizeof(*sorted), shorter);
	each_in_corpus(remove_file);
	coverage_forget();
	for (i = 0; i < seeds.count && files < CORPUS_FILES; i++) {
		const unsigned int before = coverage_blocks();

		if (sorted[i]->bytes > CORPUS_FILE_BYTES)
			break;
		run_input(sorted[i]->data, sorted[i]->bytes);
		if (coverage_blocks() == before)
			continue;
		snprintf(file, sizeof(file), "%016llx", hash_of(sorted[i]));
		corpus_name(name, sizeof(name), file);
		write_input(name, sorted[i]->data, sorted[i]->bytes);
		files++;
	}
	free(sorted);
}

static void name_target(const char *program)
{
	const char *slash = strrchr(program, '/');

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - program), program);
	snprintf(target, sizeof(target), "%s", slash ? slash + 1 : program);
	target[strcspn(target, "_")] = 0;
}

int main(int argc, char **argv)
{
	size_t i;

	name_target(argv[0]);
	watch_for_failure();
	if (argc == 3 && !strcmp(argv[1], "--seeds")) {
		fuzz_seeds(write_seed, argv[2]);
	} else if (argc == 3 && !strcmp(argv[1], "--corpus")) {
		write_corpus(strtoul(argv[2], NULL, 10));
	} else if (argc > 2 && !strcmp(argv[1], "--file")) {
		for (i = 2; i < (size_t)argc; i++)
			keep_file(argv[i]);
		for (i = 0; i < seeds.count; i++)
			run_input(seeds.seed[i].data, seeds.seed[i].bytes);
	} else {
		fuzz(argc > 1 ? strtoul(argv[1], NULL, 10) : 10000,
		     argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
	}
	for (i = 0; i < seeds.count; i++)
		free(seeds.seed[i].data);
	return 0;
}
