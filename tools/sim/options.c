// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The options of coll sim. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algo/tuning.h"
#include "tools/common/arguments.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "sim.h"

/* ---- lists ------------------------------------------------------------------ */

static bool add_ranks(struct sim_options *options, u64 ranks)
{
	if (!ranks || ranks > COLL_RANKS_MAX || options->rank_counts == SIM_RANKS_LIST_MAX)
		return false;
	options->ranks[options->rank_counts++] = ranks;
	return true;
}

/* "8", "4..131072" and such, with commas between. */
static bool read_ranks(const struct option_table *table, const struct option_entry *option,
		       void *to, const char *text)
{
	static const char valid[] = "N, A..B (doubling), commas between";
	struct sim_options *options = to;
	const char *at = text;
	char *rest;
	u64 first, last;

	options->rank_counts = 0;
	for (;;) {
		if (!isdigit((unsigned char)*at))
			return option_refuse(table, option, text, valid);
		first = last = strtoull(at, &rest, 10);
		if (rest[0] == '.' && rest[1] == '.' && isdigit((unsigned char)rest[2]))
			last = strtoull(rest + 2, &rest, 10);
		if (last < first || (*rest && *rest != ','))
			return option_refuse(table, option, text, valid);
		for (; first <= last; first *= 2)
			if (!add_ranks(options, first))
				return option_refuse(table, option, text,
						     "up to 64 numbers from 1 to 16777216");
		if (!*rest)
			return true;
		at = rest + 1;
	}
}

static bool no_algorithm(const struct sim_options *options, const char *name, size_t length)
{
	const struct coll_algo *const *algo;

	fprintf(stderr, "coll sim: %s has no algorithm '%.*s'; valid:",
		coll_collective_names[options->collective], (int)length, name);
	for (algo = coll_algos; *algo; algo++)
		if ((int)(*algo)->collective == options->collective)
			fprintf(stderr, " %s", (*algo)->name);
	fprintf(stderr, "\n");
	return false;
}

static bool add_algorithm(struct sim_options *options, const char *name, size_t length)
{
	const struct coll_algo *const *algo;

	if (options->choices == SIM_ALGOS_MAX) {
		fprintf(stderr, "coll sim: more than %d algorithms\n", SIM_ALGOS_MAX);
		return false;
	}
	for (algo = coll_algos; *algo; algo++)
		if ((int)(*algo)->collective == options->collective &&
		    strlen((*algo)->name) == length && !memcmp((*algo)->name, name, length)) {
			options->choice[options->choices++] =
				(struct sim_choice){ *algo, COLL_TUNING_UNSET, false };
			return true;
		}
	return no_algorithm(options, name, length);
}

static bool add_tuning(struct sim_choice *choice, const char *text)
{
	char why[160];

	if (!strcmp(text, "T=best") && choice->algo->options &&
	    strchr(choice->algo->options, 'T')) {
		choice->best = true;
		return true;
	}
	if (!coll_tuning_parse(choice->algo, text, &choice->tuning, why, sizeof(why)))
		return true;
	fprintf(stderr, "coll sim: %s\n", why);
	return false;
}

/* "allreduce=butterfly-redundant:T=2" */
static bool read_chosen(const struct option_table *table, const struct option_entry *option,
			void *to, const char *text)
{
	struct sim_options *options = to;
	const char *equals = strchrnul(text, '='), *colon = strchrnul(equals, ':');
	char name[32];

	if (!*equals)
		return option_refuse(table, option, text,
				     "COLLECTIVE=ALGORITHM[:KEY=VALUE,...]");
	snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
	if (!argument_collective("sim replay", name, &options->collective))
		return false;
	options->choices = 0;
	if (!add_algorithm(options, equals + 1, colon - equals - 1) ||
	    (*colon && !add_tuning(&options->choice[0], colon + 1)))
		return false;
	if (options->choice[0].best)
		return option_refuse(table, option, text,
				     "T=best is for one collective; here T is a number");
	options->chosen[options->collective] = options->choice[0];
	options->choices = 0;
	return true;
}

