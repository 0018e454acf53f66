// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* coll sim replay: a whole program in virtual time, from the traces of its ranks or from GOAL. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/goal.h"
#include "sim/replay.h"
#include "sim/tape.h"
#include "tools/common/arena.h"
#include "tools/common/command.h"
#include "tools/common/whole.h"
#include "sim.h"

enum { RANKS_SHOWN = 16 };	/* in a table */

/* What is replayed. */
struct program {
	struct coll_schedule **schedule;
	u32 ranks;
	double unit;		/* seconds per unit of computing */
};

static bool sim_replay_complain(const char *why)
{
	fprintf(stderr, "coll sim replay: %s\n", why);
	return false;
}

/* ---- files ------------------------------------------------------------------------ */

static char *read_file(const char *name, size_t *bytes)
{
	FILE *from = fopen(name, "re");
	size_t capacity = 1 << 16, got;
	char *text = from ? memory_grow(NULL, 1, capacity) : NULL;

	*bytes = 0;
	while (from && (got = fread(text + *bytes, 1, capacity - *bytes, from))) {
		*bytes += got;
		if (*bytes == capacity)
			text = memory_grow(text, 1, capacity *= 2);
	}
	if (!from || ferror(from)) {
		fprintf(stderr, "coll sim replay: %s: %s\n", name, strerror(errno));
		free(text);
		text = NULL;
	}
	if (from)
		fclose(from);
	return text;
}

static bool ends_with(const char *name, const char *end)
{
	const size_t length = strlen(name);

	return length >= strlen(end) && !strcmp(name + length - strlen(end), end);
}

static bool add_trace(struct sim_replay *replay, const struct sim_options *options,
		      const char *name)
{
	char why[400] = "";
	size_t bytes;
	char *text = read_file(name, &bytes);
	int error;

	if (!text)
		return false;
	error = (options->alike ? replay_add_alike : replay_add)(replay, name, text, bytes, why,
								 sizeof(why));
	free(text);
	return error ? sim_replay_complain(why) : true;
}

/* A prefix stands for PREFIX.0, PREFIX.1, ...; the first trace has their number. */
static bool add_prefix(struct sim_replay *replay, const struct sim_options *options,
		       const char *prefix)
{
	char name[4096];
	u32 i = 0;

	do {
		snprintf(name, sizeof(name), "%s.%u", prefix, i);
		if (!add_trace(replay, options, name))
			return false;
	} while (++i < replay_ranks(replay) && !options->alike);
	return true;
}

static bool add_traces(struct sim_replay *replay, const struct sim_options *options)
{
	u32 i;

	if (options->files == 1 && access(options->file[0], F_OK))
		return add_prefix(replay, options, options->file[0]);
	for (i = 0; i < options->files; i++)
		if (!add_trace(replay, options, options->file[i]))
			return false;
	return true;
}

/* ---- schedules ---------------------------------------------------------------------- */

/* The algorithm that the user named, else the library's choice; NULL: none fits. */
static const struct coll_algo *sim_replay_choose(void *argument, const struct coll_call *call,
						 struct coll_tuning *tuning)
{
	const struct sim_options *options = argument;
	const struct sim_choice *chosen = &options->chosen[call->collective];
	const struct coll_machine machine = sim_machine_of(options);
	const struct coll_algo *algo = chosen->algo;

	if (algo)
		*tuning = chosen->tuning;
	if (options->delta > 0) {
		tuning->ports = options->ports;
		if (options->wavelengths)
			tuning->wavelengths = options->wavelengths;
	}
	if (!algo) {
		algo = coll_algo_choose(call, tuning, &machine);
		if (algo)
			coll_tuning_choose(algo, call, &machine, tuning);
	}
	return algo;
}

static bool from_traces(const struct sim_options *options, struct program *program)
{
	struct replay_how how = { .choose = sim_replay_choose, .argument = (void *)options,
				  .circuits = options->delta > 0 };
	struct sim_tables tables = { 0 };
	struct sim_replay *replay;
	char why[400] = "";
	bool fine;

	if (replay_new(&replay))
		return sim_replay_complain(strerror(ENOMEM));
	fine = add_traces(replay, options);
	if (fine) {
		program->ranks = replay_ranks(replay);
		program->unit = options->cpu * 1e-9;
		fine = sim_options_fit(options, program->ranks);
	}
	if (fine) {
		sim_model_of(options, program->ranks, &tables);
		how.cluster = tables.area;
		if (replay_schedules(replay, &how, &program->schedule, why, sizeof(why)))
			fine = sim_replay_complain(why);
	}
	sim_tables_free(&tables);
	replay_free(replay);
	return fine;
}

