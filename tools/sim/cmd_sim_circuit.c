// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* coll sim circuit: paper 5's figures, the planner's choices, and its table 4. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/tuning.h"
#include "core/text_parsed.h"
#include "tools/common/arguments.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "circuit.h"

enum { PORTS_LIST_MAX = 8 };

struct sim_circuit_settings {
	struct circuit_network network;
	u32 ports[PORTS_LIST_MAX], port_counts;
	u64 size;
	int collective;		/* --plan; -1: the table */
	const char *trace;
	bool table, json, csv;
	bool sized, ranked;	/* --size, --ranks are given */
};

/* ---- the table ----------------------------------------------------------------- */

/* A column: naive (0), k ports, or ideal (COLL_NONE). */
static const char *mode_name(u32 ports)
{
	return !ports ? "naive" : ports == COLL_NONE ? "ideal" : "ports";
}

static bool table_point(const struct sim_circuit_settings *s, enum circuit_family family, u64 size, u32 ports,
			bool first)
{
	const bool power = !(s->network.ranks & (s->network.ranks - 1)) && !s->network.wavelengths &&
			   !s->network.simplex;
	struct sim_outcome outcome;
	struct sim_job job;
	double formula, simulated;
	char said[32] = "null";
	u64 all;

	job = circuit_family_job(family, &s->network, size, &all);
	formula = circuit_formula(family, &s->network, all, ports);
	if (ports != COLL_NONE) {
		job.tuning = circuit_tuning(&s->network, ports ? ports : 1);
		job.tuning.ahead = ports ? COLL_AHEAD_TURNS : COLL_AHEAD_NOT;
	}
	if (!circuit_run(&job, &s->network, true, &outcome))
		return false;
	simulated = sim_seconds(outcome.finish);
	/* The formulas hold for 2^m ranks, duplex, any wavelengths; with one port a ring needs an even number. */
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
	else if (power)
		printf(" %8.2f %8.2f", formula * 1e3, simulated * 1e3);
	else
		printf(" %8s %8.2f", "-", simulated * 1e3);
	return true;
}

static bool table_row(const struct sim_circuit_settings *s, enum circuit_family family, u64 size, bool first)
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

static bool show_table(const struct sim_circuit_settings *s)
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

static bool plan_row(const struct sim_circuit_settings *s, const struct sim_job *job, double bound,
		     bool chosen, bool first)
{
	struct sim_outcome outcome;
	struct coll_circuits_cost cost;
	char tuning[120], gap[32] = "null";

	if (circuit_cost(job, &s->network, &cost) ||
	    !circuit_run(job, &s->network, false, &outcome))
		return false;
	coll_tuning_print(&job->tuning, tuning, sizeof(tuning));
	if (bound > 0)
		snprintf(gap, sizeof(gap), "%.*f", s->json ? 4 : 3, sim_seconds(outcome.finish) / bound);
	if (s->json)
		printf("%s\n  {\"collective\": \"%s\", \"algorithm\": \"%s\", \"options\": \"%s\", "
		       "\"bytes\": %llu, \"chosen\": %s, \"predicted_s\": %.9g, "
		       "\"simulated_s\": %.9g, \"bound_s\": %.9g, \"gap\": %s, "
		       "\"setups\": %llu, \"setups_of_a_node\": %u, \"failed\": %llu, "
		       "\"circuits_at_once\": %u}",
		       first ? "" : ",", coll_collective_names[job->call.collective],
		       job->algo->name, tuning, (unsigned long long)s->size,
		       chosen ? "true" : "false", cost.seconds, sim_seconds(outcome.finish), bound,
		       gap, (unsigned long long)outcome.setups,
		       cost.most_setups, (unsigned long long)outcome.setups_failed,
		       outcome.circuits);
	else if (s->csv)
		printf("%s,%s,\"%s\",%llu,%d,%.9g,%.9g,%.9g,%llu\n",
		       coll_collective_names[job->call.collective], job->algo->name, tuning,
		       (unsigned long long)s->size, chosen, cost.seconds,
		       sim_seconds(outcome.finish), bound, (unsigned long long)outcome.setups);
	else
		printf("%c %-14s %-34s %12.4f %12.4f %8s %8llu\n", chosen ? '*' : ' ',
		       job->algo->name, tuning, cost.seconds * 1e3,
		       sim_seconds(outcome.finish) * 1e3, bound > 0 ? gap : "-",
		       (unsigned long long)outcome.setups);
	return true;
}