/* "butterfly,ring:segment=64K,butterfly-redundant:T=best" */
static bool read_algorithms(const char *text, struct sim_options *options)
{
	char *copy = strdup(text), *save, *piece, *colon;
	bool fine = copy;

	options->choices = 0;
	for (piece = strtok_r(copy, ",", &save); piece && fine;
	     piece = strtok_r(NULL, ",", &save)) {
		colon = strchrnul(piece, ':');
		if (!*colon && strchr(piece, '=') && options->choices) {
			fine = add_tuning(&options->choice[options->choices - 1], piece);
			continue;
		}
		fine = add_algorithm(options, piece, colon - piece);
		if (fine && *colon)
			fine = add_tuning(&options->choice[options->choices - 1], colon + 1);
	}
	free(copy);
	return fine;
}

/* ---- values ----------------------------------------------------------------- */

/* The plan's tables live as long as the options. */
static bool read_noise(const char *what, const char *text, struct coll_noise_said *said,
		       struct sim_noise *noise)
{
	struct coll_text_error error;

	if (coll_noise_parse(text, 0, said, &error)) {
		fprintf(stderr, "coll sim: %s '%s': %s\n", what, text, error.reason);
		return false;
	}
	*noise = (struct sim_noise){ said->model, said->table, said->spans };
	return true;
}

static bool read_os_noise(const struct option_table *table, const struct option_entry *option,
			  void *to, const char *text)
{
	struct sim_options *options = to;
	const u32 at = options->os_noises;

	if (at == SIM_SOURCES_MAX)
		return option_refuse(table, option, text, "at most 4 times");
	options->os_noise[at] = text;
	return read_noise("--os-noise", text, &options->said[at], &options->model.os[at]) &&
	       ++options->os_noises;
}

static bool read_link_noise(const struct option_table *table, const struct option_entry *option,
			    void *to, const char *text)
{
	struct sim_options *options = to;
	struct coll_noise_said *said = &options->said[SIM_SOURCES_MAX];

	(void)table;
	(void)option;
	options->link_noise = text;
	coll_noise_said_free(said);
	return read_noise("--link-noise", text, said, &options->model.link);
}

/* "3:1.5,17:2" */
static bool read_slow(const struct option_table *table, const struct option_entry *option,
		      void *to, const char *text)
{
	struct sim_options *options = to;
	const char *at = text;
	char *rest;

	for (options->slow_count = 0; options->slow_count < SIM_SLOW_MAX; at = rest + 1) {
		u64 rank = strtoull(at, &rest, 10);
		double factor = *rest == ':' && isdigit((unsigned char)*at) ?
					strtod(rest + 1, &rest) :
					0;

		if (!(factor > 0 && factor <= 1e6) || rank >= COLL_RANKS_MAX ||
		    (*rest && *rest != ','))
			break;
		options->slow[options->slow_count].rank = rank;
		options->slow[options->slow_count++].factor = factor;
		if (!*rest)
			return true;
	}
	return option_refuse(table, option, text, "RANK:FACTOR, up to 16 with commas between");
}

/* "3,17" */
static bool read_ranks_of(struct sim_some_ranks *some, const char *text)
{
	const char *at = text;
	char *rest;

	for (some->count = 0; some->count < SIM_NOISY_MAX; at = rest + 1) {
		const u64 rank = strtoull(at, &rest, 10);

		if (!isdigit((unsigned char)*at) || rank >= COLL_RANKS_MAX || (*rest && *rest != ','))
			break;
		some->rank[some->count++] = rank;
		if (!*rest)
			return true;
	}
	return false;
}

