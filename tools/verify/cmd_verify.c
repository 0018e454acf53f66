// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll verify: every algorithm, symbolically. Workers take cases from a shared counter. A worker
 * that finds a failure records the case's number. At the end this process verifies the lowest one
 * again and prints it: the random numbers of a case depend only on the case and the seed.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/text.h"
#include "tools/common/arguments.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "verify.h"

enum {
	JOBS_MAX = 256,
	CASE_SECONDS = 120,	/* seconds; ends a worker whose emit function does not return */
	PROGRESS_MS = 200,
	VERIFY_RANKS_MAX = 4096,
};

struct verify_settings {
	struct verify_options options;
	struct verify_filter filter;
	u32 jobs;
	bool list, json;
};

/* Shared memory of the workers. */
struct shared {
	atomic_uint next;		/* the next case */
	atomic_uint failed;		/* lowest failed case, or COLL_NONE */
	atomic_ullong schedules, planted;
	atomic_uint working[JOBS_MAX];	/* current case of each worker, or COLL_NONE */
};

/* ---- the failing case --------------------------------------------------- */

/* Whether a schedule that the check may have refused can be printed. */
static bool is_printable(const struct coll_schedule *s)
{
	const struct coll_op *op = coll_ops(s);
	u32 i;

	for (i = 0; i < s->ops; i++)
		if (COLL_ADDRESS_BUFFER(op[i].left) >= COLL_BUFFERS ||
		    COLL_ADDRESS_BUFFER(op[i].right) >= COLL_BUFFERS ||
		    COLL_ADDRESS_BUFFER(op[i].result) >= COLL_BUFFERS)
			return false;
	return true;
}

static const struct coll_schedule *failing_schedule(const struct world *w)
{
	const struct coll_schedule *s;

	if (!w->failure.has_rank)
		return NULL;
	s = w->rank[w->failure.rank].schedule;
	return s && is_printable(s) ? s : NULL;
}

static void json_string(const char *text)
{
	putchar('"');
	for (; *text; text++)
		printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	putchar('"');
}

static void failure_json(const struct world *w, const struct verify_settings *settings,
			 u64 schedules)
{
	const struct verify_case *c = w->vcase;
	const struct coll_schedule *s = failing_schedule(w);
	char text[320];

	printf("{\"verified\": %llu, \"failures\": 1, \"failure\": {",
	       (unsigned long long)schedules);
	printf("\"collective\": \"%s\", \"algorithm\": \"%s\", \"ranks\": %u, ",
	       coll_collective_names[c->algo->collective], c->algo->name, c->ranks);
	printf("\"root\": %u, \"count\": %llu, \"in_place\": %s, \"seed\": %llu, ", c->root,
	       (unsigned long long)c->count, c->in_place ? "true" : "false",
	       (unsigned long long)settings->options.seed);
	if (w->failure.has_rank)
		printf("\"rank\": %u, ", w->failure.rank);
	printf("\"case\": ");
	json_string(case_print(c, text, sizeof(text)));
	printf(", \"reason\": ");
	json_string(w->failure.words);
	if (s) {
		printf(", \"schedule\": ");
		coll_json_print(s, stdout);
	}
	printf("}}\n");
}

static void failure_text(const struct world *w, const struct verify_settings *settings,
			 u64 schedules)
{
	const struct coll_schedule *s = failing_schedule(w);
	char text[320];

	printf("FAILED  %s, seed %llu\n", case_print(w->vcase, text, sizeof(text)),
	       (unsigned long long)settings->options.seed);
	printf("        %s\n\n", w->failure.words);
	if (s)
		coll_text_print(s, stdout);
	printf("\nverified %llu schedules, 1 failure\n", (unsigned long long)schedules);
}

static int show_failure(const struct verify_case *c, const struct verify_settings *settings,
			u64 schedules)
{
	struct world world = { 0 };
	int status = COMMAND_ERROR;

	if (verify_case(&world, c, &settings->options)) {
		fprintf(stderr, "coll verify: a failure is not reproducible\n");
	} else if (settings->json) {
		failure_json(&world, settings, schedules);
	} else {
		failure_text(&world, settings, schedules);
	}
	world_free(&world);
	return status;
}

/* ---- workers ------------------------------------------------------------ */

static void note_failure(struct shared *shared, u32 number)
{
	u32 before = atomic_load(&shared->failed);

	while (number < before && !atomic_compare_exchange_weak(&shared->failed, &before, number))
		;
}

