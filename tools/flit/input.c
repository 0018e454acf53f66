// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/* What the routers carry: a trace, or a collective's schedules. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/tuning.h"
#include "core/reduce.h"
#include "core/text_parsed.h"
#include "tools/common/arena.h"
#include "tools/common/arguments.h"
#include "tools/common/emit.h"
#include "flit.h"

/* ---- traces ------------------------------------------------------------- */

enum { TRACE_FLITS_MAX = 1 << 20 };	/* as --length */

/* The next number of the line, digits alone; moves past it. */
static bool next_number(const char **line, u64 *number)
{
	const char *word = *line + strspn(*line, " \t");
	const size_t digits = strspn(word, "0123456789");

	*line = word + digits;
	return coll_parse_number(word, digits, ~(u64)0, number);
}

static bool read_line(const char *line, struct flit_message *m, u32 nodes, u64 before,
		      const char **wrong)
{
	u64 at, from, to, flits;
	const bool four = next_number(&line, &at) && next_number(&line, &from) && next_number(&line, &to) &&
			  next_number(&line, &flits);

	line += strspn(line, " \t\r\n");
	if (!four || (*line && *line != '#'))
		*wrong = "not CYCLE FROM TO FLITS";
	else if (from >= nodes || to >= nodes)
		*wrong = "no such node in this network";
	else if (at < before)
		*wrong = "cycles must not go back";
	else if (!flits || flits > TRACE_FLITS_MAX)
		*wrong = "a message has 1 to 1048576 flits";
	else
		*m = (struct flit_message){ at, from, to, flits };
	return !*wrong;
}

/* The messages of the lines; returns whether all are right, else stderr says which is not. */
static bool read_lines(const char *name, FILE *from, u32 nodes, struct flit_work *work)
{
	struct flit_message *trace = NULL;
	const char *wrong = NULL;
	u64 capacity = 0, number = 0, before = 0;
	size_t bytes = 0;
	char *line = NULL;

	while (!wrong && getline(&line, &bytes, from) >= 0) {
		const char *word = line + strspn(line, " \t\r\n");

		number++;
		if (!*word || *word == '#')
			continue;
		if (work->messages == capacity) {
			capacity = capacity ? capacity * 2 : 1024;
			trace = memory_grow(trace, capacity, sizeof(*trace));
		}
		if (read_line(word, &trace[work->messages], nodes, before, &wrong))
			before = trace[work->messages++].at;
	}
	free(line);
	work->trace = trace;
	if (wrong)
		fprintf(stderr, "coll sim flit: %s:%llu: %s\n", name, (unsigned long long)number,
			wrong);
	return !wrong;
}

static bool refuse_trace(const char *name, const char *why)
{
	fprintf(stderr, "coll sim flit: %s: %s\n", name, why);
	return false;
}

bool flit_read_trace(const char *name, u32 nodes, struct flit_work *work)
{
	FILE *from = strcmp(name, "-") ? fopen(name, "re") : stdin;
	bool fine = from;

	work->messages = 0;
	if (fine)
		fine = read_lines(name, from, nodes, work);
	if (!from || ferror(from))
		fine = refuse_trace(name, strerror(errno));
	else if (fine && !work->messages)
		fine = refuse_trace(name, "the file contains no message");
	if (from && from != stdin)
		fclose(from);
	return fine;
}

/* ---- schedules ---------------------------------------------------------- */

static const struct coll_algo *find_algo(const struct flit_collective *names,
					 struct coll_tuning *tuning)
{
	const char *colon = strchr(names->algorithm, ':');
	const struct coll_algo *algo;
	char name[64], why[200];
	int collective;

	if (!argument_collective("sim flit", names->collective, &collective))
		return NULL;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(names->algorithm, ":"),
		 names->algorithm);
	algo = coll_algo_find(collective, name);
	if (!algo) {
		fprintf(stderr, "coll sim flit: %s has no algorithm '%s'; coll verify --collective "
			"%s --list names them\n", names->collective, name, names->collective);
		return NULL;
	}
	*tuning = COLL_TUNING_UNSET;
	if (colon && coll_tuning_parse(algo, colon + 1, tuning, why, sizeof(why))) {
		fprintf(stderr, "coll sim flit: %s: %s\n", names->algorithm, why);
		return NULL;
	}
	return algo;
}

/* The PEs of the ranks: in a row, spread or random. */
static bool place_ranks(const struct flit_collective *names, u32 nodes, u64 seed, u32 *place)
{
	static const char *const words[] = { "linear", "spread", "random", NULL };
	u32 *all = memory_grow(NULL, nodes, sizeof(*all));
	u32 word, i, step = nodes / names->ranks;

	if (!argument_word("sim flit", "--place", names->place, words, 3, &word)) {
		memory_free(all);
		return false;
	}
	for (i = 0; i < nodes; i++)
		all[i] = i;
	for (i = 0; word == 2 && i < names->ranks; i++) {
		u64 state = seed + i;
		u32 j = i + (state = state * 0x9e3779b97f4a7c15u, (state ^ state >> 31) >> 8) %
				    (nodes - i);
		u32 other = all[i];

		all[i] = all[j];
		all[j] = other;
	}
	for (i = 0; i < names->ranks; i++)
		place[i] = all[word == 1 ? i * step : i];
	memory_free(all);
	return true;
}

bool flit_emit(const struct flit_collective *names, u64 bytes, u32 nodes, u64 seed,
	       struct flit_work *work)
{
	struct coll_call call = { .ranks = names->ranks, .type = COLL_FLOAT, .reduction = COLL_SUM,
				  .element = 4, .commutative = true, .count = bytes / 4 };
	const struct coll_schedule **schedule;
	const struct coll_algo *algo;
	struct coll_tuning tuning;
	u64 *counts;
	u32 *place;
	bool fine = true;

	if (names->ranks > nodes) {
		fprintf(stderr, "coll sim flit: --ranks %u: the network has %u nodes\n",
			names->ranks, nodes);
		return false;
	}
	algo = find_algo(names, &tuning);
	if (!algo)
		return false;
	call.collective = algo->collective;
	schedule = memory_grow(NULL, names->ranks, sizeof(*schedule));
	place = memory_grow(NULL, names->ranks, sizeof(*place));
	counts = emit_blocks(&call);
	for (work->ranks = 0; fine && work->ranks < names->ranks; ) {
		call.rank = work->ranks;
		schedule[work->ranks] = emit_schedule("sim flit", algo, &call, &tuning);
		fine = schedule[work->ranks];
		work->ranks += fine;
	}
	memory_free(counts);
	work->schedule = schedule;
	work->place = place;
	return fine && place_ranks(names, nodes, seed, place);
}

void flit_input_free(struct flit_work *work)
{
	u32 r;

	for (r = 0; r < work->ranks; r++)
		memory_free((void *)work->schedule[r]);
	memory_free((void *)work->schedule);
	memory_free((void *)work->place);
	memory_free((void *)work->trace);
	memset(work, 0, sizeof(*work));
}