static bool read_noisy(const struct option_table *table, const struct option_entry *option,
		       void *to, const char *text)
{
	struct sim_options *options = to;
	struct sim_some_ranks *some = strcmp(option->name, "noisy") ? &options->bad_links : &options->noisy;

	return read_ranks_of(some, text) ||
	       option_refuse(table, option, text, "up to 16 ranks with commas between");
}

/* ---- tables ----------------------------------------------------------------- */

#define SIM_TIME(field) OPTION_SECONDS(struct sim_options, field, 0, 1e9 - 1)

static const struct option_entry sim_entries[] = {
	{ "algo", 0, "A[:K=V,...],...", "algorithms; T=best: the T with the least mean time",
	  OPTION_TEXT(struct sim_options, algorithms), .otherwise = "the library's choice" },
	{ "ranks", 0, "N,N,A..B,...", "rank counts; A..B doubles from A to B",
	  .read = read_ranks, .preset = "64" },
	{ "size", 0, "BYTES", "bytes of the vector, or of each rank's block",
	  OPTION_BYTES(struct sim_options, size, 0, COLL_BYTES_MAX), .preset = "8" },
	{ "bytes", 0, "BYTES", "the same as --size",
	  OPTION_BYTES(struct sim_options, size, 0, COLL_BYTES_MAX) },
	{ "root", 0, "R", "root of the collective",
	  OPTION_NUMBER(struct sim_options, root, 0, COLL_RANKS_MAX - 1), .preset = "0" },
	{ NULL },
};

static const struct option_entry level_entries[] = {
	{ "levels", 0, "RUNS", "ranks that share a node and its NIC: flat, 4+4, 64+ (nodes of 64), or "
	  "64+/16+ (domains of 16 in them)",
	  OPTION_TEXT(struct sim_options, levels), .preset = "flat",
	  .group = "levels: links inside a node or a domain, as the library's option levels" },
	{ "node-alpha", 0, "T", "latency of a message inside a node",
	  SIM_TIME(inside[COLL_LEVEL_NODE].alpha), .otherwise = "2us less both overheads, or --alpha if that is less" },
	{ "node-beta", 0, "T", "transport of a byte inside a node",
	  SIM_TIME(inside[COLL_LEVEL_NODE].beta), .otherwise = "0.1ns, or --beta if that is less" },
	{ "node-overhead", 0, "T", "CPU time of each end of such a message",
	  SIM_TIME(inside[COLL_LEVEL_NODE].overhead),
	  .otherwise = "0.5us, or --send-overhead if that is less" },
	{ "domain-alpha", 0, "T", "latency of a message inside a domain",
	  SIM_TIME(inside[COLL_LEVEL_DOMAIN].alpha), .otherwise = "1.5us less both overheads, or --alpha if that is less" },
	{ "domain-beta", 0, "T", "transport of a byte inside a domain",
	  SIM_TIME(inside[COLL_LEVEL_DOMAIN].beta), .otherwise = "0.08ns, or --beta if that is less" },
	{ "domain-overhead", 0, "T", "CPU time of each end of such a message",
	  SIM_TIME(inside[COLL_LEVEL_DOMAIN].overhead),
	  .otherwise = "0.4us, or --send-overhead if that is less" },
	{ NULL },
};

static const struct option_entry replay_entries[] = {
	{ "alike", 0, NULL, "one rank's trace stands for all; it has collectives only",
	  OPTION_FLAG(struct sim_options, alike) },
	{ "algo", 0, "COLLECTIVE=A[:K=V,...]", "algorithm of these calls; may be repeated",
	  .read = read_chosen, .otherwise = "the library's choice" },
	{ "cpu", 0, "X", "factor on the time of computing",
	  OPTION_REAL(struct sim_options, cpu, 1e-6, 1e6), .preset = "1" },
	{ "unit", 0, "T", "GOAL: time of a calc of 1",
	  OPTION_SECONDS(struct sim_options, unit, 1e-15, 1e9 - 1), .preset = "1ns" },
	{ "delta", 0, "T", "reconfiguration delay of a circuit", SIM_TIME(delta),
	  .otherwise = "there are no circuits",
	  .group = "circuits: collectives request theirs ahead, each other message its own" },
	{ "ports", 0, "K", "ports of a rank", OPTION_NUMBER(struct sim_options, ports, 1,
							    COLL_PORTS_MAX), .preset = "1" },
	{ "wavelengths", 0, "W", "circuits at once in all; 0: any number",
	  OPTION_NUMBER(struct sim_options, wavelengths, 0, 1 << 24), .preset = "0" },
	{ NULL },
};

