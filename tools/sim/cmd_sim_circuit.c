// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* coll sim circuit: paper 5's figures, what the planner chooses, and its table 4. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/tuning.h"
#include "core/noise/text.h"
#include "tools/arguments.h"
#include "tools/command.h"
#include "circuit.h"

enum { PORTS_LIST_MAX = 8 };

struct settings {
	struct circuit_network network;
	u32 ports[PORTS_LIST_MAX], port_counts;
	u64 size;
	int collective;		/* --plan; -1: the table */
	const char *trace;
	bool json, csv;
};

static const char help[] =
	"usage: coll sim circuit [--table] [OPTION ...]\n"
	"       coll sim circuit --plan COLLECTIVE [--size N] [OPTION ...]\n"
	"       coll sim circuit --trace FILE [OPTION ...]\n"
	"\n"
	"Collectives over circuits that take a time delta to set up, k to a node at once.\n"
	"\n"
	"  --table              linear, ring, doubling and binomial from 1 byte to 1 MiB: by\n"
	"                       formula and simulated; naive, with k ports in turns, ideal\n"
	"  --plan COLLECTIVE    every algorithm that fits: predicted, simulated, against the\n"
	"                       lower bound; the cheapest is what the planner chooses\n"
	"  --trace FILE         a program's cpu and collectives (coll-trace(5)), ranks alike\n"
	"  --ranks P            nodes (32)\n"
	"  --ports K,...        ports of a node, up to 8 numbers (2,3,4)\n"
	"  --size N             --plan: bytes of the vector, or of a block (8)\n"
	"  --alpha T            latency (100us)\n"
	"  --overhead T         of it a rank's CPU, at each end: no other message then (0)\n"
	"  --beta T             a byte's transport (8ns)\n"
	"  --gamma T            a byte's reduction (0)\n"
	"  --delta T            a circuit's set-up (10ms)\n"
	"  --wavelengths W      circuits there can be at once in all\n"
	"  --failures X         share of set-ups that fail and are tried again (0)\n"
	"  --simplex            circuits go one way\n"
	"  --seed S             of the failures (1)\n"
	"  --json, --csv        instead of a table\n"
	"\n"
	"Exit status: 0 ok, 1 it cannot be simulated, 2 wrong usage.\n";

/* ---- the table ----------------------------------------------------------------- */

/* A column: naive (0), k ports, or ideal (COLL_NONE). */
static const char *mode_name(u32 ports)
{
	return !ports ? "naive" : ports == COLL_NONE ? "ideal" : "ports";
}

static bool table_point(const struct settings *s, enum circuit_family family, u64 size, u32 ports,
			bool first)
{
	const bool power = !(s->network.ranks & (s->network.ranks - 1));
	struct sim_outcome outcome;
	struct sim_job job;
	double formula, simulated;
	char said[32] = "null";
	u64 all;

	job = circuit_family_job(family, &s->network, size, &all);
	formula = circuit_formula(family, &s->network, all, ports);
	if (ports != COLL_NONE) {
		job.tuning.ports = ports ? ports : 1;
		job.tuning.ahead = ports ? COLL_AHEAD_TURNS : COLL_AHEAD_NOT;
	}
	if (!circuit_run(&job, &s->network, true, &outcome))
		return false;
	simulated = sim_seconds(outcome.finish);
	/* The formulas are of 2^m ranks, and with one port of an even ring. */
	if (power)
		snprintf(said, sizeof(said), "%.9g", formula);
	if (s->json)
		printf("%s\n  {\"algorithm\": \"%s\", \"bytes\": %llu, \"mode\": \"%s\", "
		       "\"ports\": %u, \"formula_s\": %s, \"simulated_s\": %.9g, "
		       "\"setups\": %llu, \"circuits_at_once\": %u}",
		       first ? "" : ",", circuit_family_names[family], (unsigned long long)all,
		       mode_name(ports), ports == COLL_NONE ? 0 : ports, said, simulated,
		       (unsigned long long)outcome.setups, outcome.circuits);
	else if (s->csv)
		printf("%s,%llu,%s,%u,%s,%.9g,%llu\n", circuit_family_names[family],
		       (unsigned long long)all, mode_name(ports),
		       ports == COLL_NONE ? 0 : ports, power ? said : "", simulated,
		       (unsigned long long)outcome.setups);
	else
		printf(" %8.2f %8.2f", power ? formula * 1e3 : -1, simulated * 1e3);
	return true;
}