static void verify_work(struct shared *shared, u32 worker, const struct verify_case *cases,
			u32 count, const struct verify_options *options)
{
	struct world world = { 0 };
	u32 number;

	while ((number = atomic_fetch_add(&shared->next, 1)) < count &&
	       number < atomic_load(&shared->failed)) {
		atomic_store(&shared->working[worker], number);
		alarm(CASE_SECONDS);
		world.schedules = 0;
		if (!verify_case(&world, &cases[number], options))
			note_failure(shared, number);
		atomic_fetch_add(&shared->schedules, world.schedules);
	}
	alarm(0);
	atomic_fetch_add(&shared->planted, world.planted);
	atomic_store(&shared->working[worker], COLL_NONE);
	world_free(&world);
}

static void show_progress(const struct shared *shared, u32 count, bool last)
{
	u32 next = atomic_load(&shared->next);

	if (!isatty(STDERR_FILENO))
		return;
	if (last)
		fprintf(stderr, "\r\033[K");
	else
		fprintf(stderr, "\r%3u %%  %llu schedules verified ",
			(u32)((u64)(next < count ? next : count) * 100 / (count ? count : 1)),
			(unsigned long long)atomic_load(&shared->schedules));
	fflush(stderr);
}

/* Reports the case in which a worker died. */
static bool worker_died(const struct shared *shared, u32 worker, int status,
			const struct verify_case *cases)
{
	u32 number = atomic_load(&shared->working[worker]);
	char text[320] = "between two cases";

	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return false;
	if (number != COLL_NONE)
		case_print(&cases[number], text, sizeof(text));
	if (WIFSIGNALED(status))
		printf("FAILED  %s: the verifier's process ended with %s\n", text,
		       WTERMSIG(status) == SIGALRM ? "its time used up" :
						     strsignal(WTERMSIG(status)));
	else
		printf("FAILED  %s: the verifier's process ended with an error\n", text);
	return true;
}

/* Starts the workers and waits for them. Returns whether all ended normally. */
static bool work_together(struct shared *shared, const struct verify_case *cases, u32 count,
			  const struct verify_settings *settings)
{
	const struct timespec pause = { .tv_nsec = PROGRESS_MS * 1000000L };
	pid_t pids[JOBS_MAX];
	u32 running = 0, i;
	bool fine = true;

	fflush(NULL);
	for (i = 0; i < settings->jobs; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			verify_work(shared, i, cases, count, &settings->options);
			_exit(COMMAND_OK);
		}
		running += pids[i] > 0;
	}
	if (!running)
		verify_work(shared, 0, cases, count, &settings->options);
	while (running) {
		show_progress(shared, count, false);
		for (i = 0; i < settings->jobs; i++) {
			int status;

			if (pids[i] <= 0 || waitpid(pids[i], &status, WNOHANG) != pids[i])
				continue;
			pids[i] = 0;
			running--;
			if (worker_died(shared, i, status, cases))
				fine = false;
		}
		if (running)
			nanosleep(&pause, NULL);
	}
	show_progress(shared, count, true);
	return fine;
}

static int verify_all(const struct verify_settings *settings)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct verify_case *cases;
	int status = COMMAND_OK;
	u32 count, failed;
	u64 schedules;

	if (shared == MAP_FAILED) {
		fprintf(stderr, "coll verify: %s\n", strerror(errno));
		return COMMAND_ERROR;
	}
	atomic_store(&shared->failed, COLL_NONE);
	cases = list_cases(&settings->filter, settings->options.quick, &count);
	if (!work_together(shared, cases, count, settings))
		status = COMMAND_ERROR;
	failed = atomic_load(&shared->failed);
	schedules = atomic_load(&shared->schedules);
	if (settings->options.plant && !atomic_load(&shared->planted)) {
		fprintf(stderr, "coll verify: no op here can have the defect '%s'\n",
			settings->options.plant);
		status = COMMAND_USAGE;
	}
	if (failed != COLL_NONE)
		status = show_failure(&cases[failed], settings, schedules);
	else if (status == COMMAND_OK && settings->json)
		printf("{\"verified\": %llu, \"failures\": 0}\n", (unsigned long long)schedules);
	else if (status == COMMAND_OK)
		printf("verified %llu schedules, 0 failures\n", (unsigned long long)schedules);
	memory_free(cases);
	munmap(shared, sizeof(*shared));
	return status;
}

/* ---- list --------------------------------------------------------------- */

static void list_text(const struct coll_algo *algo)
{
	printf("%-20s %-20s %s", coll_collective_names[algo->collective], algo->name, algo->about);
	if (algo->options)
		printf(" [%s]", algo->options);
	printf("%s%s%s\n", algo->ordered ? "" : " (operation must commute)",
	       algo->power_of_two ? " (2^k ranks)" : "",
	       algo->needs_counts ? " (counts on every rank)" : "");
}