static const struct option_entry cost_entries[] = {
	{ "alpha", 0, "T", "latency of a message", SIM_TIME(model.costs.alpha), .preset = "1us",
	  .group = "costs: durations such as 1us, 25ns, 1e-7 (seconds)" },
	{ "beta", 0, "T", "transport of a byte", SIM_TIME(model.costs.beta), .preset = "1ns" },
	{ "gamma", 0, "T", "reduction of a byte", SIM_TIME(model.costs.gamma), .preset = "0.1ns" },
	{ "copy", 0, "T", "copy of a byte", SIM_TIME(model.costs.copy), .preset = "0" },
	{ "overhead", 0, "T", "CPU time to send, and to receive, a message",
	  SIM_TIME(overhead), .preset = "0" },
	{ "send-overhead", 0, "T", "CPU time to send a message", SIM_TIME(model.costs.send),
	  .otherwise = "--overhead" },
	{ "recv-overhead", 0, "T", "CPU time to receive a message", SIM_TIME(model.costs.recv),
	  .otherwise = "--overhead" },
	{ "redundant-overhead", 0, "T", "CPU time of a redundant send",
	  SIM_TIME(model.costs.redundant), .otherwise = "--send-overhead" },
	{ "gap", 0, "T", "NIC time of a message", SIM_TIME(model.costs.gap), .preset = "0" },
	{ "nic", 0, "T", "NIC time of a byte", SIM_TIME(model.costs.nic),
	  .otherwise = "0; with --levels or goal that of --beta" },
	{ "eager", 0, "BYTES", "longer messages wait for their receive",
	  OPTION_BYTES(struct sim_options, model.costs.eager, 0, COLL_BYTES_MAX),
	  .otherwise = "none wait" },
	{ "message-semantics", 0, "S", "rules of messages that meet, and of those that wait: nic, or "
	  "goal (LogGOPSim's)", OPTION_WORD(struct sim_options, model.messages,
					    sim_message_semantics_names),
	  .count = SIM_MESSAGE_SEMANTICS, .otherwise = "nic" },
	{ "byte-overhead", 0, "T", "goal: CPU time of each byte that is sent, or received",
	  SIM_TIME(model.costs.byte_overhead), .preset = "0" },
	{ "slow", 0, "R:X,...", "rank R's CPU is X times as slow", .read = read_slow },
	{ "clusters", 0, "N", "clusters of sizes as equal as possible, joined by a WAN",
	  OPTION_NUMBER(struct sim_options, clusters, 1, 64), .preset = "1" },
	{ "wan-alpha", 0, "T", "latency of a message between clusters", SIM_TIME(wan.alpha),
	  .preset = "10ms" },
	{ "wan-beta", 0, "T", "transport of a byte between clusters", SIM_TIME(wan.beta),
	  .otherwise = "--beta" },
	{ "wan-trunk", 0, "T", "time of a byte on the path that the links share: 0.8ns; 0: no limit",
	  SIM_TIME(wan.trunk), .preset = "0" },
	{ "wan-loss", 0, "X", "share of the rate that is lost per capacity of excess load",
	  OPTION_REAL(struct sim_options, wan.loss, 0, 100), .otherwise = "0.5" },
	{ NULL },
};

static const char *const sim_paths[] = { "any", "levels", "events", NULL };