static bool table_row(const struct settings *s, enum circuit_family family, u64 size, bool first)
{
	bool fine;
	u32 i;

	if (!s->json && !s->csv)
		printf("%-9s %8llu", circuit_family_names[family], (unsigned long long)size);
	fine = table_point(s, family, size, 0, first);
	for (i = 0; i < s->port_counts && fine; i++)
		fine = table_point(s, family, size, s->ports[i], false);
	fine = fine && table_point(s, family, size, COLL_NONE, false);
	if (!s->json && !s->csv)
		printf("\n");
	return fine;
}

static bool show_table(const struct settings *s)
{
	bool fine = true;
	u32 family, i;
	u64 size;

	if (s->json) {
		printf("[");
	} else if (s->csv) {
		printf("algorithm,bytes,mode,ports,formula_s,simulated_s,setups\n");
	} else {
		printf("milliseconds, by formula and simulated; %u ranks\n%-18s %17s",
		       s->network.ranks, "", "naive");
		for (i = 0; i < s->port_counts; i++)
			printf("     %6u ports", s->ports[i]);
		printf(" %17s\n", "ideal");
	}
	for (family = 0; family < FAMILIES && fine; family++)
		for (size = 1; size <= 1 << 20 && fine; size *= 4)
			fine = table_row(s, family, size, !family && size == 1);
	if (s->json)
		printf("\n]\n");
	return fine;
}

/* ---- plans ------------------------------------------------------------------------ */

static bool plan_row(const struct settings *s, const struct sim_job *job, double bound,
		     bool chosen, bool first)
{
	struct sim_outcome outcome;
	struct coll_circuits_cost cost;
	char tuning[120];

	if (circuit_cost(job, &s->network, &cost) ||
	    !circuit_run(job, &s->network, false, &outcome))
		return false;
	coll_tuning_print(&job->tuning, tuning, sizeof(tuning));
	if (s->json)
		printf("%s\n  {\"collective\": \"%s\", \"algorithm\": \"%s\", \"options\": \"%s\", "
		       "\"bytes\": %llu, \"chosen\": %s, \"predicted_s\": %.9g, "
		       "\"simulated_s\": %.9g, \"bound_s\": %.9g, \"gap\": %.4f, "
		       "\"setups\": %llu, \"setups_of_a_node\": %u, \"failed\": %llu, "
		       "\"circuits_at_once\": %u}",
		       first ? "" : ",", coll_collective_names[job->call.collective],
		       job->algo->name, tuning, (unsigned long long)s->size,
		       chosen ? "true" : "false", cost.seconds, sim_seconds(outcome.finish), bound,
		       sim_seconds(outcome.finish) / bound, (unsigned long long)outcome.setups,
		       cost.most_setups, (unsigned long long)outcome.setups_failed,
		       outcome.circuits);
	else if (s->csv)
		printf("%s,%s,\"%s\",%llu,%d,%.9g,%.9g,%.9g,%llu\n",
		       coll_collective_names[job->call.collective], job->algo->name, tuning,
		       (unsigned long long)s->size, chosen, cost.seconds,
		       sim_seconds(outcome.finish), bound, (unsigned long long)outcome.setups);
	else
		printf("%c %-14s %-34s %12.4f %12.4f %8.3f %8llu\n", chosen ? '*' : ' ',
		       job->algo->name, tuning, cost.seconds * 1e3,
		       sim_seconds(outcome.finish) * 1e3, sim_seconds(outcome.finish) / bound,
		       (unsigned long long)outcome.setups);
	return true;
}

/* Every algorithm of the collective; those with a radix with what the planner tries. */
static bool plan_ports(const struct settings *s, const struct coll_call *call,
		       struct coll_tuning tuning, bool first)
{
	struct coll_circuits_choice choice;
	const struct coll_algo *const *algo;
	bool fine;

