// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * coll sim: collectives in virtual time. `coll sim COLLECTIVE` is here; replay, circuit and flit
 * are commands of their own, in the table.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "algo/common/blocks.h"
#include "algo/common/ranks.h"
#include "tools/common/arena.h"
#include "tools/common/command.h"
#include "tools/common/emit.h"
#include "tools/common/whole.h"
#include "sim.h"

static const struct command others[] = {
	{ "circuit", cmd_sim_circuit, "collectives over circuits that take time to set up", NULL },
	{ "replay", cmd_sim_replay, "a program's traces, or a GOAL program", NULL },
	{ "flit", cmd_sim_flit, "wormhole routers with virtual channels, cycle by cycle", NULL },
	{ NULL },
};

/* ---- a job ----------------------------------------------------------------- */

static struct coll_call call_of(const struct sim_options *options, u32 ranks)
{
	const bool doubles = options->size % sizeof(double) == 0;
	const u32 element = doubles ? sizeof(double) : 1;

	return (struct coll_call){
		.collective = options->collective,
		.ranks = ranks,
		.root = options->root,
		.type = doubles ? COLL_DOUBLE : COLL_UINT8,
		.reduction = COLL_SUM,
		.element = element,
		.commutative = true,
		.count = options->size / element,
	};
}

/* Contiguous clusters of sizes as equal as possible. */
static u32 *areas_of(const struct sim_options *options, u32 ranks)
{
	u32 *area = memory_grow(NULL, ranks, sizeof(*area)), i;

	for (i = 0; i < ranks; i++)
		area[i] = (u64)i * options->clusters / ranks;
	return area;
}

static void add_clusters(const struct sim_options *options, u32 ranks, struct sim_tables *tables,
			 struct sim_model *model)
{
	const u32 n = options->clusters;
	u32 i;

	tables->area = areas_of(options, ranks);
	for (i = 0; i < n * n; i++)
		tables->link[i] = options->wan;
	for (i = 0; i < n; i++)
		tables->link[i * n + i] = (struct sim_link){ .alpha = model->costs.alpha,
							     .beta = model->costs.beta };
	tables->network = (struct sim_network){ n, tables->area, tables->link };
	model->network = &tables->network;
}

/* Per rank whether it is one of them; NULL: none are given. */
static bool *table_of(const struct sim_some_ranks *some, u32 ranks)
{
	bool *table;
	u32 i;

	if (!some->count)
		return NULL;
	table = memory_grow(NULL, ranks, sizeof(*table));
	memset(table, 0, ranks * sizeof(*table));
	for (i = 0; i < some->count; i++)
		if (some->rank[i] < ranks)
			table[some->rank[i]] = true;
	return table;
}

struct sim_model sim_model_of(const struct sim_options *options, u32 ranks,
			      struct sim_tables *tables)
{
	struct sim_model model = options->model;
	u32 i;

	*tables = (struct sim_tables){ .slowness = NULL };
	if (options->slow_count) {
		tables->slowness = memory_grow(NULL, ranks, sizeof(*tables->slowness));
		for (i = 0; i < ranks; i++)
			tables->slowness[i] = 1;
		for (i = 0; i < options->slow_count; i++)
			if (options->slow[i].rank < ranks)
				tables->slowness[options->slow[i].rank] = options->slow[i].factor;
		model.slowness = tables->slowness;
	}
	model.noisy = tables->noisy = table_of(&options->noisy, ranks);
	model.bad_links = tables->bad_links = table_of(&options->bad_links, ranks);
	if (options->clusters > 1)
		add_clusters(options, ranks, tables, &model);
	sim_nodes_add(options, ranks, tables, &model);
	return model;
}

void sim_tables_free(struct sim_tables *tables)
{
	free(tables->slowness);
	free(tables->noisy);
	free(tables->bad_links);
	free(tables->area);
	sim_nodes_free(tables);
}

void sim_tables_call(const struct sim_options *options, const struct sim_tables *tables,
		     struct coll_call *call)
{
	call->cluster = tables->area;
	call->clusters = options->clusters;
	call->level = tables->levels.count ? tables->levels.level : NULL;
	call->levels = tables->levels.count;
}

/* ---- rows ------------------------------------------------------------------ */

struct progress {
	const char *name;
	u32 ranks, runs;
	u64 redundancy;
};

static bool show_progress(void *argument, u32 done)
{
	const struct progress *progress = argument;

	if (!isatty(STDERR_FILENO))
		return true;
	fprintf(stderr, "\r\033[K%s, %u ranks", progress->name, progress->ranks);
	if (progress->redundancy != COLL_UNSET)
		fprintf(stderr, ", T = %llu", (unsigned long long)progress->redundancy);
	fprintf(stderr, ": %u of %u runs", done, progress->runs);
	return true;
}