static const struct option_entry run_entries[] = {
	{ "os-noise", 0, "NOISE", "noise of every rank; up to 4 times", .read = read_os_noise,
	  .group = "noise, as in collnoise(1): periodic:period=10ms,duration=250us,phase=random | "
		   "replay:FILE |\n"
		   "  poisson:rate=100,duration=50us,length=exponential" },
	{ "noisy", 0, "R,...", "the ranks that have the noise of --os-noise", .read = read_noisy,
	  .otherwise = "all" },
	{ "link-noise", 0, "NOISE", "noise of every message", .read = read_link_noise },
	{ "bad-links", 0, "R,...", "the ranks whose messages have the noise of --link-noise",
	  .read = read_noisy, .otherwise = "all" },
	{ "noise-semantics", 0, "S", "what noise does to a running op",
	  OPTION_WORD(struct sim_options, model.semantics, sim_semantics_names),
	  .count = SIM_SEMANTICS, .otherwise = "event" },
	{ "runs", 0, "N", "runs with different noise",
	  OPTION_NUMBER(struct sim_options, runs, 1, 1000000),
	  .otherwise = "30; 1 without noise", .group = "execution" },
	{ "seed", 0, "N", "seed of what is random",
	  OPTION_NUMBER(struct sim_options, seed, 0, ~0ull >> 1), .preset = "1" },
	{ "threads", 0, "N", "threads", OPTION_NUMBER(struct sim_options, threads, 1, 256),
	  .otherwise = "one a core" },
	{ "path", 0, "PATH", "method of simulation", OPTION_WORD(struct sim_options, path, sim_paths),
	  .preset = "any" },
	{ "json", 0, NULL, "print JSON", OPTION_CHOICE(struct sim_options, format, SIM_JSON),
	  .one_of = OPTION_OF_FORMATS, .group = "output" },
	{ "all-runs", 0, NULL, "JSON: also the time of each run",
	  OPTION_FLAG(struct sim_options, all_runs) },
	{ "timeline", 0, "FILE", "write what every op of one run did, for chrome://tracing",
	  OPTION_TEXT(struct sim_options, timeline) },
	{ "critical-path", 0, NULL, "print what the last rank of that run waited for",
	  OPTION_FLAG(struct sim_options, critical_path) },
	{ NULL },
};

static const struct option_entry report_entries[] = {
	{ "csv", 0, NULL, "print CSV", OPTION_CHOICE(struct sim_options, format, SIM_CSV),
	  .one_of = OPTION_OF_FORMATS },
	{ "histogram", 0, "N", "JSON: also a histogram of the runs' times with N bins",
	  OPTION_NUMBER(struct sim_options, bins, 1, 1000) },
	{ "plot", 0, "FILE.svg", "also a picture: means over the ranks, or for one number of ranks "
	  "the distribution of the runs", OPTION_SVG(struct sim_options, plot) },
	{ "prove", 0, NULL, "one run with real bytes: the results must be right",
	  OPTION_FLAG(struct sim_options, prove) },
	{ "speed", 0, NULL, "also the simulator's CPU time, messages and events a second",
	  OPTION_FLAG(struct sim_options, speed) },
	{ NULL },
};

static const char *const usage[] = {
	"usage: coll sim COLLECTIVE [OPTION ...]",
	"       coll sim replay FILE ... [OPTION ...]",
	"       coll sim circuit [OPTION ...]",
	"       coll sim flit [OPTION ...]",
	"",
	"Runs the schedules of a collective in virtual time. replay: of a whole program;",
	"circuit: over circuits; flit: in a network on a chip. Each has its --help.",
	NULL,
};

static const char *const replay_usage[] = {
	"usage: coll sim replay FILE ... [OPTION ...]",
	"",
	"Runs a program in virtual time. FILE: traces of all its ranks (coll-trace(5)), the prefix",
	"that COLL_MPI_TRACE was, or one GOAL program.",
	NULL,
};