	if (circuit_choose(call, &tuning, &s->network, &choice)) {
		fprintf(stderr, "coll sim circuit: no algorithm fits this %s\n",
			coll_collective_names[call->collective]);
		return false;
	}
	if (!s->json && !s->csv)
		printf("k = %llu; lower bound %.4f ms\n%-51s %12s %12s %8s %8s\n",
		       (unsigned long long)tuning.ports, choice.bound * 1e3, "",
		       "predicted ms", "simulated ms", "of bound", "set-ups");
	fine = plan_row(s, &(struct sim_job){ choice.algo, *call, choice.tuning }, choice.bound,
			true, first);
	for (algo = coll_algos; *algo && fine; algo++) {
		const struct sim_job job = { *algo, *call, tuning };

		if ((*algo)->collective != call->collective || (*algo)->baseline ||
		    (*algo)->clusters || (*algo)->needs_counts ||
		    coll_algo_refuses(*algo, call, &tuning) ||
		    (*algo == choice.algo && choice.tuning.radix == tuning.radix))
			continue;
		fine = plan_row(s, &job, choice.bound, false, false);
	}
	return fine;
}

static bool show_plans(const struct settings *s)
{
	const struct coll_call call = circuit_call(s->collective, s->network.ranks, s->size);
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	bool fine = true;
	u32 i;

	if (s->network.wavelengths)
		tuning.wavelengths = s->network.wavelengths;
	if (s->network.simplex)
		tuning.simplex = 1;
	if (s->json)
		printf("[");
	if (s->csv)
		printf("collective,algorithm,options,bytes,chosen,predicted_s,simulated_s,bound_s,"
		       "setups\n");
	for (i = 0; i < s->port_counts && fine; i++) {
		tuning.ports = s->ports[i];
		fine = plan_ports(s, &call, tuning, !i);
	}
	if (s->json)
		printf("\n]\n");
	return fine;
}

/* ---- options ------------------------------------------------------------------------ */

enum option_key {
	KEY_TABLE,
	KEY_PLAN,
	KEY_TRACE,
	KEY_RANKS,
	KEY_PORTS,
	KEY_SIZE,
	KEY_ALPHA,
	KEY_OVERHEAD,
	KEY_BETA,
	KEY_GAMMA,
	KEY_DELTA,
	KEY_WAVELENGTHS,
	KEY_FAILURES,
	KEY_SIMPLEX,
	KEY_SEED,
	KEY_JSON,
	KEY_CSV,
	KEY_HELP,
};

static const struct option long_options[] = {
	{ "table", no_argument, NULL, KEY_TABLE },
	{ "plan", required_argument, NULL, KEY_PLAN },
	{ "trace", required_argument, NULL, KEY_TRACE },
	{ "ranks", required_argument, NULL, KEY_RANKS },
	{ "ports", required_argument, NULL, KEY_PORTS },
	{ "size", required_argument, NULL, KEY_SIZE },
	{ "alpha", required_argument, NULL, KEY_ALPHA },
	{ "overhead", required_argument, NULL, KEY_OVERHEAD },
	{ "beta", required_argument, NULL, KEY_BETA },
	{ "gamma", required_argument, NULL, KEY_GAMMA },
	{ "delta", required_argument, NULL, KEY_DELTA },
	{ "wavelengths", required_argument, NULL, KEY_WAVELENGTHS },
	{ "failures", required_argument, NULL, KEY_FAILURES },
	{ "simplex", no_argument, NULL, KEY_SIMPLEX },
	{ "seed", required_argument, NULL, KEY_SEED },
	{ "json", no_argument, NULL, KEY_JSON },
	{ "csv", no_argument, NULL, KEY_CSV },
	{ "help", no_argument, NULL, KEY_HELP },
	{ NULL, 0, NULL, 0 },
};

static bool sim_circuit_wrong(const char *option, const char *text, const char *valid)
{
	return argument_refuse_option("sim circuit", option, text, valid);
}

static bool read_ports(const char *text, struct settings *s)
{
	const char *at = text;
	char *rest;

	for (s->port_counts = 0; s->port_counts < PORTS_LIST_MAX; at = rest + 1) {
		const unsigned long ports = strtoul(at, &rest, 10);

		if (rest == at || !ports || ports > COLL_PORTS_MAX || (*rest && *rest != ','))
			break;
		s->ports[s->port_counts++] = ports;
		if (!*rest)
			return true;
	}
	return sim_circuit_wrong("ports", text, "up to 8 numbers from 1 to 64 with commas between");
}

