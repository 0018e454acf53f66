// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The fault campaign: rounds of random jobs with random faults, from a seed. Every failing
 * round prints its seed and the command that repeats it. Exit code 0: nothing was found.
 */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "round.h"

struct tally {
	uint64_t rounds, faults, survived, findings;
};

struct campaign {
	struct settings settings;
	uint64_t seed;
	uint64_t rounds;		/* 0: no limit */
	double minutes;			/* 0: no limit */
	int walk;			/* a kind whose calls fail one after the other, or -1 */
	uint64_t from, at;		/* where the walk begins, and where it is */
	bool json, verbose;
	const char *program;
	struct tally tally[KINDS];
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	stopped = signal;
}

static double seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

/* ---- what is printed -------------------------------------------------------------- */

static void show_output(const struct round *round)
{
	char path[100], line[400];
	FILE *file;
	int i;

	snprintf(path, sizeof(path), "%s/out", round->folder);
	file = fopen(path, "r");
	for (i = 0; file && i < 30 && fgets(line, sizeof(line), file); i++)
		fprintf(stderr, "#   | %s", line);
	if (file)
		fclose(file);
}

static void show_ranks(const struct round *round)
{
	int i;
	uint32_t k;

	for (i = 0; i < round->ranks; i++) {
		const struct board_rank *rank = &round->board->rank[i];

		fprintf(stderr, "#   rank %d: pid %d, state %u, %u calls, %u shrinks, group of %u%s%s\n",
			i, rank->pid, rank->state, rank->calls, rank->generation, rank->ranks,
			rank->injected ? ", failed: " : "", rank->injected ? rank->where : "");
		for (k = 0; k < rank->errors; k++)
			fprintf(stderr, "#     blames %d: %s\n", rank->error[k].blamed,
				rank->error[k].text);
	}
	for (k = 0; k < round->events; k++)
		if (round->event[k].injected)
			fprintf(stderr, "#   fault: %s, rank %d, after %u calls and %u us%s\n",
				kind_names[round->kind], round->event[k].victim,
				round->event[k].calls, round->event[k].delay_us,
				round->event[k].early ? ", while ranks joined" : "");
}

static void show_repeat(const struct campaign *campaign, const struct round *round)
{
	const struct settings *settings = &campaign->settings;

	fprintf(stderr, "# repeat: %s --rounds 1 --seed %lu --deadline %u --limit %u", campaign->program,
		(unsigned long)round->seed, settings->deadline_s, settings->limit_s);
	if (campaign->walk >= 0)
		fprintf(stderr, " --walk %s --from %lu", kind_names[campaign->walk],
			(unsigned long)campaign->at);
	else if (settings->only >= 0)
		fprintf(stderr, " --only %s", kind_names[settings->only]);
	if (settings->module)
		fprintf(stderr, " --module %s", settings->module);
	if (settings->plant)
		fprintf(stderr, " --plant %s", settings->plant);
	fprintf(stderr, "\n");
}

static void show_finding(const struct campaign *campaign, const struct round *round)
{
	fprintf(stderr, "FOUND: seed %lu, %s, %d ranks, %s: %s\n", (unsigned long)round->seed,
		kind_names[round->kind], round->ranks, round->options, round->finding);
	show_repeat(campaign, round);
	show_ranks(round);
	show_output(round);
}

static struct tally sum(const struct campaign *campaign)
{
	struct tally all = { 0 };
	int i;

	for (i = 0; i < KINDS; i++) {
		all.rounds += campaign->tally[i].rounds;
		all.faults += campaign->tally[i].faults;
		all.survived += campaign->tally[i].survived;
		all.findings += campaign->tally[i].findings;
	}
	return all;
}

static void print_row(const char *name, const struct tally *tally, bool json, bool last)
{
	printf(json ? "  {\"fault\": \"%s\", \"rounds\": %lu, \"injected\": %lu, \"survived\": %lu, "
		      "\"findings\": %lu}%s\n" : "%-12s %10lu %10lu %10lu %10lu%s\n",
	       name, (unsigned long)tally->rounds, (unsigned long)tally->faults,
	       (unsigned long)tally->survived, (unsigned long)tally->findings,
	       json && !last ? "," : "");
}

static void print_table(const struct campaign *campaign)
{
	const struct tally all = sum(campaign);
	int i;

	if (campaign->json)
		printf("{\"seed\": %lu, \"faults\": [\n", (unsigned long)campaign->seed);
	else
		printf("seed %lu\n%-12s %10s %10s %10s %10s\n", (unsigned long)campaign->seed,
		       "fault", "rounds", "injected", "survived", "findings");
	for (i = 0; i < KINDS; i++)
		print_row(kind_names[i], &campaign->tally[i], campaign->json, false);
	print_row("all", &all, campaign->json, true);
	if (campaign->json)
		printf("]}\n");
}

/* ---- rounds -------------------------------------------------------------------------- */

/* Returns how many faults met the job. */
static uint32_t one_round(struct campaign *campaign, uint64_t seed)
{
	struct round round;
	struct tally *tally;
	int error;

	if (campaign->walk >= 0)
		round_plan_walk(&round, &campaign->settings, seed, campaign->walk, campaign->at);
	else
		round_plan(&round, &campaign->settings, seed);
	tally = &campaign->tally[round.kind];
	if (campaign->verbose)
		fprintf(stderr, "# seed %lu: %s, %d ranks, %s\n", (unsigned long)seed,
			kind_names[round.kind], round.ranks, round.options);
	error = round_run(&round);
	if (error) {
		snprintf(round.finding, sizeof(round.finding), "cannot run: %s", strerror(-error));
		fprintf(stderr, "FOUND: %s\n", round.finding);
	} else {
		if (!stopped)		/* its processes may have been stopped, too */
			round_judge(&round);
		if (round.finding[0])
			show_finding(campaign, &round);
	}
	tally->rounds++;
	tally->faults += round.injected;
	tally->survived += round.finding[0] ? 0 : round.injected;
	tally->findings += round.finding[0] != 0;
	round_end(&round);
	return round.injected;
}

