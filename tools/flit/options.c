// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* The options of coll sim flit. */
#include <string.h>

#include "tools/common/arguments.h"
#include "tools/common/command.h"
#include "tools/common/options.h"
#include "settings.h"

static bool read_policies(const struct option_table *table, const struct option_entry *option,
			  void *to, const char *text)
{
	struct flit_plan *plan = &((struct flit_settings *)to)->plan;
	char *copy = strdupa(text), *word, *rest = copy;
	u32 policy;

	(void)option;
	plan->policies = 0;
	while ((word = strsep(&rest, ","))) {
		if (!argument_word(table->command, "policy", word, flit_policy_names,
				   FLIT_POLICIES, &policy))
			return false;
		if (plan->policies < FLIT_POLICIES)
			plan->policy[plan->policies++] = policy;
	}
	return true;
}

/* Read before the machine's other options: it sets their defaults. */
static bool read_machine(const struct option_table *table, const struct option_entry *option,
			 void *to, const char *text)
{
	struct flit_plan *plan = &((struct flit_settings *)to)->plan;

	if (!option_name(table, option, to, text))
		return false;
	plan->base.machine = strcmp(plan->machine, "thesis") ? flit_booksim : flit_thesis;
	return true;
}

static bool read_trace(const struct option_table *table, const struct option_entry *option,
		       void *to, const char *text)
{
	struct flit_settings *s = to;

	(void)table;
	(void)option;
	s->trace = text;
	s->plan.base.pattern = FLIT_TRACE;
	return true;
}

static const char *const machines[] = { "thesis", "booksim", NULL };

#define FLIT_NUMBER(field, least, most) \
	OPTION_NUMBER(struct flit_settings, plan.base.field, least, most)
#define FLIT_MACHINE(field, least, most) FLIT_NUMBER(machine.field, least, most)

static const struct option_entry traffic_entries[] = {
	{ "net", 0, "N", "mesh:AxB[xC], torus:AxB[xC] or tesh:m,L,q",
	  OPTION_TEXT(struct flit_settings, net), .preset = "mesh:16x16",
	  .group = "network and routing" },
	{ "routing", 0, "R", "routing function",
	  OPTION_WORD(struct flit_settings, routing, flit_routing_names), .count = FLIT_ROUTINGS,
	  .otherwise = "dor; tesh on a tesh" },
	{ "policy", 0, "P,...", "arbitration of a link's channels",
	  .read = read_policies, .names = flit_policy_names, .count = FLIT_POLICIES,
	  .preset = "rr,occupancy" },
	{ "traffic", 0, "T", "pattern or program",
	  OPTION_WORD(struct flit_settings, plan.base.pattern, flit_pattern_names),
	  .count = FLIT_PATTERNS, .otherwise = "uniform", .group = "traffic" },
	{ "rate", 0, "LIST", "messages per PE and cycle", OPTION_TEXT(struct flit_settings, rates),
	  .preset = "0.001" },
	{ "length", 0, "L", "flits of a message, without its header",
	  FLIT_NUMBER(length, 1, 1 << 20), .preset = "16" },
	{ "hot", 0, "N", "hotspot: number of targets", FLIT_NUMBER(hot, 1, FLIT_NODES_MAX),
	  .preset = "16" },
	{ "hot-step", 0, "S", "hotspot: targets are the PEs 0, S, 2S, ...",
	  FLIT_NUMBER(hot_step, 1, FLIT_NODES_MAX), .preset = "1" },
	{ "data", 0, "LIST", "fft: data of a PE", OPTION_TEXT(struct flit_settings, data),
	  .preset = "1" },
	{ "rounds", 0, "LIST", "four: steps; schedule: runs",
	  OPTION_TEXT(struct flit_settings, rounds), .otherwise = "10; 1" },
	{ "jitter", 0, "N", "fft, four: each PE begins up to N cycles late",
	  FLIT_NUMBER(work.jitter, 0, 1000000), .preset = "0" },
	{ "trace", 0, "FILE", "trace: lines CYCLE FROM TO FLITS (- is stdin)",
	  .read = read_trace },
	{ "collective", 0, "C", "schedule: collective",
	  OPTION_TEXT(struct flit_settings, collective.collective), .preset = "allreduce" },
	{ "algorithm", 0, "A[:K=V]", "schedule: algorithm",
	  OPTION_TEXT(struct flit_settings, collective.algorithm), .preset = "ring" },
	{ "ranks", 0, "N", "schedule: ranks",
	  OPTION_NUMBER(struct flit_settings, collective.ranks, 1, FLIT_NODES_MAX),
	  .preset = "16" },
	{ "bytes", 0, "LIST", "schedule: bytes", OPTION_TEXT(struct flit_settings, bytes),
	  .preset = "4096" },
	{ "place", 0, "P", "schedule: ranks on the PEs linear, spread or random",
	  OPTION_TEXT(struct flit_settings, collective.place), .preset = "linear" },
	{ "flit-bytes", 0, "N", "schedule: payload of a flit in bytes",
	  FLIT_NUMBER(work.flit_bytes, 1, 1 << 16), .preset = "8" },
	{ "reduce-cycles", 0, "X", "schedule: cycles to reduce a byte",
	  OPTION_REAL(struct flit_settings, plan.base.work.reduce, 0, 1e9), .preset = "0.25" },
	{ "copy-cycles", 0, "X", "schedule: cycles to copy a byte",
	  OPTION_REAL(struct flit_settings, plan.base.work.copy, 0, 1e9), .preset = "0.125" },
	{ NULL },
};

