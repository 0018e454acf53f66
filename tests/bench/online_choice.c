// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * online_choice [-r RANKS] [-s SCALE] [-p SURVEYS] [-f] NOISE
 *
 * What the choice that a job makes at run time loses to fixed ones, simulated. A job of three
 * phases with equally many calls (quiet, with NOISE on all ranks, quiet) knows nothing when it
 * begins. The library's own code gets samples of its messages and chooses (exec/samples.c,
 * topology/drift.c and lateness.c, algo/choice.c). NOISE is written as for `coll sim --os-noise`:
 * replay:FILE.
 *
 *	-r RANKS	2^K ranks (1024)
 *	-s SCALE	simulated calls of each choice: SCALE 2^18 / RANKS, 2 to 128 (1)
 *	-p SURVEYS	length of a phase, of 256 calls each; and four times as many (200)
 *	-f		few fixed choices, where all take too long
 *
 * A job's calls are those simulated of its choice, each as likely; all choices have the same noise
 * in the same call. One call of 4 is sampled, and of it one exchange on average, as in a job. Here
 * the exchange is one of those that were decided on before the calls were simulated, since not all
 * ranks' times are kept. A survey's own time, below a percent, is left out.
 *
 * The same job twice: the kernel's accounts have the noise, as that of other threads, or have not,
 * as that of interrupts. Errors are of the simulated calls and of 16 jobs' luck with samples.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algo/common/ranks.h"
#include "algo/tuning.h"
#include "core/noise/text.h"
#include "libcoll/exec/survey.h"
#include "libcoll/link/context.h"
#include "libcoll/link/group.h"
#include "libcoll/topology/drift.h"
#include "simulated_calls.h"

enum {
	PHASES = 3,
	JOBS = 16,
	RUNS_MIN = 2,
	RUNS_MAX = 128,
	KEPT = 1 << 14,	 /* exchanges of all simulated calls of a choice */
	DRAWN_MOST = 16, /* in a sampled call; of two and more none is a sample */
};

static const enum kind kind_of_phase[PHASES] = { QUIET, NOISY, QUIET };

/* As the library takes TCP where it has not measured: 20 us, 2 us of them at each end. */
static const double latency = 16e-6, overhead = 2e-6, byte_time = 0.25e-9, reduce_time = 0.1e-9;

/* Those to begin with are the few. */
static const char *const fixed[] = {
	"butterfly",
	"butterfly-redundant:T=1",
	"butterfly-redundant:T=2",
	"butterfly-redundant:T=3",
	"butterfly-redundant:T=5",
	"butterfly-relayed:T=3,relays=3",
	"butterfly-redundant:T=4",
	"butterfly-relayed:T=2,relays=1",
	"butterfly-relayed:T=3,relays=1",
	"butterfly-relayed:T=2,relays=3",
};
enum { FEW = 6 };

/* ---- choices ------------------------------------------------------------------- */

static const char *choice_name(const struct choice *c, char text[96])
{
	char tuning[80];

	coll_tuning_print(&c->tuning, tuning, sizeof(tuning));
	snprintf(text, 96, "%s%s%s", c->algo->name, *tuning ? ":" : "", tuning);
	return text;
}

static u32 choice_by_machine(struct bench *b, const struct coll_machine *machine)
{
	const struct coll_call call = bench_call(b);
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	const struct coll_algo *algo = coll_algo_choose(&call, &tuning, machine);

	coll_tuning_choose(algo, &call, machine, &tuning);
	return choice_of(b, algo, &tuning);
}

static struct coll_machine machine_at_start(void)
{
	return (struct coll_machine){
		.alpha = latency + 2 * overhead,
		.overhead = overhead,
		.beta = byte_time,
		.byte_gap = byte_time,
		.gamma = reduce_time,
		.crowding = 0.5,
	};
}

/* Of the table, by length, each kind up to four times as long: as the option `noise` gives it. */
static struct coll_machine machine_with(const struct coll_noise_said *said)
{
	const double seconds = said->model.period * 1e-9;
	struct coll_machine m = machine_at_start();
	u32 kind, kinds = 0, i;
	u64 from = 0, to = 20000;