/* Every algorithm of the collective; with a radix, each value that the planner tries. */
static bool plan_ports(const struct sim_circuit_settings *s, const struct coll_call *call,
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

static bool show_plans(const struct sim_circuit_settings *s)
{
	const struct coll_call call = circuit_call(s->collective, s->network.ranks, s->size);
	bool fine = true;
	u32 i;

	if (s->json)
		printf("[");
	if (s->csv)
		printf("collective,algorithm,options,bytes,chosen,predicted_s,simulated_s,bound_s,"
		       "setups\n");
	for (i = 0; i < s->port_counts && fine; i++)
		fine = plan_ports(s, &call, circuit_tuning(&s->network, s->ports[i]), !i);
	if (s->json)
		printf("\n]\n");
	return fine;
}

/* ---- options ------------------------------------------------------------------------ */

static bool read_ports(const struct option_table *table, const struct option_entry *option,
		       void *to, const char *text)
{
	struct sim_circuit_settings *s = to;
	const char *at = text;
	u64 ports;

	for (s->port_counts = 0; s->port_counts < PORTS_LIST_MAX; at++) {
		const size_t digits = strcspn(at, ",");

		if (!coll_parse_number(at, digits, COLL_PORTS_MAX, &ports) || !ports)
			break;
		s->ports[s->port_counts++] = ports;
		at += digits;
		if (!*at)
			return true;
	}
	return option_refuse(table, option, text,
			     "up to 8 numbers from 1 to 64 with commas between");
}

#define NETWORK_TIME(field) OPTION_SECONDS(struct sim_circuit_settings, network.field, 0, 9999)

static const struct option_entry sim_circuit_entries[] = {
	{ "table", 0, NULL, "linear, ring, doubling and binomial from 1 byte to 1 MiB, by formula "
	  "and simulated: naive, with k ports in turns, ideal (default)",
	  OPTION_CHOICE(struct sim_circuit_settings, table, true), .one_of = OPTION_OF_WORKS },
	{ "plan", 0, "COLLECTIVE", "every algorithm that fits: predicted, simulated, against the "
	  "lower bound; the planner chooses the cheapest",
	  .read = option_collective, OPTION_FIELD(struct sim_circuit_settings, collective),
	  .one_of = OPTION_OF_WORKS },
	{ "trace", 0, "FILE", "a program's computing and collectives (coll-trace(5)), equal on "
	  "all ranks", OPTION_TEXT(struct sim_circuit_settings, trace), .one_of = OPTION_OF_WORKS },
	{ "ranks", 0, "P", "nodes",
	  OPTION_NUMBER(struct sim_circuit_settings, network.ranks, 1, CIRCUIT_RANKS_MAX), .preset = "32" },
	{ "ports", 0, "K,...", "ports of a node, up to 8 numbers", .read = read_ports,
	  .preset = "2,3,4" },
	{ "size", 0, "BYTES", "--plan: bytes of the vector, or of each rank's block",
	  OPTION_BYTES(struct sim_circuit_settings, size, 1, COLL_BYTES_MAX), .preset = "8" },
	{ "alpha", 0, "T", "latency of a message", NETWORK_TIME(alpha), .preset = "100us" },
	{ "overhead", 0, "T", "CPU time of it at each end, in which no other message is handled",
	  NETWORK_TIME(overhead), .preset = "0" },
	{ "beta", 0, "T", "transport of a byte", NETWORK_TIME(beta), .preset = "8ns" },
	{ "gamma", 0, "T", "reduction of a byte", NETWORK_TIME(gamma), .preset = "0" },
	{ "delta", 0, "T", "reconfiguration delay of a circuit",
	  OPTION_SECONDS(struct sim_circuit_settings, network.delta, 1e-12, 9999), .preset = "10ms" },
	{ "wavelengths", 0, "W", "circuits that can exist at once in all",
	  OPTION_NUMBER(struct sim_circuit_settings, network.wavelengths, 1, 1 << 24), .otherwise = "any" },
	{ "failures", 0, "X", "share of set-ups that fail and are tried again",
	  OPTION_REAL(struct sim_circuit_settings, network.failures, 0, 1 - 1e-9), .preset = "0" },
	{ "simplex", 0, NULL, "circuits are unidirectional", OPTION_FLAG(struct sim_circuit_settings, network.simplex) },
	{ "seed", 0, "S", "seed of the failures", OPTION_NUMBER(struct sim_circuit_settings, network.seed, 0, ~0ull >> 1),
	  .preset = "1" },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct sim_circuit_settings, json) },
	{ "csv", 0, NULL, "print CSV", OPTION_FORMAT(struct sim_circuit_settings, csv) },
	{ NULL },
};

static const char *const usage[] = {
	"usage: coll sim circuit [--table] [OPTION ...]",
	"       coll sim circuit --plan COLLECTIVE [--size N] [OPTION ...]",
	"       coll sim circuit --trace FILE [OPTION ...]",
	"",
	"Simulates collectives over circuits. A circuit takes the reconfiguration delay delta; a",
	"node has k ports.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0 ok, 1 the simulation failed, 2 wrong usage.",
	NULL,
};

static void note_given(void *settings, const struct option_entry *option)
{
	struct sim_circuit_settings *s = settings;

	s->sized |= !strcmp(option->name, "size");
	s->ranked |= !strcmp(option->name, "ranks");
}

/* Whether the options go together. */
static bool circuit_settle(const struct sim_circuit_settings *s)
{
	const char *wrong = NULL;

	if (s->trace && s->csv)
		wrong = "--csv: a trace's times are printed as a table or with --json";
	else if (s->trace && s->ranked)
		wrong = "--ranks: with --trace they are the file's";
	else if (s->sized && s->collective < 0)
		wrong = "--size: valid with --plan";
	if (wrong)
		fprintf(stderr, "coll sim circuit: %s\n", wrong);
	return !wrong;
}

const struct option_table cmd_sim_circuit_options = {
	.command = "sim circuit",
	.given = note_given,
	.usage = usage,
	.closing = closing,
	.list = { sim_circuit_entries },
};

int cmd_sim_circuit(int argc, char **argv)
{
	struct sim_circuit_settings s = { .collective = -1 };
	bool fine;

	if (!options_read(&cmd_sim_circuit_options, argc, argv, &s))
		return COMMAND_USAGE;
	if (!circuit_settle(&s))
		return COMMAND_USAGE;
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
	return fine ? COMMAND_OK : COMMAND_ERROR;
}