enum { PATTERNS = 1 << FLIT_UNIFORM | 1 << FLIT_HOTSPOT | 1 << FLIT_TRANSPOSE | 1 << FLIT_COMPLEMENT };

/* Options that other traffic does not look at, and theirs. */
static const struct {
	const char *option;
	u32 patterns;
} of_traffic[] = {
	{ "rate", PATTERNS },
	{ "length", PATTERNS | 1 << FLIT_FOUR },
	{ "queue", PATTERNS },
	{ "to-self", PATTERNS },
	{ "drain", PATTERNS },
	{ "hot", 1 << FLIT_HOTSPOT },
	{ "hot-step", 1 << FLIT_HOTSPOT },
	{ "data", 1 << FLIT_FFT },
	{ "rounds", 1 << FLIT_FOUR | 1 << FLIT_SCHEDULE },
	{ "jitter", 1 << FLIT_FFT | 1 << FLIT_FOUR },
	{ "trace", 1 << FLIT_TRACE },
	{ "collective", 1 << FLIT_SCHEDULE },
	{ "algorithm", 1 << FLIT_SCHEDULE },
	{ "ranks", 1 << FLIT_SCHEDULE },
	{ "bytes", 1 << FLIT_SCHEDULE },
	{ "place", 1 << FLIT_SCHEDULE },
	{ "flit-bytes", 1 << FLIT_SCHEDULE },
	{ "reduce-cycles", 1 << FLIT_SCHEDULE },
	{ "copy-cycles", 1 << FLIT_SCHEDULE },
};

static void note_given(void *settings, const struct option_entry *option)
{
	struct flit_settings *s = settings;
	u32 i;

	for (i = 0; i < sizeof(of_traffic) / sizeof(*of_traffic); i++)
		if (!strcmp(option->name, of_traffic[i].option))
			s->given |= 1u << i;
}

bool flit_refuse_others(const struct flit_settings *s)
{
	const u32 pattern = s->plan.base.pattern;
	u32 i, other;

	for (i = 0; i < sizeof(of_traffic) / sizeof(*of_traffic); i++)
		if (s->given >> i & 1 && !(of_traffic[i].patterns >> pattern & 1)) {
			fprintf(stderr, "coll sim flit: --%s, but the traffic is %s; valid with --traffic",
				of_traffic[i].option, flit_pattern_names[pattern]);
			for (other = 0; other < FLIT_PATTERNS; other++)
				if (of_traffic[i].patterns >> other & 1)
					fprintf(stderr, " %s", flit_pattern_names[other]);
			fprintf(stderr, "\n");
			return false;
		}
	return true;
}