static void hide_progress(void)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
}

static int sim_ascending(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static void sim_summarize(struct sim_row *row, const struct sim_outcome *outcome)
{
	double sum = 0, squares = 0, quiet = 0;
	u32 i;

	for (i = 0; i < row->runs; i++) {
		row->time[i] = sim_seconds(outcome[i].finish);
		sum += row->time[i];
		quiet += sim_seconds(outcome[i].others);
	}
	row->mean = sum / row->runs;
	row->others = quiet / row->runs;
	for (i = 0; i < row->runs; i++)
		squares += (row->time[i] - row->mean) * (row->time[i] - row->mean);
	row->deviation = row->runs > 1 ? sqrt(squares / (row->runs - 1)) : 0;
	row->messages = outcome->messages;
	row->events = outcome->events;
	row->path = outcome->path;
	row->nic_sent = outcome->nic_sent;
	row->nic_received = outcome->nic_received;
	qsort(row->time, row->runs, sizeof(*row->time), sim_ascending);
}

/* The time without noise. */
static int find_ideal(struct sim *sim, const struct sim_options *options, struct sim_model model,
		      double *seconds)
{
	struct sim_outcome outcome;
	int error;

	memset(model.os, 0, sizeof(model.os));
	memset(&model.link, 0, sizeof(model.link));
	error = sim_run(sim, &model, 0, options->path, &outcome, NULL);
	*seconds = sim_seconds(outcome.finish);
	return error;
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

int sim_measure(struct sim *sim, const struct sim_options *options, const struct sim_model *model,
		const char *name, u64 seed, struct sim_row *row)
{
	struct sim_outcome *outcome = memory_grow(NULL, options->runs, sizeof(*outcome));
	struct progress progress = { name, row->ranks, options->runs,
				     row->tuning.redundancy };
	const bool noisy = options->os_noises || options->link_noise;
	int error = noisy ? find_ideal(sim, options, *model, &row->ideal) : 0;

	row->runs = options->runs;
	row->time = memory_grow(NULL, options->runs, sizeof(*row->time));
	row->cpu = cpu_seconds();
	if (!error)
		error = sim_repeat(sim, model, seed, options->runs,
				   options->threads, options->path, outcome, show_progress,
				   &progress);
	row->cpu = cpu_seconds() - row->cpu;
	if (!error)
		sim_summarize(row, outcome);
	if (!error && !noisy)
		row->ideal = row->mean;
	hide_progress();
	free(outcome);
	return error;
}

bool sim_explain(const char *name, u32 ranks, int error, const char *why)
{
	fprintf(stderr, "coll sim: %s, %u ranks: %s\n", name, ranks,
		*why		      ? why :
		error == -EOPNOTSUPP  ? "not on that path; --path any chooses one that can" :
		error == -EDEADLK     ? "deadlock: ranks wait forever" :
		error == -EBUSY	      ? "more circuits at once than ports or wavelengths" :
		error == -ENOTCONN    ? "a message has no circuit" :
		error == -EOVERFLOW   ? "longer than virtual time, which is 26 days, or 3 days for an op" :
					strerror(-error));
	return false;
}

/* One algorithm with one tuning. */
static bool run_one(const struct sim_options *options, u64 seed, struct sim_row *row)
{
	struct sim_job job = { row->choice->algo, call_of(options, row->ranks), row->tuning };
	u64 *blocks = emit_blocks(&job.call);
	struct sim_tables tables;
	struct sim_model model = sim_model_of(options, row->ranks, &tables);
	struct sim *sim = NULL;
	char why[200] = "";
	bool fine = true;
	int error;

	sim_tables_call(options, &tables, &job.call);
	error = sim_open(&job, &sim, why, sizeof(why));
	if (!error)
		error = sim_measure(sim, options, &model, row->choice->algo->name, seed, row);
	if (!error && options->prove)
		fine = sim_prove(&job.call, sim, &model, sim_seed(seed, 0));
	if (!error && fine && (options->timeline || options->critical_path))
		fine = sim_show_run(options, sim, &model, sim_seed(seed, 0));
	sim_close(sim);
	sim_tables_free(&tables);
	free(blocks);
	return error ? sim_explain(row->choice->algo->name, row->ranks, error, why) : fine;
}

/*
 * The best of all T as in paper 1: each T gets its own noise, and the least mean wins. The least
 * of many means is biased low, so the best T runs once more with other noise.
 */
static bool run_best(const struct sim_options *options, struct sim_row *row)
{
	struct sim_row best = { .mean = INFINITY };
	u32 most = log2_floor(row->ranks), t;
	bool fine = true;

	most += !most;
	row->scan = memory_grow(NULL, most, sizeof(*row->scan));
	for (t = 1; t <= most && fine; t++) {
		row->tuning.redundancy = t;
		row->time = NULL;
		fine = run_one(options, sim_seed(options->seed, t), row);
		row->scan[t - 1] = row->mean;
		if (fine && row->mean < best.mean) {
			free(best.time);
			best = *row;
		} else {
			free(row->time);
		}
	}
	row->tuning = best.tuning;
	row->time = NULL;
	fine = fine && run_one(options, sim_seed(options->seed, 0), row);
	best.again = row->mean;
	free(row->time);
	best.scan = row->scan;
	best.scanned = most;
	*row = best;
	return fine;
}

/* The row that others are compared with: the butterfly, else the first algorithm. */
static const struct sim_row *reference_of(const struct sim_row *row, u32 rows)
{
	u32 i;

	for (i = 0; i < rows; i++)
		if (!strcmp(row[i].choice->algo->name, "butterfly"))
			return &row[i];
	return row;
}

static void compare_rows(struct sim_row *row, u32 rows)
{
	const struct sim_row *reference = reference_of(row, rows);
	u32 i;

	for (i = 0; i < rows; i++)
		if (&row[i] != reference) {
			row[i].reference = reference;
			row[i].ratio = row[i].mean / reference->mean;
		}
}

static struct coll_noise_rate rate_of(const struct sim_noise *noise)
{
	const struct coll_noise_plan plan = { &noise->model, noise->table, noise->spans };
	const double spans = noise->model.arrival == COLL_NOISE_REPLAY ? noise->spans : 1;

	return (struct coll_noise_rate){ spans / (noise->model.period * 1e-9),
					 coll_noise_load(&plan) * 1e-9 / spans };
}

/* The model's noise as the choice of T uses it. */
static void add_noise(const struct sim_model *model, struct coll_machine *machine)
{
	u32 i;

	machine->noise_event = model->semantics == SIM_EVENT;
	for (i = 0; i < SIM_SOURCES_MAX && model->os[i].model.period; i++)
		machine->noise[i] = rate_of(&model->os[i]);
	if (model->link.model.period)
		machine->link_noise = rate_of(&model->link);
}

struct coll_machine sim_machine_of(const struct sim_options *options)
{
	const struct sim_costs *costs = &options->model.costs;
	struct coll_machine machine = {
		.alpha = costs->alpha + costs->send + costs->recv,
		.overhead = costs->send,
		.beta = costs->beta,
		.gamma = costs->gamma,
		.wan_alpha = options->wan.alpha,
		.wan_beta = options->wan.trunk,
		.congestion = options->wan.loss,
		.delta = options->delta,
	};

	add_noise(&options->model, &machine);
	sim_nodes_machine(options, &machine);
	return machine;
}

/* Those of them that are there, each once. Returns how many. */
static u32 ranks_there(const struct sim_some_ranks *some, u32 ranks, u32 there[SIM_NOISY_MAX])
{
	u32 count = 0, i, j;

	for (i = 0; i < some->count; i++) {
		for (j = 0; j < count && there[j] != some->rank[i]; j++)
			;
		if (j == count && some->rank[i] < ranks)
			there[count++] = some->rank[i];
	}
	return count;
}

/* Bad links of some ranks, likewise: two messages of an exchange are of and to each; one alone is known by name. */
static void add_bad_links(const struct sim_options *options, u32 ranks, struct coll_machine *m)
{
	u32 bad[SIM_NOISY_MAX], i;
	const u32 count = ranks_there(&options->bad_links, ranks, bad);

	if (!options->bad_links.count)
		return;
	if (count != 1) {
		m->link_noise.rate *= 2. * count < ranks ? 2. * count / ranks : 1;
		return;
	}
	if (!m->late.ranks) {
		m->late = (struct coll_late){ .ranks = ranks, .rank = { bad[0] } };
		for (i = 1; i < COLL_LATE_MAX; i++)
			m->late.rank[i] = COLL_NONE;
	} else if (m->late.rank[0] != bad[0] || m->late.rank[1] != COLL_NONE) {
		return;
	}
	if (options->model.semantics == SIM_OCCUPANCY && options->model.link.model.length == COLL_NOISE_FIXED) {
		m->link_noise.rate *= 2;	/* half of an event is over on average: topology/lateness.h */
		m->link_noise.duration /= 2;
	}
	m->late.links = m->link_noise;
	m->late.links_alone = true;
	m->late.peer = COLL_NONE;
	m->link_noise.rate *= 2. / ranks;
}

/* Noise of some ranks alone: as if all had it the less often, and the late ranks by name. */
static void add_late(const struct sim_options *options, u32 ranks, struct coll_machine *m)
{
	const struct coll_noise_rate noise = m->noise[0];
	u32 noisy[SIM_NOISY_MAX], count = ranks_there(&options->noisy, ranks, noisy), i;

	if (!count || count > COLL_LATE_MAX)
		return;
	m->late = (struct coll_late){ .ranks = ranks, .stops = noise, .alone = true,
				      .behind = noise.duration / 2 };
	if (!m->noise_event)	/* one may be on when the call begins */
		m->late.part = noise.rate * noise.duration;
	for (i = 0; i < COLL_LATE_MAX; i++)
		m->late.rank[i] = i < count ? noisy[i] : COLL_NONE;
	for (i = 0; i < COLL_NOISES_MAX; i++)
		m->noise[i].rate *= (double)count / ranks;
}

static void sim_choose(struct sim_options *options, u32 ranks, struct sim_choice *choice)
{
	struct coll_machine machine = sim_machine_of(options);
	struct coll_call call = call_of(options, ranks);
	struct sim_tables tables;

	add_late(options, ranks, &machine);
	add_bad_links(options, ranks, &machine);
	sim_model_of(options, ranks, &tables);
	sim_tables_call(options, &tables, &call);
	*choice = (struct sim_choice){ .tuning = COLL_TUNING_UNSET };
	choice->algo = coll_algo_choose(&call, &choice->tuning, &machine);
	coll_tuning_choose(choice->algo, &call, &machine, &choice->tuning);
	sim_tables_free(&tables);
}

static bool run_all(struct sim_options *options, struct sim_row *row)
{
	const u32 each = options->choices ? options->choices : 1;
	bool fine = true;
	u32 i, k;

	for (i = 0; i < options->rank_counts && fine; i++) {
		for (k = 0; k < each && fine; k++, row++) {
			row->ranks = options->ranks[i];
			row->choice = &options->choice[k];
			if (!options->choices) {
				sim_choose(options, row->ranks, &options->automatic[i]);
				row->choice = &options->automatic[i];
			}
			row->tuning = row->choice->tuning;
			fine = row->choice->best ? run_best(options, row) :
						   run_one(options, options->seed, row);
		}
		if (fine)
			compare_rows(row - each, each);
	}
	return fine;
}

static bool noise_met_an_op(const struct sim_row *row, u32 rows)
{
	u32 i;

	for (i = 0; i < rows; i++)
		if (row[i].mean > row[i].ideal * (1 + 1e-9))
			return true;
	return false;
}

/* By `event`, the default, an op takes noise that begins in it: ops take no time unless a cost says so. */
static void tell_of_unmet_noise(const struct sim_options *options, const struct sim_row *row, u32 rows)
{
	if (options->os_noises && options->model.semantics == SIM_EVENT && !noise_met_an_op(row, rows))
		fprintf(stderr, "coll sim: --os-noise has met no op: by --noise-semantics event it meets ops while "
			"they take CPU time (--overhead, --gamma); by occupancy it delays a rank whatever it does\n");
}

static int sim_collective(int argc, char **argv)
{
	struct sim_options options;
	struct sim_row *row;
	u32 rows, i;
	bool fine;

	if (!sim_options_read(argc, argv, &options))
		return COMMAND_USAGE;
	if (!whole_possible("sim", options.plot) || !whole_possible("sim", options.timeline)) {
		sim_options_free(&options);
		return COMMAND_ERROR;
	}
	rows = options.rank_counts * (options.choices ? options.choices : 1);
	row = memory_grow(NULL, rows, sizeof(*row));
	memset(row, 0, rows * sizeof(*row));
	fine = run_all(&options, row);
	if (fine)
		sim_report(&options, row, rows, stdout);
	if (fine)
		tell_of_unmet_noise(&options, row, rows);
	fine = fine && (!options.plot || sim_plot(&options, row));
	for (i = 0; i < rows; i++) {
		free(row[i].time);
		free(row[i].scan);
	}
	free(row);
	sim_options_free(&options);
	return fine ? COMMAND_OK : COMMAND_ERROR;
}

int cmd_sim(int argc, char **argv)
{
	const struct command *other;

	for (other = others; other->name && argc > 1; other++)
		if (!strcmp(argv[1], other->name))
			return other->main(argc - 1, argv + 1);
	return sim_collective(argc, argv);
}