static void list_json(const struct coll_algo *algo, bool first)
{
	printf("%s\n  {\"collective\": \"%s\", \"algorithm\": \"%s\", \"about\": ",
	       first ? "" : ",", coll_collective_names[algo->collective], algo->name);
	json_string(algo->about);
	printf(", \"options\": ");
	json_string(algo->options ? algo->options : "");
	printf(", \"ordered\": %s, \"needs_counts\": %s, \"power_of_two\": %s}",
	       algo->ordered ? "true" : "false", algo->needs_counts ? "true" : "false",
	       algo->power_of_two ? "true" : "false");
}

static int list_all(const struct verify_settings *settings)
{
	const struct coll_algo *const *algo;
	bool first = true;

	if (settings->json)
		printf("[");
	for (algo = coll_algos; *algo; algo++) {
		if (settings->filter.collective >= 0 &&
		    settings->filter.collective != (int)(*algo)->collective)
			continue;
		if (settings->filter.algorithm && strcmp(settings->filter.algorithm, (*algo)->name))
			continue;
		if (settings->json)
			list_json(*algo, first);
		else
			list_text(*algo);
		first = false;
	}
	if (settings->json)
		printf("\n]\n");
	return COMMAND_OK;
}

/* ---- options ------------------------------------------------------------ */

/* Whether the filters select an algorithm. */
static bool is_filtered_in(const struct verify_filter *filter)
{
	const struct coll_algo *const *algo;

	for (algo = coll_algos; *algo; algo++)
		if ((filter->collective < 0 || filter->collective == (int)(*algo)->collective) &&
		    (!filter->algorithm || !strcmp((*algo)->name, filter->algorithm)))
			return true;
	fprintf(stderr, "coll verify: no algorithm '%s'%s%s; coll verify --list has them\n",
		filter->algorithm ? filter->algorithm : "of any name",
		filter->collective < 0 ? "" : " for ",
		filter->collective < 0 ? "" : coll_collective_names[filter->collective]);
	return false;
}

static bool verify_read_ranks(const struct option_table *table, const struct option_entry *option,
			      void *to, const char *text)
{
	struct verify_filter *filter = &((struct verify_settings *)to)->filter;
	char what[32];

	snprintf(what, sizeof(what), "--%s", option->name);
	return argument_range(table->command, what, text, VERIFY_RANKS_MAX, &filter->first_rank,
			      &filter->last_rank);
}

static const struct option_entry verify_entries[] = {
	{ "quick", 0, NULL, "fewer rank counts and runs: less than 30 s",
	  OPTION_FLAG(struct verify_settings, options.quick) },
	{ "collective", 0, "C", "only this collective", .read = option_collective,
	  OPTION_FIELD(struct verify_settings, filter.collective) },
	{ "algorithm", 0, "A", "only algorithms of this name",
	  OPTION_TEXT(struct verify_settings, filter.algorithm) },
	{ "ranks", 0, "N", "only these rank counts: N or A-B", .read = verify_read_ranks },
	{ "seed", 0, "S", "seed of the random order",
	  OPTION_NUMBER(struct verify_settings, options.seed, 0, ~(u64)0 - 1), .preset = "1" },
	{ "jobs", 0, "N", "processes", OPTION_NUMBER(struct verify_settings, jobs, 1, JOBS_MAX),
	  .otherwise = "one a core" },
	{ "json", 0, NULL, "print the outcome as JSON", OPTION_FORMAT(struct verify_settings, json) },
	{ "list", 0, NULL, "list the collectives and algorithms; verify nothing",
	  OPTION_FLAG(struct verify_settings, list) },
	{ "plant", 0, "DEFECT", "plant this defect in every case: it must be found",
	  OPTION_NAME(struct verify_settings, options.plant, plant_names) },
	{ NULL },
};

static const char *const usage[] = {
	"usage: coll verify [OPTION ...]",
	"",
	"Runs every algorithm symbolically, all ranks in random order. Checks that each element",
	"of the result holds each contribution exactly once, and that at most n links between two",
	"clusters are in use at once. With circuits: that each message has a circuit, that no node",
	"requests more than its k ports at once, and that at most W circuits exist.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0 all hold, 1 a failure (its schedule is shown), 2 wrong usage.",
	NULL,
};

const struct option_table cmd_verify_options = {
	.command = "verify",
	.usage = usage,
	.closing = closing,
	.list = { verify_entries },
};

int cmd_verify(int argc, char **argv)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct verify_settings settings = {
		.filter.collective = -1,
		.jobs = cores < 1 ? 1 : cores > JOBS_MAX ? JOBS_MAX : cores,
	};

	if (!options_read(&cmd_verify_options, argc, argv, &settings) ||
	    !is_filtered_in(&settings.filter))
		return COMMAND_USAGE;
	return settings.list ? list_all(&settings) : verify_all(&settings);
}