static bool from_goal(const struct sim_options *options, struct program *program)
{
	char why[400] = "";
	size_t bytes;
	char *text;
	u32 i;
	int error;

	if (options->files > 1 || options->alike || options->delta > 0)
		return sim_replay_complain(
			"a GOAL program is one file, and has no collectives: no --alike, "
			"no --delta");
	for (i = 0; i < COLL_COLLECTIVES; i++)
		if (options->chosen[i].algo)
			return sim_replay_complain("a GOAL program has no collectives to choose an "
						   "algorithm for");
	text = read_file(options->file[0], &bytes);
	if (!text)
		return false;
	error = goal_read(options->file[0], text, bytes, &program->schedule, &program->ranks, why,
			  sizeof(why));
	program->unit = options->cpu * options->unit;
	free(text);
	return error ? sim_replay_complain(why) : sim_options_fit(options, program->ranks);
}

/* ---- report ----------------------------------------------------------------------- */

/* Seconds of a critical path. */
struct path {
	double computing, working, messages, late, all;
};

static bool find_path(const struct program *program, const struct sim_log *log,
		      const struct sim_outcome *outcome, struct path *path)
{
	struct sim_stage *stage;
	u32 count, i;

	*path = (struct path){ .all = sim_seconds(outcome->finish) };
	if (sim_log_path(log, &stage, &count))
		return sim_replay_complain(strerror(ENOMEM));
	for (i = 0; i < count; i++) {
		const struct coll_schedule *s = program->schedule[stage[i].rank];
		const double late = sim_seconds(stage[i].late);
		const double length = sim_seconds(stage[i].end - stage[i].begin) - late;

		path->late += late;
		if (stage[i].from != stage[i].rank)
			path->messages += length;
		else if (tape_computes(&coll_ops(s)[stage[i].op]))
			path->computing += length;
		else
			path->working += length;
	}
	free(stage);
	return true;
}

static double sim_replay_percent(double part, double all)
{
	return all > 0 ? 100 * part / all : 0;
}

static double sim_replay_waited(const struct sim_share *share)
{
	return sim_seconds(share->done - share->computing - share->working - share->late);
}

static void print_share(const char *name, const struct sim_share *share)
{
	char text[5][24];

	printf("%9s %11s %11s %11s %11s %11s\n", name,
	       sim_duration(sim_seconds(share->done), text[0], 24),
	       sim_duration(sim_seconds(share->computing), text[1], 24),
	       sim_duration(sim_seconds(share->working), text[2], 24),
	       sim_duration(sim_seconds(share->late), text[3], 24),
	       sim_duration(sim_replay_waited(share), text[4], 24));
}

static void print_table(const struct program *program, const struct sim_row *row,
			const struct sim_log *log, const struct path *path)
{
	char text[6][24], name[16];
	u32 i;

	printf("%u ranks, %u runs: mean %s, ideal %s, effect %.4g, median %s, p99 %s, max %s\n",
	       program->ranks, row->runs, sim_duration(row->mean, text[0], 24),
	       sim_duration(row->ideal, text[1], 24), row->mean / row->ideal,
	       sim_duration(sim_row_percentile(row, 50), text[2], 24),
	       sim_duration(sim_row_percentile(row, 99), text[3], 24),
	       sim_duration(sim_row_percentile(row, 100), text[4], 24));
	printf("\nthe first run\n%9s %11s %11s %11s %11s %11s\n", "rank", "done at", "computing",
	       "other CPU", "noise", "waiting");
	for (i = 0; i < program->ranks && i < RANKS_SHOWN; i++) {
		const struct sim_share share = sim_log_share(log, i);

		snprintf(name, sizeof(name), "%u", i);
		print_share(name, &share);
	}
	if (i < program->ranks)
		printf("%9s %u more: --json\n", "...", program->ranks - i);
	printf("\ncritical path: computing %.1f %%, other CPU %.1f %%, messages %.1f %%, "
	       "noise and congestion %.1f %%\n",
	       sim_replay_percent(path->computing, path->all),
	       sim_replay_percent(path->working, path->all),
	       sim_replay_percent(path->messages, path->all),
	       sim_replay_percent(path->late, path->all));
}

