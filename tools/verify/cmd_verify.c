// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll verify: every algorithm, symbolically. Workers take cases from a shared
 * counter. A worker that finds a failure notes the case's number; the lowest one
 * is verified again at the end, in this process, and shown: a case's randomness
 * depends on nothing but the case and the seed.
 */
#include <errno.h>
#include <getopt.h>
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
#include "tools/arguments.h"
#include "tools/command.h"
#include "verify.h"

enum {
	JOBS_MAX = 256,
	CASE_SECONDS = 120,	/* an emit function that never returns ends its worker */
	PROGRESS_MS = 200,
	VERIFY_RANKS_MAX = 4096,
};

struct settings {
	struct verify_options options;
	struct verify_filter filter;
	u32 jobs;
	bool list, json;
};

/* What the workers share. */
struct shared {
	atomic_uint next;		/* case to take */
	atomic_uint failed;		/* lowest failed case, or COLL_NONE */
	atomic_ullong schedules, planted;
	atomic_uint working[JOBS_MAX];	/* case each worker is at, or COLL_NONE */
};

static const char help[] =
	"usage: coll verify [OPTION ...]\n"
	"\n"
	"Runs every algorithm symbolically, all ranks in random order, and checks that\n"
	"each element of the result holds each contribution exactly once; and that no\n"
	"more than n links between two clusters are ever in use at once. With circuits:\n"
	"that no message goes without one, no node ever asks for more than its k at once,\n"
	"and there are never more than W.\n"
	"\n"
	"  --quick           fewer rank counts and runs: under half a minute\n"
	"  --collective X    only this collective\n"
	"  --algorithm Y     only algorithms of this name\n"
	"  --ranks N|A-B     only these rank counts\n"
	"  --seed S          of the random order (1)\n"
	"  --jobs N          processes (one a core)\n"
	"  --json            the outcome as JSON\n"
	"  --list            the collectives and algorithms; verify nothing\n"
	"  --plant DEFECT    break one op in every case: the verifier must find it\n"
	"\n"
	"DEFECT: drop-wait, any-wait, swap-operands, wrong-peer, skip-send, skip-recv,\n"
	"skip-local, wrong-offset, short-message, double-reduce, skip-connect,\n"
	"skip-release, early-connect, early-release.\n"
	"\n"
	"Exit status: 0 all hold, 1 a failure (its schedule is shown), 2 wrong usage.\n";

/* ---- the failing case --------------------------------------------------- */

/* What printing relies on; the check may have refused the schedule. */
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

static void failure_json(const struct world *w, const struct settings *settings, u64 schedules)
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

static void failure_text(const struct world *w, const struct settings *settings, u64 schedules)
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

static int show_failure(const struct verify_case *c, const struct settings *settings,
			u64 schedules)
{
	struct world world = { 0 };
	int status = COMMAND_ERROR;

	if (verify_case(&world, c, &settings->options)) {
		fprintf(stderr, "coll verify: a failure does not come again\n");
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

/* A worker that died says in which case. */
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
		printf("FAILED  %s: the verifier's process gave up\n", text);
	return true;
}

/* Starts the workers and waits for them; whether all of them came to their end. */
static bool work_together(struct shared *shared, const struct verify_case *cases, u32 count,
			  const struct settings *settings)
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

static int verify_all(const struct settings *settings)
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

static int list_all(const struct settings *settings)
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

/* Whether a filter leaves an algorithm. */
static bool is_there(const struct verify_filter *filter)
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

enum option_key {
	KEY_QUICK, KEY_COLLECTIVE, KEY_ALGORITHM, KEY_RANKS, KEY_SEED, KEY_JOBS, KEY_JSON,
	KEY_LIST, KEY_PLANT, KEY_HELP,
};

static const struct option long_options[] = {
	{ "quick", no_argument, NULL, KEY_QUICK },
	{ "collective", required_argument, NULL, KEY_COLLECTIVE },
	{ "algorithm", required_argument, NULL, KEY_ALGORITHM },
	{ "ranks", required_argument, NULL, KEY_RANKS },
	{ "seed", required_argument, NULL, KEY_SEED },
	{ "jobs", required_argument, NULL, KEY_JOBS },
	{ "json", no_argument, NULL, KEY_JSON },
	{ "list", no_argument, NULL, KEY_LIST },
	{ "plant", required_argument, NULL, KEY_PLANT },
	{ "help", no_argument, NULL, KEY_HELP },
	{ NULL, 0, NULL, 0 },
};

static bool apply_option(int key, char *const *argv, struct settings *settings)
{
	u64 jobs;
	u32 defect;

	switch (key) {
	case KEY_QUICK:
		settings->options.quick = true;
		return true;
	case KEY_COLLECTIVE:
		return argument_collective("verify", optarg, &settings->filter.collective);
	case KEY_ALGORITHM:
		settings->filter.algorithm = optarg;
		return true;
	case KEY_RANKS:
		return argument_range("verify", "--ranks", optarg, VERIFY_RANKS_MAX,
				      &settings->filter.first_rank, &settings->filter.last_rank);
	case KEY_SEED:
		return argument_number("verify", "--seed", optarg, 0, ~(u64)0 - 1,
				       &settings->options.seed);
	case KEY_JOBS:
		if (!argument_number("verify", "--jobs", optarg, 1, JOBS_MAX, &jobs))
			return false;
		settings->jobs = jobs;
		return true;
	case KEY_JSON:
		settings->json = true;
		return true;
	case KEY_LIST:
		settings->list = true;
		return true;
	case KEY_PLANT:
		if (!argument_word("verify", "defect", optarg, plant_names, COLL_NONE, &defect))
			return false;
		settings->options.plant = plant_names[defect];
		return true;
	default:
		return argument_unknown("verify", key, argv, long_options);
	}
}

int cmd_verify(int argc, char **argv)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct settings settings = {
		.options.seed = 1,
		.filter.collective = -1,
		.jobs = cores < 1 ? 1 : cores > JOBS_MAX ? JOBS_MAX : cores,
	};
	int key;

	optind = 1;
	opterr = 0;
	while ((key = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (key == KEY_HELP) {
			fputs(help, stdout);
			return COMMAND_OK;
		}
		if (!apply_option(key, argv, &settings))
			return COMMAND_USAGE;
	}
	if (optind < argc) {
		fprintf(stderr, "coll verify: it takes options only, not '%s'; --help lists them\n",
			argv[optind]);
		return COMMAND_USAGE;
	}
	if (!is_there(&settings.filter))
		return COMMAND_USAGE;
	return settings.list ? list_all(&settings) : verify_all(&settings);
}
