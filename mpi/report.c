// SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
/*
 * The report: calls and times per collective, form, size and algorithm, and the calls
 * that were handed to the MPI, with the reason. Rank 0 prints it at the end, for all
 * ranks together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

enum { ROWS = 1024, NAME_BYTES = 32, SIZES = 64 };

struct row {
	int32_t which, form, log2, used;
	char algo[NAME_BYTES];
	uint64_t calls, bytes, ns, ns_max;
};

static struct row rows[ROWS];
static uint64_t handed[WHICH_COUNT][REASONS];

/* Trials of calls of a size: sums of their mean times, which all of a communicator's ranks count. */
enum { TRIALS, OURS_NS, OF_MPI_NS, FASTER, TRIAL_NUMBERS, TRIALS_COUNT = WHICH_COUNT * SIZES * TRIAL_NUMBERS };
static uint64_t trials[WHICH_COUNT][SIZES][TRIAL_NUMBERS];

int report_log2(uint64_t bytes)
{
	return bytes ? 64 - __builtin_clzll(bytes) : 0;
}

static bool report_same(const struct row *a, const struct row *b)
{
	return a->which == b->which && a->form == b->form && a->log2 == b->log2 &&
	       !strcmp(a->algo, b->algo);
}

static struct row *row_find(struct row *table, const struct row *key)
{
	uint32_t slot = key->which * 131u + key->form * 61u + key->log2 * 7u, i;

	for (i = 0; i < ROWS; i++, slot++) {
		struct row *row = &table[slot % ROWS];

		if (row->used && !report_same(row, key))
			continue;
		if (!row->used) {
			*row = *key;
			row->used = 1;
		}
		return row;
	}
	return NULL;	/* more kinds of calls than any program makes */
}

void report_ours(const struct task *task, const char *algo, uint64_t ns)
{
	struct row key = { .which = task->call.which, .form = task->form,
			   .log2 = report_log2(task->stage.bytes) }, *row;

	strncpy(key.algo, algo, sizeof(key.algo) - 1);
	row = row_find(rows, &key);
	if (!row)
		return;
	row->calls++;
	row->bytes += task->stage.bytes;
	row->ns += ns;
	if (ns > row->ns_max)
		row->ns_max = ns;
}

void report_handed(enum which which, enum reason reason, uint64_t calls)
{
	shim.handed += calls;
	handed[which][reason] += calls;
}

void report_trial(enum which which, int log2, uint64_t ours, uint64_t of_mpi)
{
	uint64_t *of = trials[which][log2 % SIZES];

	of[TRIALS]++;
	of[OURS_NS] += ours;
	of[OF_MPI_NS] += of_mpi;
}

void report_faster(enum which which, int log2, uint64_t calls)
{
	trials[which][log2 % SIZES][FASTER] += calls;
}

/* ---- printing ------------------------------------------------------------- */