static bool read_time(const char *option, const char *text, double *seconds)
{
	return (coll_text_seconds(text, seconds) && *seconds < 1e4) ||
	       sim_circuit_wrong(option, text, "a duration: 1us, 25ns, 0.1ns, 1e-7 (seconds)");
}

static bool read_u32(const char *option, const char *text, u32 least, u32 most, u32 *value)
{
	u64 number;

	if (!argument_number("sim circuit", option, text, least, most, &number))
		return false;
	*value = number;
	return true;
}

static bool read_share(const char *text, double *share)
{
	char *rest;

	*share = strtod(text, &rest);
	return (rest != text && !*rest && *share >= 0 && *share < 1) ||
	       sim_circuit_wrong("failures", text, "a number from 0 to below 1");
}

static bool read_bytes(const char *text, u64 *bytes)
{
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	char option[64], why[160];

	snprintf(option, sizeof(option), "segment=%.40s", text);
	if (coll_tuning_parse(NULL, option, &tuning, why, sizeof(why)) ||
	    tuning.segment > COLL_BYTES_MAX)
		return sim_circuit_wrong("size", text, "bytes from 1, suffix K, M or G");
	*bytes = tuning.segment;
	return true;
}

static bool sim_circuit_apply(int key, char *const *argv, struct settings *s)
{
	struct circuit_network *n = &s->network;

	switch (key) {
	case KEY_TABLE:
		return true;
	case KEY_PLAN:
		return argument_collective("sim circuit", optarg, &s->collective);
	case KEY_TRACE:
		s->trace = optarg;
		return true;
	case KEY_RANKS:
		return read_u32("--ranks", optarg, 1, 4096, &n->ranks);
	case KEY_PORTS:
		return read_ports(optarg, s);
	case KEY_SIZE:
		return read_bytes(optarg, &s->size);
	case KEY_ALPHA:
		return read_time("alpha", optarg, &n->alpha);
	case KEY_OVERHEAD:
		return read_time("overhead", optarg, &n->overhead);
	case KEY_BETA:
		return read_time("beta", optarg, &n->beta);
	case KEY_GAMMA:
		return read_time("gamma", optarg, &n->gamma);
	case KEY_DELTA:
		return read_time("delta", optarg, &n->delta) &&
		       (n->delta > 0 ||
			sim_circuit_wrong("delta", optarg, "a time of more than 0"));
	case KEY_WAVELENGTHS:
		return read_u32("--wavelengths", optarg, 1, 1 << 24, &n->wavelengths);
	case KEY_FAILURES:
		return read_share(optarg, &n->failures);
	case KEY_SIMPLEX:
		n->simplex = true;
		return true;
	case KEY_SEED:
		return argument_number("sim circuit", "--seed", optarg, 0, ~0ull >> 1, &n->seed);
	case KEY_JSON:
		s->json = true;
		return true;
	case KEY_CSV:
		s->csv = true;
		return true;
	default:
		return argument_unknown("sim circuit", key, argv, long_options);
	}
}

int cmd_sim_circuit(int argc, char **argv)
{
	struct settings s = {
		.network = { .ranks = 32, .alpha = 1e-4, .beta = 8e-9, .delta = 1e-2, .seed = 1 },
		.ports = { 2, 3, 4 },
		.port_counts = 3,
		.size = 8,
		.collective = -1,
	};
	bool fine;
	int key;

	optind = 1;
	opterr = 0;
	while ((key = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (key == KEY_HELP) {
			fputs(help, stdout);
			return COMMAND_OK;
		}
		if (!sim_circuit_apply(key, argv, &s))
			return COMMAND_USAGE;
	}
	if (optind < argc) {
		fprintf(stderr,
			"coll sim circuit: it takes options only, not '%s'; --help lists them\n",
			argv[optind]);
		return COMMAND_USAGE;
	}
	if (2 * s.network.overhead > s.network.alpha) {
		fprintf(stderr,
			"coll sim circuit: --overhead %g s: valid: at most half of --alpha, %g s\n",
			s.network.overhead, s.network.alpha);
		return COMMAND_USAGE;
	}
	if (s.trace)
		fine = circuit_replay(s.trace, &s.network, s.ports, s.port_counts, s.json);
	else if (s.collective >= 0)
		fine = show_plans(&s);
	else
		fine = show_table(&s);
	return fine && !fflush(stdout) ? COMMAND_OK : COMMAND_ERROR;
}