static const struct option_entry machine_entries[] = {
	{ "machine", 0, "M", "defaults of the options below", .read = read_machine,
	  .names = machines, OPTION_FIELD(struct flit_settings, plan.machine),
	  .preset = "thesis", .early = true, .group = "machine" },
	{ "vcs", 0, "N", "virtual channels of a link", FLIT_MACHINE(vcs, 1, 16) },
	{ "inject-vcs", 0, "N", "virtual channels into the network",
	  FLIT_MACHINE(inject_vcs, 1, 16) },
	{ "eject-vcs", 0, "N", "virtual channels out of the network",
	  FLIT_MACHINE(eject_vcs, 1, 16) },
	{ "buffer", 0, "N", "buffer of a channel behind the link",
	  FLIT_MACHINE(buffer, 1, 30000), .unit = "flits" },
	{ "out-buffer", 0, "N", "buffer of a channel before the link",
	  FLIT_MACHINE(out_buffer, 0, 30000), .unit = "flits" },
	{ "link", 0, "N", "delay of a link", FLIT_MACHINE(link, 1, 1000), .unit = "cycles" },
	{ "inject", 0, "N", "delay of injection", FLIT_MACHINE(inject, 1, 1000), .unit = "cycles" },
	{ "credit", 0, "N", "delay of a credit", FLIT_MACHINE(credit, 0, 1000), .unit = "cycles" },
	{ "route-delay", 0, "N", "delay of routing", FLIT_MACHINE(route, 0, 1000),
	  .unit = "cycles" },
	{ "setup", 0, "N", "delay before a message", FLIT_MACHINE(setup, 0, 1000000),
	  .unit = "cycles" },
	{ "header", 0, "N", "header of a message", FLIT_MACHINE(header, 0, 1000000),
	  .unit = "flits" },
	{ "queue", 0, "N", "messages that a PE queues; 0: any number",
	  FLIT_MACHINE(queue, 0, 1000000) },
	{ "heads", 0, "H", "order in which heads get a free channel",
	  OPTION_WORD(struct flit_settings, plan.base.machine.heads, flit_heads_names),
	  .count = FLIT_HEADS },
	{ "one-port", 0, "B", "one port per PE", FLIT_MACHINE(one_port, 0, 1) },
	{ "to-self", 0, "B", "a PE may send to itself", FLIT_MACHINE(to_self, 0, 1) },
	{ "classes-first", 0, "B", "channels are grouped by class first",
	  FLIT_MACHINE(classes_first, 0, 1) },
	{ NULL },
};

static const struct option_entry run_entries[] = {
	{ "cycles", 0, "N", "cycles of a run", FLIT_NUMBER(cycles, 1, 1000000000000),
	  .otherwise = "20000; programs: until they end, at most 10^8", .group = "runs" },
	{ "warmup", 0, "N", "cycles that are not measured", FLIT_NUMBER(warmup, 0, 1000000000000),
	  .preset = "0" },
	{ "drain", 0, NULL, "measure all messages born in the window, however late",
	  OPTION_FLAG(struct flit_settings, plan.base.drain) },
	{ "seeds", 0, "N", "runs of each kind",
	  OPTION_NUMBER(struct flit_settings, plan.seeds, 1, FLIT_SEEDS_MAX), .preset = "1" },
	{ "seed", 0, "S", "seed of the first run", FLIT_NUMBER(seed, 0, ~(u64)0 - 1),
	  .preset = "1" },
	{ "jobs", 0, "N", "processes", OPTION_NUMBER(struct flit_settings, jobs, 1, JOBS_MAX),
	  .otherwise = "one a core" },
	{ "proof", 0, NULL, "only prove that the routing cannot deadlock",
	  OPTION_FLAG(struct flit_settings, proof_only), .one_of = OPTION_OF_WORKS,
	  .group = "proof" },
	{ "no-proof", 0, NULL, "do not prove it", OPTION_FLAG(struct flit_settings, no_proof),
	  .one_of = OPTION_OF_WORKS },
	{ "unsafe", 0, NULL, "run even if the routing can deadlock",
	  OPTION_FLAG(struct flit_settings, unsafe) },
	{ "break-classes", 0, NULL, "use one class of channels where two are needed",
	  OPTION_FLAG(struct flit_settings, broken) },
	{ "json", 0, NULL, "print JSON", OPTION_FORMAT(struct flit_settings, json),
	  .group = "output" },
	{ "csv", 0, NULL, "print CSV", OPTION_FORMAT(struct flit_settings, csv) },
	{ "series", 0, "FILE", "write the links' load over time as CSV",
	  OPTION_TEXT(struct flit_settings, series) },
	{ "interval", 0, "N", "cycles between points of --series",
	  FLIT_NUMBER(interval, 1, 1000000000) },
	{ "distribution", 0, "FILE", "write the latencies as CSV",
	  OPTION_TEXT(struct flit_settings, distribution) },
	{ "bin", 0, "N", "cycles of a bin of --distribution", FLIT_NUMBER(bin, 1, 1000000),
	  .preset = "10" },
	{ NULL },
};

static const char *const usage[] = {
	"usage: coll sim flit [OPTION ...]",
	"",
	"Simulates wormhole routers with virtual channels, flit by flit and cycle by cycle.",
	"LIST is A,B,... or FIRST:LAST:STEP. Runs differ in policy, value and seed.",
	NULL,
};

static const char *const closing[] = {
	"Exit code: 0 ok, 1 a deadlock or an error, 2 wrong usage.",
	NULL,
};

const struct option_table cmd_sim_flit_options = {
	.command = "sim flit",
	.usage = usage,
	.closing = closing,
	.list = { traffic_entries, machine_entries, run_entries },
	.given = note_given,
};