static void add_rows(struct row *all, const struct row *of_rank)
{
	int i;

	for (i = 0; i < ROWS; i++) {
		struct row key = of_rank[i], *row;

		if (!key.used)
			continue;
		key.calls = key.bytes = key.ns = key.ns_max = 0;
		row = row_find(all, &key);
		if (!row)
			continue;
		row->calls += of_rank[i].calls;
		row->bytes += of_rank[i].bytes;
		row->ns += of_rank[i].ns;
		if (of_rank[i].ns_max > row->ns_max)
			row->ns_max = of_rank[i].ns_max;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

static void print_rows(FILE *to, struct row *all)
{
	static const char *const forms[] = { "blocking", "nonblocking", "persistent" };
	int i;

	fprintf(to, "%-22s %-11s %-20s %12s %12s %11s %11s %11s\n", "collective", "form",
		"algorithm", "calls", "bytes a call", "mean us", "max us", "s a rank");
	qsort(all, ROWS, sizeof(*all), by_time);
	for (i = 0; i < ROWS; i++)
		if (all[i].used)
			fprintf(to, "%-22s %-11s %-20s %12llu %12llu %11.1f %11.1f %11.4f\n",
				which_names[all[i].which], forms[all[i].form], all[i].algo,
				(unsigned long long)all[i].calls,
				(unsigned long long)(all[i].bytes / all[i].calls),
				all[i].ns / 1e3 / all[i].calls, all[i].ns_max / 1e3,
				all[i].ns / 1e9 / shim.ranks);
}

static void print_handed(FILE *to, const uint64_t (*all)[REASONS])
{
	bool any = false;
	int which, reason;

	for (which = 0; which < WHICH_COUNT; which++)
		for (reason = 0; reason < REASONS; reason++) {
			if (!all[which][reason])
				continue;
			if (!any)
				fprintf(to, "handed to the MPI:\n");
			any = true;
			fprintf(to, "%-22s %12llu calls: %s\n", which_names[which],
				(unsigned long long)all[which][reason], reason_texts[reason]);
		}
	if (!any)
		fprintf(to, "nothing was handed to the MPI\n");
}

/* What the trials found, and how many calls the MPI did because of that. */
static void print_trials(FILE *to, uint64_t (*all)[SIZES][TRIAL_NUMBERS])
{
	bool any = false;
	int which, log2;

	for (which = 0; which < WHICH_COUNT; which++)
		for (log2 = 0; log2 < SIZES; log2++) {
			const uint64_t *of = all[which][log2];

			if (!of[TRIALS])
				continue;
			if (!any)
				fprintf(to, "%-22s %12s %12s %12s %12s\n", "tried", "bytes from",
					"coll us", "the MPI us", "handed over");
			any = true;
			fprintf(to, "%-22s %12llu %12.2f %12.2f %12llu\n", which_names[which],
				log2 ? 1ull << (log2 - 1) : 0ull, of[OURS_NS] / 1e3 / of[TRIALS],
				of[OF_MPI_NS] / 1e3 / of[TRIALS], (unsigned long long)of[FASTER]);
		}
}

/* "1": stderr; else a file of this name. */
static FILE *open_report(const char *mode)
{
	const char *name = getenv("COLL_MPI_REPORT");
	FILE *file = name && strcmp(name, "1") ? fopen(name, mode) : NULL;

	return file ? file : stderr;
}

static void report_print_all(struct row *all, const uint64_t (*all_handed)[REASONS],
			     uint64_t (*all_trials)[SIZES][TRIAL_NUMBERS])
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	FILE *to = open_report("w");
	int length;

	real.Get_library_version(version, &length);
	fprintf(to, "libcollmpi %s: %d ranks, %.1f s, engine %s, over %.*s\n", coll_version(),
		shim.ranks, (coll_shim_now() - shim.opened) / 1e9, coll_shim_engine(shim.context),
		(int)strcspn(version, ",\n"), version);
	print_rows(to, all);
	print_handed(to, all_handed);
	print_trials(to, all_trials);
	if (to != stderr)
		fclose(to);
}

/* Rank by rank: rank 0 needs memory for one table besides its own. */
static void report_collect(struct row *all, uint64_t (*all_handed)[REASONS],
			   uint64_t (*all_trials)[SIZES][TRIAL_NUMBERS], struct row *one)
{
	int rank;

	for (rank = 1; rank < shim.ranks; rank++) {
		real.Recv(one, sizeof(rows), MPI_BYTE, rank, 0, shim.all, MPI_STATUS_IGNORE);
		add_rows(all, one);
	}
	real.Reduce(handed, all_handed, WHICH_COUNT * REASONS, MPI_UINT64_T, MPI_SUM, 0,
		    shim.all);
	real.Reduce(trials, all_trials, TRIALS_COUNT, MPI_UINT64_T, MPI_SUM, 0, shim.all);
}

static void print_all(void)
{
	static uint64_t all_handed[WHICH_COUNT][REASONS];
	static uint64_t all_trials[WHICH_COUNT][SIZES][TRIAL_NUMBERS];
	struct row *all;

	all = calloc(2, sizeof(rows));
	if (!all)
		return;
	add_rows(all, rows);
	report_collect(all, all_handed, all_trials, all + ROWS);
	report_print_all(all, all_handed, all_trials);
	free(all);
}

void report_print(void)
{
	hand_unlearn();
	if (!shim.rank) {
		print_all();
		return;
	}
	real.Send(rows, sizeof(rows), MPI_BYTE, 0, 0, shim.all);
	real.Reduce(handed, NULL, WHICH_COUNT * REASONS, MPI_UINT64_T, MPI_SUM, 0, shim.all);
	real.Reduce(trials, NULL, TRIALS_COUNT, MPI_UINT64_T, MPI_SUM, 0, shim.all);
}

/* Ranks that end this way write one after the other: none overwrites another's lines. */
void report_print_unfinished(const char *end)
{
	FILE *to = open_report("a");

	hand_unlearn();
	fprintf(to, "libcollmpi %s: rank %d of %d alone, %.1f s until %s, engine %s\n",
		coll_version(), shim.rank, shim.ranks, (coll_shim_now() - shim.opened) / 1e9, end,
		coll_shim_engine(shim.context));
	print_rows(to, rows);
	print_handed(to, handed);
	print_trials(to, trials);
	if (to == stderr)
		fflush(to);
	else
		fclose(to);
}