/* Each call of each rank fails once; ends when no rank makes so many. */
static void walk(struct campaign *campaign)
{
	const double until = seconds() + campaign->minutes * 60;
	uint32_t in_vain = 0;
	uint64_t i;

	for (i = 0; !stopped && (!campaign->rounds || i < campaign->rounds) &&
		    (campaign->minutes <= 0 || seconds() < until) && in_vain < 6; i++) {
		campaign->at = campaign->from + i;
		in_vain = one_round(campaign, campaign->seed) ? 0 : in_vain + 1;
	}
}

static void run(struct campaign *campaign)
{
	const double until = seconds() + campaign->minutes * 60;
	uint64_t i;

	for (i = 0; !stopped && (!campaign->rounds || i < campaign->rounds) &&
		    (campaign->minutes <= 0 || seconds() < until); i++)
		one_round(campaign, campaign->seed + i);
}

/* ---- options ---------------------------------------------------------------------------- */

static void usage(FILE *file)
{
	fprintf(file,
		"usage: chaos [--seed N] [--rounds N] [--minutes M] [--only FAULT] [--deadline S]\n"
		"             [--limit S] [--plant WHAT] [--walk memory|descriptor [--from N]]\n"
		"             [--module coll.ko] [--json] [--verbose]\n\n"
		"Runs random jobs and hurts them. --limit: a job that takes longer hangs. --plant:\n"
		"what one rank does wrong, which must be found: wrong, hang, crash, leak, process,\n"
		"blame. --walk: every call of each rank of a small job fails, one a round.\n"
		"Exit code 77: --only asks for what cannot be done here. Faults:");
	for (int i = 0; i < KINDS; i++)
		fprintf(file, " %s", kind_names[i]);
	fprintf(file, "\n");
}

static int kind_of(const char *name)
{
	int i;

	for (i = 0; i < KINDS; i++)
		if (!strcmp(kind_names[i], name))
			return i;
	fprintf(stderr, "chaos: --only '%s': no such fault\n", name);
	usage(stderr);
	exit(2);
}

static void must_be_possible(const struct settings *settings)
{
	const char *lacks = round_lacks(settings, settings->only);

	if (!lacks)
		return;
	fprintf(stderr, "chaos: %s: needs %s\n", kind_names[settings->only], lacks);
	exit(77);
}

static void parse(struct campaign *campaign, int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", 1, NULL, 's' },  { "rounds", 1, NULL, 'r' }, { "minutes", 1, NULL, 'm' },
		{ "only", 1, NULL, 'o' },  { "plant", 1, NULL, 'p' },  { "deadline", 1, NULL, 'd' },
		{ "limit", 1, NULL, 'l' }, { "json", 0, NULL, 'j' },   { "verbose", 0, NULL, 'v' },
		{ "walk", 1, NULL, 'w' },  { "from", 1, NULL, 'f' }, { "module", 1, NULL, 'k' },
		{ "help", 0, NULL, 'h' },  { NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) >= 0)
		switch (option) {
		case 's': campaign->seed = strtoull(optarg, NULL, 10); break;
		case 'r': campaign->rounds = strtoull(optarg, NULL, 10); break;
		case 'm': campaign->minutes = atof(optarg); break;
		case 'o': campaign->settings.only = kind_of(optarg); break;
		case 'p': campaign->settings.plant = optarg; break;
		case 'd': campaign->settings.deadline_s = atoi(optarg); break;
		case 'l': campaign->settings.limit_s = atoi(optarg); break;
		case 'w': campaign->walk = kind_of(optarg); break;
		case 'f': campaign->from = strtoull(optarg, NULL, 10); break;
		case 'k': campaign->settings.module = optarg; break;
		case 'j': campaign->json = true; break;
		case 'v': campaign->verbose = true; break;
		case 'h': usage(stdout); exit(0);
		default: usage(stderr); exit(2);
		}
	if (optind < argc || (campaign->walk >= 0 && campaign->walk != KIND_MEMORY &&
			      campaign->walk != KIND_DESCRIPTOR)) {
		usage(stderr);
		exit(2);
	}
	if (campaign->settings.only >= 0)
		must_be_possible(&campaign->settings);
	if (!campaign->settings.limit_s)
		campaign->settings.limit_s = 4 * campaign->settings.deadline_s + 60;
}

int main(int argc, char **argv)
{
	char program[300];
	struct campaign campaign = {
		.settings = { .deadline_s = 20, .only = -1 },
		.seed = (uint64_t)time(NULL) * 1000,
		.walk = -1,
		.program = argv[0],
	};

	snprintf(program, sizeof(program), "%s", argv[0]);
	campaign.settings.folder = dirname(program);
	campaign.settings.mounts = full_begin();
	parse(&campaign, argc, argv);
	if (!campaign.rounds && campaign.minutes <= 0 && campaign.walk < 0)
		campaign.rounds = 100;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	if (campaign.walk >= 0)
		walk(&campaign);
	else
		run(&campaign);
	print_table(&campaign);
	return sum(&campaign).findings != 0;
}