static const char *const closing[] = {
	"The library's choice takes a cost of 0 as unknown (alpha: 20us, overhead: a fifth of it, beta: 0.25ns,",
	"gamma: 0.1ns), and between clusters --beta for --wan-beta.",
	"coll verify --list names collectives, algorithms and their options.",
	"Exit code: 0 ok, 1 it cannot be simulated, 2 wrong usage.",
	NULL,
};

const struct option_table cmd_sim_options = {
	.command = "sim",
	.usage = usage,
	.closing = closing,
	.list = { sim_entries, cost_entries, level_entries, run_entries, report_entries },
	.arguments = 1,
	.first = coll_collective_names,
	.firsts = COLL_COLLECTIVES,
};

const struct option_table cmd_sim_replay_options = {
	.command = "sim replay",
	.usage = replay_usage,
	.closing = closing,
	.list = { replay_entries, cost_entries, run_entries },
	.arguments = OPTIONS_ANY,
};

/* ---- the command line ----------------------------------------------------------- */

static bool options_settle(struct sim_options *options)
{
	struct sim_costs *costs = &options->model.costs;
	const char *refusal;

	if (costs->send < 0)
		costs->send = options->overhead;
	if (costs->recv < 0)
		costs->recv = options->overhead;
	if (costs->redundant < 0)
		costs->redundant = costs->send;
	if (options->wan.beta < 0)
		options->wan.beta = costs->beta;
	sim_nodes_settle(options);
	if (!sim_options_valid(options))
		return false;
	if (!options->runs)
		options->runs = options->os_noises || options->link_noise ? 30 : 1;
	refusal = sim_model_refuses(&options->model);
	if (refusal)
		fprintf(stderr, "coll sim: %s\n", refusal);
	return !refusal;
}

static bool settle_replay(int argc, char **argv, struct sim_options *options)
{
	options->file = argv + optind;
	options->files = argc - optind;
	options->rank_counts = 0;	/* the number is in the files */
	if (options->files &&
	    (options->delta > 0 || (options->ports == 1 && !options->wavelengths)))
		return options_settle(options);
	fprintf(stderr, "coll sim replay: %s\n", options->files ?
		"--ports and --wavelengths need --delta" :
		"no file; --help tells more");
	return false;
}

static bool settle_collective(int argc, char **argv, struct sim_options *options)
{
	if (optind == argc) {
		fprintf(stderr, "coll sim: the collective is needed; --help tells more\n");
		return false;
	}
	return argument_collective("sim", argv[optind], &options->collective) &&
	       (!options->algorithms || read_algorithms(options->algorithms, options)) &&
	       options_settle(options);
}

bool sim_options_read(int argc, char **argv, struct sim_options *options)
{
	const bool replay = !strcmp(argv[0], "replay");
	const struct option_table *table = replay ? &cmd_sim_replay_options : &cmd_sim_options;
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);

	*options = (struct sim_options){
		.model.costs = { .send = -1, .recv = -1, .redundant = -1, .nic = -1,
				 .eager = SIM_ALWAYS_EAGER },
		.inside = { { -1, -1, -1 }, { -1, -1, -1 } },
		.replay = replay,
		.cpu = 1,
		.unit = 1e-9,
		.ports = 1,
		.wan = { .beta = -1, .loss = SIM_TCP_LOSS },
		.threads = cores < 1 ? 1 : cores,
	};
	if (argc < 2) {
		options_help(table, stderr);
		return false;
	}
	if (!options_read(table, argc, argv, options))
		return false;
	return replay ? settle_replay(argc, argv, options) :
			settle_collective(argc, argv, options);
}

void sim_options_free(struct sim_options *options)
{
	u32 i;

	for (i = 0; i <= SIM_SOURCES_MAX; i++)
		coll_noise_said_free(&options->said[i]);
}