	for (kind = 0; kind + 1 < COLL_NOISES_MAX; kind++, from = to, to *= 4) {
		double events = 0, ns = 0;

		for (i = 0; i < said->spans; i++)
			if (said->table[i].duration >= from && said->table[i].duration < to) {
				events++;
				ns += said->table[i].duration;
			}
		if (events > 0)
			m.noise[kinds++] =
				(struct coll_noise_rate){ events / seconds, ns * 1e-9 / events };
	}
	return m;
}

static void choices_fixed(struct bench *b, bool few)
{
	char why[200];
	size_t i;

	for (i = 0; i < (few ? FEW : sizeof(fixed) / sizeof(*fixed)); i++) {
		const size_t name = strcspn(fixed[i], ":");
		struct coll_tuning tuning = COLL_TUNING_UNSET;
		const struct coll_algo *algo;
		char text[64];

		snprintf(text, sizeof(text), "%.*s", (int)name, fixed[i]);
		algo = coll_algo_find(COLL_ALLREDUCE, text);
		if (!algo || (fixed[i][name] && coll_tuning_parse(algo, fixed[i] + name + 1,
								  &tuning, why, sizeof(why))))
			bench_fail(fixed[i], "no such algorithm");
		choice_of(b, algo, &tuning);
	}
}

/* ---- a job ------------------------------------------------------------------------ */

struct job {
	struct bench *bench;
	struct coll_context context;
	struct coll_group group;
	struct coll_samples table; /* of all ranks: how many pairs are drawn */
	struct coll_samples rank;  /* of the one whose half is added */
	struct coll_sample_cell sum[SAMPLE_CELLS];
	u64 random;
	u32 run, counted, call, choice;
	u32 length; /* surveys of a phase */
	bool accounts;			  /* they have the noise */
	u32 surveys[PHASES][CHOICES_MAX]; /* in which the choice was in use */
};

static void job_begin(struct job *job, struct bench *b, u64 seed, bool accounts, u32 length)
{
	const struct coll_machine m = machine_at_start();

	memset(job, 0, sizeof(*job));
	job->bench = b;
	job->random = seed;
	job->accounts = accounts;
	job->length = length;
	job->group.context = &job->context;
	job->group.ranks = b->ranks;
	job->group.options.machine = m;
	job->group.costs.of[COLL_CLASS_CLUSTER] = (struct coll_class_cost){
		.cost = { m.alpha, m.overhead, m.beta, m.byte_gap },
		.pairs = 1,
		.samples = 1,
	};
	coll_samples_init(&job->table, 0, b->ranks);
	coll_samples_init(&job->rank, 0, b->ranks);
	job->choice = choice_by_machine(b, &m);
}

/* One rank's half of a sampled run, added to the sum of all ranks' cells. */
static void half_sample(struct job *job, u32 run, const struct exchange *exchange, int k)
{
	const struct half *half = &exchange->half[k];
	const u32 peer = exchange->rank[!k];
	struct coll_sample_time posted = { .now = half->posted, .looks = 1 }, arrived = {
		.now = half->arrived,
		.held = job->accounts ? half->held : 0,
		.looks = half->waited ? 3 : 2,
	};
	struct coll_samples *rank = &job->rank;
	u32 cell = 0, w;

	rank->rank = exchange->rank[k];
	coll_samples_begin(rank, run);
	if (half->posted)
		coll_samples_posted(rank, run, peer, posted);
	if (half->sent)
		coll_samples_sent(rank, run, peer, COLL_CLASS_CLUSTER, BYTES, half->sent);
	if (half->arrived)
		coll_samples_arrived(rank, run, peer, COLL_CLASS_CLUSTER, BYTES, arrived);
	while (rank->run[cell] != run)
		cell++;
	for (w = 0; w < sizeof(rank->cell[cell]) / sizeof(u64); w++)
		((u64 *)&job->sum[cell])[w] += ((u64 *)&rank->cell[cell])[w];
}

/* As many exchanges as the lottery draws: Poisson. */
static u32 exchanges_drawn(struct job *job)
{
	const double all = (double)job->bench->ranks * job->bench->exchanges / 2;
	const double least = exp(-all / job->table.pairs);
	double product = random_unit(bench_random(&job->random));
	u32 count = 0;

	for (; product > least && count < DRAWN_MOST; count++)
		product *= random_unit(bench_random(&job->random));
	return count;
}

