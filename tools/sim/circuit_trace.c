// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * Paper 5's table 4: a program from one rank's trace (coll-trace(5)), compute times and
 * collectives; all ranks are alike. Each collective starts when the slowest rank has ended the one
 * before, with all circuits down.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text_parsed.h"
#include "circuit.h"

enum { KINDS_MAX = 32 };

/* Collectives of one kind and size; all take the same time. */
struct kind {
	enum coll_collective collective;
	u64 bytes;
	u32 times;
};

struct trace_program {
	double cpu;		/* seconds */
	struct kind kind[KINDS_MAX];
	u32 kinds, ranks;
};

static bool circuit_trace_wrong(const char *path, u32 line, const char *why)
{
	fprintf(stderr, "coll sim circuit: %s, line %u: %s\n", path, line, why);
	return false;
}

/* The number after "KEY=": digits alone, at most `most`. */
static bool value_of(const char *line, const char *key, u64 most, u64 *value)
{
	const char *at = strstr(line, key);

	if (!at)
		return false;
	at += strlen(key);
	return coll_parse_number(at, strcspn(at, " \r\n"), most, value);
}

static int collective_of(const char *line)
{
	const size_t length = strcspn(line, " \n");
	int i;

	for (i = 0; i < COLL_COLLECTIVES; i++)
		if (strlen(coll_collective_names[i]) == length &&
		    !memcmp(coll_collective_names[i], line, length))
			return i;
	return -1;
}

static bool add_call(struct trace_program *p, enum coll_collective collective, u64 bytes)
{
	u32 i;

	for (i = 0; i < p->kinds; i++)
		if (p->kind[i].collective == collective && p->kind[i].bytes == bytes)
			break;
	if (i == KINDS_MAX)
		return false;
	p->kinds += i == p->kinds;
	p->kind[i].collective = collective;
	p->kind[i].bytes = bytes;
	p->kind[i].times++;
	return true;
}

static bool read_line(struct trace_program *p, const char *path, u32 number, const char *line)
{
	const int collective = collective_of(line);
	u64 value;

	if (*line == '#' || *line == '\n' || !strncmp(line, "group ", 6) ||
	    !strncmp(line, "end", 3))
		return true;
	if (!strncmp(line, "coll-trace ", 11)) {
		if (!value_of(line, " ranks=", CIRCUIT_RANKS_MAX, &value) || !value)
			return circuit_trace_wrong(path, number, "ranks=: valid: 1 to 4096");
		p->ranks = value;
		return true;
	}
	if (!strncmp(line, "cpu ", 4)) {
		if (!value_of(line, " ns=", ~(u64)0, &value))
			return circuit_trace_wrong(path, number, "cpu without a time: ns=NUMBER");
		p->cpu += value * 1e-9;
		return true;
	}
	if (collective < 0)
		return circuit_trace_wrong(path, number,
					   "neither cpu nor a collective; valid here: these two");
	if (!value_of(line, " bytes=", COLL_BYTES_MAX, &value))
		return circuit_trace_wrong(path, number, "a collective without its bytes: bytes=NUMBER");
	return add_call(p, collective, value) ||
	       circuit_trace_wrong(path, number, "more than 32 kinds of collectives");
}

static bool read_program(const char *path, struct trace_program *p)
{
	FILE *file = fopen(path, "re");
	size_t capacity = 0;
	char *line = NULL;
	bool fine = true;
	u32 number = 0;

	*p = (struct trace_program){ 0 };
	if (!file) {
		fprintf(stderr, "coll sim circuit: %s: %s\n", path, strerror(errno));
		return false;
	}
	while (fine && getline(&line, &capacity, file) >= 0)
		fine = read_line(p, path, ++number, line);
	if (ferror(file)) {
		fprintf(stderr, "coll sim circuit: %s: %s\n", path, strerror(errno));
		fine = false;
	}
	fclose(file);
	free(line);
	if (!fine)
		return false;
	return p->ranks || circuit_trace_wrong(path, number, "not a coll-trace");
}

/* The paper's algorithm for a collective, or the nearest one in the list. */
static const char *paper_algo(enum coll_collective collective)
{
	switch (collective) {
	case COLL_BCAST:
	case COLL_REDUCE:
	case COLL_GATHER:
	case COLL_SCATTER:
		return "binomial";
	case COLL_ALLREDUCE:
	case COLL_BARRIER:
		return "butterfly";
	case COLL_ALLTOALL:
		return "bruck";
	default:
		return "doubling";
	}
}

/* Seconds of all collectives; `best`: by the planner's choice, else by the paper's algorithm. */
static bool run_program(const struct trace_program *p, const struct circuit_network *n,
			struct coll_tuning tuning, bool best, double *seconds)
{
	struct sim_outcome outcome;
	struct coll_circuits_choice choice;
	u32 i;

	*seconds = p->cpu;
	for (i = 0; i < p->kinds; i++) {
		const struct kind *kind = &p->kind[i];
		struct sim_job job = {
			.algo = coll_algo_find(kind->collective, paper_algo(kind->collective)),
			.call = circuit_call(kind->collective, n->ranks, kind->bytes),
			.tuning = tuning,
		};

		if (best && !circuit_choose(&job.call, &tuning, n, &choice)) {
			job.algo = choice.algo;
			job.tuning = choice.tuning;
		}
		if (!job.algo || !circuit_run(&job, n, false, &outcome))
			return false;
		*seconds += kind->times * sim_seconds(outcome.finish);
	}
	return true;
}

static void circuit_trace_show(const char *mode, u32 ports, double seconds, bool json, bool first)
{
	if (json)
		printf("%s\n  {\"mode\": \"%s\", \"ports\": %u, \"seconds\": %.9g}",
		       first ? "" : ",", mode, ports, seconds);
	else if (ports)
		printf("%-8s k = %-3u %10.4f s\n", mode, ports, seconds);
	else
		printf("%-16s %10.4f s\n", mode, seconds);
}

bool circuit_replay(const char *path, const struct circuit_network *network, const u32 *ports,
		    u32 count, bool json)
{
	struct circuit_network n = *network;
	struct coll_tuning tuning = COLL_TUNING_UNSET;
	struct trace_program program;
	double seconds;
	u32 i;

	if (!read_program(path, &program))
		return false;
	n.ranks = program.ranks;
	if (!run_program(&program, &n, tuning, false, &seconds))
		return false;
	if (json)
		printf("[");
	circuit_trace_show("ideal", 0, seconds, json, true);
	tuning = circuit_tuning(&n, 1);
	tuning.ahead = COLL_AHEAD_NOT;
	if (!run_program(&program, &n, tuning, false, &seconds))
		return false;
	circuit_trace_show("naive", 0, seconds, json, false);
	for (i = 0; i < count; i++) {
		tuning = circuit_tuning(&n, ports[i]);
		tuning.ahead = COLL_AHEAD_TURNS;
		if (!run_program(&program, &n, tuning, false, &seconds))
			return false;
		circuit_trace_show("turns", ports[i], seconds, json, false);
		tuning.ahead = COLL_AHEAD_PORTS;
		if (!run_program(&program, &n, tuning, true, &seconds))
			return false;
		circuit_trace_show("best", ports[i], seconds, json, false);
	}
	if (json)
		printf("\n]\n");
	return true;
}