static void print_json(const struct sim_options *options, const struct program *program,
		       const struct sim_row *row, const struct sim_log *log,
		       const struct path *path)
{
	u32 i;

	printf("{\"ranks\": %u, \"runs\": %u, \"seed\": %llu", program->ranks, row->runs,
	       (unsigned long long)options->seed);
	sim_json_times(row, stdout);
	printf(", \"messages\": %llu,\n", (unsigned long long)row->messages);
	sim_json_model(options, stdout);
	printf(" \"critical_path\": {\"seconds\": %.12g", path->all);
	sim_json_number(stdout, "computing_s", path->computing);
	sim_json_number(stdout, "working_s", path->working);
	sim_json_number(stdout, "messages_s", path->messages);
	sim_json_number(stdout, "late_s", path->late);
	printf("},\n \"by_rank\": [\n");
	for (i = 0; i < program->ranks; i++) {
		const struct sim_share share = sim_log_share(log, i);

		printf("  {\"rank\": %u", i);
		sim_json_number(stdout, "done_s", sim_seconds(share.done));
		sim_json_number(stdout, "computing_s", sim_seconds(share.computing));
		sim_json_number(stdout, "working_s", sim_seconds(share.working));
		sim_json_number(stdout, "late_s", sim_seconds(share.late));
		sim_json_number(stdout, "waiting_s", sim_replay_waited(&share));
		printf("}%s\n", i + 1 < program->ranks ? "," : "");
	}
	printf(" ]");
	for (i = 0; options->all_runs && i < row->runs; i++)
		printf("%s%.12g", i ? ", " : ",\n \"times_s\": [", row->time[i]);
	printf("%s}\n", options->all_runs ? "]" : "");
}

/* ---- the command -------------------------------------------------------------------------- */

static bool sim_replay_show(const struct sim_options *options, const struct program *program,
			    struct sim *sim, const struct sim_model *model,
			    const struct sim_row *row)
{
	const u64 seed = sim_seed(options->seed, 0);
	struct sim_outcome outcome;
	struct sim_log *log;
	struct path path;
	int error = sim_run_logged(sim, model, seed, &outcome, &log);
	bool fine;

	if (error)
		return sim_replay_complain(strerror(-error));
	fine = find_path(program, log, &outcome, &path);
	if (fine && options->format == SIM_JSON)
		print_json(options, program, row, log, &path);
	else if (fine)
		print_table(program, row, log, &path);
	sim_log_free(log);
	if (fine && (options->timeline || options->critical_path))
		fine = sim_show_run(options, sim, model, seed);
	return fine;
}

static bool sim_replay_run(const struct sim_options *options, const struct program *program)
{
	const struct sim_circuits circuits = { .setup = options->delta, .ports = options->ports,
					       .wavelengths = options->wavelengths };
	struct sim_row row = { .ranks = program->ranks };
	struct sim_tables tables;
	struct sim_model model = sim_model_of(options, program->ranks, &tables);
	struct sim *sim = NULL;
	char why[200] = "";
	bool fine = false;
	int error;

	model.costs.user = program->unit;
	model.circuits = options->delta > 0 ? &circuits : NULL;
	row.tuning = COLL_TUNING_UNSET;
	error = sim_open_schedules((const struct coll_schedule *const *)program->schedule,
				   program->ranks, &sim, why, sizeof(why));
	if (!error)
		error = sim_measure(sim, options, &model, "replay", options->seed, &row);
	if (!error)
		fine = sim_replay_show(options, program, sim, &model, &row);
	else
		sim_explain("replay", program->ranks, error, why);
	sim_close(sim);
	sim_tables_free(&tables);
	free(row.time);
	return fine;
}

int cmd_sim_replay(int argc, char **argv)
{
	struct program program = { 0 };
	struct sim_options options;
	bool fine;
	u32 i;

	if (!sim_options_read(argc, argv, &options))
		return COMMAND_USAGE;
	fine = whole_possible("sim replay", options.timeline) &&
	       (ends_with(options.file[0], ".goal") ? from_goal(&options, &program) :
						      from_traces(&options, &program));
	fine = fine && sim_replay_run(&options, &program);
	for (i = 0; program.schedule && i < program.ranks; i++)
		free(program.schedule[i]);
	free(program.schedule);
	sim_options_free(&options);
	return fine ? COMMAND_OK : COMMAND_ERROR;
}