static void run_sample(struct job *job, u32 run, enum kind kind)
{
	struct bench *b = job->bench;
	const struct measured *runs = choice_runs(b, &b->choice[job->choice], kind);
	const struct measured *call = &runs[bench_random(&job->random) % b->runs[kind]];
	u32 count, i;

	if (!coll_samples_begin(&job->table, run))
		return;
	for (i = 0; i < SAMPLE_CELLS; i++)
		if (job->table.run[i] == run && job->table.cell[i].begun)
			memset(&job->sum[i], 0, sizeof(job->sum[i]));
	for (count = exchanges_drawn(job); count; count--) {
		const struct exchange *one = &call->exchange[bench_random(&job->random) % b->kept];

		half_sample(job, run, one, 0);
		half_sample(job, run, one, 1);
	}
}

/* The calls until the next survey, and what that finds. */
static void job_survey(struct job *job, int phase)
{
	struct bench *b = job->bench;
	const enum kind kind = kind_of_phase[phase];
	const u32 recent = SAMPLE_CELLS * job->table.every;
	struct coll_sample sample[SAMPLE_CELLS];
	struct coll_samples_found found = {
		.sample = sample,
		.ranks = b->ranks,
		.looks = true,
		.held = true,
		.own_cores = true,
		.from = job->counted,
	};
	u32 i;

	job->surveys[phase][job->choice]++;
	for (i = 0; i < SURVEY_CALLS_MIN; i++)
		run_sample(job, job->run++, kind);
	choice_runs(b, &b->choice[job->choice], kind);
	found.call = job->call += SURVEY_CALLS_MIN;
	found.seconds = SURVEY_CALLS_MIN * b->choice[job->choice].mean[kind];
	found.until = job->counted = job->run - SURVEY_LAG;
	found.recent = job->run > recent ? job->run - recent : 0;
	found.samples = coll_samples_collect(&job->table, job->sum, sample);
	if (coll_costs_surveyed(&job->group, &found))
		job->choice = choice_by_machine(b, &job->group.options.machine);
}

static void job_run(struct job *job)
{
	int phase;
	u32 i;

	for (phase = 0; phase < PHASES; phase++)
		for (i = 0; i < job->length; i++)
			job_survey(job, phase);
}

/* ---- figures -------------------------------------------------------------------------- */

/* Seconds of simulated call `run` of a phase's kind: a quiet one has one. */
static double seconds_of(struct bench *b, u32 choice, int phase, u32 run)
{
	const enum kind kind = kind_of_phase[phase];

	return choice_runs(b, &b->choice[choice], kind)[run % b->runs[kind]].seconds;
}

/* Of phases first .. last. */
static double mean_of(struct bench *b, u32 choice, int first, int last)
{
	double sum = 0;
	int phase;

	for (phase = first; phase <= last; phase++) {
		choice_runs(b, &b->choice[choice], kind_of_phase[phase]);
		sum += b->choice[choice].mean[kind_of_phase[phase]];
	}
	return sum / (last - first + 1);
}

/* Of the fixed ones, and those that a job has taken. */
static u32 best_of(struct bench *b, int first, int last)
{
	u32 best = 0, i;

	for (i = 1; i < b->choices; i++)
		if (mean_of(b, i, first, last) < mean_of(b, best, first, last))
			best = i;
	return best;
}

/* What a job takes in phases first .. last, with run's noise, beyond `against` of each phase. */
static double job_excess(struct bench *b, const struct job *job, const u32 against[PHASES],
			 int first, int last, u32 run)
{
	double sum = 0;
	int phase;
	u32 i;

	for (phase = first; phase <= last; phase++)
		for (i = 0; i < b->choices; i++)
			if (job->surveys[phase][i])
				sum += job->surveys[phase][i] *
				       (seconds_of(b, i, phase, run) -
					seconds_of(b, against[phase], phase, run));
	return sum / (job->length * (last - first + 1.));
}

struct figure {
	double mean, error; /* error: standard */
};

static struct figure figure_of(const double *value, u32 count)
{
	double sum = 0, squares = 0;
	u32 i;

	for (i = 0; i < count; i++)
		sum += value[i] / count;
	for (i = 0; i < count; i++)
		squares += (value[i] - sum) * (value[i] - sum);
	return (struct figure){ sum, count > 1 ? sqrt(squares / (count - 1) / count) : 0 };
}

/* In percent: of the simulated calls' noise, and of the jobs' luck with their samples. */
static struct figure regret_of(struct bench *b, const struct job *jobs, const u32 against[PHASES],
			       int first, int last)
{
	const u32 runs = b->runs[NOISY];
	double of_run[RUNS_MAX] = { 0 }, of_job[JOBS] = { 0 }, base = 0, excess;
	struct figure by_run, by_job;
	int phase;
	u32 i, j;

	for (phase = first; phase <= last; phase++)
		base += mean_of(b, against[phase], phase, phase) / (last - first + 1);
	for (j = 0; j < JOBS; j++)
		for (i = 0; i < runs; i++) {
			excess = 100 / base * job_excess(b, &jobs[j], against, first, last, i);
			of_run[i] += excess / JOBS;
			of_job[j] += excess / runs;
		}
	by_run = figure_of(of_run, runs);
	by_job = figure_of(of_job, JOBS);
	return (struct figure){ by_run.mean, hypot(by_run.error, by_job.error) };
}

static void print_choices(struct bench *b)
{
	double value[RUNS_MAX];
	char name[96];
	u32 c, i;

	printf("%-36s %10s %20s %10s\n", "us a call", "quiet", "noise", "all");
	for (c = 0; c < b->choices; c++) {
		struct figure noisy;

		for (i = 0; i < b->runs[NOISY]; i++)
			value[i] = seconds_of(b, c, 1, i) * 1e6;
		noisy = figure_of(value, b->runs[NOISY]);
		printf("%-36s %10.1f %10.1f +- %6.1f %10.1f\n", choice_name(&b->choice[c], name),
		       mean_of(b, c, 0, 0) * 1e6, noisy.mean, noisy.error,
		       mean_of(b, c, 0, PHASES - 1) * 1e6);
	}
}

static void print_taken(const struct bench *b, const struct job *jobs, int phase)
{
	char name[96];
	u32 c, j;

	printf("  phase %d:", phase + 1);
	for (c = 0; c < b->choices; c++) {
		u32 sum = 0;

		for (j = 0; j < JOBS; j++)
			sum += jobs[j].surveys[phase][c];
		if (sum)
			printf(" %s %.1f %%", choice_name(&b->choice[c], name),
			       100. * sum / (JOBS * jobs->length));
	}
	printf("\n");
}

static double oracle_mean(struct bench *b)
{
	return (mean_of(b, best_of(b, 0, 0), 0, 0) + mean_of(b, best_of(b, 1, 1), 1, 1) +
		mean_of(b, best_of(b, 2, 2), 2, 2)) /
	       PHASES;
}

static void print_jobs(struct bench *b, const struct job *jobs)
{
	const u32 one = best_of(b, 0, PHASES - 1), best[PHASES] = { one, one, one },
		  oracle[PHASES] = { best_of(b, 0, 0), best_of(b, 1, 1), best_of(b, 2, 2) };
	const struct figure of_best = regret_of(b, jobs, best, 0, PHASES - 1),
			    of_oracle = regret_of(b, jobs, oracle, 0, PHASES - 1);
	int phase;

	printf("online, accounts %s the noise, phases of %u calls: %.1f us a call\n",
	       jobs->accounts ? "have" : "do not have", jobs->length * SURVEY_CALLS_MIN,
	       oracle_mean(b) * (1 + of_oracle.mean / 100) * 1e6);
	printf("  regret: %.2f +- %.2f %% of the best fixed, %.2f +- %.2f %% of the oracle; by phases",
	       of_best.mean, of_best.error, of_oracle.mean, of_oracle.error);
	for (phase = 0; phase < PHASES; phase++)
		printf(" %.2f", regret_of(b, jobs, oracle, phase, phase).mean);
	printf("\n");
	for (phase = 0; phase < PHASES; phase++)
		print_taken(b, jobs, phase);
}

static void print_best(struct bench *b)
{
	const u32 best = best_of(b, 0, PHASES - 1);
	char name[96];
	int phase;

	printf("best fixed: %s, %.1f us; oracle: %.1f us,", choice_name(&b->choice[best], name),
	       mean_of(b, best, 0, PHASES - 1) * 1e6, oracle_mean(b) * 1e6);
	for (phase = 0; phase < PHASES; phase++)
		printf(" %s", choice_name(&b->choice[best_of(b, phase, phase)], name));
	printf("\n");
}

/* What a job takes that was given the noise by its option, and takes in all phases. */
static void print_given(struct bench *b, const struct coll_noise_said *said)
{
	const struct coll_machine m = machine_with(said);
	const u32 given = choice_by_machine(b, &m);
	char name[96];

	printf("given the noise: %s, %.2f %% more than the oracle in phase 2, %.2f %% in phase 1\n",
	       choice_name(&b->choice[given], name),
	       100 * (mean_of(b, given, 1, 1) / mean_of(b, best_of(b, 1, 1), 1, 1) - 1),
	       100 * (mean_of(b, given, 0, 0) / mean_of(b, best_of(b, 0, 0), 0, 0) - 1));
}

/* ---- all of it ------------------------------------------------------------------------- */

static struct sim_model model_of(const struct coll_noise_said *said)
{
	struct sim_model model = { .costs = SIM_COSTS(latency, byte_time, reduce_time),
				   .semantics = SIM_OCCUPANCY };

	model.costs.send = model.costs.recv = model.costs.redundant = overhead;
	if (said)
		model.os[0] = (struct sim_noise){ said->model, said->table, said->spans };
	return model;
}

enum { LENGTHS = 2, LONGER = 4 }; /* of phases */
static struct job jobs[LENGTHS][2][JOBS];

static void jobs_run(struct bench *b, u32 length)
{
	int longer, accounts, i;

	for (longer = 0; longer < LENGTHS; longer++)
		for (accounts = 0; accounts < 2; accounts++)
			for (i = 0; i < JOBS; i++) {
				job_begin(&jobs[longer][accounts][i], b, sim_seed(11, i), accounts,
					  longer ? LONGER * length : length);
				job_run(&jobs[longer][accounts][i]);
			}
}

static void compare_choices(u32 ranks, double scale, u32 surveys, bool few,
			    const struct coll_noise_said *said)
{
	const double wanted = scale * (1 << 18) / ranks;
	static struct bench b;
	int longer, accounts;

	b = (struct bench){ .ranks = ranks, .exchanges = log2_floor(ranks) };
	b.runs[QUIET] = 1;
	b.runs[NOISY] = fmin(fmax(wanted, RUNS_MIN), RUNS_MAX);
	b.kept = KEPT / b.runs[NOISY];
	b.model[QUIET] = model_of(NULL);
	b.model[NOISY] = model_of(said);
	b.watched = calloc(ranks, sizeof(*b.watched));
	if (!b.watched)
		bench_fail("memory", "not enough");
	choices_fixed(&b, few);
	printf("%u ranks, %u simulated calls\n", ranks, b.runs[NOISY]);
	jobs_run(&b, surveys);
	print_given(&b, said);
	print_choices(&b);
	print_best(&b);
	for (longer = 0; longer < LENGTHS; longer++)
		for (accounts = 1; accounts >= 0; accounts--)
			print_jobs(&b, jobs[longer][accounts]);
	free(b.watched);
}

int main(int argc, char **argv)
{
	struct coll_noise_said said;
	struct coll_text_error error;
	double scale = 1;
	u32 ranks = 1024, surveys = 200;
	bool few = false;
	int option;

	while ((option = getopt(argc, argv, "r:s:p:f")) != -1) {
		if (option == 'r')
			ranks = strtoul(optarg, NULL, 10);
		else if (option == 's')
			scale = strtod(optarg, NULL);
		else if (option == 'p')
			surveys = strtoul(optarg, NULL, 10);
		else if (option == 'f')
			few = true;
		else
			return 2;
	}
	if (optind + 1 != argc || ranks < 4 || ranks & (ranks - 1) || !(scale > 0) || !surveys) {
		fprintf(stderr,
			"usage: online_choice [-r RANKS] [-s SCALE] [-p SURVEYS] [-f] NOISE\n");
		return 2;
	}
	if (coll_noise_parse(argv[optind], 7, &said, &error))
		bench_fail(argv[optind], error.reason);
	compare_choices(ranks, scale, surveys, few, &said);
	coll_noise_said_free(&said);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
